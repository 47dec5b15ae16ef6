//! Announced elections: everything is said to everybody on the segment.

use super::{Kept, Port, packet};
use crate::{
    election::announce::{self, Announce},
    id::Peer,
    leadership::{Election as _, Leadership},
    machine::{Effect, Input, InputOf, Machine as _, Outbox, OutboxOf, Rejected},
    time::Time,
};

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Announced {
    machine: Announce,
    out: OutboxOf<Announce>,
    /// Whether somebody else claimed to lead while we had something to say and could not.
    rival: bool,
}

impl Announced {
    pub(super) fn new(machine: Announce) -> Self {
        Self { machine, out: Outbox::new(), rival: false }
    }

    pub(super) fn input(
        &mut self,
        input: InputOf<'_, Announce>,
        port: &mut Port<'_>,
    ) -> Result<(), Rejected> {
        let result = self.machine.handle(port.now, input, &mut self.out);
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Send { message, .. }
                | Effect::Broadcast(message)
                | Effect::Multicast(message) => {
                    port.multicast(packet::Message::Announced(port.group, message));
                }
                Effect::Persist(durable) => port.keep(Kept::Announced(durable)),
                // The node has a guard of its own, for all its elections.
                Effect::Emit(announce::Event::DuplicateIdentity { .. }) => {}
            }
        }
        result
    }

    /// An input that cannot be refused.
    pub(super) fn tell(&mut self, input: InputOf<'_, Announce>, port: &mut Port<'_>) {
        let told = self.input(input, port);
        debug_assert!(matches!(told, Ok(()) | Err(Rejected::NotRunning)), "{told:?}");
    }

    pub(super) fn command(&mut self, command: announce::Command, port: &mut Port<'_>) {
        self.tell(Input::Command(command), port);
    }

    pub(super) fn hear(
        &mut self,
        from: Peer,
        message: &announce::Message,
        port: &mut Port<'_>,
    ) -> Result<(), Rejected> {
        let waits = !port.held.is_empty();
        self.rival &= waits;
        self.input(Input::Message { from, via: from.id, message }, port)?;
        self.rival |= waits && message.is_announcement();
        Ok(())
    }

    /// Of as long as something is held back.
    pub(super) fn has_rival(&self) -> bool {
        self.rival
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.machine.deadline().map(|(at, _)| at)
    }

    pub(super) fn leadership(&self) -> Leadership {
        self.machine.leadership()
    }
}
