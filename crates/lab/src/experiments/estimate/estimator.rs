//! The estimators against a truth that moves: figures 7.3 to 7.5, and Feedback by responses.
//!
//! As the author's script has it (C-30): for Feedback and Sample-Window the first five nodes are each missing from
//! `c` lists, drawn anew every round, and `c` walks by up to 2.5 a round between half and one and a half of where it
//! began; for Z-score by itself about 2.5 nodes are missing, each from between N/20 and 3N/20 lists, with no memory
//! between rounds. Elections have ten initiators, who ask `c + 1` nodes with `c` as estimated so far.

use std::hash::{Hash, Hasher};

use bellwether_proto::{
    NodeId, Rng, Seed,
    churn::{
        feedback::{Feedback, Guard, Report, Rule},
        whole,
        window::Window,
        zscore::{self, Sample},
    },
    hash::Real,
};

use super::{between, bounded, drawn::Lists, shown};
use crate::{
    analysis::churn::{draw, sample::feedback_ceiling},
    claim::{Claim, Estimate, short},
    computation::{Computation, Found, Value},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "wang-fig-7.3",
            title: "Feedback scatters least and cannot see far; sampling errs upwards",
            source: "Fig. 7.3",
            cells: |size| {
                let cell = |nodes| move |way: Way| cell(Course::moving(way, nodes), size);
                let ways = || ways().chain([Way::Rounded]);
                NODES.into_iter().flat_map(|nodes| ways().map(cell(nodes))).collect()
            },
            claims: figure_7_3_claims,
            figures: figure_7_3,
        },
        Experiment {
            id: "wang-fig-7.4",
            title: "Feedback follows a c that moves",
            source: "Fig. 7.4",
            cells: |size| {
                let mut cells = BOTH.map(|way| cell(Course::following(way), size)).to_vec();
                let example = Computation::new(
                    "rounds of one course",
                    Course::following(Way::Feedback),
                    rounds,
                );
                cells.push(Cell::computed(EXAMPLE, example, 1));
                cells
            },
            claims: figure_7_4_claims,
            figures: figure_7_4,
        },
        Experiment {
            id: "wang-fig-7.5",
            title: "Feedback that starts from 1 comes near 13 within some twenty rounds",
            source: "Fig. 7.5",
            cells: |size| {
                let cell = |(way, gain)| {
                    let course = Course::rising(way, gain);
                    let computation = Computation::new("rounds until near", course, reaching);
                    Cell::computed(rising_name(way, gain), computation, size.runs(1_000))
                };
                rises().map(cell).collect()
            },
            claims: figure_7_5_claims,
            figures: figure_7_5,
        },
        Experiment {
            id: "bw-feedback-fractional",
            title: "Feedback that counts responses has no ceiling",
            source: "project: C-5",
            cells: |size| {
                let cell = |way| move |nodes| cell(Course::moving(way, nodes), size);
                [Way::Fractional, Way::Feedback]
                    .into_iter()
                    .flat_map(|way| NODES.map(cell(way)))
                    .collect()
            },
            claims: fractional_claims,
            figures: fractional_figure,
        },
    ]
}

const NODES: [u32; 4] = [128, 256, 512, 1_024];
const LISTS: [u32; 3] = [10, 30, 50];
const INITIATORS: u32 = 10;
const ROUNDS: usize = 100;

/// How `c` is estimated.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Way {
    /// From so many lists, each round by itself.
    ZScore(u32),
    /// The same, smoothed.
    Window(u32),
    /// Algorithm 7, guarded.
    Feedback,
    /// Algorithm 7 as the author's code has it: shifted by 0.01, and rounded every round (C-29).
    Rounded,
    /// By responses.
    Fractional,
}

const BOTH: [Way; 2] = [Way::Feedback, Way::Rounded];

