//! Several values of one thing, in few numbers.

/// At least one value.
#[derive(Clone, Debug)]
pub struct Summary(Vec<f64>);

impl Summary {
    /// None of no values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        (!sorted.is_empty()).then_some(Self(sorted))
    }

    /// Their sum divided by their number.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard deviation of what they were drawn from; none for a single value.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let (mean, count) = (self.mean(), self.0.len());
        let squares: f64 = self.0.iter().map(|value| (value - mean) * (value - mean)).sum();
        (count > 1).then(|| (squares / (count - 1) as f64).sqrt())
    }

    /// As many are above it as below.
    #[must_use]
    pub fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 {
            self.0[middle]
        } else {
            f64::midpoint(self.0[middle - 1], self.0[middle])
        }
    }

    /// The smallest of all values.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.0[0]
    }

    /// The largest of all values.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_numbers_say_it() {
        let summary = Summary::of(&[4.0, 1.0, 2.0, 5.0]).unwrap();
        assert_eq!((summary.least(), summary.median(), summary.most()), (1.0, 3.0, 5.0));
        assert_eq!(summary.mean(), 3.0);
        assert!((summary.deviation().unwrap() - (10.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!(Summary::of(&[]).is_none());
        assert_eq!(Summary::of(&[7.0]).unwrap().deviation(), None);
    }

    #[test]
    fn one_that_never_came_is_the_most() {
        let summary = Summary::of(&[1.0, f64::INFINITY, 2.0]).unwrap();
        assert_eq!((summary.median(), summary.most()), (2.0, f64::INFINITY));
    }
}
