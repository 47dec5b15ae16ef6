//! Faults, seen from outside: what the nodes of a whole run live through.

use std::collections::BTreeSet;

use bellwether_proto::{Duration, Time};
use bellwether_sim::{
    observe::{Entry, Log, Metric},
    run::{Outcome, run, run_logged},
    scenario::Scenario,
};

fn told(text: &str, seed: u64) -> (Outcome, Vec<Entry>) {
    let scenario = Scenario::parse("faults.toml", text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let mut entries = Vec::new();
    let mut keep = |entry| entries.push(entry);
    let outcome = run_logged(&scenario, seed, Log::to(&mut keep)).unwrap_or_else(|e| panic!("{e}"));
    (outcome, entries)
}

fn seconds(seconds: u64) -> Time {
    Time::from_micros(seconds * 1_000_000)
}

const FIELD: &str = r#"
name = "field"
duration = "30s"
[network]
nodes = 25
placement = { kind = "random", side = 10.0, range = 4.0 }
routing = "length"
[membership]
kind = "medley"
"#;

/// Whoever is told learns it at the instant of the move; whoever is not goes on with what it knew, over the
/// same new links.
#[test]
fn those_who_move_are_measured_anew_only_if_distances_are_fresh() {
    let moved = |distances: &str, law: &str| {
        let fault = format!(
            "[[fault]]\nat = '10s'\nkind = 'move'\nfraction = 0.4\ndistance = 8.0\nlaw = '{law}'\n\
             distances = '{distances}'\n"
        );
        told(&format!("{FIELD}{fault}"), 3)
    };
    let feeds = |entries: &[Entry]| entries.iter().filter(|entry| entry.what == "feed").count();
    let (fresh, entries) = moved("fresh", "polar");
    assert!(feeds(&entries) > 25, "{}", feeds(&entries));
    let on_time = |entry: &Entry| entry.what != "feed" || entry.at == seconds(10);
    assert!(entries.iter().all(on_time));
    let (stale, entries) = moved("stale", "polar");
    assert_eq!(feeds(&entries), 0);
    assert_eq!(moved("stale", "polar").0, stale);
    let (still, _) = told(FIELD, 3);
    let boxed = moved("stale", "box").0;
    for (one, other) in [(&fresh, &stale), (&stale, &still), (&boxed, &stale)] {
        assert_ne!(one.trace, other.trace);
    }
}

fn stopped(entries: &[Entry]) -> Vec<u64> {
    let mut nodes: Vec<u64> =
        entries.iter().filter(|entry| entry.what == "stop").map(|entry| entry.node.get()).collect();
    nodes.sort_unstable();
    nodes
}

/// On a ring of twelve, the rest of a random loss of six is connected only if the six are neighbours: one
/// choice in 77.
#[test]
fn crashes_that_keep_the_rest_connected_do() {
    let ring = "name = 'ring'\nduration = '10s'\n[network]\nnodes = 12\nplacement = { kind = 'ring' }\n\
                [membership]\nkind = 'medley'\n[[fault]]\nat = '5s'\nkind = 'crash'\ncount = 6\n";
    let gaps = |text: &str, seed| {
        let lost = stopped(&told(text, seed).1);
        assert_eq!(lost.len(), 6);
        (0..12_u64).filter(|n| lost.contains(n) && !lost.contains(&((n + 1) % 12))).count()
    };
    let keep = format!("{ring}keep = 'connected'\n");
    let first: Vec<_> = (0..10).map(|seed| stopped(&told(&keep, seed).1)[0]).collect();
    assert!(first.iter().any(|node| *node != first[0]), "{first:?}");
    assert!((0..10).all(|seed| gaps(&keep, seed) == 1));
    assert!((0..10).any(|seed| gaps(ring, seed) > 1));
}

/// Of a ring of forty, forty choices of twenty in 10^11 leave the rest connected.
#[test]
fn a_loss_that_nothing_survives_is_an_error_that_says_why() {
    let text = "name = 'ring'\nduration = '10s'\n[network]\nnodes = 40\nplacement = { kind = 'ring' }\n\
                [membership]\nkind = 'medley'\n[[fault]]\nat = '5s'\nkind = 'crash'\ncount = 20\n\
                keep = 'connected'\n";
    let scenario = Scenario::parse("faults.toml", text, &[]).unwrap();
    let error = run(&scenario, 1).unwrap_err().to_string();
    assert!(error.contains("the rest of 40 live nodes connected in 2000 draws"), "{error}");
}

/// A chain that has lost its middle is in two parts already; it only must not get worse.
#[test]
fn what_is_apart_already_need_not_come_together() {
    let chain = "name = 'chain'\nduration = '10s'\n[network]\nnodes = 5\n\
                 placement = { kind = 'edges', edges = [[0, 1], [1, 2], [2, 3], [3, 4]] }\n\
                 [membership]\nkind = 'medley'\n[[fault]]\nat = '1s'\nkind = 'crash'\nnode = 2\n\
                 [[fault]]\nat = '5s'\nkind = 'crash'\ncount = 1\nkeep = 'connected'\n";
    assert_eq!(stopped(&told(chain, 1).1).len(), 2);
}

#[test]
fn a_cluster_at_random_crashes_as_a_whole_and_another_next_time() {
    let text = "name = 'clusters'\nduration = '10s'\n[network]\nnodes = 49\n\
                placement = { kind = 'cluster', range = 4.0, robust = true }\n\
                [membership]\nkind = 'medley'\n\
                [[fault]]\nat = '2s'\nevery = '2s'\nuntil = '5s'\nkind = 'crash'\n\
                cluster = 'random'\n";
    let bounds = [0..9_u64, 9..25, 25..35, 35..42, 42..49];
    let mut hit = [0; 5];
    for seed in 0..12 {
        let lost = stopped(&told(text, seed).1);
        let whole: Vec<usize> =
            (0..5).filter(|&i| bounds[i].clone().all(|node| lost.contains(&node))).collect();
        let nodes: usize = whole.iter().map(|&i| bounds[i].clone().count()).sum();
        assert_eq!((whole.len(), nodes), (2, lost.len()), "seed {seed}");
        whole.into_iter().for_each(|i| hit[i] += 1);
    }
    assert!(hit.iter().all(|&times| times > 0), "{hit:?}");
}

/// The starved do nothing for `blocked`, then something for `running`, each out of step with the others, and
/// are well again afterwards; the others never pause.
#[test]
fn the_starved_run_by_turns() {
    let text = "name = 'starved'\nduration = '40s'\n[network]\nnodes = 10\n\
                [membership]\nkind = 'ping'\nperiod = '20ms'\ntimeout = '5ms'\n\
                [[fault]]\nat = '10s'\nkind = 'starve'\nnodes = [2, 3, 5]\nblocked = '2s'\n\
                running = '500ms'\nfor = '20s'\n";
    let (_, entries) = told(text, 1);
    let mut firsts = Vec::new();
    for node in 0..10 {
        let handled = ["deliver", "timeout"];
        let times: Vec<Time> = entries
            .iter()
            .filter(|entry| entry.node.get() == node && handled.contains(&entry.what))
            .map(|entry| entry.at)
            .collect();
        // From the last thing before a silence to the first thing after it.
        let silent = |pair: &&[Time]| pair[1].since(pair[0]) > Duration::from_millis(100);
        let silences: Vec<_> = times.windows(2).filter(silent).collect();
        if ![2, 3, 5].contains(&node) {
            assert_eq!(silences, [[Time::ZERO; 2]; 0], "{node}");
            continue;
        }
        let near = |length: Duration, ms: u64| {
            let off = length.as_micros().abs_diff(ms * 1_000);
            assert!(off <= 25_000, "node {node}: {length} instead of {ms} ms");
        };
        let (last, whole) = silences.split_last().unwrap();
        whole.iter().for_each(|pair| near(pair[1].since(pair[0]), 2_000));
        whole.windows(2).for_each(|two| near(two[1][0].since(two[0][1]), 500));
        assert!(last[1] <= seconds(30) + Duration::from_millis(1), "{last:?}");
        assert!((7..=8).contains(&silences.len()), "{silences:?}");
        assert!(silences[0][0] >= seconds(10) && silences[0][0] <= seconds(10) + TURN);
        firsts.push(silences[0][0]);
    }
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), 3, "out of step");
}

