use std::collections::BTreeMap;

use bellwether_proto::{Duration, NodeId, Time};

/// For how long something has been wrong between an observer and a subject. What goes wrong before all is
/// quiet is counted from then on.
#[derive(Clone, Debug)]
pub(super) struct Spells {
    quiet: Time,
    allowed: Duration,
    open: BTreeMap<(NodeId, NodeId), Time>,
    began: bool,
}

impl Spells {
    pub(super) const fn new(quiet: Time, allowed: Duration) -> Self {
        Self { quiet, allowed, open: BTreeMap::new(), began: false }
    }

    /// Whether any spell ever began.
    pub(super) const fn began(&self) -> bool {
        self.began
    }

    /// From now on something is wrong between the two, or no longer is.
    pub(super) fn set(
        &mut self,
        now: Time,
        observer: NodeId,
        subject: NodeId,
        wrong: bool,
    ) -> Result<(), String> {
        let pair = (observer, subject);
        if wrong {
            self.open.entry(pair).or_insert(now);
            self.began = true;
            return Ok(());
        }
        if self.open.is_empty() {
            return Ok(());
        }
        self.open.remove(&pair).map_or(Ok(()), |since| self.judge(now, pair, since))
    }

    /// The run is over: the first spell that has been going on for too long.
    pub(super) fn finish(&self, now: Time) -> Result<(), String> {
        self.open.iter().try_for_each(|(&pair, &since)| self.judge(now, pair, since))
    }

    fn judge(
        &self,
        now: Time,
        (observer, subject): (NodeId, NodeId),
        since: Time,
    ) -> Result<(), String> {
        let length = now.since(since.max(self.quiet).min(now));
        if length <= self.allowed {
            return Ok(());
        }
        let (quiet, allowed) = (self.quiet, self.allowed);
        Err(format!(
            "observer={observer} subject={subject} from={since} for={length} quiet={quiet} \
             allowed={allowed}"
        ))
    }
}
