//! What the settings mean: for how long nobody leads after a failure, and what staying alert costs.
//!
//! # Formulas
//!
//! For `n` members, of which the leader fails, with waits `A` (ack), `B` (beat), `E` (election), `T` (period) and `S`
//! (suspicion).
//!
//! *Silence.* Two others watch the leader. Its last beat was up to `B` ago when it fails, and they wait for `3B`
//! from then: the sooner of the two asks after `2B` to `3B`.
//!
//! *Verdict.* The probe is answered by nobody within `3A`. The suspect has `1.5B`, or `2A` if that is longer, to
//! contradict.
//!
//! *Worst.* Both watchers fail with the leader, or it fails before it has told anybody to watch it. Then probes find it:
//! each of the others probes one member a period, chosen among `n - 1`, so that the time to the first probe after its
//! failure is about exponential, longer than `3T` in one case of twenty; the probe takes `T`, and the suspect has `S`, and
//! where there are more than 50 members `S ln(n+1) / ln 50`, to contradict. So it is with any other member that fails.
//!
//! *Election.* Those that watch are those that would lead. The better of them asks `c + f + 1` others at once, which takes a
//! few journeys and is not reckoned here; `2E` more if some of those asked have failed too.
//!
//! *Traffic.* In quiet times every member sends one probe and one answer a period, and tells one other who leads
//! once every `refresh`, per election; the leader sends two beats every `B`. A datagram is taken to be of 110 bytes with its IP header.
//!
//! Preferring the near (`exponent`) makes the far wait longer for a probe than is reckoned here.
//!
//! In an announced election the leader is given up after `listen`, and the next one claims within `suppress`; it
//! sends one datagram every `announce`.
//!
//! In a learned election the leader is given up after its `lease`, or as soon as the membership does; then lists are gathered for
//! `3E` if not all voters are there, and a winner that fails as well costs `4E` and another try. It sends four heartbeats a
//! lease to all who take part, and each is answered.
//!
//! In a central election neighbours give the leader up after `silence`, counted from its last beacon, and tell the rest of
//! the mesh, which takes a few journeys; every member sends one datagram every `beacon`.
//!
//! In a leased election another may act once two sessions, from when the leader was last backed, and `step_down` are over. At
//! worst members must agree about who is left first: two more sessions and one arbitration.
//!
//! A test simulates the same settings (`bellwether sim --settings`), of every profile and every mode: its median and 95th
//! percentile are within 15% of these. Words that members carry for each other where links are in doubt come on top of the
//! traffic.

use bellwether_proto::Duration;

use super::{Config, Election, Feedback, Mode, OnIsolation};

/// What settings mean for a number of members.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Explained {
    /// How many members are reckoned with.
    pub members: u32,
    /// All of them together, when nothing happens, in kbit/s.
    pub idle_kbit_per_s: f64,
    /// Whom each of them probes, in words.
    pub probing: String,
    /// What every election means.
    pub elections: Vec<ExplainedElection>,
}

/// What the settings of an election mean.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ExplainedElection {
    /// The name of the election.
    pub election: String,
    /// The promise that its answers carry.
    pub mode: &'static str,
    /// Seconds without a leader after it fails, half of the time.
    pub typical_s: f64,
    /// Seconds without a leader that are exceeded in one case of twenty.
    pub rare_s: f64,
    /// Seconds without a leader that are exceeded in one case of a thousand.
    pub worst_s: f64,
    /// Messages that one election takes, if none is lost.
    pub messages: u32,
    /// What follows from its settings, a sentence each.
    pub words: Vec<String>,
}