impl Way {
    fn name(self) -> String {
        match self {
            Self::ZScore(lists) => format!("z-score s={lists}"),
            Self::Window(lists) => format!("window s={lists}"),
            Self::Feedback => "feedback".into(),
            Self::Rounded => "feedback rounded".into(),
            Self::Fractional => "feedback fractional".into(),
        }
    }
}

/// Those of figure 7.3.
fn ways() -> impl Iterator<Item = Way> {
    let sampling = LISTS.into_iter().flat_map(|lists| [Way::ZScore(lists), Way::Window(lists)]);
    [Way::Feedback].into_iter().chain(sampling)
}

/// Many rounds of one estimator.
#[derive(Clone, Copy, Debug)]
struct Course {
    way: Way,
    nodes: u32,
    gain: f64,
    /// The estimate to begin with.
    start: u32,
    /// The truth to begin with.
    c: u32,
    /// How far the truth may go from there.
    within: (u32, u32),
}

impl Hash for Course {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let &Self { way, nodes, gain, start, c, within } = self;
        (way, nodes, Real(gain), start, c, within).hash(state);
    }
}

impl Course {
    fn moving(way: Way, nodes: u32) -> Self {
        let c = nodes / 10;
        Self { way, nodes, gain: 0.2, start: c, c, within: (c / 2, c * 3 / 2) }
    }

    fn following(way: Way) -> Self {
        Self { start: 13, c: 13, within: (6, 19), ..Self::moving(way, 128) }
    }

    fn rising(way: Way, gain: f64) -> Self {
        Self { gain, start: 1, within: (13, 13), ..Self::following(way) }
    }

    fn name(&self) -> String {
        format!("{} n={}", self.way.name(), self.nodes)
    }

    /// Plays the rounds, each with the truth and the estimate after it, until `stop`.
    fn play(&self, seed: u64, mut stop: impl FnMut(f64, f64) -> bool) {
        let mut rng = Seed::new(seed).rng();
        let mut estimator = Estimator::new(self);
        let mut c = self.c;
        loop {
            let lists = if matches!(self.way, Way::ZScore(_)) {
                scattered(&mut rng, self.nodes)
            } else {
                let step = libm::round((rng.unit() - 0.5) * 5.0) as i64;
                c = (i64::from(c) + step).clamp(self.within.0.into(), self.within.1.into()) as u32;
                Lists::draw(&mut rng, self.nodes, (0..5).map(|low| (low, c)))
            };
            let estimated = estimator.round(&mut rng, &lists, self.nodes);
            if stop(f64::from(lists.c()), estimated) {
                return;
            }
        }
    }

    /// So many rounds.
    fn rounds(&self, seed: u64) -> Vec<(f64, f64)> {
        let mut rounds = Vec::with_capacity(ROUNDS);
        self.play(seed, |c, estimate| {
            rounds.push((c, estimate));
            rounds.len() == ROUNDS
        });
        rounds
    }
}

/// Lists as for Z-score by itself. Where nobody is missing there is nothing to estimate: drawn again.
fn scattered(rng: &mut Rng, nodes: u32) -> Lists {
    let (mean, off) = (nodes / 10, nodes / 20);
    let mut count = 0;
    while count == 0 {
        let exponential = -2.5 * libm::log1p(-rng.unit());
        count = (libm::round(exponential) as u32).min(mean);
    }
    let missing: Vec<(u32, u32)> = draw(rng, nodes, count)
        .into_iter()
        .map(|node| (node, mean - off + rng.below(u64::from(2 * off)) as u32))
        .collect();
    Lists::draw(rng, nodes, missing)
}

/// An estimator, and what it remembers between rounds.
enum Estimator {
    ZScore(u32),
    Window(u32, Window),
    Feedback(Feedback),
    Rounded(Feedback),
}

