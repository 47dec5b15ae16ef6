//! Elections in which at most one node may act at any instant.
//!
//! The machine elects within a ring; this file sees to it that rings come to be without ever giving two nodes the right
//! to act. Who may be a member is a list of names, the same on every node.
//!
//! ```text
//! Quiet    --what we promised is over--> Outside   Ready to all members, once a beat
//! Outside  --Inside of a member--------> Inside    joins the ring it is in
//! Outside  --enough are Ready, and say the
//!            same list as we do--------> Inside    founds a ring with them
//! Inside   --out of the ring, or nobody
//!            has led for too long------> Quiet
//! Inside   --Ready---------------------> Inside    Inside, if somebody leads; Ready, to one that founds with us
//! ```
//!
//! Promise: whoever may act is backed by more than half of all *names* within the last two sessions (`quorum`). Two
//! such majorities share a name; what it says is said by one process, which backs one leader at a time, and which is
//! [`Stage::Quiet`] for as long as a leader may count on what it said, after it starts and after it has left a ring.
//! So it does not matter how many rings there are. `conservative` and `fast` are safe within one ring only; there all
//! names must be ready, and so outside of any ring, before one is founded.
//!
//! With `criterion = "learned"` members announce what they are worth by their own record, as in eventual elections
//! (`worth.rs`), and the best come first. That is about who claims, and to whom a leader whose tenure is over hands
//! over; nobody is granted anything for it.

use std::cmp::Reverse;

use bellwether_proto::{
    Incarnation, Input, Machine as _, Seed,
    election::leased,
    machine::{Effect, InputOf, Outbox, OutboxOf},
    membership::ring::{self, Fact, Kind, Life, Ring, geometry::majority},
    stack::Group,
    wire::{DecodeError, Reader, Sink, Wire},
};

use super::{
    beside::{Beside, Channel, Listed, Road},
    *,
};
use crate::{config::Keeping, status::ScoreStatus};

/// Settings of one.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) ring: ring::Config,
    pub(crate) election: leased::Config,
    /// By name, ascending: all that can ever be members.
    pub(crate) members: Vec<String>,
    /// Whether this node votes and never leads.
    pub(crate) witness: bool,
    /// How long what a leader has begun may go on once its authority is over.
    pub(crate) step_down: Duration,
    /// Whether those with the best record come first. Nothing safety rests on: see [`leased::Command::Weigh`].
    pub(crate) learned: Option<Keeping>,
}

/// A ring on a real clock, which wakes nobody on the microsecond. With a quorum of names it decides over places only, and
/// joiners may be late; without, the promise rests on it, and it gets what the clock needs, no more.
pub(crate) fn hosted(ring: ring::Config, flavour: leased::Flavour) -> ring::Config {
    let grace = ring.arbitration();
    match flavour {
        leased::Flavour::Quorum => ring.with_slack(grace.div(2)),
        leased::Flavour::Conservative | leased::Flavour::Fast => ring.with_slack(grace.div(10)),
    }
}

impl Config {
    /// How long a leader may count on anything we said, on our clock.
    fn quiet(&self) -> Duration {
        self.ring.waiting(self.ring.session() * 2 + self.step_down)
    }

    /// How many must agree to found a ring.
    fn needed(&self) -> usize {
        match self.election.flavour() {
            leased::Flavour::Quorum => majority(self.members.len()),
            leased::Flavour::Conservative | leased::Flavour::Fast => self.members.len(),
        }
    }

    /// How long a ring may be without a leader before it is given up: all that might lead have had their turn.
    fn patience(&self) -> Duration {
        self.ring.session() * (6 * (self.members.len() as u64 + 1)) + self.quiet() * 2
    }

    /// The same for all that agree on everything safety rests on.
    fn digest(&self) -> u32 {
        let waits = [self.ring.session(), self.ring.arbitration(), self.step_down];
        let (drift, flavour) = (self.ring.drift(), self.election.flavour());
        let text = format!("{:?} {waits:?} {drift} {flavour:?}", self.members);
        Group::named(&text).number()
    }
}

