//! Where nodes are, and which of them hear each other.

use std::collections::BTreeMap;

use bellwether_proto::Rng;

use crate::scenario::{Cluster, Placement};

/// A drawn placement: positions where there are any, and who hears whom.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Coordinates, for placements that have them.
    pub positions: Vec<(f64, f64)>,
    /// Neighbours of each node, ascending; `None` where everybody hears everybody.
    pub neighbours: Option<Vec<Vec<u32>>>,
    /// First node of each cluster, and one past the last of the last, for clustered placements.
    pub clusters: Vec<u32>,
}

/// No connected placement was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "no connected placement in {attempts} draws: {nodes} nodes with range {range} have about \
     {degree:.1} neighbours each; raise network.placement.range or network.nodes"
)]
pub struct Disconnected {
    /// How many draws were made.
    pub attempts: u32,
    /// Nodes to place.
    pub nodes: u32,
    /// Radio range.
    pub range: f64,
    /// Mean number of neighbours in the last draw.
    pub degree: f64,
}

/// Draws a placement of `nodes` nodes.
///
/// # Errors
///
/// [`Disconnected`] if a random placement is not connected after many draws.
pub fn place(placement: &Placement, nodes: u32, rng: &mut Rng) -> Result<Placed, Disconnected> {
    let count = nodes as usize;
    let mut placed = Placed { positions: Vec::new(), neighbours: None, clusters: Vec::new() };
    match placement {
        Placement::Mesh => {}
        Placement::Ring => {
            placed.neighbours = Some(link(count, (0..nodes).map(|i| (i, (i + 1) % nodes))));
        }
        Placement::Edges(edges) => {
            placed.neighbours = Some(link(count, edges.iter().copied()));
        }
        Placement::Grid { side, range } => {
            let columns = libm::ceil(libm::sqrt(f64::from(nodes))) as u32;
            let step = if columns > 1 { side / f64::from(columns - 1) } else { 0.0 };
            placed.positions = (0..nodes)
                .map(|i| (f64::from(i % columns) * step, f64::from(i / columns) * step))
                .collect();
            placed.neighbours = Some(within(&placed.positions, *range));
        }
        Placement::Random { side, range, robust } => {
            let area = [Cluster { x: (0.0, *side), y: (0.0, *side), nodes }];
            draw_connected(&mut placed, &area, *range, *robust, rng)?;
        }
        Placement::Cluster { clusters, range, robust } => {
            draw_connected(&mut placed, clusters, *range, *robust, rng)?;
            let mut first = 0;
            placed.clusters = vec![0];
            for cluster in clusters {
                first += cluster.nodes;
                placed.clusters.push(first);
            }
        }
    }
    Ok(placed)
}

/// Draws positions until nobody is out of reach.
fn draw_connected(
    placed: &mut Placed,
    areas: &[Cluster],
    range: f64,
    robust: bool,
    rng: &mut Rng,
) -> Result<(), Disconnected> {
    let mut degree = 0.0;
    for _ in 0..ATTEMPTS {
        placed.positions = scatter(areas, rng);
        let neighbours = within(&placed.positions, range);
        if is_connected(&neighbours, None) && (!robust || survives_any_loss(&neighbours)) {
            placed.neighbours = Some(neighbours);
            return Ok(());
        }
        let links: usize = neighbours.iter().map(Vec::len).sum();
        degree = links as f64 / neighbours.len() as f64;
    }
    let nodes = areas.iter().map(|area| area.nodes).sum();
    Err(Disconnected { attempts: ATTEMPTS, nodes, range, degree })
}

