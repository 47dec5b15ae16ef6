//! Measured values with what is known of their errors.

use std::{
    fmt,
    ops::{Add, Div, Mul, Sub},
};

use bellwether_sim::observe::Summary;

/// A measured value and its standard error.
///
/// What no run measured is [`NOTHING`](Self::NOTHING). It stays that through all arithmetic, and no criterion holds
/// for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Its standard error; zero for a value that does not vary.
    pub error: f64,
    /// Degrees of freedom of the error; infinitely many where the error itself is known.
    freedom: f64,
}

impl Estimate {
    /// Not measured.
    pub const NOTHING: Self = Self { value: f64::NAN, error: f64::NAN, freedom: f64::INFINITY };

    /// The mean of a summary.
    pub fn of(summary: &Summary) -> Self {
        let freedom = if summary.count > 1 { (summary.count - 1) as f64 } else { f64::INFINITY };
        Self { value: summary.mean, error: summary.standard_error(), freedom }
    }

    /// A value known exactly.
    pub const fn exact(value: f64) -> Self {
        Self::known(value, 0.0)
    }

    /// A value whose standard error is known from elsewhere than its own scatter.
    pub const fn known(value: f64, error: f64) -> Self {
        Self { value, error, freedom: f64::INFINITY }
    }

    /// A value that is drawn with this distance on both sides, whatever that stands for.
    pub fn ranging(value: f64, distance: f64) -> Self {
        Self::known(value, distance / quantile(f64::INFINITY))
    }

    /// The share of `count` runs in which something happened.
    pub fn share(value: f64, count: usize) -> Self {
        Self::known(value, libm::sqrt(value * (1.0 - value) / count as f64))
    }

    /// Whether anything was measured.
    pub const fn is_there(self) -> bool {
        !self.value.is_nan()
    }

    /// Without its sign.
    pub fn abs(self) -> Self {
        Self { value: self.value.abs(), ..self }
    }

    /// Half the width of the 95% interval, by Student's t.
    pub fn half_width(self) -> f64 {
        if self.error > 0.0 { quantile(self.freedom) * self.error } else { self.error }
    }

    /// How many standard errors it is from `expected`; values without error must be equal.
    pub fn errors_from(self, expected: f64) -> f64 {
        let distance = (self.value - expected).abs();
        if distance <= TINY { 0.0 } else { distance / self.error }
    }

    /// Whether it is below `bound` by two standard errors.
    pub fn is_clearly_below(self, bound: f64) -> bool {
        self.value + CLEARLY * self.error < bound
    }

    /// Whether it is above `bound` by two standard errors.
    pub fn is_clearly_above(self, bound: f64) -> bool {
        self.value - CLEARLY * self.error > bound
    }

    /// Of two independent errors, with the degrees of freedom of Welch and Satterthwaite.
    fn with_errors(value: f64, (a, of_a): (f64, f64), (b, of_b): (f64, f64)) -> Self {
        let (a, b) = (a * a, b * b);
        let uncertain = a * a / of_a + b * b / of_b;
        let freedom = if uncertain > 0.0 { (a + b) * (a + b) / uncertain } else { f64::INFINITY };
        Self { value, error: libm::sqrt(a + b), freedom }
    }
}

/// Of independent ones.
impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let value = self.value + other.value;
        Self::with_errors(value, (self.error, self.freedom), (other.error, other.freedom))
    }
}

/// Of independent ones.
impl Sub for Estimate {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + other * -1.0
    }
}

/// Of independent ones, to first order.
impl Div for Estimate {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        let above = (self.error / other.value).abs();
        let below = (value * other.error / other.value).abs();
        Self::with_errors(value, (above, self.freedom), (below, other.freedom))
    }
}

impl Add<f64> for Estimate {
    type Output = Self;

    fn add(self, other: f64) -> Self {
        Self { value: self.value + other, ..self }
    }
}

impl Sub<f64> for Estimate {
    type Output = Self;

    fn sub(self, other: f64) -> Self {
        self + -other
    }
}

impl Mul<f64> for Estimate {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { value: self.value * factor, error: self.error * factor.abs(), ..self }
    }
}

