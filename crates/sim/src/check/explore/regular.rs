//! Every history that differs from the regular one in a few places.
//!
//! What a machine has become is a function of what it was given and when, so two states are one if every machine was
//! given the same, and the same messages are on their way.

use std::{mem, sync::Arc};

use bellwether_proto::{Effect, EffectOf, Input, Machine, NodeId, Outbox, OutboxOf, Peer, Time};

use super::{
    End, Explorable, Explored, Judge, Model, Scripted, Step, Violation, give,
    identity::{Digest, Digests},
};
use crate::engine::clock::Clock;

mod deviation;
mod search;

use self::deviation::KINDS;

pub use self::{
    deviation::{Allowed, Deviation, Kind, Settings, What},
    search::{Told, explore, replay},
};

/// What is the same in all histories, ready for use.
struct Fixed<'m, M: Machine> {
    model: &'m Model<'m, M>,
    settings: &'m Settings,
    clocks: Vec<Clock>,
    /// Who hears whose broadcasts and multicasts.
    range: Vec<Vec<usize>>,
    group: Vec<Vec<usize>>,
    /// What happens to each node by plan, by number.
    script: Vec<Vec<usize>>,
    /// From when on nothing passes between two.
    cut: Vec<(Time, usize, usize)>,
    /// By kind: how often it may happen, and to which nodes.
    allowed: [(u32, Vec<bool>); KINDS],
}

impl<'m, M: Machine> Fixed<'m, M> {
    fn new(model: &'m Model<'m, M>, settings: &'m Settings) -> Self {
        let ids: Vec<NodeId> = model.nodes.iter().map(|(peer, _)| peer.id).collect();
        let clock = |id: &NodeId| {
            let mut clock = Clock::true_time();
            clock.set_rate(Time::ZERO, model.drift.get(id).copied().unwrap_or(0));
            clock
        };
        let planned = |id: &NodeId| {
            let numbered = model.script.iter().enumerate();
            numbered.filter(|(_, (_, node, _))| node == id).map(|(number, _)| number).collect()
        };
        let cut = |&(at, one, other): &(Time, NodeId, NodeId)| {
            Some((at, model.index(one)?, model.index(other)?))
        };
        let mut allowed: [(u32, Vec<bool>); KINDS] = Default::default();
        for (&kind, Allowed { most, nodes }) in &settings.allowed {
            let may = |id: &NodeId| nodes.is_empty() || nodes.contains(id);
            allowed[kind as usize] = (*most, ids.iter().map(may).collect());
        }
        Self {
            model,
            settings,
            clocks: ids.iter().map(clock).collect(),
            range: model.audiences(true),
            group: model.audiences(false),
            script: ids.iter().map(planned).collect(),
            cut: settings.cut.iter().filter_map(cut).collect(),
            allowed,
        }
    }

    fn open(&self, at: Time) -> bool {
        let (from, to) = self.settings.window;
        at >= from && at < to
    }
}

/// Buffers.
struct Desk<M: Machine> {
    out: OutboxOf<M>,
    effects: Vec<EffectOf<M>>,
}

impl<M: Machine> Desk<M> {
    const fn new() -> Self {
        Self { out: Outbox::new(), effects: Vec::new() }
    }
}

/// A message on its way.
struct Letter<M: Machine> {
    at: Time,
    number: u64,
    from: Peer,
    to: usize,
    message: Arc<M::Message>,
    /// Of sender, receiver and message.
    digest: u64,
}

impl<M: Machine> Clone for Letter<M> {
    fn clone(&self) -> Self {
        Self { message: Arc::clone(&self.message), ..*self }
    }
}

/// What the disk does when it is asked to keep something next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Disk {
    Keeps,
    Refuses,
    /// Keeps it, and nothing else happens: the node crashes.
    KeepsLast,
}

