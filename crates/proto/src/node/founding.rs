//! Leased elections: at most one node may act at any instant.
//!
//! The [machine](leased) elects within a ring; this file sees to it that rings come to be without ever giving two nodes
//! the right to act. Who may be a member is a list of names, the same on every node.
//!
//! ```text
//! Quiet    --what we promised is over--> Outside   Ready to all members, once a beat
//! Outside  --Inside of a member--------> Inside    joins the ring it is in
//! Outside  --enough are Ready, and say the
//!            same list as we do--------> Inside    founds a ring with them
//! Inside   --out of the ring, or nobody
//!            has led for too long------> Quiet
//! Inside   --looks for its ring in vain, as
//!            most members are in none--> Quiet     nobody can lead in it
//! Inside   --too few witnesses are left-> Quiet     nobody can lead in it either
//! Inside   --Ready---------------------> Inside    Inside, if somebody leads; Ready, to one that founds with us
//! any      --the disk refuses, or has
//!            recovered-----------------> Quiet     what we said last may not have been kept
//! ```
//!
//! Promise: whoever may act is backed by more than half of all *names* within the last two sessions (`quorum`). Two
//! such majorities share a name; what it says is said by one process, which backs one leader at a time, and which is
//! `Quiet` for as long as a leader may count on what it said, after it starts and after it has left a ring.
//! So it does not matter how many rings there are, and who has fallen out of one may look for it at members that have
//! founded another since: it joins that. `conservative` and `fast` are safe within one ring only; there all
//! names must be ready, and so outside of any ring, before one is founded.
//!
//! With `criterion = "learned"` members announce what they are worth by their own record, as in eventual elections
//! (`node/record.rs`), and the best come first. That is about who claims, and to whom a leader whose tenure is
//! over hands over; nobody is granted anything for it.

use alloc::{
    borrow::ToOwned,
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec,
    vec::Vec,
};
use core::cmp::Reverse;

use super::{Kept, Listed, Port, Score, packet, plan::FoundingConfig};
use crate::{
    election::leased,
    epoch::Epoch,
    id::{Incarnation, NodeId, Peer},
    leadership::{Election as _, Leadership, Mode, Why},
    machine::{Effect, Input, InputOf, Machine as _, Outbox, OutboxOf, Rejected},
    membership::ring::{Fact, Kind, Life, Ring, geometry::majority},
    rng::{Seed, mix},
    stack::Standing,
    time::{Duration, Time},
    wire::{DecodeError, Reader, Sink, Wire},
};

impl FoundingConfig {
    /// How many must agree to found a ring, which is how many must be there for anybody to lead.
    pub fn needed(&self) -> usize {
        match self.election.flavour() {
            leased::Flavour::Quorum => majority(self.members.len()),
            leased::Flavour::Conservative | leased::Flavour::Fast => self.members.len(),
        }
    }

    /// How long a ring may be without a leader before it is given up: all that might lead have had their turn.
    fn patience(&self) -> Duration {
        self.ring.session() * (6 * (self.members.len() as u64 + 1)) + self.quiet * 2
    }

    /// The same for all that agree on everything safety rests on.
    fn digest(&self) -> u32 {
        let waits = [self.ring.session(), self.ring.arbitration(), self.step_down];
        let numbers = waits.into_iter().map(Duration::as_micros);
        let numbers = numbers.chain([u64::from(self.ring.drift()), self.election.flavour() as u64]);
        let seed = numbers.fold(self.members.len() as u64, |hash, number| mix(hash ^ number));
        // A length before each name, so that no two lists read the same.
        let bytes = self.members.iter().flat_map(|name| {
            core::iter::once(name.len() as u64).chain(name.bytes().map(u64::from))
        });
        bytes.fold(seed, |hash, byte| mix(hash ^ byte)) as u32
    }
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Founding {
    me: Peer,
    config: FoundingConfig,
    digest: u32,
    seed: Seed,
    /// Of the next ring we are in.
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
    /// Who last said that it is inside, and when.
    inside: Option<(NodeId, Time)>,
    /// When others last said that they are in no ring: that they are ready, or look for one.
    outside: BTreeMap<NodeId, Time>,
    /// Those that would found a ring with us, and since when it is they.
    list: Vec<Fact>,
    listed: Time,
    /// Since when nobody has led.
    lacking: Option<Time>,
    /// Since when nobody leads and nobody can: the ring has too few witnesses left.
    barren: Option<Time>,
    tick: Time,
    observes: bool,
    /// When those that found with us were last told so.
    told: BTreeMap<NodeId, Time>,
    /// When somebody last spoke whose settings are not ours.
    strange: Option<Time>,
}

#[derive(Clone, Debug)]
enum Stage {
    Quiet,
    Outside,
    Inside { machine: Box<leased::Leased>, founders: Vec<Fact>, since: Time },
    Gone { inside: Option<Box<leased::Leased>> },
}

/// What another would found a ring with.
#[derive(Clone, Debug)]
struct Ready {
    fact: Fact,
    list: Vec<Fact>,
    heard: Time,
    /// Since when it would do so alone, though we tell it that we are ready: it may hear nobody.
    alone: Option<Time>,
}

/// What members of a leased election say to each other.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Message {
    /// Of everything safety rests on, as the sender has it set.
    pub digest: u32,
    /// What it says.
    pub body: Body,
}

