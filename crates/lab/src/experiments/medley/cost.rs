//! What it costs: figures 4.4 and 4.5; load, locality, and peace when nothing happens.

use super::{
    EXPONENTS, FIELD, Form, QUIET, STRATEGIES, at_least_percent, between, bounded, cell,
    difference, exponent_figure, listed, name, over_exponents, percent, ratio, reduction, shown,
    smallest, strategic, sweep,
};
use crate::{
    claim::{Claim, Estimate},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "wang-fig-4.4",
            title: "Medley's messages go one hop; passive feedback sends some of them farther",
            source: "Fig. 4.4",
            cells: |size| five(size.runs(1_000)),
            claims: figure_4_4_claims,
            figures: figure_4_4,
        },
        Experiment {
            id: "wang-fig-4.5",
            title: "Detection time and traffic together are least near m = 3",
            source: "Fig. 4.5",
            cells: |size| {
                let runs = size.runs(1_000);
                let mut cells = sweep(runs);
                for (strategy, _) in STRATEGIES {
                    let at = |m| cell(Form::Hardened, strategy, m, FIELD, runs);
                    // At m = 0 the strategies are SWIM with and without feedback; one is enough to compare with.
                    let exponents: &[u32] =
                        if strategy == "medley" { &[0, 3, 4, 5] } else { &[3, 4, 5] };
                    cells.extend(exponents.iter().map(|&m| at(m)));
                }
                cells
            },
            claims: figure_4_5_claims,
            figures: figure_4_5,
        },
        Experiment {
            id: "bw-medley-quiet",
            title: "While messages are fast nobody is suspected",
            source: "project: P9",
            cells: quiet_cells,
            claims: quiet_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "bw-medley-load",
            title: "A node sends as much in a large group as in a small one",
            source: "project: P6",
            cells: |size| {
                let largest = match size {
                    Size::Full => 1_024,
                    Size::Quick => 256,
                };
                let mut cells = Vec::new();
                for (form, strategy) in LOADS {
                    let sizes = SIZES.into_iter().filter(|&nodes| nodes <= largest);
                    cells.extend(sizes.map(|nodes| load(form, strategy, nodes, size)));
                }
                cells
            },
            claims: load_claims,
            figures: load_figure,
        },
        Experiment {
            id: "bw-medley-local",
            title: "The larger the exponent, the nearer the targets",
            source: "project: P10",
            cells: |size| {
                let steps = STEPS.into_iter().flat_map(|step| {
                    ["random", "grid"].map(|field| near(field, step, size.runs(200)))
                });
                steps.collect()
            },
            claims: local_claims,
            figures: local_figure,
        },
    ]
}

const SWIM: &str = "medley m=0";

/// SWIM and the four strategies at the recommended exponent.
fn five(runs: u64) -> Vec<Cell> {
    let at_3 = STRATEGIES.map(|(strategy, _)| cell(Form::Published, strategy, 3, FIELD, runs));
    [cell(Form::Published, "medley", 0, FIELD, runs)].into_iter().chain(at_3).collect()
}

fn figure_4_4_claims(table: &Table) -> Vec<Claim> {
    let near = |cell: &str| {
        let share = table.estimate(cell, "within_1_hop")?;
        Some(Estimate { value: 100.0 * share.value, half_width: 100.0 * share.half_width })
    };
    let at_3 = |strategy| near(&name(Form::Published, strategy, 3));
    let [medley, active, passive] = ["medley", "active", "passive"].map(at_3);
    let swim = near(SWIM);
    let between_both = difference(medley, passive);
    let above_swim = difference(passive, swim);
    vec![
        bounded(
            table,
            "At least 3 times as many of Medley's messages go a single hop as of SWIM's",
            "far fewer hops",
            ratio(medley, swim),
            3.0,
            f64::INFINITY,
        ),
        Claim::holds(
            "Active feedback does not change that: within 3 points",
            "about the same",
            format!("{} of active, {} of Medley", percent(active), percent(medley)),
            between(table, difference(active, medley), -3.0, 3.0),
        ),
        Claim::holds(
            "Passive feedback does: at least 3 points fewer, but more than SWIM",
            "slightly more hops",
            format!("{} of passive, {} of SWIM", percent(passive), percent(swim)),
            between(table, between_both, 3.0, f64::INFINITY)
                && between(table, above_swim, 0.0, f64::INFINITY),
        ),
    ]
}

