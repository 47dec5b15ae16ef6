//! Drawing without putting back: of `all`, `marked` are; `drawn` are drawn.
//!
//! Lists that lack a node are the marked, responders the drawn. As products of ratios, which neither overflow
//! nor lose digits, so that the bounds of [`bellwether_proto::churn::tail`] are checked by another way.

/// Probability that exactly `k` of the drawn are marked.
pub fn probability(all: u32, marked: u32, drawn: u32, k: u32) -> f64 {
    assert!(marked <= all && drawn <= all, "{marked} and {drawn} of {all}");
    if k > marked.min(drawn) || drawn - k > all - marked {
        return 0.0;
    }
    // C(marked, k)·C(all-marked, drawn-k) / C(all, drawn), each a product of its own length; to keep the whole
    // in range, a factor of the denominator is taken whenever the product is above 1.
    let choose = |of: u32, take: u32| (0..take).map(move |i| f64::from(of - i) / f64::from(i + 1));
    let above = choose(marked, k).chain(choose(all - marked, drawn - k));
    let mut below = choose(all, drawn);
    let mut product = 1.0;
    for factor in above {
        product *= factor;
        while product > 1.0
            && let Some(factor) = below.next()
        {
            product /= factor;
        }
    }
    below.fold(product, |product, factor| product / factor)
}

/// Probability that at most `k` of the drawn are marked.
#[cfg(test)]
fn at_most(all: u32, marked: u32, drawn: u32, k: u32) -> f64 {
    (0..=k.min(drawn)).map(|k| probability(all, marked, drawn, k)).sum()
}

/// Probability that all drawn are marked, `C(marked, drawn)/C(all, drawn)`; 1 if nobody is drawn.
pub fn all_marked(all: u32, marked: u32, drawn: u32) -> f64 {
    assert!(marked <= all && drawn <= all, "{marked} and {drawn} of {all}");
    (0..drawn).map(|i| f64::from(marked.saturating_sub(i)) / f64::from(all - i)).product()
}

#[cfg(test)]
mod tests {
    use bellwether_proto::{Seed, churn::tail};

    use super::super::{close, draw, simulates};
    use super::*;

    /// Every subset of up to ten, by bits.
    #[test]
    fn it_is_what_counting_all_draws_gives() {
        for (all, marked) in (0..=10_u32).flat_map(|all| (0..=all).map(move |m| (all, m))) {
            let mut counts = vec![vec![0_u32; all as usize + 1]; all as usize + 1];
            for set in 0..1_u32 << all {
                let hits = (set & ((1 << marked) - 1)).count_ones();
                counts[set.count_ones() as usize][hits as usize] += 1;
            }
            for drawn in 0..=all {
                let row = &counts[drawn as usize];
                let total: u32 = row.iter().sum();
                for k in 0..=all {
                    let exact = f64::from(row[k as usize]) / f64::from(total);
                    let name = format!("{k} of {drawn}, {marked} of {all}");
                    close(&name, probability(all, marked, drawn, k), exact, 1e-13);
                }
                let share = |k: u32| f64::from(row[k as usize]) / f64::from(total);
                close("all", all_marked(all, marked, drawn), share(drawn), 1e-13);
            }
        }
    }

    #[test]
    fn it_simulates() {
        let mut rng = Seed::new(11).rng();
        simulates("P(K = 3)", probability(128, 25, 14, 3), || {
            let hits = draw(&mut rng, 128, 14).into_iter().filter(|&node| node < 25).count();
            f64::from(u8::from(hits == 3))
        });
    }

    #[test]
    fn the_protocols_bound_is_of_the_same_distribution() {
        for (all, marked, drawn) in
            [(128, 25, 30), (1000, 100, 464), (1000, 990, 900), (49, 13, 49)]
        {
            for k in 0..=drawn.min(120) {
                let name = format!("at most {k} of {drawn}, {marked} of {all}");
                let ours = at_most(all, marked, drawn, k);
                close(&name, tail::hypergeometric(all, marked, drawn, k), ours, 1e-10);
            }
        }
        close("in total", at_most(1000, 500, 460, 460), 1.0, 1e-12);
    }
}