/// A node, up or down. Histories share machines until they give them something.
struct Place<M: Machine> {
    peer: Peer,
    machine: Option<Arc<M>>,
    /// When its deadline comes, on the wall.
    due: Time,
    /// Handles nothing before.
    paused: Time,
    /// When it starts again, and whether with an empty disk.
    back: Option<(Time, bool)>,
    disk: Disk,
    kept: Option<Arc<M::Durable>>,
    /// How much of what is planned for it has happened.
    script: usize,
    /// All it was ever given.
    given: Digest,
}

impl<M: Machine> Clone for Place<M> {
    fn clone(&self) -> Self {
        Self { machine: self.machine.clone(), kept: self.kept.clone(), ..*self }
    }
}

/// The deviations of a history, the last one in front. Histories share how they began.
struct Link {
    last: Deviation,
    before: Option<Arc<Self>>,
}

struct World<M: Machine, J> {
    now: Time,
    places: Vec<Place<M>>,
    /// The next to arrive at the end.
    queue: Vec<Letter<M>>,
    sent: u64,
    steps: u64,
    /// Deviations left, and had, by kind.
    left: u32,
    had: [u32; KINDS],
    /// Pairs that were cut in deviations.
    cut: Vec<(usize, usize)>,
    judge: J,
    path: Option<Arc<Link>>,
}

impl<M: Machine, J: Clone> Clone for World<M, J> {
    fn clone(&self) -> Self {
        Self {
            places: self.places.clone(),
            queue: self.queue.clone(),
            cut: self.cut.clone(),
            judge: self.judge.clone(),
            path: self.path.clone(),
            ..*self
        }
    }
}

/// What happens next. What is earlier here goes first at the same instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Next {
    Restart(usize),
    Delivery(usize),
    Script(usize),
    Timeout(usize),
}

impl Next {
    const fn node(self) -> usize {
        match self {
            Self::Restart(at) | Self::Delivery(at) | Self::Script(at) | Self::Timeout(at) => at,
        }
    }
}

/// What a node is given.
enum Given<'a, M: Machine> {
    Start,
    /// With its digest.
    Message(Peer, &'a M::Message, u64),
    /// By number, as it was told at its start or by plan.
    Feed(usize, M::Feed),
    Command(usize, M::Command),
    Leave,
    Timeout,
}

impl<M: Explorable, J: Judge<M>> World<M, J> {
    fn new(fixed: &Fixed<'_, M>, judge: J) -> Self {
        let place = |(peer, machine): &(Peer, M)| Place {
            peer: *peer,
            machine: Some(Arc::new(machine.clone())),
            due: Time::NEVER,
            paused: Time::ZERO,
            back: None,
            disk: Disk::Keeps,
            kept: None,
            script: 0,
            given: Digest::new(),
        };
        Self {
            now: Time::ZERO,
            places: fixed.model.nodes.iter().map(place).collect(),
            queue: Vec::new(),
            sent: 0,
            steps: 0,
            left: fixed.settings.deviations,
            had: [0; KINDS],
            cut: Vec::new(),
            judge,
            path: None,
        }
    }

    /// Starts all nodes.
    fn begin(&mut self, fixed: &Fixed<'_, M>, desk: &mut Desk<M>) -> Result<(), String> {
        (0..self.places.len()).try_for_each(|at| self.start(fixed, desk, at))
    }

    fn start(&mut self, fixed: &Fixed<'_, M>, desk: &mut Desk<M>, at: usize) -> Result<(), String> {
        self.give(fixed, desk, at, Given::Start)?;
        let feeds = fixed.model.feeds.get(&self.places[at].peer.id);
        for (number, feed) in feeds.into_iter().flatten().enumerate() {
            self.give(fixed, desk, at, Given::Feed(number, feed.clone()))?;
        }
        Ok(())
    }