impl Estimator {
    fn new(&Course { way, gain, start, .. }: &Course) -> Self {
        let start = f64::from(start);
        let feedback = |rule| Feedback::new(rule, start, gain);
        match way {
            Way::ZScore(lists) => Self::ZScore(lists),
            Way::Window(lists) => Self::Window(lists, Window::new(start, gain)),
            Way::Feedback => Self::Feedback(feedback(Rule::Published(Guard::HalfAnInitiator))),
            Way::Rounded => Self::Rounded(feedback(Rule::Published(Guard::Shift(0.01)))),
            Way::Fractional => Self::Feedback(feedback(Rule::Fractional)),
        }
    }

    /// One more round; the estimate after it.
    fn round(&mut self, rng: &mut Rng, lists: &Lists, nodes: u32) -> f64 {
        let mut elect = |feedback: &mut Feedback| {
            let asked = whole(feedback.c(), nodes) + 1;
            let report = |_| report(rng, lists, nodes, asked);
            let reports: Vec<Report> = (0..INITIATORS).map(report).collect();
            feedback.on_round(nodes, &reports);
        };
        match self {
            Self::ZScore(size) => sampled(rng, lists, nodes, *size),
            Self::Window(size, window) => {
                window.on_round(sampled(rng, lists, nodes, *size));
                window.c()
            }
            Self::Feedback(feedback) => {
                elect(feedback);
                feedback.c()
            }
            Self::Rounded(feedback) => {
                elect(feedback);
                feedback.restart(libm::round(feedback.c()));
                feedback.c()
            }
        }
    }
}

/// What an initiator that asks so many reports.
fn report(rng: &mut Rng, lists: &Lists, nodes: u32, asked: u32) -> Report {
    let named: Vec<u32> =
        draw(rng, nodes, asked).into_iter().map(|node| lists.lowest(node)).collect();
    let best = named.iter().min();
    let missing = named.iter().filter(|&one| Some(one) != best).count() as u32;
    Report { missing, responses: asked }
}

/// What so many lists say, compared by the first node.
fn sampled(rng: &mut Rng, lists: &Lists, nodes: u32, size: u32) -> f64 {
    let list = |node| lists.of(node).into_iter().map(|id| NodeId::new(u64::from(id)));
    let mut sample = Sample::new(list(0));
    for node in draw(rng, nodes, size) {
        sample.on_answer(NodeId::new(u64::from(node)), list(node), []);
    }
    sample.c_hat(zscore::Rule::Corrected).unwrap_or(f64::NAN)
}

fn cell(course: Course, size: Size) -> Cell {
    let sampling = matches!(course.way, Way::ZScore(_) | Way::Window(_));
    // Lists are long, and comparing them takes most of the time.
    let runs = match (size, sampling) {
        (Size::Full, false) => 400,
        (Size::Full, true) => 40,
        (Size::Quick, false) => 40,
        (Size::Quick, true) => 4,
    };
    Cell::computed(course.name(), Computation::new("errors of a course", course, errors), runs)
}

fn errors(course: &Course, seed: u64) -> Found {
    let rounds = course.rounds(seed);
    let error = |&(c, estimate): &(f64, f64)| estimate - c;
    let mean =
        |of: &dyn Fn(&(f64, f64)) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
    let bias = mean(&error);
    let variance = mean(&|round| (error(round) - bias) * (error(round) - bias));
    let tens: Vec<(f64, f64)> = rounds
        .chunks(10)
        .map(|ten| {
            let mean =
                |of: fn(&(f64, f64)) -> f64| ten.iter().map(of).sum::<f64>() / ten.len() as f64;
            (mean(|round| round.0), mean(|round| round.1))
        })
        .collect();
    Ok(vec![
        Value::count("error", bias),
        Value::count("deviation", libm::sqrt(variance)),
        Value::count("absolute_error", mean(&|round| error(round).abs())),
        Value::ratio("of_nodes", bias / f64::from(course.nodes)),
        Value::ratio("of_c", bias / mean(&|round| round.0)),
        Value::ratio("correlation", correlation(&tens)),
    ])
}