const TURN: Duration = Duration::from_millis(2_500);

const MESH: &str = "name = 'mesh'\nduration = '40s'\n[network]\nnodes = 10\n\
                    [membership]\nkind = 'ping'\nperiod = '20ms'\ntimeout = '5ms'\n";

/// Who hears whom, from one instant up to another.
fn heard(entries: &[Entry], from: Time, to: Time) -> BTreeSet<(u64, u64)> {
    let mut pairs = BTreeSet::new();
    for entry in entries.iter().filter(|entry| entry.what == "deliver") {
        // A message takes a millisecond; one sent before is stopped or not as it arrives.
        if from <= entry.at && entry.at < to {
            let (_, sender) = entry.detail.rsplit_once(" from n").expect("the sender");
            let sender: String = sender.chars().take_while(char::is_ascii_digit).collect();
            pairs.insert((sender.parse().expect("its number"), entry.node.get()));
        }
    }
    pairs
}

#[test]
fn a_cut_with_an_end_comes_and_goes() {
    let flapping = format!(
        "{MESH}[[fault]]\nat = '10s'\nevery = '4s'\nuntil = '20s'\nkind = 'cut'\nfrom = [1]\nto = [2]\n\
         for = '2s'\n"
    );
    let (_, entries) = told(&flapping, 1);
    for second in (0..40).step_by(2) {
        let pairs = heard(&entries, seconds(second), seconds(second + 2));
        let cut = [10, 14, 18].contains(&second);
        assert_eq!(pairs.contains(&(1, 2)), !cut, "{second} s");
        assert!(pairs.contains(&(2, 1)), "{second} s");
    }
}

