//! Several values of one thing, in few numbers.

/// Values, sorted. Those that never came are infinite.
#[derive(Clone, Debug, Default)]
pub struct Spread(Vec<f64>);

impl Spread {
    /// No values yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// These values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        (!sorted.is_empty()).then_some(Self(sorted))
    }

    /// Adds one more value.
    pub fn add(&mut self, value: f64) {
        self.0.insert(self.0.partition_point(|other| *other < value), value);
    }

    /// Adds all values of another.
    pub fn extend(&mut self, others: &Self) {
        others.0.iter().for_each(|&value| self.add(value));
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Their sum divided by their number.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard deviation of what they were drawn from; none for a single value.
    pub fn deviation(&self) -> Option<f64> {
        let (mean, count) = (self.mean(), self.0.len());
        let squares: f64 = self.0.iter().map(|value| (value - mean) * (value - mean)).sum();
        (count > 1).then(|| (squares / (count - 1) as f64).sqrt())
    }

    /// The standard error of the mean; not a number for a single value.
    pub fn error(&self) -> f64 {
        self.deviation().unwrap_or(f64::NAN) / (self.0.len() as f64).sqrt()
    }

    /// As many are above it as below.
    pub fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        match self.0.len() % 2 {
            1 => self.0[middle],
            _ => f64::midpoint(self.0[middle - 1], self.0[middle]),
        }
    }

    /// The smallest that this share does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// How many are above this.
    pub fn above(&self, bound: f64) -> usize {
        self.0.iter().filter(|&&value| value > bound).count()
    }

    /// The smallest of all values.
    pub fn least(&self) -> f64 {
        self.0[0]
    }

    /// The largest of all values.
    pub fn most(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_numbers_say_it() {
        let mut spread = Spread::of(&[4.0, 1.0, 5.0]).unwrap();
        spread.add(2.0);
        assert_eq!((spread.least(), spread.median(), spread.most()), (1.0, 3.0, 5.0));
        assert_eq!((spread.count(), spread.mean(), spread.above(2.0)), (4, 3.0, 2));
        assert_eq!([0.0, 0.5, 0.75, 1.0].map(|share| spread.quantile(share)), [1.0, 2.0, 4.0, 5.0]);
        assert!((spread.deviation().unwrap() - (10.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((spread.error() - (10.0_f64 / 12.0).sqrt()).abs() < 1e-12);
        assert!(Spread::of(&[]).is_none() && Spread::new().quantile(0.5).is_nan());
        assert_eq!(Spread::of(&[7.0]).unwrap().deviation(), None);
    }

    #[test]
    fn one_that_never_came_is_the_most() {
        let spread = Spread::of(&[1.0, f64::INFINITY, 2.0]).unwrap();
        assert_eq!((spread.median(), spread.most()), (2.0, f64::INFINITY));
    }
}
