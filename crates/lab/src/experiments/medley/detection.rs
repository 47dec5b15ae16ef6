//! How soon a crash is found and how fast the news spreads: figures 3.1 and 4.1, and SWIM's expectation.

use super::{
    EXPONENTS, FIELD, FLOOR, Form, STRATEGIES, at_least_percent, between, beyond_the_floor,
    bounded, cell, dfdt, exponent_figure, is_ascending, largest, listed, name, over_exponents, p95,
    percent, ratio, reduction, smallest, sweep, time,
};
use crate::{
    claim::{Claim, Estimate, Verdict},
    experiment::{Cell, Experiment, Size},
    figure::Figure,
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "wang-fig-3.1",
            title: "Preferring the near makes the first detection of a crash take longer",
            source: "Fig. 3.1",
            cells: |size| {
                let on = |field, m| on_field(field, m, size.runs(1_000).max(200));
                // No claim is made of the grid: it is drawn for comparison.
                let fields = if size == Size::Full { &FIELDS[..] } else { &FIELDS[..2] };
                fields.iter().flat_map(|&field| EXPONENTS.map(|m| on(field, m))).collect()
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
                let pulled =
                    ["medley", "both"].map(|one| cell(Form::PullOnly, one, 3, FIELD, runs));
                cells.extend(pulled);
                for (strategy, _) in STRATEGIES {
                    cells.extend([3, 5].map(|m| cell(Form::Hardened, strategy, m, FIELD, runs)));
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
                    let cell = Cell::new(group_name(nodes), MESH, size.runs(10_000));
                    cell.set("network.nodes", nodes)
                };
                GROUPS.map(group).into()
            },
            claims: swim_claims,
            figures: |_| Vec::new(),
        },
    ]
}

const FIELDS: [&str; 3] = ["random", "cluster", "grid"];

fn field_name(field: &str, exponent: u32) -> String {
    format!("{field} m={exponent}")
}

fn on_field(field: &str, exponent: u32, runs: u64) -> Cell {
    let cell = Cell::new(field_name(field, exponent), FIELD, runs);
    let cell = cell.set("membership.exponent", exponent);
    match field {
        "cluster" => cell
            .set("network.placement.kind", "cluster")
            .set("network.placement.range", "4.0")
            .set("fault.0.keep", "connected"),
        "grid" => cell
            .set("network.placement.kind", "grid")
            .set("network.placement.side", "15.0")
            .set("network.placement.range", "4.0"),
        _ => cell,
    }
}

/// The smallest ratio of a value to the one at the exponent before, from 2 up.
fn least_rise(value: impl Fn(u32) -> Option<Estimate>) -> Option<(u32, Estimate)> {
    smallest([3, 4, 5].map(|m| (m, ratio(value(m), value(m - 1)))))
}

fn figure_3_1_claims(table: &Table) -> Vec<Claim> {
    let mean = |field: &str, m| time(table, &field_name(field, m), "first_detection");
    let tail = |field: &str, m| p95(table, &field_name(field, m), "first_detection");
    let mut claims = Vec::new();
    for field in ["random", "cluster"] {
        for (what, least) in
            [("mean", least_rise(|m| mean(field, m))), ("P95", least_rise(|m| tail(field, m)))]
        {
            let value = least.map(|(_, rise)| rise);
            claims.push(Claim::holds(
                format!(
                    "The {what} first detection does not fall from m = 2 up ({field}, tolerance 3%)"
                ),
                "grows sharply",
                least.map_or_else(
                    || "nothing".into(),
                    |(m, rise)| format!("least step, to m = {m}: times {rise}"),
                ),
                between(table, value, 0.97, f64::INFINITY),
            ));
        }
    }
    let late = |m| beyond_the_floor(tail("random", m));
    claims.push(bounded(
        table,
        "P95 of dfdt at m = 5 is at least twice that at m = 1 (random)",
        "exponential in m",
        ratio(late(5), late(1)),
        2.0,
        f64::INFINITY,
    ));
    let never = ["random", "cluster"].map(|field| {
        table.summary(&field_name(field, 5), "undetected").map(|undetected| undetected.mean)
    });
    claims.push(Claim::holds(
        "Hardly a crash is left unfound when the run ends, even at m = 5 (random, cluster)",
        "ours alone: below 2%, else the means say little",
        never
            .map(|share| share.map_or("nothing".into(), |share| format!("{:.1}%", 100.0 * share)))
            .join(", "),
        never.into_iter().all(|share| share.is_some_and(|share| share < 0.02)),
    ));
    claims
}

