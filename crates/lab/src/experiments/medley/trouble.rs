//! What operators of memberships have complained of, tried on four configurations of one machine.
//!
//! `swim` is SWIM with suspicion as published; `memberlist-like` adds what memberlist adds: lists compared now and
//! then, Lifeguard; `bellwether` is our default where there is no geometry, which accuses with caution; and the
//! last adds Lifeguard to that. All four probe once a second, wait half a second for a direct answer and
//! suspect for 4 log10 N s, which is memberlist's shortest (the hardened form stretches it with the group).

use std::fmt::Write as _;

use bellwether_proto::Seed;

use super::*;
use crate::{estimate::short, scenarios::MEDLEY_TROUBLE};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "bw-star",
            title: "Who cannot be reached directly is not dead",
            source: "project: hashicorp/serf#223, #185, #256",
            cells: |size| {
                let runs = size.pick(20, 4);
                let partly = |rival| {
                    let shares = cut_shares(size).iter();
                    shares.map(move |&percent| partial_mesh(rival, percent, runs))
                };
                let star = |rival| {
                    // A removal is so rare here that fewer runs than these may see none.
                    let cell = Cell::new(star_name(rival), MEDLEY_TROUBLE, 20);
                    let cell = cell.set("network.placement.kind", "star");
                    configured(cell.set("network.routing", "none"), rival, 32)
                };
                let both = |rival| [star(rival)].into_iter().chain(partly(rival));
                RIVALS.into_iter().flat_map(both).collect()
            },
            claims: star_claims,
            figures: star_figure,
        },
        Experiment {
            id: "bw-half-connected",
            title: "One member that half of the others cannot reach does not disturb the rest",
            source: "project: hashicorp/consul#5928",
            cells: |size| {
                let runs = size.pick(20, 3);
                let half = |rival| {
                    let shares = half_shares(size).iter();
                    shares.map(move |&percent| half_connected(rival, percent, runs))
                };
                let both = |rival| half(rival).chain([deaf(rival, runs)]);
                RIVALS.into_iter().flat_map(both).collect()
            },
            claims: half_claims,
            figures: half_figure,
        },
        Experiment {
            id: "bw-mass-restart",
            title: "After everybody has restarted, who is listed again",
            source: "project: hashicorp/memberlist#311",
            cells: |size| {
                let restart = |rival| {
                    let groups = groups(size).iter();
                    groups.map(move |&nodes| mass_restart(rival, nodes, size.pick(5, 1)))
                };
                RIVALS.into_iter().flat_map(restart).collect()
            },
            claims: restart_claims,
            figures: restart_figure,
        },
        Experiment {
            id: "bw-starved",
            title: "Members starved of the network do not have the healthy removed",
            source: "project: Lifeguard (Dadgar et al., 2018)",
            cells: starved_cells,
            claims: starved_claims,
            figures: starved_figure,
        },
        Experiment {
            id: "bw-one-way",
            title: "Links that keep failing one way harm nobody",
            source: "project",
            cells: |size| {
                let flip = |rival, failing| {
                    FLIPS.map(|seconds| one_way(rival, failing, seconds, size.pick(40, 4)))
                };
                let both = |rival| [Failing::Link, Failing::Uplink].map(|what| flip(rival, what));
                RIVALS.into_iter().flat_map(both).flatten().collect()
            },
            claims: one_way_claims,
            figures: one_way_figure,
        },
    ]
}

/// A configuration of the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Rival {
    name: &'static str,
    hardened: bool,
    caution: bool,
    lifeguard: bool,
}

const SWIM: Rival = Rival { name: "swim", hardened: false, caution: false, lifeguard: false };
const MEMBERLIST: Rival =
    Rival { name: "memberlist-like", hardened: true, caution: false, lifeguard: true };
const OURS: Rival = Rival { name: "bellwether", hardened: true, caution: true, lifeguard: false };
const OURS_GUARDED: Rival =
    Rival { name: "bellwether + lifeguard", hardened: true, caution: true, lifeguard: true };
/// What Lifeguard alone adds to SWIM.
const SWIM_GUARDED: Rival =
    Rival { name: "swim + lifeguard", hardened: false, caution: false, lifeguard: true };
