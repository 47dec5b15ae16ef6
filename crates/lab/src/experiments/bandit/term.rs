//! The hardened form: what it promises, and what it costs beside the others.

use bellwether_proto::election::bandit::{Config, Policy, Profile};

use bellwether_sim::observe::Metric;

use super::*;
use crate::scenarios::{BANDIT_BESIDE, BANDIT_CRASH};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "ble-live-7.2",
            title: "The leader crashes, and some messages are lost",
            source: "bandit report, section 7.2",
            cells: |size| {
                let published = |policy| Config::new(Profile::Published, policy);
                let mut cells = Vec::new();
                for nodes in [5, 11] {
                    for loss in LOSSES {
                        let variants = vec![
                            variant("published", published(Policy::EPSILON_GREEDY)),
                            variant("hardened", hardened(Policy::EPSILON_GREEDY)),
                        ];
                        let crash = Computation::over("a crash", BANDIT_CRASH, variants, try_all);
                        let name = format!("N={nodes} loss={loss}");
                        let cell = Cell::computed(name, crash, size.pick(200, 20))
                            .set("network.nodes", nodes)
                            .set("network.loss.rate", loss);
                        cells.push(cell);
                    }
                }
                cells
            },
            claims: crash_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "ble-hardened",
            title: "Terms, votes and heartbeats in the report's environment",
            source: "project: H1 to H10",
            cells: |size| {
                let mut cells = Vec::new();
                for (nodes, machines) in SIZES {
                    let variants = vec![
                        dle(),
                        rle(),
                        eps(),
                        variant("hardened", hardened(Policy::EPSILON_GREEDY)),
                        variant("hardened at random", hardened(Policy::Random)),
                    ];
                    let runs = size.pick(50, if nodes == 5 { 6 } else { 2 });
                    cells.push(s40((nodes, machines), variants, runs));
                    let beside = Cell::new(beside_name(nodes), BANDIT_BESIDE, runs);
                    cells.push(beside.set("network.nodes", nodes));
                }
                cells
            },
            claims: hardened_claims,
            figures: |_| Vec::new(),
        },
    ]
}

fn hardened(policy: Policy) -> Config {
    Config::new(Profile::Hardened, policy)
}

const LOSSES: [f64; 4] = [0.0, 0.1, 0.2, 0.3];

fn beside_name(nodes: u32) -> String {
    format!("churn-tolerant N={nodes}")
}

/// Found here: the text's Q4.
const DEAF_TO_REPEATS: &str = "where all heard of a request but its answer was lost, nobody suspects the leader for it: if that one then crashes, the client repeats it for ever";

fn crash_claims(data: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for nodes in [5, 11] {
        let of = |profile, measure| {
            LOSSES.map(|loss| at(data, &format!("N={nodes} loss={loss}"), profile, measure))
        };
        for profile in ["published", "hardened"] {
            let all = |one: &Estimate| one.value == 40.0 && one.error == 0.0;
            let claim = data
                .claim(
                    format!(
                        "N = {nodes}, {profile}: every run ends with every request answered, at 0 to 30% loss"
                    ),
                    "argued, without a bound on rounds",
                )
                .holds(
                    format!("rounds {}", list(of(profile, Measured::Rounds))),
                    of(profile, Measured::Answered).iter().all(all),
                );
            claims.push(match profile {
                "published" => claim.missed(DEAF_TO_REPEATS),
                _ => claim,
            });
        }
        let sentence = format!(
            "N = {nodes}, hardened without loss: terms, one at the start and one after the crash, in every run (P-5)"
        );
        let terms = of("hardened", Measured::Terms)[0];
        claims.push(data.claim(sentence, "2").exactly(terms, 2.0));
        let several = of("published", Measured::SeveralLeading);
        claims.push(
            data.claim(
                format!("N = {nodes}, published: with losses two lead at once for a while (A-1)"),
                "\"a consensus of f + 1 nodes\"",
            )
            .holds(format!("{} s at 0 to 30% loss", list(several)), several[3].value > 0.0),
        );
    }
    claims
}

fn hardened_claims(data: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (nodes, _) in SIZES {
        let cell = s40_name(nodes);
        let value = |name, measure| at(data, &cell, name, measure);
        let per_round =
            |name| value(name, Measured::ElectionMessages) / value(name, Measured::Rounds);
        let answered = |name| value(name, Measured::Answered);
        claims.push(
            data
                .claim(
                    format!("N = {nodes}: requests answered, of which the report's forget those that an election interrupts"),
                    "2500",
                )
                .showing(format!("{} against {} (eps)", answered("hardened"), answered("eps")))
                .exactly(answered("hardened"), 2500.0),
        );
        for (than, other) in [("as published", "eps"), ("with random lists", "hardened at random")]
        {
            claims.push(
                data.claim(format!("N = {nodes}: its rounds by those {than}"), "ours alone")
                    .at_most(by(data, &cell, "hardened", other), 1.0),
            );
        }
        let unicasts = data.estimate(beside_name(nodes), Metric::Unicasts);
        let told = data.estimate(beside_name(nodes), Metric::Multicasts).value;
        let churn = unicasts + told * f64::from(nodes - 1);
        let [of_dle, of_eps, ours] = ["DLE", "eps", "hardened"].map(per_round);
        claims.push(
            data
                .claim(
                    format!("N = {nodes}: it costs more messages for each round than DLE, and than a churn-tolerant election"),
                    "lists alone are a(N - 1)",
                )
                .holds(
                    format!(
                        "{ours} (hardened), {of_eps} (eps), {of_dle} (DLE), {churn} (churn-tolerant, c = f = 1)"
                    ),
                    ours.value > of_dle.value && ours.value > churn.value,
                ),
        );
        let beats = value("hardened", Measured::HeartbeatMessages);
        let elections = value("hardened", Measured::ElectionMessages);
        claims.push(
            data.claim(
                format!("N = {nodes}: heartbeats outnumber all messages of its elections"),
                "the price of noticing without a client",
            )
            .holds(format!("{beats} against {elections}"), beats.value > elections.value),
        );
        claims.push(
            data.claim(
                format!("N = {nodes}: most that lead at once, in this environment"),
                "ours alone",
            )
            .exactly(value("hardened", Measured::LeadersAtOnce), 1.0),
        );
    }
    claims
}
