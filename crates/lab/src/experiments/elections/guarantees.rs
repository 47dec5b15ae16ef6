//! What elections promise and cost, beyond the chapter: repair, dead leaders, messages, and how often a bound that is too
//! small is wrong.

use super::*;
use crate::{
    analysis::churn::{
        hypergeometric::all_marked,
        messages::{unicasts, unicasts_asking_itself},
        wrong,
    },
    scenarios::CHURN_TOLERANT_LISTS,
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
                        let runs = size.runs(10_000);
                        Cell::new(format!("{form} {lists}"), CHURN_TOLERANT_LISTS, runs)
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
                ["as-published", "hardened"].map(|form| crashed(form, size.runs(1_000))).into()
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
                            whole(message_name(asked, c, f), size.runs(20))
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
                    let name = wrong_name(nodes, lacking, c);
                    Cell::new(name, CHURN_TOLERANT_LISTS, size.runs(100_000))
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

/// Nobody is missing from any list; the initiator is not the one to be elected.
fn whole(name: String, runs: u64) -> Cell {
    Cell::new(name, CHURN_TOLERANT_LISTS, runs)
        .set("duration", "15s")
        .set("network.nodes", 49)
        .set("membership.missing", "[]")
        .set("election.multicast", "substrate")
        .set("fault", r#"[{ at = "5s", kind = "elect", node = 40 }]"#)
}

/// Chapter 6's field, on which the leader crashes while lists are recorded; whoever finds out first elects at once.
fn crashed(form: &str, runs: u64) -> Cell {
    let elections = r#"{ count = 1, limit = "60s", every = "200ms", initiator = "detector" }"#;
    Cell::new(form, CHURN_TOLERANT_FIELD, runs)
        .set("duration", "400s")
        .set("network.loss", r#"{ kind = "independent", rate = 0.05 }"#)
        .set("membership.elections", elections)
        .set("election.form", form)
        .set("election.multicast", if form == "hardened" { "gossip" } else { "substrate" })
        .set("fault", r#"[{ at = "300s", spread = "2s", kind = "crash", node = 0 }]"#)
}

/// Figure 7.1 in the text, which names node 0, and in its script.
const MISSING: [(&str, &str); 2] = [
    ("one missing", "[{ node = 0, from = 25 }]"),
    (
        "five missing",
        "[{ node = 0, from = 25 }, { node = 1, from = 25 }, { node = 2, from = 25 }, { node = 3, from = 25 }, { node = 4, from = 25 }]",
    ),
];

fn repair_claims(data: &Table) -> Vec<Claim> {
    let value = |form: &str, lists: &str, metric| data.estimate(format!("{form} {lists}"), metric);
    let mut claims = Vec::new();
    for (lists, _) in MISSING {
        let rank = value("hardened", lists, Metric::HashRank);
        let undecided = value("hardened", lists, Metric::Undecided);
        let published = value("as-published", lists, Metric::WrongLeader);
        claims.push(
            data.claim(
                format!("Hardened, the lowest key leads in the end, in every run ({lists})"),
                format!("as published wrong in {published}"),
            )
            .holds(
                format!("mean rank {rank}, undecided {undecided}"),
                rank.value == 0.0 && undecided.value == 0.0,
            ),
        );
    }
    // A leader announces itself at least once, so equal means are equal in every run.
    let one = |metric| value("hardened", "one missing", metric);
    let (multicasts, leaders) = (one(Metric::Multicasts), one(Metric::AnnouncedLeaders));
    claims.push(
        data
            .claim(
                "Each leader told everybody once: only runs that were wrong at first took more than one multicast (one missing)",
                "as many as leaders",
            )
            .holds(
                format!("{multicasts} multicasts, {leaders} leaders"),
                (multicasts.value - leaders.value).abs() < 1e-9,
            ),
    );
    claims.push(data.agrees(
        "Hand-overs are as frequent as wrong elections: C(25, 2)/C(128, 2), asked off the initiator's own list",
        [("one missing", multicasts - 1.0, listed_only(128, 25, 1))],
    ));
    claims
}

fn deadold_claims(data: &Table) -> Vec<Claim> {
    let attempts = |form| data.summary(form, Metric::Attempts);
    let (published, hardened) = (attempts("as-published"), attempts("hardened"));
    let shown = |of: Option<bellwether_sim::observe::Summary>| {
        of.map_or("nothing".into(), |of| {
            format!("mean {:.2}, median {:.0}, 95% {:.0}", of.mean, of.p50, of.p95)
        })
    };
    let time = |form| data.estimate(form, Metric::CompletionTime);
    let (slow, fast) = (time("as-published"), time("hardened"));
    let initiators = data.estimate("hardened", Metric::Initiators);
    vec![
        data
            .claim(
                "As published the election of a crashed leader's successor takes more than one attempt in most runs",
                "restarts elect the dead again (C-4)",
            )
            .holds(shown(published), published.is_some_and(|of| of.p50 > 1.0)),
        data
            .claim("Hardened no initiator takes more than one, in any run", "ours alone")
            .holds(
                format!("{}; {initiators} initiators", shown(hardened)),
                hardened.is_some_and(|of| of.mean == 1.0 && of.sd == 0.0),
            ),
        data
            .claim("Hardened all know the successor sooner", "ours alone")
            .holds(format!("{fast} s after {slow} s"), data.is_positive(slow - fast)),
    ]
}

fn bounds() -> impl Iterator<Item = (u32, u32)> {
    (0..=16).flat_map(|c| (0..=4).map(move |f| (c, f)))
}

fn message_name(asked: &str, c: u32, f: u32) -> String {
    format!("{asked} c={c} f={f}")
}

fn message_claims(data: &Table) -> Vec<Claim> {
    let agree = |sentence: &str, asked, metric, expected: fn(u32, u32) -> u32| {
        let values = bounds().map(|(c, f)| {
            let name = message_name(asked, c, f);
            let value = data.estimate(&name, metric);
            (name, value, f64::from(expected(c, f)))
        });
        data.agrees(sentence, values)
    };
    vec![
        agree(
            "2(c + f + 1) + 1 unicasts, for c = 0 to 16 and f = 0 to 4, where all answers are others'",
            "others",
            Metric::Unicasts,
            unicasts,
        ),
        agree(
            "2(c + f) + 1 where the initiator's own list is one of the answers (C-8)",
            "all",
            Metric::Unicasts,
            unicasts_asking_itself,
        ),
        agree("One multicast", "others", Metric::Multicasts, |_, _| 1),
        agree("c + f + 1 of them are questions", "others", Metric::Queries, |c, f| c + f + 1),
    ]
}

fn message_figure(data: &Table) -> Vec<Figure> {
    let mut series = Vec::new();
    for (colour, f) in [0, 2, 4].into_iter().enumerate() {
        let cells = (0..=16).map(|c| (f64::from(c), message_name("others", c, f)));
        series.push(Series::cells(format!("f = {f}"), colour, data, Metric::Unicasts, cells));
        let line = (0..=16).map(|c| (f64::from(c), f64::from(unicasts(c, f))));
        series.push(Series::analytic(format!("2(c + {f} + 1) + 1"), colour, line));
    }
    let title = "Unicasts of a Base election without loss";
    let axes = (Axis::linear("c"), Axis::linear("unicasts"));
    vec![Figure::new("bw-election-messages", title, axes, series)]
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

fn wrong_claims(data: &Table) -> Vec<Claim> {
    let agree = |sentence: &str, expected: fn(u32, u32, u32) -> f64| {
        let values = UNDERESTIMATED.map(|(nodes, lacking, c)| {
            let name = wrong_name(nodes, lacking, c);
            let value = data.estimate(&name, Metric::WrongLeader);
            (name, value, expected(nodes, lacking, c))
        });
        data.agrees(sentence, values)
    };
    let undecided = UNDERESTIMATED
        .map(|(nodes, lacking, c)| data.estimate(wrong_name(nodes, lacking, c), Metric::Undecided));
    vec![
        agree("The wrong node is elected with C(c_a, c_u + 1)/C(N, c_u + 1)", wrong::by_one),
        agree("Likewise, minding that nobody asks the one it does not list", listed_only),
        data.claim(
            "Elections in which not all agree on one leader, right or wrong",
            "none: one initiator, one leader",
        )
        .digits(3)
        .exactly(undecided, 0.0),
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
