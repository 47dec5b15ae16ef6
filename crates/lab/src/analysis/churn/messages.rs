//! Lemma 1: what an election costs.

/// Unicasts of Base where nothing fails or is lost: `2(c+f+1)+1`, a query and a response for each node asked
/// and one notification; the multicast is not in it.
pub const fn unicasts(c: u32, f: u32) -> u32 {
    2 * (c + f + 1) + 1
}

/// The same where the initiator is one of those it asks (C-8): it needs no message to ask itself.
pub const fn unicasts_asking_itself(c: u32, f: u32) -> u32 {
    unicasts(c, f) - 2
}

/// A configuration of Table 5.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Configuration {
    /// The field.
    pub topology: &'static str,
    /// `N`.
    pub nodes: u32,
    /// The share of messages lost on a hop.
    pub loss: f64,
    /// `c` as published.
    pub c: u32,
}

const fn row(topology: &'static str, nodes: u32, loss: f64, c: u32) -> Configuration {
    Configuration { topology, nodes, loss, c }
}

/// Table 5.1.
pub const TABLE_5_1: [Configuration; 10] = [
    row("grid", 49, 0.05, 4),
    row("cluster", 49, 0.05, 4),
    row("random", 49, 0.05, 4),
    row("random", 49, 0.1, 7),
    row("random", 49, 0.15, 10),
    row("random", 49, 0.2, 13),
    row("random", 32, 0.05, 2),
    row("random", 64, 0.05, 5),
    row("random", 128, 0.05, 9),
    row("random", 256, 0.05, 17),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts what Base sends: to each asked a query, from each a response, and one notification.
    fn counted(c: u32, f: u32, initiator_asked: bool) -> u32 {
        let remote = (0..c + f + 1).filter(|&nth| !(initiator_asked && nth == 0));
        remote.map(|_| 2).sum::<u32>() + 1
    }

    /// TV10.
    #[test]
    fn lemma_1() {
        for (c, f, unicast, itself) in [(2, 0, 7, 5), (4, 0, 11, 9), (4, 2, 15, 13)] {
            assert_eq!((unicasts(c, f), unicasts_asking_itself(c, f)), (unicast, itself));
        }
        for (c, f) in (0..20).flat_map(|c| (0..5).map(move |f| (c, f))) {
            assert_eq!(unicasts(c, f), counted(c, f, false));
            assert_eq!(unicasts_asking_itself(c, f), counted(c, f, true));
        }
    }

    #[test]
    fn the_configurations_cost_far_less_than_everybody() {
        let costs = TABLE_5_1.map(|row| unicasts(row.c, 0));
        assert_eq!(costs, [11, 11, 11, 17, 23, 29, 7, 13, 21, 37]);
        for row in TABLE_5_1.iter().filter(|row| row.loss <= 0.05) {
            assert!(f64::from(row.c) <= 0.1 * f64::from(row.nodes), "{row:?}: §5.2's claim");
            assert!(unicasts(row.c, 0) < row.nodes);
        }
    }
}
