//! Networks that half work, on real hosts: leaders that are deaf or mute, hosts that are starved, and a star.
//!
//! The short tests run with all others. The long ones print what they found:
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts -- --ignored --nocapture half_broken
//! ```
//!
//! How soon somebody leads where links are cut, beside etcd, is measured by `bellwether-compare --worlds`.

use std::{
    fmt::Write as _,
    thread,
    time::{Duration, Instant},
};

use bellwether_hosts::Net;
use bellwether_proto::{NodeId, Seed, Time};
use bellwether_sim::{
    observe::{Log, Namings},
    run::run_logged,
    scenario::Scenario,
};

use crate::{
    agents::{Agents, Answer, until},
    hosts,
    measured::Spread,
    networks, seconds,
    stalls::Busy,
};

const MODES: [&str; 5] = ["eventual", "announced", "central", "leased", "learned"];

/// Between two looks at a cluster. Shorter ones would take the cores from ten clusters that run side by side.
const LOOK: Duration = Duration::from_millis(20);

/// Flags of an election in that mode, in which all of these may lead.
fn flags(mode: &str, hosts: &[usize]) -> Vec<String> {
    let names: Vec<String> = hosts.iter().map(|host| format!("\"host-{host}\"")).collect();
    let names = format!("[{}]", names.join(","));
    let mut set = vec![format!("election.default.mode={mode}")];
    match mode {
        "leased" => set.push(format!("election.default.members={names}")),
        "learned" => set.push(format!("election.default.voters={names}")),
        "central" => set.push("interfaces=[\"eth0\"]".to_owned()),
        _ => {}
    }
    let set = set.into_iter().flat_map(|set| ["--set".to_owned(), set]);
    set.chain(["--timing".to_owned(), "lan".to_owned()]).collect()
}

pub(crate) fn started<'n>(net: &'n Net, mode: &str, hosts: &[usize]) -> Agents<'n> {
    let flags = flags(mode, hosts);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Agents::start(net, &format!("garden-{mode}"), hosts, &flags)
}

/// One leader, and has been for a while: what a mode does once it is there must be over as well.
fn settled(agents: &Agents<'_>, within: Duration) -> usize {
    let mut since: Option<(usize, Instant)> = None;
    until(within, "one leader for two seconds", || {
        let now = agents.agreed(agents.all());
        since = match (since, now) {
            (Some((before, at)), Some(leader)) if before == leader => Some((before, at)),
            (_, Some(leader)) => Some((leader, Instant::now())),
            (_, None) => None,
        };
        since.filter(|(_, at)| at.elapsed() >= seconds(2)).map(|(leader, _)| leader)
    })
}

#[derive(Clone, Copy, Debug)]
enum Sense {
    Deaf,
    Mute,
}

/// What became of a leader that lost a sense, in seconds.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// Until the others agreed on another, for good; infinite if they never did.
    agreed: f64,
    /// Until it last said that it leads.
    claimed: f64,
    /// From mending on, until all agreed.
    mended: f64,
}

/// Watched for so long before it is mended: whoever leads again does so by then, as the 6.6 s of the first measurements.
const WATCHED: Duration = Duration::from_secs(10);

fn lose(net: &Net, agents: &Agents<'_>, sense: Sense) -> Lost {
    let leader = settled(agents, seconds(60));
    let others = || agents.all().filter(|&at| at != leader);
    let ways = others().map(|other| {
        let (leader, other) = (agents.host(leader), agents.host(other));
        match sense {
            Sense::Deaf => (other, leader),
            Sense::Mute => (leader, other),
        }
    });
    let begun = Instant::now();
    net.cut(ways.collect::<Vec<_>>());
    let (mut agreed, mut claimed) = (None, 0.0);
    while begun.elapsed() < WATCHED {
        let now = begun.elapsed().as_secs_f64();
        // Another that all name and that says so itself; whatever came before is void if they part again.
        agreed = agents.agreed(others()).map(|_| agreed.unwrap_or(now));
        if agents.leader(leader).is_some_and(|answer: Answer| answer.is_leader) {
            claimed = begun.elapsed().as_secs_f64();
        }
        thread::sleep(LOOK);
    }
    net.mend();
    let mend = Instant::now();
    let mut mended = f64::INFINITY;
    while mended.is_infinite() && mend.elapsed() < seconds(30) {
        thread::sleep(LOOK);
        if agents.agreed(agents.all()).is_some() {
            mended = mend.elapsed().as_secs_f64();
        }
    }
    Lost { agreed: agreed.unwrap_or(f64::INFINITY), claimed, mended }
}

