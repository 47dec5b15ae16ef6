//! Central elections: decided by a map of who hears whom.
//!
//! Messages go to whoever is on the local link, in one hop, or to each of the neighbours that the host names. Nothing
//! else has to be reached: across several hops of radio without IP routing the membership may know neighbours only, and
//! the map knows all. It holds identities; their names are asked for hop by hop:
//!
//! ```text
//! map has a node without a name --> Who, once in ASK      to those in range, who see the same map and ask on
//! Who                           --> Names, as far as known; the rest as soon as they are
//! Names                         --> kept as long as the map has them
//! ```

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

use super::{
    Listed, Port,
    packet::{self, PREFIX},
    profile::check_name,
};
use crate::{
    election::central::{self as machine, Feed},
    id::{NodeId, Peer},
    leadership::{Election as _, Leadership},
    machine::{Effect, Input, InputOf, Machine as _, Outbox, OutboxOf, Rejected},
    rng::Seed,
    time::{Duration, Time},
    wire::{self, DecodeError, Reader, Sink, Wire},
};

/// One of them.
#[derive(Clone, Debug)]
pub struct Names {
    me: Peer,
    machine: machine::Central,
    out: OutboxOf<machine::Central>,
    /// Whether hooks forbid it to lead.
    observes: bool,
    /// Until when it does not lead, having been stopped: others may have got over it.
    barred_until: Option<Time>,
    /// Of whoever is on the map, or was told to us.
    names: BTreeMap<NodeId, String>,
    /// Which map has been looked through for names.
    named: Option<u64>,
    /// Which of those that are missing others have asked us for.
    wanted: BTreeSet<NodeId>,
    /// To whom everything is said where the host says who is in range.
    audience: BTreeSet<NodeId>,
    /// When to ask for those that are missing.
    ask: Time,
}

/// Between those in range.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Message {
    /// What the machine says to others on the map.
    Machine(machine::Message),
    /// What are these called?
    Who(Vec<NodeId>),
    /// That is what these are called.
    Names(Vec<(NodeId, String)>),
}

impl Names {
    pub(super) fn new(me: Peer, config: machine::Config, seed: Seed) -> Self {
        Self {
            me,
            machine: machine::Central::new(me, config, seed),
            out: Outbox::new(),
            observes: false,
            barred_until: None,
            names: BTreeMap::new(),
            named: None,
            wanted: BTreeSet::new(),
            audience: BTreeSet::new(),
            ask: Time::NEVER,
        }
    }

    /// The map's machine.
    pub const fn machine(&self) -> &machine::Central {
        &self.machine
    }

    /// What somebody is called whom the membership may not know.
    pub fn name_of(&self, id: NodeId) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    /// Whether neighbours are found by beacons on the local link.
    fn is_local(&self) -> bool {
        matches!(self.machine.config().detection(), machine::Detection::Beacons { .. })
    }

