//! Members that do not lead, killed one after another: how soon the others find out.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{agents::Agents, measured::Spread};

/// What became of members that were killed, in seconds.
#[derive(Debug)]
pub(crate) struct Kills {
    /// From the kill to the first survivor that suspected it.
    pub(crate) suspected: Spread,
    /// From the kill to the first survivor that gave it up.
    pub(crate) first: Spread,
    /// From then to the last one.
    pub(crate) spread: Spread,
    /// Survivors that did not within [`PATIENCE`], or had done so before.
    pub(crate) missed: usize,
    /// Who is next.
    next: usize,
}

/// Far longer than it should take.
const PATIENCE: Duration = Duration::from_secs(12);

impl Kills {
    pub(crate) fn new() -> Self {
        let [suspected, first, spread] = [const { Spread::new() }; 3];
        Self { suspected, first, spread, missed: 0, next: 0 }
    }

    /// Kills the next one, waits until all others have noticed, starts it again and waits until all have noticed that.
    /// In turn, so that everybody has run for long when it is killed.
    pub(crate) fn one_more(&mut self, agents: &mut Agents<'_>, period: Duration) {
        let count = agents.all().len();
        // Leaders are watched, and found sooner.
        while agents.leader(self.next).is_some_and(|answer| answer.is_leader) {
            self.next = (self.next + 1) % count;
        }
        let victim = self.next;
        self.next = (victim + 1) % count;
        let others: Vec<usize> = agents.all().filter(|&at| at != victim).collect();
        let name = agents.name(victim);
        // Not in step with the periods: multiples of the golden ratio are spread evenly over one.
        thread::sleep(period.mul_f64((self.first.count() as f64 * 0.618_034).fract()));
        let begun = Instant::now();
        agents.kill(victim);
        let said = |agents: &Agents<'_>, kind, since| -> Vec<Instant> {
            others.iter().filter_map(|&at| agents.said(at, kind, &name, since)).collect()
        };
        wait(|| said(agents, "member-failed", begun).len() == others.len());
        let after = |at: &Instant| (*at - begun).as_secs_f64();
        let failed = said(agents, "member-failed", begun);
        self.missed += others.len() - failed.len();
        if let (Some(first), Some(last)) = (failed.iter().min(), failed.iter().max()) {
            self.first.add(after(first));
            self.spread.add((*last - *first).as_secs_f64());
        }
        if let Some(first) = said(agents, "member-suspect", begun).iter().min() {
            self.suspected.add(after(first));
        }
        let again = Instant::now();
        agents.run(victim);
        wait(|| {
            let back = said(agents, "member-join", again).len() == others.len();
            back && agents.alive(victim) == agents.all().len()
        });
    }
}

fn wait(until: impl Fn() -> bool) {
    let begun = Instant::now();
    while !until() && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(20));
    }
}
