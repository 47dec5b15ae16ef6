//! Movements against what they should be on average, and links against looking at every step.

use std::{io::Write as _, sync::Arc};

use bellwether_proto::{Duration, Seed, Time};

use super::{
    bonnmotion::parse,
    model::{FLIGHT, PAUSE, half_cauchy},
    *,
};
use crate::world::{LevyProfile, Mobility, parts};

const RUN: Duration = Duration::from_secs(1_800);

fn random_walk() -> Mobility {
    let (pause, leg) = (Duration::from_secs(10), Duration::from_secs(60));
    Mobility::RandomWalk { speed: (0.1, 1.0), pause, leg }
}

fn random_waypoint() -> Mobility {
    Mobility::RandomWaypoint { speed: (5.0, 15.0), pause: Duration::from_secs(10) }
}

fn point_of_interest() -> Mobility {
    let pause = Duration::from_secs(10);
    Mobility::PointOfInterest { speed: (5.0, 15.0), pause, spacing: 9.0 }
}

fn moved(mobility: &Mobility, side: f64, nodes: u32, seed: u64) -> Arc<Movement> {
    let seed = Seed::new(seed).named("movement");
    Arc::new(generate(mobility, side, nodes, RUN, seed).unwrap())
}

#[test]
fn v16_a_line_is_followed_and_clamped() {
    let movement = parse("v16", "0 0 0 10 10 0 20 10 0\n").unwrap();
    assert_eq!(movement.position(0, -1.0), (0.0, 0.0));
    assert_eq!(movement.position(0, 5.0), (5.0, 0.0));
    assert_eq!(movement.position(0, 15.0), (10.0, 0.0));
    assert_eq!(movement.position(0, 99.0), (10.0, 0.0));
}

#[test]
fn flights_and_pauses_have_the_means_of_m4() {
    let mut rng = Seed::new(1).rng();
    let mut mean = |bounds| (0..400_000).map(|_| half_cauchy(bounds, &mut rng)).sum::<f64>() / 4e5;
    // The closed forms are 26.9 m and 66.1 s; standard errors about 0.1 and 0.5.
    let (flight, pause) = (mean(FLIGHT), mean(PAUSE));
    assert!((flight - 26.9).abs() < 0.4, "{flight}");
    assert!((pause - 66.1).abs() < 2.0, "{pause}");
}

#[test]
fn everybody_stays_on_the_field_and_keeps_to_its_speed() {
    let cases = [
        (random_walk(), 1.0),
        (random_waypoint(), 15.0),
        (point_of_interest(), 15.0),
        (Mobility::LevyWalk(LevyProfile::Clean), 1.0),
        // Across the field and back in a minute, along both axes.
        (Mobility::LevyWalk(LevyProfile::Published), 500.0 * core::f64::consts::SQRT_2 / 60.0),
    ];
    for (mobility, fastest) in cases {
        let movement = moved(&mobility, 500.0, 60, 3);
        assert_eq!(movement.nodes(), 60);
        assert!(movement.fastest() <= fastest * 1.000_001, "{mobility:?}: {}", movement.fastest());
        assert!(movement.fastest() > fastest * 0.5, "{mobility:?}: {}", movement.fastest());
        for node in 0..60 {
            let points = movement.waypoints(node);
            assert!(points.last().unwrap().at >= 1_800.0, "{mobility:?}");
            let inside = |at: f64| (0.0..=500.0).contains(&at);
            assert!(points.iter().all(|point| inside(point.x) && inside(point.y)), "{mobility:?}");
        }
        assert_eq!(movement, moved(&mobility, 500.0, 60, 3));
        assert_ne!(movement, moved(&mobility, 500.0, 60, 4));
    }
}

/// M2: 60 nodes on four rings, connected at 10 m, and all back some nine times in half an hour.
#[test]
fn the_point_of_interest_gathers_everybody_again_and_again() {
    let movement = moved(&point_of_interest(), 900.0, 60, 1);
    assert_eq!(parts(&movement.neighbours(10.0, 0.0), |_| true), 1);
    assert!(parts(&movement.neighbours(9.3, 0.0), |_| true) > 1, "the largest chord is 9.398 m");
    let home = movement.positions(0.0);
    let together = |second: &u32| movement.positions(f64::from(*second)) == home;
    let seconds: Vec<u32> = (0..1_800).filter(together).collect();
    let gatherings = 1 + seconds.windows(2).filter(|pair| pair[1] - pair[0] > 1).count();
    assert!((9..=12).contains(&gatherings), "{gatherings}");
}

/// E20: the published 18 components at 90 m are those of radius 90.
#[test]
fn waypoints_on_900_metres_make_some_eighteen_components_at_90() {
    let (mut sum, mut looks) = (0, 0);
    for seed in 0..5 {
        let movement = moved(&random_waypoint(), 900.0, 60, seed);
        for second in (0..1_800).step_by(10) {
            sum += parts(&movement.neighbours(90.0, f64::from(second)), |_| true);
            looks += 1;
        }
    }
    let mean = sum as f64 / f64::from(looks);
    assert!((mean - 18.0).abs() < 3.0, "{mean}");
}

/// The calibration in `docs/rules/central.md`: link changes a second at 80 m on 500 m.
#[test]
fn only_the_published_levy_walk_changes_links_more_often_than_the_random_walk() {
    let rate = |mobility: &Mobility| {
        let changes = |seed| moved(mobility, 500.0, 60, seed).link_changes(80.0, 1_800.0).count();
        (0..5).map(changes).sum::<usize>() as f64 / 5.0 / 1_800.0
    };
    let walk = rate(&random_walk());
    let published = rate(&Mobility::LevyWalk(LevyProfile::Published));
    let clean = rate(&Mobility::LevyWalk(LevyProfile::Clean));
    assert!((walk - 1.30).abs() < 0.15, "{walk}");
    assert!((published - 1.97).abs() < 0.25, "{published}");
    assert!(clean < walk, "{clean}");
}