    /// What happens next, and when, if the history goes on.
    fn peek(&self, fixed: &Fixed<'_, M>) -> Option<(Time, Next)> {
        let mut first = match self.queue.last() {
            Some(letter) => (letter.at, Next::Delivery(letter.to)),
            None => (Time::NEVER, Next::Delivery(0)),
        };
        for (at, place) in self.places.iter().enumerate() {
            if let Some((when, _)) = place.back {
                first = first.min((when, Next::Restart(at)));
            }
            if let Some(&number) = fixed.script[at].get(place.script) {
                let when = fixed.model.script[number].0.max(place.paused);
                first = first.min((when, Next::Script(at)));
            }
            first = first.min((place.due.max(place.paused), Next::Timeout(at)));
        }
        let (when, next) = first;
        let when = when.max(self.now);
        (when <= fixed.settings.until && when != Time::NEVER).then_some((when, next))
    }

    /// Lets happen what is next. Whether anything did, but for time: what comes to those that are down does not count.
    fn step(
        &mut self,
        fixed: &Fixed<'_, M>,
        desk: &mut Desk<M>,
        (now, next): (Time, Next),
    ) -> Result<bool, String> {
        self.now = now;
        match next {
            Next::Restart(at) => {
                let place = &mut self.places[at];
                let (Some((_, lost)), Some(build)) = (place.back.take(), &fixed.model.build) else {
                    return Ok(false);
                };
                place.peer.boot = place.peer.boot.next();
                if lost {
                    place.kept = None;
                }
                place.machine = Some(Arc::new(build(place.peer, place.kept.as_deref().cloned())));
                place.given.fold(u64::from(lost));
                self.judge.restarted(now, place.peer, lost);
                self.start(fixed, desk, at)?;
            }
            Next::Delivery(at) => {
                let Some(letter) = self.queue.pop() else { return Ok(false) };
                if self.places[at].machine.is_none() {
                    return Ok(false);
                }
                self.give(
                    fixed,
                    desk,
                    at,
                    Given::Message(letter.from, &*letter.message, letter.digest),
                )?;
            }
            Next::Script(at) => {
                let number = fixed.script[at][self.places[at].script];
                self.places[at].script += 1;
                if self.places[at].machine.is_none() {
                    return Ok(false);
                }
                let given = match &fixed.model.script[number].2 {
                    Scripted::Crash | Scripted::Restart(_) => {
                        self.crash(at);
                        if let Scripted::Restart(after) = &fixed.model.script[number].2 {
                            self.places[at].back = Some((now + *after, false));
                        }
                        self.steps += 1;
                        return Ok(true);
                    }
                    Scripted::Pause(length) => {
                        self.pause(at, now + *length);
                        self.steps += 1;
                        return Ok(true);
                    }
                    Scripted::Feed(feed) => Given::Feed(number, feed.clone()),
                    Scripted::Command(command) => Given::Command(number, command.clone()),
                    Scripted::Message(from, message) => {
                        Given::Message(*from, message, number as u64)
                    }
                    Scripted::Leave => Given::Leave,
                };
                self.give(fixed, desk, at, given)?;
            }
            Next::Timeout(at) => self.give(fixed, desk, at, Given::Timeout)?,
        }
        self.steps += 1;
        Ok(true)
    }