/// One of them.
#[derive(Debug)]
pub(super) struct Leased {
    me: Peer,
    config: Config,
    digest: u32,
    seed: Seed,
    /// Of the next machine.
    inc: Incarnation,
    durable: Option<Epoch>,
    stage: Stage,
    /// By when nobody counts on what we have said.
    bound: Time,
    out: OutboxOf<leased::Leased>,
    /// Members by identity, as they were last seen, if nobody else has their name.
    known: BTreeMap<NodeId, String>,
    ready: BTreeMap<NodeId, Ready>,
    /// What they say they are worth, as far as that counts.
    standings: BTreeMap<NodeId, Standing>,
    /// Whom others believe to lead.
    beliefs: BTreeMap<NodeId, (NodeId, Epoch)>,
    /// Who last said that it is inside.
    inside: Option<(NodeId, Time)>,
    /// Those that would found a ring with us, and since when it is they.
    list: Vec<Fact>,
    listed: Time,
    /// Since when nobody has led.
    lacking: Option<Time>,
    tick: Time,
    observes: bool,
    /// When somebody last spoke whose settings are not ours.
    strange: Option<Time>,
}

#[derive(Debug)]
enum Stage {
    Quiet,
    Outside,
    Inside { machine: Box<leased::Leased>, founders: Vec<Fact>, since: Time },
    Gone { machine: Option<Box<leased::Leased>> },
}

/// What another would found a ring with.
#[derive(Debug)]
struct Ready {
    fact: Fact,
    list: Vec<Fact>,
    heard: Time,
}

/// Between members.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    /// See [`Config::digest`].
    digest: u32,
    body: Body,
}

#[derive(Clone, Debug, PartialEq)]
enum Body {
    Machine(Box<leased::Message>),
    /// I am in no ring, nobody counts on me, and I would found one with these.
    Ready {
        fact: Fact,
        list: Vec<Fact>,
    },
    /// I am in a ring: join it.
    Inside,
}

impl Leased {
    pub(super) fn new(
        me: Peer,
        config: Config,
        seed: Seed,
        durable: Option<Epoch>,
        now: Time,
    ) -> Self {
        Self {
            me,
            digest: config.digest(),
            seed,
            inc: Incarnation::default(),
            durable,
            stage: Stage::Quiet,
            bound: now + config.quiet(),
            out: Outbox::new(),
            known: BTreeMap::new(),
            ready: BTreeMap::new(),
            standings: BTreeMap::new(),
            beliefs: BTreeMap::new(),
            inside: None,
            list: Vec::new(),
            listed: now,
            lacking: Some(now),
            tick: now,
            observes: false,
            strange: None,
            config,
        }
    }

    /// Between two looks at how things are.
    fn beat(&self) -> Duration {
        self.config.ring.session()
    }

    fn machine(&self) -> Option<&leased::Leased> {
        match &self.stage {
            Stage::Inside { machine, .. } => Some(machine),
            Stage::Gone { machine } => machine.as_deref(),
            Stage::Quiet | Stage::Outside => None,
        }
    }

    fn machine_mut(&mut self) -> Option<&mut leased::Leased> {
        match &mut self.stage {
            Stage::Inside { machine, .. } => Some(machine),
            Stage::Gone { machine } => machine.as_deref_mut(),
            Stage::Quiet | Stage::Outside => None,
        }
    }

    fn fact(&self) -> Fact {
        let life = Life { peer: self.me, inc: self.inc };
        Fact { life, kind: Kind::Member, witness: self.config.witness }
    }

    fn say(&self, to: NodeId, body: Body, road: &mut Road<'_>) {
        road.send(to, &Said { digest: self.digest, body });
    }

