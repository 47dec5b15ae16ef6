//! Nodes that move: where everybody is at any instant, and from when to when two are in range.
//!
//! A [`Movement`] is one trajectory for each node, straight from waypoint to waypoint. It is generated from a seed
//! before the run begins, or read from a file that somebody else's generator wrote, so that one movement can be
//! looked at, kept, and given to another program. Nothing that happens in a run changes it.

mod bonnmotion;
mod link;
mod model;
mod ns2;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use self::{
    bonnmotion::{MovementError, read, to_text},
    link::{LinkChange, LinkChanges},
    model::generate,
};
use crate::world::within;

/// Where a node is at one instant; between two of them it goes straight, at one speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// When it is there, in seconds.
    pub at: f64,
    /// Along the first axis.
    pub x: f64,
    /// Along the second axis.
    pub y: f64,
}

/// A trajectory for each node: at least one waypoint, in order of time. Before the first and after the last nobody
/// moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Movement {
    trajectories: Vec<Vec<Waypoint>>,
}

impl Movement {
    /// Trajectories with at least one waypoint each, in order of time.
    fn new(trajectories: Vec<Vec<Waypoint>>) -> Self {
        debug_assert!(trajectories.iter().all(|points| !points.is_empty()));
        debug_assert!(trajectories.iter().all(|points| points.is_sorted_by(|a, b| a.at <= b.at)));
        Self { trajectories }
    }

    /// A movement in which all nodes stay where they are.
    pub fn still(positions: &[(f64, f64)]) -> Self {
        let stand = |&(x, y): &(f64, f64)| vec![Waypoint { at: 0.0, x, y }];
        Self::new(positions.iter().map(stand).collect())
    }

    /// How many nodes move.
    pub fn nodes(&self) -> u32 {
        self.trajectories.len() as u32
    }

    /// The waypoints of a node.
    pub fn waypoints(&self, node: u32) -> &[Waypoint] {
        &self.trajectories[node as usize]
    }

    /// The first `nodes` trajectories alone.
    pub fn of_first(&self, nodes: u32) -> Self {
        Self { trajectories: self.trajectories[..nodes as usize].to_vec() }
    }

    /// Where a node is, `at` in seconds.
    pub fn position(&self, node: u32, at: f64) -> (f64, f64) {
        let points = self.waypoints(node);
        let next = points.partition_point(|point| point.at <= at);
        let from = points[next.saturating_sub(1)];
        match points.get(next) {
            Some(to) if next > 0 => {
                let part = (at - from.at) / (to.at - from.at);
                (from.x + part * (to.x - from.x), from.y + part * (to.y - from.y))
            }
            _ => (from.x, from.y),
        }
    }

    /// Where everybody is.
    pub fn positions(&self, at: f64) -> Vec<(f64, f64)> {
        (0..self.nodes()).map(|node| self.position(node, at)).collect()
    }

    /// Who is at most `range` from whom, ascending.
    pub fn neighbours(&self, range: f64, at: f64) -> Vec<Vec<u32>> {
        within(&self.positions(at), range)
    }

    /// Every change of who is at most `range` from whom until `end` seconds, in order of time, starting from the
    /// [neighbours](Self::neighbours) at time zero.
    pub fn link_changes(self: &Arc<Self>, range: f64, end: f64) -> LinkChanges {
        LinkChanges::new(Arc::clone(self), range, end)
    }

    /// The speed of the fastest leg; infinite if somebody jumps.
    fn fastest(&self) -> f64 {
        let legs = self.trajectories.iter().flat_map(|points| points.windows(2));
        legs.fold(0.0, |fastest, leg| {
            let far = libm::hypot(leg[1].x - leg[0].x, leg[1].y - leg[0].y);
            if far == 0.0 { fastest } else { f64::max(fastest, far / (leg[1].at - leg[0].at)) }
        })
    }
}
