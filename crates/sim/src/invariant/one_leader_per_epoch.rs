use std::collections::BTreeMap;

use bellwether_proto::{Epoch, NodeId};

use super::{Invariant, Sighting};

/// Under one epoch nobody ever names two leaders: a fencing token fences.
#[derive(Debug, Default)]
pub struct OneLeaderPerEpoch {
    leaders: BTreeMap<Epoch, NodeId>,
    several: bool,
}

impl Invariant for OneLeaderPerEpoch {
    fn name(&self) -> &'static str {
        "one_leader_per_epoch"
    }

    fn answer(&mut self, sighting: &Sighting) -> Result<(), String> {
        let (Some(leader), Some(epoch)) = (sighting.leadership.leader, sighting.leadership.epoch)
        else {
            return Ok(());
        };
        let first = *self.leaders.entry(epoch).or_insert(leader);
        self.several |= self.leaders.values().any(|other| *other != first);
        if first == leader {
            return Ok(());
        }
        Err(format!("epoch={epoch} leaders=[{first}, {leader}] observer={}", sighting.node))
    }

    fn sometimes(&self) -> (&'static str, bool) {
        ("different nodes led under different epochs", self.several)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::sighting;

    #[test]
    fn fires_when_one_epoch_has_two_leaders() {
        let mut invariant = OneLeaderPerEpoch::default();
        assert_eq!(invariant.answer(&sighting(1, 0, 3, 7)), Ok(()));
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.answer(&sighting(2, 1, 4, 7)), Ok(()), "another half's epoch");
        assert!(invariant.sometimes().1);
        let mut forged = sighting(3, 2, 4, 7);
        forged.leadership.leader = Some(NodeId::new(3));
        assert_eq!(
            invariant.answer(&forged),
            Err("epoch=7.4.1.0 leaders=[n4, n3] observer=n2".into())
        );
    }
}
