//! Whoever watches a run.

use super::*;

/// Somebody who watches a run. Every method does nothing unless implemented, and costs nothing then.
pub trait Observer<M: Machine> {
    /// `node` begins a new life with what is left of its durable state.
    fn started(&mut self, _now: Time, _node: NodeId, _state: State) {}

    /// `node` is about to handle `input`.
    fn input(&mut self, _now: Time, _node: NodeId, _input: &InputOf<'_, M>) {}

    /// The last input was refused.
    fn rejected(&mut self, _now: Time, _node: NodeId, _why: &Rejected) {}

    /// `node` asked for `effect`. What it would have sent had its disk [kept](Self::not_kept) what came before is
    /// not told: nobody has sent it.
    fn effect(&mut self, _now: Time, _node: NodeId, _effect: &EffectOf<M>) {}

    /// The disk of `node` did not keep what it was just asked to; nothing is sent until the next input.
    fn not_kept(&mut self, _now: Time, _node: NodeId) {}

    /// The disk of `node` takes its time over what it was just asked to keep; nothing is sent until the next input.
    fn writing(&mut self, _now: Time, _node: NodeId) {}

    /// What the disk of `node` took its time over is there.
    fn kept(&mut self, _now: Time, _node: NodeId, _state: &M::Durable) {}

    /// `node` has sent `message`, to one node or to whoever there is, and this became of it.
    fn sent(&mut self, _node: NodeId, _to: Option<NodeId>, _message: &M::Message, _way: &Travel) {}

    /// `node` has handled an input and its effects have been carried out.
    fn handled(&mut self, _now: Time, _node: NodeId, _machine: &M) {}

    /// `node` is no longer running.
    fn stopped(&mut self, _now: Time, _node: NodeId) {}

    /// `node` is frozen.
    fn paused(&mut self, _now: Time, _node: NodeId) {}

    /// `node` is no longer frozen, and is about to handle what has come meanwhile.
    fn resumed(&mut self, _now: Time, _node: NodeId) {}

    /// A copy of `message` is on its way to `to` and arrives after so long, if nothing stops it there.
    fn travels(
        &mut self,
        _now: Time,
        _from: NodeId,
        _to: NodeId,
        _after: Duration,
        _message: &M::Message,
    ) {
    }

    /// A copy that was on its way to `to` found it down, or was stopped by a cut or a partition.
    fn missed(&mut self, _now: Time, _from: NodeId, _to: NodeId) {}

    /// An earlier life of `node` runs on beside the present one, which has been told as any other life: it has
    /// just become a ghost, or has handled an input as one. What it sends is told as [sent](Self::sent) by
    /// `node`, nothing else of it is told.
    fn ghost_handled(&mut self, _now: Time, _node: NodeId, _machine: &M) {}

    /// An earlier life of `node` that ran on has ended.
    fn ghost_gone(&mut self, _now: Time, _node: NodeId) {}

    /// The clock of `node` runs this many millionths fast from now on.
    fn drifted(&mut self, _now: Time, _node: NodeId, _ppm: i32) {}

    /// Who can talk to whom has changed.
    fn topology(&mut self, _now: Time, _network: &Network) {}

    /// Whether enough has been seen: ends [`Sim::advance`] early.
    fn done(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl<M: Machine> Observer<M> for () {}

/// Tells two observers the same, the first one first.
macro_rules! tell_both {
    ($($told:ident($($what:ident: $type:ty),*);)*) => {
        $(fn $told(&mut self, $($what: $type),*) {
            self.0.$told($($what),*);
            self.1.$told($($what),*);
        })*
    };
}

/// Two watch.
impl<M: Machine, A: Observer<M>, B: Observer<M>> Observer<M> for (A, B) {
    tell_both! {
        started(now: Time, node: NodeId, state: State);
        input(now: Time, node: NodeId, input: &InputOf<'_, M>);
        rejected(now: Time, node: NodeId, why: &Rejected);
        effect(now: Time, node: NodeId, effect: &EffectOf<M>);
        not_kept(now: Time, node: NodeId);
        writing(now: Time, node: NodeId);
        kept(now: Time, node: NodeId, state: &M::Durable);
        sent(node: NodeId, to: Option<NodeId>, message: &M::Message, way: &Travel);
        handled(now: Time, node: NodeId, machine: &M);
        stopped(now: Time, node: NodeId);
        paused(now: Time, node: NodeId);
        resumed(now: Time, node: NodeId);
        travels(now: Time, from: NodeId, to: NodeId, after: Duration, message: &M::Message);
        missed(now: Time, from: NodeId, to: NodeId);
        ghost_handled(now: Time, node: NodeId, machine: &M);
        ghost_gone(now: Time, node: NodeId);
        drifted(now: Time, node: NodeId, ppm: i32);
        topology(now: Time, network: &Network);
    }

    fn done(&self) -> bool {
        self.0.done() || self.1.done()
    }
}
