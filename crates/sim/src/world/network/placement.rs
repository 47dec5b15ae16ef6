//! Where nodes are, and which of them hear each other.

use std::collections::BTreeMap;

use bellwether_proto::Rng;

use crate::world::{Cluster, MoveLaw, Placement};

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

/// What was to be drawn did not come out connected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Disconnected {
    /// No connected placement was found.
    #[error(
        "no connected placement in {attempts} draws: {nodes} nodes with range {range} have about \
         {degree:.1} neighbours each; raise network.placement.range or network.nodes"
    )]
    Placement {
        /// How many draws were made.
        attempts: u32,
        /// Nodes to place.
        nodes: u32,
        /// How far a radio reaches.
        range: f64,
        /// Mean number of neighbours in the last draw.
        degree: f64,
    },
    /// No displacement was found that keeps the live nodes together.
    #[error(
        "no displacement of {moved} nodes by up to {distance} that keeps the {live} live nodes \
         connected in {attempts} draws; move fewer nodes or raise network.placement.range"
    )]
    Displacement {
        /// How many draws were made.
        attempts: u32,
        /// Nodes to move.
        moved: u32,
        /// How far at most.
        distance: f64,
        /// Nodes that must stay connected.
        live: u32,
    },
    /// No choice of nodes to lose was found that keeps the rest together.
    #[error(
        "no choice of nodes to lose that keeps the rest of {live} live nodes connected in {attempts} \
         draws, the last of them {lost}; lose fewer nodes or link them more densely"
    )]
    Rest {
        /// How many draws were made.
        attempts: u32,
        /// Nodes in the last choice.
        lost: u32,
        /// Live nodes before.
        live: u32,
    },
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
        Placement::Star => {
            placed.neighbours = Some(link(count, (1..nodes).map(|leaf| (0, leaf))));
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
            let sound = |neighbours: &[Vec<u32>]| !robust || survives_any_loss(neighbours);
            draw_connected(&mut placed, &area, *range, sound, rng)?;
        }
        Placement::Cluster { clusters, range, robust } => {
            let mut first = 0;
            placed.clusters = vec![0];
            for cluster in clusters {
                first += cluster.nodes;
                placed.clusters.push(first);
            }
            let bounds = placed.clusters.clone();
            let sound = |neighbours: &[Vec<u32>]| {
                let survives = |lost: &[u32]| {
                    parts(neighbours, |node| !(lost[0]..lost[1]).contains(&node)) <= 1
                };
                !robust || bounds.windows(2).all(survives)
            };
            draw_connected(&mut placed, clusters, *range, sound, rng)?;
        }
        Placement::Positions { at, range } => {
            placed.positions = at.clone();
            placed.neighbours = Some(within(at, *range));
        }
        Placement::Field { side, range } => {
            let area = [Cluster { x: (0.0, *side), y: (0.0, *side), nodes }];
            placed.positions = scatter(&area, rng);
            placed.neighbours = Some(within(&placed.positions, *range));
        }
    }
    Ok(placed)
}

/// Draws positions until nobody is out of reach and the links are `sound`.
fn draw_connected(
    placed: &mut Placed,
    areas: &[Cluster],
    range: f64,
    sound: impl Fn(&[Vec<u32>]) -> bool,
    rng: &mut Rng,
) -> Result<(), Disconnected> {
    let mut degree = 0.0;
    for _ in 0..ATTEMPTS {
        placed.positions = scatter(areas, rng);
        let neighbours = within(&placed.positions, range);
        if parts(&neighbours, |_| true) <= 1 && sound(&neighbours) {
            placed.neighbours = Some(neighbours);
            return Ok(());
        }
        let links: usize = neighbours.iter().map(Vec::len).sum();
        degree = links as f64 / neighbours.len() as f64;
    }
    let nodes = areas.iter().map(|area| area.nodes).sum();
    Err(Disconnected::Placement { attempts: ATTEMPTS, nodes, range, degree })
}