/// Two cuts of one pair hold until the later ends, healing ends both for good, and one without an end stays.
#[test]
fn overlapping_cuts_hold_until_the_last_has_ended() {
    let cut = |at: u32, rest: &str| {
        format!("[[fault]]\nat = '{at}s'\nkind = 'cut'\nfrom = [1]\nto = [2]\n{rest}\n")
    };
    let open = |faults: String| -> Vec<u64> {
        let (_, entries) = told(&format!("{MESH}{faults}"), 1);
        let open =
            |&second: &u64| heard(&entries, seconds(second), seconds(second + 2)).contains(&(1, 2));
        (0..40).step_by(2).filter(open).collect()
    };
    let all = |closed: std::ops::Range<u64>| -> Vec<u64> {
        (0..40).step_by(2).filter(|second| !closed.contains(second)).collect()
    };
    assert_eq!(open(cut(10, "for = '6s'") + &cut(12, "for = '8s'")), all(10..20));
    assert_eq!(open(cut(10, "for = '12s'") + &cut(12, "for = '4s'")), all(10..22));
    assert_eq!(open(cut(10, "for = '6s'") + &cut(12, "")), all(10..40));
    let heal = "[[fault]]\nat = '14s'\nkind = 'heal'\n";
    assert_eq!(open(cut(10, "for = '6s'") + heal), all(10..14));
}

/// One node that half of the others cannot reach, or cannot talk to.
#[test]
fn a_node_can_be_cut_off_from_a_part_of_the_others() {
    for (both, ways) in [("", 1), ("both = true\n", 2)] {
        let text = format!(
            "{MESH}[[fault]]\nat = '10s'\nkind = 'cut'\nfrom = {{ count = 1 }}\n\
             to = {{ fraction = 0.34 }}\n{both}"
        );
        let mut halves = BTreeSet::new();
        for seed in 0..5 {
            let (_, entries) = told(&text, seed);
            let before = heard(&entries, seconds(0), seconds(10));
            let after = heard(&entries, seconds(11), seconds(40));
            let lost: Vec<_> = before.difference(&after).copied().collect();
            assert_eq!((before.len(), lost.len()), (90, 3 * ways), "{lost:?}");
            let node = lost.iter().map(|&(from, _)| from).find(|&node| {
                lost.iter().all(|&(from, to)| from == node || (!both.is_empty() && to == node))
            });
            halves.insert(node.expect("all of one node's links"));
        }
        assert!(halves.len() > 1, "another one in other runs");
    }
}

