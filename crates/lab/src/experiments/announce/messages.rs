//! Messages until convergence: figures 5.7 and 5.9, §5.3.3, §5.4.4, and timers.

use super::{COLD, Lossy, SIZES, bounded, cold, difference, name, ratio, shown, sweep};
use crate::{
    analysis::announce::{
        messages,
        timers::{self, Timer},
        uncorrelated,
    },
    claim::{Claim, Estimate, Verdict},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "announce-fig-5.7",
            title: "Without loss, LE-S sends more than SUP, ever less so in larger groups",
            source: "Fig. 5.7",
            cells: |size| sweep(size, &["le-s", "sup"], &[Lossy::None]),
            claims: figure_5_7_claims,
            figures: |table| {
                let analysis = |label: &str, colour, of: fn(u32) -> f64| {
                    Series::analytic(label, colour, SIZES.map(|n| (f64::from(n), of(n))))
                };
                vec![figure(
                    "announce-fig-5.7",
                    "Messages until convergence, no loss",
                    vec![
                        by_size(table, "LE-S", 0, "le-s", Lossy::None),
                        analysis("LE-S, analysis", 0, |n| {
                            messages::total_with_equal_periods(n, 0.1, 0.0)
                        }),
                        by_size(table, "SUP", 1, "sup", Lossy::None),
                        analysis("SUP, analysis", 1, |n| messages::suppression(n, 0.1, 0.0)),
                    ],
                )]
            },
        },
        Experiment {
            id: "announce-fig-5.9",
            title: "With loss, LE-S sends far more than SUP, and most under uncorrelated loss",
            source: "Fig. 5.9",
            cells: |size| sweep(size, &["le-s", "sup"], &[Lossy::Corr(0.4), Lossy::Uc(0.4)]),
            claims: figure_5_9_claims,
            figures: |table| {
                let analysis =
                    |n: u32| (f64::from(n), messages::total_with_equal_periods(n, 0.1, 0.4));
                let sup = |n: u32| (f64::from(n), messages::suppression(n, 0.1, 0.4));
                vec![figure(
                    "announce-fig-5.9",
                    "Messages until convergence, loss 0.4",
                    vec![
                        by_size(table, "LE-S uncorrelated", 0, "le-s", Lossy::Uc(0.4)),
                        by_size(table, "LE-S correlated", 1, "le-s", Lossy::Corr(0.4)),
                        Series::analytic("LE-S correlated, analysis", 1, SIZES.map(analysis)),
                        by_size(table, "SUP uncorrelated", 2, "sup", Lossy::Uc(0.4)),
                        by_size(table, "SUP correlated", 3, "sup", Lossy::Corr(0.4)),
                        Series::analytic("SUP correlated, analysis", 3, SIZES.map(sup)),
                    ],
                )]
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
                    let cell = Cell::new(name, COLD, size.runs(10_000));
                    let cell = cell.set("network.nodes", 50).set("election.announce", period);
                    Lossy::Corr(0.4).apply(cell)
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
                    let cell = Cell::new(name, COLD, size.runs(2_000)).set("until", "heard");
                    Lossy::Uc(0.4)
                        .apply(cell.set("network.nodes", 50).set("election.listen", listen))
                };
                let mut cells: Vec<Cell> = LISTENS.iter().map(heard).collect();
                let together = Cell::new("together", COLD, size.runs(2_000)).set("duration", "40s");
                let together = together.set("network.nodes", 50).set("election.listen", "2050ms");
                cells.push(Lossy::Uc(0.4).apply(together));
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
                    let cell = Cell::new(jitter_name(jitter), COLD, size.runs(4_000));
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

fn figure(name: &str, title: &str, series: Vec<Series>) -> Figure {
    Figure {
        name: name.into(),
        title: title.into(),
        x: Axis::log("processes"),
        y: Axis::log("messages"),
        series,
    }
}

fn by_size(table: &Table, label: &str, colour: usize, variant: &str, loss: Lossy) -> Series {
    let cells = SIZES.map(|n| (f64::from(n), name(variant, loss, n)));
    Series::cells(label, colour, table, "num_msgs", cells)
}

fn counted(table: &Table, variant: &str, loss: Lossy, n: u32) -> Option<Estimate> {
    table.estimate(&name(variant, loss, n), "num_msgs")
}

fn figure_5_7_claims(table: &Table) -> Vec<Claim> {
    let at = |variant, n| counted(table, variant, Lossy::None, n);
    let le_s = SIZES.map(|n| {
        (format!("n={n}"), at("le-s", n), messages::total_with_equal_periods(n, 0.1, 0.0))
    });
    let sup = SIZES.map(|n| (format!("n={n}"), at("sup", n), messages::suppression(n, 0.1, 0.0)));
    let quotient = |n| ratio(at("le-s", n), at("sup", n));
    vec![
        Claim::all_agree("LE-S sends H_N + (N-1)Δ messages", le_s),
        Claim::all_agree("SUP sends NΔ + 1 - Δ^N messages", sup),
        Claim::holds(
            "Their ratio falls: 1.9 at N = 10, 1.57 at 50, 1.11 at 500",
            "to .05",
            [10, 50, 500].map(|n| shown(quotient(n))).join(", "),
            [(10, 1.914), (50, 1.566), (500, 1.112)]
                .into_iter()
                .all(|(n, value)| super::between(table, quotient(n), value - 0.05, value + 0.05)),
        ),
    ]
}

fn figure_5_9_claims(table: &Table) -> Vec<Claim> {
    let (corr, uc) = (Lossy::Corr(0.4), Lossy::Uc(0.4));
    let at = |variant, loss, n| counted(table, variant, loss, n);
    let total = SIZES.map(|n| {
        (format!("n={n}"), at("le-s", corr, n), messages::total_with_equal_periods(n, 0.1, 0.4))
    });
    let sup =
        SIZES.map(|n| (format!("n={n}"), at("sup", corr, n), messages::suppression(n, 0.1, 0.4)));
    let value = |one: Option<Estimate>| one.map_or(f64::NAN, |one| one.value);
    let ordered = SIZES.into_iter().filter(|&n| n >= 5).all(|n| {
        let order = [at("sup", corr, n), at("le-s", corr, n), at("le-s", uc, n)].map(value);
        order.is_sorted()
    });
    let near = |one, value: f64| super::between(table, one, value * 0.97, value * 1.03);
    let hundred = [at("le-s", uc, 100), at("le-s", corr, 100), at("sup", corr, 100)];
    let excess = |n| value(difference(at("le-s", uc, n), at("sup", uc, n)));
    let growth = [(10, 100), (50, 500)].map(|(few, many)| excess(many) - excess(few));
    vec![
        Claim::all_agree("LE-S agrees with analysis under correlated loss", total),
        Claim::all_agree("SUP agrees with analysis under correlated loss", sup),
        Claim::holds(
            "LE-S uncorrelated > LE-S correlated > SUP for N ≥ 5",
            "in this order",
            if ordered { "in this order" } else { "not always" },
            ordered,
        ),
        Claim::holds(
            "At N = 100 they send 24.4, 19.0 and 11.7, to 3%",
            "24.4 / 19.0 / 11.7",
            hundred.map(shown).join(" / "),
            near(hundred[0], 24.4) && near(hundred[1], 19.0) && near(hundred[2], 11.7),
        ),
        Claim::holds(
            "The excess of LE-S over SUP under uncorrelated loss grows like log N: as much from 10 to 100 as \
             from 50 to 500",
            "equal steps",
            format!("{:.1} and {:.1}", growth[0], growth[1]),
            growth.into_iter().all(|step| (3.0..=11.0).contains(&step)),
        ),
    ]
}

/// Groups small enough to enumerate.
const FEW: [u32; 5] = [2, 3, 4, 5, 6];

fn without_delay(loss: Lossy, n: u32, runs: u64) -> Cell {
    let cell = cold("le-s", loss, n, runs).set("network.delay.value", "0us");
    Cell { name: format!("no delay {}", cell.name), ..cell }
}

fn counted_cells(size: Size) -> Vec<Cell> {
    let uc = Lossy::Uc(0.4);
    let mut cells: Vec<Cell> = FEW.map(|n| without_delay(uc, n, size.runs(20_000))).into();
    for n in [10, 50, 100] {
        cells.push(cold("le-s", Lossy::Corr(0.4), n, size.runs(4_000)));
        cells.push(without_delay(uc, n, size.runs(4_000)));
        cells.push(cold("le-a", Lossy::Corr(0.4), n, size.runs(2_000)));
        cells.push(cold("le-a", uc, n, size.runs(2_000)));
    }
    cells
}

fn counted_claims(table: &Table) -> Vec<Claim> {
    use crate::analysis::announce::Loss;
    let (corr, uc) = (Lossy::Corr(0.4), Lossy::Uc(0.4));
    let first = |cell: &str| table.estimate(cell, "first_round_msgs");
    let many = [10, 50, 100];
    let bare = |n| format!("no delay {}", name("le-s", uc, n));
    let first_corr = many.map(|n| {
        (format!("n={n}"), first(&name("le-s", corr, n)), messages::first_round(n, 0.1, 0.4))
    });
    let le_a = |loss, of: Loss| {
        many.map(|n| {
            (
                format!("{} n={n}", Lossy::name(loss)),
                counted(table, "le-a", loss, n),
                messages::le_a(n, of),
            )
        })
    };
    let exact_first = FEW.map(|n| {
        (format!("n={n}"), first(&bare(n)), uncorrelated::first_round(n, 0.4).unwrap_or(f64::NAN))
    });
    let exact_total = FEW.map(|n| {
        let total = table.estimate(&bare(n), "num_msgs");
        (format!("n={n}"), total, uncorrelated::total(n, 0.4).unwrap_or(f64::NAN))
    });
    let hundred = first(&name("le-s", corr, 100));
    let published = messages::first_round_published(100, 0.1, 0.4);
    let recurrence = uncorrelated::first_round_published(100, 0.4);
    let sandwiched = many.into_iter().all(|n| {
        let (low, high) =
            (messages::first_round(n, 0.0, 0.4), uncorrelated::first_round_at_most(n, 0.4));
        super::between(table, first(&bare(n)), low, high)
    });
    let rejected = |measured: Option<Estimate>, value: f64| {
        measured.is_some_and(|one| one.errors_from(value) > 4.0)
    };
    vec![
        Claim::all_agree(
            "First announcements of LE-S under correlated loss, corrected",
            first_corr,
        ),
        Claim::holds(
            "The published form is rejected at N = 100 (A-6)",
            format!("{published:.2}"),
            shown(hundred),
            rejected(hundred, published),
        ),
        Claim::all_agree(
            "LE-A agrees with analysis",
            [le_a(corr, Loss::Correlated(0.4)), le_a(uc, Loss::Uncorrelated(0.4))].concat(),
        ),
        Claim::all_agree(
            "First announcements of LE-S under uncorrelated loss, no delay, by enumeration",
            exact_first,
        ),
        Claim::all_agree(
            "Messages of LE-S under uncorrelated loss, no delay, by enumeration",
            exact_total,
        ),
        Claim::holds(
            "Beyond six processes the first round lies between its bounds",
            "between",
            many.map(|n| shown(first(&bare(n)))).join(", "),
            sandwiched,
        ),
        Claim::holds(
            "The published recurrence is rejected at N = 100 (A-8)",
            format!("{recurrence:.2}"),
            shown(first(&bare(100))),
            rejected(first(&bare(100)), recurrence),
        ),
    ]
}

const PERIODS: [(&str, &str); 3] =
    [("T_A = T_S/2", "500ms"), ("T_A = T_S", "1s"), ("T_A = T_S + Δ", "1100ms")];

fn periods_claims(table: &Table) -> Vec<Claim> {
    let at = |index: usize| table.estimate(PERIODS[index].0, "num_msgs");
    let share =
        |index| ratio(at(index), at(2)).map(|one| Estimate { value: one.value - 1.0, ..one });
    vec![
        Claim::all_agree(
            "Without overlap the closed form holds",
            [(PERIODS[2].0.into(), at(2), messages::total(50, 0.1, 0.4))],
        ),
        bounded(
            table,
            "Half a period costs at least 2% more messages",
            "5% (13.45 to 12.81)",
            share(0),
            0.02,
            0.10,
        ),
        bounded(table, "An equal period costs less than 1% more", "0.1%", share(1), -0.01, 0.01),
    ]
}

const LISTENS: [(&str, &str); 5] = [
    ("T_L = 2", "2050ms"),
    ("T_L = 3", "3050ms"),
    ("T_L = 5", "5050ms"),
    ("T_L = 10", "10050ms"),
    ("T_L = ∞", "never"),
];

fn listens_claims(table: &Table) -> Vec<Claim> {
    let at = |name: &str| table.estimate(name, "num_msgs");
    let wanted = [26.6, 20.2, 18.1, 17.5, 17.3];
    let near = |((name, _), value): (&(&str, &str), f64)| {
        super::between(table, at(name), value - 0.5, value + 0.5)
    };
    let near = LISTENS.iter().zip(wanted).filter(|one| near(*one)).count();
    let values: Vec<f64> =
        LISTENS.iter().filter_map(|(name, _)| at(name)).map(|one| one.value).collect();
    let falls = values.len() == LISTENS.len() && values.is_sorted_by(|a, b| *a > b - 0.5);
    let verdict = match near {
        5 => Verdict::Reproduced,
        4 if falls => Verdict::Partly,
        _ => Verdict::NotReproduced,
    };
    let listed = LISTENS.map(|(name, _)| shown(at(name))).join(", ");
    let messages = Claim::judged(
        "Messages fall with the listen timeout: 26.6, 20.2, 18.1, 17.5, 17.3 for T_L just above 2, 3, 5, 10 and ∞",
        "to .5",
        listed,
        verdict,
    );
    // A quick run cannot tell half a message.
    let messages = match table.size() {
        Size::Full => messages.on_record(
            Verdict::Partly,
            "T_L = 3 measures above 20.7. The values were simulated too (17.3 for ∞ is below the 17.6 \
             of F3), and how far \"just above\" is is not said; 0.05 here",
        ),
        Size::Quick => messages,
    };
    let reached = table.summary("together", "leadership_delay").map_or(0, |summary| summary.count);
    let runs = table.summary("together", "num_msgs").map_or(0, |summary| summary.count);
    let share = 1.0 - reached as f64 / runs.max(1) as f64;
    let error = libm::sqrt(share * (1.0 - share) / runs.max(1) as f64);
    let missed = Estimate { value: share, half_width: 1.96 * error };
    vec![
        messages,
        bounded(
            table,
            "With T_L just above 2, agreement at one instant is not reached within 40 periods in about one run of four",
            "0.25",
            Some(missed),
            0.15,
            0.35,
        ),
    ]
}

fn exponential(variant: &str, timer: &str, n: u32, runs: u64) -> Cell {
    let cell = cold(variant, Lossy::None, n, runs);
    let cell = Cell { name: format!("{timer} {}", cell.name), ..cell };
    if timer == "uniform" {
        return cell;
    }
    let Timer::Exponential(lambda) = Timer::exponential_for(n) else { return cell };
    cell.set("election.timer", "exponential").set("election.lambda", lambda)
}

fn exponential_cells(size: Size) -> Vec<Cell> {
    let mut cells = Vec::new();
    for n in [10, 100, 500] {
        for variant in ["le-s", "le-m"] {
            for timer in ["uniform", "exponential"] {
                cells.push(exponential(
                    variant,
                    timer,
                    n,
                    size.runs(if n <= 100 { 4_000 } else { 400 }),
                ));
            }
        }
    }
    cells
}

fn exponential_claims(table: &Table) -> Vec<Claim> {
    let at = |timer: &str, variant, n, metric| {
        table.estimate(&format!("{timer} {}", name(variant, Lossy::None, n)), metric)
    };
    let share = |variant, metric| {
        ratio(at("exponential", variant, 500, metric), at("uniform", variant, 500, metric))
    };
    let sizes = [10, 100, 500];
    let agree = |variant, of: fn(Timer, u32, f64) -> f64| {
        sizes.map(|n| {
            let expected = of(Timer::exponential_for(n), n, 0.1);
            let measured = at("exponential", variant, n, "first_round_msgs");
            (format!("{variant} n={n}"), measured, expected)
        })
    };
    vec![
        Claim::all_agree("LE-S sends as the integral says", agree("le-s", Timer::le_s_messages)),
        Claim::all_agree(
            "LE-M sends as the integral says",
            agree("le-m", Timer::suppression_messages),
        ),
        bounded(
            table,
            "LE-S sends at most 30% of the messages at N = 500",
            "12.88 of 56.69",
            share("le-s", "num_msgs"),
            0.0,
            0.30,
        ),
        bounded(
            table,
            "and takes at least 1.5 times as long",
            "0.862 of 0.5",
            share("le-s", "t_max"),
            1.5,
            2.0,
        ),
        bounded(
            table,
            "LE-M sends at most 10%",
            "2.447 of 51",
            share("le-m", "num_msgs"),
            0.0,
            0.10,
        ),
    ]
}

const JITTERS: [f64; 5] = [0.0, 0.1, 0.25, 0.5, 1.0];

fn jitter_name(jitter: f64) -> String {
    format!("jitter {jitter}")
}

fn mapped_claims(table: &Table) -> Vec<Claim> {
    let delay = JITTERS.map(|jitter| {
        let cell = jitter_name(jitter);
        let measured = table.estimate(&cell, "t_max");
        (cell, measured, timers::mapped_wait(100, jitter))
    });
    let sent = |jitter| table.estimate(&jitter_name(jitter), "num_msgs");
    let wanted = [10.98, 9.76, 7.51, 7.26, 15.06];
    let near = JITTERS.into_iter().zip(wanted).all(|(jitter, value)| {
        sent(jitter).is_some_and(|one| {
            (one.value - value).abs() <= 0.02 * value + 4.0 * one.half_width / 1.96
        })
    });
    let least = JITTERS.into_iter().min_by(|&a, &b| {
        let value = |jitter| sent(jitter).map_or(f64::MAX, |one| one.value);
        value(a).total_cmp(&value(b))
    });
    vec![
        Claim::all_agree("The delay is linear in the jitter: (1-ω)/(N+1) + ω/2", delay),
        Claim::holds(
            "Messages: 10.98, 9.76, 7.51, 7.26, 15.06 for ω = 0, .1, .25, .5, 1",
            "to 2% and 4 s.e.",
            JITTERS.map(|jitter| shown(sent(jitter))).join(", "),
            near,
        ),
        Claim::holds(
            "They are fewest in between: the perfect mapping is not (A-29)",
            "0.5",
            format!("at ω = {}", least.unwrap_or(f64::NAN)),
            least.is_some_and(|jitter| jitter > 0.0 && jitter < 1.0),
        ),
    ]
}

fn mapped_figures(table: &Table) -> Vec<Figure> {
    let cells = || JITTERS.map(|jitter| (jitter, jitter_name(jitter)));
    vec![Figure {
        name: "announce-map".into(),
        title: "Messages of LE-S with a mapped timer, 100 processes, no loss".into(),
        x: Axis::linear("jitter ω"),
        y: Axis::linear("messages"),
        series: vec![Series::cells("LE-S, mapped", 0, table, "num_msgs", cells())],
    }]
}
