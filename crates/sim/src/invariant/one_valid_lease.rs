use bellwether_proto::{Duration, NodeId, Time};

/// At no instant may two nodes act: one leader's leases have run out, by the clock on the wall, before the next one's
/// begin. Who is frozen or crashed counts until its lease has run out all the same.
#[derive(Clone, Debug, Default)]
pub struct OneValidLease {
    /// The node that may act, or did last, and up to when.
    holder: Option<(NodeId, Time)>,
    /// Since when the present one may.
    since: Time,
    gap: Option<Duration>,
    changes: u32,
    overlap: Duration,
}

impl OneValidLease {
    /// Its name in reports.
    pub const NAME: &'static str = "one_valid_lease";

    /// `node` may act up to `until`, or, if that is not after `now`, may not.
    ///
    /// # Errors
    ///
    /// The two that may.
    pub fn holds(&mut self, now: Time, node: NodeId, until: Option<Time>) -> Result<(), String> {
        let until = until.filter(|&until| until > now);
        match (until, self.holder) {
            (None, Some((holder, over))) if holder == node => {
                self.holder = Some((holder, over.min(now)));
                Ok(())
            }
            (None, _) => Ok(()),
            (Some(until), Some((holder, over))) if holder != node => {
                self.changes += 1;
                self.since = now;
                self.holder = Some((node, until));
                if over > now {
                    self.gap = Some(Duration::ZERO);
                    self.overlap += over.min(until).since(now);
                    return Err(format!("holder={holder} until={over} other={node} until={until}"));
                }
                let gap = now.since(over);
                self.gap = Some(self.gap.map_or(gap, |least| least.min(gap)));
                Ok(())
            }
            (Some(until), held) => {
                if held.is_none_or(|(_, over)| over <= now) {
                    self.since = now;
                }
                self.holder = Some((node, until));
                Ok(())
            }
        }
    }

    /// Who may act at `now`.
    pub fn holder(&self, now: Time) -> Option<NodeId> {
        self.holder.filter(|&(_, until)| until > now).map(|(node, _)| node)
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
        ("one leader followed another", self.changes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_when_the_next_one_does_not_wait() {
        let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let [one, other] = [1, 2].map(NodeId::new);
        let mut invariant = OneValidLease::default();
        assert_eq!(invariant.holds(at(1), one, Some(at(4))), Ok(()));
        assert_eq!(invariant.holds(at(2), one, Some(at(5))), Ok(()), "renewed");
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.holds(at(6), other, Some(at(8))), Ok(()));
        assert_eq!(invariant.smallest_gap(), Some(Duration::from_secs(1)));
        assert!(invariant.sometimes().1);
        let overlap = invariant.holds(at(7), one, Some(at(9)));
        assert_eq!(overlap, Err("holder=n2 until=8.000000s other=n1 until=9.000000s".into()));
        assert_eq!(invariant.overlap(), Duration::from_secs(1));
        assert_eq!(invariant.holds(at(8), one, None), Ok(()), "it steps down");
        assert_eq!(invariant.holds(at(8), other, Some(at(9))), Ok(()), "and is followed at once");
        assert_eq!(invariant.smallest_gap(), Some(Duration::ZERO));
    }
}
