//! A run as something to look at: what happened, small enough to be kept and shown again at any instant.
//!
//! Unlike the [log](super::Log), which tells every step in full, a film has what can be seen: who is up, whom each node
//! names and until when, who accuses whom, what stands between nodes, and messages as they fly, of which it leaves some
//! out when there are many.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fmt::{self, Write as _},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bellwether_proto::{
    Duration, Effect, EffectOf, Epoch, Leadership, Machine, NodeId, Time,
    membership::medley::{Medley, MembershipEvent},
    node::{self, Node},
    stack::{self, Stack},
};

use crate::{
    engine::Observer,
    invariant::Violation,
    world::{Network, Trouble},
};

/// One thing to see.
#[derive(Clone, Debug, PartialEq)]
pub enum Shot {
    /// A node begins a life.
    Starts(u32),
    /// A node is no longer running.
    Stops(u32),
    /// A node is frozen.
    Freezes(u32),
    /// A node is no longer frozen.
    Thaws(u32),
    /// A node says goodbye.
    Leaves(u32),
    /// A node's disk did not keep what it was asked to.
    NotKept(u32),
    /// Whom a node names from now on.
    Names {
        /// The node that names somebody.
        node: u32,
        /// Whom, if anybody.
        leader: Option<u32>,
        /// Under which token, where there are any.
        epoch: Option<Epoch>,
        /// Whether it has no present reason to doubt it.
        settled: bool,
        /// Until when it may act, by its own clock, if it leads on a lease.
        until: Option<Time>,
    },
    /// A message flies.
    Flies {
        /// The node that sends it.
        from: u32,
        /// The node that it is for.
        to: u32,
        /// When it arrives; `None` if it is lost on the way.
        arrives: Option<Time>,
        /// What it is, in one word.
        what: String,
    },
    /// A message that flew to here was not let in.
    Missed {
        /// The node that sends it.
        from: u32,
        /// The node that it is for.
        to: u32,
    },
    /// Of the messages from now on, this share is shown.
    Shown(f64),
    /// What a node waits for.
    Waits {
        /// The node that waits.
        node: u32,
        /// Until when, by its own clock; `None` if it waits for others.
        until: Option<Time>,
        /// What it waits for.
        why: String,
    },
    /// What a node thinks of another from now on.
    Thinks {
        /// The node that has an opinion.
        node: u32,
        /// The node that it is about.
        of: u32,
        /// What it thinks.
        opinion: Opinion,
        /// The node that accuses it, if one does.
        by: Option<u32>,
    },
    /// What stands between nodes from now on.
    Between {
        /// Which side of a partition each node is on; empty without one.
        sides: Vec<u32>,
        /// Directed pairs that are cut.
        cuts: Vec<(u32, u32)>,
        /// What all links suffer.
        trouble: Trouble,
    },
    /// A node is at another place from now on.
    Moves {
        /// The node that moves.
        node: u32,
        /// Where it is.
        to: (f64, f64),
    },
    /// Something did not hold.
    Violated(Violation),
}

/// What one node thinks of another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opinion {
    /// It is a member and well.
    Alive,
    /// It is accused.
    Suspect,
    /// It did not contradict, and was given up.
    Failed,
    /// It has said goodbye.
    Left,
}

/// Takes what it is shown, and hands it on.
#[derive(Clone)]
pub struct Camera(Rc<RefCell<Roll>>);

struct Roll {
    take: Box<dyn FnMut(Time, Shot)>,
    stopped: Arc<AtomicBool>,
    /// Whether what nodes wait for is of interest.
    waits: bool,
    /// Messages a second that are shown.
    quota: f64,
    /// The second of the run that is going on, its messages so far, those shown of them, and the share to show.
    second: u64,
    sent: f64,
    shown: f64,
    share: f64,
    now: Time,
    sides: Vec<u32>,
    cuts: Vec<(u32, u32)>,
    trouble: Trouble,
    places: Vec<(f64, f64)>,
    violated: BTreeSet<&'static str>,
}

/// Messages that a film of a whole run shows. Arbitrary: a browser reads them in a moment.
const MOST_MESSAGES: f64 = 240_000.0;
/// Messages a second that are always shown, however long the run.
const ALWAYS: f64 = 40.0;
/// Nodes up to which it is shown what each waits for.
const FEW: u32 = 64;

