//! The machines below: how often each fails, who is down when, and which node sits on which.
//!
//! Rules `V1` to `V6` of `docs/rules/bandit.md`. Everything is drawn from the environment's own branch of the seed,
//! so that all elections of one seed are tried by the same failures.

use std::{
    hash::{Hash, Hasher},
    mem,
};

use bellwether_proto::{Duration, Rng, Seed, Time, hash::Real};

/// What the machines are, and what becomes of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// How often each fails.
    pub machines: Machines,
    /// When they fail.
    pub process: Process,
    /// How long they stay down.
    pub repair: Repair,
    /// The share of `f` that is down at least.
    pub floor: f64,
    /// Whether nodes move from machine to machine.
    pub migration: Option<Migration>,
}

impl Hash for Environment {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { machines, process, repair, floor, migration } = self;
        (machines, process, repair, Real(*floor), migration).hash(state);
    }
}

/// How often each machine fails: a probability for each period.
#[derive(Clone, Debug, PartialEq)]
pub enum Machines {
    /// Exactly these, by node.
    Each(Vec<f64>),
    /// Each drawn from these kinds: how many there are of a kind, and how often one fails.
    Drawn(Vec<(f64, f64)>),
}

impl Hash for Machines {
    fn hash<H: Hasher>(&self, state: &mut H) {
        mem::discriminant(self).hash(state);
        match self {
            Self::Each(failures) => {
                let failures: Vec<_> = failures.iter().copied().map(Real).collect();
                failures.hash(state);
            }
            Self::Drawn(kinds) => {
                let real = |&(count, failure): &(f64, f64)| (Real(count), Real(failure));
                kinds.iter().map(real).collect::<Vec<_>>().hash(state);
            }
        }
    }
}

impl Machines {
    /// The machines of Table 1 of the report.
    pub fn table_1() -> Self {
        let kinds = [(463.0, 0.95), (2025.0, 0.15), (1114.0, 0.7), (717.0, 0.2), (810.0, 0.8)];
        Self::Drawn(kinds.to_vec())
    }

    /// The pool of the program's experiment with migrations.
    pub fn pool() -> Self {
        let kinds = [(3000.0, 0.9), (2500.0, 0.7), (2000.0, 0.3), (9000.0, 0.2), (5000.0, 0.15)];
        Self::Drawn(kinds.to_vec())
    }

    /// The machines of `nodes` nodes (`V1`).
    pub fn draw(&self, nodes: usize, rng: &mut Rng) -> Vec<f64> {
        match self {
            Self::Each(failures) => failures.clone(),
            Self::Drawn(kinds) => (0..nodes).map(|_| one_of(kinds, rng)).collect(),
        }
    }
}

fn one_of(kinds: &[(f64, f64)], rng: &mut Rng) -> f64 {
    let all: f64 = kinds.iter().map(|(count, _)| count).sum();
    let mut left = rng.unit() * all;
    for &(count, failure) in kinds {
        left -= count;
        if left < 0.0 {
            return failure;
        }
    }
    kinds.last().map_or(0.0, |&(_, failure)| failure)
}

/// When machines fail.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub enum Process {
    /// The program's: once a period it is drawn who is down in it (`V2`, `V3`).
    Block {
        /// How long one is.
        period: Duration,
    },
    /// The text's: each fails at a rate of its own, `-ln(1 - p)` a period, and is repaired (`V5`).
    Renewal {
        /// How long a period is.
        period: Duration,
    },
}

/// How long a machine stays down: a log-normal number of `unit`, cut off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repair {
    /// Mean of the logarithm.
    pub mu: f64,
    /// Its standard deviation.
    pub sigma: f64,
    /// What one is.
    pub unit: Duration,
    /// The shortest repair there is.
    pub low: Duration,
    /// The longest repair there is.
    pub high: Duration,
}

impl Hash for Repair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { mu, sigma, unit, low, high } = self;
        (Real(*mu), Real(*sigma), unit, low, high).hash(state);
    }
}

impl Repair {
    /// The repairs of the authors' program.
    pub const BLOCK: Self = Self {
        mu: 1.8,
        sigma: 2.07,
        unit: Duration::from_secs(1),
        low: Duration::from_secs(7),
        high: Duration::from_secs(30),
    };