    fn input(&mut self, input: InputOf<'_, leased::Leased>, road: &mut Road<'_>) {
        let (now, quiet) = (road.now, self.config.quiet());
        let mut out = core::mem::replace(&mut self.out, Outbox::new());
        let Some(machine) = self.machine_mut() else { return };
        let before = machine.ring().is_active();
        let result = machine.handle(now, input, &mut out);
        if before || machine.ring().is_active() {
            self.bound = now + quiet;
        }
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Send { to, message } => {
                    self.say(to, Body::Machine(Box::new(message)), road)
                }
                Effect::Persist(epoch) => {
                    self.durable = self.durable.max(Some(epoch));
                    let kept = road.store.keep_leased(road.group, epoch);
                    let failed = kept.is_err();
                    road.kept(kept);
                    if failed {
                        // What follows is a promise that we might not remember.
                        while out.pop().is_some() {}
                        self.go_out();
                    }
                }
                // Whoever asks who leads is told; the ring's own affairs are nobody's business.
                Effect::Emit(_) => {}
                Effect::Broadcast(_) | Effect::Multicast(_) => {
                    unreachable!("a leader talks to one at a time")
                }
            }
        }
        self.out = out;
        if let Err(rejected) = result {
            road.refuse(rejected.reason());
        }
    }

    /// Forgets the ring.
    fn go_out(&mut self) {
        if let Stage::Inside { machine, .. } = &self.stage {
            self.inc = machine.ring().life().inc.next();
            self.stage = Stage::Quiet;
            self.ready.clear();
            self.inside = None;
            self.list.clear();
        }
    }

    fn begin(&mut self, ring: Ring, founders: Vec<Fact>, road: &mut Road<'_>) {
        let machine = Box::new(leased::Leased::new(ring, self.config.election, self.durable));
        self.stage = Stage::Inside { machine, founders, since: road.now };
        self.lacking = Some(road.now);
        // First, as the best begins to claim when it starts.
        let standings = self.standings.clone();
        standings.into_iter().for_each(|(id, standing)| self.weigh(id, standing, road));
        self.input(Input::Start, road);
    }

    /// Whoever may not lead is worth nothing.
    fn weigh(&mut self, id: NodeId, standing: Standing, road: &mut Road<'_>) {
        let worth = if standing.observer { 0 } else { standing.attribute };
        self.input(Input::Command(leased::Command::Weigh(id, worth)), road);
    }

    /// Those of the ring that may lead, and what they are worth; whether they lease from us.
    fn candidates(&self) -> Vec<(NodeId, Standing, bool)> {
        let Stage::Inside { machine, .. } = &self.stage else { return vec![] };
        let facts = machine.ring().members_by_fact().filter(|fact| !fact.witness);
        let ids = facts.map(|fact| fact.life.id());
        let leased = |id| id == self.me.id || machine.ring().lease(id).is_some_and(|l| l.active);
        let known = ids.filter_map(|id| Some((id, *self.standings.get(&id)?, leased(id))));
        known.collect()
    }

    /// A leader whose tenure is over hands over to whoever is clearly better. It costs a time without a leader.
    fn yield_to_better(&mut self, road: &mut Road<'_>) {
        let Some(Keeping { tenure, margin }) = self.config.learned else { return };
        let leadership = self.leadership(road.now);
        let Why::Unchallenged { since } = leadership.why else { return };
        let ours = self.standings.get(&self.me.id).map_or(0, |standing| standing.attribute);
        let over = leadership.leader == Some(self.me.id) && road.now >= since + tenure;
        let better = |&(_, standing, leased): &(NodeId, Standing, bool)| {
            leased && !standing.observer && standing.attribute > ours.saturating_add(margin)
        };
        let best = self.candidates().into_iter().filter(better);
        if over && let Some((best, ..)) = best.max_by_key(|(_, standing, _)| standing.attribute) {
            self.input(Input::Command(leased::Command::Transfer(best)), road);
        }
    }

    fn ring(&self, contacts: &[NodeId]) -> Ring {
        let seed = self.seed.indexed(u64::from(self.inc.get()));
        let ring = Ring::new(self.me, self.config.ring, seed, &[], contacts);
        let witness = self.config.witness.then_some(self.me.id);
        ring.with_incarnation(self.inc).with_witnesses(witness.as_slice())
    }

    fn look_around(&mut self, road: &mut Road<'_>) {
        let now = road.now;
        match &self.stage {
            Stage::Quiet if now >= self.bound => {
                self.stage = Stage::Outside;
                self.look_outside(road);
            }
            Stage::Outside => self.look_outside(road),
            Stage::Inside { machine, since, .. } => {
                let active = machine.ring().is_active();
                // Who leases from too few is of no use to anybody, whomever it believes to lead.
                let leases = machine.ring().leases().filter(|lease| lease.active).count();
                let sound = leases + 1 >= majority(self.config.members.len());
                if sound && machine.leadership().leader.is_some() {
                    self.lacking = None;
                } else {
                    self.lacking = self.lacking.or(Some(now));
                }
                let since = self.lacking.unwrap_or(now).max(*since);
                let late = now >= since + self.config.patience();
                if machine.ring().is_out() || late {
                    if active {
                        self.input(Input::Leave, road);
                    }
                    self.go_out();
                }
            }
            Stage::Quiet | Stage::Gone { .. } => {}
        }
    }

    fn look_outside(&mut self, road: &mut Road<'_>) {
        let (now, fresh) = (road.now, self.beat() * 4);
        self.ready
            .retain(|id, ready| now.since(ready.heard) < fresh && self.known.contains_key(id));
        self.lacking = self.lacking.or(Some(now));
        if let Some((id, heard)) = self.inside
            && now.since(heard) < fresh
        {
            let ring = self.ring(&[id]);
            return self.begin(ring, Vec::new(), road);
        }
        let mut list: Vec<Fact> = self.ready.values().map(|ready| ready.fact).collect();
        list.push(self.fact());
        list.sort_unstable_by_key(|fact| fact.life);
        if list != self.list {
            (self.list, self.listed) = (list, now);
        }
        let agreed = self.ready.values().all(|ready| ready.list == self.list);
        let all = self.list.len() == self.config.members.len();
        let waited = now.since(self.listed) >= self.beat() * if all { 1 } else { 10 };
        if agreed && waited && self.list.len() >= self.config.needed() {
            let founders = self.list.clone();
            let ring = self.ring(&[]).with_founders(&founders);
            self.tell_ready(&founders, road);
            self.begin(ring, founders, road);
        }
    }

    fn tell_ready(&self, list: &[Fact], road: &mut Road<'_>) {
        for &to in self.known.keys().filter(|&&id| id != self.me.id) {
            self.say(to, Body::Ready { fact: self.fact(), list: list.to_vec() }, road);
        }
    }

    fn on_ready(&mut self, from: Peer, fact: Fact, list: Vec<Fact>, road: &mut Road<'_>) {
        if fact.life.peer != from || fact.kind != Kind::Member {
            return road.refuse("malformed");
        }
        match &self.stage {
            Stage::Inside { machine, founders, .. } if machine.ring().is_active() => {
                let ours = founders.iter().find(|fact| fact.life.id() == self.me.id);
                match ours.filter(|_| *founders == list) {
                    // It founds with us, and has not heard yet that we do.
                    Some(&fact) => self.say(from.id, Body::Ready { fact, list }, road),
                    // A ring without a leader is joined by nobody, so that it can come to an end.
                    None if self.lacking.is_none() => self.say(from.id, Body::Inside, road),
                    None => {}
                }
            }
            Stage::Quiet | Stage::Outside => {
                self.ready.insert(from.id, Ready { fact, list, heard: road.now });
                if matches!(self.stage, Stage::Outside) {
                    let before = self.list.clone();
                    self.look_outside(road);
                    if matches!(self.stage, Stage::Outside) && self.list != before {
                        self.tell_ready(&self.list, road);
                    }
                }
            }
            // Whom we hoped to join is in no ring itself.
            Stage::Inside { .. } if self.inside.is_some_and(|(id, _)| id == from.id) => {
                self.go_out();
            }
            Stage::Inside { .. } | Stage::Gone { .. } => {}
        }
    }

    /// What is in the way of a leader, in words.
    fn obstacle(&self, now: Time) -> Option<String> {
        let missing = || -> Vec<&str> {
            let ready = self.list.iter().filter_map(|fact| self.known.get(&fact.life.id()));
            let ready: BTreeSet<&String> = ready.collect();
            let missing = self.config.members.iter().filter(|name| !ready.contains(name));
            missing.map(String::as_str).collect()
        };
        if self.strange.is_some_and(|heard| now.since(heard) < self.beat() * 8) {
            return Some(
                "a member has other members, waits, drift or flavour in its settings".to_owned(),
            );
        }
        match &self.stage {
            Stage::Quiet => {
                Some("says nothing until what it promised before it started is over".to_owned())
            }
            Stage::Outside => Some(format!(
                "{} of {} members are ready to begin, {} are needed{}",
                self.list.len(),
                self.config.members.len(),
                self.config.needed(),
                match missing().as_slice() {
                    [] => String::new(),
                    missing => format!("; not ready: {}", missing.join(", ")),
                }
            )),
            Stage::Inside { machine, .. } if !machine.ring().is_active() => {
                Some("is joining the others".to_owned())
            }
            Stage::Inside { .. } | Stage::Gone { .. } => None,
        }
    }
}