fn figure_4_4(table: &Table) -> Vec<Figure> {
    let hops = [
        "within_1_hop",
        "within_2_hops",
        "within_3_hops",
        "within_4_hops",
        "within_5_hops",
        "within_6_hops",
    ];
    let row = |(colour, cell): (usize, Cell)| {
        let points =
            (1..).zip(hops).map(|(at, metric)| (f64::from(at), table.estimate(&cell.name, metric)));
        let label = if cell.name == SWIM { "SWIM".into() } else { cell.name.clone() };
        Series::measured(label, colour, points.collect::<Vec<_>>())
    };
    vec![Figure {
        name: "wang-fig-4.4".into(),
        title: "Share of messages that go so many hops or fewer".into(),
        x: Axis::linear("hops"),
        y: Axis::linear("share of messages"),
        series: five(1).into_iter().enumerate().map(row).collect(),
    }]
}

/// Product cost relative to that of SWIM in the same form.
fn cost(table: &Table, form: Form, strategy: &str, exponent: u32) -> Option<Estimate> {
    let of = |strategy, m| table.estimate(&name(form, strategy, m), "product_cost");
    ratio(of(strategy, exponent), of("medley", 0))
}

fn figure_4_5_claims(table: &Table) -> Vec<Claim> {
    let product = |strategy, m| table.estimate(&name(Form::Published, strategy, m), "product_cost");
    let saved = |strategy| reduction(product(strategy, 3), product("medley", 0));
    let band = |strategy, published: &str| {
        let saved = saved(strategy);
        Claim::holds(
            format!("At m = 3 {strategy} costs 22 to 45% less than SWIM"),
            published,
            percent(saved),
            between(table, saved, 22.0, 45.0),
        )
    };
    let least = smallest(EXPONENTS.map(|m| (m, product("medley", m))));
    let flat = ["active", "passive", "both"]
        .map(|strategy| (strategy, spread(table, Form::Published, strategy)));
    let widest = flat.into_iter().map(|(_, spread)| spread).collect::<Option<Vec<_>>>();
    let widest = widest.map(|all| all.into_iter().fold(0.0, f64::max));
    let mut claims = vec![
        band("medley", "35.2%"),
        band("active", "37.8%"),
        Claim::holds(
            "Active feedback does not cost more than none at m = 3",
            "37.8 and 35.2% below SWIM",
            format!("{} and {}", percent(saved("active")), percent(saved("medley"))),
            between(
                table,
                difference(product("active", 3), product("medley", 3)),
                f64::NEG_INFINITY,
                0.0,
            ),
        ),
        Claim::holds(
            "Medley costs least at an m from 2 to 4",
            "near 3",
            least.map_or_else(|| "nothing".into(), |(m, _)| format!("m = {m}")),
            least.is_some_and(|(m, _)| (2..=4).contains(&m)),
        ),
        Claim::holds(
            "With feedback the cost is flat from m = 3 to 5: within 6% of its middle",
            "slow rise",
            widest.map_or_else(|| "nothing".into(), |widest| format!("within {widest:.1}%")),
            widest.is_some_and(|widest| widest <= 6.0),
        ),
        Claim::holds(
            "Passive feedback and both save less than Medley alone at m = 3",
            "30 and 31.2%, not 35.2%",
            format!("{} and {}", percent(saved("passive")), percent(saved("both"))),
            ["passive", "both"].into_iter().all(|strategy| {
                between(table, difference(saved("medley"), saved(strategy)), 0.0, f64::INFINITY)
            }),
        ),
    ];
    claims.extend(hardened_4_5(table));
    claims
}

/// How far the cost is from its middle over m = 3 to 5, in percent.
fn spread(table: &Table, form: Form, strategy: &str) -> Option<f64> {
    let costs = [3, 4, 5].map(|m| cost(table, form, strategy, m).map(|one| one.value));
    let costs = costs.into_iter().collect::<Option<Vec<_>>>()?;
    let low = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = costs.iter().copied().fold(0.0, f64::max);
    Some(100.0 * (high - low) / (high + low))
}

fn hardened_4_5(table: &Table) -> Vec<Claim> {
    let saved = |strategy| {
        let cost = cost(table, Form::Hardened, strategy, 3)?;
        Some(Estimate { value: 100.0 * (1.0 - cost.value), half_width: 100.0 * cost.half_width })
    };
    let all = STRATEGIES.map(|(strategy, _)| saved(strategy));
    let flat = spread(table, Form::Hardened, "medley");
    vec![
        Claim::holds(
            "Hardened, every strategy costs at least 22% less than hardened SWIM at m = 3",
            "ours alone",
            format!("{}%", listed(all)),
            all.into_iter().all(|saved| between(table, saved, 22.0, f64::INFINITY)),
        ),
        Claim::holds(
            "Hardened, Medley without feedback is flat as well from m = 3 to 5: a bounded bag never forgets the far",
            "ours alone",
            flat.map_or_else(|| "nothing".into(), |flat| format!("within {flat:.1}%")),
            flat.is_some_and(|flat| flat <= 6.0),
        ),
    ]
}

