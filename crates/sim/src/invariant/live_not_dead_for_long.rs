//! How long is long (`mending` in `run/promise.rs`) follows from the configuration of the hardened form. Let `T` be
//! the longest period, `S` the suspicion timeout, `n` the nodes and `c` how many periods pass between two
//! comparisons of the same page by one node.
//!
//! 1. When quiet falls a probe may be under way and end in a suspicion that ends in a removal: `T + S`, and one
//!    `T` until the next tick.
//! 2. In every period, somebody who holds the member dead tells it so with probability at least `1 / max(n, c)`:
//!    it knocks at each of at most `n` that it does not list (about one knock a period in every component), or its
//!    page is fetched. Told so, the member contradicts in a larger incarnation. Who never heard of the member
//!    knocks as well, and lists it when it answers.
//! 3. Whoever the contradiction did not reach as gossip fetches it with probability at least `1 / c` a period.
//!
//! Steps 2 and 3 end within `k` times their mean but for a chance of `e^-k`; with `k = 21` that is one in a
//! thousand million. So `X = 2T + S + 21 T (max(n, c) + c)`, and quiet may begin at any moment: `Y = 0`.

use bellwether_proto::{Duration, NodeId, Time};

use super::spells::Spells;

/// M4 of `docs/rules/medley.md`: a live member that can be reached is on everybody's list, but for a bounded time after
/// trouble.
#[derive(Clone, Debug)]
pub struct LiveNotDeadForLong(Spells);

impl LiveNotDeadForLong {
    /// The name in reports.
    pub const NAME: &'static str = "live_not_dead_for_long";

    /// Nobody may be missing for longer than `allowed`, counted from `quiet` on.
    pub const fn new(quiet: Time, allowed: Duration) -> Self {
        Self(Spells::new(quiet, allowed))
    }

    /// Whether the live and reachable `subject` is missing on `observer`'s list.
    ///
    /// # Errors
    ///
    /// Who was missing where, and for how long.
    pub fn missing(
        &mut self,
        now: Time,
        observer: NodeId,
        subject: NodeId,
        missing: bool,
    ) -> Result<(), String> {
        self.0.set(now, observer, subject, missing)
    }

    /// The run is over.
    ///
    /// # Errors
    ///
    /// Who is missing where, and for how long.
    pub fn finish(&self, now: Time) -> Result<(), String> {
        self.0.finish(now)
    }

    /// The situation this guards against, and whether it arose.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("a live, reachable member was missing on a list", self.0.began())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_on_a_live_member_that_stays_missing() {
        let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let [a, b] = [1, 2].map(NodeId::new);
        let mut invariant = LiveNotDeadForLong::new(at(10), Duration::from_secs(5));
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.missing(at(1), a, b, true), Ok(()));
        assert!(invariant.sometimes().1);
        assert_eq!(invariant.missing(at(15), a, b, false), Ok(()), "counted from quiet on");
        assert_eq!(invariant.missing(at(20), a, b, true), Ok(()));
        assert_eq!(invariant.finish(at(25)), Ok(()));
        let detail =
            "observer=n1 subject=n2 from=20.000000s for=6s quiet=10.000000s allowed=5s".to_owned();
        assert_eq!(invariant.finish(at(26)), Err(detail.clone()));
        assert_eq!(invariant.missing(at(26), a, b, false), Err(detail));
    }
}
