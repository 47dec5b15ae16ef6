//! Elections held over multicast.

use bellwether_proto::{
    Input, Machine as _,
    election::announce::{self, Announce},
    machine::{Effect, InputOf, Outbox, OutboxOf},
};

use super::{
    beside::{Beside, Channel, Road},
    *,
};

/// One of them.
#[derive(Debug)]
pub(super) struct Announced {
    machine: Announce,
    out: OutboxOf<Announce>,
}

impl Announced {
    pub(super) fn new(machine: Announce) -> Self {
        Self { machine, out: Outbox::new() }
    }

    fn input(&mut self, input: InputOf<'_, Announce>, road: &mut Road<'_>) {
        let result = self.machine.handle(road.now, input, &mut self.out);
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Send { message, .. }
                | Effect::Broadcast(message)
                | Effect::Multicast(message) => road.send_group(&message),
                Effect::Persist(durable) => {
                    let kept = road.store.keep_announced(road.group, durable);
                    road.kept(kept);
                }
                // The membership finds out too, and says so.
                Effect::Emit(announce::Event::DuplicateIdentity { .. }) => road.stop_node(),
            }
        }
        if let Err(rejected) = result {
            road.refuse(rejected.reason());
        }
    }
}

impl Beside for Announced {
    fn channel(&self) -> Channel {
        Channel::Announced
    }

    fn start(&mut self, road: &mut Road<'_>) {
        self.input(Input::Start, road);
    }

    fn deadline(&self) -> Option<Time> {
        self.machine.deadline().map(|(at, _)| at)
    }

    fn due(&mut self, road: &mut Road<'_>) {
        self.input(Input::Timeout, road);
    }

    fn hear(&mut self, from: Peer, message: &[u8], road: &mut Road<'_>) {
        if let Some(message) = road.read(message) {
            self.input(Input::Message { from, via: from.id, message: &message }, road);
        }
    }

    fn leadership(&self, _now: Time) -> Leadership {
        self.machine.leadership()
    }

    fn stalled(&mut self, road: &mut Road<'_>) {
        self.input(Input::Command(announce::Command::Void), road);
    }

    fn observe(&mut self, observes: bool, road: &mut Road<'_>) {
        self.input(Input::Command(announce::Command::Observe(observes)), road);
    }

    fn resign(&mut self, road: &mut Road<'_>) -> Result<(), Refused> {
        self.input(Input::Command(announce::Command::Resign), road);
        Ok(())
    }

    fn transfer(&mut self, _to: NodeId, _road: &mut Road<'_>) -> Result<(), Refused> {
        let reason =
            "it is announced: the best of those that hear us leads; resign instead".to_owned();
        Err(Refused::Impossible(reason))
    }

    fn leave(&mut self, road: &mut Road<'_>) {
        self.input(Input::Leave, road);
    }
}