    /// The text's: hours, of which 168 are 30 s.
    pub fn text() -> Self {
        Self {
            mu: 1.8,
            sigma: libm::sqrt(2.07),
            unit: Duration::from_micros(30_000_000 / 168),
            low: Duration::ZERO,
            high: Duration::from_secs(3_650 * 86_400),
        }
    }

    /// Draws how long one repair takes.
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        let units = libm::exp(self.mu + self.sigma * rng.normal());
        let micros = (units * self.unit.as_micros() as f64).min(self.high.as_micros() as f64);
        Duration::from_micros(micros as u64).max(self.low)
    }
}

/// How nodes move from machine to machine (`V6`). Those down stay down.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub struct Migration {
    /// How often nodes change machines.
    pub every: Duration,
    /// Which node goes to which machine.
    pub law: MigrationLaw,
}

/// Where to nodes move.
#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub enum MigrationLaw {
    /// Every node to a machine drawn anew; after so many draws the first comes again.
    Redraw {
        /// How many there are.
        draws: u32,
    },
    /// Every node to the machine of the next one.
    Rotate,
}

/// What happens to a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    /// Its machine fails.
    Down(u32),
    /// Its machine runs again.
    Up(u32),
}

/// An environment as it comes.
#[derive(Clone, Debug)]
pub struct FailureProcess {
    environment: Environment,
    /// `f`: at most so many are down.
    most: usize,
    rng: Rng,
    /// What nodes sit on, one assignment after another.
    assignments: Vec<Vec<f64>>,
    moved: usize,
    /// How often the machine of each node fails.
    failures: Vec<f64>,
    /// Until when each is down.
    down: Vec<Option<Time>>,
    /// When each fails next, in a renewal process.
    fails: Vec<Time>,
    next_block: Time,
    next_move: Time,
}

impl FailureProcess {
    /// Everybody is up until time zero, when the first fail.
    pub fn new(environment: &Environment, nodes: u32, seed: Seed) -> Self {
        let nodes = nodes as usize;
        let mut machines = seed.named("machines").rng();
        let law = environment.migration.map(|migration| migration.law);
        let draws = match law {
            Some(MigrationLaw::Redraw { draws }) => draws.max(1),
            Some(MigrationLaw::Rotate) | None => 1,
        };
        let draw = |_| environment.machines.draw(nodes, &mut machines);
        let assignments: Vec<Vec<f64>> = (0..draws).map(draw).collect();
        Self {
            environment: environment.clone(),
            most: nodes.saturating_sub(1) / 2,
            rng: seed.named("weather").rng(),
            moved: 0,
            failures: assignments[0].clone(),
            assignments,
            down: vec![None; nodes],
            fails: vec![Time::NEVER; nodes],
            // Nobody is down, which is less than the floor.
            next_block: Time::ZERO,
            next_move: match environment.migration {
                Some(migration) => Time::ZERO + migration.every,
                None => Time::NEVER,
            },
        }
    }

    /// How often the machine of each node fails now.
    pub fn failures(&self) -> &[f64] {
        &self.failures
    }

    /// When something happens next.
    pub fn next(&self) -> Time {
        let repaired = match self.environment.process {
            // Nobody hears of a repair before the next period.
            Process::Block { .. } => Time::NEVER,
            Process::Renewal { .. } => {
                self.down.iter().flatten().copied().min().unwrap_or(Time::NEVER)
            }
        };
        let failed = self.fails.iter().copied().min().unwrap_or(Time::NEVER);
        self.next_block.min(self.next_move).min(repaired).min(failed)
    }

    /// What happens at `now`, in order.
    pub fn step(&mut self, now: Time) -> Vec<Change> {
        if self.next_move <= now {
            self.migrate(now);
        }
        match self.environment.process {
            Process::Block { period } => {
                if self.next_block > now {
                    return Vec::new();
                }
                self.next_block = now + period;
                self.block(now)
            }
            Process::Renewal { .. } => self.renew(now),
        }
    }

