use std::collections::BTreeMap;

use bellwether_proto::membership::ring::Life;

/// Of two that accuse each other at most one may stay: never are both arbitrations of a pair won (S1 of
/// `docs/rules/arbitrated.md`).
#[derive(Clone, Debug, Default)]
pub struct OneOfTwoWins {
    winners: BTreeMap<(Life, Life), Life>,
    contested: bool,
}

impl OneOfTwoWins {
    /// Its name in reports.
    pub const NAME: &'static str = "one_of_two_wins";

    /// `winner` has won against `accused`.
    ///
    /// # Errors
    ///
    /// The two that both have.
    pub fn wins(&mut self, winner: Life, accused: Life) -> Result<(), String> {
        self.contested = true;
        let pair = (winner.min(accused), winner.max(accused));
        let first = *self.winners.entry(pair).or_insert(winner);
        if first == winner {
            return Ok(());
        }
        Err(format!("pair=[{}, {}]", pair.0.peer, pair.1.peer))
    }

    /// The situation this guards against, and whether it could have arisen so far.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("an arbitration was won", self.contested)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::{Boot, Incarnation, NodeId, Peer};

    use super::*;

    #[test]
    fn fires_when_both_win_and_not_when_one_wins_twice() {
        let life = |id| Life {
            peer: Peer::new(NodeId::new(id), Boot::new(1)),
            inc: Incarnation::default(),
        };
        let mut invariant = OneOfTwoWins::default();
        assert!(!invariant.sometimes().1);
        assert_eq!(invariant.wins(life(4), life(2)), Ok(()));
        assert_eq!(invariant.wins(life(4), life(2)), Ok(()));
        assert_eq!(invariant.wins(life(4), life(3)), Ok(()));
        assert_eq!(invariant.wins(life(2), life(4)), Err("pair=[n2/1, n4/1]".into()));
        assert!(invariant.sometimes().1);
    }
}
