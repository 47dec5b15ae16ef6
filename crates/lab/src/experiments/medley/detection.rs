//! How soon a crash is found and how fast the news spreads: figures 3.1 and 4.1, and SWIM's expectation.

use super::*;
use crate::{claim::Verdict, scenarios::MEDLEY_SWIM};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "wang-fig-3.1",
            title: "Preferring the near makes the first detection of a crash take longer",
            source: "Fig. 3.1",
            cells: |size| {
                let on = |field, m| on_field(field, m, size.runs(1_000).max(200));
                fields(size).iter().flat_map(|&field| EXPONENTS.map(|m| on(field, m))).collect()
            },
            claims: figure_3_1_claims,
            figures: figure_3_1,
        },
        Experiment {
            id: "wang-fig-4.1",
            title: "Both feedbacks find crashes sooner and spread the news faster",
            source: "Fig. 4.1",
            cells: |size| {
                let runs = size.runs(1_000);
                let mut cells = sweep(runs);
                cells.extend(["medley", "both"].map(|one| cell(Form::PullOnly, one, 3, runs)));
                for strategy in STRATEGIES {
                    cells.extend(HARDENED.map(|m| cell(Form::Hardened, strategy, m, runs)));
                }
                cells
            },
            claims: figure_4_1_claims,
            figures: figure_4_1,
        },
        Experiment {
            id: "bw-medley-swim",
            title: "SWIM pings a crashed node after e/(e-1) periods, whatever the group",
            source: "project: P5, of SWIM",
            cells: |size| {
                let group = |nodes: u32| {
                    let cell = Cell::new(group_name(nodes), MEDLEY_SWIM, size.runs(10_000));
                    cell.set("network.nodes", nodes)
                };
                GROUPS.map(group).into()
            },
            claims: swim_claims,
            figures: |_| Vec::new(),
        },
    ]
}

/// No claim is made of the grid: it is drawn for comparison.
fn fields(size: Size) -> &'static [&'static str] {
    size.pick(&["random", "cluster", "grid"], &["random", "cluster"])
}

fn field_name(field: &str, exponent: u32) -> String {
    format!("{field} m={exponent}")
}

fn on_field(field: &str, exponent: u32, runs: u64) -> Cell {
    let cell = Cell::new(field_name(field, exponent), MEDLEY_FIELD, runs);
    let cell = cell.set("membership.exponent", exponent);
    match field {
        "cluster" => cell
            .set("network.placement.kind", "cluster")
            .set("network.placement.range", "4.0")
            .set("fault.0.keep", "connected"),
        "grid" => on_grid(cell),
        _ => cell,
    }
}

fn figure_3_1_claims(data: &Table) -> Vec<Claim> {
    let mean = |field: &str, m| first_detection(data, field_name(field, m));
    let tail = |field: &str, m| p95(data, field_name(field, m));
    let mut claims = Vec::new();
    for field in ["random", "cluster"] {
        let of: [(&str, &dyn Fn(u32) -> Estimate); 2] =
            [("mean", &|m| mean(field, m)), ("P95", &|m| tail(field, m))];
        for (what, value) in of {
            let steps = [3, 4, 5].map(|m| (m, value(m) / value(m - 1)));
            let (shown, step) =
                extreme(least(steps), |m, rise| format!("least step, to m = {m}: times {rise}"));
            let sentence =
                format!("The {what} first detection does not fall from m = 2 up, times ({field})");
            claims.push(data.claim(sentence, "grows sharply").showing(shown).at_least(step, 0.97));
        }
    }
    let late = |m| tail("random", m) - FLOOR;
    claims.push(
        data.claim(
            "How many times P95 of dfdt at m = 1 it is at m = 5 (random)",
            "exponential in m",
        )
        .at_least(late(5) / late(1), 2.0),
    );
    let never = ["random", "cluster"]
        .map(|field| data.estimate(field_name(field, 5), Metric::Undetected).value);
    claims.push(
        data.claim(
            "Crashes left unfound when the run ends, even at m = 5 (random, cluster)",
            "ours alone: else the means say little",
        )
        .percent()
        .at_most(never.map(|share| Estimate::exact(100.0 * share)), 2.0),
    );
    claims
}