/// Pearson's; `None` where one does not vary.
fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|p| of(p.0 - x, p.1 - y)).sum::<f64>();
    let found = sum(&|x, y| x * y) / libm::sqrt(sum(&|x, _| x * x) * sum(&|_, y| y * y));
    found.is_finite().then_some(found)
}

fn at(table: &Table, way: Way, nodes: u32, metric: &str) -> Option<Estimate> {
    table.estimate(&Course::moving(way, nodes).name(), metric)
}

/// `mean ± deviation` of the errors of each group.
fn scatter(table: &Table, way: Way) -> String {
    let one = |nodes| match (at(table, way, nodes, "error"), at(table, way, nodes, "deviation")) {
        (Some(mean), Some(deviation)) => format!("{:.1}±{:.1}", mean.value, deviation.value),
        _ => "nothing".into(),
    };
    NODES.map(one).join(", ")
}

fn figure_7_3_claims(table: &Table) -> Vec<Claim> {
    let error = |way, nodes| at(table, way, nodes, "error");
    let deviation = |way, nodes| at(table, way, nodes, "deviation");
    let sampling = || ways().filter(|&way| way != Way::Feedback);
    let every = || sampling().flat_map(|way| NODES.map(|nodes| (way, nodes)));
    let least = every().map(|(way, nodes)| (way, nodes, error(way, nodes)));
    let least = least.min_by(|a, b| {
        let value = |one: &Option<Estimate>| one.map_or(f64::NEG_INFINITY, |one| one.value);
        value(&a.2).total_cmp(&value(&b.2))
    });
    let widest = |metric: &str| {
        let share = |(way, nodes)| Some(100.0 * at(table, way, nodes, metric)?.value.abs());
        let all = every().filter(|(way, _)| matches!(way, Way::ZScore(50) | Way::Window(50)));
        let all = all.map(share).collect::<Option<Vec<f64>>>()?;
        Some(all.into_iter().fold(0.0, f64::max))
    };
    let (of_nodes, of_c) = (widest("of_nodes"), widest("of_c"));
    let shrink = |of: fn(u32) -> Way| {
        NODES.into_iter().all(|nodes| {
            let by = LISTS.map(|lists| error(of(lists), nodes));
            by.windows(2).all(|pair| match (pair[0], pair[1]) {
                (Some(few), Some(more)) => between(
                    table,
                    Some(
                        Estimate { value: few.value.abs(), ..few }
                            .minus(Estimate { value: more.value.abs(), ..more }),
                    ),
                    0.0,
                    f64::INFINITY,
                ),
                _ => false,
            })
        })
    };
    let ordered = NODES.into_iter().filter(|&nodes| {
        let [feedback, window, z] =
            [Way::Feedback, Way::Window(10), Way::ZScore(10)].map(|way| deviation(way, nodes));
        matches!((feedback, window, z), (Some(f), Some(w), Some(z)) if f.value < w.value && w.value < z.value)
    });
    let ordered = ordered.count();
    let spread = |way| {
        let one = |nodes| {
            deviation(way, nodes).map_or("nothing".into(), |one| format!("{:.1}", one.value))
        };
        NODES.map(one).join(" ")
    };
    vec![
        Claim::holds(
            "Sampling errs upwards: the mean error of Z-score and Sample-Window is above 0 for all N and s",
            "overestimates",
            least.map_or("nothing".into(), |(way, nodes, value)| {
                format!("least: {} ({}, N = {nodes})", shown(value), way.name())
            }),
            every().all(|(way, nodes)| between(table, error(way, nodes), 0.0, f64::INFINITY)),
        ),
        Claim::holds(
            "The more so the larger the group: Sample-Window of 10 lists errs most at N = 1024",
            "more at large N",
            scatter(table, Way::Window(10)),
            NODES.windows(2).all(|pair| {
                let by = [pair[0], pair[1]].map(|nodes| error(Way::Window(10), nodes));
                matches!(by, [Some(a), Some(b)] if a.value < b.value)
            }),
        ),
        Claim::holds(
            "Feedback underestimates at N = 1024, guarded or as in the author's code",
            "accurate to 512, underestimates beyond",
            format!(
                "{}; as in the code {}",
                scatter(table, Way::Feedback),
                scatter(table, Way::Rounded)
            ),
            BOTH.iter().all(|&way| between(table, error(way, 1_024), f64::NEG_INFINITY, 0.0)),
        ),
        Claim::holds(
            "That is its ceiling: guarded, it can report no more than 54 of the 102, as in the code 67 (G8)",
            BOTH.map(|way| short(ceiling(way) - 102.0)).join(", "),
            BOTH.map(|way| shown(error(way, 1_024))).join(", "),
            BOTH.iter().all(|&way| {
                // Within what the truth wanders on average, and the noise of the lists.
                let off = error(way, 1_024).map(|error| error.value - (ceiling(way) - 102.0));
                off.is_some_and(|off| off.abs() <= 10.0)
            }),
        ),
        Claim::holds(
            "Feedback scatters least, then Sample-Window, then Z-score (s = 10), at every N",
            "Feedback least",
            format!(
                "{}; {}; {}",
                spread(Way::Feedback),
                spread(Way::Window(10)),
                spread(Way::ZScore(10))
            ),
            ordered == NODES.len(),
        ),
        Claim::holds(
            "More lists err less: |mean error| falls from s = 10 to 30 to 50 at every N (Z-score)",
            "falls",
            LISTS.map(|lists| scatter(table, Way::ZScore(lists))).join("; "),
            shrink(Way::ZScore),
        ),
        Claim::holds(
            "Likewise Sample-Window",
            "falls",
            LISTS.map(|lists| scatter(table, Way::Window(lists))).join("; "),
            shrink(Way::Window),
        ),
        Claim::holds(
            "With 50 lists the mean error is at most 6.5% of N",
            "4.5% of N",
            match (of_nodes, of_c) {
                (Some(of_nodes), Some(of_c)) => {
                    format!("at most {of_nodes:.1}% of N, which is {of_c:.0}% of c (C-30)")
                }
                _ => "nothing".into(),
            },
            of_nodes.is_some_and(|widest| widest <= 6.5),
        ),
    ]
}

