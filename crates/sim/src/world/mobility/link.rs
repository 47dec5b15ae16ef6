//! From when to when two moving nodes are in range.
//!
//! Two nodes that go straight are as far from each other as a quadratic function of time says, so that the instants
//! at which they come into range and leave it are solved for, not searched by stepping: no step is too coarse for a
//! node that only brushes the edge of another's disc, and a link does not flicker with the step. Time is cut into
//! windows in which nobody gets far; in each, a uniform grid of cells finds the pairs that can come into range.

use std::{collections::VecDeque, sync::Arc};

use bellwether_proto::Time;

use super::{Movement, Waypoint};

/// Two nodes come into each other's range, or leave it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkChange {
    /// When, rounded up to a microsecond.
    pub at: Time,
    /// The smaller node number.
    pub a: u32,
    /// The larger one.
    pub b: u32,
    /// Whether they are in range from now on.
    pub up: bool,
}

/// All changes of a movement's links, found as they are asked for.
#[derive(Clone, Debug)]
pub struct LinkChanges {
    movement: Arc<Movement>,
    range: f64,
    end: f64,
    /// The window that comes next begins here.
    from: f64,
    window: f64,
    /// Who is linked at that instant, ascending; each link stands with its smaller node.
    linked: Vec<Vec<u32>>,
    /// The leg that each node is on at that instant.
    legs: Vec<Leg>,
    /// Where each is then, before it jumps away at that very instant: whoever it was linked to is there.
    ends: Vec<(f64, f64)>,
    boxes: Vec<Area>,
    cells: Vec<((i64, i64), u32)>,
    found: Vec<(f64, u32, u32, bool)>,
    changes: VecDeque<LinkChange>,
}

/// Straight on from a place and an instant until another instant.
#[derive(Clone, Copy, Debug)]
struct Leg {
    from: f64,
    x: f64,
    y: f64,
    vx: f64,
    vy: f64,
    until: f64,
    /// The waypoint at its end.
    next: usize,
}

/// What a node covers in a window.
#[derive(Clone, Copy, Debug)]
struct Area {
    low: (f64, f64),
    high: (f64, f64),
    /// The first of the cells that it and half the range around it cover.
    cell: (i64, i64),
    /// Whether it covers so many that it is not in the grid.
    wide: bool,
}

impl LinkChanges {
    pub(super) fn new(movement: Arc<Movement>, range: f64, end: f64) -> Self {
        let nodes = movement.nodes();
        let mut linked = movement.neighbours(range, 0.0);
        for (node, near) in (0..).zip(&mut linked) {
            near.retain(|&other| other > node);
        }
        let leg = |node: u32| Leg::first(movement.waypoints(node));
        let legs: Vec<Leg> = (0..nodes).map(leg).collect();
        let ends = legs.iter().map(|leg| leg.place(0.0)).collect();
        // Half a range: cells and pairs stay few, and so do windows.
        let window = (range / (2.0 * movement.fastest())).clamp(SHORTEST, LONGEST);
        Self {
            movement,
            range,
            end,
            from: 0.0,
            window,
            linked,
            legs,
            ends,
            boxes: Vec::new(),
            cells: Vec::new(),
            found: Vec::new(),
            changes: VecDeque::new(),
        }
    }

    /// When the next change is, without taking it.
    pub fn peek(&mut self) -> Option<LinkChange> {
        while self.changes.is_empty() && self.from < self.end {
            self.fill();
        }
        self.changes.front().copied()
    }

    /// The next change, if it is due.
    #[inline]
    pub(crate) fn next_if(&mut self, now: Time) -> Option<LinkChange> {
        self.peek().filter(|change| change.at <= now)?;
        self.changes.pop_front()
    }

