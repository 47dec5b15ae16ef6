use std::collections::BTreeMap;

use bellwether_proto::{Peer, Time};

/// Of two lives of one identity the older one stops, once it can have been told.
///
/// Like [`Settles`](super::Settles) it is judged at the end: only who made the trouble knows from when on nothing keeps
/// the older life from being told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OlderLifeStops {
    /// Earlier lives that ran on beside later ones: since when, and up to when.
    ghosts: BTreeMap<Peer, (Time, Option<Time>)>,
    spoke: bool,
}

impl OlderLifeStops {
    /// Its name in reports.
    pub const NAME: &'static str = "older_life_stops";

    /// An earlier life has become a ghost or has handled something as one.
    pub fn ghost(&mut self, now: Time, who: Peer, running: bool) {
        self.spoke |= self.ghosts.contains_key(&who);
        let (_, over) = self.ghosts.entry(who).or_insert((now, None));
        if !running {
            over.get_or_insert(now);
        }
    }

    /// Judges all of them: they must have stopped by `by`.
    ///
    /// # Errors
    ///
    /// One that had not.
    pub fn by(&self, by: Time) -> Result<(), String> {
        let late =
            |&(_, &(_, over)): &(&Peer, &(Time, Option<Time>))| over.is_none_or(|at| at > by);
        match self.ghosts.iter().find(late) {
            None => Ok(()),
            Some((who, (since, _))) => {
                Err(format!("{who} runs beside a later life since {since}, due to stop by {by}"))
            }
        }
    }

    /// The situation this guards against, and whether it could have arisen so far.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("an earlier life did something beside a later one", self.spoke)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::{Boot, NodeId};

    use super::*;

    #[test]
    fn fires_when_a_ghost_runs_on() {
        let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let ghost = Peer::new(NodeId::new(1), Boot::new(1));
        let mut invariant = OlderLifeStops::default();
        assert_eq!(invariant.by(at(9)), Ok(()));
        invariant.ghost(at(1), ghost, true);
        assert!(!invariant.sometimes().1);
        invariant.ghost(at(2), ghost, true);
        assert!(invariant.sometimes().1);
        assert!(invariant.by(at(9)).is_err());
        invariant.ghost(at(3), ghost, false);
        assert_eq!(invariant.by(at(3)), Ok(()));
        assert!(invariant.by(at(2)).is_err(), "too late");
    }
}
