//! Figures 4.9, 6.11 and 6.12 of the thesis with real agents: sixteen hosts on a grid of four by four, of which only those
//! side by side hear each other; hosts between them pass packets on, as the thesis's devices did by a routing daemon.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;

use crate::{
    agents::Agents, agreement::simulated, formed, hosts, kills::Kills, measured::Spread, seconds,
};

const PERIOD: Duration = Duration::from_millis(200);

/// The thesis's proportions: a quarter of a period for the answer, eight periods to contradict.
const WAITS: [(&str, &str); 3] = [("period", "200ms"), ("ack", "50ms"), ("suspicion", "1600ms")];

/// Where sixteen hosts are, in metres, and how far they hear.
struct Layout {
    name: &'static str,
    positions: Vec<(f64, f64)>,
    range: f64,
    /// The same for the simulator, if it knows it.
    placement: Option<&'static str>,
}

impl Layout {
    fn grid() -> Self {
        let positions =
            (0..16).map(|at| (3.0 * f64::from(at % 4), 3.0 * f64::from(at / 4))).collect();
        let placement = Some("placement = { kind = \"grid\", side = 9.0, range = 3.5 }");
        Self { name: "grid", positions, range: 3.5, placement }
    }

    /// What figure 4.8 shows, in our own coordinates: a room with fourteen close together and two, 0 and 9, apart.
    fn with_outliers() -> Self {
        let lattice = (0..16).filter(|at| ![3, 12].contains(at));
        let mut positions: Vec<(f64, f64)> = lattice
            .map(|at| (3.0 + 0.75 * f64::from(at % 4), 3.0 + 0.75 * f64::from(at / 4)))
            .collect();
        positions.insert(0, (0.75, 3.0));
        positions.insert(9, (3.0, 0.5));
        Self { name: "two outliers", positions, range: 2.6, placement: None }
    }

    fn net(&self) -> Option<Net> {
        let net = hosts(16)?;
        let near = |a: usize, b: usize| {
            let ((ax, ay), (bx, by)) = (self.positions[a], self.positions[b]);
            a != b && (ax - bx).hypot(ay - by) <= self.range
        };
        net.route(near).expect("hosts that pass packets on");
        Some(net)
    }
}

/// How soon the grid finds failed members, and what that costs.
struct Cell {
    exponent: u32,
    feedback: &'static str,
    kills: Kills,
    /// What the simulator says of the first detection and the spread, where it knows the layout.
    simulated: Option<(f64, f64)>,
    /// Transmissions a node and period in quiet times, every hop counted.
    cost: f64,
    accused: usize,
    stalls: usize,
}

impl Cell {
    fn measured(
        (layout, net): (&Layout, &Net),
        exponent: u32,
        feedback: &'static str,
        kills: usize,
    ) -> Self {
        let mut set: Vec<String> =
            WAITS.iter().map(|(wait, value)| format!("timing.{wait}={value}")).collect();
        set.extend(
            ["beat=100ms", "election=100ms", "grace=600ms", "refresh=2s", "guard=400ms"]
                .map(|wait| format!("timing.{wait}")),
        );
        set.push(format!("membership.exponent={exponent}"));
        set.push(format!("membership.feedback={feedback}"));
        let flags: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        let own = |host: usize| {
            let (x, y) = layout.positions[host];
            vec!["--set".to_owned(), format!("position=[{x}, {y}]")]
        };
        let hosts: Vec<usize> = (0..16).collect();
        let mut agents = Agents::start_each(net, "grid", &hosts, &flags, own);
        formed(&agents, seconds(40));
        // Those probed too rarely have had the time to say so.
        thread::sleep(PERIOD * 10);
        let (begun, before) = (Instant::now(), net.traffic().packets);
        thread::sleep(PERIOD * 10);
        let periods = begun.elapsed().as_secs_f64() / PERIOD.as_secs_f64();
        let cost = (net.traffic().packets - before) as f64 / periods / 16.0;
        let accused = agents.count("member-suspect");
        let mut found = Kills::new();
        (0..kills).for_each(|_| found.one_more(&mut agents, PERIOD));
        // Every survivor hears of every kill.
        let accused = agents.count("member-suspect").saturating_sub(accused + 15 * kills);
        let stalls = agents.count("stalled");
        drop(agents);
        let waits = WAITS.map(|(wait, value)| format!("{wait} = \"{value}\"\n")).concat();
        let membership = format!("exponent = {exponent}.0\nfeedback = \"{feedback}\"\n{waits}");
        let simulated = layout.placement.map(|network| simulated(network, &membership, 300));
        let cell = Self { exponent, feedback, kills: found, simulated, cost, accused, stalls };
        cell.print();
        cell
    }

