use bellwether_proto::{NodeId, topology::map::View};

/// What a node tells of itself is whom it hears, no more and no less (P7 of `docs/rules/central.md`). The published
/// forms let others write it for them, and are not judged by this.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnView {
    heard_somebody: bool,
}

impl OwnView {
    /// The name in reports.
    pub const NAME: &'static str = "own_view";

    /// Judges what `node` tells by whom it hears, in ascending order.
    ///
    /// # Errors
    ///
    /// Both.
    pub fn judge(
        &mut self,
        node: NodeId,
        tells: &View,
        hears: impl Iterator<Item = NodeId> + Clone,
    ) -> Result<(), String> {
        self.heard_somebody |= hears.clone().next().is_some();
        let others = || tells.neighbours().iter().copied().filter(|&other| other != node);
        if others().eq(hears.clone()) {
            return Ok(());
        }
        let (tells, hears): (Vec<NodeId>, Vec<NodeId>) = (others().collect(), hears.collect());
        Err(format!("node={node} tells={tells:?} hears={hears:?}"))
    }

    /// The situation this guards against, and whether it could have arisen.
    pub fn sometimes(&self) -> (&'static str, bool) {
        ("a node heard another", self.heard_somebody)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_when_a_node_tells_of_a_neighbour_it_does_not_hear() {
        let [me, other] = [1, 2].map(NodeId::new);
        let mut own_view = OwnView::default();
        assert_eq!(own_view.judge(me, &View::new(me, 1, []), [].into_iter()), Ok(()));
        assert!(!own_view.sometimes().1);
        assert_eq!(own_view.judge(me, &View::new(me, 1, [other]), [other].into_iter()), Ok(()));
        assert!(own_view.sometimes().1);
        let error = own_view.judge(me, &View::new(me, 1, [other]), [].into_iter());
        assert_eq!(error, Err("node=n1 tells=[NodeId(2)] hears=[]".into()));
        assert!(own_view.judge(me, &View::new(me, 1, []), [other].into_iter()).is_err());
    }
}
