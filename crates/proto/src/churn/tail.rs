//! What a count proves: so many lists of some lacked a node, so how many of all may?
//!
//! Suppose `M` of `N` lists lack the node that most lack. Of `s` lists drawn at random, the number that lack
//! it is hypergeometric; of `s` answers pooled from several draws, it is about binomial with `p = M/N`. For a
//! count `k`, the largest `M` that would still give `k` or fewer with more than a chance of `1 - x` is a bound
//! that holds with confidence `x` (Clopper and Pearson). Nothing is approximated, so it also holds for `k = 0`
//! and for small samples, where the margins of §7.2.1 mean nothing.
//!
//! That `k` is the *largest* count over all nodes costs no confidence. Let `i` be the node that most lists
//! truly lack. Its own count is at most `k` and the bound grows with the count, so whenever the bound from
//! `i`'s count holds, so does that from `k`; and the former is about one node fixed beforehand.

/// A count, and what it is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Count {
    nodes: u32,
    asked: u32,
    missing: u32,
    drawn: Drawn,
}

/// How those that were asked were drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Drawn {
    /// Nobody twice: one sample.
    Apart,
    /// Each anew: answers of several elections.
    Anew,
}

impl Count {
    /// Of `nodes`, `asked` were; the node that most of these lacked was lacked by `missing`. Numbers that
    /// cannot be are lowered to what can.
    pub fn new(nodes: u32, asked: u32, missing: u32, drawn: Drawn) -> Self {
        let asked = match drawn {
            Drawn::Apart => asked.min(nodes),
            Drawn::Anew => asked,
        };
        Self { nodes, asked, missing: missing.min(asked), drawn }
    }

