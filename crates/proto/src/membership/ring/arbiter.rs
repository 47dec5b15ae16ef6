//! An arbitrator's side of the rules: Algorithm 1 (R5), upgrades (R7, R7h), closes (R8.10) and concessions (R12).
//!
//! Plain bookkeeping: it takes requests and the time, and returns answers. Arbitrators never talk to each other, so
//! this is all there is of them.

use alloc::{collections::BTreeMap, vec::Vec};

use super::{
    config::{Config, Fresh, Upgrade},
    message::{Group, Life, Reason, Version, Vote},
};
use crate::time::{Duration, Time};

/// The lower and the higher of two.
pub type Pair = (Life, Life);

/// Two lives as a pair, and which of the two the first is.
pub fn pair(one: Life, other: Life) -> (Pair, usize) {
    if one < other { ((one, other), 0) } else { ((other, one), 1) }
}

/// The central arbitrator's one list of who was accused lately (R13).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Central {
    failed: BTreeMap<Life, Time>,
}

impl Central {
    /// `by` asks for the removal of `accused`; Algorithm 1.
    pub fn ask(
        &mut self,
        now: Time,
        (by, accused): (Life, Life),
        up_since: Time,
        memory: Duration,
    ) -> Vote {
        self.failed.retain(|_, &mut since| now.since(since) < memory);
        if now.since(up_since) < memory {
            self.failed.entry(by).or_insert(now);
            self.failed.entry(accused).or_insert(now);
            return Vote::Reject(Reason::Fresh);
        }
        if self.failed.contains_key(&by) {
            return Vote::Reject(Reason::Conflict);
        }
        self.failed.entry(accused).or_insert(now);
        Vote::Accept
    }

    /// Those accused lately.
    pub fn accused(&self) -> impl Iterator<Item = Life> + '_ {
        self.failed.keys().copied()
    }
}

/// What one arbitrator holds of one pair; `[low, high]` throughout.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Seat {
    born: u64,
    /// As published, the version last seen.
    version: Version,
    /// Who was accused lately, and since when.
    failed: [Option<Time>; 2],
    /// When an end asked last, and what it was told.
    asked: [Option<(Time, Version, Vote)>; 2],
    /// As published, when an end proposed last.
    proposed: [Option<Time>; 2],
    /// The latest group known to be installed, and one that is promised. Joint only.
    installed: Option<Group>,
    promised: Option<Group>,
    closed: bool,
}

/// What decides an answer besides the seat.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The rules followed.
    pub config: &'a Config,
    /// The life that arbitrates.
    pub me: Life,
    /// Since when it has been up.
    pub up_since: Time,
}

impl Rules<'_> {
    fn memory(&self) -> Duration {
        self.config.waiting(self.config.memory)
    }

    fn is_fresh(&self, now: Time, group: &Group) -> bool {
        match self.config.fresh {
            Fresh::Reject => now.since(self.up_since) < self.memory(),
            Fresh::Version => !group.seats(self.me) && !self.config.is_external(self.me.id()),
        }
    }
}

impl Seat {
    /// The end `by` asks to stay (R5).
    pub fn ask(&mut self, now: Time, by: usize, group: &Group, rules: Rules<'_>) -> Vote {
        self.trim(now, rules.memory());
        if let Some(vote) = self.lease(group.born) {
            return vote;
        }
        if let Some((_, version, vote)) = self.asked[by]
            && version == group.version
        {
            return vote;
        }
        let vote = self.judge(now, by, group, rules);
        self.asked[by] = Some((now, group.version, vote));
        vote
    }

    fn judge(&mut self, now: Time, by: usize, group: &Group, rules: Rules<'_>) -> Vote {
        if rules.config.upgrade == Upgrade::Published {
            if group.version.is_behind(self.version) {
                return Vote::Reject(Reason::Stale);
            }
            self.version = group.version;
        }
        if self.closed {
            return Vote::Closed;
        }
        if rules.is_fresh(now, group) {
            // As published it accuses both, lest a vote it has forgotten is given twice.
            if rules.config.fresh == Fresh::Reject {
                self.failed.iter_mut().for_each(|since| *since = since.or(Some(now)));
            }
            return Vote::Reject(Reason::Fresh);
        }
        if self.failed[by].is_some() {
            return Vote::Reject(Reason::Conflict);
        }
        self.failed[1 - by] = self.failed[1 - by].or(Some(now));
        Vote::Accept
    }

    /// Later groups than the one asked: they must be won too (R7h.4).
    pub fn newer(&self, group: &Group) -> Vec<Group> {
        let later = |other: &&Group| other.version.low > group.version.low;
        let known = [&self.installed, &self.promised].into_iter().flatten().filter(later);
        known.filter(|other| other.born == group.born).cloned().collect()
    }

    /// The end `by` leaves (R12.3). What the other, who has asked in vain, is to be told now.
    pub fn concede(&mut self, now: Time, by: usize, born: u64) -> Option<Vote> {
        if born != self.born {
            return None;
        }
        self.failed[1 - by] = None;
        self.failed[by] = Some(now);
        let (_, version, vote) = self.asked[1 - by]?;
        if vote != Vote::Reject(Reason::Conflict) {
            return None;
        }
        self.asked[1 - by] = Some((now, version, Vote::Accept));
        Some(Vote::Accept)
    }

    /// The end `by` proposes another group; whether it is accepted.
    pub fn propose(
        &mut self,
        now: Time,
        by: usize,
        (base, next): (&Group, &Group),
        rules: Rules<'_>,
    ) -> bool {
        self.trim(now, rules.memory());
        if self.lease(base.born).is_some() || self.closed || self.asked[1 - by].is_some() {
            return false;
        }
        match rules.config.upgrade {
            Upgrade::Published => {
                let blocked = self.proposed[1 - by].is_some();
                self.proposed[by] = Some(now);
                if blocked {
                    return false;
                }
                match by {
                    0 => self.version.low = next.version.low,
                    _ => self.version.high = next.version.high,
                }
            }
            Upgrade::Joint => {
                let installed = self.installed.as_ref().map_or(0, |group| group.version.low);
                if base.version.low > installed {
                    self.installed = Some(base.clone());
                }
                self.promised = Some(next.clone());
            }
        }
        true
    }

    /// The proposal of this version is off.
    pub fn retract(&mut self, version: Version) {
        self.promised = self.promised.take().filter(|group| group.version != version);
    }

    /// Either end wants the lease to end; whether it does here.
    pub fn close(&mut self, now: Time, born: u64, memory: Duration) -> bool {
        self.trim(now, memory);
        match self.lease(born) {
            Some(_) => true,
            None => {
                self.closed |= self.asked == [None, None];
                self.closed
            }
        }
    }

    /// The version it holds, as published.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Which ends were accused lately.
    pub fn accused(&self) -> [bool; 2] {
        self.failed.map(|since| since.is_some())
    }

    /// A later lease of the pair begins a new page; an earlier one is over.
    fn lease(&mut self, born: u64) -> Option<Vote> {
        if born > self.born {
            // Who is accused stays accused, whichever lease it was.
            *self = Self { born, failed: self.failed, ..Self::default() };
        }
        (born < self.born).then_some(Vote::Closed)
    }

    fn trim(&mut self, now: Time, memory: Duration) {
        let over = |since: Time| now.since(since) >= memory;
        for end in 0..2 {
            self.failed[end] = self.failed[end].filter(|&since| !over(since));
            self.asked[end] = self.asked[end].filter(|&(since, ..)| !over(since));
            self.proposed[end] = self.proposed[end].filter(|&since| !over(since));
        }
    }
}
