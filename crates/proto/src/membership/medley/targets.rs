//! Whom to ping next, and whom to ask for help (R4, R5, R12, A5).
//!
//! The probability of a member is `r^-m`, changed by Algorithm 1 for those that have complained. It is
//! computed for everybody only when a bag is filled or the shares are out of date; between those, a
//! draw looks at one block of positions.

use alloc::vec::Vec;
use core::cell::OnceCell;

use super::{
    config::{Attention, Config, Selection},
    table::Table,
};
use crate::{
    id::{Boot, Incarnation, NodeId},
    mechanism::{
        sampling::{Bag, LARGEST_BAG, Weighted, instance, instances, one_of, share},
        unlucky::{Migration, migrate},
    },
    rng::Rng,
    time::{Duration, Time},
};

/// What is needed to draw members by their position in the [`Table`]: little more than two bytes for each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Targets {
    shares: Shares,
    /// Whether the shares are those of the table and the complaints.
    fresh: bool,
    /// As many positions as the table, unless empty.
    bag: Bag,
    /// The weight one instance in the bag stands for, and how many there were at first.
    instance: f64,
    filled: u64,
    /// In the order in which they came.
    reports: Vec<Report>,
    /// When these were looked through last.
    tidied: Time,
    /// Until then nobody can have been silent for long.
    nobody_silent: Time,
}

/// The probabilities of all members as weights. Only their sums are kept, and what each is computed from.
#[derive(Clone, Debug, PartialEq)]
struct Shares {
    sums: Weighted,
    /// The largest probability.
    largest: f64,
    /// How far those are taken to be of whom that is unknown.
    unknown: f64,
    /// What the complaints have changed, in their order.
    migrations: Vec<Migration>,
}

/// A complaint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Report {
    id: NodeId,
    life: (Boot, Incarnation),
    at: Time,
}

impl Targets {
    pub(super) const fn new() -> Self {
        Self {
            shares: Shares {
                sums: Weighted::new(),
                largest: 0.0,
                unknown: 0.0,
                migrations: Vec::new(),
            },
            fresh: false,
            bag: Bag::new(),
            instance: 0.0,
            filled: 0,
            reports: Vec::new(),
            tidied: Time::ZERO,
            nobody_silent: Time::ZERO,
        }
    }

    /// R4.2 and R4.3: the next target, if there is a member.
    pub(super) fn select(
        &mut self,
        table: &Table,
        config: &Config,
        rng: &mut Rng,
    ) -> Option<usize> {
        match config.selection {
            Selection::Independent => {
                self.refresh(table, config);
                self.shares.sums.draw(rng, |at| self.shares.of(table, config, at))
            }
            Selection::Bag => {
                if self.bag.total() == 0 {
                    self.refill(table, config);
                }
                self.bag.take(rng)
            }
        }
    }

    /// R4.1: a member not heard of for long, each as likely as the others. Who was heard of last when
    /// nobody was found tells when it is worth looking again.
    pub(super) fn silent(
        &mut self,
        now: Time,
        table: &Table,
        attention: Attention,
        rng: &mut Rng,
    ) -> Option<usize> {
        if now < self.nobody_silent {
            return None;
        }
        let silence =
            |at| if table.is_listed(at) { table.silence(now, at) } else { Duration::ZERO };
        let found = one_of(table.positions(), rng, |at| silence(at) > attention.timeout);
        if found.is_none() {
            let longest = (0..table.positions()).map(silence).max().unwrap_or(Duration::ZERO);
            let sure = attention.timeout.saturating_sub(longest).saturating_sub(COARSENESS);
            self.nobody_silent = now + sure;
        }
        found
    }

    /// R5: members to ask for help, by probability and apart from the bag (M-10).
    pub(super) fn helpers(
        &mut self,
        table: &Table,
        config: &Config,
        except: Option<usize>,
        rng: &mut Rng,
        each: impl FnMut(usize),
    ) {
        self.refresh(table, config);
        let mut sums = core::mem::take(&mut self.shares.sums);
        let weight = |at| self.shares.of(table, config, at);
        sums.distinct(config.helpers, except, rng, weight, each);
        self.shares.sums = sums;
    }

    /// The table has a new position.
    pub(super) fn grown(&mut self, at: usize) {
        self.fresh = false;
        if self.bag.total() > 0 {
            self.bag.insert(at);
        }
    }