/// Draws new places for `movers`, all of them anew until the nodes that are `up` hang together as they did
/// before. Placements without positions stay as they are.
///
/// # Errors
///
/// [`Disconnected`] if many draws tear them apart.
pub(crate) fn displace(
    placed: &Placed,
    placement: &Placement,
    movers: &[u32],
    (law, distance): (MoveLaw, f64),
    up: impl Fn(u32) -> bool,
    rng: &mut Rng,
) -> Result<Placed, Disconnected> {
    let Some((field, range)) = field(placement) else { return Ok(placed.clone()) };
    let before = placed.neighbours.as_deref().map_or(1, |neighbours| parts(neighbours, &up));
    for _ in 0..ATTEMPTS {
        let mut positions = placed.positions.clone();
        for &mover in movers {
            let at = &mut positions[mover as usize];
            *at = moved(*at, &field, law, distance, rng);
        }
        let neighbours = within(&positions, range);
        if parts(&neighbours, &up) <= before {
            let clusters = placed.clusters.clone();
            return Ok(Placed { positions, neighbours: Some(neighbours), clusters });
        }
    }
    let live = (0..placed.positions.len() as u32).filter(|&node| up(node)).count() as u32;
    let moved = movers.len() as u32;
    Err(Disconnected::Displacement { attempts: ATTEMPTS, moved, distance, live })
}

/// The same with one node at a place of somebody's choice; nothing changes where nodes have none.
pub(crate) fn put(placed: &Placed, placement: &Placement, node: u32, at: (f64, f64)) -> Placed {
    let Some(range) = placement.range() else { return placed.clone() };
    let mut positions = placed.positions.clone();
    positions[node as usize] = at;
    let neighbours = Some(within(&positions, range));
    Placed { positions, neighbours, clusters: placed.clusters.clone() }
}

/// The field that nobody leaves, and the radio range, where nodes have positions.
fn field(placement: &Placement) -> Option<(Field, f64)> {
    match placement {
        Placement::Mesh | Placement::Ring | Placement::Star | Placement::Edges(_) => None,
        Placement::Grid { side, range }
        | Placement::Random { side, range, .. }
        | Placement::Field { side, range } => Some(([(0.0, *side); 2], *range)),
        Placement::Positions { at, range } => {
            let span = |axis: fn(&(f64, f64)) -> f64| {
                let whole = (f64::INFINITY, f64::NEG_INFINITY);
                at.iter().map(axis).fold(whole, |(from, to), at| (from.min(at), to.max(at)))
            };
            Some(([span(|at| at.0), span(|at| at.1)], *range))
        }
        Placement::Cluster { clusters, range, .. } => {
            let hull = |axis: fn(&Cluster) -> (f64, f64)| {
                let whole = (f64::INFINITY, f64::NEG_INFINITY);
                clusters.iter().map(axis).fold(whole, |(from, to), (a, b)| (from.min(a), to.max(b)))
            };
            Some(([hull(|cluster| cluster.x), hull(|cluster| cluster.y)], *range))
        }
    }
}

/// A new place for somebody who stands at `(x, y)`.
fn moved(
    (x, y): (f64, f64),
    &[across, along]: &Field,
    law: MoveLaw,
    distance: f64,
    rng: &mut Rng,
) -> (f64, f64) {
    match law {
        MoveLaw::Polar => {
            let angle = rng.unit() * core::f64::consts::TAU;
            let (dx, dy) = (libm::cos(angle), libm::sin(angle));
            let edge = |from: f64, step: f64, (low, high): (f64, f64)| match step {
                _ if step > 0.0 => (high - from) / step,
                _ if step < 0.0 => (low - from) / step,
                _ => f64::INFINITY,
            };
            let farthest = distance.min(edge(x, dx, across)).min(edge(y, dy, along));
            let far = rng.unit() * farthest;
            // Rounding must not carry anybody over the edge.
            let inside = |at: f64, (low, high): (f64, f64)| at.clamp(low, high);
            (inside(x + far * dx, across), inside(y + far * dy, along))
        }
        MoveLaw::Box => {
            let mut draw = |from: f64, (low, high): (f64, f64)| {
                let (low, high) = (low.max(from - distance), high.min(from + distance));
                low + rng.unit() * (high - low)
            };
            let x = draw(x, across);
            (x, draw(y, along))
        }
    }
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
pub(crate) fn within(positions: &[(f64, f64)], range: f64) -> Vec<Vec<u32>> {
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

/// In how many parts the nodes that are `there` fall, if only they pass messages on.
pub(crate) fn parts(neighbours: &[Vec<u32>], there: impl Fn(u32) -> bool) -> usize {
    let mut seen = vec![false; neighbours.len()];
    let mut stack = Vec::new();
    let mut parts = 0;
    for root in (0..neighbours.len() as u32).filter(|&node| there(node)) {
        parts += usize::from(!seen[root as usize]);
        stack.push(root);
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut seen[node as usize], true) {
                stack.extend(neighbours[node as usize].iter().filter(|&&next| there(next)));
            }
        }
    }
    parts
}

