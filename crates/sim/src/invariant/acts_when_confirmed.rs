use bellwether_proto::{Leadership, NodeId, Time};

/// Whoever names itself has had its claim confirmed: programs act on it, and a better one may have answered meanwhile. Of
/// nodes whose elections tell who leads before they are over.
#[derive(Clone, Copy, Debug, Default)]
pub struct ActsWhenConfirmed {
    claimed: bool,
}

impl ActsWhenConfirmed {
    /// Its name in reports.
    pub const NAME: &'static str = "acts_when_confirmed";

    /// Judges one answer of a node that has claimed to lead since `tentative`, if its claim is not confirmed.
    ///
    /// # Errors
    ///
    /// Who, under which epoch, since when.
    pub fn answer(
        &mut self,
        node: NodeId,
        tentative: Option<Time>,
        answer: &Leadership,
    ) -> Result<(), String> {
        let Some(since) = tentative else { return Ok(()) };
        self.claimed = true;
        match (answer.leader, answer.epoch) {
            (Some(leader), Some(epoch)) if leader == node => {
                Err(format!("node={node} names itself under {epoch}, unconfirmed since {since}"))
            }
            _ => Ok(()),
        }
    }

    /// The situation this guards against, and whether it could have arisen so far.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("somebody claimed before its claim was confirmed", self.claimed)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::sighting, *};

    #[test]
    fn fires_when_a_tentative_leader_names_itself() {
        let (node, since) = (NodeId::new(3), Some(Time::ZERO));
        let answer = sighting(1, 3, 3, 7).leadership;
        let mut invariant = ActsWhenConfirmed::default();
        assert_eq!(invariant.answer(node, None, &answer), Ok(()), "it is confirmed");
        assert!(!invariant.sometimes().1);
        assert!(invariant.answer(node, since, &answer).is_err());
        assert_eq!(invariant.answer(NodeId::new(4), since, &answer), Ok(()), "it names another");
        assert!(invariant.sometimes().1);
    }
}
