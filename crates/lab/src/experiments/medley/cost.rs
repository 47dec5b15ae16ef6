//! What it costs: figures 4.4 and 4.5; load, locality, and peace when nothing happens.

use super::*;
use bellwether_sim::observe::Hops;

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
                for strategy in STRATEGIES {
                    let at = |&m: &u32| cell(Form::Hardened, strategy, m, runs);
                    cells.extend(hardened_exponents(strategy).iter().map(at));
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
                let all =
                    |(form, strategy)| sizes(size).map(move |n| load(form, strategy, n, size));
                LOADS.into_iter().flat_map(all).collect()
            },
            claims: load_claims,
            figures: load_figure,
        },
        Experiment {
            id: "bw-medley-local",
            title: "The larger the exponent, the nearer the targets",
            source: "project: P10",
            cells: |size| {
                let both = |step| ["random", "grid"].map(|field| near(field, step, size.runs(200)));
                STEPS.into_iter().flat_map(both).collect()
            },
            claims: local_claims,
            figures: local_figure,
        },
    ]
}

/// The chapter's field, on which nobody crashes.
fn in_peace(name: String, runs: u64) -> Cell {
    Cell::new(name, MEDLEY_FIELD, runs).set("fault", "[]")
}

const SWIM: &str = "medley m=0";

/// SWIM and the four strategies at the recommended exponent.
fn five(runs: u64) -> Vec<Cell> {
    let at_3 = STRATEGIES.map(|strategy| cell(Form::Published, strategy, 3, runs));
    [cell(Form::Published, "medley", 0, runs)].into_iter().chain(at_3).collect()
}

fn figure_4_4_claims(data: &Table) -> Vec<Claim> {
    let near = |cell: &str| data.estimate(cell, Metric::WithinHops(Hops::ALL[0])) * 100.0;
    let [medley, active, passive] = ["medley m=3", "active m=3", "passive m=3"].map(near);
    let swim = near(SWIM);
    vec![
        data.claim(
            "How many times as many of Medley's messages as of SWIM's go a single hop",
            "far fewer hops",
        )
        .at_least(medley / swim, 3.0),
        data.claim("Active feedback does not change that, points", "about the same")
            .showing(format!("{} of active, {} of Medley", percent(active), percent(medley)))
            .between(active - medley, -3.0, 3.0),
        data.claim(
            "Passive feedback does: at least 3 points fewer, but more than SWIM",
            "slightly more hops",
        )
        .holds(
            format!("{} of passive, {} of SWIM", percent(passive), percent(swim)),
            data.is_between(medley - passive, 3.0, f64::INFINITY)
                && data.is_between(passive - swim, 0.0, f64::INFINITY),
        ),
    ]
}

fn figure_4_4(data: &Table) -> Vec<Figure> {
    let row = |(colour, cell): (usize, Cell)| {
        let share = |hops: Hops| data.estimate(&cell.name, Metric::WithinHops(hops));
        let points = Hops::ALL.map(|hops| (hops.get() as f64, share(hops)));
        let label = if cell.name == SWIM { "SWIM" } else { &cell.name };
        Series::measured(label, colour, points)
    };
    let axes = (Axis::linear("hops"), Axis::linear("share of messages"));
    let title = "Share of messages that go so many hops or fewer";
    vec![Figure::new("wang-fig-4.4", title, axes, five(1).into_iter().enumerate().map(row))]
}

/// At m = 0 the strategies are SWIM with and without feedback; one is enough to compare with.
fn hardened_exponents(strategy: &str) -> &'static [u32] {
    if strategy == "medley" { &[0, 3, 4, 5] } else { &[3, 4, 5] }
}

/// Product cost relative to that of SWIM in the same form.
fn cost(data: &Table, form: Form, strategy: &str, exponent: u32) -> Estimate {
    let of = |strategy, m| data.estimate(name(form, strategy, m), Metric::ProductCost);
    of(strategy, exponent) / of("medley", 0)
}

/// By how many percent it is below SWIM's at m = 3.
fn saved(data: &Table, form: Form, strategy: &str) -> Estimate {
    (cost(data, form, strategy, 3) - 1.0) * -100.0
}

