//! How well a node itself is doing, judged by what happens to its own probes.
//!
//! Source: Lifeguard. A node that is starved or badly connected sees everybody fail. Before it accuses
//! the world it should doubt itself: the worse its score, the longer it waits for answers and the more
//! rarely it asks.

/// From 0, doing well, to 8.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LocalHealth(u8);

impl LocalHealth {
    /// A probe went unanswered, or we were accused ourselves.
    pub fn worsen(&mut self) {
        self.0 = (self.0 + 1).min(WORST);
    }

    /// A probe was answered.
    pub fn improve(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// By how much to stretch waits: from 1 to 9.
    pub fn factor(self) -> u64 {
        u64::from(self.0) + 1
    }
}

/// The largest score of Lifeguard.
const WORST: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_stretch_with_failures_within_limits() {
        let mut health = LocalHealth::default();
        health.improve();
        assert_eq!(health.factor(), 1);
        (0..20).for_each(|_| health.worsen());
        assert_eq!(health.factor(), 9);
        health.improve();
        assert_eq!(health.factor(), 8);
    }
}