const RIVALS: [Rival; 4] = [SWIM, MEMBERLIST, OURS, OURS_GUARDED];
const OURS_BOTH: [Rival; 2] = [OURS, OURS_GUARDED];

fn configured(cell: Cell, rival: Rival, nodes: u32) -> Cell {
    let suspicion = libm::round(4_000.0 * libm::log10(f64::from(nodes)));
    let cell =
        cell.set("network.nodes", nodes).set("membership.suspicion", format!("{suspicion}ms"));
    let cell = match rival.hardened {
        true => cell.set("membership.caution", rival.caution),
        false => cell.set("membership.form", "as-published"),
    };
    cell.set("membership.lifeguard", if rival.lifeguard { "on" } else { "off" })
}

/// A value of each of the four.
fn each(value: impl Fn(Rival) -> Estimate) -> String {
    RIVALS.map(|rival| format!("{} {}", rival.name, value(rival))).join("; ")
}

/// None of these has any.
fn none(rivals: &[Rival], value: impl Fn(Rival) -> Estimate) -> bool {
    rivals.iter().all(|&rival| value(rival).value == 0.0)
}

/// `of` is at least so many times `value`; nothing at all is less than any share of something.
fn is_fewer(data: &Table, value: Estimate, of: Estimate, times: f64) -> bool {
    of.value > 0.0 && data.is_between(of - value * times, 0.0, f64::INFINITY)
}

/// The same of both of ours, beside another.
fn ours_fewer(data: &Table, value: impl Fn(Rival) -> Estimate, of: Rival, times: f64) -> bool {
    OURS_BOTH.into_iter().all(|ours| is_fewer(data, value(ours), value(of), times))
}

fn per_rival(
    name: &str,
    title: &str,
    axes: (Axis, Axis),
    points: impl Fn(Rival) -> Vec<(f64, Estimate)>,
) -> Vec<Figure> {
    let row = |(colour, rival): (usize, Rival)| Series::measured(rival.name, colour, points(rival));
    vec![Figure::new(name, title, axes, RIVALS.into_iter().enumerate().map(row))]
}

/// Of how many of a hundred pairs neither hears the other.
fn cut_shares(size: Size) -> &'static [u32] {
    size.pick(&[20, 40, 60, 80], &[20, 80])
}

fn star_name(rival: Rival) -> String {
    format!("{} star", rival.name)
}

fn partial_name(rival: Rival, percent: u32) -> String {
    format!("{} cut={percent}%", rival.name)
}

/// 32 nodes without relays; the pairs that hear each other are drawn once for all rivals and runs.
fn partial_mesh(rival: Rival, percent: u32, runs: u64) -> Cell {
    let mut pairs: Vec<(u32, u32)> = (0..32).flat_map(|b| (0..b).map(move |a| (a, b))).collect();
    let mut rng = Seed::new(1).named("partial mesh").rng();
    let kept = pairs.len() * (100 - percent as usize) / 100;
    for place in 0..kept {
        let chosen = place + rng.below((pairs.len() - place) as u64) as usize;
        pairs.swap(place, chosen);
    }
    let edges: Vec<String> = pairs[..kept].iter().map(|(a, b)| format!("[{a}, {b}]")).collect();
    let cell = Cell::new(partial_name(rival, percent), MEDLEY_TROUBLE, runs);
    let cell = cell.set("network.placement.kind", "edges").set("network.routing", "none");
    configured(cell.set("network.placement.edges", format!("[{}]", edges.join(", "))), rival, 32)
}