/// The most that Feedback can report of 1,024 nodes.
fn ceiling(way: Way) -> f64 {
    let epsilon = if way == Way::Rounded { 0.01 } else { 0.5 / f64::from(INITIATORS) };
    feedback_ceiling(1_024, epsilon)
}

/// Bars are standard deviations over rounds, as in the thesis.
fn scattered_series(table: &Table, colour: usize, shift: f64, way: Way) -> Series {
    let point = |nodes: u32| {
        let of = |metric| at(table, way, nodes, metric);
        let bar = of("error").zip(of("deviation"));
        let bar = bar
            .map(|(mean, deviation)| Estimate { value: mean.value, half_width: deviation.value });
        (f64::from(nodes) * shift, bar)
    };
    Series::measured(way.name(), colour, NODES.map(point))
}

fn error_figure(name: &str, title: &str, series: Vec<Series>) -> Figure {
    Figure {
        name: name.into(),
        title: title.into(),
        x: Axis::log("nodes"),
        y: Axis::linear("estimate less truth"),
        series,
    }
}

fn figure_7_3(table: &Table) -> Vec<Figure> {
    let row = |(place, way): (usize, Way)| {
        let shift = libm::pow(1.04, place as f64 - 3.0);
        scattered_series(table, place, shift, way)
    };
    let title = "Mean error of the estimates; bars are standard deviations over rounds";
    let mut series: Vec<Series> = ways().enumerate().map(row).collect();
    let rounded = NODES.map(|nodes| {
        let error = at(table, Way::Rounded, nodes, "error");
        (f64::from(nodes), error.map_or(f64::NAN, |error| error.value))
    });
    series.push(Series::analytic("feedback as in the author's code", 0, rounded));
    vec![error_figure("wang-fig-7.3", title, series)]
}