/// A star without relays: a leaf cannot ping another. As published it suspects it unless the hub happens to
/// help; with caution it learns to ask the hub.
#[test]
fn on_a_star_without_routing_only_the_hub_is_heard() {
    let text = "name = 'star'\nduration = '300s'\n[network]\nnodes = 8\nplacement = { kind = 'star' }\n\
                routing = 'none'\n[membership]\nkind = 'medley'\n\
                [[fault]]\nat = '60s'\nkind = 'join'\n";
    let (outcome, entries) = told(text, 1);
    let pairs = heard(&entries, Time::ZERO, seconds(300));
    let through_the_hub: BTreeSet<_> = (1..9).flat_map(|leaf| [(0, leaf), (leaf, 0)]).collect();
    assert_eq!(pairs, through_the_hub, "the joiner included");
    let of = |metric| outcome.value(metric).unwrap_or(f64::NAN);
    assert!(of(Metric::Undeliverable) > 0.0);
    assert_eq!(of(Metric::FalseRemovals), 0.0);
    let (hasty, _) =
        told(&text.replace("'medley'\n", "'medley'\nform = 'as-published'\nexponent = 0.0\n"), 1);
    assert!(hasty.value(Metric::FalseRemovals) > Some(0.0));
    let (relayed, entries) = told(&text.replace("'none'", "'hops'"), 1);
    assert_eq!(heard(&entries, Time::ZERO, seconds(300)).len(), 9 * 8);
    assert_eq!(relayed.value(Metric::FalseSuspicions), Some(0.0));
}

fn of_kind<'a>(entries: &'a [Entry], what: &str) -> Vec<&'a Entry> {
    entries.iter().filter(|entry| entry.what == what).collect()
}

const DISKS: &str = "name = 'disks'\nduration = '60s'\n[network]\nnodes = 5\n\
                     [election]\nkind = 'announce'\nvariant = 'le-s'\nannounce = '1s'\n\
                     suppress = '1s'\nlisten = '3s'\n\
                     [[fault]]\nat = '30s'\nkind = 'crash'\ntarget = 'leader'\n";

/// The successor must keep the epoch it leads in before it says so. An announcing node cannot be told that it did
/// not: it crashes, and the next one tries, until a disk works.
#[test]
fn nobody_leads_while_no_disk_works() {
    let disks = |faults: &str| told(&format!("{DISKS}{faults}"), 1);
    let disk = |at: u32, length: u32| {
        format!("[[fault]]\nat = '{at}s'\nkind = 'disk'\nall = true\nfor = '{length}s'\n")
    };
    let (outcome, entries) = disks(&disk(31, 20));
    let unkept = of_kind(&entries, "not-kept");
    assert!(!unkept.is_empty());
    for failure in unkept {
        assert!(failure.at >= seconds(31) && failure.at < seconds(51), "{failure:?}");
        let after = entries.iter().skip_while(|entry| !std::ptr::eq(*entry, failure)).skip(1);
        let rest: Vec<_> = after.filter(|entry| entry.node == failure.node).collect();
        assert_eq!(rest.iter().map(|entry| entry.what).collect::<Vec<_>>(), ["stop"]);
    }
    assert_eq!(outcome.violations, []);
    let (_, well) = disks("");
    assert_eq!(of_kind(&well, "not-kept").len(), 0);
    // Of two failures the longer counts, whichever began first; afterwards all is well.
    let count = |faults: String| of_kind(&disks(&faults).1, "not-kept").len();
    let whole = count(disk(10, 30));
    assert!(whole > 0);
    assert_eq!(count(disk(10, 30) + &disk(11, 1)), whole);
    assert_eq!(count(disk(10, 1) + &disk(10, 30)), whole);
    assert_eq!(count(disk(10, 2)), 0);
}