/// What a member says.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Body {
    /// Within a ring.
    Machine(Box<leased::Message>),
    /// I am in no ring, nobody counts on me, and I would found one with these.
    Ready {
        /// Who says so.
        fact: Fact,
        /// With whom, the sender included.
        list: Vec<Fact>,
    },
    /// I am in a ring: join it.
    Inside,
}

impl Founding {
    pub(super) fn new(
        me: Peer,
        config: FoundingConfig,
        seed: Seed,
        durable: Option<Epoch>,
    ) -> Self {
        Self {
            me,
            digest: config.digest(),
            seed,
            inc: Incarnation::default(),
            durable,
            stage: Stage::Quiet,
            bound: Time::NEVER,
            out: Outbox::new(),
            known: BTreeMap::new(),
            ready: BTreeMap::new(),
            standings: BTreeMap::new(),
            beliefs: BTreeMap::new(),
            inside: None,
            outside: BTreeMap::new(),
            list: Vec::new(),
            listed: Time::ZERO,
            lacking: None,
            barren: None,
            tick: Time::NEVER,
            observes: false,
            told: BTreeMap::new(),
            strange: None,
            config,
        }
    }

    pub(super) fn start(&mut self, port: &mut Port<'_>) {
        let now = port.now;
        self.bound = now + self.config.quiet;
        (self.listed, self.lacking, self.tick) = (now, Some(now), now);
    }

    /// What it was built with.
    pub const fn config(&self) -> &FoundingConfig {
        &self.config
    }

    /// Between two looks at how things are.
    fn beat(&self) -> Duration {
        self.config.ring.session()
    }

    /// The member of a ring, if this node is in one.
    pub fn machine(&self) -> Option<&leased::Leased> {
        match &self.stage {
            Stage::Inside { machine, .. } => Some(machine),
            Stage::Gone { inside } => inside.as_deref(),
            Stage::Quiet | Stage::Outside => None,
        }
    }

    fn machine_mut(&mut self) -> Option<&mut leased::Leased> {
        match &mut self.stage {
            Stage::Inside { machine, .. } => Some(machine),
            Stage::Gone { inside } => inside.as_deref_mut(),
            Stage::Quiet | Stage::Outside => None,
        }
    }

    /// Whether this node is a member, as far as names are known.
    pub(super) fn knows(&self, id: NodeId) -> bool {
        self.known.contains_key(&id)
    }

    fn fact(&self) -> Fact {
        let life = Life { peer: self.me, inc: self.inc };
        Fact { life, kind: Kind::Member, witness: self.config.witness }
    }

    fn say(&self, to: NodeId, body: Body, port: &mut Port<'_>) {
        let elects = !matches!(body, Body::Machine(_));
        let message = Message { digest: self.digest, body };
        port.send(to, packet::Message::Leased(port.group, message), elects);
    }