    /// Finds the changes of the next window.
    fn fill(&mut self) {
        let to = (self.from + self.window).min(self.end);
        self.cover(to);
        self.found.clear();
        let mut cells = std::mem::take(&mut self.cells);
        cells.sort_unstable();
        for group in cells.chunk_by(|a, b| a.0 == b.0) {
            for (i, &(cell, a)) in group.iter().enumerate() {
                for &(_, b) in &group[i + 1..] {
                    // Two that share several cells meet in the first.
                    let (one, other) = (self.boxes[a as usize].cell, self.boxes[b as usize].cell);
                    if cell == (one.0.max(other.0), one.1.max(other.1)) {
                        self.meet(a, b, to);
                    }
                }
            }
        }
        self.cells = cells;
        let nodes = self.movement.nodes();
        for a in (0..nodes).filter(|&a| self.boxes[a as usize].wide).collect::<Vec<_>>() {
            for b in (0..nodes).filter(|&b| b != a) {
                if !self.boxes[b as usize].wide || a < b {
                    self.meet(a.min(b), a.max(b), to);
                }
            }
        }
        self.found.sort_unstable_by(|x, y| x.0.total_cmp(&y.0).then((x.1, x.2).cmp(&(y.1, y.2))));
        for &(at, a, b, up) in &self.found {
            let at = Time::from_micros(libm::ceil(at * 1e6) as u64);
            self.changes.push_back(LinkChange { at, a, b, up });
        }
        for (node, leg) in (0..).zip(&mut self.legs) {
            leg.seek(self.movement.waypoints(node), to);
        }
        self.from = to;
    }

    /// Sees which cells each node covers until `to`.
    fn cover(&mut self, to: f64) {
        self.boxes.clear();
        self.cells.clear();
        for ((node, first), end) in (0..).zip(&self.legs).zip(&mut self.ends) {
            let (mut low, mut high) = (*end, *end);
            let mut take = |(x, y): (f64, f64)| {
                low = (low.0.min(x), low.1.min(y));
                high = (high.0.max(x), high.1.max(y));
            };
            take(first.place(self.from));
            let mut leg = *first;
            while leg.until < to {
                take(leg.place(leg.until));
                leg = leg.after(self.movement.waypoints(node));
                take((leg.x, leg.y));
            }
            *end = leg.place(to);
            take(*end);
            let cell = |at: f64| libm::floor(at / self.range) as i64;
            let half = self.range / 2.0;
            let (left, right) = (cell(low.0 - half), cell(high.0 + half));
            let (bottom, top) = (cell(low.1 - half), cell(high.1 + half));
            let wide = right - left >= WIDE || top - bottom >= WIDE;
            self.boxes.push(Area { low, high, cell: (left, bottom), wide });
            if !wide {
                let columns = left..=right;
                let all = columns.flat_map(|column| (bottom..=top).map(move |row| (column, row)));
                self.cells.extend(all.map(|cell| (cell, node)));
            }
        }
    }

    /// Finds the changes between two nodes, the smaller first, until `to`.
    fn meet(&mut self, a: u32, b: u32, to: f64) {
        let (one, other) = (&self.boxes[a as usize], &self.boxes[b as usize]);
        let gap = |low: f64, high: f64| f64::max(low - high, 0.0);
        let x = gap(one.low.0, other.high.0) + gap(other.low.0, one.high.0);
        let y = gap(one.low.1, other.high.1) + gap(other.low.1, one.high.1);
        if x * x + y * y > self.range * self.range * (1.0 + ROUNDING) {
            return;
        }
        let place = self.linked[a as usize].binary_search(&b);
        let before = place.is_ok();
        let mut linked = before;
        let (mut p, mut q) = (self.legs[a as usize], self.legs[b as usize]);
        let mut now = self.from;
        loop {
            let until = p.until.min(q.until).min(to);
            if until > now {
                let inside = in_range(&p, &q, now, self.range);
                let mut set = |at: f64, up: bool| {
                    if linked != up {
                        linked = up;
                        self.found.push((at, a, b, up));
                    }
                };
                // An instant at the very end belongs to what comes after.
                match inside {
                    None => set(now, false),
                    Some((from, _)) if now + from >= until => set(now, false),
                    Some((from, till)) => {
                        if from > 0.0 || till <= 0.0 {
                            set(now, false);
                        }
                        if till > 0.0 {
                            set(now + from.max(0.0), true);
                        }
                        if till > 0.0 && now + till < until {
                            set(now + till, false);
                        }
                    }
                }
            }
            if until >= to {
                break;
            }
            now = until;
            if p.until <= now {
                p = p.after(self.movement.waypoints(a));
            }
            if q.until <= now {
                q = q.after(self.movement.waypoints(b));
            }
        }
        match place {
            Ok(slot) if !linked => {
                self.linked[a as usize].remove(slot);
            }
            Err(slot) if linked => self.linked[a as usize].insert(slot, b),
            _ => {}
        }
    }
}

