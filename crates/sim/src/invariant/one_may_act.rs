use std::collections::BTreeMap;

use bellwether_proto::{Duration, Peer, Time};

/// At no instant may two lives act as leader, by the clock on the wall. Who is frozen or crashed may act until its time
/// is up all the same, and so may an earlier life that runs on beside a later one of the same node.
#[derive(Clone, Debug, Default)]
pub struct OneMayAct {
    /// Up to when each life may act, or could.
    acts: BTreeMap<Peer, Time>,
    /// Who may, or could last.
    last: Option<Peer>,
    gap: Option<Duration>,
    overlap: Duration,
    changes: u32,
}

impl OneMayAct {
    /// Its name in reports.
    pub const NAME: &'static str = "one_may_act";

    /// From `now` on `who` may act up to `until`, or, if that is not after `now`, may not.
    ///
    /// # Errors
    ///
    /// The two that may.
    pub fn acts(&mut self, now: Time, who: Peer, until: Option<Time>) -> Result<(), String> {
        let Some(until) = until.filter(|&until| until > now) else {
            if let Some(over) = self.acts.get_mut(&who) {
                *over = now.min(*over);
            }
            return Ok(());
        };
        let before = self.acts.insert(who, until).filter(|&over| over > now);
        let others = self.acts.iter().filter(|&(&other, _)| other != who);
        let latest = others.map(|(&other, &over)| (over, other)).max();
        if let Some((over, other)) = latest.filter(|&(over, _)| over > now) {
            self.gap = Some(Duration::ZERO);
            if before.is_none() {
                self.changes += 1;
                self.overlap += over.min(until).since(now);
            }
            self.last = Some(who);
            return Err(format!("holder={other} until={over} other={who} until={until}"));
        }
        if self.last != Some(who) {
            if let Some((over, _)) = latest {
                let gap = now.since(over);
                self.gap = Some(self.gap.map_or(gap, |least| least.min(gap)));
                self.changes += 1;
            }
            self.last = Some(who);
        }
        Ok(())
    }

    /// The shortest time from the last instant at which one could act to the first at which another could.
    pub fn smallest_gap(&self) -> Option<Duration> {
        self.gap
    }

    /// How long two could act at once, together.
    pub fn overlap(&self) -> Duration {
        self.overlap
    }

    /// The situation this guards against, and whether it could have arisen so far.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("one that could act followed another", self.changes > 0)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::{Boot, NodeId};

    use super::*;

    #[test]
    fn fires_when_the_next_one_does_not_wait_be_it_a_later_life_of_the_same() {
        let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let life = |boot| Peer::new(NodeId::new(1), Boot::new(boot));
        let mut invariant = OneMayAct::default();
        assert_eq!(invariant.acts(at(1), life(1), Some(at(4))), Ok(()));
        assert_eq!(invariant.acts(at(2), life(1), Some(at(5))), Ok(()), "renewed");
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.acts(at(6), life(2), Some(at(9))), Ok(()));
        assert_eq!(invariant.smallest_gap(), Some(Duration::from_secs(1)));
        assert!(invariant.sometimes().1);
        assert!(invariant.acts(at(7), life(1), Some(at(8))).is_err());
        assert_eq!(invariant.overlap(), Duration::from_secs(1));
        assert_eq!(invariant.smallest_gap(), Some(Duration::ZERO));
    }

    #[test]
    fn who_steps_down_may_be_followed_at_once() {
        let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let [one, other] = [1, 2].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
        let mut invariant = OneMayAct::default();
        assert_eq!(invariant.acts(at(1), one, Some(at(9))), Ok(()));
        assert_eq!(invariant.acts(at(3), one, None), Ok(()));
        assert_eq!(invariant.acts(at(3), other, Some(at(9))), Ok(()));
        assert_eq!(invariant.smallest_gap(), Some(Duration::ZERO));
        assert_eq!(invariant.overlap(), Duration::ZERO);
    }
}
