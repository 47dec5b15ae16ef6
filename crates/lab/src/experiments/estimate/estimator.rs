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

use super::{drawn::Lists, *};
use crate::{
    analysis::churn::{draw, sample::feedback_ceiling},
    estimate::{correlation, least, most, value_of},
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
    let runs = if sampling { size.pick(40, 4) } else { size.pick(400, 40) };
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
        Value::count(Error::Mean, bias),
        Value::count(Error::Deviation, libm::sqrt(variance)),
        Value::count(Error::Absolute, mean(&|round| error(round).abs())),
        Value::ratio(Error::OfNodes, bias / f64::from(course.nodes)),
        Value::ratio(Error::OfC, bias / mean(&|round| round.0)),
        // Where one does not vary there is none.
        Value::ratio(Error::Correlation, Some(correlation(&tens)).filter(|one| one.is_finite())),
    ])
}

measures!(
    /// How the estimates of a course differ from the truth.
    Error {
        Mean = "error",
        Deviation = "deviation",
        Absolute = "absolute_error",
        OfNodes = "of_nodes",
        OfC = "of_c",
        Correlation = "correlation",
    }
);

fn at(data: &Table, way: Way, nodes: u32, measure: Error) -> Estimate {
    data.estimate(Course::moving(way, nodes).name(), measure)
}

/// `mean ± deviation` of the errors of each group.
fn scatter(data: &Table, way: Way) -> String {
    let of = |nodes, measure| at(data, way, nodes, measure);
    list(
        NODES.map(|nodes| {
            format!("{:.1}±{:.1}", of(nodes, Error::Mean), of(nodes, Error::Deviation))
        }),
    )
}

fn figure_7_3_claims(data: &Table) -> Vec<Claim> {
    let error = |way, nodes| at(data, way, nodes, Error::Mean);
    let deviation = |way, nodes| at(data, way, nodes, Error::Deviation);
    let every = || {
        let sampling = ways().filter(|&way| way != Way::Feedback);
        sampling.flat_map(|way| NODES.map(|nodes| (way, nodes)))
    };
    let smallest = least(every().map(|(way, nodes)| ((way, nodes), error(way, nodes))));
    let smallest = smallest.map_or("nothing".into(), |((way, nodes), value)| {
        format!("least: {value} ({}, N = {nodes})", way.name())
    });
    let widest = |measure| {
        let of_50 = every().filter(|(way, _)| matches!(way, Way::ZScore(50) | Way::Window(50)));
        let share =
            |(way, nodes)| Estimate::exact(100.0 * at(data, way, nodes, measure).value.abs());
        value_of(most(of_50.map(|one| ((), share(one)))))
    };
    let shrinks = |sentence: &str, of: fn(u32) -> Way| {
        let holds = NODES.into_iter().all(|nodes| {
            let by = LISTS.map(|lists| error(of(lists), nodes).abs());
            by.windows(2).all(|pair| data.is_between(pair[0] - pair[1], 0.0, f64::INFINITY))
        });
        let shown = LISTS.map(|lists| scatter(data, of(lists))).join("; ");
        data.claim(sentence, "falls").holds(shown, holds)
    };
    let rivals = [Way::Feedback, Way::Window(10), Way::ZScore(10)];
    let ordered = NODES.into_iter().all(|nodes| {
        let [feedback, window, z] = rivals.map(|way| deviation(way, nodes).value);
        feedback < window && window < z
    });
    let spread = |way| NODES.map(|nodes| format!("{:.1}", deviation(way, nodes))).join(" ");
    let larger = NODES.map(|nodes| error(Way::Window(10), nodes).value);
    let ceilings = BOTH.map(|way| ceiling(way) - 102.0);
    // Within what the truth wanders on average, and the noise of the lists.
    let capped = BOTH
        .iter()
        .zip(ceilings)
        .all(|(&way, ceiling)| (error(way, 1_024).value - ceiling).abs() <= 10.0);
    vec![
        data
            .claim(
                "Sampling errs upwards: the mean error of Z-score and Sample-Window for all N and s",
                "overestimates",
            )
            .showing(smallest)
            .above_zero(every().map(|(way, nodes)| error(way, nodes)).collect::<Vec<_>>()),
        data
            .claim(
                "The more so the larger the group: Sample-Window of 10 lists errs most at N = 1024",
                "more at large N",
            )
            .holds(scatter(data, Way::Window(10)), larger.windows(2).all(|pair| pair[0] < pair[1])),
        data
            .claim(
                "Feedback underestimates at N = 1024, guarded or as in the author's code",
                "accurate to 512, underestimates beyond",
            )
            .showing(format!(
                "{}; as in the code {}",
                scatter(data, Way::Feedback),
                scatter(data, Way::Rounded)
            ))
            .at_most(BOTH.map(|way| error(way, 1_024)), 0.0),
        data
            .claim(
                "That is its ceiling: guarded, it can report no more than 54 of the 102, as in the code 67 (G8)",
                list(ceilings.map(short)),
            )
            .holds(list(BOTH.map(|way| error(way, 1_024))), capped),
        data
            .claim(
                "Feedback scatters least, then Sample-Window, then Z-score (s = 10), at every N",
                "Feedback least",
            )
            .holds(rivals.map(spread).join("; "), ordered),
        shrinks(
            "More lists err less: |mean error| falls from s = 10 to 30 to 50 at every N (Z-score)",
            Way::ZScore,
        ),
        shrinks("Likewise Sample-Window", Way::Window),
        data
            .claim("The mean error with 50 lists, in percent of N", "4.5% of N")
            .showing(format!(
                "at most {:.1}% of N, which is {:.0}% of c (C-30)",
                widest(Error::OfNodes),
                widest(Error::OfC)
            ))
            .at_most(widest(Error::OfNodes), 6.5),
    ]
}