/// What `config` means for so many members.
pub fn explain(config: &Config, members: u32) -> Explained {
    let members = members.max(2);
    let timing = &config.timing;
    let per_second = |wait: Duration| 1.0 / wait.as_secs_f64();
    let eventual = config.elections.iter().filter(|one| matches!(one.mode, Mode::Eventual(_)));
    let eventual = eventual.count() as f64;
    let announced = config.elections.iter().filter(|one| matches!(one.mode, Mode::Announced(_)));
    let announced = announced.count() as f64;
    let heartbeats = config.elections.iter().filter_map(|one| match &one.mode {
        Mode::Learned(learned) => {
            let others = learned.voters.len().saturating_sub(1).max(1) as f64;
            Some(2.0 * others * 4.0 * per_second(learned.lease(timing)))
        }
        Mode::Eventual(_) | Mode::Announced(_) | Mode::Leased(_) | Mode::Central(_) => None,
    });
    let heartbeats: f64 = heartbeats.sum();
    let leases: f64 = config.elections.iter().map(|one| leases(config, one)).sum();
    let beacons: f64 = config.elections.iter().map(|one| beacons(config, one)).sum();
    // Announced elections alone need no membership, but the agent keeps one all the same.
    let each = 2.0 * per_second(timing.period) + eventual * per_second(timing.refresh);
    // One node as a rule leads all that it may; whoever sets priorities knows better.
    let beats = if eventual > 0.0 { 2.0 * per_second(timing.beat) } else { 0.0 };
    let announcements = announced * per_second(timing.announce);
    let datagrams =
        f64::from(members) * (each + beacons) + beats + announcements + leases + heartbeats;
    Explained {
        members,
        idle_kbit_per_s: datagrams * DATAGRAM * 8.0 / 1000.0,
        probing: probing(config),
        elections: config.elections.iter().map(|one| election(config, one, members)).collect(),
    }
}

fn probing(config: &Config) -> String {
    let near = match (config.exponent(), config.position) {
        (0.0, _) => "Every member is probed as often as any other".to_owned(),
        (_, None) => {
            "Every member is probed as often as any other, as this node has no position".to_owned()
        }
        (exponent, Some(_)) => {
            format!("A member twice as far away is probed 2^{exponent} times as rarely")
        }
    };
    let besides = match config.feedback() {
        Feedback::None => "",
        Feedback::Active => "; who is probed too rarely says so",
        Feedback::Passive => "; who is not heard of for long is probed out of turn",
        Feedback::Both => {
            "; who is probed too rarely says so, and who is not heard of for long is probed out of turn"
        }
    };
    format!("{near}{besides}.")
}

