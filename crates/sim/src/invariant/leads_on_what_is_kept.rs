use std::collections::BTreeMap;

use bellwether_proto::{
    ElectionId, Leadership, NodeId,
    node::{Durable, Kept},
};

/// Whoever names itself has the token on its disk: a later life would know that it was given out. Of nodes, whose
/// disks may fail.
#[derive(Clone, Debug, Default)]
pub struct LeadsOnWhatIsKept {
    disks: BTreeMap<NodeId, Durable>,
    refused: bool,
}

impl LeadsOnWhatIsKept {
    /// Its name in reports.
    pub const NAME: &'static str = "leads_on_what_is_kept";

    /// This is on a node's disk from now on.
    pub fn kept(&mut self, node: NodeId, durable: Durable) {
        self.disks.insert(node, durable);
    }

    /// A node's disk has refused something, or takes its time over it.
    pub fn refused(&mut self) {
        self.refused = true;
    }

    /// A node's disk is lost.
    pub fn forgot(&mut self, node: NodeId) {
        self.disks.remove(&node);
    }

    /// Judges one answer.
    ///
    /// # Errors
    ///
    /// Token and disk.
    pub fn answer(
        &self,
        node: NodeId,
        group: ElectionId,
        answer: &Leadership,
    ) -> Result<(), String> {
        let Some(epoch) = answer.epoch.filter(|_| answer.leader == Some(node)) else {
            return Ok(());
        };
        let kept = self.disks.get(&node).and_then(|disk| disk.elections.get(&group));
        let known = match kept {
            None => false,
            Some(Kept::Eventual(kept)) => kept.vouched.max(kept.known) >= Some(epoch),
            Some(Kept::Announced(kept)) => kept.max_epoch >= epoch.counter(),
            Some(Kept::Leased(kept)) => *kept >= epoch,
            Some(Kept::Learned(kept)) => {
                kept.durable.as_ref().is_some_and(|kept| kept.term >= epoch.counter())
            }
        };
        if known {
            return Ok(());
        }
        Err(format!("node={node} leads under {epoch}, on its disk is {kept:?}"))
    }

    /// The situation this guards against, and whether it could have arisen so far.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("a disk refused something or took its time", self.refused)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::Epoch;

    use super::{super::sighting, *};

    #[test]
    fn fires_when_a_leader_would_forget_its_token() {
        let (group, node) = (ElectionId::named("default"), NodeId::new(3));
        let answer = sighting(1, 3, 3, 7).leadership;
        let mut invariant = LeadsOnWhatIsKept::default();
        assert!(invariant.answer(node, group, &answer).is_err(), "nothing is kept");
        assert_eq!(invariant.answer(NodeId::new(4), group, &answer), Ok(()), "a follower");
        let mut disk = Durable::default();
        let epoch = answer.epoch.map(|epoch| Epoch::mint(6, epoch.minter()));
        disk.elections.insert(group, Kept::Leased(epoch.unwrap()));
        invariant.kept(node, disk.clone());
        assert!(invariant.answer(node, group, &answer).is_err(), "an older one is");
        disk.elections.insert(group, Kept::Leased(answer.epoch.unwrap()));
        invariant.kept(node, disk);
        assert_eq!(invariant.answer(node, group, &answer), Ok(()));
        invariant.forgot(node);
        assert!(invariant.answer(node, group, &answer).is_err());
        assert!(!invariant.sometimes().1);
        invariant.refused();
        assert!(invariant.sometimes().1);
    }
}
