//! What the chapter left to future work: Bye, Query, several leaders, and SUP composed with AL.

use super::{steady::rejoined, *};
use crate::{
    analysis::announce::{
        messages::everyone_defers,
        reestablish::{self, Timing},
        timers,
    },
    claim::Claim,
    scenarios::{ANNOUNCE_SETTLED, ANNOUNCE_SEVERAL, ANNOUNCE_SUP_AL},
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "announce-bye",
            title: "A leader that says goodbye shortens its succession",
            source: "project: §5.7",
            cells: |size| {
                let cell = |(loss, copies): (Lossy, u32)| {
                    let cell =
                        Cell::new(bye_name(loss, copies), ANNOUNCE_SETTLED, size.runs(4_000))
                            .set("election.listen", "6s")
                            .set("fault.0.kind", "leave");
                    let bye = format!("{{ copies = {copies}, spacing = \"200ms\" }}");
                    loss.apply(if copies == 0 { cell } else { cell.set("election.bye", bye) })
                };
                let lossy = COPIES.into_iter().flat_map(|copies| [(CORR, copies), (UC, copies)]);
                [(Lossy::None, 1)].into_iter().chain(lossy).map(cell).collect()
            },
            claims: bye_claims,
            figures: bye_figures,
        },
        Experiment {
            id: "announce-query",
            title: "A joiner that asks on arrival",
            source: "project: §5.7",
            cells: |size| ["query", "plain"].map(|entry| asking(entry, size.runs(10_000))).into(),
            claims: |data| {
                let at = |entry| data.estimate(entry, Metric::RecoveryTime);
                vec![data.agrees(
                    "A worse joiner that asks waits 2Δ(1-Δ/T_A), one that does not T_A/2",
                    [
                        ("query", at("query"), reestablish::query(&TIMING)),
                        ("plain", at("plain"), 0.5),
                    ],
                )]
            },
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "announce-sq",
            title: "A joiner that waits, then asks",
            source: "project: §5.7",
            cells: |size| vec![asking("suppress-query", size.runs(10_000))],
            claims: |data| {
                let measured = data.estimate("suppress-query", Metric::RecoveryTime);
                let expected = reestablish::suppress_then_query(&TIMING);
                let values = [("suppress-query", measured, expected)];
                vec![data.agrees("It takes E[min(t_s + 2Δ, U)]", values)]
            },
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "announce-k",
            title: "Several leaders at once",
            source: "project: §5.7",
            cells: |size| {
                let cell = |k: u32| {
                    let cell = Cell::new(format!("k={k}"), ANNOUNCE_SEVERAL, size.runs(4_000));
                    cell.set("election.leaders", k).set("until", "duration").set("duration", "3s")
                };
                [1, 2, 3].map(cell).into()
            },
            claims: |data| {
                let sent = |k: u32| data.estimate(format!("k={k}"), Metric::FirstRoundMsgs);
                let values = [1, 2, 3]
                    .map(|k| (format!("k={k}"), sent(k), timers::leaders_messages(50, k, 0.1)));
                let sentence = "Nodes that announce: 9.394, 12.788, 15.682 for k = 1, 2, 3 of 50";
                vec![data.agrees(sentence, values)]
            },
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "announce-supal",
            title: "SUP composed with AL may leave nobody announcing, without any loss",
            source: "project: §5.7",
            cells: |size| {
                let cell = |n: u32| {
                    let cell = Cell::new(format!("n={n}"), ANNOUNCE_SUP_AL, size.runs(4_000));
                    cell.set("network.nodes", n)
                };
                LEFT.map(cell).into()
            },
            claims: deadlock_claims,
            figures: |_| Vec::new(),
        },
    ]
}

const TIMING: Timing = Timing { announce: 1.0, listen: 6.0, suppress: 1.0, delay: 0.1 };
const COPIES: [u32; 5] = [0, 1, 2, 3, 5];
const LEFT: [u32; 4] = [2, 5, 10, 50];

fn deadlock_claims(data: &Table) -> Vec<Claim> {
    // A share near one may not vary in a short run; its error follows from what is expected.
    let left = |n: u32| match data.summary(format!("n={n}"), Metric::LeaderlessAtEnd) {
        Some(of) => {
            let error = Estimate::share(everyone_defers(n, 0.1), of.count).error;
            Estimate::known(of.mean, error)
        }
        None => Estimate::NOTHING,
    };
    let values = LEFT.map(|n| (format!("n={n}"), left(n), everyone_defers(n, 0.1)));
    vec![
        data.agrees("Nobody announces with probability 1-(1-Δ)^N (A-28)", values),
        data
            .claim("The deadlock needs loss or asymmetric delay", "as published")
            .holds(
                format!("{} of runs deadlock without either at N = 50", left(50)),
                left(50).value == 0.0,
            )
            .missed("A-28: two processes that wake within Δ of each other defer to each other with no loss at all"),
    ]
}

fn bye_name(loss: Lossy, copies: u32) -> String {
    format!("{} b={copies}", loss.name())
}

/// How long it takes with so many copies under correlated loss.
fn expected_bye(copies: u32) -> f64 {
    reestablish::bye(&Timing { suppress: 0.9, ..TIMING }, copies, 0.2, 0.4)
}

fn bye_claims(data: &Table) -> Vec<Claim> {
    let at = |loss, copies| data.estimate(bye_name(loss, copies), Metric::RecoveryTime);
    let corr = COPIES.map(|k| (bye_name(CORR, k), at(CORR, k), expected_bye(k)));
    let uc = COPIES.map(|copies| at(UC, copies));
    let near = are_near(&uc, &[7.49, 6.23, 4.40, 3.27, 2.52], |given| 0.03 * given);
    vec![
        data.claim("Without loss one Bye is enough, 2Δ + E[t_s]", "0.65").between(
            at(Lossy::None, 1),
            0.62,
            0.68,
        ),
        data.agrees("Under correlated loss the closed form holds for 0 to 5 copies", corr),
        data.claim(
            "Under uncorrelated loss 7.49, 6.23, 4.40, 3.27, 2.52 for 0, 1, 2, 3, 5 copies",
            "to 3% and 4 s.e.",
        )
        .holds(list(uc), near),
    ]
}

fn bye_figures(data: &Table) -> Vec<Figure> {
    let cells = |loss| COPIES.map(|copies| (f64::from(copies), bye_name(loss, copies)));
    let exact = (0..=5).map(|copies| (f64::from(copies), expected_bye(copies)));
    let series = [
        Series::cells("uncorrelated", 0, data, Metric::RecoveryTime, cells(UC)),
        Series::cells("correlated", 1, data, Metric::RecoveryTime, cells(CORR)),
        Series::analytic("correlated, analysis", 1, exact),
    ];
    let title = "From a leader's goodbye to agreement, five processes, loss 0.4, T_L = 6";
    let axes = (Axis::linear("copies of the Bye"), Axis::linear("seconds (T_A = 1 s)"));
    vec![Figure::new("announce-bye", title, axes, series)]
}

/// A worse node asks its way into a group whose leader stays.
fn asking(entry: &str, runs: u64) -> Cell {
    let cell = rejoined(entry, runs).set("election.suppress", "1s");
    match entry {
        "plain" => cell,
        _ => cell.set("election.entry", entry).set("election.query", "400ms"),
    }
}
