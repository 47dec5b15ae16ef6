//! Finding all histories, each once, and following one.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::*;

/// The search of one part.
struct Search<'f, M: Machine, T> {
    fixed: &'f Fixed<'f, M>,
    desk: Desk<M>,
    seen: Digests,
    found: Found<T>,
}

/// What one part has found.
#[derive(Default)]
struct Found<T> {
    states: u64,
    histories: u64,
    cut: bool,
    violation: Option<(String, Vec<Deviation>)>,
    tally: T,
}

impl<'f, M: Explorable, T: Default> Search<'f, M, T> {
    fn new(fixed: &'f Fixed<'f, M>) -> Self {
        Self { fixed, desk: Desk::new(), seen: Digests::default(), found: Found::default() }
    }

    /// Follows everything that begins with one of these, each as far as its share of states goes.
    fn all<J: Judge<M, Tally = T>>(
        mut self,
        roots: Vec<World<M, J>>,
        most: u64,
        given_up: impl Fn() -> bool,
    ) -> Found<T> {
        let mut waiting = roots.len() as u64;
        let mut open = Vec::new();
        // The later the first deviation, the less there is to follow: what these leave of their shares goes to others.
        for root in roots.into_iter().rev() {
            let share = (most - self.found.states.min(most)) / waiting;
            let limit = self.found.states.saturating_add(share);
            waiting -= 1;
            open.push(root);
            while let Some(world) = open.pop() {
                self.follow(world, &mut open, limit);
                if self.found.violation.is_some() || given_up() {
                    return self.found;
                }
                if self.found.states >= limit {
                    self.found.cut |= !open.is_empty();
                    open.clear();
                }
            }
        }
        self.found
    }

    /// Follows one history to its end, and notes where others leave it.
    fn follow<J: Judge<M, Tally = T>>(
        &mut self,
        mut world: World<M, J>,
        open: &mut Vec<World<M, J>>,
        limit: u64,
    ) {
        if let Err(problem) = self.walk(&mut world, open, limit) {
            self.found.violation = Some((problem, world.path()));
        }
        world.judge.tally(&mut self.found.tally);
    }

    fn walk<J: Judge<M, Tally = T>>(
        &mut self,
        world: &mut World<M, J>,
        open: &mut Vec<World<M, J>>,
        limit: u64,
    ) -> Result<(), String> {
        let fixed = self.fixed;
        while let Some((at, next)) = world.peek(fixed) {
            if self.found.states >= limit {
                self.found.cut = true;
                return Ok(());
            }
            let node = next.node();
            let deviates = world.left > 0 && fixed.open(at) && world.places[node].machine.is_some();
            let id = world.places[node].peer.id;
            let mut before = None;
            if deviates {
                let crashes = world.may(fixed, Kind::Crash, node);
                if crashes {
                    let what = What::Crash { node: id, written: false };
                    fork_down(world, fixed, open, (at, node), what);
                }
                if world.may(fixed, Kind::Pause, node) {
                    for &length in &fixed.settings.pauses {
                        let mut other = world.clone();
                        other.deviate(fixed, at, What::Pause { node: id, length });
                        open.push(other);
                    }
                }
                // Who writes, crashes and stays down might as well not have written.
                let returns = crashes && world.left > 1 && world.may(fixed, Kind::Restart, node);
                if (returns && fixed.model.build.is_some()) || world.may(fixed, Kind::Refusal, node)
                {
                    before = Some(world.clone());
                }
            }
            let sent = world.sent;
            if !world.step(fixed, &mut self.desk, (at, next))? {
                continue;
            }
            // Whether it wrote to its disk is known only now.
            let kept = |world: &World<M, J>| world.places[node].kept.as_ref().map(Arc::as_ptr);
            if let Some(before) = before
                && kept(&before) != kept(world)
            {
                if before.may(fixed, Kind::Crash, node) {
                    let what = What::Crash { node: id, written: true };
                    fork_down(&before, fixed, open, (at, node), what);
                }
                if before.may(fixed, Kind::Refusal, node) {
                    let what = What::Refusal { node: id };
                    match fixed.model.not_kept {
                        None => fork_down(&before, fixed, open, (at, node), what),
                        Some(_) => {
                            let mut other = before;
                            other.deviate(fixed, at, what);
                            open.push(other);
                        }
                    }
                }
            }
            if !self.seen.insert(world.identity(fixed)) {
                self.found.histories += 1;
                // Where it leads was judged when it was first seen.
                let _judged = world.end(true);
                return Ok(());
            }
            self.found.states += 1;
            if world.left > 0 && fixed.open(at) {
                for number in sent + 1..=world.sent {
                    fork_message(world, fixed, open, (at, node), number);
                }
            }
            if world.judge.enough() {
                break;
            }
        }
        self.found.histories += 1;
        world.end(false)
    }
}