    fn input(
        &mut self,
        input: InputOf<'_, machine::Central>,
        port: &mut Port<'_>,
    ) -> Result<(), Rejected> {
        let result = self.machine.handle(port.now, input, &mut self.out);
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Send { message, .. }
                | Effect::Broadcast(message)
                | Effect::Multicast(message) => self.send_parts(message, port),
                Effect::Persist(never) => match never {},
                Effect::Emit(never) => match never {},
            }
        }
        self.look_for_names(port.now);
        result
    }

    /// The same, of an input that cannot be refused.
    fn tell(&mut self, input: InputOf<'_, machine::Central>, port: &mut Port<'_>) {
        let told = self.input(input, port);
        debug_assert!(matches!(told, Ok(()) | Err(Rejected::NotRunning)), "{told:?}");
    }

    fn send(&self, said: Message, port: &mut Port<'_>) {
        let elects = !matches!(said, Message::Machine(machine::Message::Beacon));
        let packet = packet::Message::Central(port.group, said);
        if self.is_local() {
            port.broadcast(packet, elects);
        } else {
            self.audience.iter().for_each(|&id| port.send(id, packet.clone(), elects));
        }
    }

    /// A sealed datagram holds a little less than the machine reckons with.
    fn send_parts(&self, message: machine::Message, port: &mut Port<'_>) {
        let whole = Message::Machine(message);
        if whole.encoded_len() <= ROOM {
            return self.send(whole, port);
        }
        let Message::Machine(message) = whole else { return };
        match halves(&message) {
            Some(halves) => halves.into_iter().for_each(|half| self.send_parts(half, port)),
            // One node's neighbours: refused and counted where it is sent, if it is too much for a datagram.
            None => self.send(Message::Machine(message), port),
        }
    }

    /// After the map has changed: whose names are missing, and whose are of no more use.
    fn look_for_names(&mut self, now: Time) {
        let Some(map) = self.machine.map().filter(|map| self.named != Some(map.topology())) else {
            return;
        };
        self.named = Some(map.topology());
        let me = self.me.id;
        let on_map = |id: NodeId| map.get(id).is_some();
        self.names.retain(|&id, _| id == me || on_map(id));
        self.wanted.retain(|&id| on_map(id));
        let nameless = self.nameless().next().is_some();
        self.ask = if nameless { self.ask.min(now + ASK_SOON) } else { Time::NEVER };
    }

    fn nameless(&self) -> impl Iterator<Item = NodeId> {
        let entries = self.machine.map().map_or(&[][..], |map| map.entries());
        let known = |id: &NodeId| self.names.contains_key(id);
        entries.iter().map(|entry| entry.id).filter(move |id| !known(id))
    }

    pub(super) fn hear(
        &mut self,
        from: Peer,
        message: &Message,
        port: &mut Port<'_>,
    ) -> Result<(), Rejected> {
        match message {
            Message::Machine(message) => {
                return self.input(Input::Message { from, via: from.id, message }, port);
            }
            Message::Who(ids) => {
                let (known, unknown): (Vec<NodeId>, Vec<NodeId>) =
                    ids.iter().copied().partition(|id| self.names.contains_key(id));
                let unknown = unknown.into_iter().filter(|&id| self.is_on_map(id));
                let unknown: Vec<NodeId> = unknown.collect();
                self.wanted.extend(unknown);
                self.tell_names(&known, port);
            }
            Message::Names(names) => {
                let mut news = Vec::new();
                for (id, name) in names {
                    let new = *id != self.me.id && !self.names.contains_key(id);
                    if new && self.is_on_map(*id) && check_name(name).is_ok() {
                        self.names.insert(*id, name.clone());
                        news.extend(self.wanted.take(id));
                    }
                }
                self.tell_names(&news, port);
                if self.nameless().next().is_none() {
                    self.ask = Time::NEVER;
                }
            }
        }
        Ok(())
    }

    fn is_on_map(&self, id: NodeId) -> bool {
        self.machine.map().is_some_and(|map| map.get(id).is_some())
    }

    fn tell_names(&self, ids: &[NodeId], port: &mut Port<'_>) {
        let known = ids.iter().filter_map(|id| Some((*id, self.names.get(id)?.clone())));
        let known: Vec<(NodeId, String)> = known.collect();
        known.chunks(NAMES).for_each(|some| self.send(Message::Names(some.to_vec()), port));
    }

    pub(super) fn start(&mut self, port: &mut Port<'_>) {
        self.tell(Input::Start, port);
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let machine = self.machine.deadline().map_or(Time::NEVER, |(at, _)| at);
        let barred = self.barred_until.unwrap_or(Time::NEVER);
        Some(machine.min(self.ask).min(barred)).filter(|&at| at != Time::NEVER)
    }

    pub(super) fn due(&mut self, port: &mut Port<'_>) {
        let now = port.now;
        if self.machine.deadline().is_some_and(|(at, _)| at <= now) {
            self.tell(Input::Timeout, port);
        }
        self.barred_until = self.barred_until.filter(|&until| now < until);
        if self.ask <= now {
            self.ask = now + ASK;
            let nameless = self.nameless().take(MOST_ASKED).collect();
            self.send(Message::Who(nameless), port);
        }
    }

    pub(super) fn leadership(&self, now: Time) -> Leadership {
        let answer = self.machine.leadership();
        let barred = self.observes || self.barred_until.is_some_and(|until| now < until);
        match answer.leader {
            Some(leader) if leader == self.me.id && barred => {
                Leadership { leader: None, settled: false, ..answer }
            }
            _ => answer,
        }
    }

    /// All seem silent to one that was stopped, and whoever is alone leads itself. So it waits for them to be heard.
    pub(super) fn stalled(&mut self, port: &Port<'_>) {
        let wait = match self.machine.config().detection() {
            machine::Detection::Beacons { timeout, .. } => timeout,
            // The routing daemon's table is read again by then.
            machine::Detection::Given => UNHEARD,
        };
        self.barred_until = Some(port.now + wait);
    }

    pub(super) fn observe(&mut self, observes: bool) {
        self.observes = observes;
    }

    pub(super) fn leave(&mut self, port: &mut Port<'_>) {
        self.tell(Input::Leave, port);
        (self.ask, self.barred_until) = (Time::NEVER, None);
    }

    pub(super) fn on_listed(&mut self, listed: &[Listed], port: &Port<'_>) {
        for Listed { peer, name, .. } in listed {
            // Where there is none yet the identity stands in for it.
            if !name.is_empty() {
                self.names.insert(peer.id, name.clone());
            }
        }
        self.named = None;
        self.look_for_names(port.now);
    }

    /// Just these are in range, as the host says.
    pub(super) fn in_range(&mut self, ids: &BTreeSet<NodeId>, port: &mut Port<'_>) {
        let before: BTreeSet<NodeId> = self.machine.neighbours().collect();
        // Who is lost to us may still hear that it is.
        self.audience = before.union(ids).copied().collect();
        // First those that are there: whoever has come tells us of the rest.
        for &id in ids.difference(&before) {
            self.tell(Input::Feed(Feed::Up(id)), port);
        }
        for &id in before.difference(ids) {
            self.tell(Input::Feed(Feed::Down(id)), port);
        }
        self.audience.clone_from(ids);
    }

    /// Why this node does not lead though it has the best place, in words.
    pub(super) fn words(&self, now: Time) -> Option<String> {
        let why = match self.observes {
            true => "its hooks have yet to undo what leading had set up",
            false if self.barred_until.is_some_and(|until| now < until) => {
                "it was stopped, and waits to hear others"
            }
            false => return None,
        };
        Some(format!("this node has the best place on the map, but {why}"))
    }
}

