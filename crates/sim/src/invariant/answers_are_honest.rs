use bellwether_proto::Mode;

use super::{Invariant, Sighting};

/// An answer claims nothing its mode does not promise: only a leased leader has an expiry, nobody has
/// an epoch without a leader, and an answer without a leader is never called settled.
#[derive(Debug, Default)]
pub struct AnswersAreHonest {
    settled: bool,
    unsettled: bool,
}

impl Invariant for AnswersAreHonest {
    fn name(&self) -> &'static str {
        "answers_are_honest"
    }

    fn answer(&mut self, sighting: &Sighting) -> Result<(), String> {
        let answer = &sighting.leadership;
        self.settled |= answer.settled;
        self.unsettled |= !answer.settled;
        let lie = if answer.mode != Mode::Leased && answer.valid_until.is_some() {
            "expiry without a lease"
        } else if answer.leader.is_none() && answer.epoch.is_some() {
            "epoch without a leader"
        } else if answer.leader.is_none() && answer.settled {
            "settled without a leader"
        } else {
            return Ok(());
        };
        Err(format!("node={} {lie}", sighting.node))
    }

    fn sometimes(&self) -> (&'static str, bool) {
        ("answers were settled, and answers were not", self.settled && self.unsettled)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::Time;

    use super::*;
    use crate::invariant::sighting;

    #[test]
    fn fires_on_each_kind_of_empty_promise() {
        let honest = sighting(1, 0, 3, 7);
        let mut invariant = AnswersAreHonest::default();
        assert_eq!(invariant.answer(&honest), Ok(()));
        assert!(!invariant.sometimes().1);
        let mut lie = honest;
        lie.leadership.valid_until = Some(Time::ZERO);
        assert_eq!(invariant.answer(&lie), Err("node=n0 expiry without a lease".into()));
        let mut lie = honest;
        lie.leadership.leader = None;
        lie.leadership.settled = false;
        assert_eq!(invariant.answer(&lie), Err("node=n0 epoch without a leader".into()));
        lie.leadership.epoch = None;
        lie.leadership.settled = true;
        assert_eq!(invariant.answer(&lie), Err("node=n0 settled without a leader".into()));
        assert!(invariant.sometimes().1);
    }
}
