use std::collections::BTreeMap;

use bellwether_proto::{Boot, Duration, Incarnation, NodeId, Time};

use super::Record;

/// M1 and M3 of `docs/rules/medley.md`: nobody returns from the dead but by a larger life or incarnation of its own.
/// Three things are judged, all against a ledger of what every node has really issued:
///
/// * no observer records a life or incarnation that its owner never issued;
/// * who was recorded as failed or left at an observer is listed there again only with a larger one, however
///   long the tombstone has been forgotten;
/// * who is gone, and off the list of every running node, is listed nowhere again until it starts. That is
///   claimed once all is quiet and what was under way has arrived: until then a node that was cut off or
///   frozen may still get older news than it deserves.
#[derive(Clone, Debug)]
pub struct NoResurrection {
    /// The last incarnation of every life of every node, the first life first.
    issued: BTreeMap<NodeId, Vec<Incarnation>>,
    /// The largest evidence of death that reached the present life of an observer.
    buried: BTreeMap<NodeId, BTreeMap<NodeId, Record>>,
    /// Gone, and on no list: since when.
    gone: BTreeMap<NodeId, Time>,
    /// From when on all is quiet, and how long a message takes then; `None` if that is not known.
    quiet: Option<(Time, Duration)>,
    returned: bool,
}

impl NoResurrection {
    /// The name in reports.
    pub const NAME: &'static str = "no_resurrection";

    /// Nothing is issued yet. From `quiet` on, messages take no longer than this.
    pub fn new(quiet: Option<(Time, Duration)>) -> Self {
        let (issued, buried, gone) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { issued, buried, gone, quiet, returned: false }
    }

    /// `node` begins a new life, in which it knows of no deaths.
    pub fn born(&mut self, node: NodeId) {
        self.issued.entry(node).or_default().push(Incarnation::default());
        self.buried.remove(&node);
        self.gone.remove(&node);
    }

    /// `node` has reached this incarnation in its present life.
    pub fn issued(&mut self, node: NodeId, incarnation: Incarnation) {
        if let Some(last) = self.issued.get_mut(&node).and_then(|lives| lives.last_mut()) {
            *last = incarnation.max(*last);
        }
    }

    /// `node` is gone, and on no running node's list any more.
    pub fn forgotten(&mut self, now: Time, node: NodeId) {
        self.gone.insert(node, now);
    }

    /// `node` is on a list it was given, not one it was brought back to.
    #[inline]
    pub fn given(&mut self, node: NodeId) {
        if !self.gone.is_empty() {
            self.gone.remove(&node);
        }
    }

    /// Judges what `observer` now records of `subject`.
    ///
    /// # Errors
    ///
    /// What it should not know, or should not believe any more.
    pub fn recorded(
        &mut self,
        now: Time,
        observer: NodeId,
        subject: NodeId,
        record: &Record,
    ) -> Result<(), String> {
        let pair = format_args!("observer={observer} subject={subject} record={record}");
        if !self.is_issued(subject, record) {
            let issued = self.issued.get(&subject).map_or(&[][..], Vec::as_slice);
            let last = issued.last().copied().unwrap_or_default();
            return Err(format!("{pair} issued={}.{}", issued.len(), last.get()));
        }
        if !record.state.is_listed() {
            let buried = self.buried.entry(observer).or_default();
            let evidence = buried.entry(subject).or_insert(*record);
            if record.life() > evidence.life() {
                *evidence = *record;
            }
            return Ok(());
        }
        let evidence = self.buried.get(&observer).and_then(|buried| buried.get(&subject));
        if let Some(evidence) = evidence {
            if record.life() <= evidence.life() {
                return Err(format!("{pair} evidence={evidence}"));
            }
            self.returned = true;
        }
        match (self.gone.remove(&subject), self.quiet) {
            (Some(gone), Some((quiet, way))) if now > gone.max(quiet) + way => {
                Err(format!("{pair} gone={gone}"))
            }
            _ => Ok(()),
        }
    }

    /// Founders are listed in their first life before they have spoken: that is configured, not claimed.
    fn is_issued(&self, subject: NodeId, record: &Record) -> bool {
        if record.life() == (Boot::new(1), Incarnation::default()) {
            return true;
        }
        let lives = self.issued.get(&subject).map_or(&[][..], Vec::as_slice);
        let life = usize::try_from(record.boot.get()).ok().and_then(|boot| boot.checked_sub(1));
        life.and_then(|life| lives.get(life)).is_some_and(|&last| record.incarnation <= last)
    }

    /// The situation this guards against, and whether it arose.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("somebody declared dead was listed again", self.returned)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::membership::medley::State;

    use super::*;

    const A: NodeId = NodeId::new(1);
    const B: NodeId = NodeId::new(2);

    fn at(seconds: u64) -> Time {
        Time::from_micros(seconds * 1_000_000)
    }

    fn born() -> NoResurrection {
        let mut invariant = NoResurrection::new(Some((at(5), Duration::from_secs(1))));
        [A, B].into_iter().for_each(|node| invariant.born(node));
        invariant
    }

    #[test]
    fn fires_when_a_tombstone_is_not_outbid() {
        let mut invariant = born();
        assert_eq!(invariant.recorded(at(9), A, B, &Record::new(State::Failed, 1, 0)), Ok(()));
        assert!(!invariant.sometimes().1);
        assert_eq!(
            invariant.recorded(at(9), A, B, &Record::new(State::Alive, 1, 0)),
            Err("observer=n1 subject=n2 record=Alive@1.0 evidence=Failed@1.0".into())
        );
        invariant.issued(B, Incarnation::new(1));
        assert_eq!(invariant.recorded(at(9), A, B, &Record::new(State::Alive, 1, 1)), Ok(()));
        assert!(invariant.sometimes().1);
        invariant.born(A);
        assert_eq!(
            invariant.recorded(at(9), A, B, &Record::new(State::Alive, 1, 0)),
            Ok(()),
            "new life"
        );
    }

    #[test]
    fn fires_on_what_was_never_issued() {
        let mut invariant = born();
        assert_eq!(
            invariant.recorded(at(9), A, B, &Record::new(State::Suspect, 1, 1)),
            Err("observer=n1 subject=n2 record=Suspect@1.1 issued=1.0".into())
        );
        assert_eq!(
            invariant.recorded(at(9), A, B, &Record::new(State::Alive, 2, 0)),
            Err("observer=n1 subject=n2 record=Alive@2.0 issued=1.0".into())
        );
        invariant.born(B);
        assert_eq!(invariant.recorded(at(9), A, B, &Record::new(State::Alive, 2, 0)), Ok(()));
    }

    #[test]
    fn fires_on_a_zombie() {
        let mut invariant = born();
        let record = Record::new(State::Alive, 1, 0);
        for (gone, listed) in [(4, 6), (7, 8)] {
            invariant.forgotten(at(gone), B);
            assert_eq!(invariant.recorded(at(listed), A, B, &record), Ok(()), "under way");
        }
        invariant.forgotten(at(7), B);
        assert_eq!(
            invariant.recorded(at(9), A, B, &record),
            Err("observer=n1 subject=n2 record=Alive@1.0 gone=7.000000s".into())
        );
        invariant.forgotten(at(7), B);
        invariant.given(B);
        assert_eq!(invariant.recorded(at(9), A, B, &record), Ok(()));
    }
}