/// The most that Feedback can report of 1,024 nodes.
fn ceiling(way: Way) -> f64 {
    let epsilon = if way == Way::Rounded { 0.01 } else { 0.5 / f64::from(INITIATORS) };
    feedback_ceiling(1_024, epsilon)
}

/// Bars are standard deviations over rounds, as in the thesis.
fn scattered_series(data: &Table, colour: usize, shift: f64, way: Way) -> Series {
    let point = |nodes: u32| {
        let of = |measure| at(data, way, nodes, measure).value;
        (f64::from(nodes) * shift, Estimate::ranging(of(Error::Mean), of(Error::Deviation)))
    };
    Series::measured(way.name(), colour, NODES.map(point))
}

fn error_figure(name: &str, title: &str, series: Vec<Series>) -> Vec<Figure> {
    let axes = (Axis::log("nodes"), Axis::linear("estimate less truth"));
    vec![Figure::new(name, title, axes, series)]
}

fn figure_7_3(data: &Table) -> Vec<Figure> {
    let row = |(place, way): (usize, Way)| {
        let shift = libm::pow(1.04, place as f64 - 3.0);
        scattered_series(data, place, shift, way)
    };
    let title = "Mean error of the estimates; bars are standard deviations over rounds";
    let mut series: Vec<Series> = ways().enumerate().map(row).collect();
    let rounded =
        NODES.map(|nodes| (f64::from(nodes), at(data, Way::Rounded, nodes, Error::Mean).value));
    series.push(Series::analytic("feedback as in the author's code", 0, rounded));
    error_figure("wang-fig-7.3", title, series)
}

