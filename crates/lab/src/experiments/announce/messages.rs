//! Messages until convergence: figures 5.7 and 5.9, §5.3.3, §5.4.4, and timers.

use super::*;
use crate::{
    analysis::announce::{
        messages,
        timers::{self, Timer},
        uncorrelated,
    },
    claim::{Claim, Verdict},
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "announce-fig-5.7",
            title: "Without loss, LE-S sends more than SUP, ever less so in larger groups",
            source: "Fig. 5.7",
            cells: |size| sweep(size, &["le-s", "sup"], &[Lossy::None]),
            claims: figure_5_7_claims,
            figures: |data| {
                let series = [
                    sent(data, ("LE-S", 0), ("le-s", Lossy::None)),
                    analysed("LE-S, analysis", 0, |n| total(n, 0.0)),
                    sent(data, ("SUP", 1), ("sup", Lossy::None)),
                    analysed("SUP, analysis", 1, |n| messages::suppression(n, 0.1, 0.0)),
                ];
                figure("announce-fig-5.7", "Messages until convergence, no loss", series)
            },
        },
        Experiment {
            id: "announce-fig-5.9",
            title: "With loss, LE-S sends far more than SUP, and most under uncorrelated loss",
            source: "Fig. 5.9",
            cells: |size| sweep(size, &["le-s", "sup"], &[CORR, UC]),
            claims: figure_5_9_claims,
            figures: |data| {
                let series = [
                    sent(data, ("LE-S uncorrelated", 0), ("le-s", UC)),
                    sent(data, ("LE-S correlated", 1), ("le-s", CORR)),
                    analysed("LE-S correlated, analysis", 1, |n| total(n, 0.4)),
                    sent(data, ("SUP uncorrelated", 2), ("sup", UC)),
                    sent(data, ("SUP correlated", 3), ("sup", CORR)),
                    analysed("SUP correlated, analysis", 3, |n| messages::suppression(n, 0.1, 0.4)),
                ];
                figure("announce-fig-5.9", "Messages until convergence, loss 0.4", series)
            },
        },
        Experiment {
            id: "announce-5.3-msgs",
            title: "Messages beside the formulas, published and corrected",
            source: "§5.3.3",
            cells: counted_cells,
            claims: counted_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "announce-5.4.4-const",
            title: "Rounds that overlap cost messages",
            source: "§5.4.4",
            cells: |size| {
                let cell = |&(name, period): &(&str, &str)| {
                    let cell = Cell::new(name, ANNOUNCE_COLD, size.runs(10_000));
                    let cell = cell.set("network.nodes", 50).set("election.announce", period);
                    CORR.apply(cell)
                };
                PERIODS.iter().map(cell).collect()
            },
            claims: periods_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "announce-tl-cold",
            title: "A short listen timeout costs messages from a cold start",
            source: "project: A-20",
            cells: |size| {
                let heard = |&(name, listen): &(&str, &str)| {
                    let cell =
                        Cell::new(name, ANNOUNCE_COLD, size.runs(2_000)).set("until", "heard");
                    UC.apply(cell.set("network.nodes", 50).set("election.listen", listen))
                };
                let mut cells: Vec<Cell> = LISTENS.iter().map(heard).collect();
                let together =
                    Cell::new("together", ANNOUNCE_COLD, size.runs(2_000)).set("duration", "40s");
                let together = together.set("network.nodes", 50).set("election.listen", "2050ms");
                cells.push(UC.apply(together));
                cells
            },
            claims: listens_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "announce-timer-exp",
            title: "Exponential timers trade delay for messages in LE-S and cost LE-M little",
            source: "project: §5.4.3 says only \"fewer messages under certain conditions\"",
            cells: exponential_cells,
            claims: exponential_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "announce-map",
            title: "A criterion mapped onto the timer, with more and more jitter",
            source: "project: §5.4.3 recommends mapping",
            cells: |size| {
                let cell = |jitter: f64| {
                    let cell = Cell::new(jitter_name(jitter), ANNOUNCE_COLD, size.runs(4_000));
                    cell.set("network.nodes", 100)
                        .set("election.criterion", "random")
                        .set("election.timer", "mapped")
                        .set("election.jitter", jitter)
                };
                JITTERS.map(cell).into()
            },
            claims: mapped_claims,
            figures: mapped_figures,
        },
    ]
}

/// What LE-S sends under correlated loss, where periods are as long as the suppression interval.
fn total(n: u32, rate: f64) -> f64 {
    messages::total_with_equal_periods(n, 0.1, rate)
}

fn figure(name: &str, title: &str, series: impl IntoIterator<Item = Series>) -> Vec<Figure> {
    vec![Figure::new(name, title, (Axis::log("processes"), Axis::log("messages")), series)]
}

