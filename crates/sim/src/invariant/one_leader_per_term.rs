use std::collections::BTreeMap;

use bellwether_proto::NodeId;

use super::{Invariant, Sighting};

/// In one term nobody ever names two leaders: votes of a majority decide. Of modes whose epochs count terms; a token
/// alone would tell two leaders of one term apart and hide them.
#[derive(Debug, Default)]
pub struct OneLeaderPerTerm {
    leaders: BTreeMap<u64, NodeId>,
    several: bool,
}

impl Invariant for OneLeaderPerTerm {
    fn name(&self) -> &'static str {
        "one_leader_per_term"
    }

    fn answer(&mut self, sighting: &Sighting) -> Result<(), String> {
        let (Some(leader), Some(epoch)) = (sighting.leadership.leader, sighting.leadership.epoch)
        else {
            return Ok(());
        };
        let term = epoch.counter();
        let first = *self.leaders.entry(term).or_insert(leader);
        self.several |= self.leaders.values().any(|other| *other != first);
        if first == leader {
            return Ok(());
        }
        Err(format!("term={term} leaders=[{first}, {leader}] observer={}", sighting.node))
    }

    fn sometimes(&self) -> (&'static str, bool) {
        ("different nodes led in different terms", self.several)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::sighting;

    #[test]
    fn fires_when_one_term_has_two_leaders_though_their_tokens_differ() {
        let mut invariant = OneLeaderPerTerm::default();
        assert_eq!(invariant.answer(&sighting(1, 0, 3, 7)), Ok(()));
        assert_eq!(invariant.answer(&sighting(2, 1, 4, 8)), Ok(()), "another term");
        assert!(invariant.sometimes().1);
        assert_eq!(
            invariant.answer(&sighting(3, 2, 4, 7)),
            Err("term=7 leaders=[n3, n4] observer=n2".into())
        );
    }
}
