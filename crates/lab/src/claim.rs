//! Claims: a sentence, what was published, what was measured, and a verdict.

use std::fmt::{self, Display};

use crate::{
    estimate::{self, Estimate, short},
    experiment::Size,
};

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

/// What was claimed, and what we found.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The claim in a sentence, its criterion included.
    pub sentence: String,
    /// What was published, or what analysis says; a value or a trend.
    pub published: String,
    /// What was measured.
    pub measured: String,
    /// How it fared, by the measurement and nothing else.
    pub verdict: Verdict,
    /// The verdict on record: what a reader of the documentation will expect.
    pub recorded: Verdict,
    /// Why, when it is not simply reproduced.
    pub reason: Option<String>,
    size: Size,
}

impl Claim {
    /// Puts another verdict on record, with the reason: the claim is known not to hold as published. What was measured
    /// is judged as before.
    pub fn on_record(mut self, recorded: Verdict, reason: impl Into<String>) -> Self {
        self.recorded = recorded;
        self.reason = Some(reason.into());
        self
    }

    /// Puts on record that it fails.
    pub fn missed(self, reason: &str) -> Self {
        self.on_record(Verdict::NotReproduced, reason)
    }

    /// Puts on record that it fails at full size; quick runs are too few, or too small, to tell.
    pub fn missed_at_full_size(self, reason: &str) -> Self {
        self.missed_at(&[Size::Full], reason)
    }

    /// Puts on record that it fails at these sizes.
    pub fn missed_at(self, sizes: &[Size], reason: &str) -> Self {
        if sizes.contains(&self.size) { self.missed(reason) } else { self }
    }

    /// Whether the verdict is the one on record.
    pub fn as_recorded(&self) -> bool {
        self.verdict == self.recorded
    }
}

/// A claim that still has to be judged: its sentence and what was published. The criterion ends the sentence, with the
/// numbers it is judged by.
#[derive(Clone, Debug)]
pub struct Draft {
    size: Size,
    sentence: String,
    published: String,
    /// Stands for the values themselves.
    shown: Option<String>,
    /// How values are written.
    style: Style,
}

#[derive(Clone, Copy, Debug)]
enum Style {
    /// With their intervals.
    Whole,
    /// So many digits, and no intervals.
    Digits(usize),
    /// With intervals, and a sign.
    Percent,
}

/// One value or several.
pub struct Values(Vec<Estimate>);

impl From<Estimate> for Values {
    fn from(one: Estimate) -> Self {
        Self(vec![one])
    }
}

impl<const N: usize> From<[Estimate; N]> for Values {
    fn from(all: [Estimate; N]) -> Self {
        Self(all.into())
    }
}

impl From<Vec<Estimate>> for Values {
    fn from(all: Vec<Estimate>) -> Self {
        Self(all)
    }
}

impl Draft {
    pub(crate) fn new(
        size: Size,
        sentence: impl Into<String>,
        published: impl Into<String>,
    ) -> Self {
        let (sentence, published) = (sentence.into(), published.into());
        Self { size, sentence, published, shown: None, style: Style::Whole }
    }

    /// Shows this instead of the values.
    pub fn showing(self, measured: impl Display) -> Self {
        Self { shown: Some(measured.to_string()), ..self }
    }

    /// Values are percentages.
    pub fn percent(self) -> Self {
        Self { style: Style::Percent, ..self }
    }

    /// Values are shown with so many digits behind the point, without their intervals.
    pub fn digits(self, digits: usize) -> Self {
        Self { style: Style::Digits(digits), ..self }
    }

    /// Holds if `holds`; the sentence says when that is.
    pub fn holds(self, measured: impl Display, holds: bool) -> Claim {
        let verdict = if holds { Verdict::Reproduced } else { Verdict::NotReproduced };
        self.judged(measured, verdict)
    }