fn star_claims(data: &Table) -> Vec<Claim> {
    let removed = |cell: String| data.estimate(cell, Metric::FalseRemovals);
    let star = |rival| removed(star_name(rival));
    let partly = |rival| removed(partial_name(rival, 20));
    let mostly = |rival| removed(partial_name(rival, 80));
    let suspected = |rival| data.estimate(partial_name(rival, 20), Metric::FalseSuspicions);
    vec![
        data
            .claim("In a star without relays SWIM removes the living", "above 0, as reported")
            .holds(format!("{} in 300 s", star(SWIM)), star(SWIM).value > 0.0),
        data
            .claim("Bellwether with Lifeguard removes nobody there", "0")
            .holds(each(star), none(&[OURS_GUARDED], star)),
        data
            .claim("Nor does it without Lifeguard", "0")
            .holds(star(OURS), none(&[OURS], star))
            .missed("one removal in 20 runs, where swim has 10,000 in each"),
        data
            .claim("Both remove at least 20 times fewer than the memberlist-like", "ours alone")
            .holds(each(star), ours_fewer(data, star, MEMBERLIST, 20.0)),
        data
            .claim("Where a fifth of the pairs do not hear each other, none of the four removes anybody", "0")
            .holds(each(partly), none(&RIVALS, partly)),
        data
            .claim(
                "There Bellwether suspects at least 20 times less than SWIM, with Lifeguard or without",
                "ours alone",
            )
            .holds(each(suspected), ours_fewer(data, suspected, SWIM, 20.0))
            .missed_at_full_size(
                "12 times: losses are learnt only from members that have answered before, so the first silences still accuse",
            ),
        data
            .claim("Bellwether removes nobody even where four fifths of the pairs do not hear each other", "0")
            .holds(each(mostly), none(&OURS_BOTH, mostly))
            .missed("about three pairs in ten have nobody left who hears both: no helper can vouch for them"),
    ]
}

fn star_figure(data: &Table) -> Vec<Figure> {
    per_rival(
        "bw-star",
        "Removals of the living among 32 without relays, 300 s",
        (Axis::linear("pairs that do not hear each other, %"), Axis::linear("false removals")),
        |rival| {
            let at = |percent| data.estimate(partial_name(rival, percent), Metric::FalseRemovals);
            let shares = cut_shares(data.size()).iter();
            shares.map(|&percent| (f64::from(percent), at(percent))).collect()
        },
    )
}

/// From how many of a hundred others one node is cut off, both ways.
fn half_shares(size: Size) -> &'static [u32] {
    size.pick(&[25, 50, 75, 90], &[50])
}

fn half_name(rival: Rival, percent: u32) -> String {
    format!("{} cut={percent}%", rival.name)
}

fn deaf_name(rival: Rival) -> String {
    format!("{} deaf", rival.name)
}

fn half_connected(rival: Rival, percent: u32, runs: u64) -> Cell {
    let share = f64::from(percent) / 100.0;
    let fault = format!(
        r#"[{{ at = "20s", kind = "cut", from = [0], to = {{ fraction = {share} }}, both = true }}]"#
    );
    configured(
        Cell::new(half_name(rival, percent), MEDLEY_TROUBLE, runs).set("fault", fault),
        rival,
        200,
    )
}

/// One hears nobody, but can be heard.
fn deaf(rival: Rival, runs: u64) -> Cell {
    let fault = r#"[{ at = "20s", kind = "cut", to = [0] }]"#;
    configured(Cell::new(deaf_name(rival), MEDLEY_TROUBLE, runs).set("fault", fault), rival, 200)
}

fn half_claims(data: &Table) -> Vec<Claim> {
    let half = |metric| move |rival| data.estimate(half_name(rival, 50), metric);
    let deaf = |rival| data.estimate(deaf_name(rival), Metric::HealthyRemovals);
    let fewer = |ours| is_fewer(data, deaf(ours), deaf(SWIM), 4.0);
    let (healthy, removed) = (half(Metric::HealthyRemovals), half(Metric::FalseRemovals));
    let suspected = half(Metric::FalseSuspicions);
    vec![
        data
            .claim(
                "One of 200 is cut off from half of the others: none of the four removes a healthy member",
                "0; consul was seen to",
            )
            .holds(each(healthy), none(&RIVALS, healthy)),
        data
            .claim("Nor do they remove that one: the other half vouches for it", "0")
            .holds(each(removed), none(&RIVALS, removed)),
        data
            .claim("Bellwether suspects less than half as often as SWIM, with Lifeguard or without", "ours alone")
            .holds(each(suspected), ours_fewer(data, suspected, SWIM, 2.0)),
        data
            .claim("One of 200 is deaf: healthy members are missing from no list but its own", "its own list")
            .showing(each(deaf))
            .at_most(RIVALS.map(deaf), 199.0),
        data
            .claim("Lifeguard keeps most of them even there: less than a quarter of SWIM's removals", "ours alone")
            .holds(each(deaf), fewer(MEMBERLIST) && fewer(OURS_GUARDED)),
        data
            .claim("So does caution alone", "ours alone")
            .holds(each(deaf), fewer(OURS))
            .missed("who hears nobody is soon convinced by every silence; only Lifeguard's local health slows it down"),
    ]
}