    /// The table has lost a position.
    pub(super) fn shrunk(&mut self, at: usize) {
        self.fresh = false;
        if self.bag.total() > 0 {
            self.bag.remove(at);
        }
    }

    /// R12: the distance of the node at `at` has changed. In the running bag, which may outlast the movement
    /// by far, it gets what a bag of now would hold of it; the promise to all others stands.
    pub(super) fn moved(&mut self, table: &Table, config: &Config, at: usize) {
        self.fresh = false;
        if self.bag.total() > 0 && table.is_listed(at) {
            self.put_part(config, at, weigh(table, config, || unknown_distance(table), at));
        }
    }

    /// R12: the node at `at` is a member now. Hardened, it gets its part of what remains in the bag;
    /// else it waits for the next.
    pub(super) fn joined(&mut self, table: &Table, config: &Config, at: usize) {
        let p = if self.reports.is_empty() {
            // Nobody else's probability depends on it.
            let unknown = || if self.fresh { self.shares.unknown } else { unknown_distance(table) };
            let p = weigh(table, config, unknown, at);
            self.fresh &= p <= self.shares.largest;
            if self.fresh {
                self.shares.sums.change(at, 0, share(p, self.shares.largest));
            }
            p
        } else {
            self.fresh = false;
            self.probabilities(table, config)[at]
        };
        if self.bag.total() > 0 && config.hardened() {
            self.put_part(config, at, p);
        }
    }

    /// Gives a member of probability `p` its part of what remains in the bag.
    fn put_part(&mut self, config: &Config, at: usize, p: f64) {
        let count = f64::from(instances(p, self.instance, config.bag_cap.is_some()));
        let left = self.bag.total() as f64 / self.filled as f64;
        self.put(at, libm::round(count * left) as u64);
    }

    /// R12: the node at `at` is no member any more.
    pub(super) fn left(&mut self, table: &Table, config: &Config, at: usize) {
        if self.fresh && self.reports.is_empty() {
            let Shares { sums, largest, unknown, .. } = &mut self.shares;
            sums.change(at, share(weigh_member(table, config, || *unknown, at), *largest), 0);
        } else {
            self.fresh = false;
        }
        if self.bag.total() > 0 {
            self.bag.set(at, 0);
        }
    }

    /// A5: the member at `at` complains.
    pub(super) fn report(&mut self, now: Time, table: &Table, config: &Config, at: usize) {
        let report = Report { id: table.id(at), life: table.life(at), at: now };
        if config.hardened() {
            // M-3: a repeated complaint only says that it still holds.
            let known = self.reports.iter_mut().find(|known| known.id == report.id);
            if let Some(known) = known {
                *known = report;
                return;
            }
        }
        if self.reports.len() >= MAX_REPORTS {
            self.reports.remove(0);
        }
        self.reports.push(report);
        self.fresh = false;
        if self.bag.total() == 0 {
            return;
        }
        let p = self.probabilities(table, config);
        let share = p[at] / p.iter().sum::<f64>();
        let others = self.bag.total() - u64::from(self.bag.get(at));
        let fair = libm::ceil(others as f64 * share / (1.0 - share)) as u64;
        if fair > u64::from(self.bag.get(at)) {
            self.put(at, fair);
        }
    }

    /// M-4: complaints older than `lifetime` are forgotten, and those of a past incarnation; looked for now
    /// and then.
    pub(super) fn forget(&mut self, now: Time, table: &Table, lifetime: Duration) {
        if now.since(self.tidied) < lifetime.div(32) {
            return;
        }
        self.tidied = now;
        let before = self.reports.len();
        self.reports.retain(|report| {
            let same = table.position(report.id).is_some_and(|at| table.life(at) == report.life);
            same && now.since(report.at) <= lifetime
        });
        self.fresh &= self.reports.len() == before;
    }

    /// P3: at most so many draws from the bag, the last of them of the member at `at`.
    pub(super) fn draws_until(&self, table: &Table, config: &Config, at: usize) -> u64 {
        let left = self.bag.total();
        let own = if left == 0 { 0 } else { self.bag.get(at) };
        if own > 0 {
            return left - u64::from(own) + 1;
        }
        let p = self.probabilities(table, config);
        let (instance, capped) = bag_of(&p, table, config);
        let of_all: u64 = p.iter().map(|&p| u64::from(instances(p, instance, capped))).sum();
        left + of_all - u64::from(instances(p[at], instance, capped)) + 1
    }

