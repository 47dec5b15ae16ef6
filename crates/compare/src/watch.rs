//! Watching what nodes say, all at once and on one clock.
//!
//! A thread on each host asks its node every [`PERIOD`] and writes down when the answer changed. Nobody is watched while
//! idle costs are measured, and the threads belong to this process, not to the nodes.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bellwether_hosts::Net;

use crate::systems::{System, View};

/// Between two questions to one node: how coarse measured times are.
pub(crate) const PERIOD: Duration = Duration::from_millis(50);

/// How long an agreement must last to count.
const HOLD: Duration = Duration::from_millis(500);

/// Everybody asked says the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Agreed {
    /// The place of the leader.
    pub(crate) leader: usize,
    /// When the last of them began to say so.
    pub(crate) since: Instant,
}

/// Some nodes, watched as long as this lives.
pub(crate) struct Watch {
    seen: Vec<Arc<Mutex<Seen>>>,
    places: Vec<usize>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What one node said last.
#[derive(Clone, Debug)]
struct Seen {
    view: Option<View>,
    /// When it began to say that.
    since: Instant,
    /// When it said so last.
    last: Instant,
}

impl Seen {
    fn note(&mut self, view: Option<View>, now: Instant) {
        if view != self.view {
            self.view = view;
            self.since = now;
        }
        self.last = now;
    }
}

impl Watch {
    pub(crate) fn over(
        net: &Net,
        system: &dyn System,
        among: impl IntoIterator<Item = usize>,
    ) -> Self {
        let places: Vec<usize> = among.into_iter().collect();
        let now = Instant::now();
        let nothing = || Arc::new(Mutex::new(Seen { view: None, since: now, last: now }));
        let seen: Vec<_> = places.iter().map(|_| nothing()).collect();
        let over = Arc::new(AtomicBool::new(false));
        let thread = |(&at, seen): (&usize, &Arc<Mutex<Seen>>)| {
            let (door, mut client) = (net.host(at).door(), system.client(at));
            let (seen, over) = (Arc::clone(seen), Arc::clone(&over));
            // Not all at the same instant.
            let mut next = now + PERIOD.mul_f64(at as f64 / 16.0 % 1.0);
            thread::spawn(move || {
                door.enter();
                while !over.load(Ordering::Relaxed) {
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                    let view = client.look();
                    let now = Instant::now();
                    seen.lock().unwrap_or_else(PoisonError::into_inner).note(view, now);
                    next = (next + PERIOD).max(now);
                }
            })
        };
        let threads = places.iter().zip(&seen).map(thread).collect();
        Self { seen, places, over, threads }
    }

    /// Whether all watched name one of them, and have for a while.
    pub(crate) fn agreed(&self) -> Option<Agreed> {
        let (index, since) = agreement(&self.now())?;
        Some(Agreed { leader: self.places[index], since })
    }

    /// Whom more than half of them name, if it says so itself and `may` lead.
    pub(crate) fn followed(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        let views: Vec<Option<View>> = self.now().into_iter().map(|seen| seen.view).collect();
        let index = |at: &usize| {
            let Some(view) = &views[*at] else { return false };
            let names = |other: &Option<View>| {
                other.as_ref().is_some_and(|other| other.leader.as_ref() == Some(&view.own))
            };
            let count = views.iter().filter(|other| names(other)).count();
            names(&views[*at]) && count * 2 > views.len() && may(self.places[*at])
        };
        (0..views.len()).find(index).map(|at| self.places[at])
    }

    /// For an error message.
    pub(crate) fn said(&self) -> String {
        let word = |seen: &Seen| match &seen.view {
            None => "nothing".to_owned(),
            Some(View { leader: None, .. }) => "nobody".to_owned(),
            Some(View { leader: Some(leader), .. }) => leader.clone(),
        };
        self.now().iter().map(word).collect::<Vec<_>>().join(", ")
    }

    fn now(&self) -> Vec<Seen> {
        let copy =
            |seen: &Arc<Mutex<Seen>>| seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.seen.iter().map(copy).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Which of them all name, and since when: if each was asked again, [`HOLD`] after the last of them had come to it.
fn agreement(seen: &[Seen]) -> Option<(usize, Instant)> {
    let view = |seen: &Seen| seen.view.clone();
    let views: Vec<View> = seen.iter().map(view).collect::<Option<_>>()?;
    let leader = views.first()?.leader.as_ref()?;
    let agree = views.iter().all(|view| view.leader.as_ref() == Some(leader));
    let since = seen.iter().map(|seen| seen.since).max()?;
    let held = seen.iter().all(|seen| seen.last >= since + HOLD);
    let index = views.iter().position(|view| view.own == *leader)?;
    (agree && held).then_some((index, since))
}

/// A place that is not this one.
pub(crate) fn others(all: Range<usize>, than: usize) -> impl Iterator<Item = usize> {
    all.filter(move |&at| at != than)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(own: &str, leader: Option<&str>) -> Option<View> {
        Some(View { own: own.to_owned(), leader: leader.map(str::to_owned) })
    }

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn they_agree_since_the_last_of_them_does_and_only_if_it_lasts() {
        let start = Instant::now();
        let mut seen =
            [(); 2].map(|()| Seen { view: says("x", Some("gone")), since: start, last: start });
        seen[0].note(says("a", Some("b")), start + ms(700));
        assert_eq!(agreement(&seen), None, "one still names another");
        seen[1].note(says("b", Some("b")), start + ms(900));
        assert_eq!(agreement(&seen), None, "it has not lasted");
        seen[0].note(says("a", Some("b")), start + ms(1_450));
        assert_eq!(agreement(&seen), None, "one was not asked again");
        seen[1].note(says("b", Some("b")), start + ms(1_450));
        assert_eq!(agreement(&seen), Some((1, start + ms(900))));
        seen[1].note(None, start + ms(1_500));
        assert_eq!(agreement(&seen), None, "one does not answer");
        for (seen, own) in seen.iter_mut().zip(["a", "b"]) {
            seen.note(says(own, Some("b")), start + ms(1_600));
            seen.note(says(own, Some("b")), start + ms(2_200));
        }
        assert_eq!(agreement(&seen), Some((1, start + ms(1_600))), "what came before is void");
    }

    #[test]
    fn whom_nobody_asked_is_has_not_taken_over() {
        let start = Instant::now();
        let seen = [("a", "gone"), ("b", "gone")].map(|(own, leader)| Seen {
            view: says(own, Some(leader)),
            since: start,
            last: start + ms(5_000),
        });
        assert_eq!(agreement(&seen), None);
    }
}
