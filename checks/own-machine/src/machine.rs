//! The protocol: everybody says once a second that it lives, and the lowest number that was heard of late leads.
//!
//! ```text
//! Up --Beat fires-----> Up   Alive to all; arm Beat
//! Up --Alive received-> Up   its sender lives
//! ```
//!
//! It promises little: a node that hears nobody leads, so a node leads again and again where the network is
//! divided again and again. [`crate::LeadsOnce`] finds that out.

use std::{collections::BTreeMap, convert::Infallible};

use bellwether_proto::{
    Duration, Election, Input, InputOf, Leadership, Machine, Mode, NodeId, OutboxOf, Peer,
    Rejected, Seed, Time, Why,
    wire::{DecodeError, Reader, Sink, Wire},
};

/// One node.
pub struct Lowest {
    me: Peer,
    /// When whom was heard last.
    heard: BTreeMap<NodeId, Time>,
    next: Option<Time>,
    started: Time,
    now: Time,
    phase: Duration,
}

/// What nodes say to each other: that they live.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Alive;

impl Wire for Alive {
    fn encode(&self, _: &mut impl Sink) {}

    fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

impl Lowest {
    /// A node that has not started yet. Its only random choice is when in a second it speaks, by the seed it is given:
    /// a machine has no other randomness, so that a run can be run again.
    pub fn new(me: Peer, seed: Seed) -> Self {
        let phase = Duration::from_micros(seed.rng().next() % BEAT.as_micros());
        let heard = BTreeMap::new();
        Self { me, heard, next: None, started: Time::ZERO, now: Time::ZERO, phase }
    }

    fn lowest(&self) -> NodeId {
        let late = |at: Time| self.now.since(at) > SILENCE;
        let living = self.heard.iter().filter(|(_, at)| !late(**at)).map(|(id, _)| *id);
        living.chain([self.me.id]).min().expect("it is one of them itself")
    }
}

impl Machine for Lowest {
    type Message = Alive;
    type Timer = &'static str;
    type Feed = Infallible;
    type Command = Infallible;
    type Durable = Infallible;
    type Event = Infallible;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        self.now = now;
        match input {
            Input::Start => {
                self.started = now;
                self.next = Some(now + self.phase);
            }
            Input::Message { from, .. } => {
                self.heard.insert(from.id, now);
            }
            // Early and repeated timeouts are harmless.
            Input::Timeout if self.next.is_some_and(|next| next <= now) => {
                out.multicast(Alive);
                self.next = Some(now + BEAT);
            }
            Input::Timeout => {}
            Input::Leave => self.next = None,
            Input::Feed(never) | Input::Command(never) => match never {},
        }
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        self.next.map(|at| (at, "beat"))
    }
}

/// The one answer of an election: what is watched and measured.
impl Election for Lowest {
    fn leadership(&self) -> Leadership {
        let since = self.started;
        let mut answer = Leadership::unknown(Mode::Eventual, Why::Standing { since });
        // Who has not listened for long enough knows nothing yet.
        if self.next.is_some() && self.now.since(since) > SILENCE {
            answer.leader = Some(self.lowest());
            answer.why = Why::Unchallenged { since };
        }
        answer
    }
}

const BEAT: Duration = Duration::from_secs(1);
/// Three beats may be lost.
const SILENCE: Duration = Duration::from_millis(3_500);