    /// Gives a node something, carries out what it asks for, and has it judged.
    fn give(
        &mut self,
        fixed: &Fixed<'_, M>,
        desk: &mut Desk<M>,
        at: usize,
        given: Given<'_, M>,
    ) -> Result<(), String> {
        let (now, clock) = (self.now, fixed.clocks[at]);
        let local = clock.read(now);
        let place = &mut self.places[at];
        let Some(shared) = &mut place.machine else { return Ok(()) };
        let machine = Arc::make_mut(shared);
        let hash = &mut place.given;
        hash.fold(now.as_micros());
        let mut tell = |kind: u64, number: usize| {
            hash.fold(kind);
            hash.fold(number as u64);
        };
        let input = match given {
            Given::Start => {
                tell(0, 0);
                Input::Start
            }
            Given::Timeout => {
                tell(1, 0);
                Input::Timeout
            }
            Given::Leave => {
                tell(2, 0);
                Input::Leave
            }
            Given::Feed(number, feed) => {
                tell(3, number);
                Input::Feed(feed)
            }
            Given::Command(number, command) => {
                tell(4, number);
                Input::Command(command)
            }
            Given::Message(from, message, digest) => {
                hash.fold(digest);
                Input::Message { from, via: from.id, message }
            }
        };
        give(machine, local, input, &mut desk.out, &mut desk.effects);
        let mut crashes = false;
        if place.disk != Disk::Keeps {
            let persist = |effect: &EffectOf<M>| matches!(effect, Effect::Persist(_));
            if let Some(first) = desk.effects.iter().position(persist) {
                hash.fold(place.disk as u64);
                let refused = place.disk == Disk::Refuses;
                desk.effects.truncate(if refused { first } else { first + 1 });
                crashes = !refused || fixed.model.not_kept.is_none();
                if let Some(feed) = fixed.model.not_kept.as_ref().filter(|_| refused) {
                    let feed = Input::Feed(feed.clone());
                    give(machine, local, feed, &mut desk.out, &mut desk.effects);
                }
                place.disk = Disk::Keeps;
            }
        }
        let due = machine.deadline().map_or(Time::NEVER, |(due, _)| clock.when(due));
        place.due = due;
        if !crashes {
            let effects = &desk.effects[..];
            let step = Step { now, peer: place.peer, machine: &*machine, effects, clock };
            self.judge.step(&step)?;
        }
        let mut effects = mem::take(&mut desk.effects);
        for effect in effects.drain(..) {
            self.carry_out(fixed, at, effect);
        }
        desk.effects = effects;
        if crashes {
            self.crash(at);
        }
        Ok(())
    }

    fn carry_out(&mut self, fixed: &Fixed<'_, M>, at: usize, effect: EffectOf<M>) {
        match effect {
            Effect::Send { to, message } => {
                if let Some(to) = fixed.model.index(to) {
                    self.send(fixed, at, &[to], message);
                }
            }
            Effect::Broadcast(message) => self.send(fixed, at, &fixed.range[at], message),
            Effect::Multicast(message) => self.send(fixed, at, &fixed.group[at], message),
            Effect::Persist(durable) => {
                self.judge.kept(self.places[at].peer, &durable);
                self.places[at].kept = Some(Arc::new(durable));
            }
            Effect::Emit(_) => {}
        }
    }

    fn send(&mut self, fixed: &Fixed<'_, M>, at: usize, to: &[usize], message: M::Message) {
        if !fixed.model.travels(&message) {
            return;
        }
        let from = self.places[at].peer;
        let mut digest = Digest::new();
        digest.fold_value(&from);
        digest.fold_value(&message);
        let message = Arc::new(message);
        for &to in to {
            let pair =
                |one: usize, other: usize| (one, other) == (at, to) || (one, other) == (to, at);
            let cut = fixed.cut.iter().any(|&(when, a, b)| self.now >= when && pair(a, b))
                || self.cut.iter().any(|&(a, b)| pair(a, b));
            if cut {
                continue;
            }
            let mut digest = digest;
            digest.fold(to as u64);
            self.sent += 1;
            self.post(Letter {
                at: self.now + fixed.settings.delay,
                number: self.sent,
                from,
                to,
                message: Arc::clone(&message),
                digest: digest.get(),
            });
        }
    }

    /// Puts a message on its way. It waits for who is paused.
    fn post(&mut self, mut letter: Letter<M>) {
        letter.at = letter.at.max(self.places[letter.to].paused);
        let key = (letter.at, letter.number);
        // Most are the last to arrive, and so belong in front.
        let place = self.queue.partition_point(|other| (other.at, other.number) > key);
        self.queue.insert(place, letter);
    }

    fn crash(&mut self, at: usize) {
        let place = &mut self.places[at];
        (place.machine, place.due, place.paused) = (None, Time::NEVER, Time::ZERO);
        place.given.fold(CRASHED);
        self.judge.crashed(self.now, place.peer);
    }

    /// What is on its way to a node waits until then, and so does its timer.
    fn pause(&mut self, at: usize, until: Time) {
        self.places[at].paused = until;
        let held = |letter: &Letter<M>| letter.to == at && letter.at < until;
        let waiting: Vec<Letter<M>> = self.queue.extract_if(.., |it| held(it)).collect();
        waiting.into_iter().for_each(|letter| self.post(letter));
    }