/// Whether the rest stays connected whichever single node is lost, in a network that is connected.
///
/// One walk into the depth: a node holds the network together if something behind it has no link to
/// what came before it, and the first one if there are two branches behind it.
fn survives_any_loss(neighbours: &[Vec<u32>]) -> bool {
    let mut number = vec![0_usize; neighbours.len()];
    // The least number that a node, or what is behind it, is linked to.
    let mut least = number.clone();
    let (mut walk, mut count, mut branches) = (vec![(0_usize, 0_usize)], 1, 0);
    (number[0], least[0]) = (1, 1);
    while let Some((node, next)) = walk.pop() {
        if let Some(&to) = neighbours[node].get(next) {
            walk.push((node, next + 1));
            let to = to as usize;
            if number[to] == 0 {
                count += 1;
                (number[to], least[to]) = (count, count);
                walk.push((to, 0));
            } else {
                least[node] = least[node].min(number[to]);
            }
        } else if let Some(&(before, _)) = walk.last() {
            least[before] = least[before].min(least[node]);
            branches += usize::from(before == 0);
            if branches > 1 || (before != 0 && least[node] >= number[before]) {
                return false;
            }
        }
    }
    true
}

pub(crate) fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
    libm::hypot(a.0 - b.0, a.1 - b.1)
}

/// From and to along each axis.
type Field = [(f64, f64); 2];

