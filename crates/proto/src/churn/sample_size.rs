//! How many lists to compare so that the estimate of `c` is good enough.
//!
//! Source: §7.2.1, `s = p(1-p)(z/E)²`, where `p` is the probability that a list lacks a node and `E` the
//! margin as a fraction of all nodes; Table 7.1.
//!
//! Departure: the published `z = x + (1-x)/2` is the cumulative probability that the quantile is to be taken
//! *of*; with it, 90% and 95% are in truth 66% and 67% (C-2). [`Precision::lists`] takes the quantile, allows
//! for the sample being a good part of all there is, and rounds up; Table 7.1 rounds to nearest. The margin
//! is absolute, as in the formula, although the text calls it relative (C-3).

/// What is asked of an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    p: f64,
    margin: f64,
    confidence: f64,
}

/// Why nothing of the kind can be asked. Nothing was built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PrecisionError {
    /// The probability is none.
    #[error("p = {0}: the probability that a list lacks a node is between 0 and 1")]
    Probability(f64),
    /// The margin is none.
    #[error("margin {0}: a margin is a fraction of all nodes, more than 0 and at most 1")]
    Margin(f64),
    /// The confidence is none.
    #[error("confidence {0}: a confidence is more than 0 and less than 1")]
    Confidence(f64),
}

impl Precision {
    /// `p` is how likely a list lacks the node that most lack, as far as known; `margin` is `E`, how far the
    /// estimate may be off as a fraction of all nodes; `confidence` is `x`, how often at least it may not.
    ///
    /// # Errors
    ///
    /// [`PrecisionError`] with the value, if one is out of range.
    pub fn new(p: f64, margin: f64, confidence: f64) -> Result<Self, PrecisionError> {
        if !(0.0..=1.0).contains(&p) {
            return Err(PrecisionError::Probability(p));
        }
        if !(margin > 0.0 && margin <= 1.0) {
            return Err(PrecisionError::Margin(margin));
        }
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(PrecisionError::Confidence(confidence));
        }
        Ok(Self { p, margin, confidence })
    }

    /// The same for another `p`, kept between 0 and 1; what is no number is taken for a half, the worst.
    pub fn at(self, p: f64) -> Self {
        Self { p: if p.is_nan() { 0.5 } else { p.clamp(0.0, 1.0) }, ..self }
    }

    /// The confidence `x` that is asked for.
    pub fn confidence(self) -> f64 {
        self.confidence
    }

    /// `s` as published, before rounding.
    pub fn published(self) -> f64 {
        self.size(self.confidence + (1.0 - self.confidence) / 2.0)
    }

    /// `s` with the quantile of the normal distribution, before rounding, as if there were no end of lists.
    pub fn corrected(self) -> f64 {
        self.size(quantile(self.confidence + (1.0 - self.confidence) / 2.0))
    }

    /// How many of `nodes` lists to compare: at least one, at most all.
    ///
    /// `s/(1 + (s-1)/N)`, rounded up: who has seen half of the lists knows more than who has seen as many of
    /// infinitely many.
    pub fn lists(self, nodes: u32) -> u32 {
        let s = self.corrected();
        let n = f64::from(nodes);
        let of_these = if s > 1.0 { s / (1.0 + (s - 1.0) / n) } else { s };
        (libm::ceil(of_these - 1e-9) as u32).max(1).min(nodes)
    }

    fn size(self, z: f64) -> f64 {
        let ratio = z / self.margin;
        self.p * (1.0 - self.p) * ratio * ratio
    }
}