/// A node crashes, and stays down or comes back; having written something, it comes back from that.
fn fork_down<M: Explorable, J: Judge<M>>(
    world: &World<M, J>,
    fixed: &Fixed<'_, M>,
    open: &mut Vec<World<M, J>>,
    (at, index): (Time, usize),
    what: What,
) {
    let node = world.places[index].peer.id;
    let written = matches!(what, What::Crash { written: true, .. });
    let mut down = world.clone();
    down.deviate(fixed, at, what);
    if down.left > 0 && fixed.model.build.is_some() {
        for (kind, lost) in [(Kind::Restart, false), (Kind::LostDisk, true)] {
            // An empty disk cannot be lost, and what is written to one that is lost makes no difference.
            let same = lost && (written || down.places[index].kept.is_none());
            if !same && down.may(fixed, kind, index) {
                for &after in &fixed.settings.down {
                    let mut back = down.clone();
                    back.deviate(fixed, at, What::Restart { node, after, lost });
                    open.push(back);
                }
            }
        }
    }
    if !written {
        open.push(down);
    }
}

/// A message that was just sent is late, lost, or the like.
fn fork_message<M: Explorable, J: Judge<M>>(
    world: &World<M, J>,
    fixed: &Fixed<'_, M>,
    open: &mut Vec<World<M, J>>,
    (at, sender): (Time, usize),
    number: u64,
) {
    for what in [
        What::Loss { number },
        What::Delay { number },
        What::Duplicate { number },
        What::Cut { number },
    ] {
        if world.may(fixed, what.kind(), sender) {
            let mut other = world.clone();
            other.deviate(fixed, at, what);
            open.push(other);
        }
    }
}

/// Follows every history with at most so many deviations.
///
/// First deviations are dealt into [parts](Settings::parts), which are searched in parallel and know nothing of each
/// other's states: what is found does not depend on the number of threads.
pub fn explore<M: Explorable, J: Judge<M>>(
    model: &Model<'_, M>,
    settings: &Settings,
    judge: J,
) -> Explored<J::Tally> {
    let fixed = Fixed::new(model, settings);
    let mut trunk: Search<'_, M, J::Tally> = Search::new(&fixed);
    let mut world = World::new(&fixed, judge.clone());
    let mut first = Vec::new();
    match world.begin(&fixed, &mut trunk.desk) {
        Ok(()) => trunk.follow(world, &mut first, settings.most),
        Err(problem) => trunk.found.violation = Some((problem, Vec::new())),
    }
    let mut all = trunk.found;
    if all.violation.is_none() {
        let most = settings.most - all.states.min(settings.most);
        let count = settings.parts.clamp(1, first.len().max(1));
        let mut parts: Vec<Vec<World<M, J>>> = (0..count).map(|_| Vec::new()).collect();
        for (number, world) in first.into_iter().enumerate() {
            parts[number % count].push(world);
        }
        // What is reported is what the parts found up to the first with a violation; others may as well stop.
        let first = AtomicUsize::new(usize::MAX);
        let search = |(number, roots)| {
            let given_up = || first.load(Ordering::Relaxed) < number;
            let found = Search::new(&fixed).all(roots, most / count as u64, given_up);
            if found.violation.is_some() {
                first.fetch_min(number, Ordering::Relaxed);
            }
            found
        };
        let parts: Vec<Found<J::Tally>> = parts.into_par_iter().enumerate().map(search).collect();
        for part in parts {
            all.states += part.states;
            all.histories += part.histories;
            all.cut |= part.cut;
            J::merge(&mut all.tally, part.tally);
            all.violation = part.violation;
            if all.violation.is_some() {
                break;
            }
        }
    }
    let Found { states, histories, cut, violation, tally } = all;
    let violation = violation.map(|(problem, path)| {
        let mut told = Vec::new();
        let keep = |line: Told<'_>| match line {
            Told::Deviation(line) => told.push(line.to_owned()),
            Told::Step(_) => {}
        };
        let again = replay(model, settings, judge, &path, keep);
        debug_assert_eq!(again.as_ref(), Err(&problem), "a history is what its deviations make it");
        Violation { problem, path, told }
    });
    Explored { states, histories, cut, violation, tally }
}

