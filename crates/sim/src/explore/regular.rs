//! Every history that differs from the regular one in a few places.
//!
//! What a machine has become is a function of what it was given and when, so two states are one if every machine was
//! given the same, and the same messages are on their way.

use std::{
    collections::BTreeMap,
    fmt, mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bellwether_proto::{
    Duration, Effect, EffectOf, Input, Machine, NodeId, Outbox, OutboxOf, Peer, Time,
};
use rayon::prelude::*;

use super::{
    DELAY, End, Explorable, Explored, Judge, LATE, Model, Scripted, Step, Violation, give,
    identity::{Digest, Digests},
};
use crate::clock::Clock;

/// What may go wrong. Each time it does is one deviation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// A message of the node takes [`Settings::late`].
    Delay,
    /// One does not arrive.
    Loss,
    /// One arrives in time and again after [`Settings::late`].
    Duplicate,
    /// One is the first that does not arrive: nothing passes between the two any more, either way.
    Cut,
    /// The node crashes before it is given something, or having written to its disk and done nothing else.
    Crash,
    /// A crashed node starts again from its disk, after one of [`Settings::down`]. A deviation of its own.
    Restart,
    /// The same with an empty disk.
    LostDisk,
    /// The node handles nothing for one of [`Settings::pauses`]; then what has arrived comes first.
    Pause,
    /// Its disk does not keep something: what the machine asked for after that is not done.
    Refusal,
}

const KINDS: usize = 9;

/// How often something may go wrong in a history, and to whom.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Allowed {
    /// How often, at most.
    pub most: u32,
    /// To these; to anybody, if none is named.
    pub nodes: Vec<NodeId>,
}

/// What may go wrong, and when.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a message takes.
    pub delay: Duration,
    /// How long a delayed one takes instead.
    pub late: Duration,
    /// How many deviations a history has at most.
    pub deviations: u32,
    /// From when to when they happen.
    pub window: (Time, Time),
    /// When histories end.
    pub until: Time,
    /// From when on nothing passes between two nodes, either way.
    pub cut: Vec<(Time, NodeId, NodeId)>,
    /// How long a node may be down before it starts again.
    pub down: Vec<Duration>,
    /// How long a node may be paused.
    pub pauses: Vec<Duration>,
    /// Not to look at more states than this. Every first deviation gets a fair share.
    pub most: u64,
    /// Into how many parts first deviations are dealt. Parts are searched in parallel, each for itself; what is found
    /// does not depend on the number of threads, but it does on that of parts.
    pub parts: usize,
    /// What may go wrong at all.
    pub allowed: BTreeMap<Kind, Allowed>,
}

impl Settings {
    /// Ten milliseconds a message, or six hundred; two deviations between two instants, which delay and lose messages,
    /// and histories six seconds longer.
    pub fn new(from: Time, to: Time) -> Self {
        let settings = Self {
            delay: DELAY,
            late: LATE,
            deviations: 2,
            window: (from, to),
            until: to + Duration::from_secs(6),
            cut: Vec::new(),
            down: vec![Duration::from_secs(1)],
            pauses: vec![Duration::from_secs(1)],
            most: u64::MAX,
            parts: 16,
            allowed: BTreeMap::new(),
        };
        settings.allow(Kind::Delay, u32::MAX, []).allow(Kind::Loss, u32::MAX, [])
    }

    /// At most so many of this kind in a history, which happen to these nodes: to anybody, if none is named.
    pub fn allow(mut self, kind: Kind, most: u32, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        self.allowed.insert(kind, Allowed { most, nodes: nodes.into_iter().collect() });
        self
    }
}

/// A place where a history leaves the regular one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Deviation {
    /// After how many steps of the history.
    pub step: u64,
    /// At what time.
    pub at: Time,
    /// What happens.
    pub what: What,
}

/// What happens in a deviation. Messages are numbered as they are sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum What {
    /// [`Kind::Delay`].
    Delay {
        /// Which message.
        number: u64,
    },
    /// [`Kind::Loss`].
    Loss {
        /// Which message.
        number: u64,
    },
    /// [`Kind::Duplicate`].
    Duplicate {
        /// Which message.
        number: u64,
    },
    /// [`Kind::Cut`].
    Cut {
        /// The first message that does not arrive.
        number: u64,
    },
    /// [`Kind::Crash`].
    Crash {
        /// Who.
        node: NodeId,
        /// Whether it writes to its disk first, once.
        written: bool,
    },
    /// [`Kind::Restart`] or [`Kind::LostDisk`].
    Restart {
        /// Who.
        node: NodeId,
        /// How long after this.
        after: Duration,
        /// Whether its disk is empty then.
        lost: bool,
    },
    /// [`Kind::Pause`].
    Pause {
        /// Who.
        node: NodeId,
        /// For how long.
        length: Duration,
    },
    /// [`Kind::Refusal`].
    Refusal {
        /// Whose disk.
        node: NodeId,
    },
}

