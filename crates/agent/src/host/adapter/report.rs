//! What a node says of itself and of all it knows.

use bellwether_proto::{Why, membership::medley::Reach as Way, node::FoundingConfig};

use super::*;
use crate::net::key::Fingerprint;
use crate::status::{
    Agreement, Counters, Differing, Identity, KeyStatus, KeyUser, MajorityStatus, MemberStatus,
    Reach, Role, SameName, ScoreStatus, Status, Verdict,
};

impl Adapter {
    pub(crate) fn status(
        &self,
        now: Time,
        index: u64,
        mut counters: Counters,
        keys: KeyStatus,
        peers: PeerTable,
    ) -> Status {
        (counters.accusations, counters.refuted) = (self.accusations, self.node.refuted());
        for (&reason, &count) in &self.refused {
            *counters.dropped.entry(reason).or_default() += count;
        }
        let mut members: Vec<MemberStatus> =
            self.records.iter().map(|(&id, record)| self.member_status(now, id, record)).collect();
        members.push(self.own_status(now));
        members.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.id.cmp(&b.id)));
        let elections = (0..self.tallies.len()).map(|at| self.election_status(now, at)).collect();
        let LeaderStatus { id, name } = self.named(self.me().id);
        Status {
            node: Identity { id, name, boot: self.me().boot.get() },
            cluster: self.cluster.clone(),
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: millis(now.since(self.started)),
            index,
            members,
            elections,
            same_names: self.same_names(),
            sources: self.source_statuses(now),
            to_join: self.to_join(),
            peers,
            disk: self.node.disk_refuses_since().and_then(|_| self.store.problem()),
            counters,
            keys,
        }
    }

    fn same_names(&self) -> Vec<SameName> {
        let told = self.named_alike.iter().filter_map(|&(one, _)| self.name_of(one));
        let names: BTreeSet<&str> = told.collect();
        let borne = names
            .into_iter()
            .map(|name| SameName { name: name.to_owned(), ids: self.bearers(name).collect() });
        borne.filter(|same| same.ids.len() > 1).collect()
    }

    fn name_of(&self, id: NodeId) -> Option<&str> {
        let own = (id == self.me().id).then_some(self.node.plan().about.name.as_str());
        own.or_else(|| self.node.name_of(id))
    }

    /// Under which keys those that live send, as far as they were `used`.
    pub(crate) fn key_users(
        &self,
        now: Time,
        used: impl Iterator<Item = (Peer, Fingerprint, Time)>,
    ) -> Vec<KeyUser> {
        let used: BTreeMap<NodeId, (Fingerprint, Time)> =
            used.map(|(peer, key, heard)| (peer.id, (key, heard))).collect();
        let user = |id| {
            let LeaderStatus { id: text, name } = self.named(id);
            let (key, heard) = used.get(&id).copied().unzip();
            let key = key.map(|key| key.to_string());
            KeyUser { id: text, name, key, heard_ms: heard.map(|at| millis(now.since(at))) }
        };
        let mut users: Vec<KeyUser> =
            self.records.keys().copied().filter(|&id| self.lives(id)).map(user).collect();
        users.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.id.cmp(&b.id)));
        users
    }

    fn own_status(&self, now: Time) -> MemberStatus {
        let LeaderStatus { id, name } = self.named(self.me().id);
        MemberStatus {
            id,
            name,
            state: MemberState::Alive,
            since_ms: millis(now.since(self.started)),
            boot: self.me().boot.get(),
            incarnation: self.node.membership().incarnation().get(),
            addresses: self.node.plan().addresses.iter().collect(),
            reach: Reach::Own,
            heard_ms: None,
            suspicions: 0,
            accusers: vec![],
            convicted_in_ms: None,
            position: self.node.plan().about.position,
            tags: self.node.plan().about.tags.clone(),
            verdicts: vec![],
        }
    }

    fn member_status(&self, now: Time, id: NodeId, record: &Record) -> MemberStatus {
        let membership = self.node.membership();
        let known = membership.introduction_of(id);
        let about = known.as_ref().and_then(|known| About::from_details(&known.details));
        let life = membership.record_of(id);
        let (boot, incarnation) = life.map(|(_, boot, inc)| (boot, inc)).unwrap_or_default();
        let view = membership.member(id);
        let accusation = membership.accusation_of(id);
        let accusers = accusation.iter().flat_map(|(accusers, _)| accusers.iter());
        let verdict = |&(at, what, by): &(Time, EventKind, Option<NodeId>)| Verdict {
            ago_ms: millis(now.since(at)),
            what,
            by: by.map(|by| self.named(by).name),
        };
        MemberStatus {
            id,
            name: self.named(id).name,
            state: self.state_of(id).unwrap_or(record.state),
            since_ms: millis(now.since(record.since)),
            boot: boot.get(),
            incarnation: incarnation.get(),
            addresses: known.map(|known| known.addresses.iter().collect()).unwrap_or_default(),
            reach: match view.map(|view| view.reach) {
                Some(Way::Through(relay)) => Reach::Through(self.named(relay).name),
                _ => Reach::Direct,
            },
            heard_ms: record.heard.map(|heard| millis(now.since(heard))),
            suspicions: view.map_or(0, |view| view.suspicions),
            accusers: accusers.map(|by| self.named(by).name).collect(),
            convicted_in_ms: accusation.map(|(_, until)| millis(until.since(now))),
            position: self.node.position_of(id),
            tags: about.map(|about| about.tags).unwrap_or_default(),
            verdicts: record.verdicts.iter().map(verdict).collect(),
        }
    }

    pub(super) fn election_status(&self, now: Time, at: usize) -> ElectionStatus {
        let (tally, seat) = (&self.tallies[at], self.seat(at));
        let (answer, group) = (&tally.answer, tally.group);
        let mut agreement = Agreement::default();
        if let Some(leader) = answer.leader {
            let mut count = |name: String, believed: NodeId| {
                agreement.heard += 1;
                if believed == leader {
                    agreement.agree += 1;
                } else {
                    agreement.dissent.push((name, self.named(believed).name));
                }
            };
            count(self.node.plan().about.name.clone(), leader);
            for (id, (believed, _)) in self.node.beliefs_of(group) {
                if self.node.membership().member(id).is_some() {
                    count(self.named(id).name, believed);
                }
            }
        }
        let leaderless = tally.leaderless_since.map_or(Duration::ZERO, |since| now.since(since));
        let sent = self.node.sent_of(group);
        let differing = |(&id, settings): (&NodeId, &Vec<&'static str>)| {
            let LeaderStatus { id, name } = self.named(id);
            Differing { id, name, settings: settings.clone() }
        };
        let score = |(rank, score): (u32, node::Score)| ScoreStatus {
            rank,
            id: score.id,
            name: score.name,
            score: score.score,
            samples: score.samples,
            away: score.away,
            why: score.why,
        };
        let leased = self.node.leased(group);
        let majority = leased.map(|leased| self.majority(now, leased.config()));
        let lacking = majority.as_ref().and_then(|majority| self.lacking(now, majority));
        let obstacle = || lacking.or_else(|| self.node.obstacle_of(group, now));
        let silence = self.silence(now);
        ElectionStatus {
            election: seat.name.clone(),
            mode: answer.mode,
            leader: answer.leader.map(|id| self.named(id)),
            epoch: answer.epoch,
            epoch_durable: self.store.is_durable(),
            settled: answer.settled,
            is_leader: answer.leader == Some(self.me().id),
            since_ms: millis(now.since(tally.since)),
            valid_for_ms: answer.valid_until.map(|until| millis(until.since(now))),
            valid_until_us: answer.valid_until.map(Time::as_micros),
            step_down_ms: leased.map(|leased| millis(leased.config().step_down)),
            silent_ms: silence.map(millis),
            majority,
            role: match seat.role {
                Role::Witness => Role::Witness,
                _ if self.node.observes(group) => Role::Observer,
                _ => Role::Candidate,
            },
            priority: seat.standing.attribute,
            why: match (answer.leader, silence) {
                (None, _) => obstacle().unwrap_or_else(|| self.why(now, answer)),
                (Some(_), None) => self.why(now, answer),
                (Some(_), Some(silence)) => {
                    let seconds = silence.as_secs_f64();
                    format!(
                        "nothing heard from anybody for {seconds:.0} s; {}",
                        self.why(now, answer)
                    )
                }
            },
            agreement,
            differing: tally.differing.iter().map(differing).collect(),
            changes: tally.changes,
            leaderless_ms: millis(tally.leaderless + leaderless),
            sent: sent.all,
            sent_electing: sent.electing,
            scores: (1..).zip(self.node.scores_of(group)).map(score).collect(),
            central: self.central_status(group),
        }
    }

    /// How long ago a message of this member reached us, if one has.
    fn age_of(&self, now: Time, name: &str) -> Option<Duration> {
        let named = self.records.iter().filter(|(id, _)| self.name_of(**id) == Some(name));
        named.filter_map(|(_, record)| record.heard).max().map(|heard| now.since(heard))
    }

    /// How long nobody was heard, if somebody ever was who has not said goodbye, and that is longer than probes explain.
    fn silence(&self, now: Time) -> Option<Duration> {
        let expected = self.records.iter().filter(|(id, record)| {
            self.state_of(**id).unwrap_or(record.state) != MemberState::Left
        });
        let newest = expected.filter_map(|(_, record)| record.heard).max()?;
        // Of others at least one says something every period; one word may be lost.
        let patience = (self.node.plan().timing.period * 2).max(SILENT);
        Some(now.since(newest)).filter(|&silence| silence > patience)
    }

    fn majority(&self, now: Time, config: &FoundingConfig) -> MajorityStatus {
        let own = &self.node.plan().about.name;
        // All of them talk to all others every session.
        let patience = (config.ring.session() * 4).max(SILENT);
        let heard = |name: &&String| {
            *name == own || self.age_of(now, name).is_some_and(|age| age <= patience)
        };
        MajorityStatus {
            members: config.members.clone(),
            needed: u32::try_from(config.needed()).unwrap_or(u32::MAX),
            heard: config.members.iter().filter(heard).cloned().collect(),
        }
    }

    /// Why nobody can lead, if too few members are heard.
    fn lacking(&self, now: Time, majority: &MajorityStatus) -> Option<String> {
        let MajorityStatus { members, needed, heard } = majority;
        if heard.len() >= *needed as usize {
            return None;
        }
        let missing = members.iter().filter(|name| !heard.contains(name));
        let (silent, never): (Vec<_>, Vec<_>) = missing
            .map(|name| (name.as_str(), self.age_of(now, name)))
            .partition(|(_, age)| age.is_some());
        let names = |of: &[(&str, Option<Duration>)]| {
            of.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
        };
        let mut words = Vec::new();
        if let Some(age) = silent.iter().filter_map(|(_, age)| *age).min() {
            words.push(format!("{} silent for {:.0} s", names(&silent), age.as_secs_f64()));
        }
        if !never.is_empty() {
            words.push(format!("{} never heard", names(&never)));
        }
        let hears = match heard.len() {
            1 => "only itself".to_owned(),
            some => format!("{some} with itself"),
        };
        let count = members.len();
        Some(format!("needs {needed} of {count} members, hears {hears} ({})", words.join("; ")))
    }

    /// In words and ages, not instants: nobody knows the agent's zero.
    pub(super) fn why(&self, now: Time, answer: &Leadership) -> String {
        let ago = |at: Time| format!("{:.1} s", now.since(at).as_secs_f64());
        match answer.why {
            Why::Electing { since } => format!("nobody has led for {}", ago(since)),
            Why::Unchallenged { since } => {
                format!("elected {} ago; nobody better objects", ago(since))
            }
            Why::Central { members: 1, .. } => "nobody else is in range".to_owned(),
            Why::NotHeard { since } => {
                format!("hears others, and for {} nobody has answered it", ago(since))
            }
            Why::HearsNobody { since } => {
                format!("hears nobody any more for {}, though it asks", ago(since))
            }
            Why::NotKept { since } => format!(
                "the disk has refused what must be kept for {}: {}",
                ago(since),
                self.store.problem().unwrap_or_else(|| "no reason given".to_owned())
            ),
            Why::BeingKept { since } => {
                format!("the disk has been writing what must be kept for {}", ago(since))
            }
            Why::Announced { heard } => format!("it announced itself {} ago", ago(heard)),
            other => other.to_string(),
        }
    }
}

/// Shorter than this nobody calls it silence.
const SILENT: Duration = Duration::from_secs(2);

pub(super) fn millis(span: Duration) -> u64 {
    span.as_micros() / 1_000
}