impl Iterator for LinkChanges {
    type Item = LinkChange;

    fn next(&mut self) -> Option<LinkChange> {
        self.peek()?;
        self.changes.pop_front()
    }
}

/// From when to when, counted from `now`, two nodes would be in range if they went on like this for ever.
fn in_range(p: &Leg, q: &Leg, now: f64, range: f64) -> Option<(f64, f64)> {
    let ((px, py), (qx, qy)) = (p.place(now), q.place(now));
    let (x, y) = (qx - px, qy - py);
    let (vx, vy) = (q.vx - p.vx, q.vy - p.vy);
    let far = x * x + y * y - range * range;
    let speed = vx * vx + vy * vy;
    if speed == 0.0 {
        return (far <= 0.0).then_some((f64::NEG_INFINITY, f64::INFINITY));
    }
    let towards = x * vx + y * vy;
    let rest = towards * towards - speed * far;
    if rest <= 0.0 {
        return None;
    }
    let root = libm::sqrt(rest);
    // What lies within rounding of this instant is at it: the leg before has said so too.
    let settle = |at: f64| if at.abs() < ROUNDING { 0.0 } else { at };
    Some((settle((-towards - root) / speed), settle((-towards + root) / speed)))
}

impl Leg {
    /// Standing where a node stands first, until it sets out.
    fn first(points: &[Waypoint]) -> Self {
        let Waypoint { at, x, y } = points[0];
        let mut leg = Self { from: 0.0, x, y, vx: 0.0, vy: 0.0, until: at, next: 0 };
        leg.seek(points, 0.0);
        leg
    }

    fn place(&self, at: f64) -> (f64, f64) {
        let time = at - self.from;
        (self.x + self.vx * time, self.y + self.vy * time)
    }

    /// The leg behind this one.
    fn after(&self, points: &[Waypoint]) -> Self {
        let Some(&Waypoint { at: from, x, y }) = points.get(self.next) else {
            return Self { until: f64::INFINITY, ..*self };
        };
        let next = self.next + 1;
        match points.get(next) {
            None => Self { from, x, y, vx: 0.0, vy: 0.0, until: f64::INFINITY, next },
            Some(to) if to.at > from => {
                let time = to.at - from;
                let (vx, vy) = ((to.x - x) / time, (to.y - y) / time);
                Self { from, x, y, vx, vy, until: to.at, next }
            }
            Some(_) => Self { from, x, y, vx: 0.0, vy: 0.0, until: from, next },
        }
    }

    /// Goes on to the leg of this instant.
    fn seek(&mut self, points: &[Waypoint], at: f64) {
        while self.until <= at {
            *self = self.after(points);
        }
    }
}

/// Shortest and longest window, in seconds.
const SHORTEST: f64 = 0.5;
const LONGEST: f64 = 30.0;
/// Cells along an axis from which on a node is compared with everybody instead: it jumps.
const WIDE: i64 = 16;
/// Seconds within which two instants are one, far below a microsecond and far above what doubles lose in a day.
const ROUNDING: f64 = 1e-9;