const EXAMPLE: &str = "one course";

fn rounds(course: &Course, seed: u64) -> Found {
    let both = |(round, (c, estimate)): (usize, (f64, f64))| {
        [
            Value::count(format!("actual {round}"), c),
            Value::count(format!("estimate {round}"), estimate),
        ]
    };
    Ok(course.rounds(seed).into_iter().enumerate().flat_map(both).collect())
}

fn figure_7_4_claims(table: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for way in BOTH {
        let of = |metric| table.estimate(&Course::following(way).name(), metric);
        let form = match way {
            Way::Rounded => "shifted and rounded every round, as in the author's code",
            _ => "guarded",
        };
        claims.push(bounded(
            table,
            format!("Feedback ({form}) is off by 5 or less on average"),
            "follows closely",
            of("absolute_error"),
            0.0,
            5.0,
        ));
        let together = of("correlation");
        claims.push(Claim::holds(
            format!("It goes with the truth: the correlation of averages over ten rounds is above 0 ({form})"),
            "follows closely",
            shown(together),
            together.is_some_and(|one| one.value - one.half_width > 0.0),
        ));
    }
    claims
}

fn figure_7_4(table: &Table) -> Vec<Figure> {
    let row = |name: &str, metric: &str, colour| {
        let value = |round| table.estimate(EXAMPLE, &format!("{metric} {round}"));
        let points =
            (0..ROUNDS).filter_map(|round| Some((round as f64 + 1.0, value(round)?.value)));
        Series::analytic(name, colour, points)
    };
    vec![Figure {
        name: "wang-fig-7.4".into(),
        title: "Feedback beside a truth that walks between 6 and 19, N = 128".into(),
        x: Axis::linear("round"),
        y: Axis::linear("c"),
        series: vec![row("truth", "actual", 6), row("Feedback", "estimate", 0)],
    }]
}