    /// With a verdict that is more than yes or no.
    pub fn judged(self, measured: impl Display, verdict: Verdict) -> Claim {
        let missed = verdict != Verdict::Reproduced;
        Claim {
            sentence: self.sentence,
            published: self.published,
            measured: self.shown.unwrap_or_else(|| measured.to_string()),
            verdict,
            recorded: Verdict::Reproduced,
            reason: missed.then(|| "the measured value lies outside the criterion".into()),
            size: self.size,
        }
    }

    /// Every value is at most so much, with grace.
    pub fn at_most(self, values: impl Into<Values>, high: f64) -> Claim {
        let criterion = format!("at most {}", self.number(high));
        self.within(values, f64::NEG_INFINITY, high, &criterion)
    }

    /// Every value is at least so much, with grace.
    pub fn at_least(self, values: impl Into<Values>, low: f64) -> Claim {
        let criterion = format!("at least {}", self.number(low));
        self.within(values, low, f64::INFINITY, &criterion)
    }

    /// Every value is from `low` to `high`, with grace.
    pub fn between(self, values: impl Into<Values>, low: f64, high: f64) -> Claim {
        let criterion = format!("{low} to {}", self.number(high));
        self.within(values, low, high, &criterion)
    }

    /// Every value is above zero, with grace.
    pub fn above_zero(self, values: impl Into<Values>) -> Claim {
        self.within(values, f64::MIN_POSITIVE, f64::INFINITY, "above 0")
    }

    /// Every value is this in every run.
    pub fn exactly(mut self, values: impl Into<Values>, expected: f64) -> Claim {
        let Values(values) = values.into();
        self.end(&format!("{expected}"));
        let holds = values.iter().all(|one| one.value == expected && one.error == 0.0);
        let measured = self.list(&values);
        self.holds(measured, holds && !values.is_empty())
    }

    /// Each value is above the one before, but for two standard errors of each.
    pub fn rising(self, values: impl Into<Values>) -> Claim {
        let Values(values) = values.into();
        let measured = self.list(&values);
        self.holds(measured, estimate::is_ascending(&values))
    }