/// What is wanted of every mode in `lan`, in seconds: until others agree, until it claims no more, until all agree once
/// it is mended.
const BOUNDS: [f64; 3] = [2.0, 3.0, 2.0];

/// The trials of one mode and sense, on a cluster of their own.
fn lose_sense(net: &Net, mode: &str, sense: Sense, trials: usize) -> [Spread; 3] {
    let agents = started(net, mode, &[0, 1, 2, 3, 4]);
    let mut spreads = [const { Spread::new() }; 3];
    for trial in 1..=trials {
        let lost = lose(net, &agents, sense);
        let times = [lost.agreed, lost.claimed, lost.mended];
        for (spread, time) in spreads.iter_mut().zip(times) {
            spread.add(time);
        }
        if times.iter().zip(BOUNDS).any(|(&time, bound)| time > bound) {
            eprintln!("{mode}, trial {trial}, {sense:?}: {lost:.2?}");
        }
    }
    spreads
}

/// All modes and senses side by side.
fn lose_often(modes: &[&'static str], trials: usize) {
    let senses = |&mode| [(mode, Sense::Deaf), (mode, Sense::Mute)];
    let kinds: Vec<(&str, Sense)> = modes.iter().flat_map(senses).collect();
    let Some(nets) = networks(kinds.len(), 5) else { return };
    let spreads: Vec<_> = thread::scope(|scope| {
        let start =
            |(net, &(mode, sense))| scope.spawn(move || lose_sense(net, mode, sense, trials));
        let started: Vec<_> = nets.iter().zip(&kinds).map(start).collect();
        started.into_iter().map(|trials| trials.join()).collect()
    });
    println!(
        "{} clusters of 5 hosts side by side, lan, {trials} trials each: the leader hears nobody (deaf), or nobody hears \
         it (mute); p50 / max in s, and how many are above {BOUNDS:.1?} s",
        kinds.len()
    );
    let heads = ["others agree", "it claims", "mended"];
    println!("{:>10} {:>5} {:>20} {:>20} {:>20}", "mode", "", heads[0], heads[1], heads[2]);
    let mut wrong = 0;
    for (&(mode, sense), spreads) in kinds.iter().zip(&spreads) {
        let Ok(spreads) = spreads else {
            println!("{mode:>10} {sense:>5?} came to no end, as said above");
            wrong += 1;
            continue;
        };
        let cells = spreads.iter().zip(BOUNDS).map(|(spread, bound)| {
            let (half, all) = (spread.quantile(0.5), spread.quantile(1.0));
            wrong += spread.above(bound);
            format!(" {:>20}", format!("{half:.2} / {all:.2}, {:>2}", spread.above(bound)))
        });
        println!("{mode:>10} {sense:>5?}{}", cells.collect::<String>());
    }
    assert_eq!(wrong, 0, "too late");
}

#[test]
fn a_deaf_leader_and_a_mute_one_are_replaced_and_lead_no_more() {
    lose_often(&["eventual"], 1);
}

#[test]
#[ignore = "500 leaders that lose a sense, or SENSES of each kind: 50 take a quarter of an hour"]
fn deaf_and_mute_leaders_of_every_mode_fifty_times_each() {
    let trials = std::env::var("SENSES").ok().and_then(|text| text.parse().ok());
    lose_often(&MODES, trials.unwrap_or(50));
}

/// OmniPaxos's worlds, and one link: which pairs are cut, given who leads and in which order the others stand.
fn worlds(order: &[usize]) -> [(&'static str, Vec<(usize, usize)>); 4] {
    let count = order.len();
    let pairs = || (0..count).flat_map(|b| (0..b).map(move |a| (a, b)));
    let pick = |keep: &dyn Fn(usize, usize) -> bool| {
        let cut = pairs().filter(|&(a, b)| !keep(a, b));
        cut.map(|(a, b)| (order[a], order[b])).collect::<Vec<_>>()
    };
    // The leader is the last in the order, and the hub the first.
    let last = count - 1;
    [
        ("quorum loss", pick(&|a, _| a == 0)),
        ("constrained", pick(&|a, b| a == 0 && b != last)),
        ("chained", pick(&|a, b| b == a + 1)),
        ("one link", pick(&|a, b| (a, b) != (0, last))),
    ]
}

/// Whether the leader stays, or somebody else leads, as the simulator has it with the same cuts.
fn simulated(mode: &str, count: usize, world: usize, seed: u64) -> Ending {
    let text = |cuts: &[(usize, usize)]| {
        let mut text = format!(
            "name = \"half broken\"\nduration = \"60s\"\n[network]\nnodes = {count}\n\
             start_spread = \"500ms\"\ndelay = {{ kind = \"uniform\", low = \"50us\", high = \"1ms\" }}\n\
             [node]\ntiming = {{ profile = \"lan\" }}\n[node.election.default]\nmode = \"{mode}\"\n"
        );
        for (a, b) in cuts {
            writeln!(
                text,
                "[[fault]]\nat = \"15s\"\nkind = \"cut\"\nfrom = [{a}]\nto = [{b}]\nboth = true"
            )
            .expect("writing to a string");
        }
        text
    };
    let named = |cuts: &[(usize, usize)], at: u64| {
        let scenario = Scenario::parse("half broken", &text(cuts), &[]).expect("a scenario");
        let namings = Namings::default();
        run_logged(&scenario, seed, Log::naming(&namings)).expect("a mesh");
        let mut named: Vec<Option<NodeId>> = vec![None; count];
        for naming in namings.borrow().iter().filter(|it| it.at < Time::from_micros(at)) {
            named[naming.node.get() as usize] = naming.leader;
        }
        named
    };
    let before = named(&[], 15_000_000)[0].expect("a leader after 15 s").get() as usize;
    let mut order: Vec<usize> = (0..count).filter(|&at| at != before).collect();
    order.push(before);
    let after = named(&worlds(&order)[world].1, 55_000_000);
    ending(before, |at| after[at].map(|id| id.get() as usize), count)
}

/// What a world comes to, of those other than the old leader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ending {
    Stays,
    Another,
    Nobody,
}

fn ending(before: usize, named: impl Fn(usize) -> Option<usize>, count: usize) -> Ending {
    let mut others = (0..count).filter(|&at| at != before).map(named);
    let first = others.next().flatten();
    match first.filter(|_| others.all(|other| other == first)) {
        Some(leader) if leader == before => Ending::Stays,
        Some(_) => Ending::Another,
        None => Ending::Nobody,
    }
}

fn real(net: &Net, agents: &Agents<'_>, world: usize) -> Ending {
    let before = settled(agents, seconds(60));
    let mut order: Vec<usize> = agents.all().filter(|&at| at != before).collect();
    order.push(before);
    let cuts = worlds(&order)[world].1.clone();
    net.cut(cuts.iter().flat_map(|&(a, b)| [(a, b), (b, a)]));
    thread::sleep(seconds(12));
    let names: Vec<Option<String>> =
        agents.all().map(|at| agents.leader(at).and_then(|answer| answer.leader)).collect();
    net.mend();
    let place = |at: usize| {
        names[at].as_ref().and_then(|name| agents.all().find(|&other| agents.name(other) == *name))
    };
    ending(before, place, agents.all().len())
}

fn agree_in(net: &Net, mode: &str, runs: u64) {
    let all = [0, 1, 2, 3, 4];
    let agents = started(net, mode, &all);
    for world in 0..4 {
        let name = worlds(&all)[world].0;
        for seed in 0..runs {
            let (real, simulated) = (real(net, &agents, world), simulated(mode, 5, world, seed));
            println!("{mode}, {name}: agents {real:?}, simulator {simulated:?}");
            assert_eq!(real, simulated, "{mode}, {name}");
        }
    }
}

/// The modes side by side, the worlds of each one after another.
fn agree(modes: &[&str], runs: u64) {
    let Some(nets) = networks(modes.len(), 5) else { return };
    thread::scope(|scope| {
        for (net, &mode) in nets.iter().zip(modes) {
            scope.spawn(move || agree_in(net, mode, runs));
        }
    });
}

#[test]
#[ignore = "12 worlds, or AGREE times as many: a minute and a half each time"]
fn agents_and_the_simulator_agree_on_who_leads_where_links_are_cut() {
    let runs = std::env::var("AGREE").ok().and_then(|text| text.parse().ok());
    agree(&["eventual", "leased", "learned"], runs.unwrap_or(1));
}

/// Busy processes to a core: a load of 12 on two cores left nobody leading for 25 s and more.
const HOGS: usize = 6;

#[test]
#[ignore = "20 starvations, or STARVED: ten minutes"]
fn leased_hosts_that_were_starved_have_a_leader_again_within_five_seconds() {
    let Some(net) = hosts(3) else { return };
    let trials: usize =
        std::env::var("STARVED").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let agents = started(&net, "leased", &[0, 1, 2]);
    let mut rng = Seed::new(1).named("starved").rng();
    let (mut times, mut overlaps) = (Spread::new(), 0);
    for _ in 0..trials {
        let leader = settled(&agents, seconds(60));
        let busy = Busy::of(HOGS * cores);
        let cut = rng.chance(0.5);
        if cut {
            net.unplug(agents.host(leader));
        }
        let begun = Instant::now();
        while begun.elapsed() < seconds(12) {
            overlaps += usize::from(claims(&agents) > 1);
            thread::sleep(Duration::from_millis(20));
        }
        drop(busy);
        let over = Instant::now();
        let others = || agents.all().filter(|&at| !cut || at != leader);
        until(seconds(60), "a leader again", || {
            overlaps += usize::from(claims(&agents) > 1);
            agents.agreed(others())
        });
        times.add(over.elapsed().as_secs_f64());
        net.plug(agents.host(leader));
    }
    println!(
        "leased of 3, {} busy processes on {cores} cores for 12 s, leader cut in half of them: a leader again \
         {:.2} s (p50), {:.2} s (max) after they end in {} of {trials}; {overlaps} times two claimed at once",
        HOGS * cores,
        times.quantile(0.5),
        times.quantile(1.0),
        times.count() - times.above(5.0),
    );
    assert_eq!((times.above(5.0), overlaps), (0, 0));
}

/// How many say that they lead, asked one after another. Two may each say so truly a moment apart, so whoever is first is
/// asked again.
fn claims(agents: &Agents<'_>) -> usize {
    let claims = |at: &usize| agents.leader(*at).is_some_and(|answer| answer.is_leader);
    let first: Vec<usize> = agents.all().filter(claims).collect();
    match first.len() {
        0 | 1 => first.len(),
        _ => first.iter().filter(|at| claims(at)).count(),
    }
}

/// How long nobody on a star may be removed, after the first minute.
const STAR: Duration = Duration::from_secs(600);

#[test]
#[ignore = "eleven minutes, or STAR_SECONDS and one minute"]
fn nobody_on_a_star_of_nine_hosts_is_taken_for_dead() {
    let Some(net) = hosts(9) else { return };
    let span = std::env::var("STAR_SECONDS").ok().and_then(|text| text.parse().ok());
    let span = span.map_or(STAR, seconds);
    let all: Vec<usize> = (0..9).collect();
    let agents = started(&net, "eventual", &all);
    until(seconds(60), "all alive at all", || agents.are_complete(agents.all()).then_some(()));
    net.lay_out(|a, b| a == 0 || b == 0);
    thread::sleep(seconds(60));
    let (before, first) = (agents.count("member-failed"), agents.count("leader-elected"));
    thread::sleep(span);
    let (after, elected) = (agents.count("member-failed"), agents.count("leader-elected"));
    println!(
        "9 hosts in a star, {span:?} after the first minute: {} members removed ({before} in the first minute), {} \
         changes of leader told",
        after - before,
        elected - first,
    );
    assert_eq!(after, before, "healthy members were removed");
}