    fn input(
        &mut self,
        input: InputOf<'_, leased::Leased>,
        port: &mut Port<'_>,
    ) -> Result<(), Rejected> {
        let (now, quiet) = (port.now, self.config.quiet);
        let mut out = core::mem::take(&mut self.out);
        let Some(machine) = self.machine_mut() else { return Ok(()) };
        let before = machine.ring().is_active();
        let result = machine.handle(now, input, &mut out);
        if before || machine.ring().is_active() {
            self.bound = now + quiet;
        }
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Send { to, message } => {
                    self.say(to, Body::Machine(Box::new(message)), port);
                }
                Effect::Persist(epoch) => {
                    self.durable = self.durable.max(Some(epoch));
                    port.keep(Kept::Leased(epoch));
                }
                // Whoever asks who leads is told; the ring's own affairs are nobody's business.
                Effect::Emit(_) => {}
                Effect::Broadcast(_) | Effect::Multicast(_) => {
                    unreachable!("a leader talks to one at a time")
                }
            }
        }
        self.out = out;
        result
    }

    /// The same, of an input that cannot be refused.
    fn tell(&mut self, input: InputOf<'_, leased::Leased>, port: &mut Port<'_>) {
        let told = self.input(input, port);
        debug_assert!(matches!(told, Ok(()) | Err(Rejected::NotRunning)), "{told:?}");
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

    fn begin(&mut self, ring: Ring, founders: Vec<Fact>, port: &mut Port<'_>) {
        let machine = Box::new(leased::Leased::new(ring, self.config.election, self.durable));
        self.stage = Stage::Inside { machine, founders, since: port.now };
        self.told.clear();
        (self.lacking, self.barren) = (Some(port.now), None);
        // First, as the best begins to claim when it starts.
        let standings = self.standings.clone();
        standings.into_iter().for_each(|(id, standing)| self.weigh(id, standing, port));
        self.tell(Input::Start, port);
    }

    /// Whoever may not lead is worth nothing.
    fn weigh(&mut self, id: NodeId, standing: Standing, port: &mut Port<'_>) {
        let worth = if standing.observer { 0 } else { standing.attribute };
        self.tell(Input::Command(leased::Command::Weigh(id, worth)), port);
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
    fn yield_to_better(&mut self, port: &mut Port<'_>) {
        let Some(keeping) = self.config.learned else { return };
        let leadership = self.leadership(port.now);
        let Why::Unchallenged { since } = leadership.why else { return };
        let ours = self.standings.get(&self.me.id).map_or(0, |standing| standing.attribute);
        let over = leadership.leader == Some(self.me.id) && port.now >= since + keeping.tenure;
        let better = |&(_, standing, leased): &(NodeId, Standing, bool)| {
            leased && !standing.observer && standing.attribute > ours.saturating_add(keeping.margin)
        };
        let best = self.candidates().into_iter().filter(better);
        if over && let Some((best, ..)) = best.max_by_key(|(_, standing, _)| standing.attribute) {
            self.tell(Input::Command(leased::Command::Transfer(best)), port);
        }
    }

    fn ring(&self, contacts: &[NodeId]) -> Ring {
        let seed = self.seed.indexed(u64::from(self.inc.get()));
        let ring = Ring::new(self.me, self.config.ring, seed, &[], contacts);
        let witness = self.config.witness.then_some(self.me.id);
        ring.with_incarnation(self.inc).with_witnesses(witness.as_slice())
    }

    fn look_around(&mut self, port: &mut Port<'_>) {
        let now = port.now;
        match &self.stage {
            Stage::Quiet if now >= self.bound => {
                self.stage = Stage::Outside;
                self.look_outside(port);
            }
            Stage::Outside => self.look_outside(port),
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
                let barren = active && self.lacking.is_some() && machine.is_barren();
                self.barren = barren.then(|| self.barren.unwrap_or(now));
                // `R11.12` of `docs/rules/arbitrated.md`: what there is may not have been heard of yet.
                let barren = self.barren.is_some_and(|since| now >= since + self.beat() * 4);
                let vain = barren || !active && self.looks_in_vain(now, *since);
                let since = self.lacking.unwrap_or(now).max(*since);
                let late = now >= since + self.config.patience();
                if machine.ring().is_out() || late || vain {
                    if active {
                        self.tell(Input::Leave, port);
                    }
                    self.go_out();
                }
            }
            Stage::Quiet | Stage::Gone { .. } => {}
        }
    }

    fn look_outside(&mut self, port: &mut Port<'_>) {
        let (now, fresh) = (port.now, self.beat() * 4);
        self.ready
            .retain(|id, ready| now.since(ready.heard) < fresh && self.known.contains_key(id));
        self.lacking = self.lacking.or(Some(now));
        if let Some((id, heard)) = self.inside
            && now.since(heard) < fresh
        {
            let ring = self.ring(&[id]);
            return self.begin(ring, Vec::new(), port);
        }
        // Whoever hears nobody would keep all others from agreeing for ever: `HB-15`.
        let deaf = self.beat() * 3;
        let hears = |ready: &&Ready| ready.alone.is_none_or(|since| now.since(since) < deaf);
        let with = || self.ready.values().filter(hears);
        let mut list: Vec<Fact> = with().map(|ready| ready.fact).collect();
        list.push(self.fact());
        list.sort_unstable_by_key(|fact| fact.life);
        let agreed = with().all(|ready| ready.list == list);
        if list != self.list {
            (self.list, self.listed) = (list, now);
        }
        let all = self.list.len() == self.config.members.len();
        let waited = now.since(self.listed) >= self.beat() * if all { 1 } else { 5 };
        if agreed && waited && self.list.len() >= self.config.needed() {
            let founders = self.list.clone();
            let ring = self.ring(&[]).with_founders(&founders);
            self.tell_ready(&founders, port);
            self.begin(ring, founders, port);
        }
    }

    fn tell_ready(&self, list: &[Fact], port: &mut Port<'_>) {
        for &to in self.known.keys().filter(|&&id| id != self.me.id) {
            self.say(to, Body::Ready { fact: self.fact(), list: list.to_vec() }, port);
        }
    }

    fn on_ready(
        &mut self,
        from: Peer,
        fact: Fact,
        list: Vec<Fact>,
        port: &mut Port<'_>,
    ) -> Result<(), Rejected> {
        if fact.life.peer != from || fact.kind != Kind::Member {
            return Err(Rejected::Contradictory { from });
        }
        match &self.stage {
            Stage::Inside { machine, founders, .. } if machine.ring().is_active() => {
                let ours = founders.iter().find(|fact| fact.life.id() == self.me.id);
                match ours.filter(|_| *founders == list) {
                    // It founds with us, and may not have heard yet that we do. Hardly more often than it asks, once a
                    // beat: it may as well be inside by now, and two that answer each other's answers would never end.
                    Some(&fact) => {
                        let last = self.told.get(&from.id);
                        let pace = self.beat().div(4) * 3;
                        if last.is_none_or(|&last| port.now.since(last) >= pace) {
                            self.told.insert(from.id, port.now);
                            self.say(from.id, Body::Ready { fact, list }, port);
                        }
                    }
                    // A ring without a leader is joined by nobody, so that it can come to an end.
                    None if self.lacking.is_none() => self.say(from.id, Body::Inside, port),
                    None => {}
                }
            }
            Stage::Quiet | Stage::Outside => {
                let before = self.ready.get(&from.id).and_then(|ready| ready.alone);
                let alone = list.iter().all(|fact| fact.life.peer == from);
                let alone = alone.then(|| before.unwrap_or(port.now));
                self.ready.insert(from.id, Ready { fact, list, heard: port.now, alone });
                if matches!(self.stage, Stage::Outside) {
                    let before = self.list.clone();
                    self.look_outside(port);
                    if matches!(self.stage, Stage::Outside) && self.list != before {
                        self.tell_ready(&self.list, port);
                    }
                }
            }
            // Whom we hoped to join is in no ring itself.
            Stage::Inside { .. } if self.inside.is_some_and(|(id, _)| id == from.id) => {
                self.go_out();
            }
            Stage::Inside { .. } => {
                self.outside.insert(from.id, port.now);
            }
            Stage::Gone { .. } => {}
        }
        Ok(())
    }

    /// Whether this node has looked for its ring for a while, and so many others are in none that nobody leads in it. They
    /// may all look for each other.
    fn looks_in_vain(&self, now: Time, since: Time) -> bool {
        let (wait, lately) = (self.beat() * 4, self.beat() * 6);
        // `bound` lies `quiet` after it was last in a ring.
        let waited = now >= since + wait && now + self.config.quiet >= self.bound + wait;
        let outside = 1 + self.outside.values().filter(|&&at| now.since(at) < lately).count();
        waited && outside >= majority(self.config.members.len())
    }

    /// What is in the way of a leader, in words.
    pub(super) fn words(&self, now: Time) -> Option<String> {
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
            Stage::Quiet => Some(format!(
                "waits {:.1} s more: what this node may have promised before it restarted or left must run out first",
                self.bound.since(now).as_secs_f64()
            )),
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
                Some("has found the others and waits for them to let it in".to_owned())
            }
            Stage::Inside { .. } | Stage::Gone { .. } => None,
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let machine = self.machine().and_then(|machine| machine.deadline()).map(|(at, _)| at);
        let tick = match self.stage {
            Stage::Gone { .. } => None,
            Stage::Quiet => Some(self.tick.max(self.bound)),
            Stage::Outside | Stage::Inside { .. } => Some(self.tick),
        };
        machine.into_iter().chain(tick).filter(|&at| at != Time::NEVER).min()
    }

    pub(super) fn due(&mut self, port: &mut Port<'_>) {
        let now = port.now;
        if self.machine().and_then(|machine| machine.deadline()).is_some_and(|(at, _)| at <= now) {
            self.tell(Input::Timeout, port);
        }
        if now >= self.tick {
            self.tick = now + self.beat();
            if self.observes && self.machine().and_then(leased::Leased::authority).is_some() {
                self.tell(Input::Command(leased::Command::Resign), port);
            }
            self.yield_to_better(port);
            self.look_around(port);
            if matches!(self.stage, Stage::Outside) {
                self.tell_ready(&self.list, port);
            }
        }
    }

    pub(super) fn hear(
        &mut self,
        from: Peer,
        message: &Message,
        port: &mut Port<'_>,
    ) -> Result<(), Rejected> {
        if message.digest != self.digest {
            self.strange = Some(port.now);
            return Err(Rejected::OtherSettings { from });
        }
        if !self.known.contains_key(&from.id) {
            return Err(Rejected::NotAMember { from });
        }
        match &message.body {
            Body::Machine(message) => {
                if message.body.looks_for_ring() {
                    self.outside.insert(from.id, port.now);
                }
                if let Some(said) = message.stamp.as_ref().and_then(|stamp| stamp.register) {
                    self.beliefs.insert(from.id, (said.effective().id(), said.epoch));
                }
                self.input(Input::Message { from, via: from.id, message }, port)
            }
            Body::Ready { fact, list } => self.on_ready(from, *fact, list.clone(), port),
            Body::Inside => {
                self.inside = Some((from.id, port.now));
                if matches!(self.stage, Stage::Outside) {
                    self.look_outside(port);
                }
                Ok(())
            }
        }
    }

    /// The answer at `now`, which may be later than the last input.
    pub(super) fn leadership(&self, now: Time) -> Leadership {
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

    /// The process was stopped. Authority is a function of time: there is nothing to give up that is not over.
    pub(super) fn stalled(&mut self, port: &mut Port<'_>) {
        self.tell(Input::Timeout, port);
    }

    /// The disk refuses what was to be kept, or takes it again. What we said last may have been a promise that a restart
    /// would forget, so it must be over before anything else is said.
    pub(super) fn withdraw(&mut self, port: &Port<'_>) {
        if matches!(self.stage, Stage::Inside { .. }) {
            self.bound = self.bound.max(port.now + self.config.quiet);
            self.lacking = Some(port.now);
            self.go_out();
        }
    }

    pub(super) fn observe(&mut self, observes: bool, port: &mut Port<'_>) {
        self.observes = observes;
        if observes {
            self.tell(Input::Command(leased::Command::Resign), port);
        }
    }

    pub(super) fn resign(&mut self, port: &mut Port<'_>) -> Result<(), Rejected> {
        self.tell(Input::Command(leased::Command::Resign), port);
        self.handed("nobody that can lead is within reach now")
    }

    pub(super) fn transfer(&mut self, to: NodeId, port: &mut Port<'_>) -> Result<(), Rejected> {
        self.tell(Input::Command(leased::Command::Transfer(to)), port);
        self.handed("it is not in the ring, or never leads")
    }

    fn handed(&self, otherwise: &'static str) -> Result<(), Rejected> {
        match self.machine().and_then(leased::Leased::authority) {
            None => Ok(()),
            Some(_) => Err(Rejected::Refused { why: otherwise }),
        }
    }

    pub(super) fn leave(&mut self, port: &mut Port<'_>) {
        self.tell(Input::Leave, port);
        let stage = core::mem::replace(&mut self.stage, Stage::Gone { inside: None });
        if let Stage::Inside { machine, .. } = stage {
            self.stage = Stage::Gone { inside: Some(machine) };
        }
    }

    pub(super) fn on_listed(&mut self, listed: &[Listed], port: &mut Port<'_>) {
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
            let standing = one.standing(port.group);
            let Some(standing) = standing.filter(|_| self.known.contains_key(&one.peer.id)) else {
                continue;
            };
            if self.standings.insert(one.peer.id, standing) != Some(standing) {
                self.weigh(one.peer.id, standing, port);
            }
        }
        self.standings.retain(|id, _| self.known.contains_key(id));
    }

    /// By what they are worth; those that cannot be elected now last.
    pub(super) fn scores(&self) -> Vec<Score> {
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
        let score = |(away, standing, id): (bool, Standing, NodeId)| Score {
            id,
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
        all.into_iter().map(score).collect()
    }

    pub(super) fn beliefs(&self) -> &BTreeMap<NodeId, (NodeId, Epoch)> {
        &self.beliefs
    }
}

impl Wire for Message {
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
