use std::collections::BTreeMap;

use bellwether_proto::{Epoch, NodeId};

use super::{Invariant, Sighting};

/// What a node tells its application never carries a smaller epoch than it told before, across restarts
/// too unless its durable state was lost, and strictly grows from one leader to the next.
#[derive(Debug, Default)]
pub struct EpochNeverGoesBack {
    last: BTreeMap<NodeId, (Epoch, NodeId)>,
    advanced: bool,
}

impl Invariant for EpochNeverGoesBack {
    fn name(&self) -> &'static str {
        "epoch_never_goes_back"
    }

    fn answer(&mut self, sighting: &Sighting) -> Result<(), String> {
        let (Some(leader), Some(epoch)) = (sighting.leadership.leader, sighting.leadership.epoch)
        else {
            return Ok(());
        };
        let Some((before, old)) = self.last.insert(sighting.node, (epoch, leader)) else {
            return Ok(());
        };
        self.advanced |= epoch > before;
        if epoch > before || (epoch == before && old == leader) {
            return Ok(());
        }
        let node = sighting.node;
        Err(format!("observer={node} before={before} ({old}) after={epoch} ({leader})"))
    }

    fn forgot(&mut self, node: NodeId) {
        self.last.remove(&node);
    }

    fn sometimes(&self) -> (&'static str, bool) {
        ("an observer saw an epoch follow another", self.advanced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::sighting;

    #[test]
    fn fires_when_an_observer_is_told_an_older_epoch() {
        let mut invariant = EpochNeverGoesBack::default();
        assert_eq!(invariant.answer(&sighting(1, 0, 3, 7)), Ok(()));
        assert_eq!(invariant.answer(&sighting(2, 1, 3, 5)), Ok(()), "another observer");
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.answer(&sighting(3, 0, 3, 8)), Ok(()));
        assert!(invariant.sometimes().1);
        assert_eq!(
            invariant.answer(&sighting(4, 0, 2, 8)),
            Err("observer=n0 before=8.3.1.0 (n3) after=8.2.1.0 (n2)".into())
        );
    }

    #[test]
    fn only_lost_state_excuses() {
        let mut invariant = EpochNeverGoesBack::default();
        assert_eq!(invariant.answer(&sighting(1, 0, 3, 7)), Ok(()));
        assert!(invariant.answer(&sighting(2, 0, 3, 6)).is_err());
        invariant.forgot(NodeId::new(0));
        assert_eq!(invariant.answer(&sighting(3, 0, 3, 1)), Ok(()));
    }
}