/// The earlier life of a cloned node talks until it talks to somebody who has heard the later one.
#[test]
fn the_earlier_life_of_a_clone_ends_when_it_meets_who_knows_better() {
    let clone = "[[fault]]\nat = '10s'\nkind = 'clone'\nnode = 3\n";
    let (outcome, entries) = told(&format!("{MESH}{clone}"), 1);
    let gone = of_kind(&entries, "ghost-gone");
    assert_eq!(gone.len(), 1);
    assert!(gone[0].at < seconds(11) && gone[0].node.get() == 3, "{gone:?}");
    let ghost = of_kind(&entries, "ghost");
    assert!(ghost.len() > 1 && ghost.iter().all(|entry| entry.at >= seconds(10)));
    let boots: Vec<_> =
        of_kind(&entries, "boot").into_iter().filter(|e| e.node.get() == 3).collect();
    assert_eq!(boots.iter().map(|boot| boot.at).collect::<Vec<_>>(), [seconds(0), seconds(10)]);
    assert_ne!(outcome.trace, told(MESH, 1).0.trace);

    // Cut off from the others both lives go on.
    let alone = format!("{MESH}{clone}[[fault]]\nat = '9s'\nkind = 'isolate'\nnode = 3\n");
    assert_eq!(of_kind(&told(&alone, 1).1, "ghost-gone").len(), 0);
    let healed = format!("{alone}[[fault]]\nat = '20s'\nkind = 'heal'\n");
    let gone = of_kind(&told(&healed, 1).1, "ghost-gone").into_iter().cloned().collect::<Vec<_>>();
    assert!(matches!(&gone[..], [one] if one.at > seconds(20) && one.at < seconds(21)), "{gone:?}");
}

/// Over several hops, over the air, with and without lists: whoever is cloned, a run has one trace.
#[test]
fn identities_can_be_cloned_in_every_network() {
    let air = "name = 'air'\nduration = '20s'\n[network]\nnodes = 12\n\
               placement = { kind = 'field', side = 100.0, range = 90.0 }\nradio = { kind = 'wifi' }\n\
               mobility = { kind = 'random-waypoint' }\n[election]\nkind = 'central'\nprofile = 'cel'\n";
    for text in [FIELD, DISKS, air] {
        let text = format!(
            "{text}[[fault]]\nat = '5s'\nevery = '4s'\nuntil = '15s'\nkind = 'clone'\ncount = 2\n"
        );
        let (outcome, entries) = told(&text, 1);
        assert_eq!(told(&text, 1).0, outcome);
        assert!(of_kind(&entries, "ghost").len() >= 6, "{text}");
        assert!(!of_kind(&entries, "ghost-gone").is_empty(), "{text}");
    }
}

#[test]
fn those_who_are_late_start_when_they_are_there() {
    let late = |rest: &str| {
        let (_, entries) = told(&format!("{MESH}{rest}"), 1);
        let mut starts: Vec<_> =
            of_kind(&entries, "start").iter().map(|e| (e.at, e.node)).collect();
        starts.sort_unstable();
        assert_eq!(starts.len(), 10, "each once");
        starts
    };
    let some = "[[fault]]\nkind = 'late'\ncount = 4\nuntil = '10s'\n";
    let starts = late(some);
    assert!(starts[..6].iter().all(|start| start.0 == Time::ZERO), "{starts:?}");
    assert!(starts[6..].iter().all(|start| start.0 == seconds(10)), "{starts:?}");
    let more = "[[fault]]\nkind = 'late'\nfraction = 0.5\nuntil = '20s'\n";
    let times: Vec<_> = late(&format!("{some}{more}")).into_iter().map(|start| start.0).collect();
    let expected = [[seconds(0); 3].as_slice(), &[seconds(10); 4], &[seconds(20); 3]].concat();
    assert_eq!(times, expected, "half of the six that the first has left");
    // The others start as they would have.
    let spread = |rest: &str| {
        let mesh = MESH.replace("nodes = 10\n", "nodes = 10\nstart_spread = '5s'\n");
        let (_, entries) = told(&format!("{mesh}{rest}"), 1);
        let mut starts: Vec<_> =
            of_kind(&entries, "start").iter().map(|e| (e.node, e.at)).collect();
        starts.sort_unstable();
        starts
    };
    let two = spread("[[fault]]\nkind = 'late'\nnodes = [2, 7]\nuntil = '10s'\n");
    for (one, other) in spread("").into_iter().zip(two) {
        let late =
            if [2, 7].contains(&one.0.get()) { Duration::from_secs(10) } else { Duration::ZERO };
        assert_eq!((one.0, one.1 + late), other);
    }
}
