//! The event log: a run told step by step.

use std::{cell::RefCell, rc::Rc};

use bellwether_proto::{
    Duration, Effect, EffectOf, Epoch, Input, InputOf, Machine, NodeId, Rejected, Time,
};

use super::film::{Camera, Opinions, Shot};
use crate::{
    engine::{Observer, State},
    world::{Network, Travel},
};

/// One thing that happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// When it happened.
    pub at: Time,
    /// To whom, or who did it.
    pub node: NodeId,
    /// What, in one word: `boot`, `start`, `deliver`, `timeout`, `leave`, `feed`, `command`, `reject`,
    /// `send`, `broadcast`, `multicast`, `persist`, `not-kept`, `emit`, `wait`, `stop`; and of an
    /// earlier life that runs on beside it, `ghost`, `ghost-gone`.
    pub what: &'static str,
    /// The particulars, as text.
    pub detail: String,
}

/// Whom a node of an election names from now on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Naming {
    /// From when on.
    pub at: Time,
    /// The node that names somebody.
    pub node: NodeId,
    /// Whether it is running.
    pub up: bool,
    /// Whom, if anybody.
    pub leader: Option<NodeId>,
    /// Under which token, where there are any.
    pub epoch: Option<Epoch>,
}

/// Where the namings of a run are kept while it is watched.
pub type Namings = Rc<RefCell<Vec<Naming>>>;

/// Hands every step of a run to somebody, or to nobody.
#[derive(Default)]
pub struct Log<'a> {
    sink: Option<&'a mut dyn FnMut(Entry)>,
    namings: Option<Namings>,
    camera: Option<Camera>,
}

impl<'a> Log<'a> {
    /// To nobody: costs one comparison a step.
    pub fn none() -> Self {
        Self::default()
    }

    /// Hands every step to `sink`.
    pub fn to(sink: &'a mut dyn FnMut(Entry)) -> Self {
        Self { sink: Some(sink), ..Self::default() }
    }

    /// To nobody, but who names whom is kept.
    pub fn naming(namings: &Namings) -> Self {
        Self { namings: Some(Rc::clone(namings)), ..Self::default() }
    }

    /// To a camera.
    pub fn filming(camera: Camera) -> Self {
        Self { camera: Some(camera), ..Self::default() }
    }

    /// The camera that the run is shown to, if there is one.
    pub(super) fn camera(&self) -> Option<Camera> {
        self.camera.clone()
    }

    /// An observer of what members think of each other, for the same camera.
    pub(crate) fn opinions(&self) -> Opinions {
        Opinions(self.camera())
    }

    /// Where to keep who names whom, if anybody wants to know.
    pub(crate) fn namings(&self) -> Option<Namings> {
        self.namings.clone()
    }

    fn show(&self, now: Time, shot: impl FnOnce() -> Shot) {
        if let Some(camera) = &self.camera {
            camera.take(now, shot());
        }
    }

    #[inline]
    fn note(
        &mut self,
        at: Time,
        node: NodeId,
        what: &'static str,
        detail: impl FnOnce() -> String,
    ) {
        if let Some(sink) = &mut self.sink {
            sink(Entry { at, node, what, detail: detail() });
        }
    }
}