const GAINS: [f64; 2] = [0.1, 0.2];
const NEAR: [u32; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
/// A course that does not come near by then has not.
const LONGEST: u32 = 1_000;

fn rises() -> impl Iterator<Item = (Way, f64)> {
    BOTH.into_iter().flat_map(|way| GAINS.map(|gain| (way, gain)))
}

fn rising_name(way: Way, gain: f64) -> String {
    format!("{} gain={gain}", way.name())
}

/// In which round the estimate first was this near to the truth, for every distance on the way.
fn reaching(course: &Course, seed: u64) -> Found {
    let mut first = NEAR.map(|near| (near, None));
    let mut round = 0;
    course.play(seed, |c, estimate| {
        round += 1;
        for (near, first) in &mut first {
            if first.is_none() && (estimate - c).abs() <= f64::from(*near) {
                *first = Some(f64::from(round));
            }
        }
        first[0].1.is_some() || round == LONGEST
    });
    let reached = Value::ratio("reached", f64::from(u8::from(first[0].1.is_some())));
    let rounds = first.map(|(near, first)| Value::count(format!("within {near}"), first));
    Ok(rounds.into_iter().chain([reached]).collect())
}

fn figure_7_5_claims(table: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (way, gain) in rises() {
        let name = rising_name(way, gain);
        let form = if way == Way::Rounded { "as in the author's code" } else { "guarded" };
        let rounds = table.estimate(&name, "within 1");
        let all = table.summary(&name, "reached").is_some_and(|reached| reached.mean == 1.0);
        claims.push(Claim::holds(
            format!(
                "From 1, Feedback comes within 1 of 13 in 30 rounds or fewer on average, in every run (α = {gain}, {form})"
            ),
            "about 20",
            shown(rounds),
            all && between(table, rounds, 0.0, 30.0),
        ));
    }
    claims
}

fn figure_7_5(table: &Table) -> Vec<Figure> {
    let row = |(colour, (way, gain)): (usize, (Way, f64))| {
        let name = rising_name(way, gain);
        let point = |near: u32| (f64::from(near), table.estimate(&name, &format!("within {near}")));
        Series::measured(format!("{}, α = {gain}", way.name()), colour, NEAR.map(point))
    };
    vec![Figure {
        name: "wang-fig-7.5".into(),
        title: "Rounds until Feedback, which starts from 1, is this near to 13, N = 128".into(),
        x: Axis::linear("error that is left"),
        y: Axis::linear("rounds"),
        series: rises().enumerate().map(row).collect(),
    }]
}

fn fractional_claims(table: &Table) -> Vec<Claim> {
    let allowed = |nodes: u32| 2.0 + 0.005 * f64::from(nodes);
    let error = |nodes| at(table, Way::Fractional, nodes, "error");
    let holds = |&nodes: &u32| between(table, error(nodes), -allowed(nodes), allowed(nodes));
    let better = |&nodes: &u32| {
        let off = |way| at(table, way, nodes, "error").map(|error| error.value.abs());
        matches!((off(Way::Fractional), off(Way::Feedback)), (Some(a), Some(b)) if a < b)
    };
    vec![
        Claim::holds(
            "Fractional Feedback is off by 2 + 0.5% of N or less on average, at every N",
            format!(
                "ours alone: {}",
                NODES.map(|nodes| format!("{:.1}", allowed(nodes))).join(", ")
            ),
            scatter(table, Way::Fractional),
            NODES.iter().all(holds),
        ),
        Claim::holds(
            "It is less off than the published form at N = 512 and 1024",
            "ours alone",
            format!(
                "{}; published {}",
                scatter(table, Way::Fractional),
                scatter(table, Way::Feedback)
            ),
            NODES[2..].iter().all(better),
        ),
    ]
}

fn fractional_figure(table: &Table) -> Vec<Figure> {
    let rows = [(0, 0.98, Way::Fractional), (1, 1.02, Way::Feedback)];
    let series = rows.map(|(colour, shift, way)| scattered_series(table, colour, shift, way));
    let title = "Mean error of Feedback by responses and as published; bars are standard deviations over rounds";
    vec![error_figure("bw-feedback-fractional", title, series.into())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_stays_where_it_may_go_and_does_move() {
        let rounds = Course::following(Way::Fractional).rounds(3);
        assert_eq!(rounds.len(), ROUNDS);
        let (low, high) = rounds
            .iter()
            .fold((99.0_f64, 0.0_f64), |(low, high), (c, _)| (low.min(*c), high.max(*c)));
        assert!(low >= 6.0 && high <= 19.0 && high - low > 3.0, "{low} to {high}");
    }

    #[test]
    fn all_lists_tell_the_truth() {
        let mut rng = Seed::new(5).rng();
        for _ in 0..20 {
            let lists = scattered(&mut rng, 128);
            let c = lists.c();
            assert!((7..=17).contains(&c), "{c}");
            assert_eq!(sampled(&mut rng, &lists, 128, 128), f64::from(c));
        }
    }

    #[test]
    fn whoever_asks_everybody_counts_all_that_lack_the_lowest() {
        let mut rng = Seed::new(6).rng();
        let lists = Lists::draw(&mut rng, 128, [(0, 13)]);
        assert_eq!(report(&mut rng, &lists, 128, 128), Report { missing: 13, responses: 128 });
    }

    #[test]
    fn correlation_knows_up_from_down() {
        let up = [(1.0, 2.0), (2.0, 4.0), (3.0, 6.5)];
        let down = up.map(|(x, y)| (x, -y));
        assert!(correlation(&up).unwrap() > 0.99);
        assert!(correlation(&down).unwrap() < -0.99);
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }
}