fn figure_3_1(table: &Table) -> Vec<Figure> {
    let mut series = Vec::new();
    for (colour, field) in FIELDS.into_iter().enumerate() {
        let at = |m| field_name(field, m);
        let mean = |m| time(table, &at(m), "first_detection");
        series.push(over_exponents(format!("{field}, mean"), colour, mean));
        let tail = |m| {
            // The bar belongs to the mean: its place is known no better than to a period or two.
            p95(table, &at(m), "first_detection").map(|one| Estimate::exact(one.value))
        };
        series.push(over_exponents(format!("{field}, P95"), colour + 3, tail));
    }
    vec![exponent_figure(
        "wang-fig-3.1",
        "First detection of a crash, Medley without feedback",
        "time units of 100 ms",
        series,
    )]
}

fn figure_4_1_claims(table: &Table) -> Vec<Claim> {
    let cell = |strategy, m| name(Form::Published, strategy, m);
    let first = |strategy, m| dfdt(table, &cell(strategy, m));
    let spread = |strategy, m| time(table, &cell(strategy, m), "dissemination");
    let best_first = |strategy| {
        largest(EXPONENTS.map(|m| (m, reduction(first(strategy, m), first("medley", m)))))
    };
    let best_spread = |strategy| {
        largest(EXPONENTS.map(|m| (m, reduction(spread(strategy, m), spread("medley", m)))))
    };
    let best = |what: &str, published: &str, best: Option<(u32, Estimate)>, low| {
        let at = best.map_or_else(String::new, |(m, _)| format!(" (best at m = {m})"));
        let sentence = format!("{what} by {low}% at some m{at}");
        at_least_percent(table, sentence, published, best.map(|(_, value)| value), low)
    };
    let orders = [3, 4, 5]
        .map(|m| ["both", "passive", "active", "medley"].map(|strategy| spread(strategy, m)));
    let tail = |strategy| beyond_the_floor(p95(table, &cell(strategy, 3), "first_detection"));
    let tail = reduction(tail("both"), tail("medley"));
    let spread_at_3 = reduction(spread("both", 3), spread("medley", 3));
    let mut claims = vec![
        best("Active feedback shortens dfdt", "31.1%", best_first("active"), 20.0),
        best("Both shorten dsm", "54.6%", best_spread("both"), 35.0),
        best("Passive feedback shortens dsm", "44.5%", best_spread("passive"), 30.0),
        best("Active feedback shortens dsm", "31.6%", best_spread("active"), 10.0),
        Claim::holds(
            "dsm of both ≤ passive ≤ active ≤ Medley at m = 3, 4, 5",
            "in this order",
            orders.map(listed).join("; "),
            orders.iter().all(|order| is_ascending(order)),
        ),
        near("Both shorten P95 of dfdt at m = 3 by 31.2%", tail, 31.2),
        Claim {
            recorded: Verdict::Partly,
            reason: Some(
                "the text has news on all messages, the code that was published on answers only (M-11): the next claim"
                    .into(),
            ),
            ..near("Both shorten dsm at m = 3 by 47.2%", spread_at_3, 47.2)
        },
    ];
    claims.push(pulled(table, spread_at_3));
    claims.extend(hardened_4_1(table));
    claims
}

/// A reduction that agrees with the published one within four standard errors, or at least is one.
fn near(sentence: &str, value: Option<Estimate>, published: f64) -> Claim {
    let verdict = match value {
        Some(value) if value.errors_from(published) <= 4.0 => Verdict::Reproduced,
        Some(value) if value.value > 0.0 => Verdict::Partly,
        _ => Verdict::NotReproduced,
    };
    Claim::judged(sentence, format!("{published}%"), percent(value), verdict)
}

/// M-11: the text has news on every message, the reference code on answers only.
fn pulled(table: &Table, pushed: Option<Estimate>) -> Claim {
    let spread = |strategy| time(table, &name(Form::PullOnly, strategy, 3), "dissemination");
    let pulled = reduction(spread("both"), spread("medley"));
    Claim::holds(
        "The published 47.2% lie between what both save with news on all messages and on answers only (M-11)",
        "47.2%",
        format!("{} and {}", percent(pushed), percent(pulled)),
        between(table, pushed, 0.0, 47.2) && between(table, pulled, 47.2, 100.0),
    )
}