    /// Whether this may happen to a node now, within its bound.
    fn may(&self, fixed: &Fixed<'_, M>, kind: Kind, at: usize) -> bool {
        let (most, nodes) = &fixed.allowed[kind as usize];
        self.had[kind as usize] < *most && nodes[at]
    }

    /// Leaves the regular history. What is not there is left alone.
    fn deviate(&mut self, fixed: &Fixed<'_, M>, at: Time, what: What) {
        let last = Deviation { step: self.steps, at, what };
        self.path = Some(Arc::new(Link { last, before: self.path.take() }));
        self.left = self.left.saturating_sub(1);
        self.had[what.kind() as usize] += 1;
        let late = at + fixed.settings.late;
        let letter = what.message().and_then(|number| {
            let found = self.queue.iter().position(|letter| letter.number == number)?;
            Some((found, self.queue[found].clone()))
        });
        match (what, letter) {
            (What::Delay { .. }, Some((found, letter))) => {
                self.queue.remove(found);
                self.post(Letter { at: late, ..letter });
            }
            (What::Loss { .. }, Some((found, _))) => {
                self.queue.remove(found);
            }
            (What::Duplicate { .. }, Some((_, letter))) => {
                self.sent += 1;
                self.post(Letter { at: late, number: self.sent, ..letter });
            }
            (What::Cut { .. }, Some((found, letter))) => {
                self.queue.remove(found);
                if let Some(from) = fixed.model.index(letter.from.id) {
                    self.cut.push((from, letter.to));
                }
            }
            _ => {}
        }
        let node = match what {
            What::Crash { node, .. }
            | What::Restart { node, .. }
            | What::Pause { node, .. }
            | What::Refusal { node } => fixed.model.index(node),
            _ => None,
        };
        let Some(node) = node else { return };
        match what {
            What::Crash { written: true, .. } => self.places[node].disk = Disk::KeepsLast,
            What::Crash { written: false, .. } => {
                self.now = at;
                self.crash(node);
            }
            What::Restart { after, lost, .. } => self.places[node].back = Some((at + after, lost)),
            What::Pause { length, .. } => self.pause(node, at + length),
            What::Refusal { .. } => self.places[node].disk = Disk::Refuses,
            _ => {}
        }
    }

    fn path(&self) -> Vec<Deviation> {
        let links = std::iter::successors(self.path.as_deref(), |link| link.before.as_deref());
        let mut path: Vec<Deviation> = links.map(|link| link.last).collect();
        path.reverse();
        path
    }

    fn identity(&self, fixed: &Fixed<'_, M>) -> u64 {
        let mut hash = Digest::new();
        hash.fold(self.now.as_micros());
        hash.fold(u64::from(self.left));
        for (had, (most, _)) in self.had.iter().zip(&fixed.allowed) {
            // A bound that is never reached makes no difference.
            if *most < fixed.settings.deviations {
                hash.fold(u64::from(*had));
            }
        }
        for place in &self.places {
            hash.fold(place.given.get());
            if place.paused > self.now {
                hash.fold(place.paused.as_micros());
            }
            if let Some((at, lost)) = place.back {
                hash.fold(at.as_micros() << 1 | u64::from(lost));
            }
        }
        for &(one, other) in &self.cut {
            hash.fold((one as u64) << 32 | other as u64);
        }
        for letter in &self.queue {
            hash.fold(letter.at.as_micros());
            hash.fold(letter.digest);
        }
        hash.get()
    }

    fn end(&mut self, seen: bool) -> Result<(), String> {
        let nodes = self.places.iter().map(|place| (place.peer, place.machine.as_deref()));
        self.judge.ended(&End { now: self.now, nodes: nodes.collect(), seen })
    }
}

/// Marks the end of a life in what was given.
const CRASHED: u64 = 0x6372_6173_6865_6400;
