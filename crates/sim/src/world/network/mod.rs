//! How messages travel: delays, losses, paths, and what stands in their way.
//!
//! The engine asks where a message arrives and when; it then delivers each copy itself. Whether two nodes
//! are cut off is judged at *delivery*, so that a message in flight when a partition begins is stopped by
//! it, and a node that has just joined can catch one sent before it came. Over several hops, the path is
//! chosen at sending from the links and relays that work then.
//!
//! Nodes are put elsewhere all at once by [`Network::rearrange`], or link by link as they move; where they have
//! radios, messages go over the [air](crate::world::radio) instead.

mod field;
mod onward;
mod placement;
mod route;

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use bellwether_proto::{Duration, Rng};

pub(crate) use self::placement::{ATTEMPTS, displace, parts, put, within};
pub use self::placement::{Disconnected, Placed, place};
use self::{
    field::{Earshot, Moving},
    placement::distance,
    route::{Links, Routes, Row, Search},
};
use crate::world::{Delay, DelayLaw, Loss, NetworkSettings, Per, Routing, radio::Air};

/// One copy of a message on its way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// The node that receives it.
    pub to: u32,
    /// How long it takes from now on.
    pub after: Duration,
}

/// What sending cost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Travel {
    /// Times the message went over the air or a wire, lost ones included.
    pub transmissions: u32,
    /// Receivers it was lost to.
    pub lost: u32,
    /// Receivers to which there is no path.
    pub unreachable: u32,
}

/// Trouble on all links for a while, on top of the network's own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trouble {
    /// Probability that a hop loses a message.
    pub loss: f64,
    /// Probability that a message arrives twice, and how much later the copy may come.
    pub duplicate: (f64, Duration),
    /// Probability that a message is held back, and for how long at most.
    pub reorder: (f64, Duration),
    /// How much longer every message takes.
    pub delay: Duration,
}

/// A network in operation.
#[derive(Clone, Debug)]
pub struct Network {
    placed: Placed,
    delay: Delay,
    loss: LossTable,
    routing: Routing,
    rng: Rng,
    up: Vec<bool>,
    /// Which side of a partition each node is on; empty without a partition.
    sides: Vec<u32>,
    /// Directed pairs that nothing passes between.
    cuts: BTreeSet<(u32, u32)>,
    trouble: Trouble,
    /// The delay of every message, where everybody hears everybody and nothing is ever lost: most large
    /// runs, and nothing to draw.
    plain: Option<Duration>,
    /// Made when paths are first asked for.
    links: OnceCell<Links>,
    routes: Routes,
    search: RefCell<Search>,
    path: Vec<u32>,
    moving: Option<Box<Moving>>,
    air: Option<Box<Air>>,
    earshot: Option<Earshot>,
}

/// [`Loss`] prepared for looking up.
#[derive(Clone, Debug)]
enum LossTable {
    None,
    Independent(f64),
    Correlated(f64),
    /// General rate, then what each node's sending and hearing lets through.
    PerNode(f64, Vec<(f64, f64)>),
    PerLink(f64, BTreeMap<(u32, u32), f64>),
}

impl Network {
    /// The network of a scenario with `placed` nodes, all of them down.
    pub fn new(network: &NetworkSettings, placed: Placed, nodes: u32, rng: Rng) -> Self {
        let loss = match &network.loss {
            Loss::None => LossTable::None,
            // Which messages acknowledge is not for the network to know.
            Loss::Independent { rate } | Loss::BiasedAcks { rate, .. } => {
                LossTable::Independent(*rate)
            }
            Loss::Correlated { rate } => LossTable::Correlated(*rate),
            Loss::PerNode { rate, nodes: exceptions } => {
                let mut passing = vec![(1.0, 1.0); nodes as usize];
                for exception in exceptions {
                    passing[exception.node as usize] =
                        (1.0 - exception.outbound, 1.0 - exception.inbound);
                }
                LossTable::PerNode(*rate, passing)
            }
            Loss::PerLink { rate, links } => LossTable::PerLink(
                *rate,
                links.iter().map(|link| ((link.from, link.to), link.rate)).collect(),
            ),
        };
        let mut network = Self {
            placed,
            delay: network.delay,
            loss,
            routing: network.routing,
            rng,
            up: vec![false; nodes as usize],
            sides: Vec::new(),
            cuts: BTreeSet::new(),
            trouble: Trouble::default(),
            plain: None,
            links: OnceCell::new(),
            routes: Routes::default(),
            search: RefCell::default(),
            path: Vec::new(),
            moving: None,
            air: None,
            earshot: None,
        };
        network.set_trouble(Trouble::default());
        network
    }

