//! Table 7.1, and how good its sample sizes are; the ceiling of Feedback.
//!
//! The formulas themselves are what an agent runs: [`bellwether_proto::churn::sample_size`].

use bellwether_proto::churn::sample_size::Precision;

use super::hypergeometric::probability;

/// The margins of Table 7.1, as fractions of all nodes: its rows.
pub const MARGINS: [f64; 3] = [0.02, 0.05, 0.1];
/// Its confidences: its columns.
pub const CONFIDENCES: [f64; 2] = [0.9, 0.95];
/// The probability it assumes.
pub const ASSUMED: f64 = 0.1;
/// Table 7.1.
pub const TABLE_7_1: [[u32; 2]; 3] = [[203, 214], [32, 34], [8, 9]];

/// A table like 7.1 by another rule.
pub fn table(rule: impl Fn(Precision) -> u32) -> [[u32; 2]; 3] {
    let cell = |margin, confidence| Precision::new(ASSUMED, margin, confidence).map_or(0, &rule);
    MARGINS.map(|margin| CONFIDENCES.map(|confidence| cell(margin, confidence)))
}

/// Probability that `sampled` of `nodes` lists estimate the number of those that lack one given node to within
/// `margin·N`, where `lacking` do. This is what the confidence of Table 7.1 promises.
pub fn coverage(nodes: u32, lacking: u32, sampled: u32, margin: f64) -> f64 {
    let off = |k: u32| f64::from(k) * f64::from(nodes) / f64::from(sampled) - f64::from(lacking);
    let within = |k: &u32| off(*k).abs() <= margin * f64::from(nodes) + 1e-9;
    (0..=sampled).filter(within).map(|k| probability(nodes, lacking, sampled, k)).sum()
}

/// G8: where published Feedback ends up if every initiator always sees several candidates, the solution of
/// `c = N(1 - ε^(1/(c+1)))`; no truth makes it report more (C-5).
pub fn feedback_ceiling(nodes: u32, epsilon: f64) -> f64 {
    let n = f64::from(nodes);
    let reported = |c: f64| -n * libm::expm1(libm::log(epsilon) / (c + 1.0));
    // What is reported falls as c grows, so there is one crossing.
    let (mut low, mut high) = (0.0, n);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if reported(middle) > middle { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use bellwether_proto::Seed;

    use super::super::{close, draw, simulates};
    use super::*;

    #[test]
    fn table_7_1_as_published_and_as_corrected() {
        assert_eq!(table(|precision| libm::round(precision.published()) as u32), TABLE_7_1);
        let corrected = table(|precision| libm::ceil(precision.corrected()) as u32);
        assert_eq!(corrected, [[609, 865], [98, 139], [25, 35]]);
        assert_eq!(table(|precision| precision.lists(1000)), [[379, 464], [89, 122], [24, 34]]);
    }

    /// C-2: the published sizes hold about two times in three, the corrected ones as often as they say; a few
    /// percent of room for a distribution of whole numbers, which a normal one only approximates.
    #[test]
    fn the_published_sizes_do_not_give_the_confidence_they_are_for() {
        for (row, margin) in MARGINS.into_iter().enumerate() {
            for (column, confidence) in CONFIDENCES.into_iter().enumerate() {
                let of = |sampled| coverage(100_000, 10_000, sampled, margin);
                let published = of(TABLE_7_1[row][column]);
                assert!((0.55..0.83).contains(&published), "{margin} {confidence}: {published}");
                let corrected = table(|precision| libm::ceil(precision.corrected()) as u32);
                let corrected = of(corrected[row][column]);
                assert!(corrected > confidence - 0.035, "{margin} {confidence}: {corrected}");
            }
        }
    }

    #[test]
    fn coverage_simulates() {
        let mut rng = Seed::new(6).rng();
        simulates("32 of 1000", coverage(1000, 100, 32, 0.05), || {
            let k = draw(&mut rng, 1000, 32).into_iter().filter(|&node| node < 100).count();
            f64::from(u8::from((k as f64 / 32.0 - 0.1).abs() <= 0.05 + 1e-12))
        });
    }

    /// G8.
    #[test]
    fn feedback_cannot_see_beyond_its_ceiling() {
        for (nodes, ceiling) in [(128, 22.6), (256, 32.7), (512, 46.9), (1024, 67.0)] {
            let found = feedback_ceiling(nodes, 0.01);
            close(&format!("N = {nodes}"), found, ceiling, 0.05);
            let root = libm::sqrt(f64::from(nodes) * libm::log(100.0));
            close("about its square root", found / root, 1.0, 0.1);
        }
    }
}