    /// How many answered.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// The largest `c` that is to be reckoned with, where being wrong with a chance of `1 - confidence` is
    /// accepted. All others, if nobody was asked or the confidence is 1.
    pub fn at_most(&self, confidence: f64) -> u32 {
        let most = self.nodes.saturating_sub(1);
        // The largest M in [low, high] that is not refuted; being refuted is monotone in M.
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.tail(middle) > 1.0 - confidence {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }

    /// The largest confidence with which no more than `c` lists lack any node.
    pub fn confidence(&self, c: u32) -> f64 {
        if c >= self.nodes.saturating_sub(1) { 1.0 } else { 1.0 - self.tail(c + 1) }
    }

    /// How likely a count as small as ours is if `truly` lists of all lack the node.
    fn tail(&self, truly: u32) -> f64 {
        match self.drawn {
            Drawn::Apart => hypergeometric(self.nodes, truly, self.asked, self.missing),
            Drawn::Anew => {
                let share = f64::from(truly) / f64::from(self.nodes.max(1));
                binomial(self.asked, share, self.missing)
            }
        }
    }
}

/// `P(K ≤ k)`, where `K` counts the marked among `drawn` of `all` without putting any back, `marked` of them.
pub fn hypergeometric(all: u32, marked: u32, drawn: u32, k: u32) -> f64 {
    let (marked, drawn) = (marked.min(all), drawn.min(all));
    let least = (marked + drawn).saturating_sub(all);
    let most = marked.min(drawn);
    if k >= most {
        return 1.0;
    }
    if k < least {
        return 0.0;
    }
    let [n, m, s] = [all, marked, drawn].map(f64::from);
    let chance =
        libm::exp(choose(marked, k) + choose(all - marked, drawn - k) - choose(all, drawn));
    // How much likelier one more is than `i`.
    let ratio = |i: u32| {
        let i = f64::from(i);
        (m - i) * (s - i) / ((i + 1.0) * (n - m - s + i + 1.0))
    };
    below(least, k, most, chance, ratio)
}

/// `P(K ≤ k)`, where `K` counts successes of `tries` with probability `p`.
pub fn binomial(tries: u32, p: f64, k: u32) -> f64 {
    if k >= tries || p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    let (hit, miss) = (libm::log(p), libm::log1p(-p));
    let log = choose(tries, k) + f64::from(k) * hit + f64::from(tries - k) * miss;
    let odds = p / (1.0 - p);
    let ratio = |i: u32| f64::from(tries - i) / (f64::from(i) + 1.0) * odds;
    below(0, k, tries, libm::exp(log), ratio)
}

/// The sum of the chances up to `k`, given that of `k` and how they grow: on the side of `k` where they fall, and
/// only until they no longer matter.
fn below(least: u32, k: u32, most: u32, chance: f64, ratio: impl Fn(u32) -> f64) -> f64 {
    let (mut term, mut sum) = (chance, 0.0);
    if ratio(k) < 1.0 {
        for i in k..most {
            term *= ratio(i);
            sum += term;
            if term <= sum * f64::EPSILON {
                break;
            }
        }
        return (1.0 - sum).clamp(0.0, 1.0);
    }
    sum = term;
    for i in (least..k).rev() {
        term /= ratio(i);
        sum += term;
        if term <= sum * f64::EPSILON {
            break;
        }
    }
    sum.clamp(0.0, 1.0)
}

/// The logarithm of the number of ways to take so many of `of`.
fn choose(of: u32, take: u32) -> f64 {
    let factorial = |n: u32| libm::lgamma(f64::from(n) + 1.0);
    factorial(of) - factorial(take) - factorial(of - take)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ways(of: u64, take: u64) -> u64 {
        if take > of { 0 } else { (0..take).fold(1, |ways, i| ways * (of - i) / (i + 1)) }
    }

    #[test]
    fn tails_are_those_of_counting() {
        for all in 0..=12_u32 {
            for (marked, drawn) in (0..=all).flat_map(|m| (0..=all).map(move |d| (m, d))) {
                let mut sum = 0;
                for k in 0..=drawn {
                    sum += ways(marked.into(), k.into())
                        * ways((all - marked).into(), (drawn - k).into());
                    let exact = sum as f64 / ways(all.into(), drawn.into()) as f64;
                    let found = hypergeometric(all, marked, drawn, k);
                    assert!((found - exact).abs() < 1e-12, "{all} {marked} {drawn} {k}: {found}");
                }
            }
        }
        for (tries, p, k, expected) in
            [(10, 0.5, 4, 386.0 / 1024.0), (3, 0.1, 0, 0.729), (3, 0.1, 2, 0.999), (3, 1.0, 2, 0.0)]
        {
            assert!((binomial(tries, p, k) - expected).abs() < 1e-12);
        }
    }

    /// However many lists truly lack a node, the bound is below that no more often than promised. Exhaustive.
    #[test]
    fn the_bound_holds_as_often_as_it_says() {
        for (nodes, confidence) in [(6, 0.8), (13, 0.9), (32, 0.95), (49, 0.99)] {
            for (asked, truly) in (1..=nodes).flat_map(|s| (0..nodes).map(move |m| (s, m))) {
                let mut wrong = 0.0;
                let mut below = 0.0;
                for k in 0..=asked.min(truly) {
                    let up_to = hypergeometric(nodes, truly, asked, k);
                    if Count::new(nodes, asked, k, Drawn::Apart).at_most(confidence) < truly {
                        wrong += up_to - below;
                    }
                    below = up_to;
                }
                assert!(wrong <= 1.0 - confidence + 1e-9, "{nodes} {asked} {truly}: {wrong}");
            }
        }
    }

    #[test]
    fn who_asked_nobody_knows_nothing_and_who_asked_everybody_all() {
        for drawn in [Drawn::Apart, Drawn::Anew] {
            let nothing = Count::new(128, 0, 0, drawn);
            assert_eq!((nothing.at_most(0.95), nothing.confidence(126)), (127, 0.0));
            assert_eq!(nothing.confidence(127), 1.0, "nobody is missing from its own list");
        }
        let all = Count::new(128, 128, 9, Drawn::Apart);
        assert_eq!((all.at_most(0.999), all.confidence(9), all.confidence(8)), (9, 1.0, 0.0));
        // The rule of three: nothing among s puts p below 3/s with 95%.
        let none = Count::new(100_000, 300, 0, Drawn::Anew);
        assert!((990..=1000).contains(&none.at_most(0.95)), "{}", none.at_most(0.95));
    }

    proptest! {
        #[test]
        fn bounds_and_confidence_agree(
            nodes in 1..400_u32,
            asked in 0..400_u32,
            missing in 0..400_u32,
            anew: bool,
            x in 0.01..0.999_f64,
        ) {
            let drawn = if anew { Drawn::Anew } else { Drawn::Apart };
            let count = Count::new(nodes, asked, missing, drawn);
            let bound = count.at_most(x);
            prop_assert!(bound < nodes);
            prop_assert!(count.confidence(bound) >= x - 1e-9);
            prop_assert!(bound == 0 || count.confidence(bound - 1) <= x + 1e-9);
            prop_assert!(count.at_most(0.999) >= bound, "more confidence, a larger bound");
            let more = Count::new(nodes, asked, missing + 1, drawn);
            prop_assert!(more.at_most(x) >= bound, "more missing, a larger bound");
            for c in [0, bound, nodes] {
                prop_assert!((0.0..=1.0).contains(&count.confidence(c)));
            }
        }
    }
}
