//! P3: with bags a crash is found in bounded time, and no run says otherwise.

use crate::{
    claim::{Claim, short},
    experiment::{Cell, Experiment},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![Experiment {
        id: "bw-medley-bound",
        title: "With bags that are bounded, no crash is found later than they allow",
        source: "project: P3",
        cells: |size| {
            let cell = |group, caution| bag(group, caution, size.runs(10_000));
            [false, true].into_iter().flat_map(|one| GROUPS.map(|group| cell(group, one))).collect()
        },
        claims: bound_claims,
        figures: |_| Vec::new(),
    }]
}

/// The name, the nodes, and whether they are on a field: then the near are preferred.
const GROUPS: [(&str, u32, bool); 4] = [
    ("mesh n=2", 2, false),
    ("mesh n=3", 3, false),
    ("mesh n=8", 8, false),
    ("field n=8", 8, true),
];

fn bag_name(group: &str, caution: bool) -> String {
    format!("{group} {}", if caution { "cautious" } else { "rash" })
}

fn bag((group, nodes, field): (&str, u32, bool), caution: bool, runs: u64) -> Cell {
    let cell = Cell::new(bag_name(group, caution), BAG, runs);
    let cell = cell.set("network.nodes", nodes).set("membership.caution", caution);
    if !field {
        return cell;
    }
    let placement = r#"{ kind = "random", side = 8.0, range = 4.0, robust = true }"#;
    cell.set("network.placement", placement).set("membership.exponent", 3)
}

/// Hardened, so that bags are capped.
const BAG: &str = r#"
    name = "one crash, bags"
    duration = "120s"
    [network]
    nodes = 8
    delay = { kind = "uniform", low = "0ms", high = "5ms" }
    [membership]
    kind = "medley"
    exponent = 0
    feedback = "none"
    [[fault]]
    at = "20s"
    spread = "20s"
    kind = "crash"
    count = 1
"#;

fn bound_claims(table: &Table) -> Vec<Claim> {
    // All runs of the groups together.
    let total = |caution, metric: &str| {
        let sum = |group| table.summary(&bag_name(group, caution), metric);
        let all = GROUPS.map(|(group, ..)| sum(group)).into_iter().collect::<Option<Vec<_>>>()?;
        let runs: usize = all.iter().map(|one| one.count).sum();
        Some((all.iter().map(|one| one.mean * one.count as f64).sum::<f64>(), runs))
    };
    let kept = |caution, how: &str| {
        let violations = total(caution, "violations");
        Claim::holds(
            format!("No run breaks the bound or any other invariant ({how})"),
            "0",
            violations.map_or_else(
                || "nothing".into(),
                |(count, runs)| format!("{} in {runs} runs", short(count)),
            ),
            violations.is_some_and(|(count, _)| count == 0.0),
        )
    };
    let unfound = [false, true].map(|caution| {
        let (count, runs) = total(caution, "undetected")?;
        Some(count / runs as f64)
    });
    vec![
        kept(false, "one silence convicts"),
        kept(true, "cautious, its further probes included in the bound"),
        Claim::holds(
            "All but one crash in a hundred are found before the run ends (rash, cautious)",
            "ours alone: else the bound was hardly tried",
            unfound
                .map(|one| one.map_or("nothing".into(), |one| format!("{:.2}% not", 100.0 * one)))
                .join(", "),
            unfound.into_iter().all(|one| one.is_some_and(|one| one <= 0.01)),
        ),
    ]
}