/// Two that say the same together, if it can be said so.
fn halves(message: &machine::Message) -> Option<[machine::Message; 2]> {
    match message {
        machine::Message::Entries(entries) if entries.len() > 1 => {
            let (front, back) = entries.split_at(entries.len() / 2);
            Some([front, back].map(|some| machine::Message::Entries(some.into())))
        }
        machine::Message::Digest { first, last, marks } if marks.len() > 1 => {
            let (front, back) = marks.split_at(marks.len() / 2);
            let middle = front.last()?.id;
            let next = NodeId::new(middle.get().checked_add(1)?);
            Some([
                machine::Message::Digest { first: *first, last: middle, marks: front.into() },
                machine::Message::Digest { first: next, last: *last, marks: back.into() },
            ])
        }
        _ => None,
    }
}

impl Wire for Message {
    fn encode(&self, sink: &mut impl Sink) {
        match self {
            Self::Machine(message) => {
                sink.u8(0);
                message.encode(sink);
            }
            Self::Who(ids) => {
                sink.u8(1);
                sink.varint(ids.len() as u64);
                ids.iter().for_each(|id| sink.u64(id.get()));
            }
            Self::Names(names) => {
                sink.u8(2);
                sink.varint(names.len() as u64);
                for (id, name) in names {
                    sink.u64(id.get());
                    sink.varint(name.len() as u64);
                    sink.bytes(name.as_bytes());
                }
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.kind("kind", 3)? {
            0 => machine::Message::decode(reader).map(Self::Machine),
            1 => {
                let count = reader.count("ids", 8)?;
                let ids = (0..count).map(|_| reader.u64("id").map(NodeId::new));
                ids.collect::<Result<_, _>>().map(Self::Who)
            }
            _ => {
                let count = reader.count("names", 9)?;
                let mut names = Vec::with_capacity(count);
                for _ in 0..count {
                    let id = NodeId::new(reader.u64("id")?);
                    let length = reader.count("name", 1)?;
                    let at = reader.at();
                    let name = core::str::from_utf8(reader.bytes("name", length)?);
                    let name = name.map_err(|_| DecodeError::NotText { field: "name", at })?;
                    names.push((id, name.into()));
                }
                Ok(Self::Names(names))
            }
        }
    }
}

/// Behind the kind and the number of the election.
const ROOM: usize = wire::SEALED_ROOM - PREFIX;
/// For how long one that was stopped does not lead where the host says who is in range.
const UNHEARD: Duration = Duration::from_secs(3);
/// Before asking for a name, as gossip may bring it; and between two times of asking.
const ASK_SOON: Duration = Duration::from_millis(500);
const ASK: Duration = Duration::from_secs(2);
/// Names asked for and told at once: they fit into a datagram.
const MOST_ASKED: usize = 64;
const NAMES: usize = 14;