fn figure_4_5_claims(data: &Table) -> Vec<Claim> {
    let product =
        |strategy, m| data.estimate(name(Form::Published, strategy, m), Metric::ProductCost);
    let saved = |strategy| saved(data, Form::Published, strategy);
    let band = |strategy, published: &str| {
        let sentence = format!("By how much {strategy} costs less than SWIM at m = 3");
        data.claim(sentence, published).percent().between(saved(strategy), 22.0, 45.0)
    };
    let (cheapest, lowest) =
        least(EXPONENTS.map(|m| (m, product("medley", m)))).unwrap_or((0, Estimate::NOTHING));
    let mut claims = vec![
        band("medley", "35.2%"),
        band("active", "37.8%"),
        data.claim(
            "Active feedback does not cost more than none at m = 3",
            "37.8 and 35.2% below SWIM",
        )
        .holds(
            format!("{} and {}", percent(saved("active")), percent(saved("medley"))),
            data.is_between(product("active", 3) - product("medley", 3), f64::NEG_INFINITY, 0.0),
        ),
        data.claim("Medley costs least at an m from 2 to 4", "near 3")
            .holds(format!("m = {cheapest}"), lowest.is_there() && (2..=4).contains(&cheapest)),
        data.claim(
            "How far with feedback the cost is from its middle from m = 3 to 5",
            "slow rise",
        )
        .percent()
        .at_most(["active", "passive", "both"].map(|one| spread(data, Form::Published, one)), 6.0),
        data.claim(
            "Passive feedback and both save less than Medley alone at m = 3",
            "30 and 31.2%, not 35.2%",
        )
        .holds(
            format!("{} and {}", percent(saved("passive")), percent(saved("both"))),
            ["passive", "both"]
                .into_iter()
                .all(|one| data.is_between(saved("medley") - saved(one), 0.0, f64::INFINITY)),
        ),
    ];
    claims.extend(hardened_4_5(data));
    claims
}

/// How far the cost is from its middle over m = 3 to 5, in percent.
fn spread(data: &Table, form: Form, strategy: &str) -> Estimate {
    let costs = [3, 4, 5].map(|m| ((), Estimate::exact(cost(data, form, strategy, m).value)));
    let (low, high) = (value_of(least(costs)), value_of(most(costs)));
    (high - low) / (high + low) * 100.0
}

fn hardened_4_5(data: &Table) -> Vec<Claim> {
    vec![
        data
            .claim("Hardened, by how much every strategy costs less than hardened SWIM at m = 3", "ours alone")
            .percent()
            .at_least(STRATEGIES.map(|strategy| saved(data, Form::Hardened, strategy)), 22.0),
        data
            .claim(
                "Hardened, Medley without feedback is flat as well from m = 3 to 5: a bounded bag never forgets the far",
                "ours alone",
            )
            .percent()
            .at_most(spread(data, Form::Hardened, "medley"), 6.0),
    ]
}

fn figure_4_5(data: &Table) -> Vec<Figure> {
    let row = |(colour, strategy): (usize, &'static str)| {
        over_exponents(strategy, colour, |m| cost(data, Form::Published, strategy, m))
    };
    let mut series: Vec<Series> = STRATEGIES.into_iter().enumerate().map(row).collect();
    for (colour, strategy) in [(4, "medley"), (5, "both")] {
        let points = hardened_exponents(strategy)
            .iter()
            .map(|&m| (f64::from(m), cost(data, Form::Hardened, strategy, m)));
        series.push(Series::measured(format!("{strategy}, hardened"), colour, points));
    }
    let title = "Square root of mean detection time times transmissions, SWIM = 1";
    vec![exponent_figure("wang-fig-4.5", title, "relative to SWIM", series)]
}

/// Of a strategy, or of SWIM.
fn exponent(strategy: &str) -> u32 {
    if strategy == "swim" { 0 } else { 3 }
}