measure!(
    /// The truth or the estimate in a round.
    InRound(what: &'static str, round: usize) = "{what} {round}"
);

const EXAMPLE: &str = "one course";

fn rounds(course: &Course, seed: u64) -> Found {
    let both = |(round, (c, estimate)): (usize, (f64, f64))| {
        [
            Value::count(InRound("actual", round), c),
            Value::count(InRound("estimate", round), estimate),
        ]
    };
    Ok(course.rounds(seed).into_iter().enumerate().flat_map(both).collect())
}

fn figure_7_4_claims(data: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for way in BOTH {
        let of = |measure| data.estimate(Course::following(way).name(), measure);
        let form = match way {
            Way::Rounded => "shifted and rounded every round, as in the author's code",
            _ => "guarded",
        };
        claims.push(
            data.claim(
                format!("By how much Feedback ({form}) is off on average"),
                "follows closely",
            )
            .at_most(of(Error::Absolute), 5.0),
        );
        let together = of(Error::Correlation);
        claims.push(
            data
                .claim(
                    format!("It goes with the truth: the correlation of averages over ten rounds is above 0 ({form})"),
                    "follows closely",
                )
                .holds(together, together.is_clearly_above(0.0)),
        );
    }
    claims
}

fn figure_7_4(data: &Table) -> Vec<Figure> {
    let row = |name: &str, what, colour| {
        let value = |round| data.estimate(EXAMPLE, InRound(what, round)).value;
        Series::analytic(name, colour, (0..ROUNDS).map(|round| (round as f64 + 1.0, value(round))))
    };
    let title = "Feedback beside a truth that walks between 6 and 19, N = 128";
    let series = [row("truth", "actual", 6), row("Feedback", "estimate", 0)];
    vec![Figure::new("wang-fig-7.4", title, (Axis::linear("round"), Axis::linear("c")), series)]
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

measure!(
    /// In which round the estimate first was this near to the truth.
    Within(near: u32) = "within {near}"
);
measure!(
    /// Whether it came within one.
    Reached() = "reached"
);

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
    let reached = Value::whether(Reached(), first[0].1.is_some());
    let rounds = first.map(|(near, first)| Value::count(Within(near), first));
    Ok(rounds.into_iter().chain([reached]).collect())
}

fn figure_7_5_claims(data: &Table) -> Vec<Claim> {
    let claim = |(way, gain)| {
        let name = rising_name(way, gain);
        let form = if way == Way::Rounded { "as in the author's code" } else { "guarded" };
        let rounds = data.estimate(&name, Within(1));
        let all = data.estimate(&name, Reached()).value == 1.0;
        let sentence = format!(
            "From 1, Feedback comes within 1 of 13 in 30 rounds or fewer on average, in every run (α = {gain}, {form})"
        );
        data.claim(sentence, "about 20").holds(rounds, all && data.is_between(rounds, 0.0, 30.0))
    };
    rises().map(claim).collect()
}

fn figure_7_5(data: &Table) -> Vec<Figure> {
    let row = |(colour, (way, gain)): (usize, (Way, f64))| {
        let point = |near| (f64::from(near), data.estimate(rising_name(way, gain), Within(near)));
        Series::measured(format!("{}, α = {gain}", way.name()), colour, NEAR.map(point))
    };
    let title = "Rounds until Feedback, which starts from 1, is this near to 13, N = 128";
    let axes = (Axis::linear("error that is left"), Axis::linear("rounds"));
    vec![Figure::new("wang-fig-7.5", title, axes, rises().enumerate().map(row))]
}

fn fractional_claims(data: &Table) -> Vec<Claim> {
    let allowed = |nodes: u32| 2.0 + 0.005 * f64::from(nodes);
    let error = |way, nodes| at(data, way, nodes, Error::Mean);
    let near = |&nodes: &u32| {
        data.is_between(error(Way::Fractional, nodes), -allowed(nodes), allowed(nodes))
    };
    let better = |&nodes: &u32| {
        error(Way::Fractional, nodes).value.abs() < error(Way::Feedback, nodes).value.abs()
    };
    let ours = scatter(data, Way::Fractional);
    let allowed = list(NODES.map(|nodes| format!("{:.1}", allowed(nodes))));
    vec![
        data.claim(
            "Fractional Feedback is off by 2 + 0.5% of N or less on average, at every N",
            format!("ours alone: {allowed}"),
        )
        .holds(&ours, NODES.iter().all(near)),
        data.claim("It is less off than the published form at N = 512 and 1024", "ours alone")
            .holds(
                format!("{ours}; published {}", scatter(data, Way::Feedback)),
                NODES[2..].iter().all(better),
            ),
    ]
}

fn fractional_figure(data: &Table) -> Vec<Figure> {
    let rows = [(0, 0.98, Way::Fractional), (1, 1.02, Way::Feedback)];
    let series = rows.map(|(colour, shift, way)| scattered_series(data, colour, shift, way));
    let title = "Mean error of Feedback by responses and as published; bars are standard deviations over rounds";
    error_figure("bw-feedback-fractional", title, series.into())
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
}
