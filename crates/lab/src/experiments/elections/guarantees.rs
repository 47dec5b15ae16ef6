//! What elections promise and cost, beyond the chapter: repair, dead leaders, messages, and how often a bound that is too
//! small is wrong.

use super::{at, between, difference, shown};
use crate::{
    analysis::churn::{hypergeometric::all_marked, wrong},
    claim::{Claim, Estimate},
    experiment::{Cell, Experiment},
    figure::{Axis, Figure, Series},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "bw-election-repair",
            title: "Hardened, whoever was missed objects: too small a bound costs a hand-over, not the leader",
            source: "project: RP1 to RP6, on the lists of Fig. 7.1",
            cells: |size| {
                let mut cells = Vec::new();
                for (lists, missing) in MISSING {
                    let cell = |form: &str| {
                        Cell::new(format!("{form} {lists}"), LISTS, size.runs(10_000))
                            .set("election.form", form)
                            .set("membership.missing", missing)
                    };
                    cells.extend([cell("as-published"), cell("hardened")]);
                }
                cells
            },
            claims: repair_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "bw-election-deadold",
            title: "The first to miss the leader asks while others still list it",
            source: "project: C-4",
            cells: |size| {
                let cell =
                    |form: &str| Cell::new(form, DEAD, size.runs(1_000)).set("election.form", form);
                ["as-published", "hardened"].map(cell).into()
            },
            claims: deadold_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "bw-election-messages",
            title: "Base takes two unicasts for each answer and one more, and one multicast",
            source: "project: Lemma 1",
            cells: |size| {
                let mut cells = Vec::new();
                for (c, f) in bounds() {
                    for asked in ["others", "all"] {
                        cells.push(
                            Cell::new(message_name(asked, c, f), WHOLE, size.runs(20))
                                .set("election.ask_self", asked == "all")
                                .set("election.c", c)
                                .set("election.f", f),
                        );
                    }
                }
                cells
            },
            claims: message_claims,
            figures: message_figure,
        },
        Experiment {
            id: "bw-election-wrong",
            title: "An underestimated c is wrong as often as Theorem 1' says",
            source: "project: Theorem 1'",
            cells: |size| {
                let cell = |(nodes, lacking, c): (u32, u32, u32)| {
                    Cell::new(wrong_name(nodes, lacking, c), LISTS, size.runs(100_000))
                        .set("network.nodes", nodes)
                        .set("membership.missing", format!("[{{ node = 0, from = {lacking} }}]"))
                        .set("election.c", c)
                };
                UNDERESTIMATED.map(cell).into()
            },
            claims: wrong_claims,
            figures: |_| Vec::new(),
        },
    ]
}

/// Nodes of the lowest keys are missing from some lists; one random node elects when nobody is new any more.
const LISTS: &str = r#"
    name = "lists with gaps"
    duration = "35s"
    [network]
    nodes = 128
    delay = { kind = "uniform", low = "0ms", high = "50ms" }
    [membership]
    kind = "lists"
    missing = [{ node = 0, from = 25 }]
    [election]
    kind = "churn-tolerant"
    form = "as-published"
    variant = "base"
    c = 1
    criterion = "identity"
    [[fault]]
    at = "5s"
    kind = "elect"
    count = 1
"#;

/// Nobody is missing from any list; the initiator is not the one to be elected.
const WHOLE: &str = r#"
    name = "whole lists"
    duration = "15s"
    [network]
    nodes = 49
    delay = { kind = "uniform", low = "0ms", high = "50ms" }
    [membership]
    kind = "lists"
    [election]
    kind = "churn-tolerant"
    form = "as-published"
    variant = "base"
    c = 1
    criterion = "identity"
    multicast = "substrate"
    [[fault]]
    at = "5s"
    kind = "elect"
    node = 40
"#;

/// Chapter 6's field, on which the leader crashes while lists are recorded; whoever finds out first elects at once.
const DEAD: &str = r#"
    name = "the leader crashes"
    duration = "400s"
    [network]
    nodes = 49
    placement = { kind = "random", side = 15.0, range = 4.0, robust = true }
    delay = { kind = "uniform", low = "1us", high = "50ms", per = "hop" }
    loss = { kind = "independent", rate = 0.05 }
    routing = "length"
    [membership]
    kind = "medley"
    form = "as-published"
    exponent = 3
    feedback = "both"
    elections = { count = 1, limit = "60s", every = "200ms", initiator = "detector" }
    [election]
    kind = "churn-tolerant"
    form = "as-published"
    variant = "base"
    c = 4
    criterion = "identity"
    [[fault]]
    at = "300s"
    spread = "2s"
    kind = "crash"
    node = 0
