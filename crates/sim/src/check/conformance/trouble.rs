//! What goes wrong, case by case, before it gets quiet.

use bellwether_proto::{Duration, Rng};

use super::Case;
use crate::scenario::{Fault, FaultKind, State, Who};

/// Adds what a case brings, and returns when it is over.
pub(super) fn trouble(case: Case, rng: &mut Rng, faults: &mut Vec<Fault>) -> Duration {
    // Not in step with anybody's timers, and after the first leader is there.
    let at = Duration::from_secs(12) + rng.up_to(Duration::from_secs(3));
    let length = Duration::from_secs(8) + rng.up_to(Duration::from_secs(8));
    let mut add = |at, kind| {
        faults.push(Fault { at, spread: Duration::ZERO, every: None, until: None, kind })
    };
    let cut = |from, to| FaultKind::Cut { from, to, both: false, length: None };
    let leader = Who::Leader;
    match case {
        Case::Elect => Duration::ZERO,
        Case::Crash => {
            add(at, FaultKind::Crash(leader));
            at
        }
        Case::Leave => {
            add(at, FaultKind::Leave(leader));
            at
        }
        Case::Join => {
            add(at, FaultKind::Join { count: 1 });
            add(at + length, FaultKind::Join { count: 2 });
            at + length
        }
        Case::Partition => {
            add(at, FaultKind::Isolate(Who::Fraction(0.5)));
            at
        }
        Case::Heal => {
            add(at, FaultKind::Isolate(Who::Fraction(0.5)));
            add(at + length, FaultKind::Heal);
            at + length
        }
        Case::Deaf => {
            add(at, cut(None, Some(leader)));
            add(at + length, FaultKind::Heal);
            at + length
        }
        Case::Mute => {
            add(at, cut(Some(leader), None));
            add(at + length, FaultKind::Heal);
            at + length
        }
        Case::Loss => {
            add(at, FaultKind::Loss { rate: 0.3, length });
            at + length
        }
        Case::Duplication => {
            let by = Duration::from_secs(2);
            add(at, FaultKind::Duplicate { rate: 0.5, by, length });
            at + length + by
        }
        Case::Reordering => {
            let by = Duration::from_secs(2);
            add(at, FaultKind::Reorder { rate: 0.5, by, length });
            at + length + by
        }
        Case::RestartKept | Case::RestartLost => {
            let state = if case == Case::RestartKept { State::Kept } else { State::Lost };
            let back = at + rng.up_to(Duration::from_secs(2));
            add(at, FaultKind::Crash(leader));
            add(back, FaultKind::Recover { who: Who::All, state });
            back
        }
        Case::MassRestart => {
            let back = at + rng.up_to(Duration::from_secs(2));
            add(at, FaultKind::Crash(Who::All));
            add(back, FaultKind::Recover { who: Who::All, state: State::Lost });
            back
        }
        Case::Pause => {
            add(at, FaultKind::Pause { who: leader, length, buffer: 166 });
            at + length
        }
        Case::Drift => {
            let ppm = rng.below(1_000) as i32;
            add(Duration::ZERO, FaultKind::Drift { who: Who::All, ppm: 0 });
            add(at, FaultKind::Drift { who: Who::Fraction(0.5), ppm });
            add(at, FaultKind::Drift { who: Who::Fraction(0.5), ppm: -ppm });
            at
        }
        Case::Disk => {
            let who = if rng.chance(0.5) { leader } else { Who::Fraction(0.5) };
            add(at, FaultKind::Disk { who, length });
            add(at + rng.up_to(length), FaultKind::Elect(Who::All));
            // A node asks a disk that refused again once a second.
            at + length + Duration::from_secs(1)
        }
        Case::SlowDisk => {
            let who = if rng.chance(0.5) { leader } else { Who::Fraction(0.5) };
            // Such as disks are, such as they are in trouble, and one that does not come back.
            let by = [20, 300, 3_000, 60_000][rng.below(4) as usize];
            add(at, FaultKind::SlowDisk { who, by: Duration::from_millis(by), length });
            add(at + rng.up_to(length), FaultKind::Elect(Who::All));
            at + length
        }
        Case::Clone => {
            add(at, FaultKind::Clone { who: leader });
            at
        }
        // What differs is no fault of the world.
        Case::Differing => Duration::ZERO,
        Case::JoinElecting => {
            let join = at + rng.up_to(Duration::from_secs(3));
            add(at, FaultKind::Crash(leader));
            add(join, FaultKind::Join { count: 1 + rng.below(3) as u32 });
            join
        }
        Case::HalfStarted => {
            let who = Who::Fraction(0.2 + rng.unit() * 0.6);
            add(Duration::ZERO, FaultKind::Late { who, until: at });
            at
        }
        // Who is cut off from whom depends on who there is: the shipped worlds see to it.
        Case::Aged | Case::QuorumLoss | Case::Constrained | Case::Chained | Case::Link => at,
        // Who is restarted when depends on how many there are: likewise.
        Case::Upgrade => at,
        Case::Swarm => swarm(OF_MACHINES, rng, faults),
    }
}

