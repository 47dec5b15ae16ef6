use std::collections::BTreeMap;

use bellwether_proto::{Duration, Epoch, Peer, Time};

/// At no instant may two lives act as leader, by the clock on the wall. Who is frozen or crashed may act until its time
/// is up all the same, and so may an earlier life that runs on beside a later one of the same node. Whoever follows has a
/// larger token than whoever could act before: a resource that has seen it refuses the other's. And what the other has begun
/// has as long to end as was agreed.
#[derive(Clone, Debug, Default)]
pub struct OneMayAct {
    /// Up to when each life may act, or could.
    acts: BTreeMap<Peer, Time>,
    /// Who may, or could last.
    last: Option<Peer>,
    epoch: Option<Epoch>,
    /// How long whoever follows waits at least.
    aftermath: Duration,
    gap: Option<Duration>,
    overlap: Duration,
    changes: u32,
}

impl OneMayAct {
    /// Its name in reports.
    pub const NAME: &'static str = "one_may_act";

    /// Where what a leader has begun may take so long to end.
    pub fn with_aftermath(aftermath: Duration) -> Self {
        Self { aftermath, ..Self::default() }
    }

    /// From `now` on `who` may act up to the instant given, under this token, or, if that is not after `now`, may not.
    ///
    /// # Errors
    ///
    /// The two that may, or their tokens.
    pub fn acts(
        &mut self,
        now: Time,
        who: Peer,
        until: Option<(Time, Epoch)>,
    ) -> Result<(), String> {
        let Some((until, epoch)) = until.filter(|&(until, _)| until > now) else {
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
            (self.last, self.epoch) = (Some(who), Some(epoch));
            return Err(format!("holder={other} until={over} other={who} until={until}"));
        }
        let (last, token) = (self.last, self.epoch.replace(epoch));
        if last != Some(who) {
            self.last = Some(who);
            if let Some((over, other)) = latest {
                let gap = now.since(over);
                self.gap = Some(self.gap.map_or(gap, |least| least.min(gap)));
                self.changes += 1;
                if gap < self.aftermath {
                    let least = self.aftermath;
                    return Err(format!(
                        "{who} acts {gap} after {other}, which has {least} to end"
                    ));
                }
            }
        }
        match token {
            Some(token) if epoch < token || (epoch == token && last != Some(who)) => {
                Err(format!("{who} acts under {epoch} after {token}"))
            }
            _ => Ok(()),
        }
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

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn life(id: u64, boot: u64) -> Peer {
        Peer::new(NodeId::new(id), Boot::new(boot))
    }

    fn until(seconds: u64, counter: u64, who: Peer) -> Option<(Time, Epoch)> {
        Some((at(seconds), Epoch::mint(counter, who)))
    }

    #[test]
    fn fires_when_the_next_one_does_not_wait_be_it_a_later_life_of_the_same() {
        let [older, later] = [1, 2].map(|boot| life(1, boot));
        let mut invariant = OneMayAct::default();
        assert_eq!(invariant.acts(at(1), older, until(4, 1, older)), Ok(()));
        assert_eq!(invariant.acts(at(2), older, until(5, 1, older)), Ok(()), "renewed");
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.acts(at(6), later, until(9, 2, later)), Ok(()));
        assert_eq!(invariant.smallest_gap(), Some(Duration::from_secs(1)));
        assert!(invariant.sometimes().1);
        assert!(invariant.acts(at(7), older, until(8, 3, older)).is_err());
        assert_eq!(invariant.overlap(), Duration::from_secs(1));
        assert_eq!(invariant.smallest_gap(), Some(Duration::ZERO));
    }

    #[test]
    fn who_steps_down_may_be_followed_at_once() {
        let [one, other] = [1, 2].map(|id| life(id, 1));
        let mut invariant = OneMayAct::default();
        assert_eq!(invariant.acts(at(1), one, until(9, 1, one)), Ok(()));
        assert_eq!(invariant.acts(at(3), one, None), Ok(()));
        assert_eq!(invariant.acts(at(3), other, until(9, 2, other)), Ok(()));
        assert_eq!(invariant.smallest_gap(), Some(Duration::ZERO));
        assert_eq!(invariant.overlap(), Duration::ZERO);
    }

    #[test]
    fn fires_when_what_was_begun_has_too_little_time_to_end() {
        let [one, other] = [1, 2].map(|id| life(id, 1));
        for (after, holds) in [(3, true), (2, false)] {
            let mut invariant = OneMayAct::with_aftermath(Duration::from_secs(3));
            assert_eq!(invariant.acts(at(1), one, until(4, 1, one)), Ok(()));
            let followed = invariant.acts(at(4 + after), other, until(9, 2, other));
            assert_eq!(followed.is_ok(), holds, "{followed:?}");
        }
    }

    #[test]
    fn fires_when_a_successor_has_a_smaller_token() {
        let [one, other] = [1, 2].map(|id| life(id, 1));
        let mut invariant = OneMayAct::default();
        assert_eq!(invariant.acts(at(1), other, until(2, 5, other)), Ok(()));
        assert!(invariant.acts(at(3), one, until(4, 5, one)).is_err());
    }
}
