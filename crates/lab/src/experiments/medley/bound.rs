//! P3: with bags a crash is found in bounded time, and no run says otherwise.

use super::*;
use crate::{estimate::short, scenarios::MEDLEY_BAGS};

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
    let cell = Cell::new(bag_name(group, caution), MEDLEY_BAGS, runs);
    let cell = cell.set("network.nodes", nodes).set("membership.caution", caution);
    if !field {
        return cell;
    }
    let placement = r#"{ kind = "random", side = 8.0, range = 4.0, robust = true }"#;
    cell.set("network.placement", placement).set("membership.exponent", 3)
}

fn bound_claims(data: &Table) -> Vec<Claim> {
    // All runs of the groups together.
    let total = |caution, metric| {
        GROUPS.iter().fold((0.0, 0), |(sum, runs), (group, ..)| {
            match data.summary(bag_name(group, caution), metric) {
                Some(of) => (sum + of.mean * of.count as f64, runs + of.count),
                None => (f64::NAN, runs),
            }
        })
    };
    let kept = |caution, how: &str| {
        let (count, runs) = total(caution, Metric::Violations);
        data.claim(format!("No run breaks the bound or any other invariant ({how})"), "0")
            .holds(format!("{} in {runs} runs", short(count)), count == 0.0 && runs > 0)
    };
    let unfound = [false, true].map(|caution| {
        let (count, runs) = total(caution, Metric::Undetected);
        Estimate::exact(100.0 * count / runs as f64)
    });
    vec![
        kept(false, "one silence convicts"),
        kept(true, "cautious, its further probes included in the bound"),
        data.claim(
            "Crashes not found before the run ends (rash, cautious)",
            "ours alone: else the bound was hardly tried",
        )
        .percent()
        .at_most(unfound, 1.0),
    ]
}