    fn migrate(&mut self, now: Time) {
        let Some(Migration { every, law }) = self.environment.migration else { return };
        self.next_move = now + every;
        self.moved += 1;
        match law {
            MigrationLaw::Redraw { .. } => {
                let next = self.moved % self.assignments.len();
                self.failures.clone_from(&self.assignments[next]);
            }
            MigrationLaw::Rotate => {
                let step = self.failures.len().min(1);
                self.failures.rotate_left(step);
            }
        }
        if let Process::Renewal { .. } = self.environment.process {
            // Failures have no memory: who is up may as well be drawn anew.
            for node in 0..self.down.len() {
                if self.down[node].is_none() {
                    self.fails[node] = self.next_failure(node, now);
                }
            }
        }
    }

    /// `V2`, and of `V3` that whoever was repaired hears of it only when somebody fails.
    fn block(&mut self, now: Time) -> Vec<Change> {
        let repaired: Vec<usize> =
            (0..self.down.len()).filter(|&n| self.down[n].is_some_and(|at| at <= now)).collect();
        let before = self.down.clone();
        repaired.iter().for_each(|&node| self.down[node] = None);
        let selected = self.select();
        if selected.is_empty() {
            self.down = before;
            return Vec::new();
        }
        // Whoever fails again at once hears nothing of having been repaired.
        let up = repaired.into_iter().filter(|node| !selected.contains(node));
        let mut changes: Vec<Change> = up.map(|node| Change::Up(node as u32)).collect();
        for node in selected {
            self.down[node] = Some(now + self.environment.repair.draw(&mut self.rng));
            if before[node].is_none() {
                changes.push(Change::Down(node as u32));
            }
        }
        changes
    }

    /// Sweeps over all that are up until enough are down; too many are let go again at random.
    fn select(&mut self) -> Vec<usize> {
        let down = self.down.iter().filter(|down| down.is_some()).count();
        let floor = self.environment.floor * self.most as f64;
        let mut selected: Vec<usize> = Vec::new();
        let mut sweeps = 0;
        while ((selected.len() + down) as f64) < floor {
            sweeps += 1;
            for node in 0..self.down.len() {
                let up = self.down[node].is_none() && !selected.contains(&node);
                // Machines that never fail would be swept for ever.
                let chosen = up && (sweeps > SWEEPS || self.rng.chance(self.failures[node]));
                if chosen {
                    selected.push(node);
                }
            }
        }
        let room = self.most.saturating_sub(down);
        while selected.len() > room {
            let one = self.rng.below(selected.len() as u64) as usize;
            selected.swap_remove(one);
        }
        selected.sort_unstable();
        selected
    }

    /// `V5`.
    fn renew(&mut self, now: Time) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.next_block <= now {
            self.next_block = Time::NEVER;
            for node in 0..self.down.len() {
                self.fails[node] = self.next_failure(node, now);
            }
        }
        for node in 0..self.down.len() {
            if self.down[node].is_some_and(|until| until <= now) {
                self.down[node] = None;
                self.fails[node] = self.next_failure(node, now);
                changes.push(Change::Up(node as u32));
            }
        }
        for node in 0..self.down.len() {
            if self.fails[node] <= now {
                let down = self.down.iter().filter(|down| down.is_some()).count();
                match down < self.most {
                    true => self.fail(node, now, &mut changes),
                    false => self.fails[node] = self.next_failure(node, now),
                }
            }
        }
        for node in self.select() {
            self.fail(node, now, &mut changes);
        }
        changes
    }

    fn fail(&mut self, node: usize, now: Time, changes: &mut Vec<Change>) {
        let repair = self.environment.repair.draw(&mut self.rng);
        self.down[node] = Some(now + repair.max(Duration::from_micros(1)));
        self.fails[node] = Time::NEVER;
        changes.push(Change::Down(node as u32));
    }

    fn next_failure(&mut self, node: usize, now: Time) -> Time {
        let Process::Renewal { period } = self.environment.process else { return Time::NEVER };
        let rate = -libm::log1p(-self.failures[node].min(SURE)) / period.as_secs_f64();
        if rate <= 0.0 {
            return Time::NEVER;
        }
        let wait = -libm::log(1.0 - self.rng.unit()) / rate;
        now + Duration::from_micros(1).max(Duration::from_secs(1).scale(wait))
    }
}

