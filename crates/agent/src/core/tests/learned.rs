//! Elections by what was learnt, on a network without sockets.

use bellwether_proto::election::bandit::{self, Policy, Profile};

use super::*;
use crate::status::ScoreStatus;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn electorate(voters: &[&str]) -> Protocol {
    let config = bandit::Config::new(Profile::Hardened, Policy::Thompson { discount: 0.9 })
        .with_pings(None)
        .and_then(|config| config.with_sample(seconds(5)))
        .and_then(|config| config.with_tenure(seconds(20), Some(0.2)))
        .unwrap();
    let voters = voters.iter().map(|&voter| voter.to_owned()).collect();
    Protocol::Learned(Electorate { voters, config })
}

/// Nodes 0 to 2 vote, all others listen.
fn of_three(node: usize) -> Settings {
    let mut settings = settings(node, 1);
    settings.elections[0].protocol = electorate(&["node-0", "node-1", "node-2"]);
    settings
}

fn world(nodes: usize) -> World {
    World::of(nodes, of_three, Some(tempfile::tempdir().unwrap()))
}

fn agreed(world: &World) -> usize {
    let leaders = world.leaders();
    let leader = leaders[0].clone().expect("somebody leads");
    assert!(leaders.iter().all(|named| *named == Some(leader.clone())), "{leaders:?}");
    leader.strip_prefix("node-").unwrap().parse().unwrap()
}

fn election(world: &World, node: usize) -> ElectionStatus {
    world.core(node).status(world.now, 0, Counters::default(), no_keys()).elections.remove(0)
}

fn score(world: &World, at: usize, of: usize) -> ScoreStatus {
    let name = format!("node-{of}");
    election(world, at).scores.into_iter().find(|score| score.name == name).unwrap()
}

#[test]
fn voters_elect_one_and_whoever_listens_hears_of_it() {
    let mut world = world(4);
    world.pass(seconds(20));
    let leader = agreed(&world);
    assert!(leader < 3, "a voter");
    let status = election(&world, 3);
    assert_eq!((status.mode.as_str(), status.settled, status.is_leader), ("learned", true, false));
    assert!(status.epoch.is_some() && status.scores.len() == 3);
    assert_eq!(status.agreement.heard, 2, "itself and the leader");
    let agreement = election(&world, leader).agreement;
    assert_eq!((agreement.agree, agreement.heard), (4, 4), "all that answer it");
    let before = status.epoch;
    world.nodes[leader] = None;
    world.pass(seconds(20));
    assert_ne!(agreed(&world), leader);
    let parse = |epoch: &Option<String>| epoch.as_ref().unwrap().parse::<Epoch>().unwrap();
    assert!(parse(&election(&world, 3).epoch) > parse(&before));
}

#[test]
fn nobody_is_elected_before_every_voter_was_met_once_and_then_a_majority_suffices() {
    let mut world = world(2);
    world.pass(seconds(30));
    assert_eq!(world.leaders(), [None, None]);
    let why = election(&world, 0).why;
    assert!(why.ends_with("not met yet: node-2"), "{why}");
    world.nodes.push(None);
    world.start(2);
    world.pass(seconds(20));
    agreed(&world);
    world.nodes[2] = None;
    // Both of the others restart as well: who votes is on their disks.
    for node in [0, 1] {
        world.nodes[node] = None;
        world.start(node);
    }
    world.pass(seconds(30));
    assert!(agreed(&world) < 2);
    world.nodes[1] = None;
    world.pass(seconds(30));
    assert_eq!(world.leaders(), [None], "one of three is no majority");
}

#[test]
fn whoever_has_lost_its_disk_has_no_vote() {
    let mut world = world(3);
    world.pass(seconds(20));
    agreed(&world);
    world.nodes[2] = None;
    std::fs::remove_dir_all(world.disks.as_ref().unwrap().path().join("2")).unwrap();
    world.start(2);
    world.pass(seconds(20));
    assert!(score(&world, 0, 2).why.contains("another node goes by this name"));
    world.nodes[1] = None;
    world.pass(seconds(30));
    assert_eq!(world.leaders()[0], None, "itself, and somebody who does not know how it voted");
}

