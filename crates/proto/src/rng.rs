//! Randomness as a value: one seed per run, a named sub-seed per concern.
//!
//! The generator is xoshiro256++ seeded by SplitMix64, fixed by this crate and pinned by golden
//! numbers in the tests; everything drawn from it uses integer arithmetic or [`libm`]. One seed
//! therefore gives one sequence on every platform. Sub-seeds are derived by *name*, so that a new
//! draw in one concern (a coin for a new fault, say) does not shift the draws of another.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::time::Duration;

/// The root of a run's randomness, or a named branch of it.
///
/// ```
/// use bellwether_proto::Seed;
///
/// let run = Seed::new(42);
/// let mut network = run.named("network").rng();
/// let mut node_7 = run.named("node").indexed(7).rng();
/// assert_ne!(network.next(), node_7.next());
/// assert_eq!(run.named("network").rng().next(), Seed::new(42).named("network").rng().next());
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Seed(u64);

impl Seed {
    /// The root seed with this number.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The branch for one concern.
    pub const fn named(self, name: &str) -> Self {
        // FNV-1a over the name, then the finaliser of SplitMix64 over both.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let bytes = name.as_bytes();
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
        Self(mix(self.0 ^ hash))
    }

    /// The branch for one of many, such as one node.
    pub const fn indexed(self, index: u64) -> Self {
        Self(mix(self.0.wrapping_add(index.wrapping_mul(GOLDEN_GAMMA)).wrapping_add(GOLDEN_GAMMA)))
    }

    /// The generator of this branch.
    pub fn rng(self) -> Rng {
        let mut state = self.0;
        let mut seed = [0; 32];
        for word in seed.chunks_exact_mut(8) {
            state = state.wrapping_add(GOLDEN_GAMMA);
            word.copy_from_slice(&mix(state).to_le_bytes());
        }
        Rng(Xoshiro256PlusPlus::from_seed(seed))
    }
}

/// A seeded generator: 32 bytes of state, no global, no operating system.
///
/// ```
/// use bellwether_proto::{Duration, Seed};
///
/// let mut rng = Seed::new(1).rng();
/// assert!(rng.below(6) < 6);
/// assert!(rng.up_to(Duration::from_millis(20)) <= Duration::from_millis(20));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Sixty-four uniform bits.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an endless generator is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A whole number below `bound`, uniform to within `bound / 2^64`. Zero if `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True with probability `p`; never for 0, always for 1.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// A number in `[0, 1]` from the exponential of rate `lambda` cut off at 1 and *turned round*, so
    /// that its density rises: `ln(1 + u(e^λ - 1)) / λ`. Few of many such draws fall near zero, which
    /// is what a suppression timer wants (Nonnenmacher and Biersack). `lambda` is positive.
    #[inline]
    pub fn rising(&mut self, lambda: f64) -> f64 {
        let u = self.unit();
        let span = libm::expm1(lambda);
        let draw = if span.is_finite() {
            libm::log1p(u * span) / lambda
        } else {
            // The same with `e^λ` taken out of the logarithm, where it would overflow.
            1.0 + libm::log(u) / lambda
        };
        draw.clamp(0.0, 1.0)
    }

    /// A number from the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }

    /// A number from the beta distribution; both shapes are at least 1.
    pub fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (a, b) = (self.gamma(a), self.gamma(b));
        a / (a + b)
    }

    /// A number from the gamma distribution of this shape, at least 1 (Marsaglia and Tsang).
    fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape.max(1.0) - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            let v = v * v * v;
            if v > 0.0 && libm::log(1.0 - self.unit()) < 0.5 * x * x + d - d * v + d * libm::log(v)
            {
                return d * v;
            }
        }
    }

    /// A span uniform over the whole microseconds from zero to `longest`, both included.
    #[inline]
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        Duration::from_micros(match longest.as_micros().checked_add(1) {
            Some(bound) => self.below(bound),
            None => self.next(),
        })
    }
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64: a bijection on 64 bits.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden numbers: a dependency that changed its algorithm would change every trace ever
    /// recorded, and this test is where it would be noticed.
    #[test]
    fn the_algorithm_is_pinned() {
        let mut rng = Seed::new(1).named("golden").indexed(2).rng();
        assert_eq!(
            [rng.next(), rng.next(), rng.next()],
            [2_198_423_920_657_842_434, 2_155_270_363_707_197_714, 13_625_521_038_844_014_784],
            "the generator or the seeding changed"
        );
    }

    #[test]
    fn draws_stay_in_range_and_fill_it() {
        let mut rng = Seed::new(7).rng();
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[rng.below(6) as usize] += 1;
            let unit = rng.unit();
            assert!((0.0..1.0).contains(&unit));
            assert!(rng.up_to(Duration::from_micros(3)) <= Duration::from_micros(3));
        }
        // Binomial(60000, 1/6) has a standard deviation of 91: five of them.
        assert!(seen.iter().all(|&n| (9_543..=10_457).contains(&n)), "{seen:?}");
        assert!(!rng.chance(0.0));
        assert!(rng.chance(1.0));
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn rising_draws_have_the_mean_of_the_closed_form_at_any_rate() {
        for lambda in [1e-300, 1e-3, 1.0, 3.3, 7.2, 50.0, 709.0, 710.0, 1e6, f64::MAX] {
            let mut rng = Seed::new(11).rng();
            let draws = 40_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..draws {
                let draw = rng.rising(lambda);
                assert!((0.0..=1.0).contains(&draw), "{lambda}: {draw}");
                sum += draw;
                squares += draw * draw;
            }
            let mean = sum / f64::from(draws);
            let error = libm::sqrt((squares / f64::from(draws) - mean * mean) / f64::from(draws));
            // Below the first bound the two terms cancel; the limit is uniform.
            let expected = if lambda < 1e-2 {
                0.5 + lambda / 12.0
            } else {
                -1.0 / libm::expm1(-lambda) - 1.0 / lambda
            };
            let off = libm::fabs(mean - expected);
            assert!(off <= 4.0 * error + 1e-12, "{lambda}: {mean} for {expected}");
        }
    }
}
