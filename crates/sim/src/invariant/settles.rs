use bellwether_proto::Time;

/// Liveness made checkable: from the instant `by` on, all agree and go on agreeing.
///
/// It is given the truth about agreement rather than single answers, hence no
/// [`Invariant`](super::Invariant) of its own.
#[derive(Clone, Copy, Debug)]
pub struct Settles {
    by: Time,
    disagreed_before: bool,
}

impl Settles {
    /// The name in reports.
    pub const NAME: &'static str = "settles";

    /// Demands agreement from `by` on.
    pub const fn new(by: Time) -> Self {
        Self { by, disagreed_before: false }
    }

    /// Judges a spell without agreement.
    ///
    /// # Errors
    ///
    /// What was wrong from when on.
    pub fn disagreement(&mut self, from: Time, to: Time) -> Result<(), String> {
        self.disagreed_before |= from < self.by && from < to;
        if to <= self.by || to <= from {
            return Ok(());
        }
        Err(format!("no agreement from {} to {to}, due by {}", from.max(self.by), self.by))
    }

    /// The situation this guards against, and whether it arose.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("there was disagreement to settle", self.disagreed_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_on_disagreement_after_the_deadline_only() {
        let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let mut settles = Settles::new(at(10));
        assert!(!settles.sometimes().1);
        assert_eq!(settles.disagreement(at(4), at(10)), Ok(()), "in time, just");
        assert!(settles.sometimes().1);
        assert_eq!(settles.disagreement(at(12), at(12)), Ok(()), "an instant is no spell");
        assert_eq!(
            settles.disagreement(at(9), at(11)),
            Err("no agreement from 10.000000s to 11.000000s, due by 10.000000s".into())
        );
    }
}
