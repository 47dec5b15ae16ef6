//! Watched members: found out sooner than probes would.
//!
//! Somebody on whom much depends, a leader say, tells a few *watchers* that it lives, far more often than anybody
//! probes it. A watcher that misses [`MISSED`] of these beats in a row probes it out of turn, asks helpers, and if
//! nobody gets an answer accuses it, all within a few round trips instead of periods. So probing may be slow and cheap
//! without leaders being missed for long.
//!
//! A beat promises the next one and nothing else: who is no longer watched simply falls silent, is probed once,
//! answers, and is forgotten here. Not in the thesis.

use alloc::vec::Vec;

use super::{Body, Medley, Role, Timer};
use crate::{
    id::NodeId,
    machine::OutboxOf,
    time::{Duration, Time},
};

/// Who watches us, and whom we watch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Watch {
    watchers: Vec<NodeId>,
    watched: Vec<Watched>,
}

/// A member that promised to speak.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Watched {
    id: NodeId,
    /// How long it may be silent.
    patience: Duration,
    /// When it has been silent for too long; `None` if it has been.
    due: Option<Time>,
}

impl Watch {
    /// Whether this one promised to speak and does not.
    pub(super) fn is_silent(&self, id: NodeId) -> bool {
        self.watched.iter().any(|watched| watched.id == id && watched.due.is_none())
    }

    /// How long a silent one may have been silent.
    fn patience(&self, id: NodeId) -> Option<Duration> {
        let silent = |one: &&Watched| one.id == id && one.due.is_none();
        self.watched.iter().find(silent).map(|one| one.patience)
    }

    fn forget(&mut self, id: NodeId) {
        self.watched.retain(|watched| watched.id != id);
    }
}

impl Medley {
    /// From now on these watch us.
    pub(super) fn set_watchers(
        &mut self,
        now: Time,
        watchers: Vec<NodeId>,
        out: &mut OutboxOf<Self>,
    ) {
        self.watch.watchers = watchers;
        self.on_beat_timer(now, out);
    }

    pub(super) fn on_beat_timer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        self.timers.clear(Timer::Beat);
        let Some(every) = self.config.beat else { return };
        if self.watch.watchers.is_empty() || self.role != Role::Running {
            return;
        }
        self.timers.set(Timer::Beat, now + every);
        for at in 0..self.watch.watchers.len() {
            self.send(now, self.watch.watchers[at], 0, Body::Beat { every }, out);
        }
    }

    /// It will speak again.
    pub(super) fn on_beat(&mut self, now: Time, from: NodeId, every: Duration) {
        self.watch.forget(from);
        if self.config.beat.is_none() || self.watch.watched.len() >= MOST_WATCHED {
            return;
        }
        let patience = every.clamp(self.config.ack, LONGEST) * MISSED;
        self.watch.watched.push(Watched { id: from, patience, due: Some(now + patience) });
        self.arm_silence();
    }

    /// Somebody we watch is silent: it is probed at once, unless another one is.
    pub(super) fn on_silence(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.probe.is_some_and(|probe| probe.urgent) {
            self.timers.set(Timer::Silence, now + self.config.ack);
            return;
        }
        let silent = |one: &&mut Watched| one.due.is_some_and(|due| due <= now);
        let id = self.watch.watched.iter_mut().find(silent).map(|one| {
            one.due = None;
            one.id
        });
        self.arm_silence();
        let Some((id, at)) = id.and_then(|id| self.table.position(id).map(|at| (id, at))) else {
            return;
        };
        if self.table.is_listed(at) {
            let missed = self.doubt.missed(f64::from(self.table.distance(at)), MISSED as u32);
            self.doubt_again(id, missed);
            self.probe_urgently(now, id, out);
        } else {
            self.watch.forget(id);
        }
    }

    /// It answers, or is gone.
    pub(super) fn unwatch(&mut self, id: NodeId) {
        if self.watch.is_silent(id) {
            self.watch.forget(id);
        }
    }

    /// How long this one has to contradict if it is watched and silent: as long as another beat or two would take.
    pub(super) fn urgent_suspicion(&self, id: NodeId) -> Option<Duration> {
        self.watch.patience(id).map(|patience| patience.div(2).max(self.config.ack * 2))
    }

    fn arm_silence(&mut self) {
        match self.watch.watched.iter().filter_map(|one| one.due).min() {
            Some(due) => self.timers.set(Timer::Silence, due),
            None => self.timers.clear(Timer::Silence),
        }
    }
}

/// Beats missed in a row before a watcher asks. Two are lost together too often where one message in ten is.
pub(super) const MISSED: u64 = 3;
/// Whoever promises less is not worth watching.
const LONGEST: Duration = Duration::from_secs(60);
/// Members watched at most: remote input must not fill the memory. Arbitrary.
const MOST_WATCHED: usize = 64;