/// Draws before a placement is called impossible. At the thesis's density about one draw in three is
/// connected; a field of which not one draw in two thousand is will not be waited for.
pub(crate) const ATTEMPTS: u32 = 2_000;
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
    fn a_robust_field_of_clusters_can_do_without_any_one_of_them() {
        let clusters = crate::scenario::THESIS.to_vec();
        let lost = |placed: &Placed, range: &[u32]| {
            parts(placed.neighbours.as_ref().unwrap(), |node| !(range[0]..range[1]).contains(&node))
        };
        let fragile = |robust, seed| {
            let field = Placement::Cluster { clusters: clusters.clone(), range: 4.0, robust };
            let placed = place(&field, 49, &mut Seed::new(seed).rng()).unwrap();
            placed.clusters.windows(2).any(|range| lost(&placed, range) > 1)
        };
        assert!((0..20).any(|seed| fragile(false, seed)), "else there is nothing to ask for");
        assert!(!(0..20).any(|seed| fragile(true, seed)));
    }

    #[test]
    fn whoever_holds_a_network_together_is_found() {
        let mut seen = [0; 2];
        for seed in 0..400 {
            let mut rng = Seed::new(seed).rng();
            let edges: Vec<_> =
                (0..16).map(|_| (rng.below(9) as u32, rng.below(9) as u32)).collect();
            let neighbours = link(9, edges.into_iter());
            if parts(&neighbours, |_| true) > 1 {
                continue;
            }
            let without = |lost: u32| parts(&neighbours, |node| node != lost) <= 1;
            let survives = survives_any_loss(&neighbours);
            assert_eq!(survives, (0..9).all(without), "seed {seed}: {neighbours:?}");
            seen[usize::from(survives)] += 1;
        }
        assert!(seen.iter().all(|&times| times > 20), "{seen:?}");
    }

    #[test]
    fn no_two_nodes_stand_in_one_place_however_many_there_are() {
        let field = Placement::Random { side: 97.0, range: 4.0, robust: false };
        let placed = place(&field, 2_048, &mut Seed::new(1).rng()).unwrap();
        assert!(within(&placed.positions, CLOSEST).iter().all(Vec::is_empty));
    }

    /// Nobody goes farther than asked or off the field, and nobody else moves.
    #[test]
    fn those_who_move_stay_near_and_inside_and_the_field_connected() {
        let clusters = vec![
            Cluster { x: (1.0, 6.0), y: (2.0, 7.0), nodes: 20 },
            Cluster { x: (7.0, 15.0), y: (-3.0, 9.0), nodes: 29 },
        ];
        let fields = [
            (Placement::Random { side: 15.0, range: 4.0, robust: false }, [(0.0, 15.0); 2]),
            (Placement::Grid { side: 15.0, range: 4.0 }, [(0.0, 15.0); 2]),
            (
                Placement::Cluster { clusters, range: 4.0, robust: false },
                [(1.0, 15.0), (-3.0, 9.0)],
            ),
        ];
        let mut rng = Seed::new(7).rng();
        for ((field, [across, along]), law, distance) in fields.iter().flat_map(|field| {
            [
                (field, MoveLaw::Polar, 2.0),
                (field, MoveLaw::Box, 2.0),
                (field, MoveLaw::Polar, 16.0),
            ]
        }) {
            let placed = place(field, 49, &mut rng).unwrap();
            let movers = [0, 7, 11, 30, 48];
            let after =
                displace(&placed, field, &movers, (law, distance), |_| true, &mut rng).unwrap();
            for node in 0..49 {
                let (from, to) = (placed.positions[node], after.positions[node]);
                assert!(from == to || movers.contains(&(node as u32)), "{node}");
                let step = ((to.0 - from.0).abs(), (to.1 - from.1).abs());
                match law {
                    MoveLaw::Polar => assert!(libm::hypot(step.0, step.1) <= distance + 1e-9),
                    MoveLaw::Box => assert!(step.0 <= distance && step.1 <= distance),
                }
                assert!(across.0 <= to.0 && to.0 <= across.1, "{to:?}");
                assert!(along.0 <= to.1 && to.1 <= along.1, "{to:?}");
            }
            assert_ne!(placed.positions, after.positions);
            let neighbours = after.neighbours.unwrap();
            assert_eq!(neighbours, within(&after.positions, 4.0));
            assert_eq!(parts(&neighbours, |_| true), 1);
        }
    }

    /// M-22 of `docs/rules/medley.md`: far from the edge the published rule moves half the distance on average, the
    /// uniform square (sqrt 2 + asinh 1) / 3 = 0.7652 of it; in the corner both take the edge into account.
    #[test]
    fn the_two_laws_of_moving_have_their_means() {
        let field = [(0.0, 100.0); 2];
        let mut rng = Seed::new(5).rng();
        let mut mean = |law, at| {
            let step = |_| distance(at, moved(at, &field, law, 4.0, &mut rng));
            (0..40_000).map(step).sum::<f64>() / 4e4
        };
        // Standard errors: 4 / sqrt(12 * 40000) = 0.006 and about as much.
        assert!((mean(MoveLaw::Polar, (50.0, 50.0)) - 2.0).abs() < 0.03);
        assert!((mean(MoveLaw::Box, (50.0, 50.0)) - 3.061).abs() < 0.03);
        // Three directions in four lead out of the corner at once.
        assert!((mean(MoveLaw::Polar, (0.0, 0.0)) - 0.5).abs() < 0.03);
        assert!((mean(MoveLaw::Box, (0.0, 0.0)) - 3.061).abs() < 0.03);
    }

    #[test]
    fn a_field_that_would_fall_apart_is_an_error_that_says_why() {
        let field = Placement::Grid { side: 2.0, range: 2.0 };
        let placed = place(&field, 4, &mut Seed::new(1).rng()).unwrap();
        let far = Placement::Grid { side: 1e6, range: 2.0 };
        let mut rng = Seed::new(1).rng();
        let step = (MoveLaw::Box, 1e6);
        let error = displace(&placed, &far, &[1, 2], step, |_| true, &mut rng).unwrap_err();
        assert!(error.to_string().contains("2 nodes by up to 1000000 that keeps the 4 live"));
        // The dead may go where they like, and who is apart already need not come together.
        assert!(displace(&placed, &far, &[1, 2], step, |node| node == 0, &mut rng).is_ok());
        let split = displace(&placed, &far, &[3], step, |node| node != 3, &mut rng).unwrap();
        assert!(displace(&split, &far, &[3], step, |_| true, &mut rng).is_ok());
    }

    #[test]
    fn a_hopeless_field_is_an_error_that_says_why() {
        let field = Placement::Random { side: 1_000.0, range: 4.0, robust: false };
        let error = place(&field, 49, &mut Seed::new(3).rng()).unwrap_err();
        assert!(error.to_string().contains("49 nodes with range 4 have about 0."), "{error}");
    }
}