fn election(config: &Config, election: &Election, members: u32) -> ExplainedElection {
    let timing = &config.timing;
    let s = |time: &Duration| time.as_secs_f64();
    let mut words = Vec::new();
    let (typical, rare, worst, messages) = match &election.mode {
        Mode::Eventual(eventual) => {
            let growth = libm::log(f64::from(members) + 1.0) / libm::log(50.0);
            let probed = s(&timing.period) * (libm::log(20.0) + 1.0);
            let unwatched = probed + s(&timing.suspicion) * growth.max(1.0);
            let bellwether_proto::node::Watched { silence, probe, suspicion } = timing.watched();
            let [silence, verdict, beat] =
                [silence, probe + suspicion, timing.beat].map(|time| s(&time));
            let round = s(&timing.election);
            let asked = u32::from(eventual.c) + u32::from(eventual.f) + 1;
            words.push(
                "Every connected part of the network elects a leader of its own. Do not let a leader do \
                 what must not happen twice, unless what it acts on refuses old epochs."
                    .to_owned(),
            );
            words.push(match eventual.on_isolation {
                OnIsolation::Auto => {
                    "A leader that loses two others or more at once takes itself for cut off and stops; one \
                     that loses them one by one, or its only partner, goes on leading."
                        .to_owned()
                }
                OnIsolation::Hold => {
                    "A leader that hears nobody goes on leading: a cut-off node still has a leader, and \
                     so have the others."
                        .to_owned()
                }
                OnIsolation::HoldFor(time) => {
                    format!("A leader that hears nobody goes on leading for {time}, then stops.")
                }
                OnIsolation::StepDown => {
                    "A leader that hears nobody stops leading: a cut-off node has no leader, not even \
                     itself."
                        .to_owned()
                }
            });
            let messages = 2 * asked.min(members) + 1 + (members - 1);
            (silence - beat / 2.0 + verdict, silence + verdict, unwatched + 2.0 * round, messages)
        }
        Mode::Announced(_) => {
            words.push(
                "One leader per segment that multicast reaches. Segments that are cut from each other have \
                 one each."
                    .to_owned(),
            );
            let (listen, suppress) = (s(&timing.listen), s(&timing.suppress));
            let half = s(&timing.announce) / 2.0;
            (listen - half + suppress / 2.0, listen + suppress, listen + 2.0 * suppress, 1)
        }
        Mode::Learned(learned) => {
            let voters = u32::try_from(learned.voters.len()).unwrap_or(u32::MAX);
            words.push(format!(
                "At most one leader to a term, by the votes of {} of {voters} voters. Without so many of them nobody \
                 leads. A leader that was cut off may believe in itself for {} after another is elected: let what it acts on \
                 refuse old epochs.",
                voters / 2 + 1,
                learned.lease(timing)
            ));
            words.push(format!(
                "Every voter is sampled every {}. A leader is left in office for {} at least, and replaced only by \
                 somebody whom a majority knows to be more reliable by {} in a hundred.",
                learned.sample(timing),
                learned.tenure,
                learned.margin
            ));
            let (lease, round) = (s(&learned.lease(timing)), s(&timing.election));
            // Lists, votes and confirmations.
            let messages = voters * voters.saturating_sub(1) + 2 * voters.saturating_sub(1);
            let once = lease + 3.0 * round;
            (once - lease / 8.0, once, once + 2.0 * 7.0 * round, messages)
        }
        Mode::Leased(leased) => {
            let (count, backers) = (leased.members.len(), leased.members.len() / 2 + 1);
            words.push(format!(
                "At no instant may two nodes act, as long as no clock runs faster or slower than it should by more \
                 than {} %. A leader is backed by {backers} of {count} members; {} may fail at a time.",
                f64::from(leased.drift) / 10_000.0,
                count - backers
            ));
            words.push(format!(
                "A leader may act for at most {} after it was last backed, and what it has begun has {} to end.",
                timing.lease * 2,
                timing.step_down
            ));
            if let Some(keeping) = &leased.learned {
                words.push(format!(
                    "Those with the best record come first. A leader is left in office for {} at least, and hands over \
                     only to somebody worth more by {} in a thousand. For every record of which the news is still on its \
                     way, members may wait for each other for {} more.",
                    keeping.tenure,
                    keeping.margin,
                    timing.lease * 6
                ));
            }
            let [lease, arbitration, step_down] =
                [timing.lease, timing.arbitration, timing.step_down].map(|time| s(&time));
            // It was last backed up to half a session ago; that, the rest of two sessions, and what it has begun must be
            // over.
            let bound = 2.0 * lease + step_down;
            (bound - lease / 4.0, bound, bound + 2.0 * lease + arbitration, 2 * backers as u32)
        }
        Mode::Central(central) => {
            words.push(
                "The most central node of every connected part of the mesh leads it; who that is follows from the \
                 map alone, so nobody votes. While news travels two may believe to lead: let what they act on \
                 compare maps, or do nothing that must not happen twice."
                    .to_owned(),
            );
            let (period, silence) = match central.beacons(timing.profile) {
                Some((period, silence)) => (s(&period), s(&silence)),
                None => {
                    words.push(
                        "How long a failed leader goes unnoticed is the routing daemon's affair; to that comes half of \
                         `every` as a rule."
                            .to_owned(),
                    );
                    let table = config.tables.get(&election.name);
                    let every = table.map_or(0.0, |table| s(&table.every));
                    (every, every)
                }
            };
            // What a lost datagram kept back comes with the next digest.
            (silence - period / 2.0, silence, silence + DIGEST, members)
        }
    };
    let worst_case = match election.mode {
        Mode::Central(_) => "the news of it is lost",
        Mode::Eventual(_) => "those that watch it fail too",
        Mode::Announced(_) => "two claim at once and both withdraw",
        Mode::Learned(_) => "two winners in a row fail as well",
        Mode::Leased(_) => "while a majority is in touch",
    };
    words.insert(
        0,
        format!(
            "If the leader fails, nobody leads for {} as a rule, {} in one case of twenty, and {} at \
             worst ({worst_case}).",
            seconds(typical),
            seconds(rare),
            seconds(worst)
        ),
    );
    // A lease ends by itself, whether its holder runs or not.
    if !matches!(election.mode, Mode::Leased(_)) {
        words.push(format!(
            "A leader that was stopped or starved for {} no longer leads when it wakes.",
            timing.guard
        ));
    }
    ExplainedElection {
        election: election.name.clone(),
        mode: election.mode.name(),
        typical_s: typical,
        rare_s: rare,
        worst_s: worst,
        messages,
        words,
    }
}