fn sent(data: &Table, label: (&str, usize), of: (&str, Lossy)) -> Series {
    by_size(data, label, of, Metric::NumMsgs)
}

fn analysed(label: &str, colour: usize, of: impl Fn(u32) -> f64) -> Series {
    Series::analytic(label, colour, SIZES.map(|n| (f64::from(n), of(n))))
}

fn counted(data: &Table, variant: &str, loss: Lossy, n: u32) -> Estimate {
    data.estimate(name(variant, loss, n), Metric::NumMsgs)
}

fn figure_5_7_claims(data: &Table) -> Vec<Claim> {
    let at = |variant, n| counted(data, variant, Lossy::None, n);
    let le_s = SIZES.map(|n| (format!("n={n}"), at("le-s", n), total(n, 0.0)));
    let sup = SIZES.map(|n| (format!("n={n}"), at("sup", n), messages::suppression(n, 0.1, 0.0)));
    let quotient = |n| at("le-s", n) / at("sup", n);
    let near = [(10, 1.914), (50, 1.566), (500, 1.112)]
        .into_iter()
        .all(|(n, value)| data.is_between(quotient(n), value - 0.05, value + 0.05));
    vec![
        data.agrees("LE-S sends H_N + (N-1)Δ messages", le_s),
        data.agrees("SUP sends NΔ + 1 - Δ^N messages", sup),
        data.claim("Their ratio falls: 1.9 at N = 10, 1.57 at 50, 1.11 at 500", "to .05")
            .holds(list([10, 50, 500].map(quotient)), near),
    ]
}

fn figure_5_9_claims(data: &Table) -> Vec<Claim> {
    let at = |variant, loss, n| counted(data, variant, loss, n);
    let le_s = SIZES.map(|n| (format!("n={n}"), at("le-s", CORR, n), total(n, 0.4)));
    let sup =
        SIZES.map(|n| (format!("n={n}"), at("sup", CORR, n), messages::suppression(n, 0.1, 0.4)));
    let ordered = SIZES.into_iter().filter(|&n| n >= 5).all(|n| {
        let [a, b, c] = [at("sup", CORR, n), at("le-s", CORR, n), at("le-s", UC, n)];
        a.value <= b.value && b.value <= c.value
    });
    let hundred = [at("le-s", UC, 100), at("le-s", CORR, 100), at("sup", CORR, 100)];
    let near = hundred
        .into_iter()
        .zip([24.4, 19.0, 11.7])
        .all(|(one, value)| data.is_between(one, value * 0.97, value * 1.03));
    let excess = |n| (at("le-s", UC, n) - at("sup", UC, n)).value;
    let growth = [(10, 100), (50, 500)].map(|(few, many)| excess(many) - excess(few));
    vec![
        data.agrees("LE-S agrees with analysis under correlated loss", le_s),
        data.agrees("SUP agrees with analysis under correlated loss", sup),
        data
            .claim("LE-S uncorrelated > LE-S correlated > SUP for N ≥ 5", "in this order")
            .holds(if ordered { "in this order" } else { "not always" }, ordered),
        data
            .claim("At N = 100 they send 24.4, 19.0 and 11.7, to 3%", "24.4 / 19.0 / 11.7")
            .holds(hundred.map(|one| one.to_string()).join(" / "), near),
        data
            .claim(
                "The excess of LE-S over SUP under uncorrelated loss grows like log N: as much from 10 to 100 as \
                 from 50 to 500",
                "equal steps",
            )
            .digits(1)
            .between(growth.map(Estimate::exact), 3.0, 11.0),
    ]
}

/// Groups small enough to enumerate.
const FEW: [u32; 5] = [2, 3, 4, 5, 6];

fn without_delay(loss: Lossy, n: u32, runs: u64) -> Cell {
    let cell = cold("le-s", loss, n, runs).set("network.delay.value", "0us");
    Cell { name: format!("no delay {}", cell.name), ..cell }
}

fn counted_cells(size: Size) -> Vec<Cell> {
    let mut cells: Vec<Cell> = FEW.map(|n| without_delay(UC, n, size.runs(20_000))).into();
    for n in [10, 50, 100] {
        cells.push(cold("le-s", CORR, n, size.runs(4_000)));
        cells.push(without_delay(UC, n, size.runs(4_000)));
        cells.push(cold("le-a", CORR, n, size.runs(2_000)));
        cells.push(cold("le-a", UC, n, size.runs(2_000)));
    }
    cells
}