    /// How often `at` is in the running bag.
    #[cfg(test)]
    pub(super) fn instances(&self, at: usize) -> u64 {
        self.bag.get(at).into()
    }

    /// Sets the instances of `at`, at least one, within what the bag can hold.
    fn put(&mut self, at: usize, count: u64) {
        let others = self.bag.total() - u64::from(self.bag.get(at));
        let room = (2 * LARGEST_BAG).saturating_sub(others);
        self.bag.set(at, u32::try_from(count.max(1).min(room)).unwrap_or(u32::MAX));
    }

    fn refresh(&mut self, table: &Table, config: &Config) {
        if !self.fresh {
            let (p, migrations) = self.migrated(table, config);
            let largest = p.iter().copied().fold(0.0, f64::max);
            self.shares.sums.fill(p.len(), |at| share(p[at], largest));
            self.shares.largest = largest;
            self.shares.unknown = unknown_distance(table);
            self.shares.migrations = migrations;
            self.fresh = true;
        }
    }

    fn refill(&mut self, table: &Table, config: &Config) {
        let p = self.probabilities(table, config);
        let (instance, capped) = bag_of(&p, table, config);
        self.instance = instance;
        self.bag.fill(p.iter().map(|&p| instances(p, instance, capped)));
        self.filled = self.bag.total();
    }

    /// Not normalised; zero for those that are no members.
    pub(super) fn probabilities(&self, table: &Table, config: &Config) -> Vec<f64> {
        self.migrated(table, config).0
    }

    /// The same, and what the complaints have changed about it.
    fn migrated(&self, table: &Table, config: &Config) -> (Vec<f64>, Vec<Migration>) {
        let unknown = OnceCell::new();
        let unknown = || *unknown.get_or_init(|| unknown_distance(table));
        let weigh = |at| weigh(table, config, unknown, at);
        let mut p: Vec<f64> = (0..table.positions()).map(weigh).collect();
        let mut migrations = Vec::new();
        for report in &self.reports {
            if let Some(at) = table.position(report.id).filter(|&at| table.is_listed(at)) {
                migrations.extend(migrate(&mut p, at));
            }
        }
        (p, migrations)
    }
}

impl Shares {
    /// The weight of the node at `at`.
    fn of(&self, table: &Table, config: &Config, at: usize) -> u64 {
        let p = weigh(table, config, || self.unknown, at);
        let p = self.migrations.iter().fold(p, |p, migration| migration.apply(at, p));
        share(p, self.largest)
    }
}

/// What one instance in a new bag stands for, and whether the bag is capped (M-9).
fn bag_of(p: &[f64], table: &Table, config: &Config) -> (f64, bool) {
    let cap = config.bag_cap.map(|cap| u64::from(cap) * table.listed() as u64);
    (instance(p, cap), cap.is_some())
}

/// `r^-m` if the node at `at` is a member, else zero.
fn weigh(table: &Table, config: &Config, unknown: impl Fn() -> f64, at: usize) -> f64 {
    if table.is_listed(at) { weigh_member(table, config, unknown, at) } else { 0.0 }
}

/// `r^-m` of the node at `at`.
fn weigh_member(table: &Table, config: &Config, unknown: impl Fn() -> f64, at: usize) -> f64 {
    let distance = f64::from(table.distance(at));
    let distance = if distance.is_finite() { distance } else { unknown() };
    let distance = distance.clamp(NEAREST, FARTHEST);
    let whole = config.exponent as u32;
    if f64::from(whole) < config.exponent {
        return libm::pow(distance, -config.exponent);
    }
    // A power function takes ten times as long, and filling a bag computes nothing else.
    1.0 / (0..whole).fold(1.0, |power, _| power * distance)
}

/// M-23: somebody of unknown whereabouts is taken to be one hop beyond the farthest.
fn unknown_distance(table: &Table) -> f64 {
    let known = (0..table.positions()).map(|at| table.distance(at)).filter(|r| r.is_finite());
    f64::from(known.fold(0.0, f32::max)) + f64::from(table.farthest_neighbour())
}

/// M-23: nobody is nearer than this, in metres.
const NEAREST: f64 = 0.1;
/// Keeps every power a positive number. Arbitrary.
const FARTHEST: f64 = 1e6;
/// More than what the table rounds an instant by.
const COARSENESS: Duration = Duration::from_millis(20);
/// As published every repetition counts. After a few more change nothing (V3), so the oldest may go.
const MAX_REPORTS: usize = 256;