impl Div<f64> for Estimate {
    type Output = Self;

    fn div(self, divisor: f64) -> Self {
        self * (1.0 / divisor)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_there() {
            return f.pad("nothing");
        }
        if let Some(digits) = f.precision() {
            return write!(f, "{:.digits$}", self.value);
        }
        match self.half_width() {
            0.0 => f.write_str(&short(self.value)),
            half_width => write!(f, "{} ± {}", short(self.value), short(half_width)),
        }
    }
}

/// By how many percent `value` is below `of`.
pub fn reduction(value: Estimate, of: Estimate) -> Estimate {
    (value / of - 1.0) * -100.0
}

/// The mean of independent ones; nothing if one of them is.
pub fn mean(values: impl IntoIterator<Item = Estimate>) -> Estimate {
    let mut count = 0.0;
    let sum = values.into_iter().fold(Estimate::exact(0.0), |sum, one| {
        count += 1.0;
        sum + one
    });
    sum / count
}

/// The smallest of some values, with what it belongs to; nothing if one of them is.
pub fn least<T>(values: impl IntoIterator<Item = (T, Estimate)>) -> Option<(T, Estimate)> {
    let of = |one: f64| if one.is_nan() { f64::NEG_INFINITY } else { one };
    values.into_iter().min_by(|(_, a), (_, b)| of(a.value).total_cmp(&of(b.value)))
}

/// The largest of some values, with what it belongs to; nothing if one of them is.
pub fn most<T>(values: impl IntoIterator<Item = (T, Estimate)>) -> Option<(T, Estimate)> {
    least(values.into_iter().map(|(of, one)| (of, one * -1.0))).map(|(of, one)| (of, one * -1.0))
}

/// The value of an extreme; nothing if there was none.
pub fn value_of<T>(extreme: Option<(T, Estimate)>) -> Estimate {
    extreme.map_or(Estimate::NOTHING, |(_, value)| value)
}

/// Whether each is above the one before. Where two are close, the larger may seem the smaller by two standard errors
/// of each.
pub fn is_ascending(values: &[Estimate]) -> bool {
    let step = |pair: &[Estimate]| {
        let [a, b] = [pair[0], pair[1]];
        a.value - CLEARLY * a.error <= b.value + CLEARLY * b.error
    };
    values.len() > 1 && values.windows(2).all(step)
}

/// The slope of a straight line through points with errors, with its own.
pub fn slope(points: &[(f64, Estimate)]) -> Estimate {
    let weight = |of: &Estimate| 1.0 / (of.error * of.error);
    let sum = |of: &dyn Fn(f64, &Estimate) -> f64| {
        points.iter().map(|(x, y)| weight(y) * of(*x, y)).sum::<f64>()
    };
    let middle = sum(&|x, _| x) / sum(&|_, _| 1.0);
    let spread = sum(&|x, _| (x - middle) * (x - middle));
    let rise = sum(&|x, y| (x - middle) * y.value);
    Estimate::known(rise / spread, 1.0 / libm::sqrt(spread))
}

/// How well a straight line over `x` explains the values: `R²`.
pub fn fit(points: &[(f64, f64)]) -> f64 {
    let together = moments(points, |x, y| x * y);
    together * together / (moments(points, |x, _| x * x) * moments(points, |_, y| y * y))
}

/// Pearson's correlation.
pub fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let norm = libm::sqrt(moments(pairs, |x, _| x * x) * moments(pairs, |_, y| y * y));
    moments(pairs, |x, y| x * y) / norm
}

/// The sum of a product of distances from the means.
fn moments(points: &[(f64, f64)], of: fn(f64, f64) -> f64) -> f64 {
    let count = points.len() as f64;
    let x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let y = points.iter().map(|point| point.1).sum::<f64>() / count;
    points.iter().map(|point| of(point.0 - x, point.1 - y)).sum()
}

/// Four significant digits.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = libm::floor(libm::log10(value.abs())) as i32;
    let decimals = (3 - magnitude).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

