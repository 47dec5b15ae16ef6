//! Elections of the most central, decided by a map of who hears whom.
//!
//! Messages go to whoever is on the local link, by multicast with a hop limit of one, or to each of the neighbours that a
//! routing daemon names. Nothing else has to be reached: across several hops of radio without IP routing the
//! membership may know neighbours only, and the map knows all. It holds identities; their names are asked for hop by hop:
//!
//! ```text
//! map has a node without a name --> Who, once in ASK      to those in range, who see the same map and ask on
//! Who                           --> Names, as far as known; the rest as soon as they are
//! Names                         --> kept as long as the map has them
//! ```

use bellwether_proto::{
    Input, Machine as _, Seed,
    election::central::{self as machine, Feed, Message, Rank},
    machine::{Effect, InputOf, Outbox, OutboxOf},
    wire::{DecodeError, Reader, Sink, Wire},
};

use super::{
    beside::{Beside, Channel, Listed, Road},
    *,
};
use crate::{
    config::check_name,
    neighbours::Address,
    seal::Sealer,
    status::{CentralStatus, MapNode, MapStatus},
};

/// One of them.
#[derive(Debug)]
pub(super) struct Central {
    me: Peer,
    machine: machine::Central,
    out: OutboxOf<machine::Central>,
    /// Whether hooks forbid it to lead.
    observes: bool,
    sent: Sent,
    /// Until when it does not lead, having been stopped: others may have got over it.
    shy: Time,
    /// Of whoever is on the map, or was told to us.
    names: BTreeMap<NodeId, String>,
    /// Which map has been looked through for names.
    named: Option<u64>,
    /// Which of those that are missing others have asked us for.
    wanted: BTreeSet<NodeId>,
    /// To whom everything is said where a routing daemon says who is in range.
    audience: BTreeSet<NodeId>,
    /// When to ask for those that are missing.
    ask: Time,
    /// Why the routing daemon's table could not be read.
    problem: Option<String>,
}

/// Between those in range.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Machine(Message),
    /// What are these called?
    Who(Vec<NodeId>),
    Names(Vec<(NodeId, String)>),
}

impl Central {
    pub(super) fn new(me: Peer, config: machine::Config, seed: Seed) -> Self {
        Self {
            me,
            machine: machine::Central::new(me, config, seed),
            out: Outbox::new(),
            observes: false,
            sent: Sent::default(),
            shy: Time::ZERO,
            names: BTreeMap::new(),
            named: None,
            wanted: BTreeSet::new(),
            audience: BTreeSet::new(),
            ask: Time::NEVER,
            problem: None,
        }
    }

    /// Whether neighbours are found by beacons on the local link.
    fn is_local(&self) -> bool {
        matches!(self.machine.config().detection(), machine::Detection::Beacons { .. })
    }

