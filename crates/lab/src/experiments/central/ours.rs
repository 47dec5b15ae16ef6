//! What the thesis leaves open: how often the protocols end wrong, what lost beacons cost; and its worked example.

use std::collections::VecDeque;

use bellwether_proto::{
    Boot, Duration, Effect, Election, Input, Machine, NodeId, Outbox, OutboxOf, Peer, Seed, Time,
    election::central::{
        Central, Config, Criterion, Detection, Feed, LinkState, Message, Probes, Profile, tick,
    },
    hash::Real,
};
use bellwether_sim::check::link_flips::{self, Flips};

use super::*;
use crate::scenarios::CENTRAL_FIELD;

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "favier-fig-4.1",
            title: "Five nodes, two of which meet (figures 4.1 to 4.9)",
            source: "thesis, figures 4.1 to 4.9",
            cells: |_| {
                vec![Cell::computed("example", Computation::new("worked example", (), example), 1)]
            },
            claims: example_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "favier-fig-4.11",
            title: "How often Topology Aware sends what has changed",
            source: "thesis, figure 4.11",
            cells: |_| vec![Cell::computed("tick", Computation::new("central tick", (), ticks), 1)],
            claims: tick_claims,
            figures: |_| {
                let curve = (10..=200).map(|range| (f64::from(range), tick_ms(range)));
                let series = [Series::analytic("70 log10(range) - 60", 0, curve)];
                let axes = (Axis::linear("radio range, m"), Axis::linear("ms"));
                vec![Figure::new("favier-fig-4.11", "Between two updates", axes, series)]
            },
        },
        Experiment {
            id: "bellwether-ce-1",
            title: "Links that flip, and how it ends",
            source: "ours; errata E1 to E10",
            cells: ending_cells,
            claims: ending_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "bellwether-ce-2",
            title: "What one lost beacon costs",
            source: "ours; erratum E25",
            cells: |size| {
                let cell = |rho, (patience, timeout): (u32, &str)| {
                    let cell = Cell::new(patient(rho, patience), CENTRAL_FIELD, runs(size))
                        .in_world("beacons")
                        .set("network.placement", "{ kind = \"field\", side = 500, range = 80 }")
                        .set("network.mobility.kind", "random-walk")
                        .set("network.loss", "{ kind = \"independent\", rate = 0.02 }")
                        .set("election.profile", "cel")
                        .set("election.rho", rho)
                        .set("election.silence", timeout);
                    seconds(cell, size.pick(1_800, 120))
                };
                let both = |rho| [(1, "115.2ms"), (3, "320ms")].map(|patience| cell(rho, patience));
                [1.0, 0.7].into_iter().flat_map(both).collect()
            },
            claims: beacon_claims,
            figures: |_| Vec::new(),
        },
    ]
}

/// A random walk at 80 m in which every receiver misses one frame in fifty, and nothing else goes wrong.
fn patient(rho: f64, beacons: u32) -> String {
    format!("CEL-{rho} after {beacons}")
}

fn beacon_claims(data: &Table) -> Vec<Claim> {
    let claim = |rho| {
        let [rates, wrong] = [Metric::NodeMessageRate, Metric::Instability]
            .map(|metric| [1, 3].map(|beacons| data.estimate(patient(rho, beacons), metric)));
        let less = rates[0] / rates[1];
        let shown = format!(
            "{less} times: {} and {} a second and node, wrong {} and {} of the time",
            rates[0], rates[1], wrong[0], wrong[1]
        );
        let sentence = format!(
            "By what factor CEL-{rho} sends less if three beacons must be missed and not one"
        );
        data.claim(sentence, "(project)").showing(shown).at_least(less, 5.0)
    };
    [1.0, 0.7].map(claim).into()
}

/// The protocols whose endings are compared.
const ENDERS: [&str; 5] = ["TA", "CEL-1", "CEL-0.7", "TA hardened", "CEL hardened"];
const LOSSES: [f64; 4] = [0.0, 0.02, 0.1, 0.5];

