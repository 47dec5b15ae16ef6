use std::collections::BTreeMap;

use bellwether_proto::{NodeId, membership::ring::Life};

/// Nobody is buried that is still a member in its own eyes, and not frozen (S2 of `docs/rules/arbitrated.md`).
#[derive(Clone, Debug, Default)]
pub struct NobodyBuriedAlive {
    active: BTreeMap<NodeId, Life>,
    buried: u32,
}

impl NobodyBuriedAlive {
    /// Its name in reports.
    pub const NAME: &'static str = "nobody_buried_alive";

    /// A node is a member by this life, or none.
    pub fn is(&mut self, node: NodeId, life: Option<Life>) {
        match life {
            Some(life) => self.active.insert(node, life),
            None => self.active.remove(&node),
        };
    }

    /// Whether a node is a member.
    pub fn active(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.active.keys().copied()
    }

    /// `by` buries a life.
    ///
    /// # Errors
    ///
    /// Who is buried alive, and by whom.
    pub fn buries(&mut self, by: NodeId, life: Life) -> Result<(), String> {
        self.buried += 1;
        match self.active.get(&life.id()) {
            Some(&alive) if alive == life => Err(format!("node={} by={by}", life.peer)),
            _ => Ok(()),
        }
    }

    /// The situation this guards against, and whether it could have arisen so far.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("somebody was buried", self.buried > 0)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::{Boot, Incarnation, Peer};

    use super::*;

    #[test]
    fn fires_for_the_living_and_not_for_another_life_of_theirs() {
        let life = |inc| Life {
            peer: Peer::new(NodeId::new(3), Boot::new(1)),
            inc: Incarnation::new(inc),
        };
        let (three, by) = (NodeId::new(3), NodeId::new(7));
        let mut invariant = NobodyBuriedAlive::default();
        invariant.is(three, Some(life(1)));
        assert_eq!(invariant.buries(by, life(0)), Ok(()));
        assert_eq!(invariant.buries(by, life(1)), Err("node=n3/1 by=n7".into()));
        invariant.is(three, None);
        assert_eq!(invariant.buries(by, life(1)), Ok(()));
        assert!(invariant.sometimes().1);
    }
}
