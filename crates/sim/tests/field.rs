//! Scenarios whose nodes move, and talk over the air.

use std::sync::Arc;

use bellwether_proto::{Seed, Time};
use bellwether_sim::{
    observe::Metric,
    run::{
        run,
        world::{movement, world},
    },
    scenario::{Mobility, Scenario, SharedMovement},
    world::mobility::Movement,
};

const SECTIONS: &str = r#"
name = "field"
duration = "120s"
[network]
nodes = 30
placement = { kind = "field", side = 300.0, range = 80.0 }
mobility = { kind = "random-waypoint", speed = [5, 15], pause = "2s" }
[election]
kind = "announce"
variant = "le-s"
announce = "1s"
suppress = "1s"
listen = "3s"
"#;

fn scenario(sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    Scenario::parse("field", SECTIONS, &sets).unwrap_or_else(|error| panic!("{error}"))
}

const WIFI: &str = r#"network.radio={ kind = "wifi" }"#;

#[test]
fn one_seed_one_movement_one_trace() {
    for sets in [&[][..], &[WIFI], &[r#"network.radio={ kind = "wifi", interference = 1.8 }"#]] {
        let scenario = scenario(sets);
        let first = run(&scenario, 1).unwrap();
        assert_eq!(first, run(&scenario, 1).unwrap());
        assert_ne!(first.trace, run(&scenario, 2).unwrap().trace);
        assert!(first.value(Metric::Deliveries).unwrap() > 100.0);
    }
}

/// What the network holds after a while is what the positions say then, and so are the paths.
#[test]
fn links_that_come_and_go_one_by_one_are_those_of_the_positions() {
    let scenario = scenario(&[]);
    let movement = movement(&scenario, 5).unwrap().unwrap();
    let (mut network, nodes) = world(&scenario, Seed::new(5)).unwrap();
    (0..nodes).for_each(|node| network.set_up(node, true));
    let mut changes = movement.link_changes(80.0, 120.0).peekable();
    let mut applied = 0;
    for second in 1..120 {
        let now = Time::from_micros(second * 1_000_000);
        while let Some(change) = changes.next_if(|change| change.at <= now) {
            match change.up {
                true => network.link_up(change.a, change.b),
                false => network.link_down(change.a, change.b),
            }
            applied += 1;
        }
        let near = movement.neighbours(80.0, second as f64);
        let mut still = scenario.clone();
        let there = Movement::still(&movement.positions(second as f64));
        still.network.mobility = Mobility::Trace(SharedMovement(Arc::new(there)));
        let (mut fresh, _) = world(&still, Seed::new(5)).unwrap();
        (0..nodes).for_each(|node| fresh.set_up(node, true));
        for node in 0..nodes {
            assert_eq!(network.neighbours(node).unwrap(), near[node as usize], "{node}, {second}");
            assert_eq!(network.path_lengths(node), fresh.path_lengths(node), "{node}, {second}");
        }
        assert_eq!(network.components(), fresh.components());
    }
    assert!(applied > 500, "{applied}");
}

/// Two pairs that meet and part: two leaders, one, two.
#[test]
fn whoever_walks_away_elects_by_itself() {
    let lines = "0 0 0 60 0 0\n0 5 0 60 5 0\n0 100 0 20 100 0 30 10 0 80 10 0 90 100 0\n";
    let lines = format!("{lines}0 105 0 20 105 0 30 15 0 80 15 0 90 105 0\n");
    let folder = std::env::temp_dir().join(format!("bellwether-field-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("meet.movements");
    std::fs::write(&file, lines).unwrap();
    let walk = format!(r#"network.mobility={{ kind = "trace", file = "{}" }}"#, file.display());
    let range = r#"network.placement={ kind = "field", side = 200.0, range = 20.0 }"#;
    for radio in [r#"network.radio={ kind = "ideal" }"#, WIFI] {
        let scenario = scenario(&[&walk, range, "network.nodes=4", radio]);
        let outcome = run(&scenario, 3).unwrap();
        // Two leaders, which is agreement while they are apart; then one of them gives way, and later a second is
        // elected once the first has not been heard for a while.
        assert!(outcome.value(Metric::LeadersAtOnce).unwrap() >= 2.0, "{outcome:?}");
        assert!(outcome.value(Metric::Elections).unwrap() >= 3.0, "{outcome:?}");
        assert!(outcome.value(Metric::Agreement).unwrap() > 0.8, "{outcome:?}");
        assert_eq!(outcome.violations, []);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Sixty nodes in one room that all claim to lead at once.
#[test]
fn over_the_air_a_crowd_collides_and_radios_take_energy() {
    let room = r#"network.placement={ kind = "field", side = 50.0, range = 80.0 }"#;
    let sets = [room, "network.nodes=60", "election.announce=20ms", "election.variant=le-a"];
    let crowd = run(&scenario(&[&sets[..], &[WIFI]].concat()), 1).unwrap();
    let value = |metric| crowd.value(metric).unwrap();
    assert!(value(Metric::Collisions) > 100.0, "{crowd:?}");
    assert_eq!(value(Metric::QueueDrops), 0.0);
    assert!(value(Metric::Messages) - value(Metric::Frames) <= 60.0, "{crowd:?}");
    // Everybody hears or misses every frame, except for what was on the air at the end.
    let heard = value(Metric::Deliveries) + value(Metric::Collisions);
    assert_eq!(heard, 59.0 * value(Metric::Frames));
    let (total, dynamic) = (value(Metric::Energy), value(Metric::DynamicEnergy));
    assert!((total - dynamic - 60.0).abs() < 1e-9, "half a watt for two minutes: {total}");
    assert!(dynamic > 0.1, "{dynamic}");
    assert!((0.001..0.5).contains(&value(Metric::AirShare)), "{crowd:?}");
    // An ideal radio is not measured.
    assert_eq!(run(&scenario(&sets), 1).unwrap().value(Metric::Energy), None);
}

#[test]
fn what_is_lost_besides_is_counted_besides() {
    let loss = r#"network.loss={ kind = "independent", rate = 0.25 }"#;
    let outcome = run(&scenario(&[WIFI, loss]), 1).unwrap();
    let value = |metric| outcome.value(metric).unwrap();
    let share = value(Metric::Lost) / (value(Metric::Lost) + value(Metric::Deliveries));
    assert!((share - 0.25).abs() < 0.03, "{share}");
}

#[test]
fn a_crash_and_a_newcomer_on_a_moving_field_over_the_air() {
    let faults = r#"fault=[{ at = "30s", kind = "crash", count = 10 }, { at = "60s", kind = "recover", state = "lost", fraction = 1.0 }, { at = "70s", kind = "join", count = 5 }]"#;
    let outcome = run(&scenario(&[WIFI, faults]), 1).unwrap();
    assert_eq!(outcome.violations, []);
    let calm = run(&scenario(&[WIFI]), 1).unwrap();
    assert_ne!(outcome.value(Metric::Frames), calm.value(Metric::Frames));
    assert!(outcome.value(Metric::Deliveries).unwrap() > 100.0, "{outcome:?}");
}