impl What {
    fn kind(self) -> Kind {
        match self {
            Self::Delay { .. } => Kind::Delay,
            Self::Loss { .. } => Kind::Loss,
            Self::Duplicate { .. } => Kind::Duplicate,
            Self::Cut { .. } => Kind::Cut,
            Self::Crash { .. } => Kind::Crash,
            Self::Restart { lost: false, .. } => Kind::Restart,
            Self::Restart { lost: true, .. } => Kind::LostDisk,
            Self::Pause { .. } => Kind::Pause,
            Self::Refusal { .. } => Kind::Refusal,
        }
    }

    fn message(self) -> Option<u64> {
        match self {
            Self::Delay { number }
            | Self::Loss { number }
            | Self::Duplicate { number }
            | Self::Cut { number } => Some(number),
            _ => None,
        }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after step {}: ", self.at, self.step)?;
        match self.what {
            What::Delay { number } => write!(f, "message {number} is late"),
            What::Loss { number } => write!(f, "message {number} is lost"),
            What::Duplicate { number } => write!(f, "message {number} comes twice"),
            What::Cut { number } => write!(f, "nothing passes any more, from message {number} on"),
            What::Crash { node, written: false } => write!(f, "{node} crashes"),
            What::Crash { node, written: true } => write!(f, "{node} writes and crashes"),
            What::Restart { node, after, lost: false } => {
                write!(f, "{node} is to start again in {after}")
            }
            What::Restart { node, after, lost: true } => {
                write!(f, "{node} is to start again in {after}, its disk lost")
            }
            What::Pause { node, length } => write!(f, "{node} pauses for {length}"),
            What::Refusal { node } => write!(f, "the disk of {node} refuses"),
        }
    }
}

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

/// The search of one part.
struct Search<'f, M: Machine, T> {
    fixed: &'f Fixed<'f, M>,
    desk: Desk<M>,
    seen: Digests,
    found: Found<T>,
}

/// What one part has found.
#[derive(Default)]
struct Found<T> {
    states: u64,
    histories: u64,
    cut: bool,
    violation: Option<(String, Vec<Deviation>)>,
    tally: T,
}

impl<'f, M: Explorable, T: Default> Search<'f, M, T> {
    fn new(fixed: &'f Fixed<'f, M>) -> Self {
        Self { fixed, desk: Desk::new(), seen: Digests::default(), found: Found::default() }
    }

    /// Follows everything that begins with one of these, each as far as its share of states goes.
    fn all<J: Judge<M, Tally = T>>(
        mut self,
        roots: Vec<World<M, J>>,
        most: u64,
        given_up: impl Fn() -> bool,
    ) -> Found<T> {
        let mut waiting = roots.len() as u64;
        let mut open = Vec::new();
        // The later the first deviation, the less there is to follow: what these leave of their shares goes to others.
        for root in roots.into_iter().rev() {
            let share = (most - self.found.states.min(most)) / waiting;
            let limit = self.found.states.saturating_add(share);
            waiting -= 1;
            open.push(root);
            while let Some(world) = open.pop() {
                self.follow(world, &mut open, limit);
                if self.found.violation.is_some() || given_up() {
                    return self.found;
                }
                if self.found.states >= limit {
                    self.found.cut |= !open.is_empty();
                    open.clear();
                }
            }
        }
        self.found
    }

    /// Follows one history to its end, and notes where others leave it.
    fn follow<J: Judge<M, Tally = T>>(
        &mut self,
        mut world: World<M, J>,
        open: &mut Vec<World<M, J>>,
        limit: u64,
    ) {
        if let Err(problem) = self.walk(&mut world, open, limit) {
            self.found.violation = Some((problem, world.path()));
        }
        world.judge.tally(&mut self.found.tally);
    }