fn ender(name: &str) -> Result<Config, Box<dyn std::error::Error + Send + Sync>> {
    let rapid = tick(90.0);
    let profile = match name {
        "TA" => Profile::TopologyAware { tick: rapid, probes: Probes::Once },
        "CEL-1" => Profile::Cel { rho: 1.0 },
        "CEL-0.7" => Profile::Cel { rho: 0.7 },
        "TA hardened" => Profile::LinkState(LinkState::ticking(rapid)),
        _ => Profile::LinkState(LinkState::at_once(0.7)),
    };
    Ok(Config::new(profile, Detection::Given)?.with_criterion(Criterion::Closeness)?)
}

/// Runs of a cell go in batches: one alone takes less than a thousandth of a second.
const BATCH: u64 = 50;

fn ending_cells(size: Size) -> Vec<Cell> {
    let batches = size.pick(10_000 / BATCH, 8);
    let mut cells = Vec::new();
    for name in ENDERS {
        for loss in LOSSES {
            for crashes in [0, 3] {
                let work = Computation::new(
                    "central endings in ten minutes",
                    (name, Real(loss), crashes, true),
                    endings,
                );
                cells.push(Cell::computed(ending_name(name, loss, crashes), work, batches));
            }
        }
    }
    cells
}

fn ending_name(name: &str, loss: f64, crashes: u32) -> String {
    format!("{name} loss={loss} crashes={crashes}")
}