    /// For another run on the same placement: everybody is taken to be up, and is until it says otherwise.
    pub fn renew(&mut self, rng: Rng) {
        self.rng = rng;
        if !self.nothing_cut() {
            self.heal();
        }
        self.set_trouble(Trouble::default());
        if self.up.contains(&false) {
            self.up.fill(true);
            self.routes.clear();
        }
    }

    /// Where the nodes are.
    pub fn placed(&self) -> &Placed {
        &self.placed
    }

    /// Puts the nodes elsewhere.
    pub fn rearrange(&mut self, placed: Placed) {
        self.placed = placed;
        self.rearranged();
        self.changed();
    }

    /// Says whether a node is up: those that are down relay nothing.
    pub fn set_up(&mut self, node: u32, up: bool) {
        let before = std::mem::replace(&mut self.up[node as usize], up);
        match (before, up) {
            (true, false) => match self.links.get() {
                Some(links) => self.routes.clear_through(node, links),
                None => self.routes.clear(),
            },
            (false, true) => self.routes.clear(),
            (true, true) | (false, false) => {}
        }
    }

    /// Whether a node is up and staying.
    pub fn is_up(&self, node: u32) -> bool {
        self.up[node as usize]
    }

    /// Stops everything between nodes of different sides. One entry per node.
    pub fn partition(&mut self, sides: Vec<u32>) {
        self.sides = sides;
        self.routes.clear();
    }

    /// Stops everything in one direction.
    pub fn cut(&mut self, from: u32, to: u32) {
        self.cuts.insert((from, to));
        self.routes.clear();
    }

    /// Lets through again what was cut in one direction.
    pub fn mend(&mut self, from: u32, to: u32) {
        self.cuts.remove(&(from, to));
        self.routes.clear();
    }

    /// Nodes that are cut off, one way or both, from at least a quarter of all by cuts between pairs.
    pub fn mostly_cut_off(&self) -> impl Iterator<Item = u32> + use<> {
        let mut apart: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for &(from, to) in &self.cuts {
            apart.entry(from).or_default().insert(to);
            apart.entry(to).or_default().insert(from);
        }
        let nodes = self.up.len();
        apart.into_iter().filter(move |(_, from)| 4 * from.len() >= nodes).map(|(node, _)| node)
    }

    /// Ends every partition and cut.
    pub fn heal(&mut self) {
        self.sides.clear();
        self.cuts.clear();
        self.routes.clear();
    }

    /// Which side of a partition each node is on; empty without a partition.
    pub fn sides(&self) -> &[u32] {
        &self.sides
    }