fn half_figure(data: &Table) -> Vec<Figure> {
    per_rival(
        "bw-half-connected",
        "Suspicions of the living while one of 200 is cut off from some, 280 s",
        (Axis::linear("others it is cut off from, %"), Axis::log("false suspicions")),
        |rival| {
            let at = |percent| data.estimate(half_name(rival, percent), Metric::FalseSuspicions);
            let shares = half_shares(data.size()).iter();
            shares.map(|&percent| (f64::from(percent), at(percent))).collect()
        },
    )
}

fn groups(size: Size) -> &'static [u32] {
    size.pick(&[125, 250, 500, 1_000], &[125, 500])
}

fn restart_name(rival: Rival, nodes: u32) -> String {
    format!("{} n={nodes}", rival.name)
}

/// Twenty batches, a tenth of a second apart, each down for half of that.
fn mass_restart(rival: Rival, nodes: u32, runs: u64) -> Cell {
    let mut faults = String::new();
    for batch in 0..20 {
        let down = 60_000 + 100 * batch;
        let up = down + 50;
        let who: Vec<u32> = (0..nodes).filter(|node| node % 20 == batch).collect();
        let _ = write!(
            faults,
            r#"{{ at = "{down}ms", kind = "crash", nodes = {who:?} }},
               {{ at = "{up}ms", kind = "recover", state = "lost", nodes = {who:?} }},"#
        );
    }
    let cell = Cell::new(restart_name(rival, nodes), MEDLEY_TROUBLE, runs).set("duration", "122s");
    configured(cell.set("fault", format!("[{faults}]")), rival, nodes)
}

fn restart_claims(data: &Table) -> Vec<Claim> {
    let largest = groups(data.size()).iter().copied().fold(0, u32::max);
    let missing = |rival| data.estimate(restart_name(rival, largest), Metric::Unlisted);
    let removed = |rival| data.estimate(restart_name(rival, largest), Metric::FalseRemovals);
    vec![
        data
            .claim(
                format!(
                    "{largest} nodes restart within 2 s and lose all they knew: 60 s later nobody is missing from Bellwether's lists"
                ),
                "0",
            )
            .holds(each(missing), none(&OURS_BOTH, missing))
            .missed_at_full_size(
                "of a million entries 25 to 130 are missing; push-pull halves them every 25 s, and up to 500 nodes there are none",
            ),
        data
            .claim("Nobody that has restarted is removed, by any of the four", "0")
            .holds(each(removed), none(&RIVALS, removed)),
    ]
}

fn restart_figure(data: &Table) -> Vec<Figure> {
    per_rival(
        "bw-mass-restart",
        "Members missing from lists a minute after all have restarted",
        (Axis::log("nodes"), Axis::linear("share of all entries")),
        |rival| {
            let at = |nodes| data.estimate(restart_name(rival, nodes), Metric::Unlisted);
            groups(data.size()).iter().map(|&nodes| (f64::from(nodes), at(nodes))).collect()
        },
    )
}

/// How many of 128 are starved, and how many seconds they are blocked at a time.
fn starvation(size: Size) -> (&'static [u32], &'static [u32]) {
    size.pick((&[4, 16, 32], &[2, 8, 16]), (&[32], &[2, 16]))
}

const STARVED: [Rival; 5] = [SWIM, SWIM_GUARDED, MEMBERLIST, OURS, OURS_GUARDED];

fn starved_name(rival: Rival, count: u32, blocked: u32) -> String {
    format!("{} starved={count} blocked={blocked}s", rival.name)
}