/// Datagrams a second and member of a central election while nothing changes: beacons, and a digest now and then.
fn beacons(config: &Config, election: &Election) -> f64 {
    let Mode::Central(central) = &election.mode else { return 0.0 };
    let beacons = central.beacons(config.timing.profile);
    beacons.map_or(0.0, |(period, _)| 1.0 / period.as_secs_f64()) + 1.0 / QUIET_DIGEST
}

fn seconds(value: f64) -> String {
    format!("{value:.1} s")
}

/// Datagrams a second of a leased election: a request and an answer for every pair of members, both ways.
fn leases(config: &Config, election: &Election) -> f64 {
    let Mode::Leased(leased) = &election.mode else { return 0.0 };
    let members = leased.members.len() as f64;
    2.0 * members * (members - 1.0) / config.timing.lease.as_secs_f64()
}

/// Seconds between digests of a map while there is news, and while there is none.
const DIGEST: f64 = 1.25;
const QUIET_DIGEST: f64 = 16.0;
/// Bytes of a datagram in quiet times with its IP and UDP headers: probe or answer, sealed, with little news.
const DATAGRAM: f64 = 110.0;

#[cfg(test)]
mod tests {
    use super::{super::Profile, *};
    use crate::status::Position;

    #[test]
    fn what_the_profiles_claim_for_sixteen_hosts_is_what_the_formulas_give() {
        for (profile, rare, traffic) in [
            (Profile::Local, 0.315, 98.6),
            (Profile::Lan, 1.14, 25.7),
            (Profile::Wan, 4.8, 13.7),
            (Profile::Mesh, 6.0, 12.6),
        ] {
            let mut config = Config::new("a", "b", "c");
            config.timing = profile.timing();
            let explained = explain(&config, 16);
            let found = explained.elections[0].rare_s;
            assert!((found - rare).abs() < 0.06, "{profile:?}: {found}");
            let found = explained.idle_kbit_per_s;
            assert!((found - traffic).abs() < 1.0, "{profile:?}: {found}");
        }
    }

    #[test]
    fn distance_counts_only_for_whoever_has_a_position() {
        let mut config = Config::new("a", "b", "c");
        config.timing = Profile::Mesh.timing();
        assert!(explain(&config, 16).probing.contains("this node has no position; who is probed"));
        config.position = Some(Position { x: 0.0, y: 0.0 });
        assert!(
            explain(&config, 16).probing.starts_with("A member twice as far away is probed 2^3 ")
        );
        config.timing = Profile::Lan.timing();
        let plain = "Every member is probed as often as any other.";
        assert_eq!(explain(&config, 16).probing, plain);
    }

    #[test]
    fn longer_waits_are_slower_and_cheaper() {
        let mut config = Config::new("a", "b", "c");
        let before = explain(&config, 16);
        config.timing.period = config.timing.period + config.timing.period;
        let after = explain(&config, 16);
        assert!(after.elections[0].worst_s > before.elections[0].worst_s);
        assert!(after.idle_kbit_per_s < before.idle_kbit_per_s);
    }
}