impl<M: Machine> Observer<M> for Log<'_> {
    fn started(&mut self, now: Time, node: NodeId, state: State) {
        self.note(now, node, "boot", || match state {
            State::Kept => "with its durable state".into(),
            State::Lost => "with nothing".into(),
        });
        self.show(now, || Shot::Starts(node.get() as u32));
    }

    #[inline]
    fn input(&mut self, now: Time, node: NodeId, input: &InputOf<'_, M>) {
        let what = match input {
            Input::Start => "start",
            Input::Message { .. } => "deliver",
            Input::Timeout => "timeout",
            Input::Feed(_) => "feed",
            Input::Command(_) => "command",
            Input::Leave => "leave",
        };
        self.note(now, node, what, || match input {
            Input::Message { from, via, message } if *via == from.id => {
                format!("{message:?} from {from}")
            }
            Input::Message { from, via, message } => format!("{message:?} from {from} via {via}"),
            Input::Feed(feed) => format!("{feed:?}"),
            Input::Command(command) => format!("{command:?}"),
            Input::Start | Input::Timeout | Input::Leave => String::new(),
        });
        if let Some(camera) = &self.camera {
            camera.at(now);
            if let Input::Leave = input {
                camera.take(now, Shot::Leaves(node.get() as u32));
            }
        }
    }

    fn rejected(&mut self, now: Time, node: NodeId, why: &Rejected) {
        self.note(now, node, "reject", || why.to_string());
    }

    #[inline]
    fn effect(&mut self, now: Time, node: NodeId, effect: &EffectOf<M>) {
        let what = match effect {
            Effect::Send { .. } => "send",
            Effect::Broadcast(_) => "broadcast",
            Effect::Multicast(_) => "multicast",
            Effect::Persist(_) => "persist",
            Effect::Emit(_) => "emit",
        };
        self.note(now, node, what, || match effect {
            Effect::Send { to, message } => format!("{message:?} to {to}"),
            Effect::Broadcast(message) | Effect::Multicast(message) => format!("{message:?}"),
            Effect::Persist(state) => format!("{state:?}"),
            Effect::Emit(event) => format!("{event:?}"),
        });
    }

    fn not_kept(&mut self, now: Time, node: NodeId) {
        self.note(now, node, "not-kept", String::new);
        self.show(now, || Shot::NotKept(node.get() as u32));
    }

    fn writing(&mut self, now: Time, node: NodeId) {
        self.note(now, node, "writing", String::new);
    }

    fn kept(&mut self, now: Time, node: NodeId, state: &M::Durable) {
        self.note(now, node, "kept", || format!("{state:?}"));
    }

    #[inline]
    fn handled(&mut self, now: Time, node: NodeId, machine: &M) {
        self.note(now, node, "wait", || waiting(machine));
        if let Some(camera) = &self.camera {
            camera.waits(now, node, machine);
        }
    }

    fn ghost_handled(&mut self, now: Time, node: NodeId, machine: &M) {
        self.note(now, node, "ghost", || waiting(machine));
    }

    fn ghost_gone(&mut self, now: Time, node: NodeId) {
        self.note(now, node, "ghost-gone", String::new);
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        self.note(now, node, "stop", String::new);
        self.show(now, || Shot::Stops(node.get() as u32));
    }

    fn paused(&mut self, now: Time, node: NodeId) {
        self.show(now, || Shot::Freezes(node.get() as u32));
    }

    fn resumed(&mut self, now: Time, node: NodeId) {
        self.show(now, || Shot::Thaws(node.get() as u32));
    }

    fn sent(&mut self, node: NodeId, to: Option<NodeId>, message: &M::Message, way: &Travel) {
        if let (Some(camera), Some(to)) = (&self.camera, to)
            && way.lost > 0
        {
            camera.flies((node, to), None, message);
        }
    }

    #[inline]
    fn travels(
        &mut self,
        now: Time,
        from: NodeId,
        to: NodeId,
        after: Duration,
        message: &M::Message,
    ) {
        if let Some(camera) = &self.camera {
            camera.at(now);
            camera.flies((from, to), Some(now + after), message);
        }
    }

    fn missed(&mut self, now: Time, from: NodeId, to: NodeId) {
        if let Some(camera) = &self.camera {
            camera.missed(now, from, to);
        }
    }

    fn topology(&mut self, now: Time, network: &Network) {
        if let Some(camera) = &self.camera {
            camera.between(now, network);
        }
    }

    fn done(&self) -> bool {
        self.camera.as_ref().is_some_and(Camera::stopped)
    }
}

fn waiting<M: Machine>(machine: &M) -> String {
    match machine.deadline() {
        Some((at, why)) => format!("until {at} for {why:?}"),
        None => "for ever".into(),
    }
}
