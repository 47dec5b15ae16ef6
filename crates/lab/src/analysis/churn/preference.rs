//! Theorem 4 and Table 5.2: how many responses it takes to name an unhealthy node.
//!
//! A responder leaves a given one of the `y` most unhealthy nodes out of its own `y` with probability `p`. If
//! responses were independent (false suspicions cluster, so they are not, C-9), `r` of them would all leave it
//! out with `p^r`, which from `r > log_{1/p} N` on is below `1/N`.

/// `log_{1/p}(chances·N)`, which `r` must exceed so that none of so many given nodes is left out by all with
/// probability `1/N`: by the union bound if they are several. Infinite if `p` is 1, zero if it is 0.
pub fn threshold(p: f64, nodes: u32, chances: u32) -> f64 {
    if p >= 1.0 {
        return f64::INFINITY;
    }
    (libm::log(f64::from(nodes) * f64::from(chances)) / -libm::log(p)).max(0.0)
}

/// The smallest `r` above the threshold. Table 5.2 rounds to nearest instead (C-9). `None` if no number will do.
pub fn responses(p: f64, nodes: u32, chances: u32) -> Option<u32> {
    let threshold = threshold(p, nodes, chances);
    // A threshold such as log2 of 128 is a whole number but for its last bits, and must be exceeded.
    let whole = libm::round(threshold);
    let least = if (threshold - whole).abs() < 1e-9 { whole } else { libm::floor(threshold) };
    threshold.is_finite().then(|| least as u32 + 1)
}

/// A row of Table 5.2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// `N`.
    pub nodes: u32,
    /// `p`, measured.
    pub p: f64,
    /// `r` as published.
    pub r: u32,
    /// `c + 1`, how many responses an election waits for.
    pub awaited: u32,
}

/// Table 5.2, for `y = 5`.
pub const TABLE_5_2: [Row; 5] = [
    Row { nodes: 32, p: 0.34, r: 3, awaited: 3 },
    Row { nodes: 49, p: 0.43, r: 5, awaited: 5 },
    Row { nodes: 64, p: 0.48, r: 6, awaited: 6 },
    Row { nodes: 128, p: 0.5, r: 7, awaited: 10 },
    Row { nodes: 256, p: 0.5, r: 8, awaited: 18 },
];

#[cfg(test)]
mod tests {
    use super::super::close;
    use super::*;

    #[test]
    fn table_5_2_and_c_9() {
        let strict = [4, 5, 6, 8, 9];
        let of_all_five = [5, 7, 8, 10, 11];
        let thresholds = [3.21, 4.61, 5.67, 7.0, 8.0];
        for (at, row) in TABLE_5_2.iter().enumerate() {
            let rounded = libm::round(threshold(row.p, row.nodes, 1)) as u32;
            assert_eq!(rounded, row.r, "{row:?}");
            assert_eq!(responses(row.p, row.nodes, 1), Some(strict[at]), "{row:?}");
            assert_eq!(responses(row.p, row.nodes, 5), Some(of_all_five[at]), "{row:?}");
            close("threshold", threshold(row.p, row.nodes, 1), thresholds[at], 5e-3);
        }
        let short: Vec<u32> = TABLE_5_2
            .iter()
            .filter(|row| responses(row.p, row.nodes, 5).is_none_or(|r| r > row.awaited))
            .map(|row| row.nodes)
            .collect();
        assert_eq!(short, [32, 49, 64], "where an election waits for too few to name all five");
        assert!(responses(0.34, 32, 1) > Some(3), "r does exceed c + 1");
        assert_eq!([responses(0.0, 9, 1), responses(1.0, 9, 1)], [Some(1), None]);
    }
}
