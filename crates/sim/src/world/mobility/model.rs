//! How nodes move: the mobility models M1 to M4 of `docs/rules/central.md`.

use bellwether_proto::{Duration, Rng, Seed};

use super::{Movement, Waypoint};
use crate::world::{LevyProfile, Mobility};

/// The movement of `nodes` nodes on a square of `side` for at least as long as the run; each draws from a branch of
/// `seed` of its own. `None` if nobody moves or the movement has been given.
pub fn generate(
    mobility: &Mobility,
    side: f64,
    nodes: u32,
    duration: Duration,
    seed: Seed,
) -> Option<Movement> {
    let end = duration.as_secs_f64();
    let rng = |node: u32| seed.indexed(u64::from(node)).rng();
    let each = |walk: &dyn Fn(&mut Rng) -> Vec<Waypoint>| {
        Some(Movement::new((0..nodes).map(|node| walk(&mut rng(node))).collect()))
    };
    match *mobility {
        Mobility::Still | Mobility::Trace(_) => None,
        Mobility::RandomWaypoint { speed, pause } => each(&|rng| {
            let mut path = Path::new(anywhere(side, rng));
            while path.now() < end {
                let to = anywhere(side, rng);
                path.go(to, between(speed, rng));
                path.wait(pause.as_secs_f64());
            }
            path.0
        }),
        Mobility::RandomWalk { speed, pause, leg } => each(&|rng| {
            let mut path = Path::new(anywhere(side, rng));
            while path.now() < end {
                let angle = rng.unit() * core::f64::consts::TAU;
                path.bounce(angle, between(speed, rng), leg.as_secs_f64(), side);
                path.wait(pause.as_secs_f64());
            }
            path.0
        }),
        Mobility::LevyWalk(profile) => each(&|rng| levy_walk(profile, side, end, rng)),
        Mobility::PointOfInterest { speed, pause, spacing } => {
            let mut rngs: Vec<Rng> = (0..nodes).map(rng).collect();
            let legs = (speed, pause.as_secs_f64());
            Some(Movement::new(gatherings(legs, spacing, side, end, &mut rngs)))
        }
    }
}

/// M4. The generator that the thesis used walks at one metre a second, rounds flights and pauses to whole numbers,
/// and lets walkers leave the field on one side and return on the other; what it writes is where they are once a
/// minute. Whoever replays that goes straight from one such place to the next, across the whole field if need be.
fn levy_walk(profile: LevyProfile, side: f64, end: f64, rng: &mut Rng) -> Vec<Waypoint> {
    let mut path = Path::new(anywhere(side, rng));
    while path.now() < end {
        let flight = libm::round(half_cauchy(FLIGHT, rng));
        let angle = rng.unit() * core::f64::consts::TAU;
        match profile {
            LevyProfile::Published => {
                let Waypoint { x, y, .. } = path.last();
                path.go((x + flight * libm::cos(angle), y + flight * libm::sin(angle)), 1.0);
            }
            LevyProfile::Clean => path.bounce(angle, 1.0, flight, side),
        }
        path.wait(libm::round(half_cauchy(PAUSE, rng)));
    }
    match profile {
        LevyProfile::Clean => path.0,
        LevyProfile::Published => {
            let walked = Movement::new(vec![path.0]);
            let sample = |minute: u32| {
                let at = f64::from(minute) * SAMPLE;
                let (x, y) = walked.position(0, at);
                Waypoint { at, x: x.rem_euclid(side), y: y.rem_euclid(side) }
            };
            (0..=libm::ceil(end / SAMPLE) as u32).map(sample).collect()
        }
    }
}

/// A draw from the positive half of a Cauchy law of scale one, given that it lies between these bounds.
pub(super) fn half_cauchy((low, high): (f64, f64), rng: &mut Rng) -> f64 {
    let (from, to) = (libm::atan(low), libm::atan(high));
    libm::tan(from + rng.unit() * (to - from))
}

