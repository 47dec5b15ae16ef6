//! Claims: a sentence, what was published, what was measured, and a verdict.

use std::fmt;

use bellwether_sim::observe::Summary;

/// How a claim fared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The measurement agrees.
    Reproduced,
    /// It agrees in part.
    Partly,
    /// It does not agree.
    NotReproduced,
}

impl Verdict {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Partly => "partly",
            Self::NotReproduced => "not reproduced",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A measured value with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Half the width of the interval; zero for a value that does not vary.
    pub half_width: f64,
}

impl Estimate {
    /// The mean of a summary, by the normal approximation.
    pub fn of(summary: &Summary) -> Self {
        Self { value: summary.mean, half_width: 1.96 * summary.standard_error() }
    }

    /// A value known exactly.
    pub const fn exact(value: f64) -> Self {
        Self { value, half_width: 0.0 }
    }

    /// The difference of two independent ones.
    pub fn minus(self, other: Self) -> Self {
        let half_width = libm::hypot(self.half_width, other.half_width);
        Self { value: self.value - other.value, half_width }
    }

    /// The quotient of two independent ones, to first order.
    pub fn over(self, other: Self) -> Self {
        let value = self.value / other.value;
        let relative = libm::hypot(self.half_width / self.value, other.half_width / other.value);
        Self { value, half_width: value.abs() * relative }
    }

    /// How many standard errors it is from `expected`; values without error must be equal.
    pub fn errors_from(self, expected: f64) -> f64 {
        let distance = (self.value - expected).abs();
        let error = self.half_width / 1.96;
        if distance <= TINY { 0.0 } else { distance / error }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.half_width == 0.0 {
            return write!(f, "{}", short(self.value));
        }
        write!(f, "{} ± {}", short(self.value), short(self.half_width))
    }
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

/// What was claimed, and what we found.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The claim in a sentence.
    pub sentence: String,
    /// What was published, or what analysis says; a value or a trend.
    pub published: String,
    /// What was measured.
    pub measured: String,
    /// How it fared.
    pub verdict: Verdict,
    /// The verdict on record: what a reader of the documentation will expect.
    pub recorded: Verdict,
    /// Why, when it is not simply reproduced.
    pub reason: Option<String>,
}

impl Claim {
    /// A claim that holds if `holds`, and is recorded to.
    pub fn holds(
        sentence: impl Into<String>,
        published: impl Into<String>,
        measured: impl Into<String>,
        holds: bool,
    ) -> Self {
        Self {
            sentence: sentence.into(),
            published: published.into(),
            measured: measured.into(),
            verdict: if holds { Verdict::Reproduced } else { Verdict::NotReproduced },
            recorded: Verdict::Reproduced,
            reason: (!holds).then(|| "the measured value lies outside the criterion".into()),
        }
    }

    /// A claim with a verdict that is more than yes or no.
    pub fn judged(
        sentence: impl Into<String>,
        published: impl Into<String>,
        measured: impl Into<String>,
        verdict: Verdict,
    ) -> Self {
        let holds = verdict == Verdict::Reproduced;
        Self { verdict, ..Self::holds(sentence, published, measured, holds) }
    }

    /// The value agrees with `expected` within four standard errors.
    pub fn agrees(sentence: impl Into<String>, measured: Estimate, expected: f64) -> Self {
        let off = measured.errors_from(expected);
        let mut claim = Self::holds(sentence, short(expected), format!("{measured}"), off <= 4.0);
        if off > 4.0 {
            claim.reason = Some(format!("off by {off:.1} standard errors"));
        }
        claim
    }

    /// Many values, each within four standard errors of what was expected of it: the worst is shown.
    pub fn all_agree(
        sentence: impl Into<String>,
        values: impl IntoIterator<Item = (String, Option<Estimate>, f64)>,
    ) -> Self {
        let sentence = sentence.into();
        let mut worst: Option<(f64, String, Estimate, f64)> = None;
        let mut count = 0;
        for (name, measured, expected) in values {
            let Some(measured) = measured else {
                let missing = format!("no value at {name}");
                return Self::holds(sentence, short(expected), missing, false);
            };
            count += 1;
            let off = measured.errors_from(expected);
            if worst.as_ref().is_none_or(|(other, ..)| off > *other) {
                worst = Some((off, name, measured, expected));
            }
        }
        let Some((off, name, measured, expected)) = worst else {
            return Self::holds(sentence, "", "nothing was measured", false);
        };
        let measured = match count {
            1 => format!("{measured}, {off:.1} s.e."),
            _ => format!("{count} values; farthest at {name}: {measured}, {off:.1} s.e."),
        };
        let mut claim =
            Self::holds(sentence, format!("{} at {name}", short(expected)), measured, off <= 4.0);
        if off > 4.0 {
            claim.reason = Some(format!("off by {off:.1} standard errors at {name}"));
        }
        claim
    }

    /// Puts another verdict on record, with the reason: the claim is known not to hold as published.
    pub fn on_record(mut self, recorded: Verdict, reason: impl Into<String>) -> Self {
        if self.verdict == Verdict::NotReproduced {
            self.verdict = recorded;
        }
        self.recorded = recorded;
        self.reason = Some(reason.into());
        self
    }

    /// Whether the verdict is the one on record.
    pub fn as_recorded(&self) -> bool {
        self.verdict == self.recorded
    }
}

/// Rounding of sums of microseconds, far below anything measured.
const TINY: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_judged_in_standard_errors() {
        let measured = Estimate { value: 1.0, half_width: 0.196 };
        assert_eq!(Claim::agrees("", measured, 1.39).verdict, Verdict::Reproduced);
        let off = Claim::agrees("", measured, 1.41);
        assert_eq!(off.verdict, Verdict::NotReproduced);
        assert_eq!(off.reason.as_deref(), Some("off by 4.1 standard errors"));
        assert!(Claim::agrees("", Estimate::exact(0.1), 0.1).as_recorded());
        assert!(!Claim::agrees("", Estimate::exact(0.1), 0.2).as_recorded());
    }

    #[test]
    fn the_worst_of_many_speaks_for_all_and_a_missing_one_does_not_pass() {
        let at = |value| Some(Estimate { value, half_width: 0.196 });
        let claim = Claim::all_agree(
            "",
            [("a".into(), at(1.0), 1.0), ("b".into(), at(2.0), 2.9), ("c".into(), at(3.0), 3.1)],
        );
        assert_eq!(claim.verdict, Verdict::NotReproduced);
        assert!(claim.measured.contains("farthest at b"), "{}", claim.measured);
        let missing = Claim::all_agree("", [("a".into(), None, 1.0)]);
        assert_eq!(missing.verdict, Verdict::NotReproduced);
        assert_eq!(Claim::all_agree("", []).verdict, Verdict::NotReproduced);
    }

    #[test]
    fn a_known_failure_is_as_recorded_and_an_unexpected_success_is_not() {
        let known = |holds| {
            Claim::holds("", "", "", holds).on_record(Verdict::NotReproduced, "not in the model")
        };
        assert!(known(false).as_recorded());
        assert!(!known(true).as_recorded(), "the record is out of date");
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
