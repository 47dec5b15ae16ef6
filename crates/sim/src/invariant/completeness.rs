//! How long is long (`forgetting` in `run/promise.rs`): with bags of at most `L` instances somebody live pings the crashed
//! node within `2L + 1` periods (P3 of `docs/rules/medley.md`), a period and the suspicion later it is removed, and
//! whoever the gossip missed has it from a comparison, each period with probability `1 / c`, where 21 times the mean
//! leaves a chance of one in a thousand million. Passive feedback takes a tenth of all periods away from the bag; a
//! quarter more than `2L + 1` allows for it. So `D = 2.5 L T + 2T + S + 21 c T`.

use bellwether_proto::{Duration, NodeId, Time};

use super::spells::Spells;

/// P2: who has crashed or left is on nobody's list, but for a bounded time.
#[derive(Clone, Debug)]
pub struct Completeness(Spells);

impl Completeness {
    /// The name in reports.
    pub const NAME: &'static str = "completeness";

    /// Nobody who is gone may be listed for longer than `allowed`, counted from `quiet` on.
    pub const fn new(quiet: Time, allowed: Duration) -> Self {
        Self(Spells::new(quiet, allowed))
    }

    /// Whether the live `observer` lists `subject`, which is gone.
    ///
    /// # Errors
    ///
    /// Who was listed where, and for how long.
    pub fn listed(
        &mut self,
        now: Time,
        observer: NodeId,
        subject: NodeId,
        listed: bool,
    ) -> Result<(), String> {
        self.0.set(now, observer, subject, listed)
    }

    /// The run is over.
    ///
    /// # Errors
    ///
    /// Who is still listed where, and for how long.
    pub fn finish(&self, now: Time) -> Result<(), String> {
        self.0.finish(now)
    }

    /// The situation this guards against, and whether it arose.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("somebody gone was on a list", self.0.began())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_on_the_dead_that_stay_listed() {
        let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let [a, b] = [1, 2].map(NodeId::new);
        let mut invariant = Completeness::new(at(0), Duration::from_secs(5));
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.listed(at(1), a, b, true), Ok(()));
        assert!(invariant.sometimes().1);
        assert_eq!(invariant.finish(at(6)), Ok(()));
        assert_eq!(
            invariant.finish(at(7)),
            Err("observer=n1 subject=n2 from=1.000000s for=6s quiet=0.000000s allowed=5s".into())
        );
    }
}