fn hardened_4_1(table: &Table) -> Vec<Claim> {
    let missing = |form, strategy, m| table.summary(&name(form, strategy, m), "incomplete");
    let published = missing(Form::Published, "medley", 5).map(|summary| 100.0 * summary.mean);
    let hardened = STRATEGIES
        .map(|(strategy, _)| missing(Form::Hardened, strategy, 5).map(|one| 100.0 * one.mean));
    let share = |share: Option<f64>| share.map_or("nothing".into(), |one| format!("{one:.2}%"));
    let spread = |form, strategy, m| time(table, &name(form, strategy, m), "dissemination");
    let faster = |m| {
        let [published, hardened] =
            [Form::Published, Form::Hardened].map(|form| spread(form, "medley", m));
        reduction(hardened, published)
    };
    let both = reduction(spread(Form::Hardened, "both", 3), spread(Form::Hardened, "medley", 3));
    vec![
        Claim::holds(
            "Hardened, everybody hears of the crash before the run ends, at m = 5 too",
            format!("as published {} never hear of it (Medley)", share(published)),
            hardened.map(share).join(", "),
            hardened.into_iter().all(|share| share.is_some_and(|share| share < 0.01)),
        ),
        Claim::holds(
            "Hardened, Medley without feedback spreads the news faster at m = 5, since a bounded bag reaches the far",
            "ours alone",
            percent(faster(5)),
            between(table, faster(5), 0.0, f64::INFINITY),
        ),
        at_least_percent(
            table,
            "Hardened, both feedbacks shorten dsm at m = 3 all the same",
            "ours alone",
            both,
            10.0,
        ),
    ]
}

fn figure_4_1(table: &Table) -> Vec<Figure> {
    let series = |value: &dyn Fn(&str, u32) -> Option<Estimate>| {
        let row = |(colour, (strategy, _)): (usize, (&'static str, &str))| {
            over_exponents(strategy, colour, |m| value(strategy, m))
        };
        let mut all: Vec<_> = STRATEGIES.into_iter().enumerate().map(row).collect();
        for (colour, strategy) in [(4, "medley"), (5, "both")] {
            let hardened = |m| value(&format!("hardened {strategy}"), m);
            all.push(over_exponents(format!("{strategy}, hardened"), colour, hardened));
        }
        all
    };
    let cell = |strategy: &str, m| format!("{strategy} m={m}");
    let first = |strategy: &str, m| dfdt(table, &cell(strategy, m));
    let spread = |strategy: &str, m| time(table, &cell(strategy, m), "dissemination");
    let y = "time units of 100 ms";
    vec![
        exponent_figure(
            "wang-fig-4.1-dfdt",
            "First detection less the 180 units it takes at least",
            y,
            series(&first),
        ),
        exponent_figure(
            "wang-fig-4.1-dsm",
            "From the first detection to the last",
            y,
            series(&spread),
        ),
    ]
}

/// Everybody in reach of everybody, targets drawn independently: SWIM's own model. The crash comes just before a tick.
const MESH: &str = r#"
    name = "SWIM"
    duration = "46s"
    [network]
    nodes = 49
    [membership]
    kind = "medley"
    form = "as-published"
    phase = "sync"
    selection = "independent"
    exponent = 0
    feedback = "none"
    [[fault]]
    at = "4s"
    kind = "crash"
    count = 1
"#;

const GROUPS: [u32; 3] = [9, 49, 199];

fn group_name(nodes: u32) -> String {
    format!("n={nodes}")
}

fn swim_claims(table: &Table) -> Vec<Claim> {
    let values = GROUPS.map(|nodes| {
        let others = f64::from(nodes - 1);
        let expected = 1.0 / (1.0 - libm::pow(1.0 - 1.0 / others, others));
        // A ping in the first period is found out at the floor.
        let periods = time(table, &group_name(nodes), "first_detection").map(|first| Estimate {
            value: (first.value - FLOOR) / PERIOD + 1.0,
            half_width: first.half_width / PERIOD,
        });
        (group_name(nodes), periods, expected)
    });
    let large = values[2].1;
    vec![
        Claim::all_agree("A crashed node is pinged after 1/(1-(1-1/(N-1))^(N-1)) periods", values),
        bounded(table, "In a large group after e/(e-1) periods", "1.582", large, 1.56, 1.60),
    ]
}

const PERIOD: f64 = 20.0;