    fn print(&self) {
        let Self { exponent, feedback, kills, cost, accused, stalls, .. } = self;
        let (first, spread) = self.simulated.unwrap_or((f64::NAN, f64::NAN));
        println!(
            "{exponent} {feedback:>8} {:>6} {:>8.3} {:>6.3} {:>8.3} {:>8.3} {:>6.3} {:>8.3} {:>7} {cost:>6.1} {accused:>8} {stalls:>7}",
            kills.first.count(),
            kills.first.mean(),
            kills.first.error(),
            first,
            kills.spread.mean(),
            kills.spread.error(),
            spread,
            kills.missed,
        );
    }

    fn header(layout: &Layout) {
        let name = layout.name;
        println!(
            "16 hosts, {name}, members that do not lead killed one by one, {WAITS:?}; seconds (fdt: until the first \
             survivor gives it up, dsm: from then until the last does), ± their standard errors, beside the simulator; \
             sends: packets a node and period, each hop counted; accused: suspicions of the living, as said by all"
        );
        println!(
            "m {:>8} {:>6} {:>8} {:>6} {:>8} {:>8} {:>6} {:>8} {:>7} {:>6} {:>8} {:>7}",
            "feedback",
            "kills",
            "fdt",
            "±",
            "sim fdt",
            "dsm",
            "±",
            "sim dsm",
            "missed",
            "sends",
            "accused",
            "stalls"
        );
    }
}

/// A criterion of a figure, and whether what was measured bears it out.
fn judge(what: &str, difference: f64, error: f64) {
    let verdict = if difference >= 0.0 { "reproduced" } else { "not reproduced" };
    let noise = if difference.abs() < 2.0 * error { ", within the noise" } else { "" };
    println!("{what}: by {difference:+.3} (standard error {error:.3}): {verdict}{noise}");
}

/// That `more` is at least `less`, in mean.
fn judge_means(what: &str, more: &Spread, less: &Spread) {
    let error = (more.error() * more.error() + less.error() * less.error()).sqrt();
    judge(what, more.mean() - less.mean(), error);
}

/// The cells that figure 4.9 is judged by, with as many failures as the thesis had data points.
fn judge_figure_4_9(layout: &Layout) {
    let Some(net) = layout.net() else { return };
    Cell::header(layout);
    let cells = [(1, "none"), (4, "none"), (4, "active"), (4, "both")];
    let cells =
        cells.map(|(exponent, feedback)| Cell::measured((layout, &net), exponent, feedback, 32));
    let [near, far, active, both] = cells.each_ref().map(|cell| &cell.kills);
    judge_means("fdt of none, m = 4 above m = 1", &far.first, &near.first);
    judge_means("dsm of none, m = 4 above m = 1", &far.spread, &near.spread);
    judge_means("fdt at m = 4, none above active", &far.first, &active.first);
    judge_means("fdt at m = 4, none above both", &far.first, &both.first);
    // The figure's differences are within the noise of 32 failures; that all were found, as soon as simulated, is not.
    for Cell { kills, simulated, .. } in cells {
        assert_eq!((kills.first.count(), kills.missed), (32, 0), "{kills:?}");
        let off = simulated.map_or(0.0, |(first, _)| kills.first.mean() / first - 1.0);
        assert!(off.abs() <= 0.15, "{:+.1} %", 100.0 * off);
    }
}

#[test]
#[ignore = "128 kills of members, eight minutes"]
fn figure_4_9_on_the_grid() {
    judge_figure_4_9(&Layout::grid());
}

#[test]
#[ignore = "128 kills of members, eight minutes"]
fn figure_4_9_with_outliers() {
    judge_figure_4_9(&Layout::with_outliers());
}

#[test]
#[ignore = "80 kills of members, eight minutes"]
fn figure_4_9_at_every_exponent() {
    let layout = Layout::grid();
    let Some(net) = layout.net() else { return };
    let all = (1..=5).flat_map(|m| ["none", "active", "passive", "both"].map(|one| (m, one)));
    Cell::header(&layout);
    let measured = |(m, feedback)| Cell::measured((&layout, &net), m, feedback, 4);
    let cells: Vec<Cell> = all.map(measured).collect();
    assert!(cells.iter().all(|cell| cell.kills.first.count() == 4));
}

const VARIANTS: [&str; 4] = ["base", "optimistic", "preferred", "hybrid"];
/// From how many lists a live node may be missing: of the thesis, for its four losses.
const BOUNDS: [u32; 4] = [2, 3, 5, 7];

/// What elections of one variant came to after their leader was killed.
struct Elections {
    /// From the first survivor that gave the leader up to the last that named the final one, in milliseconds.
    completion: Spread,
    /// The same from the kill on, in seconds.
    from_kill: Spread,
    /// How often the mean survivor named another leader.
    changes: Spread,
}