    fn walk<J: Judge<M, Tally = T>>(
        &mut self,
        world: &mut World<M, J>,
        open: &mut Vec<World<M, J>>,
        limit: u64,
    ) -> Result<(), String> {
        let fixed = self.fixed;
        while let Some((at, next)) = world.peek(fixed) {
            if self.found.states >= limit {
                self.found.cut = true;
                return Ok(());
            }
            let node = next.node();
            let deviates = world.left > 0 && fixed.open(at) && world.places[node].machine.is_some();
            let id = world.places[node].peer.id;
            let mut before = None;
            if deviates {
                let crashes = world.may(fixed, Kind::Crash, node);
                if crashes {
                    let what = What::Crash { node: id, written: false };
                    fork_down(world, fixed, open, (at, node), what);
                }
                if world.may(fixed, Kind::Pause, node) {
                    for &length in &fixed.settings.pauses {
                        let mut other = world.clone();
                        other.deviate(fixed, at, What::Pause { node: id, length });
                        open.push(other);
                    }
                }
                // Who writes, crashes and stays down might as well not have written.
                let returns = crashes && world.left > 1 && world.may(fixed, Kind::Restart, node);
                if (returns && fixed.model.build.is_some()) || world.may(fixed, Kind::Refusal, node)
                {
                    before = Some(world.clone());
                }
            }
            let sent = world.sent;
            if !world.step(fixed, &mut self.desk, (at, next))? {
                continue;
            }
            // Whether it wrote to its disk is known only now.
            let kept = |world: &World<M, J>| world.places[node].kept.as_ref().map(Arc::as_ptr);
            if let Some(before) = before
                && kept(&before) != kept(world)
            {
                if before.may(fixed, Kind::Crash, node) {
                    let what = What::Crash { node: id, written: true };
                    fork_down(&before, fixed, open, (at, node), what);
                }
                if before.may(fixed, Kind::Refusal, node) {
                    let what = What::Refusal { node: id };
                    match fixed.model.not_kept {
                        None => fork_down(&before, fixed, open, (at, node), what),
                        Some(_) => {
                            let mut other = before;
                            other.deviate(fixed, at, what);
                            open.push(other);
                        }
                    }
                }
            }
            if !self.seen.insert(world.identity(fixed)) {
                self.found.histories += 1;
                // Where it leads was judged when it was first seen.
                let _judged = world.end(true);
                return Ok(());
            }
            self.found.states += 1;
            if world.left > 0 && fixed.open(at) {
                for number in sent + 1..=world.sent {
                    fork_message(world, fixed, open, (at, node), number);
                }
            }
            if world.judge.enough() {
                break;
            }
        }
        self.found.histories += 1;
        world.end(false)
    }
}

/// A node crashes, and stays down or comes back; having written something, it comes back from that.
fn fork_down<M: Explorable, J: Judge<M>>(
    world: &World<M, J>,
    fixed: &Fixed<'_, M>,
    open: &mut Vec<World<M, J>>,
    (at, index): (Time, usize),
    what: What,
) {
    let node = world.places[index].peer.id;
    let written = matches!(what, What::Crash { written: true, .. });
    let mut down = world.clone();
    down.deviate(fixed, at, what);
    if down.left > 0 && fixed.model.build.is_some() {
        for (kind, lost) in [(Kind::Restart, false), (Kind::LostDisk, true)] {
            // An empty disk cannot be lost, and what is written to one that is lost makes no difference.
            let same = lost && (written || down.places[index].kept.is_none());
            if !same && down.may(fixed, kind, index) {
                for &after in &fixed.settings.down {
                    let mut back = down.clone();
                    back.deviate(fixed, at, What::Restart { node, after, lost });
                    open.push(back);
                }
            }
        }
    }
    if !written {
        open.push(down);
    }
}

/// A message that was just sent is late, lost, or the like.
fn fork_message<M: Explorable, J: Judge<M>>(
    world: &World<M, J>,
    fixed: &Fixed<'_, M>,
    open: &mut Vec<World<M, J>>,
    (at, sender): (Time, usize),
    number: u64,
) {
    for what in [
        What::Loss { number },
        What::Delay { number },
        What::Duplicate { number },
        What::Cut { number },
    ] {
        if world.may(fixed, what.kind(), sender) {
            let mut other = world.clone();
            other.deviate(fixed, at, what);
            open.push(other);
        }
    }
}

