//! Whole elections on given lists.
//!
//! First the workload of the lab: 49 nodes on a field, lists of a recorded membership, LEADER told one by one and
//! acknowledged. Then growth: complete lists but for node 0, which `c` others lack, on one hop, LEADER in one
//! multicast. What an election costs besides that multicast grows with `c + f`, not with the number of nodes.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures real time"
)]

mod timed;

use bellwether_proto::{
    Duration, Seed,
    election::churn_tolerant::{Config, Criterion, Form, Multicast, Variant},
};
use bellwether_sim::{
    lists::{
        membership_trace::MembershipTrace,
        snapshot::MemberLists,
        trials::{ListTrials, Trial},
    },
    observe::Metric,
    run::record_membership,
    scenario::{self, Delay, DelayLaw, Loss, Per, Placement, Routing, Scenario},
    world::{Network, place},
};

use timed::timed;

const VARIANTS: [(&str, Variant); 4] = [
    ("base", Variant::Base),
    ("optimistic", Variant::Optimistic),
    ("preferred", Variant::Preferred),
    ("hybrid", Variant::Hybrid),
];

fn main() {
    let scenario = recorded();
    let (took, trace) = timed(|| {
        record_membership(&scenario, 1, Duration::from_secs(1))
            .expect("one field in some is connected")
            .expect("it has a membership")
    });
    println!(
        "49 nodes on a field, loss 0.05, c = 4; lists of {} s recorded in {took:.2} s",
        trace.looks()
    );
    println!(
        "{:<12} {:<13} {:>12} {:>12} {:>8}",
        "variant", "form", "elections/s", "us each", "events"
    );
    for (name, variant) in VARIANTS {
        for (form, label) in [(Form::AsPublished, "as-published"), (Form::Hardened, "hardened")] {
            on_field(name, variant, (form, label), &scenario, &trace);
        }
    }
    println!("\nBase on one hop, complete lists but for node 0");
    println!(
        "{:>6} {:>5} {:>4} {:<13} {:>12} {:>12} {:>12}",
        "N", "c", "f", "form", "set up ms", "election ms", "unicasts"
    );
    for (nodes, c, f) in [
        (49, 4, 0),
        (490, 4, 0),
        (4_900, 4, 0),
        (10_000, 4, 0),
        (10_000, 25, 0),
        (10_000, 50, 0),
        (10_000, 100, 0),
        (10_000, 100, 100),
        (10_000, 200, 0),
        (10_000, 400, 0),
    ] {
        grown(nodes, (c, f), Form::AsPublished);
    }
    grown(10_000, (100, 0), Form::Hardened);
    println!("(seconds of processor time)");
}

fn recorded() -> Scenario {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/churn-tolerant-recorded.toml");
    Scenario::load(file.as_ref(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn config(variant: Variant, form: Form, bounds: (u16, u16)) -> Config {
    Config::new(variant, form)
        .with_grace(None)
        .with_bounds(bounds.0, bounds.1)
        .and_then(|config| config.with_criterion(Criterion::Identity, 0))
        .expect("a valid configuration")
}

fn on_field(
    name: &str,
    variant: Variant,
    (form, label): (Form, &str),
    scenario: &Scenario,
    trace: &MembershipTrace,
) {
    let placed = place(&scenario.network.placement, 49, &mut Seed::new(1).named("placement").rng());
    let network = Network::new(
        &scenario.network,
        placed.expect("it was recorded there"),
        49,
        Seed::new(1).rng(),
    );
    let config = match form {
        Form::AsPublished => config(variant, form, (4, 0))
            .with_multicast(Multicast::Oracle)
            .expect("as published nothing is gossiped"),
        Form::Hardened => config(variant, form, (4, 0)),
    };
    let mut trials = ListTrials::on_trace(network, trace, config);
    let mut events = 0.0;
    let (took, ()) = timed(|| {
        for seed in 0..COUNT {
            let look = 200 + (seed * 400 / COUNT) as usize;
            // Hardened nodes go on telling each other who leads; two seconds are an election.
            let limit = Duration::from_secs(if form == Form::Hardened { 2 } else { 60 });
            let (values, _) = trials.hold(&Trial { look, initiator: None, limit, seed });
            events += value(&values, Metric::Events);
        }
    });
    let each = took / COUNT as f64;
    println!(
        "{name:<12} {label:<13} {:>12.0} {:>12.1} {:>8.0}",
        1.0 / each,
        each * 1e6,
        events / COUNT as f64
    );
}

fn grown(nodes: u32, (c, f): (u16, u16), form: Form) {
    let described = scenario::NetworkSettings {
        nodes,
        start_spread: Duration::ZERO,
        placement: Placement::Mesh,
        delay: Delay { law: DelayLaw::Fixed(Duration::from_millis(1)), per: Per::Hop },
        loss: Loss::None,
        routing: Routing::Hops,
        mobility: Default::default(),
        radio: Default::default(),
    };
    let placed =
        place(&Placement::Mesh, nodes, &mut Seed::new(1).rng()).expect("a mesh is connected");
    let network = Network::new(&described, placed, nodes, Seed::new(1).rng());
    let (set_up, mut trials) = timed(|| {
        let mut lists = MemberLists::complete(nodes);
        lists.miss(0, u32::from(c), &mut Seed::new(2).rng());
        ListTrials::on(network, lists, config(Variant::Base, form, (c, f)))
    });
    let rounds = (200_000 / u64::from(nodes)).clamp(10, 1_000);
    let mut unicasts = 0.0;
    let (took, ()) = timed(|| {
        for seed in 0..rounds {
            let limit = Duration::from_secs(1);
            let (values, _) = trials.hold(&Trial { look: 0, initiator: None, limit, seed });
            assert_eq!(value(&values, Metric::WrongLeader), 0.0, "Theorem 1");
            unicasts += value(&values, Metric::Unicasts);
        }
    });
    println!(
        "{nodes:>6} {c:>5} {f:>4} {:<13} {:>12.2} {:>12.3} {:>12.1}",
        if form == Form::Hardened { "hardened" } else { "as-published" },
        set_up * 1e3,
        took / rounds as f64 * 1e3,
        unicasts / rounds as f64,
    );
}

fn value(values: &[(Metric, Option<f64>)], metric: Metric) -> f64 {
    values.iter().find(|(one, _)| *one == metric).and_then(|(_, value)| *value).unwrap_or(f64::NAN)
}

/// Elections measured on the field.
const COUNT: u64 = 4_000;
