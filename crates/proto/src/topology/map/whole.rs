//! Scores that follow from the graph as a whole, not from one search of each member.

use alloc::vec::Vec;

use super::{
    super::{criterion::merits, graph::Graph},
    Map, Survey,
};

impl Survey {
    /// All links lead both ways: the component is a graph, numbered by identity so that it is the same for all members.
    pub(super) fn score_by_merit(&mut self, map: &Map) {
        let mut order: Vec<u32> = (0..self.members.len() as u32).collect();
        order.sort_by_key(|&at| self.id(map, self.members[at as usize]));
        let mut numbers = alloc::vec![0; order.len()];
        (0..).zip(&order).for_each(|(number, &at)| numbers[at as usize] = number);
        let mut graph = Graph::new(order.len());
        for (at, ends) in self.starts.windows(2).enumerate() {
            for &to in &self.targets[ends[0] as usize..ends[1] as usize] {
                graph.connect(numbers[at], numbers[to as usize]);
            }
        }
        self.ranks.clear();
        self.ranks.resize(order.len(), 0);
        for (&at, merit) in order.iter().zip(merits(&graph, self.criterion)) {
            self.scores[at as usize] = Some(merit.score);
            self.ranks[at as usize] = merit.rank;
        }
    }
}
