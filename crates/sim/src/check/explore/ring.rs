//! What a ring promises, judged in every history of a few machines.

use bellwether_proto::{Duration, Peer, Time, membership::ring::RingEvent};

use super::{End, Judge, Step};
use crate::{
    invariant::{NobodyBuriedAlive, OneOfTwoWins, OneValidLease},
    observe::RingMember,
};

/// What a ring promises, looked at in every step of a history: nobody is buried alive, of two that accuse each other
/// one wins at most, and two leaders are never valid at once.
#[derive(Clone, Debug, Default)]
pub struct RingJudge {
    alive: NobodyBuriedAlive,
    wins: OneOfTwoWins,
    lease: OneValidLease,
    won: u64,
    joined: bool,
}

/// What was counted in histories of a ring.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RingTally {
    /// How many arbitrations were won.
    pub won: u64,
    /// Histories in which one leader followed another.
    pub followed: u64,
    /// The least time from one leader to the next.
    pub smallest_gap: Option<Duration>,
    /// Histories at whose end all nodes that were up were members.
    pub joined: u64,
    /// Those at whose end some were not.
    pub apart: u64,
}

impl<M: RingMember> Judge<M> for RingJudge {
    type Tally = RingTally;

    fn step(&mut self, step: &Step<'_, M>) -> Result<(), String> {
        let ring = step.machine.ring();
        let (id, life) = (step.peer.id, ring.life());
        let until = step.machine.authority().map(|at| step.wall(at));
        self.lease.holds(step.now, id, until)?;
        self.alive.is(id, ring.is_active().then_some(life));
        for event in step.events() {
            match M::ring_event(event) {
                Some(RingEvent::Condemned(accused)) => {
                    self.won += 1;
                    self.wins.wins(life, *accused)?;
                }
                Some(RingEvent::Buried { life, .. }) => self.alive.buries(id, *life)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn crashed(&mut self, _now: Time, peer: Peer) {
        self.alive.is(peer.id, None);
    }

    fn ended(&mut self, end: &End<'_, M>) -> Result<(), String> {
        let active = |machine: Option<&M>| machine.is_none_or(|it| it.ring().is_active());
        self.joined = end.nodes.iter().all(|&(_, machine)| active(machine));
        Ok(())
    }

    fn tally(&self, tally: &mut RingTally) {
        let gap = self.lease.smallest_gap();
        let joined = u64::from(self.joined);
        let (won, followed) = (self.won, u64::from(gap.is_some()));
        let other = RingTally { won, followed, smallest_gap: gap, joined, apart: 1 - joined };
        <Self as Judge<M>>::merge(tally, other);
    }

    fn merge(tally: &mut RingTally, other: RingTally) {
        tally.won += other.won;
        tally.followed += other.followed;
        let gaps = [tally.smallest_gap, other.smallest_gap];
        tally.smallest_gap = gaps.into_iter().flatten().min();
        tally.joined += other.joined;
        tally.apart += other.apart;
    }
}
