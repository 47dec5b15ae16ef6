//! Time as the protocols see it: whole microseconds from the host's zero.
//!
//! A machine never reads a clock. Its host passes [`Time`] with every input and promises two things:
//! time never goes back, and it *does* count the time the machine was suspended (a host on Linux
//! reads the boot-time clock). Integers, because ties are meaningful here: with a listen timeout of
//! exactly three announce periods a follower has exactly three chances to hear its leader, and float
//! drift would turn that rule into noise.

use core::{
    fmt,
    ops::{Add, AddAssign, Mul, Sub},
    str::FromStr,
};

/// An instant: microseconds since the host's zero.
///
/// A machine never reads a clock: its host passes the time with every input. The host's time never goes back, and it
/// counts the time a machine was suspended (on Linux, the boot-time clock).
///
/// ```
/// use bellwether_proto::{Duration, Time};
///
/// let deadline = Time::ZERO + Duration::from_millis(1_500);
/// assert_eq!(deadline.since(Time::from_micros(500_000)), Duration::from_secs(1));
/// assert!(deadline < Time::NEVER);
/// ```
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Time(u64);

/// A span of time in whole microseconds. Arithmetic saturates.
///
/// ```
/// use bellwether_proto::Duration;
///
/// let half: Duration = "500ms".parse().unwrap();
/// assert_eq!(half * 3, Duration::from_millis(1_500));
/// assert_eq!((half * 120).to_string(), "1m");
/// ```
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Duration(u64);

impl Time {
    /// The host's zero.
    pub const ZERO: Self = Self(0);
    /// Later than every instant a host will pass: the deadline of a timer that is not armed.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `micros` microseconds after zero.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since zero.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Seconds since zero, for people and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span; adding it to any instant gives [`Time::NEVER`].
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// The length in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The length in seconds, for people and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self` divided by a whole number, rounded down; dividing by zero gives [`Duration::MAX`].
    pub const fn div(self, by: u64) -> Self {
        match self.0.checked_div(by) {
            Some(micros) => Self(micros),
            None => Self::MAX,
        }
    }

    /// `self` times a fraction between 0 and 1, rounded to the nearest microsecond.
    pub fn scale(self, factor: f64) -> Self {
        Self(libm::round(self.0 as f64 * factor.max(0.0)) as u64)
    }

    /// `self` less `other`, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Saturates at [`Time::NEVER`], so that a hostile or absurd duration cannot wrap into the past.
impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Duration {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;

    fn mul(self, rhs: u64) -> Self {
        Self(self.0.saturating_mul(rhs))
    }
}

/// Seconds with six decimals: `12.340000s`. Fixed width after the point keeps traces aligned.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER {
            return f.pad("never");
        }
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The shortest form that [`Duration::from_str`] reads back: `1500ms`, `2s`, `3m`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = UNITS
            .into_iter()
            .rev()
            .find(|&(unit, _)| self.0 >= unit && self.0.is_multiple_of(unit))
            .unwrap_or((1, "us"));
        write!(f, "{}{}", self.0 / unit, name)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a duration. Each form says what would be accepted.
///
/// ```
/// use bellwether_proto::{Duration, ParseDurationError};
///
/// assert_eq!("5".parse::<Duration>(), Err(ParseDurationError::NoUnit));
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ParseDurationError {
    /// The text is empty or does not start with a digit.
    #[error("a duration starts with a number, such as 500ms or 2s")]
    NoNumber,
    /// A bare number: the unit decides a factor of a million, so it is never guessed.
    #[error("the unit is missing: write us, ms, s, m or h behind the number")]
    NoUnit,
    /// Something other than a unit stands behind the number.
    #[error("unknown unit: use us, ms, s, m or h")]
    UnknownUnit,
    /// More decimals than microseconds can hold.
    #[error("finer than one microsecond")]
    TooFine,
    /// More than `u64` microseconds.
    #[error("too long: at most 584,942 years")]
    TooLong,
}

/// Reads `250us`, `50ms`, `1.5s`, `2m`, `1h`. The unit is required; no sign, no exponent.
impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
            return Err(ParseDurationError::NoNumber);
        }
        let unit = match unit {
            "" => return Err(ParseDurationError::NoUnit),
            _ => UNITS.iter().find(|(_, name)| *name == unit),
        };
        let &(factor, _) = unit.ok_or(ParseDurationError::UnknownUnit)?;
        let whole: u64 = whole.parse().map_err(|_| ParseDurationError::TooLong)?;
        let mut micros = whole.checked_mul(factor).ok_or(ParseDurationError::TooLong)?;
        let mut step = factor;
        for digit in fraction.trim_end_matches('0').bytes() {
            if !step.is_multiple_of(10) {
                return Err(ParseDurationError::TooFine);
            }
            step /= 10;
            let part = u64::from(digit - b'0') * step;
            micros = micros.checked_add(part).ok_or(ParseDurationError::TooLong)?;
        }
        Ok(Self(micros))
    }
}

/// Units in microseconds, ascending.
const UNITS: [(u64, &str); 5] =
    [(1, "us"), (1_000, "ms"), (1_000_000, "s"), (60_000_000, "m"), (3_600_000_000, "h")];

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn durations_read_with_a_unit_and_only_with_one() {
        for (text, micros) in [
            ("0us", 0),
            ("250us", 250),
            ("50ms", 50_000),
            ("1.5s", 1_500_000),
            ("0.1ms", 100),
            ("2m", 120_000_000),
            ("1h", 3_600_000_000),
            ("1.250s", 1_250_000),
        ] {
            assert_eq!(text.parse(), Ok(Duration::from_micros(micros)), "{text}");
        }
        for (text, error) in [
            ("", ParseDurationError::NoNumber),
            ("s", ParseDurationError::NoNumber),
            ("-1s", ParseDurationError::NoNumber),
            ("1.s", ParseDurationError::NoNumber),
            ("1.2.3s", ParseDurationError::NoNumber),
            ("5", ParseDurationError::NoUnit),
            ("5 s", ParseDurationError::UnknownUnit),
            ("1e3s", ParseDurationError::UnknownUnit),
            ("5min", ParseDurationError::UnknownUnit),
            ("0.5us", ParseDurationError::TooFine),
            ("1.0000001s", ParseDurationError::TooFine),
            ("99999999999999h", ParseDurationError::TooLong),
            ("99999999999999999999s", ParseDurationError::TooLong),
        ] {
            assert_eq!(text.parse::<Duration>(), Err(error), "{text}");
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        for micros in [0, 1, 999, 1_000, 1_500, 60_000_000, 90_000_000, u64::MAX] {
            let duration = Duration::from_micros(micros);
            assert_eq!(duration.to_string().parse(), Ok(duration));
        }
        assert_eq!(Time::from_micros(12_340_000).to_string(), "12.340000s");
    }

    #[test]
    fn absurd_spans_saturate_instead_of_wrapping() {
        assert_eq!(Time::from_micros(5) + Duration::MAX, Time::NEVER);
        assert_eq!(Time::from_micros(5) - Duration::from_secs(1), Time::ZERO);
        assert_eq!(Duration::from_secs(u64::MAX), Duration::MAX);
        assert_eq!(Time::ZERO.since(Time::from_micros(7)), Duration::ZERO);
    }
}