impl Camera {
    /// Films a run of this length with so many nodes. The run ends early once `stopped` is set.
    pub fn new(
        duration: Duration,
        nodes: u32,
        stopped: Arc<AtomicBool>,
        take: impl FnMut(Time, Shot) + 'static,
    ) -> Self {
        let seconds = duration.as_secs_f64().max(1.0);
        Self(Rc::new(RefCell::new(Roll {
            take: Box::new(take),
            stopped,
            waits: nodes <= FEW,
            quota: (MOST_MESSAGES / seconds).max(ALWAYS),
            second: 0,
            sent: 0.0,
            shown: 0.0,
            share: 1.0,
            now: Time::ZERO,
            sides: Vec::new(),
            cuts: Vec::new(),
            trouble: Trouble::default(),
            places: Vec::new(),
            violated: BTreeSet::new(),
        })))
    }

    pub(super) fn stopped(&self) -> bool {
        self.0.borrow().stopped.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self, now: Time, shot: Shot) {
        (self.0.borrow_mut().take)(now, shot);
    }

    /// An input or an effect is about to be seen.
    pub(super) fn at(&self, now: Time) {
        self.0.borrow_mut().now = now;
    }

    pub(super) fn names(&self, now: Time, node: NodeId, answer: &Leadership) {
        let shot = Shot::Names {
            node: index(node),
            leader: answer.leader.map(index),
            epoch: answer.epoch,
            settled: answer.settled,
            until: answer.valid_until,
        };
        self.take(now, shot);
    }

    pub(super) fn waits<M: Machine>(&self, now: Time, node: NodeId, machine: &M) {
        if !self.0.borrow().waits {
            return;
        }
        let (until, why) = match machine.deadline() {
            Some((at, why)) => (Some(at), last_word(&why)),
            None => (None, String::new()),
        };
        self.take(now, Shot::Waits { node: index(node), until, why });
    }

    pub(super) fn flies<T: fmt::Debug>(
        &self,
        (from, to): (NodeId, NodeId),
        arrives: Option<Time>,
        message: &T,
    ) {
        let roll = &mut *self.0.borrow_mut();
        let (from, to) = (index(from), index(to));
        if roll.shows(from, to, arrives) {
            let what = last_word(message);
            (roll.take)(roll.now, Shot::Flies { from, to, arrives, what });
        }
    }

    pub(super) fn missed(&self, now: Time, from: NodeId, to: NodeId) {
        self.take(now, Shot::Missed { from: index(from), to: index(to) });
    }

    pub(super) fn between(&self, now: Time, network: &Network) {
        let roll = &mut *self.0.borrow_mut();
        if roll.sides != network.sides()
            || roll.trouble != network.trouble()
            || !roll.cuts.iter().copied().eq(network.cuts())
        {
            roll.sides = network.sides().to_vec();
            roll.cuts = network.cuts().collect();
            roll.trouble = network.trouble();
            let (sides, cuts) = (roll.sides.clone(), roll.cuts.clone());
            (roll.take)(now, Shot::Between { sides, cuts, trouble: roll.trouble });
        }
        let places = &network.placed().positions;
        if roll.places != *places {
            let before = std::mem::replace(&mut roll.places, places.clone());
            let moved = (0..).zip(before.iter().zip(places)).filter(|(_, (from, to))| from != to);
            for (node, (_, &to)) in moved {
                (roll.take)(now, Shot::Moves { node, to });
            }
        }
    }

    /// Tells of what did not hold and was not told before.
    pub(super) fn judged(&self, violations: &[Violation]) {
        let roll = &mut *self.0.borrow_mut();
        for violation in violations {
            if roll.violated.insert(violation.invariant) {
                (roll.take)(violation.at, Shot::Violated(violation.clone()));
            }
        }
    }
}

impl Roll {
    /// Whether a message is among those shown: by its numbers alone, so that the same run gives the same film.
    fn shows(&mut self, from: u32, to: u32, arrives: Option<Time>) -> bool {
        let second = self.now.as_micros() / 1_000_000;
        if second != self.second {
            let share = if self.sent > self.quota { self.quota / self.sent } else { 1.0 };
            (self.second, self.sent, self.shown) = (second, 0.0, 0.0);
            if share != self.share {
                self.share = share;
                (self.take)(self.now, Shot::Shown(share));
            }
        }
        self.sent += 1.0;
        let drawn =
            arrives.map_or(1, Time::as_micros) ^ u64::from(from) << 40 ^ u64::from(to) << 20;
        let drawn = drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // A second busier than the one before is no reason to show without end.
        let chosen =
            drawn as f64 <= self.share * f64::from(u32::MAX) && self.shown < 2.0 * self.quota;
        self.shown += f64::from(u8::from(chosen));
        chosen
    }
}

