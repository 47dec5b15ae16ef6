//! The nodes of a bandit election and their client, as machines of one kind.

use bellwether_proto::{
    Effect, Election, Input, InputOf, Leadership, Machine, Mode, Outbox, OutboxOf, Rejected, Time,
    Why,
    election::bandit::{self, Bandit, Command, Durable, Feed, Message, client::Client},
};

/// A node or the client.
#[derive(Clone, Debug)]
pub enum NodeOrClient {
    /// A node of the election.
    Node {
        /// The machine of the node.
        node: Box<Bandit>,
        /// Where it leaves its effects, empty between two inputs.
        out: OutboxOf<Bandit>,
    },
    /// The client that asks the leader.
    Client {
        /// The machine of the client.
        client: Client,
        /// Where it leaves its effects, empty between two inputs.
        out: OutboxOf<Client>,
    },
}

/// Why one of them wants to be woken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timer {
    /// The reason of a node.
    Node(bandit::Timer),
    /// The reason of the client.
    Client(bandit::client::Timer),
}

/// What one of them has to tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// What a node tells.
    Node(bandit::Event),
    /// What the client tells.
    Client(bandit::client::Event),
}

impl NodeOrClient {
    /// Makes a node of this machine.
    pub fn node(node: Bandit) -> Self {
        Self::Node { node: Box::new(node), out: Outbox::new() }
    }

    /// Makes the client of this machine.
    pub fn client(client: Client) -> Self {
        Self::Client { client, out: Outbox::new() }
    }

    /// The node, if it is one.
    pub fn as_node(&self) -> Option<&Bandit> {
        match self {
            Self::Node { node, .. } => Some(node),
            Self::Client { .. } => None,
        }
    }
}

impl Machine for NodeOrClient {
    type Message = Message;
    type Timer = Timer;
    type Feed = Feed;
    type Command = Command;
    type Durable = Durable;
    type Event = Event;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match self {
            Self::Node { node, out: own } => {
                let result = node.handle(now, input, own);
                while let Some(effect) = own.pop() {
                    match effect {
                        Effect::Send { to, message } => out.send(to, message),
                        Effect::Broadcast(message) => out.broadcast(message),
                        Effect::Multicast(message) => out.multicast(message),
                        Effect::Persist(durable) => out.persist(durable),
                        Effect::Emit(event) => out.emit(Event::Node(event)),
                    }
                }
                result
            }
            Self::Client { client, out: own } => {
                let input = match input {
                    Input::Start => Input::Start,
                    Input::Message { from, via, message } => Input::Message { from, via, message },
                    Input::Timeout => Input::Timeout,
                    // Nobody tells a client anything else.
                    Input::Feed(_) | Input::Command(_) => return Ok(()),
                    Input::Leave => Input::Leave,
                };
                let result = client.handle(now, input, own);
                while let Some(effect) = own.pop() {
                    match effect {
                        Effect::Send { to, message } => out.send(to, message),
                        Effect::Broadcast(message) => out.broadcast(message),
                        Effect::Multicast(message) => out.multicast(message),
                        Effect::Persist(never) => match never {},
                        Effect::Emit(event) => out.emit(Event::Client(event)),
                    }
                }
                result
            }
        }
    }

    #[inline]
    fn deadline(&self) -> Option<(Time, Timer)> {
        match self {
            Self::Node { node, .. } => node.deadline().map(|(at, why)| (at, Timer::Node(why))),
            Self::Client { client, .. } => {
                client.deadline().map(|(at, why)| (at, Timer::Client(why)))
            }
        }
    }
}

impl Election for NodeOrClient {
    fn leadership(&self) -> Leadership {
        match self {
            Self::Node { node, .. } => node.leadership(),
            Self::Client { .. } => Leadership::unknown(Mode::Learned, Why::NotRunning),
        }
    }
}