fn link(nodes: usize, edges: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u32>> {
    let mut neighbours = vec![Vec::new(); nodes];
    for (a, b) in edges {
        if a != b {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
    }
    for list in &mut neighbours {
        list.sort_unstable();
        list.dedup();
    }
    neighbours
}

/// All pairs at most `range` apart, found by a uniform grid of cells one range wide.
fn within(positions: &[(f64, f64)], range: f64) -> Vec<Vec<u32>> {
    let mut cells: Vec<((i64, i64), u32)> = positions
        .iter()
        .zip(0..)
        .map(|(&(x, y), i)| (((x / range) as i64, (y / range) as i64), i))
        .collect();
    cells.sort_unstable();
    let mut neighbours = vec![Vec::new(); positions.len()];
    for &((column, row), i) in &cells {
        for c in column - 1..=column + 1 {
            let from = cells.partition_point(|&(cell, _)| cell < (c, row - 1));
            for &(_, j) in cells[from..].iter().take_while(|&&(cell, _)| cell <= (c, row + 1)) {
                if i != j && distance(positions[i as usize], positions[j as usize]) <= range {
                    neighbours[i as usize].push(j);
                }
            }
        }
        neighbours[i as usize].sort_unstable();
    }
    neighbours
}

/// Draws every node within its area, anew if it would stand on another: two antennas need a tenth of a
/// metre. In an area too small for its nodes the last draw stands.
fn scatter(areas: &[Cluster], rng: &mut Rng) -> Vec<(f64, f64)> {
    let mut positions = Vec::new();
    let mut cells = BTreeMap::<(i64, i64), Vec<(f64, f64)>>::new();
    let cell = |(x, y): (f64, f64)| ((x / CLOSEST) as i64, (y / CLOSEST) as i64);
    for area in areas {
        for _ in 0..area.nodes {
            let mut at = (0.0, 0.0);
            for _ in 0..ATTEMPTS {
                let x = area.x.0 + rng.unit() * (area.x.1 - area.x.0);
                at = (x, area.y.0 + rng.unit() * (area.y.1 - area.y.0));
                let (column, row) = cell(at);
                let near = (column - 1..=column + 1)
                    .flat_map(|c| cells.range((c, row - 1)..=(c, row + 1)))
                    .any(|(_, others)| others.iter().any(|&other| distance(other, at) < CLOSEST));
                if !near {
                    break;
                }
            }
            cells.entry(cell(at)).or_default().push(at);
            positions.push(at);
        }
    }
    positions
}

/// Whether every node but the one left out can be reached from every other.
fn is_connected(neighbours: &[Vec<u32>], left_out: Option<usize>) -> bool {
    let mut seen = vec![false; neighbours.len()];
    let mut wanted = neighbours.len();
    if let Some(node) = left_out {
        seen[node] = true;
        wanted -= 1;
    }
    let mut stack = vec![usize::from(left_out == Some(0)).min(neighbours.len() - 1)];
    let mut reached = 0;
    while let Some(i) = stack.pop() {
        if !std::mem::replace(&mut seen[i], true) {
            reached += 1;
            stack.extend(neighbours[i].iter().map(|&j| j as usize));
        }
    }
    reached == wanted
}

/// Whether the rest stays connected whichever single node is lost.
fn survives_any_loss(neighbours: &[Vec<u32>]) -> bool {
    (0..neighbours.len()).all(|node| is_connected(neighbours, Some(node)))
}

pub(crate) fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
    libm::hypot(a.0 - b.0, a.1 - b.1)
}

/// Draws before a placement is called impossible. At the thesis's density about one draw in three is
/// connected; a field of which not one draw in two thousand is will not be waited for.
const ATTEMPTS: u32 = 2_000;
/// Least distance between two nodes of a random placement.
const CLOSEST: f64 = 0.1;

#[cfg(test)]
mod tests {
    use bellwether_proto::Seed;

    use super::*;

    #[test]
    fn the_grid_has_the_thesis_spacing_and_four_nearest_neighbours() {
        let grid = Placement::Grid { side: 15.0, range: 2.6 };
        let placed = place(&grid, 49, &mut Seed::new(1).rng()).unwrap();
        assert_eq!(placed.positions[0], (0.0, 0.0));
        assert_eq!(placed.positions[48], (15.0, 15.0));
        let neighbours = placed.neighbours.unwrap();
        assert_eq!(neighbours[0], [1, 7]);
        assert_eq!(neighbours[24], [17, 23, 25, 31]);
    }

    #[test]
    fn in_range_means_what_the_distances_say() {
        let field = Placement::Random { side: 15.0, range: 4.0, robust: false };
        let placed = place(&field, 49, &mut Seed::new(3).rng()).unwrap();
        let neighbours = placed.neighbours.unwrap();
        for i in 0..49 {
            let near: Vec<u32> = (0..49)
                .filter(|&j| {
                    i != j
                        && distance(placed.positions[i as usize], placed.positions[j as usize])
                            <= 4.0
                })
                .collect();
            assert_eq!(neighbours[i as usize], near);
        }
    }

    #[test]
    fn a_robust_field_has_no_node_that_holds_it_together() {
        let field = |robust| Placement::Random { side: 15.0, range: 4.0, robust };
        let fragile = |robust, seed| {
            let placed = place(&field(robust), 49, &mut Seed::new(seed).rng()).unwrap();
            !survives_any_loss(&placed.neighbours.unwrap())
        };
        assert!((0..20).any(|seed| fragile(false, seed)), "else there is nothing to ask for");
        assert!(!(0..20).any(|seed| fragile(true, seed)));
    }

    #[test]
    fn no_two_nodes_stand_in_one_place_however_many_there_are() {
        let field = Placement::Random { side: 97.0, range: 4.0, robust: false };
        let placed = place(&field, 2_048, &mut Seed::new(1).rng()).unwrap();
        assert!(within(&placed.positions, CLOSEST).iter().all(Vec::is_empty));
    }

    #[test]
    fn a_hopeless_field_is_an_error_that_says_why() {
        let field = Placement::Random { side: 1_000.0, range: 4.0, robust: false };
        let error = place(&field, 49, &mut Seed::new(3).rng()).unwrap_err();
        assert!(error.to_string().contains("49 nodes with range 4 have about 0."), "{error}");
    }
}