fn crash_name(rival: Rival) -> String {
    format!("{} crash", rival.name)
}

/// Starved of the network for three minutes: timers go on, and half a second of every turn is all that passes.
fn starved(rival: Rival, count: u32, blocked: u32, runs: u64) -> Cell {
    let fault = format!(
        r#"[{{ at = "10s", kind = "starve", of = "network", count = {count}, blocked = "{blocked}s",
              running = "500ms", for = "180s" }}]"#
    );
    let cell = Cell::new(starved_name(rival, count, blocked), MEDLEY_TROUBLE, runs)
        .set("duration", "200s");
    configured(cell.set("fault", fault), rival, 128)
}

fn starved_cells(size: Size) -> Vec<Cell> {
    let (counts, blocks) = starvation(size);
    let mut cells = Vec::new();
    for rival in STARVED {
        for &count in counts {
            for &blocked in blocks {
                cells.push(starved(rival, count, blocked, size.pick(10, 2)));
            }
        }
        let fault = r#"[{ at = "10s", spread = "20s", kind = "crash", count = 1 }]"#;
        let cell = Cell::new(crash_name(rival), MEDLEY_TROUBLE, size.pick(400, 60));
        cells.push(configured(cell.set("fault", fault).set("duration", "60s"), rival, 128));
    }
    cells
}

/// A metric of all starvations together.
fn suffered(data: &Table, rival: Rival, metric: Metric) -> Estimate {
    let (counts, blocks) = starvation(data.size());
    let cells = counts.iter().flat_map(|&count| blocks.iter().map(move |&block| (count, block)));
    let one = |(count, block)| data.estimate(starved_name(rival, count, block), metric);
    cells.map(one).fold(Estimate::exact(0.0), |sum, one| sum + one)
}

fn starved_claims(data: &Table) -> Vec<Claim> {
    let healthy = |rival| suffered(data, rival, Metric::HealthyRemovals);
    let fewer = |rival: Rival, times: f64| {
        let sentence = format!(
            "{} has at least {times} times fewer healthy members removed than swim, all starvations together",
            rival.name
        );
        data.claim(sentence, "ours alone; Lifeguard claims 50 times or more").holds(
            format!("{} of {}", healthy(rival), healthy(SWIM)),
            is_fewer(data, healthy(rival), healthy(SWIM), times),
        )
    };
    // The median's standard error is that of the mean times √(π/2), or so.
    let median = |rival| {
        let summary = data.summary(crash_name(rival), Metric::FirstDetection);
        summary.map_or(Estimate::NOTHING, |of| {
            let error = libm::sqrt(std::f64::consts::FRAC_PI_2) * of.standard_error();
            Estimate::known(of.p50, error)
        })
    };
    let later = |rival: Rival| {
        let sentence = format!(
            "How many times as long as swim {} takes to find a crash without starvation (median)",
            rival.name
        );
        let published = format!("{} s", short(median(SWIM).value));
        data.claim(sentence, published).at_most(median(rival) / median(SWIM), 1.1)
    };
    let gone = |rival| suffered(data, rival, Metric::FalseRemovals) - healthy(rival);
    let guarded = [SWIM_GUARDED, MEMBERLIST, OURS_GUARDED];
    let mut claims: Vec<Claim> = guarded.map(|rival| fewer(rival, 20.0)).into();
    claims.push(fewer(OURS, 2.0));
    claims.extend(guarded.map(later));
    claims.push(
        data
            .claim(
                "What bellwether pays for it without Lifeguard, times: its suspicion grows with the group (median)",
                "1.24 times the suspicion for 128",
            )
            .between(median(OURS) / median(SWIM), 1.1, 1.3),
    );
    claims.push(
        data
            .claim("bellwether + lifeguard removes the starved themselves no more often than swim", "ours alone")
            .holds(
                format!("{} of {}", gone(OURS_GUARDED), gone(SWIM)),
                is_fewer(data, gone(OURS_GUARDED), gone(SWIM), 1.0),
            )
            .missed("hardened, whoever was removed comes back as soon as it is heard, and can be removed again"),
    );
    claims
}

