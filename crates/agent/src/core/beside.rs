//! Elections held beside the stack: each has a machine of its own, and they share one road.
//!
//! A datagram of theirs is a channel, which says whose machine speaks, the number of the election, and the machine's
//! message. The layers of the stack are the channels below [`Channel::FIRST`]. A mode is a file here with a type
//! that is [`Beside`], a channel, and a place in the store.

use std::fmt;

use bellwether_proto::{
    stack::{Group, Profile},
    wire::{Reader, Sink as _, Wire},
};

use super::*;
use crate::status::ScoreStatus;

/// Whose machine speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Channel {
    Announced = 16,
    Leased = 17,
    Learned = 18,
    Central = 19,
}

impl Channel {
    pub(super) const FIRST: u8 = 16;
}

/// An election beside the stack, as the node treats all of them. What a mode has no use for does nothing.
pub(super) trait Beside: fmt::Debug + Send {
    fn channel(&self) -> Channel;

    fn start(&mut self, road: &mut Road<'_>);

    /// When it wants to be woken.
    fn deadline(&self) -> Option<Time>;

    fn due(&mut self, road: &mut Road<'_>);

    /// What another's machine said: to us, or to everybody.
    fn hear(&mut self, from: Peer, message: &[u8], road: &mut Road<'_>);

    /// The answer at `now`, which may be later than the last input.
    fn leadership(&self, now: Time) -> Leadership;

    /// The process was stopped for longer than anybody may lead unseen.
    fn stalled(&mut self, road: &mut Road<'_>);

    /// Whether hooks, or its role, forbid it to lead.
    fn observe(&mut self, observes: bool, road: &mut Road<'_>);

    /// To somebody else, whoever it is. We lead.
    fn resign(&mut self, road: &mut Road<'_>) -> Result<(), Refused>;

    /// To this member, which is alive. We lead.
    fn transfer(&mut self, to: NodeId, road: &mut Road<'_>) -> Result<(), Refused>;

    fn leave(&mut self, road: &mut Road<'_>);

    /// What happened to a member below.
    fn on_membership(&mut self, _event: MembershipEvent, _road: &mut Road<'_>) {}

    /// Why nobody leads, if the answer does not say.
    fn words(&self, _now: Time) -> Option<String> {
        None
    }

    /// Whom others believe to lead, as they last said.
    fn beliefs(&self) -> BTreeMap<NodeId, (NodeId, Epoch)> {
        BTreeMap::new()
    }

    /// Everybody alive has changed, or what they say of themselves.
    fn on_listed(&mut self, _listed: &[Listed], _road: &mut Road<'_>) {}

    /// The application says how badly a member does, in hundredths.
    fn report(&mut self, _of: NodeId, _percent: u8, _road: &mut Road<'_>) -> Result<(), Refused> {
        let reason = "how members do is learnt only where mode = \"learned\"".to_owned();
        Err(Refused::Impossible(reason))
    }

    /// What was learnt of those who may lead, the best first.
    fn scores(&self) -> Vec<ScoreStatus> {
        vec![]
    }

    /// How much it has said.
    fn sent(&self) -> Sent {
        Sent::default()
    }

    /// A routing daemon says that just these are in range, or why its table cannot be read.
    fn on_neighbours(
        &mut self,
        _ids: Option<&BTreeSet<NodeId>>,
        _problem: Option<String>,
        _road: &mut Road<'_>,
    ) {
    }

    /// What somebody is called whom the membership may not know.
    fn name_of(&self, _id: NodeId) -> Option<&str> {
        None
    }

    /// Of an election of the most central.
    fn as_central(&self) -> Option<&Central> {
        None
    }
}

/// A live member below.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Listed {
    pub(super) peer: Peer,
    pub(super) name: String,
    /// The elections it takes part in, and what it is there.
    pub(super) standings: Vec<(Group, Standing)>,
}

impl Listed {
    /// What it is in an election, if it takes part.
    pub(super) fn standing(&self, group: Group) -> Option<Standing> {
        self.standings.iter().find(|(theirs, _)| *theirs == group).map(|&(_, standing)| standing)
    }
}

/// One of them, by its election's number.
#[derive(Debug)]
pub(super) struct Aside {
    pub(super) group: Group,
    pub(super) machine: Box<dyn Beside>,
}

/// What of the node a machine beside the stack reaches while it handles something.
pub(super) struct Road<'a> {
    pub(super) now: Time,
    pub(super) group: Group,
    pub(super) store: &'a mut Store,
    channel: Channel,
    outgoing: &'a mut Vec<Outgoing>,
    refused: &'a mut BTreeMap<&'static str, u64>,
    running: &'a mut bool,
}

impl Road<'_> {
    pub(super) fn send(&mut self, to: NodeId, message: &impl Wire) {
        self.outgoing.push(Outgoing::Message(to, packed(self.channel, self.group, message)));
    }

    /// To everybody on the segment.
    pub(super) fn send_group(&mut self, message: &impl Wire) {
        self.outgoing.push(Outgoing::Group(packed(self.channel, self.group, message)));
    }

    /// Reads a message, whole.
    pub(super) fn read<M: Wire>(&mut self, bytes: &[u8]) -> Option<M> {
        let message = unpacked(bytes);
        if message.is_none() {
            self.refuse("malformed");
        }
        message
    }

    pub(super) fn refuse(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }

    /// What came of keeping something.
    pub(super) fn kept(&mut self, kept: std::io::Result<()>) {
        if kept.is_err() {
            self.refuse("disk");
        }
    }

    /// Another node runs under our identity.
    pub(super) fn stop_node(&mut self) {
        *self.running = false;
    }
}

impl Core {
    pub(super) fn aside(&self, group: Group) -> Option<usize> {
        self.beside.iter().position(|one| one.group == group)
    }

    /// Lets one of them do something.
    pub(super) fn with_aside<T>(
        &mut self,
        now: Time,
        at: usize,
        act: impl FnOnce(&mut dyn Beside, &mut Road<'_>) -> T,
    ) -> T {
        let Self { beside, store, outgoing, refused, running, .. } = self;
        let Aside { group, machine } = &mut beside[at];
        let (group, channel) = (*group, machine.channel());
        act(&mut **machine, &mut Road { now, group, store, channel, outgoing, refused, running })
    }

    /// Lets all of them do something.
    pub(super) fn each_aside(
        &mut self,
        now: Time,
        mut act: impl FnMut(&mut dyn Beside, &mut Road<'_>),
    ) {
        (0..self.beside.len()).for_each(|at| self.with_aside(now, at, &mut act));
    }

    /// Lets those do what is due whose time it is.
    pub(super) fn asides_due(&mut self, now: Time) {
        self.each_aside(now, |machine, road| {
            if machine.deadline().is_some_and(|due| due <= now) {
                machine.due(road);
            }
        });
    }

    /// A datagram on one of their channels.
    pub(super) fn hear_aside(&mut self, now: Time, from: Peer, body: &[u8], inbox: &Inbox) {
        let mut reader = Reader::new(body);
        let (Ok(channel), Ok(group)) = (reader.u8("channel"), reader.u32("election")) else {
            return self.refuse("malformed");
        };
        let at = self.aside(Group::from_number(group));
        let Some(at) = at.filter(|&at| self.beside[at].machine.channel() as u8 == channel) else {
            return self.refuse("no-such-election");
        };
        let message = reader.rest();
        self.with_aside(now, at, |machine, road| machine.hear(from, message, road));
        self.look(now, inbox);
    }

    /// An authenticated message to everybody.
    pub(crate) fn on_group(&mut self, now: Time, from: Peer, body: &[u8], inbox: &Inbox) {
        self.hear_aside(now, from, body, inbox);
    }

    /// Hooks may forbid it to lead.
    pub(super) fn observe(&mut self, now: Time) {
        for at in 0..self.settings.elections.len() {
            let seat = &self.settings.elections[at];
            let observes = seat.stands().observer;
            if let Some(at) = self.aside(Group::named(&seat.name)) {
                self.with_aside(now, at, |machine, road| machine.observe(observes, road));
            }
        }
    }

    /// Tells them who is alive, after the membership has changed.
    pub(super) fn tell_listed(&mut self, now: Time) {
        if self.beside.is_empty() {
            return;
        }
        let membership = self.stack.membership();
        let lives = membership.members().filter_map(|member| {
            let (_, boot, _) = membership.record_of(member.id)?;
            Some(Peer::new(member.id, boot))
        });
        let standings = |id| {
            let known = membership.introduction_of(id)?;
            Some(Profile::from_details(&known.details).ok()?.standings)
        };
        let listed = lives.map(|peer| Listed {
            peer,
            name: self.named(peer.id).name,
            standings: standings(peer.id).unwrap_or_default(),
        });
        let mut listed: Vec<Listed> = listed.collect();
        let ours = self.settings.elections.iter();
        let ours = ours.map(|seat| (Group::named(&seat.name), seat.stands())).collect();
        let name = self.settings.about.name.clone();
        listed.push(Listed { peer: self.me, name, standings: ours });
        self.each_aside(now, |machine, road| machine.on_listed(&listed, road));
        self.tell_in_range(now);
    }
}

/// As long as a hello at least, or strangers could not ask who it is: see `Sealer::open`.
const LEAST: usize = 32;

fn packed(channel: Channel, group: Group, message: &impl Wire) -> Vec<u8> {
    let mut body = Vec::with_capacity(LEAST);
    body.u8(channel as u8);
    body.u32(group.number());
    message.encode(&mut body);
    body.resize(body.len().max(LEAST), 0);
    body
}

fn unpacked<M: Wire>(message: &[u8]) -> Option<M> {
    let mut reader = Reader::new(message);
    let message = M::decode(&mut reader).ok()?;
    reader.rest().iter().all(|&byte| byte == 0).then_some(message)
}

#[cfg(test)]
mod tests {
    use bellwether_proto::election::announce;

    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_and_nothing_else_is() {
        let group = Group::named("door");
        for message in [
            announce::Message::Bye { sequence: 1, epoch: 2 },
            announce::Message::Query { sequence: u64::MAX, nonce: u64::MAX, claim: None },
        ] {
            let mut body = packed(Channel::Announced, group, &message);
            assert!(body.len() >= LEAST);
            assert_eq!(body[0], Channel::Announced as u8);
            assert_eq!(unpacked(&body[5..]), Some(message));
            *body.last_mut().unwrap() ^= 1;
            assert_ne!(unpacked(&body[5..]), Some(message));
            assert_eq!(unpacked::<announce::Message>(&[]), None);
        }
    }
}