/// A line about a history.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Told<'a> {
    /// What a node was given.
    Step(&'a str),
    /// What went wrong.
    Deviation(&'a str),
}

/// Follows the one history that leaves the regular one here, telling of every step.
///
/// # Errors
///
/// What the judge says does not hold.
pub fn replay<M: Explorable, J: Judge<M>>(
    model: &Model<'_, M>,
    settings: &Settings,
    judge: J,
    path: &[Deviation],
    mut tell: impl FnMut(Told<'_>),
) -> Result<(), String> {
    let fixed = Fixed::new(model, settings);
    let mut desk = Desk::new();
    let mut world = World::new(&fixed, judge);
    world.begin(&fixed, &mut desk)?;
    let mut ahead = path.iter().peekable();
    loop {
        while let Some(deviation) = ahead.next_if(|next| next.step <= world.steps) {
            let letter = deviation.what.message().and_then(|number| {
                let letter = world.queue.iter().find(|letter| letter.number == number)?;
                let to = model.nodes[letter.to].0.id;
                Some(format!(" ({} -> {to}: {:?})", letter.from, letter.message))
            });
            tell(Told::Deviation(&format!("{deviation}{}", letter.unwrap_or_default())));
            world.deviate(&fixed, deviation.at, deviation.what);
        }
        let Some((at, next)) = world.peek(&fixed) else { break };
        let peer = world.places[next.node()].peer;
        let line = match (next, world.queue.last()) {
            (Next::Delivery(_), Some(letter)) => {
                format!("{at} {} -> {peer}: {:?}", letter.from, letter.message)
            }
            (Next::Script(index), _) => {
                let number = fixed.script[index][world.places[index].script];
                let what = &model.script[number].2;
                match what {
                    Scripted::Feed(feed) => format!("{at} {peer}: {feed:?}"),
                    Scripted::Command(command) => format!("{at} {peer}: {command:?}"),
                    Scripted::Message(from, message) => {
                        format!("{at} {from} -> {peer}: {message:?}")
                    }
                    Scripted::Leave => format!("{at} {peer}: leave"),
                    Scripted::Crash => format!("{at} {peer}: crash"),
                    Scripted::Restart(after) => {
                        format!("{at} {peer}: crash, and restart in {after}")
                    }
                    Scripted::Pause(length) => format!("{at} {peer}: pause for {length}"),
                }
            }
            (Next::Restart(_), _) => format!("{at} {peer}: restart"),
            _ => format!("{at} {peer}: timeout"),
        };
        tell(Told::Step(&line));
        world.step(&fixed, &mut desk, (at, next))?;
        if world.judge.enough() {
            break;
        }
    }
    world.end(false)
}