impl Elections {
    const fn new() -> Self {
        Self { completion: Spread::new(), from_kill: Spread::new(), changes: Spread::new() }
    }
}

/// Whom this agent names in that election, by identity.
fn named(agents: &Agents<'_>, at: usize, election: &str) -> Option<String> {
    agents.look(at, |heard| {
        let about = |kind: &str| kind == "leader-elected" || kind == "leader-lost";
        let last = heard.iter().rfind(|one| one.election == election && about(&one.kind))?;
        (last.kind == "leader-elected").then(|| last.id.clone())
    })
}

/// The one all of these name.
fn named_by_all(agents: &Agents<'_>, among: &[usize], election: &str) -> Option<String> {
    let mut names = among.iter().map(|&at| named(agents, at, election));
    let first = names.next()??;
    names.all(|name| name.as_ref() == Some(&first)).then_some(first)
}

/// Waits until it has held for so long, but not for ever; since when it has, then.
fn held(span: Duration, limit: Duration, holds: impl Fn() -> bool) -> Option<Instant> {
    let begun = Instant::now();
    let mut since = None;
    while begun.elapsed() < limit {
        thread::sleep(Duration::from_millis(50));
        let now = holds().then(Instant::now);
        since = now.and(since.or(now));
        if since.is_some_and(|since| since.elapsed() >= span) {
            return since;
        }
    }
    None
}

/// Kills the leader of that election and writes down what became of those that it led, by their place in
/// [`VARIANTS`]; then starts it again. Whether all was as it should be.
fn replace_leader(
    agents: &mut Agents<'_>,
    ids: &[String],
    whose: &str,
    found: &mut [Elections; 4],
) -> bool {
    let all: Vec<usize> = agents.all().collect();
    let of_one_mind =
        || VARIANTS.iter().all(|election| named_by_all(agents, &all, election).is_some());
    if held(Duration::from_millis(200), seconds(10), of_one_mind).is_none() {
        return false;
    }
    let leader = named_by_all(agents, &all, whose);
    let victim = all.iter().copied().find(|&at| Some(&ids[at]) == leader.as_ref());
    let (Some(leader), Some(victim)) = (leader, victim) else { return false };
    let led: Vec<usize> = (0..4)
        .filter(|&of| named_by_all(agents, &all, VARIANTS[of]).as_ref() == Some(&leader))
        .collect();
    let survivors: Vec<usize> = all.iter().copied().filter(|&at| at != victim).collect();
    let begun = Instant::now();
    agents.kill(victim);
    let replaced = || {
        let new = |of: &usize| named_by_all(agents, &survivors, VARIANTS[*of]);
        led.iter().all(|of| new(of).is_some_and(|name| name != leader))
    };
    let settled = held(Duration::from_millis(700), seconds(12), replaced).is_some();
    if settled {
        write_down(agents, &survivors, (&leader, begun), &led, found);
    }
    let again = Instant::now();
    agents.run(victim);
    let back = || {
        let name = agents.name(victim);
        let heard = |&at: &usize| agents.said(at, "member-join", &name, again).is_some();
        survivors.iter().all(heard) && agents.alive(victim) == all.len()
    };
    held(Duration::ZERO, seconds(10), back).is_some() && settled
}

fn write_down(
    agents: &Agents<'_>,
    survivors: &[usize],
    (leader, begun): (&str, Instant),
    led: &[usize],
    found: &mut [Elections; 4],
) {
    let given_up = |at: usize| {
        agents.look(at, |heard| {
            let recent = heard.iter().rev().take_while(|one| one.at > begun);
            let said = recent.filter(|one| one.kind == "member-failed" && one.id == leader);
            said.last().map(|one| (one.unix_ms, one.at))
        })
    };
    let initiated = survivors.iter().filter_map(|&at| given_up(at)).min();
    let (initiated, initiated_here) = initiated.expect("its failure was said");
    for &of in led {
        let (mut last, mut changes) = (0, 0);
        for &at in survivors {
            agents.look(at, |heard| {
                let mut name = leader;
                let recent = heard.iter().skip_while(|one| one.at <= begun);
                let ours = recent.filter(|one| one.election == VARIANTS[of]);
                for one in ours.filter(|one| one.kind == "leader-elected") {
                    if one.id != name {
                        (name, changes) = (&one.id, changes + 1);
                        last = last.max(one.unix_ms);
                    }
                }
            });
        }
        let took = last.saturating_sub(initiated) as f64;
        found[of].completion.add(took);
        found[of].from_kill.add((initiated_here - begun).as_secs_f64() + took / 1_000.0);
        found[of].changes.add(f64::from(changes) / survivors.len() as f64);
    }
}