    /// Directed pairs that nothing passes between, ascending.
    pub fn cuts(&self) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        self.cuts.iter().copied()
    }

    /// The trouble that all links are in.
    pub fn trouble(&self) -> Trouble {
        self.trouble
    }

    /// Puts all links into this trouble, instead of what they were in.
    pub fn set_trouble(&mut self, trouble: Trouble) {
        self.trouble = trouble;
        self.plain = match (&self.placed.neighbours, &self.loss, self.delay.law) {
            (None, LossTable::None, DelayLaw::Fixed(delay)) if trouble == Trouble::default() => {
                Some(delay)
            }
            _ => None,
        };
    }

    /// Forgets what was derived from the placement: it is no longer the same.
    pub fn changed(&mut self) {
        self.links.take();
        self.routes.clear_whole();
    }

    /// Whether a message that is about to arrive may.
    #[inline]
    pub fn admits(&self, from: u32, to: u32) -> bool {
        if self.sides.is_empty() && self.cuts.is_empty() {
            return true;
        }
        // Over several hops a cut link is gone around when the path is chosen; only a partition
        // can still stop the message.
        self.same_side(from, to)
            && (self.placed.neighbours.is_some() || !self.cuts.contains(&(from, to)))
    }

    /// The neighbour that hands a message from `from` over to `to`.
    #[inline]
    pub fn via(&mut self, from: u32, to: u32) -> u32 {
        match self.placed.neighbours {
            None => from,
            // Nothing is nearer than a neighbour; on a field that moves, paths are worth not finding.
            Some(ref neighbours)
                if self.routing != Routing::Length
                    && self.nothing_cut()
                    && neighbours[from as usize].binary_search(&to).is_ok() =>
            {
                from
            }
            Some(_) => {
                let (row, links) = self.row(from);
                row.parent(links, to).unwrap_or(from)
            }
        }
    }

    /// Sends to one node, over as many hops as it takes.
    #[inline]
    pub fn unicast(&mut self, from: u32, to: u32, arrivals: &mut Vec<Arrival>) -> Travel {
        if let Some(after) = self.plain {
            arrivals.push(Arrival { to, after });
            return Travel { transmissions: 1, ..Travel::default() };
        }
        let lost = self.lost_to_all();
        if self.placed.neighbours.is_some() {
            return self.unicast_routed(from, to, lost, arrivals);
        }
        if lost || self.hop_loses(from, to) {
            return Travel { transmissions: 1, lost: 1, unreachable: 0 };
        }
        let after = self.draw_delay();
        self.arrive(Arrival { to, after }, arrivals);
        Travel { transmissions: 1, ..Travel::default() }
    }

    fn unicast_routed(
        &mut self,
        from: u32,
        to: u32,
        lost: bool,
        arrivals: &mut Vec<Arrival>,
    ) -> Travel {
        let (row, links) = self.row(from);
        let Some(hops) = row.hops(links, to) else {
            return Travel { unreachable: 1, ..Travel::default() };
        };
        let mut travel = Travel::default();
        let mut after = Duration::ZERO;
        let mut hop_through = |network: &mut Self, a, b| {
            travel.transmissions += 1;
            if lost || network.hop_loses(a, b) {
                travel.lost = 1;
            } else if network.delay.per == Per::Hop {
                after += network.draw_delay();
            }
            travel.lost == 0
        };
        match self.loss {
            // Only here does it matter which hop is which.
            LossTable::PerNode(..) | LossTable::PerLink(..) => {
                let mut path = std::mem::take(&mut self.path);
                let (row, links) = self.row(from);
                row.path(links, to, &mut path);
                let _ = path.windows(2).all(|hop| hop_through(self, hop[0], hop[1]));
                self.path = path;
            }
            LossTable::None | LossTable::Independent(_) | LossTable::Correlated(_) => {
                let _ = (0..hops).all(|_| hop_through(self, from, to));
            }
        }
        if travel.lost == 0 {
            if self.delay.per == Per::Path {
                after = self.draw_delay();
            }
            self.arrive(Arrival { to, after }, arrivals);
        }
        travel
    }

    /// Sends to everybody in radio range, in one transmission.
    pub fn broadcast(&mut self, from: u32, arrivals: &mut Vec<Arrival>) -> Travel {
        let lost = self.lost_to_all();
        let mut travel = Travel { transmissions: 1, ..Travel::default() };
        match self.placed.neighbours.take() {
            None => {
                for to in (0..self.up.len() as u32).filter(|&to| to != from) {
                    self.reach_one_of_many(from, to, lost, arrivals, &mut travel);
                }
            }
            Some(neighbours) => {
                for &to in &neighbours[from as usize] {
                    if !self.cuts.is_empty() && self.cuts.contains(&(from, to)) {
                        travel.unreachable += 1;
                        continue;
                    }
                    self.reach_one_of_many(from, to, lost, arrivals, &mut travel);
                }
                self.placed.neighbours = Some(neighbours);
            }
        }
        travel
    }

    /// Sends to the whole group: in one transmission where everybody hears everybody, otherwise along
    /// the shortest-path tree, each relay passing on what it got.
    pub fn multicast(&mut self, from: u32, arrivals: &mut Vec<Arrival>) -> Travel {
        if self.placed.neighbours.is_none() {
            return self.broadcast(from, arrivals);
        }
        let lost = self.lost_to_all();
        let mut travel = Travel::default();
        let order = self.order(from);
        let mut reached = vec![None; self.up.len()];
        reached[from as usize] = Some(Duration::ZERO);
        for &to in &order[1..] {
            let parent = self.via(from, to);
            let Some(so_far) = reached[parent as usize] else {
                travel.lost += 1;
                continue;
            };
            travel.transmissions += 1;
            if lost || self.hop_loses(parent, to) {
                travel.lost += 1;
                continue;
            }
            let after = match self.delay.per {
                Per::Hop => so_far + self.draw_delay(),
                Per::Path => self.draw_delay(),
            };
            reached[to as usize] = Some(after);
            self.arrive(Arrival { to, after }, arrivals);
        }
        travel.unreachable = (self.up.len() - order.len()) as u32;
        travel
    }

    /// Whom a node hears directly, ascending; `None` where everybody hears everybody.
    pub fn neighbours(&self, node: u32) -> Option<&[u32]> {
        self.placed.neighbours.as_ref().map(|all| all[node as usize].as_slice())
    }

    /// How far each node is from `from` by the present paths: the length of the path where nodes have
    /// positions, its links elsewhere. `None` without a path.
    pub fn path_lengths(&self, from: u32) -> Vec<Option<f64>> {
        let mut lengths = vec![None; self.up.len()];
        if self.placed.neighbours.is_none() {
            lengths.fill(Some(1.0));
            lengths[from as usize] = Some(0.0);
            return lengths;
        }
        let row = self.find_paths(from);
        let mut search = self.search.borrow_mut();
        if self.routing == Routing::Length || self.placed.positions.is_empty() {
            let known = |&length: &f64| (length < f64::INFINITY).then_some(length);
            return search.lengths().iter().map(known).collect();
        }
        let place = |node: u32| self.placed.positions[node as usize];
        for &to in search.order() {
            // Every node comes after its parent, and the source is its own.
            let parent = row.parent(self.links(), to).unwrap_or(from);
            let so_far = lengths[parent as usize].unwrap_or(0.0);
            lengths[to as usize] = Some(so_far + distance(place(parent), place(to)));
        }
        lengths
    }

    /// Which live nodes can talk to each other both ways: for each node the smallest number in its
    /// component, or `None` if it is down.
    pub fn components(&self) -> Vec<Option<u32>> {
        let mut component = vec![None; self.up.len()];
        let whole = self.placed.neighbours.is_none() && self.cuts.is_empty();
        for root in (0..self.up.len() as u32).filter(|&node| self.up[node as usize]) {
            if component[root as usize].is_some() {
                continue;
            }
            let mut stack = vec![root];
            component[root as usize] = Some(root);
            while let Some(at) = stack.pop() {
                let mut visit = |next: u32| {
                    let slot = next as usize;
                    if self.up[slot] && component[slot].is_none() && self.linked(at, next) {
                        component[slot] = Some(root);
                        stack.push(next);
                    }
                };
                match &self.placed.neighbours {
                    Some(neighbours) => neighbours[at as usize].iter().copied().for_each(visit),
                    // Without cuts a component is a side, and its root already sees all of it.
                    None if whole && at != root => {}
                    None => (0..self.up.len() as u32).for_each(&mut visit),
                }
            }
        }
        component
    }

    fn reach_one_of_many(
        &mut self,
        from: u32,
        to: u32,
        lost: bool,
        arrivals: &mut Vec<Arrival>,
        travel: &mut Travel,
    ) {
        if lost || self.hop_loses(from, to) {
            travel.lost += 1;
        } else {
            let after = self.draw_delay();
            self.arrive(Arrival { to, after }, arrivals);
        }
    }

    /// Notes an arrival, and what trouble on the links makes of it.
    #[inline]
    fn arrive(&mut self, mut arrival: Arrival, arrivals: &mut Vec<Arrival>) {
        let Trouble { duplicate, reorder, delay, loss: _ } = self.trouble;
        arrival.after += delay;
        if reorder.0 > 0.0 && self.rng.chance(reorder.0) {
            arrival.after += self.rng.up_to(reorder.1);
        }
        arrivals.push(arrival);
        if duplicate.0 > 0.0 && self.rng.chance(duplicate.0) {
            arrival.after += self.rng.up_to(duplicate.1);
            arrivals.push(arrival);
        }
    }

    /// The coin that all receivers of one message share.
    #[inline]
    fn lost_to_all(&mut self) -> bool {
        match self.loss {
            LossTable::Correlated(rate) => self.rng.chance(rate),
            _ => false,
        }
    }

    /// The coin of one hop.
    #[inline]
    fn hop_loses(&mut self, from: u32, to: u32) -> bool {
        let rate = match &self.loss {
            LossTable::None | LossTable::Correlated(_) => 0.0,
            LossTable::Independent(rate) => *rate,
            LossTable::PerNode(rate, passing) => {
                1.0 - (1.0 - rate) * passing[from as usize].0 * passing[to as usize].1
            }
            LossTable::PerLink(rate, links) => *links.get(&(from, to)).unwrap_or(rate),
        };
        (rate > 0.0 && self.rng.chance(rate))
            || (self.trouble.loss > 0.0 && self.rng.chance(self.trouble.loss))
    }

    #[inline]
    fn draw_delay(&mut self) -> Duration {
        match self.delay.law {
            DelayLaw::Fixed(delay) => delay,
            DelayLaw::Uniform { low, high } => low + self.rng.up_to(high.saturating_sub(low)),
            DelayLaw::Poisson { mean } => {
                Duration::from_millis(poisson(mean.as_micros() as f64 / 1e3, &mut self.rng))
            }
        }
    }

    fn same_side(&self, a: u32, b: u32) -> bool {
        self.sides.is_empty() || self.sides[a as usize] == self.sides[b as usize]
    }

    /// Whether two neighbours hear each other, both ways.
    pub fn linked(&self, a: u32, b: u32) -> bool {
        self.same_side(a, b) && !self.cuts.contains(&(a, b)) && !self.cuts.contains(&(b, a))
    }

    /// The paths from `source`, kept until something changes, and the links they go over.
    #[inline]
    fn row(&mut self, source: u32) -> (&Row, &Links) {
        if self.routes.get(source).is_none() {
            let row = self.present_paths(source);
            self.routes.keep(source, self.up.len(), row);
        }
        (self.routes.get(source).expect("it was there or has just been kept"), self.links())
    }

    /// The present paths: those with everybody up, but around those that are down.
    fn present_paths(&self, source: u32) -> Row {
        let whole = self.routes.whole(source).filter(|_| self.nothing_cut());
        if let Some(whole) = whole.as_ref().filter(|_| !self.up.contains(&false)) {
            return whole.clone();
        }
        let around = whole.and_then(|whole| {
            let down = (0..self.up.len() as u32).filter(|&node| !self.is_up(node));
            let length = |link| match self.routing {
                Routing::Length => self.links().length(link),
                Routing::Hops | Routing::None => 1.0,
            };
            let relays = |node| self.relays(node);
            self.search.borrow_mut().around(down, self.links(), source, &whole, length, relays)
        });
        around.unwrap_or_else(|| self.find_paths(source))
    }

    /// Whether a node passes on what others have sent.
    fn relays(&self, node: u32) -> bool {
        self.routing != Routing::None && self.up[node as usize]
    }

    #[inline]
    fn links(&self) -> &Links {
        self.links.get_or_init(|| {
            let neighbours = self.placed.neighbours.as_deref().unwrap_or_default();
            match self.placed.positions.as_slice() {
                [] => Links::new(neighbours, |_, _| 1.0),
                at => Links::new(neighbours, |a, b| distance(at[a as usize], at[b as usize])),
            }
        })
    }

    /// Whom `source` reaches, every node after the one before it on its path.
    fn order(&mut self, source: u32) -> Rc<[u32]> {
        if let Some(order) = self.routes.order(source) {
            return order;
        }
        self.find_paths(source);
        let order = Rc::from(self.search.get_mut().order());
        self.routes.keep_order(source, &order);
        order
    }

    fn nothing_cut(&self) -> bool {
        self.sides.is_empty() && self.cuts.is_empty()
    }

    /// The present paths, found anew.
    fn find_paths(&self, source: u32) -> Row {
        let relays = |node| self.relays(node);
        let whole = self.nothing_cut();
        let among_all = whole && !self.up.contains(&false);
        let works = |a, b| whole || (self.same_side(a, b) && !self.cuts.contains(&(a, b)));
        let mut search = self.search.borrow_mut();
        let row = match self.routing {
            Routing::Hops | Routing::None => search.fewest(self.links(), source, relays, works),
            Routing::Length if among_all => search.shortest_among_all(self.links(), source),
            Routing::Length => search.shortest(self.links(), source, relays, works),
        };
        if among_all {
            self.routes.keep_whole(source, self.up.len(), &row);
        }
        row
    }
}

/// A Poisson number, by multiplying uniform numbers until they fall below `exp(-mean)`; large means are
/// summed from parts, since that limit would underflow.
fn poisson(mean: f64, rng: &mut Rng) -> u64 {
    let mut left = mean;
    let mut total = 0;
    while left > 0.0 {
        let part = left.min(16.0);
        left -= part;
        let limit = libm::exp(-part);
        let mut product = rng.unit();
        while product > limit {
            total += 1;
            product *= rng.unit();
        }
    }
    total
}

#[cfg(test)]
mod tests;