    fn input(&mut self, input: InputOf<'_, machine::Central>, road: &mut Road<'_>) {
        let result = self.machine.handle(road.now, input, &mut self.out);
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Send { message, .. }
                | Effect::Broadcast(message)
                | Effect::Multicast(message) => self.send_parts(message, road),
                Effect::Persist(never) => match never {},
                Effect::Emit(never) => match never {},
            }
        }
        if let Err(rejected) = result {
            road.refuse(rejected.reason());
        }
        self.look_for_names(road.now);
    }

    fn send(&mut self, said: &Said, road: &mut Road<'_>) {
        let receivers = if self.is_local() { 1 } else { self.audience.len() };
        self.sent.count(receivers, !matches!(said, Said::Machine(Message::Beacon)));
        if self.is_local() {
            road.send_group(said);
        } else {
            self.audience.iter().for_each(|&id| road.send(id, said));
        }
    }

    /// A sealed datagram holds a little less than the machine reckons with.
    fn send_parts(&mut self, message: Message, road: &mut Road<'_>) {
        let whole = Said::Machine(message);
        if whole.encoded_len() <= ROOM {
            return self.send(&whole, road);
        }
        let Said::Machine(message) = whole else { return };
        match halves(&message) {
            Some(halves) => halves.into_iter().for_each(|half| self.send_parts(half, road)),
            // One node's neighbours: refused and counted where it is sent, if it is too much for a datagram.
            None => self.send(&Said::Machine(message), road),
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

    fn on_said(&mut self, from: Peer, said: Said, road: &mut Road<'_>) {
        match said {
            Said::Machine(message) => {
                self.input(Input::Message { from, via: from.id, message: &message }, road);
            }
            Said::Who(ids) => {
                let (known, unknown): (Vec<NodeId>, Vec<NodeId>) =
                    ids.into_iter().partition(|id| self.names.contains_key(id));
                let unknown = unknown.into_iter().filter(|&id| self.is_on_map(id));
                let unknown: Vec<NodeId> = unknown.collect();
                self.wanted.extend(unknown);
                self.tell_names(&known, road);
            }
            Said::Names(names) => {
                let mut news = Vec::new();
                for (id, name) in names {
                    let new = id != self.me.id && !self.names.contains_key(&id);
                    if new && self.is_on_map(id) && check_name(&name).is_ok() {
                        self.names.insert(id, name);
                        news.extend(self.wanted.take(&id));
                    }
                }
                self.tell_names(&news, road);
                if self.nameless().next().is_none() {
                    self.ask = Time::NEVER;
                }
            }
        }
    }

    fn is_on_map(&self, id: NodeId) -> bool {
        self.machine.map().is_some_and(|map| map.get(id).is_some())
    }

    fn tell_names(&mut self, ids: &[NodeId], road: &mut Road<'_>) {
        let known = ids.iter().filter_map(|id| Some((*id, self.names.get(id)?.clone())));
        let known: Vec<(NodeId, String)> = known.collect();
        known.chunks(NAMES).for_each(|some| self.send(&Said::Names(some.to_vec()), road));
    }

    fn shy_until(&self) -> Time {
        if self.shy == Time::ZERO { Time::NEVER } else { self.shy }
    }

    /// For everybody to see.
    fn status(&self, named: impl Fn(NodeId) -> String) -> Option<CentralStatus> {
        let answer = self.machine.answer()?;
        Some(CentralStatus {
            criterion: self.machine.config().criterion().name(),
            members: answer.members,
            unknown: answer.unknown,
            score: answer.score,
            map: format!("{:016x}", answer.map),
            neighbours: self.machine.neighbours().map(named).collect(),
            problem: self.problem.clone(),
        })
    }
}

impl Beside for Central {
    fn channel(&self) -> Channel {
        Channel::Central
    }

    fn start(&mut self, road: &mut Road<'_>) {
        self.input(Input::Start, road);
    }

    fn deadline(&self) -> Option<Time> {
        let machine = self.machine.deadline().map_or(Time::NEVER, |(at, _)| at);
        Some(machine.min(self.ask).min(self.shy_until())).filter(|&at| at != Time::NEVER)
    }

    fn due(&mut self, road: &mut Road<'_>) {
        if self.machine.deadline().is_some_and(|(at, _)| at <= road.now) {
            self.input(Input::Timeout, road);
        }
        if self.shy <= road.now {
            self.shy = Time::ZERO;
        }
        if self.ask <= road.now {
            self.ask = road.now + ASK;
            let nameless = self.nameless().take(MOST_ASKED).collect();
            self.send(&Said::Who(nameless), road);
        }
    }

    fn hear(&mut self, from: Peer, message: &[u8], road: &mut Road<'_>) {
        if let Some(said) = road.read(message) {
            self.on_said(from, said, road);
        }
    }

    fn leadership(&self, now: Time) -> Leadership {
        let answer = self.machine.leadership();
        match answer.leader {
            Some(leader) if leader == self.me.id && (self.observes || now < self.shy) => {
                Leadership { leader: None, settled: false, ..answer }
            }
            _ => answer,
        }
    }

    /// All seem silent to one that was stopped, and whoever is alone leads itself. So it waits for them to be heard.
    fn stalled(&mut self, road: &mut Road<'_>) {
        self.shy = match self.machine.config().detection() {
            machine::Detection::Beacons { timeout, .. } => road.now + timeout,
            // The routing daemon's table is read again by then.
            machine::Detection::Given => road.now + UNHEARD,
        };
    }

    fn observe(&mut self, observes: bool, _road: &mut Road<'_>) {
        self.observes = observes;
    }

    fn resign(&mut self, _road: &mut Road<'_>) -> Result<(), Refused> {
        Err(Refused::Impossible(PLACE.to_owned()))
    }

    fn transfer(&mut self, _to: NodeId, _road: &mut Road<'_>) -> Result<(), Refused> {
        Err(Refused::Impossible(PLACE.to_owned()))
    }

    fn leave(&mut self, road: &mut Road<'_>) {
        self.input(Input::Leave, road);
        self.ask = Time::NEVER;
    }

    fn on_listed(&mut self, listed: &[Listed], road: &mut Road<'_>) {
        for Listed { peer, name, .. } in listed {
            // Where there is none yet the identity stands in for it.
            if *name != format!("{:016x}", peer.id.get()) {
                self.names.insert(peer.id, name.clone());
            }
        }
        self.named = None;
        self.look_for_names(road.now);
    }

    fn on_neighbours(
        &mut self,
        ids: Option<&BTreeSet<NodeId>>,
        problem: Option<String>,
        road: &mut Road<'_>,
    ) {
        self.problem = problem;
        let Some(ids) = ids else { return };
        let before: BTreeSet<NodeId> = self.machine.neighbours().collect();
        // Who is lost to us may still hear that it is.
        self.audience = before.union(ids).copied().collect();
        // First those that are there: whoever has come tells us of the rest.
        for &id in ids.difference(&before) {
            self.input(Input::Feed(Feed::Up(id)), road);
        }
        for &id in before.difference(ids) {
            self.input(Input::Feed(Feed::Down(id)), road);
        }
        self.audience.clone_from(ids);
    }

    fn sent(&self) -> Sent {
        self.sent
    }

    fn words(&self, now: Time) -> Option<String> {
        let why = match self.observes {
            true => "its hooks have yet to undo what leading had set up",
            false if now < self.shy => "it was stopped, and waits to hear others",
            false => return None,
        };
        Some(format!("this node has the best place on the map, but {why}"))
    }

    fn name_of(&self, id: NodeId) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    fn as_central(&self) -> Option<&Self> {
        Some(self)
    }
}

impl Core {
    pub(super) fn central_status(&self, group: Group) -> Option<CentralStatus> {
        let central = self.beside[self.aside(group)?].machine.as_central()?;
        central.status(|id| self.named(id).name)
    }

    /// The whole map of an election.
    pub(crate) fn map_status(&self, election: &str) -> Result<MapStatus, Refused> {
        let seats = &self.settings.elections;
        let Some(at) = seats.iter().position(|seat| seat.name == election) else {
            let all: Vec<&str> = seats.iter().map(|seat| seat.name.as_str()).collect();
            return Err(Refused::NoSuchElection(election.to_owned(), all.join(", ")));
        };
        let group = self.tallies[at].group;
        let central = self.aside(group).and_then(|at| self.beside[at].machine.as_central());
        let (Some(machine), Some(status)) = (central, self.central_status(group)) else {
            let reason = format!("{election} is not a central election, and has no map");
            return Err(Refused::Impossible(reason));
        };
        let machine = &machine.machine;
        let table = machine.table();
        let links = links(machine, &table);
        let mut degrees = vec![0; table.len()];
        for &(a, b) in &links {
            degrees[a as usize] += 1;
            degrees[b as usize] += 1;
        }
        let node = |(at, rank): (usize, &Rank)| {
            let LeaderStatus { id, name } = self.named(rank.id);
            // Links lead both ways, so everybody reaches everybody and has a score.
            let (score, degree) = (rank.score.unwrap_or(u64::MAX), degrees[at]);
            MapNode { id, name, rank: at as u32 + 1, score, degree, hops: rank.hops }
        };
        Ok(MapStatus {
            election: election.to_owned(),
            leader: self.tallies[at].answer.leader.map(|id| self.named(id).id),
            own: self.named(self.me.id).id,
            central: status,
            nodes: table.iter().enumerate().map(node).collect(),
            links,
        })
    }

    /// What a routing daemon says, or why it cannot be asked.
    pub(crate) fn set_neighbours(
        &mut self,
        now: Time,
        election: &str,
        neighbours: Option<Vec<Neighbour>>,
        problem: Option<String>,
        inbox: &Inbox,
    ) {
        let group = Group::named(election);
        if let Some(neighbours) = neighbours {
            self.in_range.insert(group, neighbours);
        }
        self.tell_neighbours(now, group, Some(problem));
        self.look(now, inbox);
    }

    /// The same again, as others may have come to have these addresses.
    pub(super) fn tell_in_range(&mut self, now: Time) {
        let groups: Vec<Group> = self.in_range.keys().copied().collect();
        groups.into_iter().for_each(|group| self.tell_neighbours(now, group, None));
    }

    fn tell_neighbours(&mut self, now: Time, group: Group, problem: Option<Option<String>>) {
        let Some(at) = self.aside(group) else { return };
        let ids = self.in_range.get(&group).map(|neighbours| self.found(neighbours));
        let known = self.beside[at].machine.as_central().and_then(|one| one.problem.clone());
        let problem = problem.unwrap_or(known);
        self.with_aside(now, at, |machine, road| {
            machine.on_neighbours(ids.as_ref(), problem, road);
        });
    }

    /// The members that have one of these addresses, or the hardware address in their tag [`MAC`].
    fn found(&self, neighbours: &[Neighbour]) -> BTreeSet<NodeId> {
        let membership = self.stack.membership();
        let wanted: BTreeSet<Address> =
            neighbours.iter().flat_map(|one| one.addresses.iter().copied()).collect();
        let has = |id: &NodeId| {
            let Some(known) = membership.introduction_of(*id) else { return false };
            let ips =
                known.addresses.iter().map(|address| Address::Ip(address.ip().to_canonical()));
            let tags = About::from_details(&known.details).map(|about| about.tags);
            let macs = tags.as_ref().and_then(|tags| tags.get(MAC)).map_or("", String::as_str);
            let macs = macs.split([' ', ',']).filter_map(Address::parse);
            ips.chain(macs).any(|address| wanted.contains(&address))
        };
        membership.members().map(|member| member.id).filter(has).collect()
    }
}

/// Who hears whom, by places in the table.
fn links(machine: &machine::Central, table: &[Rank]) -> Vec<(u32, u32)> {
    let Some(map) = machine.map() else { return Vec::new() };
    let places: BTreeMap<NodeId, u32> = (0..).zip(table).map(|(at, rank)| (rank.id, at)).collect();
    let mut links = Vec::new();
    for (&id, &from) in &places {
        let Some(view) = map.get(id) else { continue };
        for &other in view.neighbours() {
            let mutual = map.get(other).is_none_or(|view| view.contains(id));
            if let Some(&to) = places.get(&other).filter(|&&to| to != from && mutual) {
                links.push((from.min(to), from.max(to)));
            }
        }
    }
    links.sort_unstable();
    links.dedup();
    links
}

/// Two that say the same together, if it can be said so.
fn halves(message: &Message) -> Option<[Message; 2]> {
    match message {
        Message::Entries(entries) if entries.len() > 1 => {
            let (front, back) = entries.split_at(entries.len() / 2);
            Some([Message::Entries(front.into()), Message::Entries(back.into())])
        }
        Message::Digest { first, last, marks } if marks.len() > 1 => {
            let (front, back) = marks.split_at(marks.len() / 2);
            let middle = front.last()?.id;
            let next = NodeId::new(middle.get().checked_add(1)?);
            Some([
                Message::Digest { first: *first, last: middle, marks: front.into() },
                Message::Digest { first: next, last: *last, marks: back.into() },
            ])
        }
        _ => None,
    }
}

impl Wire for Said {
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
            0 => Message::decode(reader).map(Self::Machine),
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
                    let name = reader.bytes("name", length)?;
                    // What is no name is thrown away by whoever wanted it.
                    names.push((id, String::from_utf8_lossy(name).into_owned()));
                }
                Ok(Self::Names(names))
            }
        }
    }
}

/// Behind the channel and the number of the election.
const ROOM: usize = Sealer::ROOM - 5;
/// For how long one that was stopped does not lead where a routing daemon says who is in range.
const UNHEARD: Duration = Duration::from_secs(3);
/// Before asking for a name, as gossip may bring it; and between two times of asking.
const ASK_SOON: Duration = Duration::from_millis(500);
const ASK: Duration = Duration::from_secs(2);
/// Names asked for and told at once: they fit into a datagram.
const MOST_ASKED: usize = 64;
const NAMES: usize = 14;
/// The tag by which a member tells its hardware addresses.
pub(crate) const MAC: &str = "mac";
const PLACE: &str =
    "it is central: whoever has the best place on the map leads, and this node has it";

#[cfg(test)]
mod tests;