/// Tells a camera what members think of each other.
#[derive(Clone, Default)]
pub(crate) struct Opinions(pub(super) Option<Camera>);

impl Opinions {
    fn tell(&self, now: Time, node: NodeId, event: &MembershipEvent) {
        let Some(camera) = &self.0 else { return };
        let (opinion, by) = match *event {
            MembershipEvent::Joined(_) | MembershipEvent::Refuted(_) => (Opinion::Alive, None),
            MembershipEvent::Suspected { by, .. } => (Opinion::Suspect, Some(index(by))),
            MembershipEvent::Failed { .. } => (Opinion::Failed, None),
            MembershipEvent::Left(_) => (Opinion::Left, None),
            MembershipEvent::Introduced(_) => return,
        };
        let (node, of) = (index(node), index(event.id()));
        camera.take(now, Shot::Thinks { node, of, opinion, by });
    }
}

impl Observer<Medley> for Opinions {
    fn effect(&mut self, now: Time, node: NodeId, effect: &EffectOf<Medley>) {
        if let Effect::Emit(event) = effect {
            self.tell(now, node, event);
        }
    }
}

impl Observer<Stack> for Opinions {
    fn effect(&mut self, now: Time, node: NodeId, effect: &EffectOf<Stack>) {
        if let Effect::Emit(stack::Event::Membership(event)) = effect {
            self.tell(now, node, event);
        }
    }
}

impl Observer<Node> for Opinions {
    fn effect(&mut self, now: Time, node: NodeId, effect: &EffectOf<Node>) {
        if let Effect::Emit(node::Event::Membership(event)) = effect {
            self.tell(now, node, event);
        }
    }
}

fn index(node: NodeId) -> u32 {
    node.get() as u32
}

/// What a value is, in the word of its innermost variant: `Ping` of `Membership(Message { number: 7, body: Ping })`.
fn last_word(value: &impl fmt::Debug) -> String {
    /// Takes the beginning of a text, and ends its writing.
    struct Beginning(String);
    impl fmt::Write for Beginning {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.push_str(text);
            if self.0.len() > 400 { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut beginning = Beginning(String::new());
    // It ends with an error where the text is longer.
    let _ = write!(beginning, "{value:?}");
    let mut last = "";
    let mut rest = &*beginning.0;
    loop {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        if word.starts_with(|c: char| c.is_ascii_uppercase()) {
            last = word;
        }
        let next = match behind.strip_prefix('(') {
            // Of which election something is said comes before what is said.
            Some(inner) if inner.starts_with("ElectionId(") => {
                inner.split_once("), ").map(|(_, said)| said)
            }
            Some(inner) if inner.starts_with(|c: char| c.is_ascii_digit()) => {
                inner.split_once(", ").map(|(_, said)| said)
            }
            Some(inner) => Some(inner),
            // An envelope, and what is in it.
            None if behind.starts_with(" {") => behind.split_once(" body: ").map(|(_, body)| body),
            None => None,
        };
        match next {
            Some(next) => rest = next,
            None => return last.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_called_by_its_innermost_variant() {
        #[derive(Debug)]
        #[allow(dead_code, reason = "read by Debug alone")]
        enum Outer {
            Inner(Inner),
            Of(u32, Inner),
        }
        #[derive(Debug)]
        #[allow(dead_code, reason = "read by Debug alone")]
        enum Inner {
            Ask { number: u32 },
            Tell,
        }
        #[derive(Debug)]
        #[allow(dead_code, reason = "read by Debug alone")]
        struct Envelope {
            number: u32,
            body: Outer,
        }
        #[derive(Debug)]
        #[allow(dead_code, reason = "read by Debug alone")]
        struct Said(bellwether_proto::ElectionId, Inner);
        let body = Outer::Inner(Inner::Tell);
        assert_eq!(last_word(&Envelope { number: 3, body }), "Tell");
        assert_eq!(last_word(&Said(bellwether_proto::ElectionId::named("a"), Inner::Tell)), "Tell");
        assert_eq!(last_word(&Outer::Inner(Inner::Ask { number: 7 })), "Ask");
        assert_eq!(last_word(&Outer::Of(3, Inner::Tell)), "Tell");
        assert_eq!(last_word(&Inner::Tell), "Tell");
        assert_eq!(last_word(&3), "");
    }
}
