//! Whom every node lists at one instant, as an election on top is told.
//!
//! A list is shared by all nodes that list the same: where lists are complete but for a few entries, ten thousand
//! nodes have a few lists between them. [`ListReplay`] follows the lists of a [`MembershipTrace`] through time.

use std::sync::Arc;

use bellwether_proto::{
    Boot, Incarnation, NodeId, Peer, Rng,
    election::churn_tolerant::{Feed, Member},
};

use crate::lists::membership_trace::MembershipTrace;

/// The lists of all nodes, each with its owner on it.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberLists {
    /// `None` for whoever is not running.
    lists: Vec<Option<Arc<Vec<Member>>>>,
    /// How often each node is suspected, summed over all lists: its unhealthiness.
    unhealthiness: Vec<u64>,
    group: Arc<[NodeId]>,
}

impl MemberLists {
    /// Nobody is running.
    pub fn empty(nodes: u32) -> Self {
        Self {
            lists: vec![None; nodes as usize],
            unhealthiness: vec![0; nodes as usize],
            group: (0..nodes).map(id).collect(),
        }
    }

    /// Everybody lists everybody.
    pub fn complete(nodes: u32) -> Self {
        let all = Arc::new((0..nodes).map(|node| member(node, 0)).collect::<Vec<_>>());
        Self { lists: vec![Some(all); nodes as usize], ..Self::empty(nodes) }
    }

    /// Takes `node` off the lists of `others` other nodes, or of all there are, drawn at random.
    pub fn miss(&mut self, node: u32, others: u32, rng: &mut Rng) {
        let mut pool: Vec<u32> = self.running().filter(|&other| other != node).collect();
        for at in 0..(others as usize).min(pool.len()) {
            let drawn = at + rng.below((pool.len() - at) as u64) as usize;
            pool.swap(at, drawn);
            self.set(pool[at], node, 0);
        }
    }

    /// Says what `node` knows of `member`, in the terms of a trace: 0 if it is not listed, else 1 + suspicions.
    /// Of itself it says whether it is running.
    pub fn set(&mut self, node: u32, listed: u32, value: u32) {
        let slot = &mut self.lists[node as usize];
        if node == listed && value == 0 {
            for gone in slot.take().iter().flat_map(|list| list.iter()) {
                let total = &mut self.unhealthiness[gone.peer.id.get() as usize];
                *total -= u64::from(gone.unhealthiness);
            }
            return;
        }
        if slot.is_none() && value == 0 {
            return;
        }
        let list = slot.get_or_insert_with(|| Arc::new(vec![member(node, 0)]));
        let place = list.binary_search_by_key(&id(listed), |member| member.peer.id);
        let total = &mut self.unhealthiness[listed as usize];
        if let Ok(at) = place {
            *total -= u64::from(list[at].unhealthiness);
        }
        *total += u64::from(value.saturating_sub(1));
        match (place, value) {
            (Ok(at), 0) => drop(Arc::make_mut(list).remove(at)),
            (Ok(at), _) => Arc::make_mut(list)[at] = member(listed, value - 1),
            (Err(_), 0) => {}
            (Err(at), _) => Arc::make_mut(list).insert(at, member(listed, value - 1)),
        }
    }

    /// How many nodes there are, running or not.
    pub fn nodes(&self) -> u32 {
        self.lists.len() as u32
    }

    /// Those that run, ascending.
    pub fn running(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.lists).filter(|(_, list)| list.is_some()).map(|(node, _)| node)
    }

    /// The list of a node, itself included; of itself alone if it is not said to run.
    pub fn list(&self, node: u32) -> Arc<Vec<Member>> {
        let list = self.lists[node as usize].clone();
        list.unwrap_or_else(|| Arc::new(vec![member(node, 0)]))
    }

    /// Everybody there is.
    pub fn group(&self) -> Arc<[NodeId]> {
        Arc::clone(&self.group)
    }

    /// How often each node is suspected, over all lists.
    pub fn unhealthiness(&self) -> &[u64] {
        &self.unhealthiness
    }
}

/// The lists of a trace, look by look.
#[derive(Clone, Debug)]
pub struct ListReplay<'a> {
    trace: &'a MembershipTrace,
    /// The next look.
    next: usize,
}

impl<'a> ListReplay<'a> {
    /// Before the first look of a trace: the lists are empty.
    pub fn new(trace: &'a MembershipTrace) -> Self {
        Self { trace, next: 0 }
    }

    /// Makes of `lists` what they are after so many looks; going back begins again.
    pub fn seek(&mut self, looks: usize, lists: &mut MemberLists) {
        if looks < self.next {
            *lists = MemberLists::empty(self.trace.nodes());
            self.next = 0;
        }
        while self.next < looks.min(self.trace.looks()) {
            for &(node, listed, value) in self.trace.look(self.next) {
                lists.set(node, listed, value);
            }
            self.next += 1;
        }
    }
}

/// What a node is told when its list changes like this; nothing of itself.
pub fn feed((node, listed, value): (u32, u32, u32)) -> Option<Feed> {
    let peer = peer(listed);
    match value {
        _ if node == listed => None,
        0 => Some(Feed::Failed { peer, incarnation: Incarnation::new(0) }),
        value => Some(Feed::Up(member(listed, value - 1))),
    }
}

fn member(node: u32, unhealthiness: u32) -> Member {
    Member { unhealthiness, ..Member::new(peer(node)) }
}

/// A trace does not say how often a node was started.
fn peer(node: u32) -> Peer {
    Peer::new(id(node), Boot::new(1))
}

fn id(node: u32) -> NodeId {
    NodeId::new(u64::from(node))
}

#[cfg(test)]
mod tests {
    use bellwether_proto::Seed;

    use super::*;

    fn ids(lists: &MemberLists, node: u32) -> Vec<u64> {
        lists.list(node).iter().map(|member| member.peer.id.get()).collect()
    }

    #[test]
    fn a_node_is_missing_from_as_many_other_lists_as_asked() {
        for others in [0, 1, 25, 127, 500] {
            let mut lists = MemberLists::complete(128);
            lists.miss(3, others, &mut Seed::new(1).rng());
            let lacking = (0..128).filter(|&node| !ids(&lists, node).contains(&3)).count();
            assert_eq!(lacking, others.min(127) as usize);
            assert!(ids(&lists, 3).contains(&3), "never from its own");
        }
    }

    #[test]
    fn unhealthiness_is_the_sum_over_the_lists_of_those_that_run() {
        let mut lists = MemberLists::empty(3);
        for (node, listed, value) in
            [(0, 0, 1), (0, 1, 4), (1, 1, 1), (2, 2, 1), (2, 1, 3), (2, 0, 2)]
        {
            lists.set(node, listed, value);
        }
        assert_eq!(lists.unhealthiness(), [1, 5, 0]);
        lists.set(0, 1, 6);
        assert_eq!(lists.unhealthiness(), [1, 7, 0]);
        lists.set(2, 0, 0);
        assert_eq!((lists.unhealthiness(), ids(&lists, 2)), (&[0, 7, 0][..], vec![1, 2]));
        lists.set(2, 2, 0);
        // The rest of its list goes with it, and is told to go after that.
        lists.set(2, 1, 0);
        assert_eq!(
            (lists.unhealthiness(), lists.running().collect()),
            (&[0, 5, 0][..], vec![0, 1])
        );
    }
}