/// Follows every history with at most so many deviations.
///
/// First deviations are dealt into [parts](Settings::parts), which are searched in parallel and know nothing of each
/// other's states: what is found does not depend on the number of threads.
pub fn explore<M: Explorable, J: Judge<M>>(
    model: &Model<'_, M>,
    settings: &Settings,
    judge: J,
) -> Explored<J::Tally> {
    let fixed = Fixed::new(model, settings);
    let mut trunk: Search<'_, M, J::Tally> = Search::new(&fixed);
    let mut world = World::new(&fixed, judge.clone());
    let mut first = Vec::new();
    match world.begin(&fixed, &mut trunk.desk) {
        Ok(()) => trunk.follow(world, &mut first, settings.most),
        Err(problem) => trunk.found.violation = Some((problem, Vec::new())),
    }
    let mut all = trunk.found;
    if all.violation.is_none() {
        let most = settings.most - all.states.min(settings.most);
        let count = settings.parts.clamp(1, first.len().max(1));
        let mut parts: Vec<Vec<World<M, J>>> = (0..count).map(|_| Vec::new()).collect();
        for (number, world) in first.into_iter().enumerate() {
            parts[number % count].push(world);
        }
        // What is reported is what the parts found up to the first with a violation; others may as well stop.
        let first = AtomicUsize::new(usize::MAX);
        let search = |(number, roots)| {
            let given_up = || first.load(Ordering::Relaxed) < number;
            let found = Search::new(&fixed).all(roots, most / count as u64, given_up);
            if found.violation.is_some() {
                first.fetch_min(number, Ordering::Relaxed);
            }
            found
        };
        let parts: Vec<Found<J::Tally>> = parts.into_par_iter().enumerate().map(search).collect();
        for part in parts {
            all.states += part.states;
            all.histories += part.histories;
            all.cut |= part.cut;
            J::merge(&mut all.tally, part.tally);
            all.violation = part.violation;
            if all.violation.is_some() {
                break;
            }
        }
    }
    let Found { states, histories, cut, violation, tally } = all;
    let violation = violation.map(|(problem, path)| {
        let mut told = Vec::new();
        let keep = |line: Told<'_>| match line {
            Told::Deviation(line) => told.push(line.to_owned()),
            Told::Step(_) => {}
        };
        let again = replay(model, settings, judge, &path, keep);
        debug_assert_eq!(again.as_ref(), Err(&problem), "a history is what its deviations make it");
        Violation { problem, path, told }
    });
    Explored { states, histories, cut, violation, tally }
}

/// A line about a history.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Told<'a> {
    /// What a node was given.
    Step(&'a str),
    /// What went wrong.
    Deviation(&'a str),
}

/// Follows the one history that leaves the regular one here, telling of every step.
///
/// # Errors
///
/// What the judge says does not hold.
pub fn replay<M: Explorable, J: Judge<M>>(
    model: &Model<'_, M>,
    settings: &Settings,
    judge: J,
    path: &[Deviation],
    mut tell: impl FnMut(Told<'_>),
) -> Result<(), String> {
    let fixed = Fixed::new(model, settings);
    let mut desk = Desk::new();
    let mut world = World::new(&fixed, judge);
    world.begin(&fixed, &mut desk)?;
    let mut ahead = path.iter().peekable();
    loop {
        while let Some(deviation) = ahead.next_if(|next| next.step <= world.steps) {
            let letter = deviation.what.message().and_then(|number| {
                let letter = world.queue.iter().find(|letter| letter.number == number)?;
                let to = model.nodes[letter.to].0.id;
                Some(format!(" ({} -> {to}: {:?})", letter.from, letter.message))
            });
            tell(Told::Deviation(&format!("{deviation}{}", letter.unwrap_or_default())));
            world.deviate(&fixed, deviation.at, deviation.what);
        }
        let Some((at, next)) = world.peek(&fixed) else { break };
        let peer = world.places[next.node()].peer;
        let line = match (next, world.queue.last()) {
            (Next::Delivery(_), Some(letter)) => {
                format!("{at} {} -> {peer}: {:?}", letter.from, letter.message)
            }
            (Next::Script(index), _) => {
                let number = fixed.script[index][world.places[index].script];
                let what = &model.script[number].2;
                match what {
                    Scripted::Feed(feed) => format!("{at} {peer}: {feed:?}"),
                    Scripted::Command(command) => format!("{at} {peer}: {command:?}"),
                    Scripted::Message(from, message) => {
                        format!("{at} {from} -> {peer}: {message:?}")
                    }
                    Scripted::Leave => format!("{at} {peer}: leave"),
                    Scripted::Crash => format!("{at} {peer}: crash"),
                    Scripted::Restart(after) => {
                        format!("{at} {peer}: crash, and restart in {after}")
                    }
                    Scripted::Pause(length) => format!("{at} {peer}: pause for {length}"),
                }
            }
            (Next::Restart(_), _) => format!("{at} {peer}: restart"),
            _ => format!("{at} {peer}: timeout"),
        };
        tell(Told::Step(&line));
        world.step(&fixed, &mut desk, (at, next))?;
        if world.judge.enough() {
            break;
        }
    }
    world.end(false)
}

/// Marks the end of a life in what was given.
const CRASHED: u64 = 0x6372_6173_6865_6400;
