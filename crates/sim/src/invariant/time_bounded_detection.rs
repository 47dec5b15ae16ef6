use std::ops::RangeInclusive;

use bellwether_proto::{Duration, NodeId, Time};

/// P3 and P4 of `docs/rules/medley.md`: with bags, no feedback and no loss, the only crash of a run is first detected
/// within the bound that the bags of the living give, and never before a probe and a suspicion have passed.
///
/// The bag bounds the periods until somebody pings it. A cautious node may need more than one silence: it then
/// gives its next periods to the same target, so these add to the bound. Each node says how many: where
/// nothing is lost its doubt is never more than that of a node that has seen nothing yet, which for two nodes,
/// without helpers, takes two pings. The suspicion is as long as the configuration says for a group of
/// this size: hardened it grows with the group, and with Lifeguard it depends on how many accuse.
///
/// Anything else that changes a list changes the bags; after that nothing is claimed.
#[derive(Clone, Debug)]
pub struct TimeBoundedDetection {
    /// The longest time between two pings of a node.
    longest_period: Duration,
    /// From the ping that is not answered to the removal: at least, and at most.
    verdict: RangeInclusive<Duration>,
    /// A ping under way when its target crashes is not answered either: so much earlier may it begin.
    under_way: Duration,
    crash: Crash,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Crash {
    None,
    Open {
        subject: NodeId,
        at: Time,
        due: Option<Time>,
    },
    Found,
    /// More than one change: no claim.
    Disturbed,
}

impl TimeBoundedDetection {
    /// The name in reports.
    pub const NAME: &'static str = "time_bounded_detection";

    /// Nothing has happened yet.
    pub const fn new(
        longest_period: Duration,
        verdict: RangeInclusive<Duration>,
        under_way: Duration,
    ) -> Self {
        Self { longest_period, verdict, under_way, crash: Crash::None }
    }

    /// A node crashes.
    pub fn crashed(&mut self, now: Time, subject: NodeId) {
        self.crash = match self.crash {
            Crash::None => Crash::Open { subject, at: now, due: None },
            Crash::Open { .. } | Crash::Found | Crash::Disturbed => Crash::Disturbed,
        };
    }

    /// A node starts: if after a crash, then nothing is claimed.
    pub fn started(&mut self) {
        if self.crash != Crash::None {
            self.crash = Crash::Disturbed;
        }
    }

    /// The crashed node, until it is found.
    pub fn sought(&self) -> Option<NodeId> {
        match self.crash {
            Crash::Open { subject, .. } => Some(subject),
            Crash::None | Crash::Found | Crash::Disturbed => None,
        }
    }

    /// Somebody live will ping the crashed node, for the last time it takes, within so many of its periods.
    pub fn promised(&mut self, now: Time, periods: u64) {
        if let Crash::Open { due, .. } = &mut self.crash {
            let promised = now + self.longest_period * periods + *self.verdict.end();
            *due = Some(due.map_or(promised, |due| due.min(promised)));
        }
    }

    /// Somebody takes `subject` off its list.
    ///
    /// # Errors
    ///
    /// When it did, and when it could or should have.
    pub fn removed(&mut self, now: Time, subject: NodeId) -> Result<(), String> {
        let Crash::Open { subject: sought, at, due } = self.crash else { return Ok(()) };
        if sought != subject {
            return Ok(());
        }
        self.crash = Crash::Found;
        let least = self.verdict.start().saturating_sub(self.under_way);
        if now.since(at) < least {
            return Err(format!("subject={subject} crashed={at} detected={now} least={least}"));
        }
        late(subject, at, due, now)
    }

    /// The run is over.
    ///
    /// # Errors
    ///
    /// By when the crash should have been detected.
    pub fn finish(&self, now: Time) -> Result<(), String> {
        match self.crash {
            Crash::Open { subject, at, due } => late(subject, at, due, now),
            Crash::None | Crash::Found | Crash::Disturbed => Ok(()),
        }
    }

    /// The situation this guards against, and whether it arose.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("a single crash was to be detected", !matches!(self.crash, Crash::None | Crash::Disturbed))
    }
}

fn late(subject: NodeId, at: Time, due: Option<Time>, now: Time) -> Result<(), String> {
    match due.filter(|&due| now > due) {
        Some(due) => Err(format!("subject={subject} crashed={at} due={due} now={now}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBJECT: NodeId = NodeId::new(7);

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn crashed() -> TimeBoundedDetection {
        let second = Duration::from_secs(1);
        let mut invariant =
            TimeBoundedDetection::new(second * 2, second * 18..=second * 18, second);
        assert!(!invariant.sometimes().1);
        invariant.crashed(at(10), SUBJECT);
        invariant.promised(at(11), 9);
        invariant.promised(at(12), 5);
        invariant
    }

    #[test]
    fn fires_when_a_crash_is_found_late_or_not_at_all() {
        let mut invariant = crashed();
        assert!(invariant.sometimes().1);
        assert_eq!(invariant.finish(at(40)), Ok(()), "12 s, five periods and the verdict");
        let late = "subject=n7 crashed=10.000000s due=40.000000s now=41.000000s".to_owned();
        assert_eq!(invariant.finish(at(41)), Err(late.clone()));
        assert_eq!(invariant.removed(at(41), SUBJECT), Err(late));
        assert_eq!(invariant.finish(at(99)), Ok(()), "found");
    }

    #[test]
    fn fires_when_a_crash_is_found_too_soon() {
        assert_eq!(crashed().removed(at(27), SUBJECT), Ok(()));
        assert_eq!(
            crashed().removed(at(26), SUBJECT),
            Err("subject=n7 crashed=10.000000s detected=26.000000s least=17s".into())
        );
    }

    #[test]
    fn claims_nothing_of_several_changes() {
        let mut invariant = crashed();
        invariant.started();
        assert_eq!(invariant.removed(at(11), SUBJECT), Ok(()));
        assert!(!invariant.sometimes().1);
    }
}