fn endings(
    &(name, Real(loss), crashes, fifo): &(&'static str, Real, u32, bool),
    seed: u64,
) -> Found {
    let patience = Duration::from_secs(600);
    let flips = Flips { loss, crashes, fifo, patience, ..Flips::default() };
    let config = ender(name)?;
    let [mut wrong, mut differ, mut leaders, mut own, mut led] = [0.0; 5];
    for one in 0..BATCH {
        let ending = link_flips::run(&flips, config, seed.wrapping_mul(BATCH).wrapping_add(one));
        wrong += f64::from(u8::from(!ending.is_right()));
        differ += f64::from(u8::from(ending.maps_differ));
        leaders += f64::from(u8::from(ending.leaders_differ));
        own += f64::from(u8::from(ending.own_view_wrong));
        led += f64::from(u8::from(ending.wrong_leader));
    }
    let share = |count: f64| count / BATCH as f64;
    Ok(vec![
        Value::ratio(Ending::Wrong, share(wrong)),
        Value::ratio(Ending::MapsDiffer, share(differ)),
        Value::ratio(Ending::LeadersDiffer, share(leaders)),
        Value::ratio(Ending::OwnViewWrong, share(own)),
        Value::ratio(Ending::WrongLeader, share(led)),
    ])
}

measures!(
    /// How runs end.
    Ending {
        Wrong = "wrong",
        MapsDiffer = "maps differ",
        LeadersDiffer = "leaders differ",
        OwnViewWrong = "own view wrong",
        WrongLeader = "wrong leader",
    }
);

fn ending_claims(data: &Table) -> Vec<Claim> {
    let at = |name: &str, loss, crashes, measure| {
        data.estimate(ending_name(name, loss, crashes), measure)
    };
    let hardened = ENDERS.into_iter().filter(|name| name.ends_with("hardened"));
    let all: Vec<Estimate> = hardened
        .flat_map(|name| LOSSES.map(|loss| [0, 3].map(|n| at(name, loss, n, Ending::Wrong))))
        .flatten()
        .collect();
    let most = all.iter().map(|one| one.value).fold(0.0, f64::max);
    // Their model flips other links in another order: what is asked for is the same size, within a factor of two; of
    // quick runs of four.
    let predicted = |sentence: &str, share: f64, (name, loss): (&str, f64), measure| {
        let low = match data.size() {
            Size::Full => share / 2.0,
            // Too few quick runs to see what happens in a few of a thousand.
            Size::Quick if share < 0.01 => 0.0,
            Size::Quick => share / 4.0,
        };
        data.claim(sentence, format!("{:.1}%", 100.0 * share)).between(
            at(name, loss, 0, measure),
            low,
            2.0 * share,
        )
    };
    let published = ["TA", "CEL-1", "CEL-0.7"];
    let wrong = |name: &str, loss| at(name, loss, 3, Ending::Wrong).value > 0.0;
    let somewhere = published.iter().all(|name| LOSSES.iter().all(|&loss| wrong(name, loss)));
    vec![
        data
            .claim(
                "Hardened, runs that are wrong ten minutes later, at 0, 2, 10 and 50% loss, with crashes and without",
                "0 (project)",
            )
            .showing(format!("at most {most:.5} of the runs of {} cells", all.len()))
            .exactly(all, 0.0),
        predicted(
            "TA as published, nothing lost and all in order: maps differ (E1)",
            0.02,
            ("TA", 0.0),
            Ending::MapsDiffer,
        ),
        predicted("And leaders", 0.003, ("TA", 0.0), Ending::LeadersDiffer),
        predicted("At 10% loss its maps differ", 0.34, ("TA", 0.1), Ending::MapsDiffer),
        predicted("And leaders", 0.098, ("TA", 0.1), Ending::LeadersDiffer),
        predicted(
            "CEL-1, nothing lost: somebody's own view is wrong (E6)",
            0.555,
            ("CEL-1", 0.0),
            Ending::OwnViewWrong,
        ),
        predicted("And the leader", 0.14, ("CEL-1", 0.0), Ending::WrongLeader),
        predicted(
            "CEL-0.7, nothing lost: maps differ (E9)",
            0.25,
            ("CEL-0.7", 0.0),
            Ending::MapsDiffer,
        ),
        predicted("And leaders", 0.04, ("CEL-0.7", 0.0), Ending::LeadersDiffer),
        data
            .claim("With loss or crashes every published form ends wrong now and then", "above 0")
            .holds(
                list(published.map(|name| {
                    format!("{name} {}", at(name, 0.1, 3, Ending::WrongLeader))
                })),
                somewhere,
            ),
    ]
}

measure!(
    /// Between two updates at this range.
    Tick(range: u32) = "{range} m"
);

fn tick_ms(range: u32) -> f64 {
    tick(f64::from(range)).as_secs_f64() * 1e3
}

fn ticks((): &(), _: u64) -> Found {
    let value = |step: u32| Value::count(Tick(10 * step), tick_ms(10 * step));
    Ok((1..=20).map(value).collect())
}

fn tick_claims(data: &Table) -> Vec<Claim> {
    let at = |range: u32| data.estimate("tick", Tick(range));
    let expected = [
        (10, 10.0),
        (30, 43.40),
        (60, 64.47),
        (80, 73.22),
        (90, 76.80),
        (130, 87.98),
        (200, 101.07),
    ];
    let near = |&(range, ms): &(u32, f64)| (at(range).value - ms).abs() < 0.006;
    let below = mean((1..=10).map(|step| at(10 * step)));
    let above = mean((11..=20).map(|step| at(10 * step)));
    vec![
        data.claim(
            "70 log10(range) - 60 ms, exactly",
            "10 to 101 ms; about 60 below 100 m and 90 above",
        )
        .holds(
            format!("{:.2} to {:.2} ms; {below:.1} and {above:.1} on average", at(10), at(200)),
            expected.iter().all(near),
        ),
    ]
}

measures!(
    /// How the worked example goes.
    Worked {
        Apart = "apart",
        Together = "together",
        Alike = "alike",
        Messages = "messages",
        Afterwards = "afterwards",
    }
);

/// Path i-k-h and pair g-j; then i and j meet. Identities are in the order of the letters.
fn example((): &(), seed: u64) -> Found {
    const LETTERS: [u64; 5] = [1, 2, 3, 4, 5];
    let [g, h, i, j, k] = LETTERS.map(NodeId::new);
    let profile = Profile::TopologyAware { tick: Duration::from_millis(77), probes: Probes::Once };
    let config = Config::new(profile, Detection::Given)?.with_criterion(Criterion::Closeness)?;
    let mut nodes = LETTERS.map(|id| {
        Central::new(Peer::new(NodeId::new(id), Boot::new(1)), config, Seed::new(seed).indexed(id))
    });
    let mut links: Vec<(NodeId, NodeId)> = Vec::new();
    let mut air: VecDeque<(NodeId, Message)> = VecDeque::new();
    let mut out = Outbox::new();
    let mut now = Time::ZERO;
    let mut sent = 0_u32;
    let place = |id: NodeId| id.get() as usize - 1;
    let drain = |from, out: &mut OutboxOf<Central>, air: &mut VecDeque<(NodeId, Message)>| {
        while let Some(effect) = out.pop() {
            if let Effect::Broadcast(message) = effect {
                air.push_back((from, message));
            }
        }
    };
    for node in &mut nodes {
        node.handle(now, Input::Start, &mut out)?;
    }
    // Until a second after the links are as they should be, whatever is sent arrives at once.
    let mut settle = |nodes: &mut [Central; 5],
                      links: &[(NodeId, NodeId)],
                      new: &[(NodeId, NodeId)]|
     -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
        sent = 0;
        for &(a, b) in new {
            for (one, other) in [(a, b), (b, a)] {
                nodes[place(one)].handle(now, Input::Feed(Feed::Up(other)), &mut out)?;
                drain(one, &mut out, &mut air);
            }
        }
        let end = now + Duration::from_secs(1);
        loop {
            while let Some((from, message)) = air.pop_front() {
                sent += 1;
                let heard = links.iter().filter_map(|&(a, b)| match from {
                    _ if a == from => Some(b),
                    _ if b == from => Some(a),
                    _ => None,
                });
                for to in heard.collect::<Vec<_>>() {
                    let peer = Peer::new(from, Boot::new(1));
                    let input = Input::Message { from: peer, via: from, message: &message };
                    nodes[place(to)].handle(now, input, &mut out)?;
                    drain(to, &mut out, &mut air);
                }
            }
            let next = nodes.iter().filter_map(|node| node.deadline()).map(|(at, _)| at).min();
            let Some(next) = next.filter(|&next| next < end) else { break };
            now = now.max(next);
            for at in 0..nodes.len() {
                if nodes[at].deadline().is_some_and(|(due, _)| due <= now) {
                    nodes[at].handle(now, Input::Timeout, &mut out)?;
                    drain(NodeId::new(LETTERS[at]), &mut out, &mut air);
                }
            }
        }
        now = end;
        Ok(sent)
    };
    links.extend([(i, k), (k, h), (g, j)]);
    let new = links.clone();
    settle(&mut nodes, &links, &new)?;
    let named = |nodes: &[Central; 5], id: NodeId| nodes[place(id)].leadership().leader;
    let apart = [h, i, k].iter().all(|&id| named(&nodes, id) == Some(k))
        && [g, j].iter().all(|&id| named(&nodes, id) == Some(j));
    links.push((i, j));
    let messages = settle(&mut nodes, &links, &[(i, j)])?;
    let together = LETTERS.iter().all(|&id| named(&nodes, NodeId::new(id)) == Some(i));
    let first = nodes[0].map().map(|map| map.entries().to_vec());
    let alike = nodes.iter().all(|node| node.map().map(|map| map.entries().to_vec()) == first);
    let silent = settle(&mut nodes, &links, &[])?;
    Ok(vec![
        Value::whether(Worked::Apart, apart),
        Value::whether(Worked::Together, together),
        Value::whether(Worked::Alike, alike),
        Value::count(Worked::Messages, f64::from(messages)),
        Value::count(Worked::Afterwards, f64::from(silent)),
    ])
}

fn example_claims(data: &Table) -> Vec<Claim> {
    let claim = |sentence: &str, published: &str, measure, expected: f64| {
        let found = data.estimate("example", measure).value;
        data.claim(sentence, published).holds(found, found == expected)
    };
    vec![
        claim("Apart, h, i and k name k, and g and j name j", "figure 4.1", Worked::Apart, 1.0),
        claim("After i and j have met all name i", "figure 4.9", Worked::Together, 1.0),
        claim("And all maps are the same", "figure 4.9", Worked::Alike, 1.0),
        claim("Then there is silence", "figures 4.6 to 4.9", Worked::Afterwards, 0.0),
    ]
}