/// Some of the other cases, one after another and overlapping; then everything is healed, everybody who
/// crashed is brought back, and one more joins, lest all have left.
pub(super) fn swarm(cases: &[Case], rng: &mut Rng, faults: &mut Vec<Fault>) -> Duration {
    let mut quiet = Duration::ZERO;
    let mut start = Duration::ZERO;
    for _ in 0..1 + rng.below(6) {
        let case = cases[rng.below(cases.len() as u64) as usize];
        let mut some = Vec::new();
        quiet = quiet.max(start + trouble(case, rng, &mut some));
        for fault in &mut some {
            fault.at += start;
            // The leader is not always the one to be hit.
            if rng.chance(0.3) {
                aim_at_random(&mut fault.kind);
            }
        }
        faults.append(&mut some);
        start += rng.up_to(Duration::from_secs(15));
    }
    let mut add = |kind| {
        faults.push(Fault { at: quiet, spread: Duration::ZERO, every: None, until: None, kind })
    };
    add(FaultKind::Heal);
    add(FaultKind::Recover { who: Who::All, state: State::Kept });
    add(FaultKind::Join { count: 1 });
    quiet
}

/// The swarm of a membership. Some of what it brings lasts for much longer than usual, longer than tombstones stand;
/// those that crash may stay down.
pub(super) fn upheaval(rng: &mut Rng, faults: &mut Vec<Fault>) -> Duration {
    let mut start = Duration::ZERO;
    let mut over = Duration::ZERO;
    for _ in 0..1 + rng.below(6) {
        let case = OF_MACHINES[rng.below(OF_MACHINES.len() as u64) as usize];
        let mut some = Vec::new();
        let length = trouble(case, rng, &mut some);
        let stretch = if rng.chance(0.2) { 2 + rng.below(8) } else { 1 };
        over = over.max(start + length * stretch);
        let first = some.first().map_or(Duration::ZERO, |fault| fault.at);
        for fault in &mut some {
            fault.at = start + first + fault.at.saturating_sub(first) * stretch;
            if let FaultKind::Crash(who) | FaultKind::Leave(who) | FaultKind::Pause { who, .. } =
                &mut fault.kind
                && *who == Who::Leader
            {
                *who = Who::Count(1 + rng.below(3) as u32);
            }
        }
        faults.append(&mut some);
        start += rng.up_to(Duration::from_secs(15));
    }
    let mut add = |kind| {
        faults.push(Fault { at: over, spread: Duration::ZERO, every: None, until: None, kind })
    };
    add(FaultKind::Heal);
    if rng.chance(0.5) {
        let state = if rng.chance(0.5) { State::Kept } else { State::Lost };
        add(FaultKind::Recover { who: Who::All, state });
    }
    if rng.chance(0.5) {
        add(FaultKind::Join { count: 1 });
    }
    over
}

pub(super) fn spare_disks(kind: &mut FaultKind) {
    if let FaultKind::Recover { state, .. } = kind {
        *state = State::Kept;
    }
}

pub(super) fn aim_at_random(kind: &mut FaultKind) {
    if let FaultKind::Crash(who)
    | FaultKind::Leave(who)
    | FaultKind::Pause { who, .. }
    | FaultKind::Disk { who, .. }
    | FaultKind::SlowDisk { who, .. }
    | FaultKind::Clone { who }
    | FaultKind::Cut { from: Some(who), .. }
    | FaultKind::Cut { to: Some(who), .. } = kind
        && *who == Who::Leader
    {
        *who = Who::Count(1);
    }
}

/// What is mixed where there are no hosts.
const OF_MACHINES: &[Case] = &[
    Case::Elect,
    Case::Crash,
    Case::Leave,
    Case::Join,
    Case::Partition,
    Case::Heal,
    Case::Deaf,
    Case::Mute,
    Case::Loss,
    Case::Duplication,
    Case::Reordering,
    Case::RestartKept,
    Case::RestartLost,
    Case::MassRestart,
    Case::Pause,
    Case::Drift,
];