/// `Φ⁻¹`, the quantile of the standard normal distribution: to the last digits but one or two. Infinite at 0
/// and 1, and not a number outside.
///
/// Acklam's rational approximation, good to 1e-9, and one step of Halley's method.
pub fn quantile(probability: f64) -> f64 {
    if !(0.0..=1.0).contains(&probability) {
        return f64::NAN;
    }
    if probability == 0.0 || probability == 1.0 {
        return if probability == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    // The lower half is the more exact, and the upper its mirror.
    if probability > 0.5 {
        return -quantile(1.0 - probability);
    }
    let rough = if probability < TAIL {
        let q = libm::sqrt(-2.0 * libm::log(probability));
        poly(&C, q) / (poly(&D, q) * q + 1.0)
    } else {
        let q = probability - 0.5;
        let r = q * q;
        poly(&A, r) * q / (poly(&B, r) * r + 1.0)
    };
    let error = 0.5 * libm::erfc(-rough / core::f64::consts::SQRT_2) - probability;
    let density = libm::exp(-0.5 * rough * rough) / SQRT_TAU;
    let step = error / density;
    let refined = rough - step / (1.0 + 0.5 * rough * step);
    // Where the density vanishes there is nothing to refine by.
    if refined.is_finite() { refined } else { rough }
}

/// Horner's rule, highest power first.
fn poly(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Acklam's coefficients (2003).
const A: [f64; 6] = [
    -3.969_683_028_665_376e1,
    2.209_460_984_245_205e2,
    -2.759_285_104_469_687e2,
    1.383_577_518_672_69e2,
    -3.066_479_806_614_716e1,
    2.506_628_277_459_239,
];
const B: [f64; 5] = [
    -5.447_609_879_822_406e1,
    1.615_858_368_580_409e2,
    -1.556_989_798_598_866e2,
    6.680_131_188_771_972e1,
    -1.328_068_155_288_572e1,
];
const C: [f64; 6] = [
    -7.784_894_002_430_293e-3,
    -3.223_964_580_411_365e-1,
    -2.400_758_277_161_838,
    -2.549_732_539_343_734,
    4.374_664_141_464_968,
    2.938_163_982_698_783,
];
const D: [f64; 4] = [
    7.784_695_709_041_462e-3,
    3.224_671_290_700_398e-1,
    2.445_134_137_142_996,
    3.754_408_661_907_416,
];
/// Where the tail begins, in Acklam's approximation.
const TAIL: f64 = 0.024_25;
/// `√(2π)`.
const SQRT_TAU: f64 = 2.506_628_274_631_000_5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MARGINS: [f64; 3] = [0.02, 0.05, 0.1];

    fn table(of: impl Fn(Precision) -> f64) -> [[f64; 2]; 3] {
        MARGINS.map(|margin| [0.9, 0.95].map(|x| of(Precision::new(0.1, margin, x).unwrap())))
    }

    /// TV12.
    #[test]
    fn table_7_1_is_the_published_formula_rounded_to_nearest() {
        let exact = [[203.06, 213.89], [32.49, 34.22], [8.12, 8.56]];
        let rounded = [[203.0, 214.0], [32.0, 34.0], [8.0, 9.0]];
        let found = table(Precision::published);
        assert_eq!(found.map(|row| row.map(libm::round)), rounded);
        for (row, expected) in found.iter().zip(exact) {
            row.iter().zip(expected).for_each(|(s, e)| assert!((s - e).abs() < 0.0051, "{s} {e}"));
        }
        let up = found[1..].iter().flatten().map(|s| libm::ceil(*s));
        assert!(up.eq([33.0, 35.0, 9.0, 9.0]), "C-2: what rounding up would have given");
    }

    /// TV13.
    #[test]
    fn the_true_quantile_asks_for_three_to_four_times_as_many() {
        let up = table(|precision| libm::ceil(precision.corrected()));
        assert_eq!(up, [[609.0, 865.0], [98.0, 139.0], [25.0, 35.0]]);
        for (nodes, expected) in [
            (1000, [[379.0, 464.0], [89.0, 122.0], [24.0, 34.0]]),
            (128, [[106.0, 112.0], [56.0, 67.0], [21.0, 28.0]]),
        ] {
            assert_eq!(table(|precision| f64::from(precision.lists(nodes))), expected, "{nodes}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, expected) in [
            (0.5, 0.0),
            (0.95, 1.644_853_626_951_472_2),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813_5),
            (0.01, -2.326_347_874_040_841),
            (1e-10, -6.361_340_902_404_056),
            (1e-300, -37.047_096_299_361_2),
        ] {
            let found = quantile(probability);
            assert!(
                (found - expected).abs() < 1e-12 * expected.abs().max(1.0),
                "{found} {expected}"
            );
        }
        assert_eq!([quantile(0.0), quantile(1.0)], [f64::NEG_INFINITY, f64::INFINITY]);
        assert!(quantile(-0.1).is_nan() && quantile(f64::NAN).is_nan());
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_the_value() {
        let why = |p, margin, x| Precision::new(p, margin, x).unwrap_err().to_string();
        use std::string::ToString;
        assert!(why(1.5, 0.1, 0.9).starts_with("p = 1.5: "));
        assert!(why(0.1, 0.0, 0.9).starts_with("margin 0: "));
        assert!(why(0.1, 0.1, 1.0).starts_with("confidence 1: "));
        assert!(why(f64::NAN, 0.1, 0.9).starts_with("p = NaN: "));
    }

    proptest! {
        #[test]
        fn it_is_the_inverse(probability in 1e-12..1.0_f64) {
            let back = 0.5 * libm::erfc(-quantile(probability) / core::f64::consts::SQRT_2);
            prop_assert!((back - probability).abs() < 1e-13, "{probability} {back}");
        }

        #[test]
        fn more_certainty_and_smaller_margins_take_more_lists(
            p in 0.0..=1.0_f64,
            margins in (1e-6..=1.0_f64, 1e-6..=1.0_f64),
            confidences in (1e-6..1.0_f64, 1e-6..1.0_f64),
            nodes in 1..100_000_u32,
        ) {
            let (strict, lax) = (margins.0.min(margins.1), margins.0.max(margins.1));
            let (low, high) = (confidences.0.min(confidences.1), confidences.0.max(confidences.1));
            let lists = |margin, x| Precision::new(p, margin, x).unwrap().lists(nodes);
            prop_assert!(lists(strict, high) >= lists(lax, high));
            prop_assert!(lists(strict, high) >= lists(strict, low));
            prop_assert!((1..=nodes).contains(&lists(strict, high)));
        }
    }
}