/// Sweeps after which everybody who is up is taken.
const SWEEPS: u32 = 10_000;
/// What is certain fails at a rate that is still a number.
const SURE: f64 = 1.0 - 1e-12;

#[cfg(test)]
mod tests {
    use super::*;

    fn block(machines: Machines) -> Environment {
        Environment {
            machines,
            process: Process::Block { period: Duration::from_secs(30) },
            repair: Repair::BLOCK,
            floor: 0.8,
            migration: None,
        }
    }

    const S40_5: [f64; 5] = [0.95, 0.15, 0.15, 0.95, 0.7];
    const S40_11: [f64; 11] = [0.95, 0.15, 0.15, 0.95, 0.7, 0.2, 0.8, 0.15, 0.8, 0.8, 0.15];

    /// How often each was down and how many were, over so many periods.
    fn counted(failures: &[f64], periods: u32) -> (Vec<u32>, Vec<u32>) {
        let environment = block(Machines::Each(failures.to_vec()));
        let nodes = failures.len();
        let mut process = FailureProcess::new(&environment, nodes as u32, Seed::new(40));
        let (mut down, mut sizes) = (vec![0; nodes], vec![0; nodes + 1]);
        for _ in 0..periods {
            let now = process.next();
            process.step(now);
            let are: Vec<usize> = (0..nodes).filter(|&node| process.down[node].is_some()).collect();
            are.iter().for_each(|&node| down[node] += 1);
            sizes[are.len()] += 1;
        }
        (down, sizes)
    }

    /// TV-14 and P-6, within four standard errors of 100,000 periods.
    #[test]
    fn tv_14_how_often_machines_are_down_in_a_period() {
        let periods = 100_000;
        let check = |found: u32, expected: f64| {
            let share = f64::from(found) / f64::from(periods);
            let error = libm::sqrt(expected * (1.0 - expected) / f64::from(periods));
            // The vectors have four digits.
            assert!((share - expected).abs() < 4.0 * error + 5e-5, "{share}, not {expected}");
        };
        let (down, _) = counted(&[0.95, 0.15, 0.15], periods);
        down.iter().zip([0.8452, 0.0774, 0.0774]).for_each(|(&found, p)| check(found, p));
        let (down, sizes) = counted(&S40_5, periods);
        let expected = [0.6846, 0.0846, 0.0846, 0.6846, 0.4614];
        down.iter().zip(expected).for_each(|(&found, p)| check(found, p));
        assert_eq!(sizes, [0, 0, periods, 0, 0, 0], "exactly two");
        let (down, sizes) = counted(&S40_11, periods);
        for (found, failure) in down.into_iter().zip(S40_11) {
            let expected = match (failure * 100.0) as u32 {
                95 => 0.8134,
                80 => 0.6817,
                70 => 0.5908,
                20 => 0.1582,
                _ => 0.1179,
            };
            check(found, expected);
        }
        check(sizes[4], 0.1077);
        check(sizes[5], 0.8923);
    }

    /// TV-13.
    #[test]
    fn tv_13_between_the_floor_and_f_are_down() {
        let allowed = [
            (3, 1..=1),
            (5, 2..=2),
            (7, 3..=3),
            (9, 4..=4),
            (11, 4..=5),
            (13, 5..=6),
            (15, 6..=7),
            (17, 7..=8),
            (19, 8..=9),
            (21, 8..=10),
            (23, 9..=11),
        ];
        for (nodes, range) in allowed {
            let (_, sizes) = counted(&vec![0.2; nodes], 2_000);
            let seen: Vec<usize> = (0..=nodes).filter(|&size| sizes[size] > 0).collect();
            assert_eq!(seen, range.collect::<Vec<_>>(), "{nodes} nodes");
        }
    }

