//! The true `c` of recorded memberships: the same as by looking up every list, and what it comes to on the field of
//! the thesis.

use std::{num::NonZeroUsize, path::Path};

use bellwether_proto::{Duration, NodeId};
use bellwether_sim::{
    lists::{
        inconsistency::{Course, over_time},
        membership_trace::{INTERVAL, MembershipTrace},
    },
    run::record_membership,
    scenario::Scenario,
};
use rayon::prelude::*;

fn record(seed: u64, interval: Duration, sets: &[&str]) -> MembershipTrace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/medley-field.toml");
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::load(&path, &sets).unwrap_or_else(|error| panic!("{error}"));
    let trace = record_membership(&scenario, seed, interval).expect("the field can be drawn");
    trace.expect("members keep lists")
}

#[test]
fn it_is_what_the_lists_say_one_by_one() {
    let churn = r#"fault=[
        { at = "20s", kind = "crash", count = 3 },
        { at = "90s", kind = "recover", state = "lost" },
        { at = "150s", kind = "leave", count = 2 },
    ]"#;
    let sets = [churn, "network.loss.rate=0.2", r#"membership.form="as-published""#];
    let trace = record(5, Duration::from_secs(10), &sets);
    let nodes = || (0..u64::from(trace.nodes())).map(NodeId::new);
    let mut seen = 0;
    for look in over_time(&trace, NonZeroUsize::MIN) {
        let lists: Vec<_> = nodes().map(|node| trace.list(node, look.at)).collect();
        let lacked_by = |node: NodeId| {
            let others = lists.iter().enumerate().filter(|(at, _)| *at as u64 != node.get());
            others
                .filter(|(_, list)| list.as_ref().is_some_and(|list| !list.contains_key(&node)))
                .count()
        };
        for node in nodes() {
            let live = lists[node.get() as usize].is_some();
            let expected = if live { lacked_by(node) } else { 0 };
            let found = look.missing.get(&node).copied().unwrap_or(0);
            assert_eq!(found as usize, expected, "{node} at {}, seed 5", look.at);
            seen += found;
        }
        assert_eq!(look.live as usize, lists.iter().flatten().count());
    }
    assert!(seen > 0, "nobody was ever missing, so nothing was tested");
}

/// Where nobody crashes, every missing entry is a false accusation: of those, the hardened form makes none at the loss
/// of Table 5.1's first rows, and the published form some at that of its fourth.
#[test]
fn a_quiet_field_is_consistent_if_hardened_and_is_not_as_published_where_much_is_lost() {
    let worst = |form: &str, loss: &str| {
        let sets = [
            "fault=[]",
            &format!("membership.form=\"{form}\""),
            &format!("network.loss.rate={loss}"),
        ];
        let c = |seed| {
            let looks: Vec<_> =
                over_time(&record(seed, INTERVAL, &sets), NonZeroUsize::MIN).collect();
            Course::of(&looks).expect("there were looks").max
        };
        (1..=8).into_par_iter().map(c).max()
    };
    assert_eq!(worst("hardened", "0.05"), Some(0));
    assert!(worst("as-published", "0.2") > Some(0));
}