fn starved_figure(data: &Table) -> Vec<Figure> {
    let (counts, blocks) = starvation(data.size());
    let most = counts.iter().copied().fold(0, u32::max);
    let row = |(colour, rival): (usize, Rival)| {
        let at = |&block: &u32| {
            let removed = data.estimate(starved_name(rival, most, block), Metric::HealthyRemovals);
            (f64::from(block), removed)
        };
        Series::measured(rival.name, colour, blocks.iter().map(at))
    };
    let title = format!(
        "Removals of healthy members while {most} of 128 are starved of the network, 180 s"
    );
    let axes = (Axis::linear("blocked at a time, s"), Axis::linear("healthy removals"));
    vec![Figure::new("bw-starved", title, axes, STARVED.into_iter().enumerate().map(row))]
}

/// How many seconds at a time something fails one way.
const FLIPS: [u32; 4] = [2, 3, 4, 5];

/// What fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Failing {
    /// One link: first one way, then the other, by turns.
    Link,
    /// All that one node sends: nobody hears it, by turns with all being well.
    Uplink,
}

fn flip_name(rival: Rival, failing: Failing, seconds: u32) -> String {
    match failing {
        Failing::Link => format!("{} link {seconds}s", rival.name),
        Failing::Uplink => format!("{} uplink {seconds}s", rival.name),
    }
}

fn one_way(rival: Rival, failing: Failing, seconds: u32, runs: u64) -> Cell {
    let cut = |at: u32, sides: &str| {
        let turn = 2 * seconds;
        format!(
            r#"{{ at = "{at}s", kind = "cut", {sides}, for = "{seconds}s", every = "{turn}s", until = "210s" }}"#
        )
    };
    let fault = match failing {
        Failing::Link => {
            let there = cut(10, "from = [0], to = [1]");
            format!("[{there}, {}]", cut(10 + seconds, "from = [1], to = [0]"))
        }
        Failing::Uplink => format!("[{}]", cut(10, "from = [0]")),
    };
    let cell =
        Cell::new(flip_name(rival, failing, seconds), MEDLEY_TROUBLE, runs).set("duration", "240s");
    configured(cell.set("fault", fault), rival, 49)
}

fn one_way_claims(data: &Table) -> Vec<Claim> {
    let total = |failing, metric| {
        move |rival| {
            let one = |seconds| data.estimate(flip_name(rival, failing, seconds), metric).value;
            Estimate::exact(FLIPS.map(one).iter().sum())
        }
    };
    let link = total(Failing::Link, Metric::FalseRemovals);
    let uplink = total(Failing::Uplink, Metric::FalseRemovals);
    let suspected = total(Failing::Uplink, Metric::FalseSuspicions);
    vec![
        data
            .claim(
                "A link flips from one way to the other every 2, 3, 4 or 5 s for 200 s: none of the four removes anybody",
                "0",
            )
            .holds(each(link), none(&RIVALS, link)),
        data
            .claim(
                "Nobody hears one of 49 every other 2, 3, 4 or 5 s: Bellwether removes nobody, unlike the others",
                "0",
            )
            .holds(each(uplink), none(&OURS_BOTH, uplink))
            .missed_at_full_size(
                "with Lifeguard, one list in 40 runs of each lost it for a while, against 1,000 lists a run with SWIM",
            ),
        data
            .claim("Then Bellwether suspects less than half as often as SWIM, with Lifeguard or without", "ours alone")
            .holds(each(suspected), ours_fewer(data, suspected, SWIM, 2.0)),
    ]
}

fn one_way_figure(data: &Table) -> Vec<Figure> {
    per_rival(
        "bw-one-way",
        "Suspicions of the living while nobody hears one of 49 by turns, 200 s",
        (Axis::linear("unheard at a time, s"), Axis::linear("false suspicions")),
        |rival| {
            let at = |seconds| {
                data.estimate(flip_name(rival, Failing::Uplink, seconds), Metric::FalseSuspicions)
            };
            FLIPS.map(|seconds| (f64::from(seconds), at(seconds))).into()
        },
    )
}