    /// A line explains the values to this share: `R²`.
    pub fn linear(mut self, points: &[(f64, Estimate)], low: f64) -> Claim {
        let points: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*x, y.value)).collect();
        let fit = estimate::fit(&points);
        self.end(&format!("R² at least {low}"));
        self.holds(format!("R² = {fit:.3}"), fit >= low)
    }

    /// Many values, each within four standard errors of what was expected of it: the worst is shown.
    pub fn agrees<Name: Display>(
        mut self,
        values: impl IntoIterator<Item = (Name, Estimate, f64)>,
    ) -> Claim {
        let off = |(name, value, expected): (Name, Estimate, f64)| {
            let off = value.errors_from(expected);
            (if off.is_nan() { f64::INFINITY } else { off }, name, value, expected)
        };
        let all: Vec<_> = values.into_iter().map(off).collect();
        let count = all.len();
        let worst = all.into_iter().reduce(|a, b| if b.0 > a.0 { b } else { a });
        let Some((off, name, value, expected)) = worst else {
            return self.holds("nothing was measured", false);
        };
        if !value.is_there() {
            return self.holds(format!("no value at {name}"), false);
        }
        self.published = format!("{} at {name}", short(expected));
        let measured = match count {
            1 => format!("{value}, {off:.1} s.e."),
            _ => format!("{count} values; farthest at {name}: {value}, {off:.1} s.e."),
        };
        let mut claim = self.holds(measured, off <= 4.0);
        if off > 4.0 {
            claim.reason = Some(format!("off by {off:.1} standard errors at {name}"));
        }
        claim
    }

    /// Ends the sentence.
    fn end(&mut self, criterion: &str) {
        self.sentence.push_str(": ");
        self.sentence.push_str(criterion);
    }

    fn within(mut self, values: impl Into<Values>, low: f64, high: f64, criterion: &str) -> Claim {
        let Values(values) = values.into();
        self.end(criterion);
        let holds = values.iter().all(|&one| is_between(self.size, one, low, high));
        let measured = self.list(&values);
        self.holds(measured, holds && !values.is_empty())
    }

    fn number(&self, value: f64) -> String {
        match self.style {
            Style::Percent => format!("{value}%"),
            _ => format!("{value}"),
        }
    }

    fn list(&self, values: &[Estimate]) -> String {
        let one = |one: &Estimate| match self.style {
            Style::Whole => format!("{one}"),
            Style::Digits(digits) => format!("{one:.digits$}"),
            Style::Percent => percent(*one),
        };
        values.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a value lies between two bounds: at full size itself, when quick with four standard errors' grace.
pub(crate) fn is_between(size: Size, one: Estimate, low: f64, high: f64) -> bool {
    let grace = size.pick(0.0, 4.0) * one.error;
    one.value + grace >= low && one.value - grace <= high
}

/// A percentage with its interval.
pub fn percent(value: Estimate) -> String {
    match value.is_there() {
        true => format!("{:.1} ± {:.1}%", value.value, value.half_width()),
        false => value.to_string(),
    }
}

/// Several values in their order.
pub fn list(values: impl IntoIterator<Item = impl Display>) -> String {
    values.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft::new(Size::Full, "It is so", "1")
    }

    #[test]
    fn agreement_is_judged_in_standard_errors_and_the_worst_speaks_for_all() {
        let at = |value| Estimate::known(value, 0.1);
        let agrees = |values: &[(&str, Estimate, f64)]| draft().agrees(values.iter().copied());
        assert!(agrees(&[("a", at(1.0), 1.39)]).as_recorded());
        let off = agrees(&[("a", at(1.0), 1.0), ("b", at(1.0), 1.41), ("c", at(1.0), 1.2)]);
        assert_eq!(off.reason.as_deref(), Some("off by 4.1 standard errors at b"));
        assert!(off.measured.contains("farthest at b") && !off.as_recorded());
        assert!(agrees(&[("a", Estimate::exact(0.1), 0.1)]).as_recorded());
        for bad in [
            agrees(&[("a", Estimate::exact(0.1), 0.2)]),
            agrees(&[("a", at(1.0), 1.0), ("b", Estimate::NOTHING, 1.0)]),
            agrees(&[]),
        ] {
            assert_eq!(bad.verdict, Verdict::NotReproduced, "{bad:?}");
        }
    }

    #[test]
    fn the_number_that_is_judged_is_the_one_in_the_sentence() {
        let at = |value| Estimate::known(value, 0.1);
        let most = draft().at_most(at(1.2), 1.15);
        assert_eq!((most.sentence.as_str(), most.as_recorded()), ("It is so: at most 1.15", false));
        let both = draft().between([at(2.0), at(3.0)], 2.0, 3.5);
        assert_eq!((both.sentence.as_str(), both.as_recorded()), ("It is so: 2 to 3.5", true));
        assert_eq!(draft().percent().at_least(at(7.0), 7.0).sentence, "It is so: at least 7%");
        assert!(!draft().at_most([at(1.0), Estimate::NOTHING], 9.0).as_recorded());
        assert!(!draft().at_most(vec![], 9.0).as_recorded(), "nothing was measured");
        let quick = Draft { size: Size::Quick, ..draft() };
        assert!(quick.at_most(at(1.2), 1.15).as_recorded(), "four standard errors' grace");
    }

    #[test]
    fn a_record_is_an_expectation_and_decides_nothing() {
        for recorded in [Verdict::Reproduced, Verdict::Partly, Verdict::NotReproduced] {
            for holds in [true, false] {
                let before = draft().holds("", holds);
                let claim = before.clone().on_record(recorded, "known");
                assert_eq!(claim.verdict, before.verdict);
                assert_eq!(claim.as_recorded(), recorded == before.verdict);
            }
        }
        assert!(draft().holds("", true).missed_at(&[Size::Quick], "").as_recorded());
    }
}