fn counted_claims(data: &Table) -> Vec<Claim> {
    let first = |cell: &str| data.estimate(cell, Metric::FirstRoundMsgs);
    let many = [10, 50, 100];
    let bare = |n| format!("no delay {}", name("le-s", UC, n));
    let at = |n: u32| format!("n={n}");
    let first_corr =
        many.map(|n| (at(n), first(&name("le-s", CORR, n)), messages::first_round(n, 0.1, 0.4)));
    let le_a = [CORR, UC].into_iter().flat_map(|loss| {
        many.map(|n| {
            let expected = messages::le_a(n, loss.analytic());
            (format!("{} n={n}", loss.name()), counted(data, "le-a", loss, n), expected)
        })
    });
    let exact_first = FEW
        .map(|n| (at(n), first(&bare(n)), uncorrelated::first_round(n, 0.4).unwrap_or(f64::NAN)));
    let exact_total = FEW.map(|n| {
        let total = data.estimate(bare(n), Metric::NumMsgs);
        (at(n), total, uncorrelated::total(n, 0.4).unwrap_or(f64::NAN))
    });
    let sandwiched = many.into_iter().all(|n| {
        let (low, high) =
            (messages::first_round(n, 0.0, 0.4), uncorrelated::first_round_at_most(n, 0.4));
        data.is_between(first(&bare(n)), low, high)
    });
    let rejected = |sentence: &str, cell: String, value: f64| {
        let measured = first(&cell);
        data.claim(sentence, format!("{value:.2}"))
            .holds(measured, measured.errors_from(value) > 4.0)
    };
    vec![
        data.agrees("First announcements of LE-S under correlated loss, corrected", first_corr),
        rejected(
            "The published form is rejected at N = 100 (A-6)",
            name("le-s", CORR, 100),
            messages::first_round_published(100, 0.1, 0.4),
        ),
        data.agrees("LE-A agrees with analysis", le_a),
        data.agrees(
            "First announcements of LE-S under uncorrelated loss, no delay, by enumeration",
            exact_first,
        ),
        data.agrees(
            "Messages of LE-S under uncorrelated loss, no delay, by enumeration",
            exact_total,
        ),
        data.claim("Beyond six processes the first round lies between its bounds", "between")
            .holds(list(many.map(|n| first(&bare(n)))), sandwiched),
        rejected(
            "The published recurrence is rejected at N = 100 (A-8)",
            bare(100),
            uncorrelated::first_round_published(100, 0.4),
        ),
    ]
}

const PERIODS: [(&str, &str); 3] =
    [("T_A = T_S/2", "500ms"), ("T_A = T_S", "1s"), ("T_A = T_S + Δ", "1100ms")];

fn periods_claims(data: &Table) -> Vec<Claim> {
    let at = |index: usize| data.estimate(PERIODS[index].0, Metric::NumMsgs);
    let more = |index| (at(index) / at(2) - 1.0) * 100.0;
    vec![
        data.agrees(
            "Without overlap the closed form holds",
            [(PERIODS[2].0, at(2), messages::total(50, 0.1, 0.4))],
        ),
        data.claim("How many more messages half a period costs", "5% (13.45 to 12.81)")
            .percent()
            .between(more(0), 2.0, 10.0),
        data.claim("How many more messages an equal period costs", "0.1%").percent().between(
            more(1),
            -1.0,
            1.0,
        ),
    ]
}

const LISTENS: [(&str, &str); 5] = [
    ("T_L = 2", "2050ms"),
    ("T_L = 3", "3050ms"),
    ("T_L = 5", "5050ms"),
    ("T_L = 10", "10050ms"),
    ("T_L = ∞", "never"),
];

fn listens_claims(data: &Table) -> Vec<Claim> {
    let found = LISTENS.map(|(name, _)| data.estimate(name, Metric::NumMsgs));
    let wanted = [26.6, 20.2, 18.1, 17.5, 17.3];
    let near = |(one, value): &(Estimate, f64)| data.is_between(*one, value - 0.5, value + 0.5);
    let near = found.into_iter().zip(wanted).filter(near).count();
    let falls = found.windows(2).all(|pair| pair[0].value > pair[1].value - 0.5);
    let verdict = match near {
        5 => Verdict::Reproduced,
        4 if falls => Verdict::Partly,
        _ => Verdict::NotReproduced,
    };
    let messages = data
        .claim(
            "Messages fall with the listen timeout: 26.6, 20.2, 18.1, 17.5, 17.3 for T_L just above 2, 3, 5, 10 and ∞",
            "to .5",
        )
        .judged(list(found), verdict);
    // A quick run cannot tell half a message.
    let messages = match data.size() {
        Size::Full => messages.on_record(
            Verdict::Partly,
            "T_L = 3 measures above 20.7. The values were simulated too (17.3 for ∞ is below the 17.6 \
             of F3), and how far \"just above\" is is not said; 0.05 here",
        ),
        Size::Quick => messages,
    };
    let count = |metric| data.summary("together", metric).map_or(0, |summary| summary.count);
    let (reached, runs) = (count(Metric::LeadershipDelay), count(Metric::NumMsgs));
    let missed = Estimate::share(1.0 - reached as f64 / runs as f64, runs);
    vec![
        messages,
        data
            .claim(
                "In how many runs agreement at one instant is not reached within 40 periods, with T_L just above 2",
                "about one of four",
            )
            .between(missed, 0.15, 0.35),
    ]
}