#[test]
fn those_who_name_other_voters_are_not_heard() {
    fn of_two_minds(node: usize) -> Settings {
        let mut settings = of_three(node);
        if node == 2 {
            settings.elections[0].protocol = electorate(&["node-1", "node-2"]);
        }
        settings
    }
    let mut world = World::of(3, of_two_minds, Some(tempfile::tempdir().unwrap()));
    world.pass(seconds(30));
    let refused = |node: usize| world.core(node).refused.get("other-voters").copied();
    assert!(refused(0) > Some(0) || refused(1) > Some(0) || refused(2) > Some(0));
    assert_eq!(world.leaders()[2], None, "node-1 does not answer to such a list");
    let why = election(&world, 2).why;
    assert!(why.contains("means other voters"), "{why}");
}

#[test]
fn a_member_that_comes_and_goes_loses_its_score_and_earns_it_back() {
    let mut world = world(3);
    world.pass(seconds(20));
    let flapper = (agreed(&world) + 1) % 3;
    let observer = agreed(&world);
    world.pass(seconds(30));
    let good = score(&world, observer, flapper).score;
    assert!(good > 0.8, "{good}");
    for _ in 0..5 {
        world.nodes[flapper] = None;
        world.pass(seconds(6));
        world.start(flapper);
        world.pass(seconds(6));
    }
    let bad = score(&world, observer, flapper);
    assert!(bad.score < 0.5 && bad.rank == 3, "{bad:?}");
    world.pass(seconds(200));
    let again = score(&world, observer, flapper).score;
    assert!(again > good - 0.1, "{again}");
}

#[test]
fn a_leader_that_does_badly_makes_way_after_its_tenure_and_not_before() {
    let mut world = world(3);
    world.pass(seconds(8));
    let leader = agreed(&world);
    let report = |world: &mut World| {
        let report = Request::Report { election: "backup".to_owned(), of: None, cost: 100 };
        world.with(leader, |core, now, inbox| core.on_request(now, report, inbox)).unwrap();
        world.pass(seconds(2));
    };
    for _ in 0..4 {
        report(&mut world);
    }
    assert_eq!(agreed(&world), leader, "its time is not up");
    for _ in 0..15 {
        if agreed(&world) == leader {
            report(&mut world);
        }
    }
    assert_ne!(agreed(&world), leader);
    let score = score(&world, (leader + 1) % 3, leader);
    assert!(score.score < 0.8, "{score:?}");
}

#[test]
fn an_observer_votes_and_never_leads() {
    fn one_stands(node: usize) -> Settings {
        let mut settings = of_three(node);
        settings.elections[0].standing.observer = node != 1;
        settings
    }
    let mut world = World::of(3, one_stands, Some(tempfile::tempdir().unwrap()));
    world.pass(seconds(20));
    assert_eq!(agreed(&world), 1);
    world.nodes[1] = None;
    world.pass(seconds(30));
    assert!(world.leaders().iter().all(Option::is_none));
}

#[test]
fn a_vote_that_cannot_be_written_is_not_cast() {
    let mut world = world(3);
    for _ in 0..40 {
        if election(&world, 0).why.contains("not met yet") {
            world.pass(Duration::from_millis(100));
        }
    }
    // Its directory is gone: nothing can be written into it.
    std::fs::remove_dir_all(world.disks.as_ref().unwrap().path().join("0")).unwrap();
    world.pass(seconds(20));
    let status = election(&world, 0);
    assert!(status.leader.is_none() && status.why.contains("did not take a vote"), "{status:?}");
    let leaders = world.leaders();
    assert!(leaders[1].is_some() && leaders[1] == leaders[2], "{leaders:?}");
}