impl Beside for Leased {
    fn channel(&self) -> Channel {
        Channel::Leased
    }

    fn start(&mut self, _road: &mut Road<'_>) {}

    fn deadline(&self) -> Option<Time> {
        let machine = self.machine().and_then(|machine| machine.deadline()).map(|(at, _)| at);
        let tick = match self.stage {
            Stage::Gone { .. } => None,
            Stage::Quiet => Some(self.tick.max(self.bound)),
            Stage::Outside | Stage::Inside { .. } => Some(self.tick),
        };
        machine.into_iter().chain(tick).min()
    }

    fn due(&mut self, road: &mut Road<'_>) {
        let now = road.now;
        if self.machine().and_then(|machine| machine.deadline()).is_some_and(|(at, _)| at <= now) {
            self.input(Input::Timeout, road);
        }
        if now >= self.tick {
            self.tick = now + self.beat();
            if self.observes && self.machine().and_then(leased::Leased::authority).is_some() {
                self.input(Input::Command(leased::Command::Resign), road);
            }
            self.yield_to_better(road);
            self.look_around(road);
            if matches!(self.stage, Stage::Outside) {
                self.tell_ready(&self.list, road);
            }
        }
    }

    fn hear(&mut self, from: Peer, message: &[u8], road: &mut Road<'_>) {
        // Whether or not we understand the rest of it.
        if message.get(..4).is_none_or(|digest| digest != self.digest.to_le_bytes()) {
            self.strange = Some(road.now);
            return road.refuse("other-settings");
        }
        if !self.known.contains_key(&from.id) {
            return road.refuse("not-a-member");
        }
        let Some(Said { body, .. }) = road.read(message) else { return };
        match body {
            Body::Machine(message) => {
                if let Some(said) = message.stamp.as_ref().and_then(|stamp| stamp.register) {
                    self.beliefs.insert(from.id, (said.effective().id(), said.epoch));
                }
                self.input(Input::Message { from, via: from.id, message: &message }, road);
            }
            Body::Ready { fact, list } => self.on_ready(from, fact, list, road),
            Body::Inside => self.inside = Some((from.id, road.now)),
        }
    }

    fn leadership(&self, now: Time) -> Leadership {
        let since = self.lacking.unwrap_or(now);
        let nobody = Leadership::unknown(Mode::Leased, Why::Electing { since });
        let Stage::Inside { machine, .. } = &self.stage else { return nobody };
        let answer = machine.leadership();
        // Who is alone may act for ever, and asks again all the same.
        let longest = now + self.config.ring.session() * 2;
        let valid_until = answer.valid_until.map(|until| until.min(longest));
        let answer = Leadership { valid_until, ..answer };
        // The machine's answer is as of its last input.
        let over = answer.valid_until.is_some_and(|until| now >= until);
        // Everybody leases from everybody; of a leader that we do not lease from we know nothing.
        let lease = |id| machine.ring().lease(id);
        let leased = |id| lease(id).is_some_and(|lease| lease.active && now < lease.until);
        match answer.leader {
            Some(id) if id == self.me.id && (over || self.observes) => nobody,
            Some(id) if id != self.me.id && !leased(id) => nobody,
            _ => answer,
        }
    }

    fn stalled(&mut self, road: &mut Road<'_>) {
        // Authority is a function of time: there is nothing to give up that is not over.
        self.input(Input::Timeout, road);
    }

    fn observe(&mut self, observes: bool, road: &mut Road<'_>) {
        self.observes = observes;
        if observes {
            self.input(Input::Command(leased::Command::Resign), road);
        }
    }

    fn resign(&mut self, road: &mut Road<'_>) -> Result<(), Refused> {
        self.input(Input::Command(leased::Command::Resign), road);
        self.handed("nobody that can lead is within reach now")
    }

    fn transfer(&mut self, to: NodeId, road: &mut Road<'_>) -> Result<(), Refused> {
        self.input(Input::Command(leased::Command::Transfer(to)), road);
        self.handed("it is not in the ring, or never leads")
    }

    fn leave(&mut self, road: &mut Road<'_>) {
        self.input(Input::Leave, road);
        let stage = core::mem::replace(&mut self.stage, Stage::Gone { machine: None });
        if let Stage::Inside { machine, .. } = stage {
            self.stage = Stage::Gone { machine: Some(machine) };
        }
    }

    fn on_listed(&mut self, listed: &[Listed], road: &mut Road<'_>) {
        // Who has failed keeps its place until another bears its name; of two that bear it, nobody knows which is meant.
        let named = |name: &str| listed.iter().filter(|one| one.name == name).count();
        self.known.retain(|_, name| named(name) == 0);
        let members = listed
            .iter()
            .filter(|one| self.config.members.contains(&one.name) && named(&one.name) == 1);
        self.known.extend(members.map(|one| (one.peer.id, one.name.clone())));
        if self.config.learned.is_none() {
            return;
        }
        for one in listed {
            let standing = one.standing(road.group);
            let Some(standing) = standing.filter(|_| self.known.contains_key(&one.peer.id)) else {
                continue;
            };
            if self.standings.insert(one.peer.id, standing) != Some(standing) {
                self.weigh(one.peer.id, standing, road);
            }
        }
        self.standings.retain(|id, _| self.known.contains_key(id));
    }

    /// By what they are worth; those that cannot be elected now last.
    fn scores(&self) -> Vec<ScoreStatus> {
        let candidates = self.candidates();
        let away = |id: NodeId, standing: Standing| {
            let found = candidates.iter().find(|(other, ..)| *other == id);
            standing.observer || !found.is_some_and(|&(.., leased)| leased)
        };
        let mut all: Vec<(bool, Standing, NodeId)> =
            self.standings.iter().map(|(&id, &one)| (away(id, one), one, id)).collect();
        all.sort_by_key(|&(away, standing, _)| (away, Reverse(standing.attribute)));
        let margin = self.config.learned.map_or(0, |keeping| keeping.margin);
        let best = all.first().filter(|(away, ..)| !away).map_or(0, |(_, best, _)| best.attribute);
        let behind = |standing: Standing| standing.attribute.saturating_add(margin) < best;
        let score =
            |(place, (away, standing, id)): (usize, (bool, Standing, NodeId))| ScoreStatus {
                rank: u32::try_from(place + 1).unwrap_or(u32::MAX),
                id: format!("{:016x}", id.get()),
                name: self.known.get(&id).cloned().unwrap_or_default(),
                score: f64::from(standing.attribute) / 1000.0,
                samples: None,
                away,
                why: match (standing.observer, away) {
                    (true, _) => "votes and may not lead, by its role or its hooks".to_owned(),
                    (false, true) => "no lease with this node, which is all that counts".to_owned(),
                    (false, false) if behind(standing) => {
                        "by its own record; comes behind those that are clearly better".to_owned()
                    }
                    (false, false) => "by its own record".to_owned(),
                },
            };
        all.into_iter().enumerate().map(score).collect()
    }

    fn beliefs(&self) -> BTreeMap<NodeId, (NodeId, Epoch)> {
        self.beliefs.clone()
    }

    fn words(&self, now: Time) -> Option<String> {
        self.obstacle(now)
    }
}

impl Leased {
    fn handed(&self, otherwise: &str) -> Result<(), Refused> {
        match self.machine().and_then(leased::Leased::authority) {
            None => Ok(()),
            Some(_) => Err(Refused::Impossible(otherwise.to_owned())),
        }
    }
}

impl Wire for Said {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u32(self.digest);
        match &self.body {
            Body::Machine(message) => {
                sink.u8(0);
                message.encode(sink);
            }
            Body::Ready { fact, list } => {
                sink.u8(1);
                fact.encode(sink);
                sink.varint(list.len() as u64);
                list.iter().for_each(|fact| fact.encode(sink));
            }
            Body::Inside => sink.u8(2),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let digest = reader.u32("settings")?;
        let body = match reader.kind("leased", 3)? {
            0 => Body::Machine(Box::new(leased::Message::decode(reader)?)),
            1 => {
                let fact = Fact::decode(reader)?;
                let list = (0..reader.count("founders", 1)?).map(|_| Fact::decode(reader));
                Body::Ready { fact, list: list.collect::<Result<_, _>>()? }
            }
            _ => Body::Inside,
        };
        Ok(Self { digest, body })
    }
}

#[cfg(test)]
mod tests;