fn figure_3_1(data: &Table) -> Vec<Figure> {
    let mut series = Vec::new();
    for (colour, &field) in fields(data.size()).iter().enumerate() {
        let at = |m| field_name(field, m);
        let mean = |m| first_detection(data, at(m));
        series.push(over_exponents(format!("{field}, mean"), colour, mean));
        // The bar belongs to the mean: its place is known no better than to a period or two.
        let tail = |m| Estimate::exact(p95(data, at(m)).value);
        series.push(over_exponents(format!("{field}, P95"), colour + 3, tail));
    }
    let title = "First detection of a crash, Medley without feedback";
    vec![exponent_figure("wang-fig-3.1", title, UNITS, series)]
}

/// Exponents at which the hardened form is run beside.
const HARDENED: [u32; 2] = [3, 5];

/// `dsm`: from the first detection to the last.
fn spread(data: &Table, form: Form, strategy: &str, m: u32) -> Estimate {
    time(data, name(form, strategy, m), Metric::Dissemination)
}

/// By how much both feedbacks shorten it at m = 3.
fn both_at_3(data: &Table, form: Form) -> Estimate {
    reduction(spread(data, form, "both", 3), spread(data, form, "medley", 3))
}

fn figure_4_1_claims(data: &Table) -> Vec<Claim> {
    let first = |strategy, m| dfdt(data, name(Form::Published, strategy, m));
    let spread = |strategy, m| spread(data, Form::Published, strategy, m);
    let best = |what: &str, published: &str, saved: &dyn Fn(u32) -> Estimate, low| {
        let (at, best) =
            extreme(most(EXPONENTS.map(|m| (m, saved(m)))), |m, _| format!(" (best at m = {m})"));
        let sentence = format!("{what} at some m{at}");
        data.claim(sentence, published).percent().at_least(best, low)
    };
    let dfdt_of = |strategy| move |m| reduction(first(strategy, m), first("medley", m));
    let dsm_of = |strategy| move |m| reduction(spread(strategy, m), spread("medley", m));
    let orders =
        [3, 4, 5].map(|m| ["both", "passive", "active", "medley"].map(|one| spread(one, m)));
    let shown = orders.map(|order| list(order.map(|one| format!("{one:.1}")))).join("; ");
    let tail = |strategy| p95(data, name(Form::Published, strategy, 3)) - FLOOR;
    let pushed = both_at_3(data, Form::Published);
    let pulled = both_at_3(data, Form::PullOnly);
    let mut claims = vec![
        best("Active feedback shortens dfdt", "31.1%", &dfdt_of("active"), 20.0),
        best("Both shorten dsm", "54.6%", &dsm_of("both"), 35.0),
        best("Passive feedback shortens dsm", "44.5%", &dsm_of("passive"), 30.0),
        best("Active feedback shortens dsm", "31.6%", &dsm_of("active"), 10.0),
        data
            .claim("dsm of both ≤ passive ≤ active ≤ Medley at m = 3, 4, 5", "in this order")
            .holds(shown, orders.iter().all(|order| is_ascending(order))),
        near(data, "Both shorten P95 of dfdt at m = 3", reduction(tail("both"), tail("medley")), 31.2),
        near(data, "Both shorten dsm at m = 3", pushed, 47.2).on_record(
            Verdict::Partly,
            "the text has news on all messages, the code that was published on answers only (M-11): the next claim",
        ),
        data
            .claim(
                "The published 47.2% lie between what both save with news on all messages and on answers only (M-11)",
                "47.2%",
            )
            .holds(
                format!("{} and {}", percent(pushed), percent(pulled)),
                data.is_between(pushed, 0.0, 47.2) && data.is_between(pulled, 47.2, 100.0),
            ),
    ];
    claims.extend(hardened_4_1(data));
    claims
}