fn quiet_name(form: Form, strategy: &str, phase: &str) -> String {
    format!("{} {phase}", name(form, strategy, exponent(strategy)))
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

/// The ways of this field have at most a dozen hops: at 20 ms each, there and back stays below the ack timeout of
/// 500 ms. At 200 ms it does not even stay below the period.
fn quiet_cells(size: Size) -> Vec<Cell> {
    let runs = size.pick(200, 10);
    let delayed =
        |cell: Cell, hop: &str| cell.set("network.delay.low", hop).set("network.delay.high", hop);
    let quiet = |(form, strategy, phase)| {
        let cell = in_peace(quiet_name(form, strategy, phase), runs).set("membership.phase", phase);
        strategic(delayed(cell, "20ms"), form, strategy, exponent(strategy))
    };
    let mut cells: Vec<Cell> = quiet_modes().into_iter().map(quiet).collect();
    cells.push(delayed(in_peace("slow".into(), runs).set("membership.exponent", 0), "200ms"));
    cells
}

fn quiet_claims(data: &Table) -> Vec<Claim> {
    let suspicions = quiet_modes().into_iter().map(|(form, strategy, phase)| {
        data.estimate(quiet_name(form, strategy, phase), Metric::FalseSuspicions)
    });
    let slow = data.estimate("slow", Metric::FalseSuspicions);
    vec![
        data
            .claim("Suspicions by any strategy while a way and back takes less than the ack timeout", "0")
            .digits(0)
            .exactly(suspicions.collect::<Vec<_>>(), 0.0),
        data
            .claim(
                "Where it takes longer than the period, suspicions do arise (or the count above could not be wrong)",
                "above 0",
            )
            .holds(format!("{slow} a run"), slow.value > 0.0),
    ]
}

const LOADS: [(Form, &str); 4] = [
    (Form::Published, "swim"),
    (Form::Published, "medley"),
    (Form::Published, "both"),
    (Form::Hardened, "both"),
];

fn load_name(form: Form, strategy: &str, nodes: u32) -> String {
    format!("{} n={nodes}", name(form, strategy, exponent(strategy)))
}

/// A hundred periods at the density of the chapter.
fn load(form: Form, strategy: &str, nodes: u32, size: Size) -> Cell {
    let cell = in_peace(load_name(form, strategy, nodes), size.pick(20, 4)).set("duration", "200s");
    strategic(of_size(cell, nodes), form, strategy, exponent(strategy))
}

/// Messages of a node in a period.
fn sent(data: &Table, form: Form, strategy: &str, nodes: u32) -> Estimate {
    let messages = data.estimate(load_name(form, strategy, nodes), Metric::Messages);
    messages / (f64::from(nodes) * 100.0)
}

/// The sizes that are run.
fn sizes(size: Size) -> impl Iterator<Item = u32> {
    size.pick(&[16, 64, 256, 1_024][..], &[16, 64, 256]).iter().copied()
}

fn load_claims(data: &Table) -> Vec<Claim> {
    let exact = |strategy| {
        let sent = |n| sent(data, Form::Published, strategy, n);
        let sentence =
            format!("{strategy} sends two messages a node and period, whatever the group");
        data.agrees(sentence, sizes(data.size()).map(|n| (format!("n={n}"), sent(n), 2.0)))
    };
    let growth = |form, sentence: &str| {
        let all: Vec<_> = sizes(data.size()).map(|nodes| sent(data, form, "both", nodes)).collect();
        let small = all.iter().all(|&one| data.is_between(one, 2.0, 2.5));
        let growth = all[all.len() - 1] / all[0];
        let sentence =
            format!("{sentence}: 2 to 2.5, of the largest at most 1.1 times the smallest");
        data.claim(sentence, "O(1), not far above 2").holds(
            format!("{} from N = 16 on", list(all)),
            small && data.is_between(growth, 0.0, 1.1),
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

fn load_figure(data: &Table) -> Vec<Figure> {
    let row = |(colour, (form, strategy)): (usize, (Form, &'static str))| {
        let points = sizes(data.size()).map(|n| (f64::from(n), sent(data, form, strategy, n)));
        let hardened = if form == Form::Hardened { ", hardened" } else { "" };
        Series::measured(format!("{strategy}{hardened}"), colour, points)
    };
    let title = "Messages of a node in a period, nobody crashes";
    let axes = (Axis::log("nodes"), Axis::linear("messages"));
    vec![Figure::new("bw-medley-load", title, axes, LOADS.into_iter().enumerate().map(row))]
}

/// Exponents in halves.
const STEPS: [f64; 11] = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0];

fn near_name(field: &str, exponent: f64) -> String {
    format!("{field} m={exponent}")
}

fn near(field: &str, exponent: f64, runs: u64) -> Cell {
    let cell = in_peace(near_name(field, exponent), runs);
    let cell = cell.set("membership.exponent", exponent).set("duration", "200s");
    if field == "grid" { on_grid(cell) } else { cell }
}

fn local_claims(data: &Table) -> Vec<Claim> {
    let hops = |field: &str, m| data.estimate(near_name(field, m), Metric::MeanHops);
    let mut claims = Vec::new();
    for field in ["grid", "random"] {
        let steps =
            STEPS.windows(2).map(|pair| (pair[1], hops(field, pair[1]) / hops(field, pair[0])));
        let (shown, worst) =
            extreme(most(steps), |m, rise| format!("largest step, to m = {m}: times {rise}"));
        let sentence = format!("Mean hops do not rise with m, times ({field})");
        claims.push(data.claim(sentence, "non-increasing").showing(shown).at_most(worst, 1.02));
    }
    claims.push(
        data.claim("By how much less far than SWIM's messages go at m = 3 (random)", "ours alone")
            .percent()
            .at_least(reduction(hops("random", 3.0), hops("random", 0.0)), 50.0),
    );
    claims
}

fn local_figure(data: &Table) -> Vec<Figure> {
    let row = |(colour, field): (usize, &'static str)| {
        let cells = STEPS.map(|m| (m, near_name(field, m)));
        Series::cells(field, colour, data, Metric::MeanHops, cells)
    };
    let series = ["random", "grid"].into_iter().enumerate().map(row).collect();
    vec![exponent_figure("bw-medley-local", "Transmissions for each message", "hops", series)]
}