"#;

/// Figure 7.1 in the text, which names node 0, and in its script.
const MISSING: [(&str, &str); 2] = [
    ("one missing", "[{ node = 0, from = 25 }]"),
    (
        "five missing",
        "[{ node = 0, from = 25 }, { node = 1, from = 25 }, { node = 2, from = 25 }, { node = 3, from = 25 }, { node = 4, from = 25 }]",
    ),
];

fn repair_claims(table: &Table) -> Vec<Claim> {
    let value = |form: &str, lists: &str, metric| at(table, &format!("{form} {lists}"), metric);
    let mut claims = Vec::new();
    for (lists, _) in MISSING {
        let hardened = |metric| value("hardened", lists, metric);
        let rank = hardened("hash_rank");
        let undecided = hardened("undecided");
        claims.push(Claim::holds(
            format!("Hardened, the lowest key leads in the end, in every run ({lists})"),
            format!(
                "as published wrong in {}",
                shown(value("as-published", lists, "wrong_leader"))
            ),
            format!("mean rank {}, undecided {}", shown(rank), shown(undecided)),
            [rank, undecided].into_iter().all(|one| one.is_some_and(|one| one.value == 0.0)),
        ));
    }
    // A leader announces itself at least once, so equal means are equal in every run.
    let one = |metric| value("hardened", "one missing", metric);
    let (multicasts, leaders) = (one("multicasts"), one("announced_leaders"));
    claims.push(Claim::holds(
        "Each leader told everybody once: only runs that were wrong at first took more than one multicast (one missing)",
        "as many as leaders",
        format!("{} multicasts, {} leaders", shown(multicasts), shown(leaders)),
        matches!((multicasts, leaders), (Some(a), Some(b)) if (a.value - b.value).abs() < 1e-9),
    ));
    let more = value("hardened", "one missing", "multicasts")
        .map(|mean| Estimate { value: mean.value - 1.0, ..mean });
    claims.push(Claim::all_agree(
        "Hand-overs are as frequent as wrong elections: C(25, 2)/C(128, 2), asked off the initiator's own list",
        [("one missing".into(), more, listed_only(128, 25, 1))],
    ));
    claims
}

fn deadold_claims(table: &Table) -> Vec<Claim> {
    let attempts = |form| table.summary(form, "attempts");
    let (published, hardened) = (attempts("as-published"), attempts("hardened"));
    let shown_attempts = |of: Option<bellwether_sim::observe::Summary>| {
        of.map_or_else(
            || "nothing".into(),
            |of| format!("mean {:.2}, median {:.0}, 95% {:.0}", of.mean, of.p50, of.p95),
        )
    };
    let time = |form| at(table, form, "completion_time");
    let (slow, fast) = (time("as-published"), time("hardened"));
    vec![
        Claim::holds(
            "As published the election of a crashed leader's successor takes more than one attempt in most runs",
            "restarts elect the dead again (C-4)",
            shown_attempts(published),
            published.is_some_and(|of| of.p50 > 1.0),
        ),
        Claim::holds(
            "Hardened no initiator takes more than one, in any run",
            "ours alone",
            format!(
                "{}; {} initiators",
                shown_attempts(hardened),
                shown(at(table, "hardened", "initiators"))
            ),
            hardened.is_some_and(|of| of.mean == 1.0 && of.sd == 0.0),
        ),
        Claim::holds(
            "Hardened all know the successor sooner",
            "ours alone",
            format!("{} s after {} s", shown(fast), shown(slow)),
            between(table, difference(slow, fast), 1e-9, f64::INFINITY),
        ),
    ]
}

fn bounds() -> impl Iterator<Item = (u32, u32)> {
    (0..=16).flat_map(|c| (0..=4).map(move |f| (c, f)))
}

fn message_name(asked: &str, c: u32, f: u32) -> String {
    format!("{asked} c={c} f={f}")
}

fn message_claims(table: &Table) -> Vec<Claim> {
    let values = |asked: &'static str, metric: &'static str, expected: fn(u32) -> u32| {
        bounds().map(move |(c, f)| {
            let name = message_name(asked, c, f);
            let value = at(table, &name, metric);
            (name, value, f64::from(expected(c + f)))
        })
    };
    vec![
        Claim::all_agree(
            "2(c + f + 1) + 1 unicasts, for c = 0 to 16 and f = 0 to 4, where all answers are others'",
            values("others", "unicasts", |asked| 2 * (asked + 1) + 1),
        ),
        Claim::all_agree(
            "2(c + f) + 1 where the initiator's own list is one of the answers (C-8)",
            values("all", "unicasts", |asked| 2 * asked + 1),
        ),
        Claim::all_agree("One multicast", values("others", "multicasts", |_| 1)),
        Claim::all_agree(
            "c + f + 1 of them are questions",
            values("others", "queries", |asked| asked + 1),
        ),
    ]
}