/// A reduction that agrees with the published one within four standard errors, or at least is one.
fn near(data: &Table, sentence: &str, value: Estimate, published: f64) -> Claim {
    let verdict = match value {
        _ if value.errors_from(published) <= 4.0 => Verdict::Reproduced,
        _ if value.value > 0.0 => Verdict::Partly,
        _ => Verdict::NotReproduced,
    };
    let claim = data.claim(format!("{sentence} by {published}%"), format!("{published}%"));
    claim.judged(percent(value), verdict)
}

fn hardened_4_1(data: &Table) -> Vec<Claim> {
    let missing = |form, strategy| {
        Estimate::exact(100.0 * data.estimate(name(form, strategy, 5), Metric::Incomplete).value)
    };
    let published = missing(Form::Published, "medley");
    let [slow, fast] =
        [Form::Published, Form::Hardened].map(|form| spread(data, form, "medley", 5));
    vec![
        data
            .claim(
                "Hardened, how many do not hear of the crash before the run ends, at m = 5 too",
                format!("as published {published:.2}% never hear of it (Medley)"),
            )
            .percent()
            .at_most(STRATEGIES.map(|strategy| missing(Form::Hardened, strategy)), 0.01),
        data
            .claim(
                "Hardened, Medley without feedback spreads the news faster at m = 5, since a bounded bag reaches the far",
                "ours alone",
            )
            .percent()
            .at_least(reduction(fast, slow), 0.0),
        data
            .claim("Hardened, both feedbacks shorten dsm at m = 3 all the same", "ours alone")
            .percent()
            .at_least(both_at_3(data, Form::Hardened), 10.0),
    ]
}

fn figure_4_1(data: &Table) -> Vec<Figure> {
    let figure = |name: &str, title: &str, value: &dyn Fn(Form, &str, u32) -> Estimate| {
        let row = |(colour, strategy): (usize, &'static str)| {
            over_exponents(strategy, colour, |m| value(Form::Published, strategy, m))
        };
        let mut series: Vec<_> = STRATEGIES.into_iter().enumerate().map(row).collect();
        for (colour, strategy) in [(4, "medley"), (5, "both")] {
            let points = HARDENED.map(|m| (f64::from(m), value(Form::Hardened, strategy, m)));
            series.push(Series::measured(format!("{strategy}, hardened"), colour, points));
        }
        exponent_figure(name, title, UNITS, series)
    };
    let first = |form, strategy: &str, m| dfdt(data, name(form, strategy, m));
    let spread = |form, strategy: &str, m| spread(data, form, strategy, m);
    vec![
        figure("wang-fig-4.1-dfdt", BEYOND_FLOOR, &first),
        figure("wang-fig-4.1-dsm", "From the first detection to the last", &spread),
    ]
}

const GROUPS: [u32; 3] = [9, 49, 199];

fn group_name(nodes: u32) -> String {
    format!("n={nodes}")
}

fn swim_claims(data: &Table) -> Vec<Claim> {
    // A ping in the first period is found out at the floor.
    let periods = |nodes| dfdt(data, group_name(nodes)) / PERIOD + 1.0;
    let values = GROUPS.map(|nodes| {
        let others = f64::from(nodes - 1);
        let expected = 1.0 / (1.0 - libm::pow(1.0 - 1.0 / others, others));
        (group_name(nodes), periods(nodes), expected)
    });
    vec![
        data.agrees("A crashed node is pinged after 1/(1-(1-1/(N-1))^(N-1)) periods", values),
        data.claim("In a large group after e/(e-1) periods", "1.582").between(
            periods(GROUPS[2]),
            1.56,
            1.6,
        ),
    ]
}

const PERIOD: f64 = 20.0;
