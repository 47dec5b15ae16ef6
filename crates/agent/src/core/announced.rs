//! Elections held over multicast, beside those that stand on the membership.

use bellwether_proto::{
    Input, Machine as _,
    election::announce::{self, Announce},
    machine::{Effect, InputOf, Outbox, OutboxOf},
    stack::Group,
    wire::{Reader, Sink as _, Wire as _},
};

use super::*;

/// One of them.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) group: Group,
    pub(super) machine: Announce,
    out: OutboxOf<Announce>,
}

impl Announced {
    pub(super) fn new(group: Group, machine: Announce) -> Self {
        Self { group, machine, out: Outbox::new() }
    }
}

impl Core {
    pub(super) fn announced(&self, group: Group) -> Option<usize> {
        self.announced.iter().position(|one| one.group == group)
    }

    /// To all of them.
    pub(super) fn all_announced(
        &mut self,
        now: Time,
        input: impl Fn() -> InputOf<'static, Announce>,
    ) {
        (0..self.announced.len()).for_each(|at| self.announce(now, at, input()));
    }

    /// Lets those do what is due whose time it is.
    pub(super) fn announced_due(&mut self, now: Time) {
        for at in 0..self.announced.len() {
            if self.announced[at].machine.deadline().is_some_and(|(due, _)| due <= now) {
                self.announce(now, at, Input::Timeout);
            }
        }
    }

    pub(super) fn announce(&mut self, now: Time, at: usize, input: InputOf<'_, Announce>) {
        let Announced { group, machine, out } = &mut self.announced[at];
        let (group, result) = (*group, machine.handle(now, input, out));
        while let Some(effect) = self.announced[at].out.pop() {
            match effect {
                Effect::Send { message, .. }
                | Effect::Broadcast(message)
                | Effect::Multicast(message) => {
                    self.outgoing.push(Outgoing::Group(packed(group, &message)))
                }
                Effect::Persist(durable) => {
                    if self.store.keep_announced(group, durable).is_err() {
                        self.refuse("disk");
                    }
                }
                // The membership finds out too, and says so.
                Effect::Emit(announce::Event::DuplicateIdentity { .. }) => self.running = false,
            }
        }
        if let Err(rejected) = result {
            self.refuse(rejected.reason());
        }
    }

    /// An authenticated message to everybody.
    pub(crate) fn on_group(&mut self, now: Time, from: Peer, body: &[u8], inbox: &Inbox) {
        let Some((group, message)) = unpacked(body) else { return self.refuse("malformed") };
        let Some(at) = self.announced(group) else { return self.refuse("no-such-election") };
        self.announce(now, at, Input::Message { from, via: from.id, message: &message });
        self.look(now, inbox);
    }

    /// Hooks may forbid it to lead.
    pub(super) fn observe(&mut self, now: Time) {
        for at in 0..self.settings.elections.len() {
            let seat = &self.settings.elections[at];
            let observes = seat.stands().observer;
            if let Some(at) = self.announced(Group::named(&seat.name)) {
                self.announce(now, at, Input::Command(announce::Command::Observe(observes)));
            }
        }
    }
}

/// As long as a hello at least, or strangers could not ask who it is: see `Sealer::open`.
const LEAST: usize = 32;

fn packed(group: Group, message: &announce::Message) -> Vec<u8> {
    let mut body = Vec::with_capacity(LEAST);
    body.u32(group.number());
    message.encode(&mut body);
    body.resize(body.len().max(LEAST), 0);
    body
}

fn unpacked(body: &[u8]) -> Option<(Group, announce::Message)> {
    let mut reader = Reader::new(body);
    let group = Group::from_number(reader.u32("election").ok()?);
    let message = announce::Message::decode(&mut reader).ok()?;
    reader.rest().iter().all(|&byte| byte == 0).then_some((group, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_and_nothing_else_is() {
        let group = Group::named("door");
        for message in [
            announce::Message::Bye { sequence: 1, epoch: 2 },
            announce::Message::Query { sequence: u64::MAX, nonce: u64::MAX, claim: None },
        ] {
            let mut body = packed(group, &message);
            assert!(body.len() >= LEAST);
            assert_eq!(unpacked(&body), Some((group, message)));
            *body.last_mut().unwrap() ^= 1;
            assert_ne!(unpacked(&body), Some((group, message)));
            assert_eq!(unpacked(&body[..4]), None);
        }
    }
}