/// What the quadratic says, every tenth of a second, against looking.
#[test]
fn link_changes_are_what_looking_at_every_step_sees() {
    let jumps = "0 0 0 10 400 400 10 20 20 30 21 20\n5 30 0 12 30 400\n0 30 30\n";
    // At the end of a window, away from one and to another.
    let apart = "0 0 0 10 0 0 10 90 90 20 90 90 20 0 0\n0 5 0\n0 90 95\n";
    let cases = [
        (moved(&random_waypoint(), 300.0, 40, 1), 40.0, 200.0),
        (moved(&random_walk(), 100.0, 30, 2), 15.0, 600.0),
        (moved(&Mobility::LevyWalk(LevyProfile::Published), 500.0, 40, 3), 80.0, 400.0),
        (moved(&point_of_interest(), 900.0, 60, 4), 10.0, 300.0),
        (Arc::new(parse("jumps", jumps).unwrap()), 20.0, 40.0),
        (Arc::new(parse("apart", apart).unwrap()), 20.0, 40.0),
    ];
    for (case, (movement, range, end)) in cases.into_iter().enumerate() {
        let mut near = movement.neighbours(range, 0.0);
        let mut changes = movement.link_changes(range, end).peekable();
        let mut seen = 0;
        let mut last = Time::ZERO;
        for step in 0..(end * 10.0) as u32 {
            let now = f64::from(step) / 10.0 + 0.05;
            while changes.peek().is_some_and(|change| change.at.as_secs_f64() <= now) {
                let LinkChange { at, a, b, up } = changes.next().unwrap();
                assert!(a < b && at >= last, "{case}: {at}");
                last = at;
                for (from, to) in [(a, b), (b, a)] {
                    let list = &mut near[from as usize];
                    match list.binary_search(&to) {
                        Ok(slot) if !up => drop(list.remove(slot)),
                        Err(slot) if up => list.insert(slot, to),
                        _ => panic!("{case}: {a} and {b} at {at}: already so"),
                    }
                }
                seen += 1;
            }
            // On the edge to within rounding either answer is right.
            let (low, high) =
                (movement.neighbours(range - 1e-4, now), movement.neighbours(range + 1e-4, now));
            for (node, list) in near.iter().enumerate() {
                let missing = low[node].iter().find(|other| list.binary_search(other).is_err());
                let extra = list.iter().find(|other| high[node].binary_search(other).is_err());
                assert_eq!((missing, extra), (None, None), "{case}: {node} at {now}");
            }
        }
        assert!(seen > 3, "{case}: {seen}");
    }
}

#[test]
fn a_movement_survives_its_file_to_the_last_bit_compressed_or_not() {
    let movement = moved(&Mobility::LevyWalk(LevyProfile::Clean), 500.0, 7, 9);
    let text = to_text(&movement);
    assert_eq!(parse("text", &text).unwrap(), *movement);
    let folder = std::env::temp_dir().join(format!("bellwether-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (plain, packed) = (folder.join("walk.movements"), folder.join("walk.movements.gz"));
    std::fs::write(&plain, &text).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    std::fs::write(&packed, gzip.finish().unwrap()).unwrap();
    assert_eq!(read(&plain).unwrap(), *movement);
    assert_eq!(read(&packed).unwrap(), *movement);
    std::fs::write(&packed, [0x1f, 0x8b, 1, 2, 3]).unwrap();
    assert!(read(&packed).unwrap_err().to_string().contains("cannot be decompressed"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(read(&plain).unwrap_err().to_string().ends_with("there is no such file"));
}

#[test]
fn comments_are_skipped_and_heights_let_go() {
    let flat = parse("flat", "# by hand\n0 1 2 10 3 4\n\n0 5 6\n").unwrap();
    assert_eq!(flat.nodes(), 2);
    let marked = parse("solid", "#3D\n0 1 2 99 10 3 4 99\n0 5 6 1\n").unwrap();
    assert_eq!(marked, flat);
    let unmarked = parse("solid", "0 1 2 99 10 3 4 99\n0 5 6 1\n").unwrap();
    assert_eq!(unmarked, flat);
    // Twelve values either way: times that go back tell.
    let twelve = parse("solid", "0 1 2 9 1 1 2 9 2 1 2 9\n").unwrap();
    assert_eq!(twelve.waypoints(0).len(), 3);
}

#[test]
fn what_is_wrong_in_a_file_is_named_with_its_place() {
    let error = |text: &str| parse("f", text).unwrap_err().to_string();
    assert_eq!(error("# nothing\n"), "f: moves nobody: there is no line of \"t x y\"");
    assert_eq!(error("0 1 2\n0 ä b\n"), "f:2:3: \"ä\" is not a number");
    assert_eq!(error("0 ä1 b\n"), "f:1:3: \"ä1\" is not a number");
    assert_eq!(error("0 1 inf\n"), "f:1:5: \"inf\" is beyond any field: at most 1e9");
    assert_eq!(
        error("0 1 2 3 4\n"),
        "f:1:9: \"4\" is value 5 of a line that needs them by 3, t x y (or 4, t x y z)"
    );
    assert_eq!(error("5 1 2  4 1 2\n"), "f:1:8: \"4\" is earlier than the time before, 5");
    assert_eq!(error("-1 1 2\n"), "f:1:1: \"-1\" is a time before the beginning");
}