/// M2: everybody stands in its place on rings around the middle, goes somewhere, comes back, and goes again when
/// all are there.
fn gatherings(
    (speed, pause): ((f64, f64), f64),
    spacing: f64,
    side: f64,
    end: f64,
    rngs: &mut [Rng],
) -> Vec<Vec<Waypoint>> {
    let home = |node: usize| slot(node, spacing, side);
    let mut paths: Vec<Path> = (0..rngs.len()).map(|node| Path::new(home(node))).collect();
    let mut gathered = 0.0;
    while gathered < end {
        let mut back: f64 = gathered;
        for (node, (path, rng)) in paths.iter_mut().zip(&mut *rngs).enumerate() {
            path.wait_until(gathered + pause);
            path.go(anywhere(side, rng), between(speed, rng));
            path.wait(pause);
            path.go(home(node), between(speed, rng));
            back = back.max(path.now());
        }
        gathered = back;
    }
    paths.iter_mut().for_each(|path| path.wait_until(gathered));
    paths.into_iter().map(|path| path.0).collect()
}

/// The place of a node on the rings: six on the first, six more on each next one.
fn slot(node: usize, spacing: f64, side: f64) -> (f64, f64) {
    let (mut ring, mut first) = (1, 0);
    while node >= first + 6 * ring {
        first += 6 * ring;
        ring += 1;
    }
    let angle = core::f64::consts::TAU * (node - first) as f64 / (6 * ring) as f64;
    let radius = spacing * ring as f64;
    let inside = |at: f64| at.clamp(0.0, side);
    (inside(side / 2.0 + radius * libm::cos(angle)), inside(side / 2.0 + radius * libm::sin(angle)))
}

/// A trajectory that is being made.
struct Path(Vec<Waypoint>);

impl Path {
    fn new((x, y): (f64, f64)) -> Self {
        Self(vec![Waypoint { at: 0.0, x, y }])
    }

    fn last(&self) -> Waypoint {
        *self.0.last().expect("it began somewhere")
    }

    fn now(&self) -> f64 {
        self.last().at
    }

    fn go(&mut self, (x, y): (f64, f64), speed: f64) {
        let from = self.last();
        let at = from.at + libm::hypot(x - from.x, y - from.y) / speed;
        self.0.push(Waypoint { at, x, y });
    }

    fn wait(&mut self, time: f64) {
        self.wait_until(self.now() + time);
    }

    fn wait_until(&mut self, at: f64) {
        if at > self.now() {
            self.0.push(Waypoint { at, ..self.last() });
        }
    }

    /// Goes straight on for this long, thrown back by the walls.
    fn bounce(&mut self, angle: f64, speed: f64, time: f64, side: f64) {
        let (mut vx, mut vy) = (speed * libm::cos(angle), speed * libm::sin(angle));
        let mut left = time;
        while left > 0.0 {
            let from = self.last();
            let wall = |at: f64, v: f64| match v {
                _ if v > 0.0 => (side - at) / v,
                _ if v < 0.0 => -at / v,
                _ => f64::INFINITY,
            };
            let (across, along) = (wall(from.x, vx), wall(from.y, vy));
            let step = left.min(across).min(along);
            let inside = |at: f64| at.clamp(0.0, side);
            if step > 0.0 {
                self.0.push(Waypoint {
                    at: from.at + step,
                    x: inside(from.x + step * vx),
                    y: inside(from.y + step * vy),
                });
            }
            vx = if across <= step { -vx } else { vx };
            vy = if along <= step { -vy } else { vy };
            left -= step;
        }
    }
}

fn anywhere(side: f64, rng: &mut Rng) -> (f64, f64) {
    let x = rng.unit() * side;
    (x, rng.unit() * side)
}

fn between((low, high): (f64, f64), rng: &mut Rng) -> f64 {
    low + rng.unit() * (high - low)
}

/// Shortest and longest flight of a Lévy walk, in metres.
pub(super) const FLIGHT: (f64, f64) = (5.0, 1_000.0);
/// Shortest and longest pause of a Lévy walk, in seconds.
pub(super) const PAUSE: (f64, f64) = (10.0, 7_200.0);
/// Seconds between the places that the published profile writes down.
const SAMPLE: f64 = 60.0;