    /// TV-15, within four standard errors.
    #[test]
    fn tv_15_how_long_repairs_take() {
        let draws = 200_000;
        let mut rng = Seed::new(1).rng();
        for (sigma, below, above, clamped) in
            [(libm::sqrt(2.07), 0.540, 0.133, 12.6), (2.07, 0.528, 0.220, 14.1)]
        {
            let free = Repair {
                sigma,
                low: Duration::ZERO,
                high: Duration::from_secs(1 << 40),
                ..Repair::BLOCK
            };
            let clamp = Repair { sigma, ..Repair::BLOCK };
            let mut seconds: Vec<f64> =
                (0..draws).map(|_| free.draw(&mut rng).as_secs_f64()).collect();
            seconds.sort_unstable_by(f64::total_cmp);
            assert!((seconds[draws / 2] - 6.05).abs() < 0.1, "median {}", seconds[draws / 2]);
            let share = |of: &dyn Fn(f64) -> bool| {
                seconds.iter().filter(|&&one| of(one)).count() as f64 / draws as f64
            };
            assert!((share(&|one| one < 7.0) - below).abs() < 0.005);
            assert!((share(&|one| one > 30.0) - above).abs() < 0.005);
            let mean: f64 = (0..draws).map(|_| clamp.draw(&mut rng).as_secs_f64()).sum();
            assert!((mean / draws as f64 - clamped).abs() < 0.1, "{}", mean / draws as f64);
        }
        let text = Repair::text();
        let mean: f64 = (0..draws).map(|_| text.draw(&mut rng).as_secs_f64()).sum();
        // The standard deviation is some 8 s, hence 0.018 s the error of the mean.
        assert!((mean / draws as f64 - 3.04).abs() < 0.08, "{}", mean / draws as f64);
    }

    /// TV-17.
    #[test]
    fn tv_17_machines_are_drawn_by_their_numbers() {
        let mut rng = Seed::new(1).rng();
        for (machines, shares, mean) in [
            (Machines::table_1(), [0.0903, 0.3948, 0.2172, 0.1398, 0.1579], 0.4513),
            (Machines::pool(), [0.1395, 0.1163, 0.0930, 0.4186, 0.2326], 0.3535),
        ] {
            let draws = 100_000;
            let drawn = machines.draw(draws, &mut rng);
            let Machines::Drawn(kinds) = &machines else { panic!() };
            for (&(_, failure), share) in kinds.iter().zip(shares) {
                let found = drawn.iter().filter(|&&one| one == failure).count() as f64;
                assert!((found / draws as f64 - share).abs() < 0.01);
            }
            assert!((drawn.iter().sum::<f64>() / draws as f64 - mean).abs() < 0.01);
        }
    }

    #[test]
    fn machines_that_never_fail_are_taken_in_the_end() {
        let (_, sizes) = counted(&[0.0; 5], 2);
        assert_eq!(sizes[2], 2);
    }

    #[test]
    fn nodes_rotate_over_machines_and_draws_come_round() {
        let each = Machines::Each(vec![0.1, 0.2, 0.3]);
        let every = Duration::from_secs(180);
        let migration = |law| Some(Migration { every, law });
        let rotating = Environment { migration: migration(MigrationLaw::Rotate), ..block(each) };
        let mut process = FailureProcess::new(&rotating, 3, Seed::new(1));
        process.step(Time::ZERO + every);
        assert_eq!(process.failures(), [0.2, 0.3, 0.1], "node 0 on the machine of node 1");
        let law = MigrationLaw::Redraw { draws: 2 };
        let redrawn = Environment { migration: migration(law), ..block(Machines::table_1()) };
        let mut process = FailureProcess::new(&redrawn, 40, Seed::new(1));
        let first = process.failures().to_vec();
        process.step(Time::ZERO + every);
        assert_ne!(process.failures(), first);
        process.step(Time::ZERO + every * 2);
        assert_eq!(process.failures(), first);
    }

    #[test]
    fn by_the_text_machines_fail_and_recover_within_bounds() {
        let environment = Environment {
            process: Process::Renewal { period: Duration::from_secs(30) },
            repair: Repair::text(),
            ..block(Machines::Each(S40_11.to_vec()))
        };
        let mut process = FailureProcess::new(&environment, 11, Seed::new(7));
        let mut changes = 0;
        let mut last = Time::ZERO;
        for _ in 0..20_000 {
            let now = process.next();
            assert!(now > last || last == Time::ZERO, "time stands still at {now}");
            last = now;
            changes += process.step(now).len();
            let down = process.down.iter().filter(|down| down.is_some()).count();
            assert!((4..=5).contains(&down), "{down} at {now}");
        }
        assert!(changes > 20_000);
    }
}