fn exponential_name(timer: &str, variant: &str, n: u32) -> String {
    format!("{timer} {}", name(variant, Lossy::None, n))
}

fn exponential_cells(size: Size) -> Vec<Cell> {
    let mut cells = Vec::new();
    for n in [10, 100, 500] {
        for variant in ["le-s", "le-m"] {
            let runs = size.runs(if n <= 100 { 4_000 } else { 400 });
            let cell = |timer| Cell {
                name: exponential_name(timer, variant, n),
                ..cold(variant, Lossy::None, n, runs)
            };
            let exponential = cell("exponential").set("election.timer", "exponential");
            cells.push(cell("uniform"));
            cells.push(exponential.set("election.lambda", timers::lambda_for(n)));
        }
    }
    cells
}

fn exponential_claims(data: &Table) -> Vec<Claim> {
    let at = |timer: &str, variant, n, metric| {
        data.estimate(exponential_name(timer, variant, n), metric)
    };
    let share = |variant, metric| {
        at("exponential", variant, 500, metric) / at("uniform", variant, 500, metric)
    };
    let agree = |variant, of: fn(Timer, u32, f64) -> f64| {
        [10, 100, 500].map(|n| {
            let expected = of(Timer::exponential_for(n), n, 0.1);
            let measured = at("exponential", variant, n, Metric::FirstRoundMsgs);
            (format!("{variant} n={n}"), measured, expected)
        })
    };
    vec![
        data.agrees("LE-S sends as the integral says", agree("le-s", Timer::le_s_messages)),
        data.agrees("LE-M sends as the integral says", agree("le-m", Timer::suppression_messages)),
        data.claim("Share of the messages that LE-S sends at N = 500", "12.88 of 56.69")
            .at_most(share("le-s", Metric::NumMsgs), 0.3),
        data.claim("How many times as long it takes", "0.862 of 0.5").between(
            share("le-s", Metric::TMax),
            1.5,
            2.0,
        ),
        data.claim("Share of the messages that LE-M sends", "2.447 of 51")
            .at_most(share("le-m", Metric::NumMsgs), 0.1),
    ]
}

const JITTERS: [f64; 5] = [0.0, 0.1, 0.25, 0.5, 1.0];

fn jitter_name(jitter: f64) -> String {
    format!("jitter {jitter}")
}

fn mapped_claims(data: &Table) -> Vec<Claim> {
    let delay = JITTERS.map(|jitter| {
        let measured = data.estimate(jitter_name(jitter), Metric::TMax);
        (jitter_name(jitter), measured, timers::mapped_wait(100, jitter))
    });
    let sent = JITTERS.map(|jitter| data.estimate(jitter_name(jitter), Metric::NumMsgs));
    let near = are_near(&sent, &[10.98, 9.76, 7.51, 7.26, 15.06], |given| 0.02 * given);
    let (fewest, found) =
        least(JITTERS.into_iter().zip(sent)).unwrap_or((f64::NAN, Estimate::NOTHING));
    vec![
        data.agrees("The delay is linear in the jitter: (1-ω)/(N+1) + ω/2", delay),
        data.claim(
            "Messages: 10.98, 9.76, 7.51, 7.26, 15.06 for ω = 0, .1, .25, .5, 1",
            "to 2% and 4 s.e.",
        )
        .holds(list(sent), near),
        data.claim("They are fewest in between: the perfect mapping is not (A-29)", "0.5")
            .holds(format!("at ω = {fewest}"), found.is_there() && fewest > 0.0 && fewest < 1.0),
    ]
}

fn mapped_figures(data: &Table) -> Vec<Figure> {
    let cells = JITTERS.map(|jitter| (jitter, jitter_name(jitter)));
    let title = "Messages of LE-S with a mapped timer, 100 processes, no loss";
    let axes = (Axis::linear("jitter ω"), Axis::linear("messages"));
    let series = Series::cells("LE-S, mapped", 0, data, Metric::NumMsgs, cells);
    vec![Figure::new("announce-map", title, axes, [series])]
}