/// What Student's t exceeds in one case of forty: exact below five degrees of freedom, by the expansion of Fisher and
/// Cornish from there on, which is off by less than a thousandth.
fn quantile(freedom: f64) -> f64 {
    const FEW: [f64; 4] = [12.706_205, 4.302_653, 3.182_446, 2.776_445];
    const NORMAL: f64 = 1.959_964;
    if freedom < 5.0 {
        return FEW[(freedom as usize).clamp(1, FEW.len()) - 1];
    }
    let (z, n) = (NORMAL, 1.0 / freedom);
    let z2 = z * z;
    let first = (z2 + 1.0) / 4.0;
    let second = ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let third = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    let fourth = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0;
    z * (1.0 + n * (first + n * (second + n * (third + n * fourth))))
}

/// Rounding of sums of microseconds, far below anything measured.
const TINY: f64 = 1e-9;

/// In standard errors: what is farther off is not by chance, or so seldom that it does not matter.
const CLEARLY: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_is_as_in_the_tables() {
        for (freedom, expected) in
            [(1.0, 12.706), (4.0, 2.776), (5.0, 2.571), (9.0, 2.262), (39.0, 2.023), (1e9, 1.960)]
        {
            let found = quantile(freedom);
            assert!((found - expected).abs() < 0.001, "{freedom}: {found}, not {expected}");
        }
    }

    #[test]
    fn errors_add_up_and_so_does_what_is_known_of_them() {
        let of = |values: [f64; 3]| Estimate::of(&Summary::of(values).unwrap());
        let (a, b) = (of([1.0, 2.0, 3.0]), of([10.0, 12.0, 14.0]));
        let error = (1.0_f64 / 3.0 + 4.0 / 3.0).sqrt();
        assert_eq!((b - a).value, 10.0);
        assert!(((b - a).error - error).abs() < 1e-12);
        // Welch: (1/3 + 4/3)² / ((1/3)²/2 + (4/3)²/2).
        assert!(((b - a).freedom - 50.0 / 17.0).abs() < 1e-12);
        assert_eq!(Estimate::exact(3.0).to_string(), "3.000");
        assert_eq!((b * 2.0 - 1.0).value, 23.0);
        let quotient = b / a;
        let relative = quotient.error / quotient.value;
        assert!((relative * relative - (1.0 / 12.0 + 1.0 / 108.0)).abs() < 1e-12, "{quotient:?}");
    }

    #[test]
    fn nothing_stays_nothing_and_meets_no_criterion() {
        let none = Estimate::NOTHING;
        let one = Estimate::exact(1.0);
        for of in [none + one, one - none, one / none, none * 0.0, mean([one, none])] {
            assert!(!of.is_there() && of.to_string() == "nothing");
            assert!(!of.is_clearly_above(-1e9) && !of.is_clearly_below(1e9));
        }
        assert!(!is_ascending(&[one, none]) && !is_ascending(&[none, one]) && !is_ascending(&[]));
        for extreme in [least([(1, one), (2, none)]), most([(1, one), (2, none)])] {
            assert!(extreme.is_some_and(|(of, value)| of == 2 && !value.is_there()));
        }
    }

    #[test]
    fn a_line_is_fitted_exactly_and_noise_is_not() {
        let line = [(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)];
        assert!((fit(&line) - 1.0).abs() < 1e-12 && correlation(&line) > 0.999);
        assert!(correlation(&line.map(|(x, y)| (x, -y))) < -0.999);
        assert!(fit(&[(1.0, 0.0), (2.0, 1.0), (3.0, 0.0)]) < 1e-12);
        assert!(!correlation(&[(1.0, 2.0), (1.0, 3.0)]).is_finite());
    }

    #[test]
    fn the_slope_of_a_line_is_its_own() {
        let at = |x: f64, error| (x, Estimate::known(2.0 * x + 1.0, error));
        let slope = slope(&[at(1.0, 0.3), at(3.0, 0.1), at(5.0, 0.2)]);
        assert!((slope.value - 2.0).abs() < 1e-12);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (1.16667, "1.167"),
            (0.0123456, "0.01235"),
            (12345.6, "12346"),
            (0.0, "0"),
            (-2.5, "-2.500"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