fn message_figure(table: &Table) -> Vec<Figure> {
    let mut series = Vec::new();
    for (colour, f) in [0, 2, 4].into_iter().enumerate() {
        let cells = (0..=16).map(|c| (f64::from(c), message_name("others", c, f)));
        series.push(Series::cells(format!("f = {f}"), colour, table, "unicasts", cells));
        let line = (0..=16).map(|c| (f64::from(c), f64::from(2 * (c + f + 1) + 1)));
        series.push(Series::analytic(format!("2(c + {f} + 1) + 1"), colour, line));
    }
    vec![Figure {
        name: "bw-election-messages".into(),
        title: "Unicasts of a Base election without loss".into(),
        x: Axis::linear("c"),
        y: Axis::linear("unicasts"),
        series,
    }]
}

/// Nodes, lists that lack the would-be leader, and the `c` that is used.
const UNDERESTIMATED: [(u32, u32, u32); 10] = [
    (128, 25, 1),
    (128, 25, 2),
    (128, 25, 3),
    (64, 16, 1),
    (64, 16, 3),
    (49, 13, 1),
    (49, 13, 4),
    (256, 64, 2),
    (256, 64, 4),
    (49, 4, 4),
];

fn wrong_name(nodes: u32, lacking: u32, c: u32) -> String {
    format!("N={nodes} lacking={lacking} c={c}")
}

/// Probability that one initiator elects the wrong node, where it asks only whom it lists: not the would-be leader, if
/// it lacks that one. Theorem 1' draws from all.
fn listed_only(nodes: u32, lacking: u32, c: u32) -> f64 {
    if lacking == 0 {
        return 0.0;
    }
    f64::from(lacking) / f64::from(nodes) * all_marked(nodes - 2, lacking - 1, c)
}

fn wrong_claims(table: &Table) -> Vec<Claim> {
    let against = |expected: fn(u32, u32, u32) -> f64| {
        UNDERESTIMATED.map(|(nodes, lacking, c)| {
            let name = wrong_name(nodes, lacking, c);
            let value = at(table, &name, "wrong_leader");
            (name, value, expected(nodes, lacking, c))
        })
    };
    let undecided = UNDERESTIMATED
        .map(|(nodes, lacking, c)| at(table, &wrong_name(nodes, lacking, c), "undecided"));
    vec![
        Claim::all_agree(
            "The wrong node is elected with C(c_a, c_u + 1)/C(N, c_u + 1)",
            against(wrong::by_one),
        ),
        Claim::all_agree(
            "Likewise, minding that nobody asks the one it does not list",
            against(listed_only),
        ),
        Claim::holds(
            "All agree on one leader, right or wrong",
            "always: one initiator, one leader",
            format!("undecided {}", super::list(undecided)),
            undecided.into_iter().all(|one| one.is_some_and(|one| one.value == 0.0)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every initiator and every set of those it may ask.
    #[test]
    fn asking_only_the_listed_is_what_trying_all_gives() {
        for nodes in 3..=9_u32 {
            for (lacking, c) in (0..nodes).flat_map(|l| (0..nodes - 1).map(move |c| (l, c))) {
                // Node 0 is the would-be leader; 1 to `lacking` do not list it.
                let (mut all, mut bad) = (0.0, 0.0);
                for initiator in 0..nodes {
                    let lacks = |node: u32| (1..=lacking).contains(&node);
                    let mut sets = (0..1_u32 << nodes)
                        .filter(|set| set >> initiator & 1 == 0 && set.count_ones() == c)
                        .filter(|set| !lacks(initiator) || set & 1 == 0)
                        .peekable();
                    if sets.peek().is_none() {
                        continue;
                    }
                    let (mut count, mut missed) = (0.0, 0.0);
                    for set in sets {
                        count += 1.0;
                        let blind = (0..nodes).filter(|node| set >> node & 1 == 1).all(lacks);
                        missed += f64::from(u8::from(blind && lacks(initiator)));
                    }
                    all += 1.0;
                    bad += missed / count;
                }
                let exact = bad / all;
                let found = listed_only(nodes, lacking, c);
                assert!((found - exact).abs() < 1e-12, "{nodes} {lacking} {c}: {found} {exact}");
            }
        }
    }
}
