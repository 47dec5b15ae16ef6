//! Lists turned into a winner.

use alloc::vec::Vec;

/// How lists are counted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Tally {
    /// A place on a list is a vote, whatever the place (`E4`).
    Approval(Ties),
    /// A list of `k` gives `k - r` to the node at rank `r` (`H4`); ties go to the lowest number.
    Borda,
}

/// Who wins among equals.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Ties {
    /// The lowest number: the text.
    Lowest,
    /// The highest number: the program.
    Highest,
}

impl Tally {
    /// The winner among those that `may` win: of most points; `None` if none of them has any.
    pub fn winner<'a>(
        self,
        nodes: usize,
        lists: impl IntoIterator<Item = &'a [usize]>,
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut points = alloc::vec![0_usize; nodes];
        for list in lists {
            for (rank, &node) in list.iter().enumerate() {
                // Who is on no list of members is on no ballot.
                if let Some(points) = points.get_mut(node) {
                    *points += match self {
                        Self::Approval(_) => 1,
                        Self::Borda => list.len() - rank,
                    };
                }
            }
        }
        let standing: Vec<usize> =
            (0..nodes).filter(|&node| points[node] > 0 && may(node)).collect();
        let most = standing.iter().map(|&node| points[node]).max()?;
        let mut best = standing.into_iter().filter(|&node| points[node] == most);
        match self {
            Self::Approval(Ties::Highest) => best.next_back(),
            Self::Approval(Ties::Lowest) | Self::Borda => best.next(),
        }
    }
}
