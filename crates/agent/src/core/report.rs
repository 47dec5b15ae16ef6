//! What a node says of itself and of all it knows.

use super::*;

impl Core {
    pub(crate) fn status(
        &self,
        now: Time,
        index: u64,
        mut counters: Counters,
        keys: KeyStatus,
    ) -> Status {
        (counters.accusations, counters.refuted) = (self.accusations, self.refuted);
        for (&reason, &count) in &self.refused {
            *counters.dropped.entry(reason).or_default() += count;
        }
        let mut members: Vec<MemberStatus> =
            self.records.iter().map(|(&id, record)| self.member_status(now, id, record)).collect();
        members.push(self.own_status(now));
        members.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.id.cmp(&b.id)));
        let elections = (0..self.tallies.len()).map(|at| self.election_status(now, at)).collect();
        let LeaderStatus { id, name } = self.named(self.me.id);
        Status {
            node: Identity { id, name, boot: self.me.boot.get() },
            cluster: self.settings.cluster.clone(),
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: millis(now.since(self.started)),
            index,
            members,
            elections,
            counters,
            keys,
        }
    }

    fn own_status(&self, now: Time) -> MemberStatus {
        let LeaderStatus { id, name } = self.named(self.me.id);
        MemberStatus {
            id,
            name,
            state: MemberState::Alive,
            since_ms: millis(now.since(self.started)),
            boot: self.me.boot.get(),
            incarnation: self.stack.membership().incarnation().get(),
            addresses: self.settings.advertise.clone(),
            reach: Reach::Own,
            heard_ms: None,
            suspicions: 0,
            accusers: vec![],
            convicted_in_ms: None,
            position: self.settings.about.position,
            tags: self.settings.about.tags.clone(),
            verdicts: vec![],
        }
    }

    fn member_status(&self, now: Time, id: NodeId, record: &Record) -> MemberStatus {
        let membership = self.stack.membership();
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
            id: format!("{:016x}", id.get()),
            name: record.name.clone(),
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
            position: record.position,
            tags: about.map(|about| about.tags).unwrap_or_default(),
            verdicts: record.verdicts.iter().map(verdict).collect(),
        }
    }

    fn election_status(&self, now: Time, at: usize) -> ElectionStatus {
        let (tally, seat) = (&self.tallies[at], &self.settings.elections[at]);
        let answer = &tally.answer;
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
            count(self.settings.about.name.clone(), leader);
            let beside = self.aside(tally.group).map(|at| self.beside[at].machine.beliefs());
            for (&id, &(believed, _)) in beside.as_ref().unwrap_or(&tally.beliefs) {
                if self.stack.membership().member(id).is_some() {
                    count(self.named(id).name, believed);
                }
            }
        }
        let leaderless = tally.leaderless_since.map_or(Duration::ZERO, |since| now.since(since));
        let aside = self.aside(tally.group);
        let sent = aside.map_or(tally.sent, |at| self.beside[at].machine.sent());
        let differing = |(&id, settings): (&NodeId, &Vec<&'static str>)| {
            let LeaderStatus { id, name } = self.named(id);
            Differing { id, name, settings: settings.clone() }
        };
        ElectionStatus {
            election: seat.name.clone(),
            mode: answer.mode.to_string(),
            leader: answer.leader.map(|id| self.named(id)),
            epoch: answer.epoch.map(|epoch| epoch.to_string()),
            settled: answer.settled,
            is_leader: answer.leader == Some(self.me.id),
            since_ms: millis(now.since(tally.since)),
            valid_for_ms: answer.valid_until.map(|until| millis(until.since(now))),
            valid_until_us: answer.valid_until.map(Time::as_micros),
            step_down_ms: match &seat.protocol {
                Protocol::Leased(config) => Some(millis(config.step_down)),
                _ => None,
            },
            role: match &seat.protocol {
                Protocol::Leased(config) if config.witness => Role::Witness,
                _ if seat.stands().observer => Role::Observer,
                _ => Role::Candidate,
            },
            priority: seat.standing.attribute,
            why: aside
                .filter(|_| answer.leader.is_none())
                .and_then(|at| self.beside[at].machine.words(now))
                .unwrap_or_else(|| self.why(now, answer)),
            agreement,
            differing: tally.differing.iter().map(differing).collect(),
            changes: tally.changes,
            leaderless_ms: millis(tally.leaderless + leaderless),
            sent: sent.all,
            sent_electing: sent.electing,
            scores: aside.map_or(vec![], |at| self.beside[at].machine.scores()),
            central: self.central_status(tally.group),
        }
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
            Why::Announced { heard } => format!("says so itself, last {} ago", ago(heard)),
            other => other.to_string(),
        }
    }
}

pub(super) fn millis(span: Duration) -> u64 {
    span.as_micros() / 1_000
}
