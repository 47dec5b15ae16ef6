//! Several crashes at once: figures 4.2 and 4.3.

use super::*;

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "wang-fig-4.2",
            title: "Half of the group may crash at once, and each crash is found about as soon",
            source: "Fig. 4.2",
            cells: |size| {
                let cell = |rival| CRASHES.map(|crashes| several(rival, crashes, size.runs(1_000)));
                RIVALS.into_iter().flat_map(cell).collect()
            },
            claims: figure_4_2_claims,
            figures: figure_4_2,
        },
        Experiment {
            id: "wang-fig-4.3",
            title: "When a whole cluster crashes, only the far can tell: passive feedback asks them",
            source: "Fig. 4.3",
            cells: |size| sweep(size.runs(1_000)).into_iter().map(clustered).collect(),
            claims: figure_4_3_claims,
            figures: figure_4_3,
        },
    ]
}

const CRASHES: [u32; 7] = [1, 4, 8, 12, 16, 20, 24];
const RIVALS: [(&str, &str, u32); 3] =
    [("SWIM", "medley", 0), ("medley", "medley", 3), ("both", "both", 3)];

fn several_name(label: &str, crashes: u32) -> String {
    format!("{label} f={crashes}")
}

fn several((label, strategy, exponent): (&str, &str, u32), crashes: u32, runs: u64) -> Cell {
    let cell = Cell::new(several_name(label, crashes), MEDLEY_FIELD, runs);
    let cell = cell.set("fault.0.count", crashes).set("fault.0.keep", "connected");
    strategic(cell, Form::Published, strategy, exponent)
}

fn figure_4_2_claims(data: &Table) -> Vec<Claim> {
    let first = |label, crashes| first_detection(data, several_name(label, crashes));
    let later = |label| reduction(first(label, 24), first(label, 1)) * -1.0;
    let [swim, medley, both] = ["SWIM", "medley", "both"].map(later);
    let unfound =
        RIVALS.map(|(label, ..)| data.estimate(several_name(label, 24), Metric::Undetected));
    vec![
        data.claim("How much later SWIM finds each of 24 crashes than a single one", "12.3%")
            .percent()
            .between(swim, 4.0, 18.0),
        data.claim("By how many points more Medley loses than SWIM", "20.6%, not 12.3%")
            .showing(format!("{}, not {}", percent(medley), percent(swim)))
            .at_least(medley - swim, 0.0),
        data.claim("By how many points more both feedbacks lose than Medley", "15.8%")
            .showing(percent(both))
            .at_most(both - medley, 1.0),
        data.claim("What they lose (SWIM, Medley, both)", "at most 20.6%")
            .percent()
            .at_most([swim, medley, both], 35.0),
        data.claim(
            "How many of 24 are not found before the run ends (SWIM, Medley, both)",
            "ours alone: else the means say little",
        )
        .at_most(unfound, 0.24),
    ]
}

fn figure_4_2(data: &Table) -> Vec<Figure> {
    let mut series = Vec::new();
    for (colour, (label, ..)) in RIVALS.into_iter().enumerate() {
        let points =
            |metric| CRASHES.map(|f| (f64::from(f), time(data, several_name(label, f), metric)));
        series.push(Series::measured(label, colour, points(Metric::FirstDetection)));
        for (words, metric) in
            [("earliest", Metric::EarliestDetection), ("latest", Metric::LatestDetection)]
        {
            let line = points(metric).map(|(f, value)| (f, value.value));
            series.push(Series::analytic(format!("{label}, {words}"), colour, line));
        }
    }
    let title =
        "First detection of each of several crashes at once: mean, soonest and latest found";
    let axes = (Axis::linear("crashes"), Axis::linear(UNITS));
    vec![Figure::new("wang-fig-4.2", title, axes, series)]
}

/// The five clusters of the thesis, of which the rest does without any: a whole one crashes.
fn clustered(cell: Cell) -> Cell {
    cell.set("network.placement", r#"{ kind = "cluster", range = 4.0, robust = true }"#)
        .set("fault", r#"[{ at = "180s", kind = "crash", cluster = "random" }]"#)
}

fn figure_4_3_claims(data: &Table) -> Vec<Claim> {
    let first = |strategy, m| first_detection(data, name(Form::Published, strategy, m));
    let saved = |strategy| reduction(first(strategy, 3), first("medley", 3));
    let active = [0, 1, 2, 3].map(|m| (m, reduction(first("active", m), first("medley", m)).abs()));
    let (farthest, active) =
        extreme(most(active), |m, off| format!("farthest at m = {m}: {}", percent(off)));
    vec![
        data.claim("At m = 1 Medley is still flat, by m = 0", "1.05")
            .at_most(first("medley", 1) / first("medley", 0), 1.15),
        data.claim("How many times as long it takes at m = 3 as at m = 0", "1.94")
            .at_least(first("medley", 3) / first("medley", 0), 1.4),
        data.claim("It rises from there on", "228, 290, 422, 514, 528 for m = 1 to 5")
            .digits(1)
            .rising([1, 2, 3, 4, 5].map(|m| first("medley", m))),
        data.claim("How much sooner passive feedback is at m = 3", "27%")
            .percent()
            .at_least(saved("passive"), 15.0),
        data.claim("How much sooner both are at m = 3", "28%")
            .percent()
            .at_least(saved("both"), 15.0),
        data.claim("How far active feedback is from Medley up to m = 3", "at most 1.7% off")
            .percent()
            .showing(farthest)
            .at_most(active, 10.0),
    ]
}

fn figure_4_3(data: &Table) -> Vec<Figure> {
    /// The vector figure of the authors.
    const PUBLISHED: [[f64; 6]; 4] = [
        [217.0, 228.0, 290.0, 422.0, 514.0, 528.0],
        [218.0, 228.0, 295.0, 424.0, 473.0, 460.0],
        [217.0, 226.0, 260.0, 308.0, 336.0, 352.0],
        [217.0, 227.0, 261.0, 304.0, 330.0, 341.0],
    ];
    let mut series = Vec::new();
    for (colour, (strategy, published)) in STRATEGIES.into_iter().zip(PUBLISHED).enumerate() {
        let first = |m| first_detection(data, name(Form::Published, strategy, m));
        series.push(over_exponents(strategy, colour, first));
        let line = EXPONENTS.map(f64::from).into_iter().zip(published);
        series.push(Series::analytic(format!("{strategy}, published"), colour, line));
    }
    let title = "First detection of each crash when a whole cluster crashes";
    vec![exponent_figure("wang-fig-4.3", title, UNITS, series)]
}
