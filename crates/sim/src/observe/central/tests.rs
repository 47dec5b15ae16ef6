//! Test vector V15.

use super::*;

/// Nodes in a row, all up, each naming one.
fn row(named: &[u32], oracle: Oracle) -> CentralWatch {
    let nodes = named.len() as u32;
    let mut central = CentralWatch::new(nodes, oracle);
    for node in 1..nodes {
        central.truth.connect(node - 1, node);
    }
    central.up.fill(true);
    central.named = named.iter().copied().map(Some).collect();
    central.component = central.truth.graph().components();
    central.find_centres();
    central.recount();
    central
}

fn value(central: &CentralWatch, metric: Metric) -> Option<f64> {
    central.values(&Counters::default()).into_iter().find(|(other, _)| *other == metric).unwrap().1
}

#[test]
fn v15_instability_and_paths() {
    let mut central = row(&[2, 2, 3, 3], Oracle::Oldest);
    central.finish(Time::from_micros(1_000_000));
    assert_eq!(value(&central, Metric::Instability), Some(0.5));
    assert_eq!(value(&central, Metric::SplitComponents), Some(1.0));
    assert_eq!(value(&central, Metric::StaleLeaders), Some(0.0));
    let mut central = row(&[1, 1, 1, 1, 1], Oracle::Closeness);
    central.finish(Time::ZERO);
    assert_eq!(value(&central, Metric::MedianPath), Some(1.0), "of 0, 1, 1, 2, 3");
    assert_eq!(value(&central, Metric::Diameter), Some(4.0));
    assert_eq!(value(&central, Metric::RelativePath), Some(0.75));
}

#[test]
fn the_right_leader_depends_on_the_oracle() {
    let mut star = row(&[0, 0, 0, 0], Oracle::Closeness);
    assert_eq!(star.right, [2; 4], "1 and 2 are in the middle: the higher");
    star.truth.connect(1, 3);
    star.oracle = Oracle::Degree;
    star.find_centres();
    assert_eq!(star.right, [1; 4]);
    star.oracle = Oracle::Oldest;
    star.born = [9, 5, 5, 7].map(Time::from_micros).into();
    star.find_centres();
    assert_eq!(star.right, [2; 4], "of the two oldest the higher");
}

#[test]
fn a_leader_outside_the_component_is_stale() {
    let mut central = row(&[2, 2, 2, 2], Oracle::Closeness);
    central.truth.disconnect(1, 2);
    central.component = central.truth.graph().components();
    central.find_centres();
    central.recount();
    assert_eq!(central.right, [1, 1, 3, 3]);
    assert_eq!((central.now.stale, central.now.wrong, central.now.components), (2, 4, 2));
    assert_eq!(central.now.split, 0, "wrong, but of one mind");
}