/// All four variants at once in every agent, so that each failure is one for all of them.
#[test]
#[ignore = "leaders killed for nine minutes"]
fn figures_6_11_and_6_12() {
    let Some(net) = Layout::grid().net() else { return };
    println!(
        "16 hosts on a grid, leader killed: completion in ms from the first survivor that gave it up to the last that \
         named the final leader (spread: its 5th to 95th percentile), in seconds from the kill, and changes of leader at \
         the mean survivor, ± their standard errors"
    );
    println!(
        "{:>5} {:>2} {:>11} {:>5} {:>10} {:>7} {:>14} {:>10} {:>8} {:>7} {:>9} {:>7}",
        "loss",
        "c",
        "variant",
        "n",
        "completion",
        "±",
        "spread",
        "from kill",
        "changes",
        "±",
        "unsettled",
        "stalls"
    );
    let mut pooled: BTreeMap<(u32, usize), Elections> = BTreeMap::new();
    for loss in [0, 50] {
        for (turn, c) in BOUNDS.into_iter().enumerate() {
            let mut set: Vec<String> = [
                "period=500ms",
                "ack=80ms",
                "suspicion=1s",
                "beat=100ms",
                "election=100ms",
                "grace=1s",
                "refresh=1s",
                "guard=400ms",
            ]
            .map(|wait| format!("timing.{wait}"))
            .into();
            // Whoever is written first is served first.
            for of in (0..4).map(|of| (of + turn) % 4) {
                let name = VARIANTS[of];
                let settings = [format!("variant={name}"), format!("c={c}"), "f=0".to_owned()];
                set.extend(settings.map(|setting| format!("election.{name}.{setting}")));
            }
            let flags: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
            let hosts: Vec<usize> = (0..16).collect();
            let mut agents = Agents::start(&net, "grid", &hosts, &flags);
            formed(&agents, seconds(40));
            net.lose(loss);
            thread::sleep(seconds(2));
            let ids: Option<Vec<String>> = agents.all().map(|at| agents.id(at)).collect();
            let ids = ids.expect("all answer");
            let (mut found, mut unsettled) = ([const { Elections::new() }; 4], 0);
            let begun = Instant::now();
            // In turn: variants that avoid the often suspected do not choose the same leaders as those that do not.
            for whose in VARIANTS.iter().cycle() {
                if begun.elapsed() > seconds(52) {
                    break;
                }
                unsettled += u32::from(!replace_leader(&mut agents, &ids, whose, &mut found));
            }
            net.lose(0);
            let stalls = agents.count("stalled");
            for (of, one) in found.into_iter().enumerate() {
                println!(
                    "{:>5.2} {c:>2} {:>11} {:>5} {:>10.1} {:>7.1} {:>14} {:>10.3} {:>8.2} {:>7.2} {unsettled:>9} {stalls:>7}",
                    f64::from(loss) / 1_000.0,
                    VARIANTS[of],
                    one.completion.count(),
                    one.completion.mean(),
                    one.completion.error(),
                    format!(
                        "{:.0} to {:.0}",
                        one.completion.quantile(0.05),
                        one.completion.quantile(0.95)
                    ),
                    one.from_kill.mean(),
                    one.changes.mean(),
                    one.changes.error(),
                );
                let all = pooled.entry((loss, of)).or_insert(const { Elections::new() });
                all.completion.extend(&one.completion);
                all.from_kill.extend(&one.from_kill);
                all.changes.extend(&one.changes);
            }
        }
    }
    for loss in [0, 50] {
        let [base, optimistic, preferred, hybrid] = [0, 1, 2, 3].map(|of| &pooled[&(loss, of)]);
        let rate = f64::from(loss) / 1_000.0;
        judge_means(
            &format!("loss {rate}: completion in ms, base above optimistic"),
            &base.completion,
            &optimistic.completion,
        );
        judge_means(
            &format!("loss {rate}: completion in ms, preferred above hybrid"),
            &preferred.completion,
            &hybrid.completion,
        );
        judge_means(
            &format!("loss {rate}: changes of leader, hybrid above optimistic"),
            &hybrid.changes,
            &optimistic.changes,
        );
        let changes = base.changes.mean();
        let once = (changes - 1.0).abs() < 1e-9;
        let verdict = if once { "reproduced" } else { "not reproduced" };
        println!("loss {rate}: base changes once: {changes:.3} times: {verdict}");
        // Six standard errors apart, when this was written; completion times were not two.
        assert!(hybrid.changes.mean() >= optimistic.changes.mean(), "loss {rate}");
        assert!(loss > 0 || once, "base: {changes}");
    }
    let enough: BTreeSet<bool> = pooled.values().map(|one| one.completion.count() >= 16).collect();
    assert_eq!(enough, BTreeSet::from([true]), "failovers seen to their end");
}