fn figure_4_5(table: &Table) -> Vec<Figure> {
    let row = |(colour, (strategy, _)): (usize, (&'static str, &str))| {
        over_exponents(strategy, colour, |m| cost(table, Form::Published, strategy, m))
    };
    let mut series: Vec<Series> = STRATEGIES.into_iter().enumerate().map(row).collect();
    for (colour, strategy) in [(4, "medley"), (5, "both")] {
        let hardened = |m| cost(table, Form::Hardened, strategy, m);
        series.push(over_exponents(format!("{strategy}, hardened"), colour, hardened));
    }
    vec![exponent_figure(
        "wang-fig-4.5",
        "Square root of mean detection time times transmissions, SWIM = 1",
        "relative to SWIM",
        series,
    )]
}

/// Hop delays, of which the ways of this field have at most a dozen: up to 20 ms, twelve hops and back stay
/// below the ack timeout of 500 ms. With 200 ms they do not even stay below the period.
const FAST: &str = "20ms";
const SLOW: &str = "200ms";

fn quiet_name(form: Form, strategy: &str, phase: &str) -> String {
    let exponent = if strategy == "swim" { 0 } else { 3 };
    format!("{} {phase}", name(form, strategy, exponent))
}

fn quiet(form: Form, strategy: &str, phase: &str, runs: u64) -> Cell {
    let exponent = if strategy == "swim" { 0 } else { 3 };
    let cell = Cell::new(quiet_name(form, strategy, phase), QUIET, runs);
    let cell = cell
        .set("membership.phase", phase)
        .set("network.delay.low", FAST)
        .set("network.delay.high", FAST);
    strategic(cell, form, strategy, exponent)
}

fn quiet_modes() -> Vec<(Form, &'static str, &'static str)> {
    let mut modes = Vec::new();
    for form in [Form::Published, Form::Hardened] {
        for strategy in ["swim", "medley", "active", "passive", "both"] {
            modes.extend(["sync", "random"].map(|phase| (form, strategy, phase)));
        }
    }
    modes
}

fn quiet_cells(size: Size) -> Vec<Cell> {
    let runs = match size {
        Size::Full => 200,
        Size::Quick => 10,
    };
    let mut cells: Vec<Cell> = quiet_modes()
        .into_iter()
        .map(|(form, strategy, phase)| quiet(form, strategy, phase, runs))
        .collect();
    let slow = Cell::new("slow", QUIET, runs).set("membership.exponent", 0);
    cells.push(slow.set("network.delay.low", SLOW).set("network.delay.high", SLOW));
    cells
}

fn quiet_claims(table: &Table) -> Vec<Claim> {
    let suspicions = quiet_modes().into_iter().map(|(form, strategy, phase)| {
        table.summary(&quiet_name(form, strategy, phase), "false_suspicions")
    });
    let total =
        suspicions.map(|one| one.map(|one| one.mean * one.count as f64)).sum::<Option<f64>>();
    let slow = table.estimate("slow", "false_suspicions");
    vec![
        Claim::holds(
            "No strategy suspects anybody while a way and back takes less than the ack timeout",
            "0",
            total.map_or_else(|| "nothing".into(), |total| format!("{total} suspicions")),
            total.is_some_and(|total| total == 0.0),
        ),
        Claim::holds(
            "Where it takes longer than the period, suspicions do arise (or the count above could not be wrong)",
            "above 0",
            format!("{} a run", shown(slow)),
            slow.is_some_and(|slow| slow.value > 0.0),
        ),
    ]
}

const SIZES: [u32; 4] = [16, 64, 256, 1_024];

const LOADS: [(Form, &str); 4] = [
    (Form::Published, "swim"),
    (Form::Published, "medley"),
    (Form::Published, "both"),
    (Form::Hardened, "both"),
];

fn load_name(form: Form, strategy: &str, nodes: u32) -> String {
    let exponent = if strategy == "swim" { 0 } else { 3 };
    format!("{} n={nodes}", name(form, strategy, exponent))
}

/// A hundred periods at the density of the chapter.
fn load(form: Form, strategy: &str, nodes: u32, size: Size) -> Cell {
    let runs = match size {
        Size::Full => 20,
        Size::Quick => 4,
    };
    let cell = Cell::new(load_name(form, strategy, nodes), QUIET, runs).set("duration", "200s");
    let cell = super::scale::of_size(cell, nodes);
    strategic(cell, form, strategy, if strategy == "swim" { 0 } else { 3 })
}

/// Messages of a node in a period.
fn sent(table: &Table, form: Form, strategy: &str, nodes: u32) -> Option<Estimate> {
    let messages = table.estimate(&load_name(form, strategy, nodes), "messages")?;
    let share = 1.0 / (f64::from(nodes) * 100.0);
    Some(Estimate { value: messages.value * share, half_width: messages.half_width * share })
}

/// The sizes that were run.
fn sizes(table: &Table) -> impl Iterator<Item = u32> {
    let largest = if table.size() == Size::Full { 1_024 } else { 256 };
    SIZES.into_iter().filter(move |&nodes| nodes <= largest)
}

fn load_claims(table: &Table) -> Vec<Claim> {
    let exact = |strategy| {
        let values = sizes(table)
            .map(move |n| (format!("n={n}"), sent(table, Form::Published, strategy, n), 2.0));
        Claim::all_agree(
            format!("{strategy} sends two messages a node and period, whatever the group"),
            values,
        )
    };
    let growth = |form, sentence: &str| {
        let all: Vec<_> = sizes(table).map(|nodes| sent(table, form, "both", nodes)).collect();
        let growth = ratio(all.last().copied().flatten(), all.first().copied().flatten());
        let small = all.iter().all(|one| between(table, *one, 2.0, 2.5));
        Claim::holds(
            sentence,
            "O(1), not far above 2",
            format!(
                "{} from N = 16 on",
                all.iter().map(|one| shown(*one)).collect::<Vec<_>>().join(", ")
            ),
            small && between(table, growth, 0.0, 1.1),
        )
    };
    vec![
        exact("swim"),
        exact("medley"),
        growth(Form::Published, "Both feedbacks add complaints, but no growth with the group"),
        growth(
            Form::Hardened,
            "Hardened, comparing lists adds a little, but no growth with the group",
        ),
    ]
}

fn load_figure(table: &Table) -> Vec<Figure> {
    let row = |(colour, (form, strategy)): (usize, (Form, &'static str))| {
        let points = sizes(table).map(|n| (f64::from(n), sent(table, form, strategy, n)));
        let label =
            if form == Form::Hardened { format!("{strategy}, hardened") } else { strategy.into() };
        Series::measured(label, colour, points)
    };
    vec![Figure {
        name: "bw-medley-load".into(),
        title: "Messages of a node in a period, nobody crashes".into(),
        x: Axis::log("nodes"),
        y: Axis::linear("messages"),
        series: LOADS.into_iter().enumerate().map(row).collect(),
    }]
}

/// Exponents in halves.
const STEPS: [f64; 11] = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0];

fn near_name(field: &str, exponent: f64) -> String {
    format!("{field} m={exponent}")
}

fn near(field: &str, exponent: f64, runs: u64) -> Cell {
    let cell = Cell::new(near_name(field, exponent), QUIET, runs);
    let cell = cell.set("membership.exponent", exponent).set("duration", "200s");
    match field {
        "grid" => cell
            .set("network.placement.kind", "grid")
            .set("network.placement.side", "15.0")
            .set("network.placement.range", "4.0"),
        _ => cell,
    }
}

fn local_claims(table: &Table) -> Vec<Claim> {
    let hops = |field: &str, m| table.estimate(&near_name(field, m), "mean_hops");
    let mut claims = Vec::new();
    for field in ["grid", "random"] {
        let steps = STEPS.windows(2).map(|pair| {
            let rise = ratio(hops(field, pair[1]), hops(field, pair[0]));
            (pair[1], rise.map(|rise| Estimate { value: -rise.value, ..rise }))
        });
        // The smallest of the negatives is the largest rise.
        let worst = smallest(steps).map(|(m, rise)| (m, Estimate { value: -rise.value, ..rise }));
        claims.push(Claim::holds(
            format!("Mean hops do not rise with m ({field}, tolerance 2%)"),
            "non-increasing",
            worst.map_or_else(
                || "nothing".into(),
                |(m, rise)| format!("largest step, to m = {m}: times {rise}"),
            ),
            between(table, worst.map(|(_, rise)| rise), 0.0, 1.02),
        ));
    }
    let saved = reduction(hops("random", 3.0), hops("random", 0.0));
    claims.push(at_least_percent(
        table,
        "At m = 3 messages go less than half as far as SWIM's (random)",
        "ours alone",
        saved,
        50.0,
    ));
    claims
}

fn local_figure(table: &Table) -> Vec<Figure> {
    let row = |(colour, field): (usize, &'static str)| {
        let cells = STEPS.map(|m| (m, near_name(field, m)));
        Series::cells(field, colour, table, "mean_hops", cells)
    };
    vec![exponent_figure(
        "bw-medley-local",
        "Transmissions for each message",
        "hops",
        ["random", "grid"].into_iter().enumerate().map(row).collect(),
    )]
}
