use super::Record;

/// P7 and M2 of `docs/rules/medley.md`: what an observer records of a member never goes back to an older life or
/// incarnation, as long as the observer itself lives.
#[derive(Clone, Copy, Debug, Default)]
pub struct IncarnationMonotone {
    raised: bool,
}

impl IncarnationMonotone {
    /// The name in reports.
    pub const NAME: &'static str = "incarnation_monotone";

    /// Judges a record that follows another, which may have been forgotten in between.
    ///
    /// # Errors
    ///
    /// Both, if the later one is of an older life or incarnation.
    pub fn recorded(&mut self, before: &Record, after: &Record) -> Result<(), String> {
        self.raised |= after.life() > before.life();
        if after.life() >= before.life() {
            return Ok(());
        }
        Err(format!("before={before} after={after}"))
    }

    /// The situation this guards against, and whether it arose.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("a record was raised to a larger life or incarnation", self.raised)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::membership::medley::State;

    use super::*;

    #[test]
    fn fires_when_a_record_goes_back() {
        let mut invariant = IncarnationMonotone::default();
        let [old, new, life] = [(1, 3), (1, 4), (2, 0)]
            .map(|(boot, incarnation)| Record::new(State::Alive, boot, incarnation));
        assert_eq!(invariant.recorded(&old, &old), Ok(()));
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.recorded(&old, &new), Ok(()));
        assert!(invariant.sometimes().1);
        assert_eq!(invariant.recorded(&new, &life), Ok(()));
        assert_eq!(invariant.recorded(&life, &new), Err("before=Alive@2.0 after=Alive@1.4".into()));
    }
}
