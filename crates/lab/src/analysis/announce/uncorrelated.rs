//! F3 for LE-S under uncorrelated loss, without delay (§5.3.3.3): exact for small groups, bounded
//! for large ones, and the published recurrence.
//!
//! Without delay, message counts depend only on the order of waking, hence not on the distribution
//! of the timers (P11). The lower bound of the first round is the formula for correlated loss,
//! [`first_round`](super::messages::first_round) with `delay` 0, since `E[l^sent] ≥ E[l^potential]`. The published
//! total, a sum over endless rounds, diverges and is not here.

use super::{announcements_until_heard, power};

/// The largest group whose `N!` orders of waking are enumerated.
pub const ENUMERATED: u32 = 6;

/// Distribution of the number of processes that announce in the first round, by number; exact.
/// `None` beyond [`ENUMERATED`].
fn first_round_distribution(processes: u32, rate: f64) -> Option<Vec<f64>> {
    let orders = wake_orders(processes)?;
    let mut distribution = vec![0.0; processes as usize + 1];
    for order in &orders {
        let mut senders = vec![0.0; 1 << processes];
        senders[0] = 1.0;
        for &process in order {
            // Downwards, so that a set is read before the newcomer's is added to it.
            for set in (0..senders.len()).rev() {
                let better = set & ((1 << process) - 1);
                let sends = senders[set] * power(rate, better.count_ones());
                senders[set] -= sends;
                senders[set | 1 << process] += sends;
            }
        }
        for (set, probability) in senders.iter().enumerate() {
            distribution[set.count_ones() as usize] += probability / orders.len() as f64;
        }
    }
    Some(distribution)
}

/// Expected number of processes that announce in the first round; exact. `None` beyond
/// [`ENUMERATED`].
pub fn first_round(processes: u32, rate: f64) -> Option<f64> {
    let distribution = first_round_distribution(processes, rate)?;
    Some((0..).zip(distribution).map(|(count, p)| f64::from(count) * p).sum())
}

/// Expected messages until convergence, C2; exact. `None` beyond [`ENUMERATED`].
///
/// Phases are fixed after the first round, so each round takes its turns in the same order: who
/// still announces sends, and each worse one that announces, or has yet to wake, falls silent with
/// probability `1-l`. `q_0` sends `R_{N-1}`.
pub fn total(processes: u32, rate: f64) -> Option<f64> {
    let orders = wake_orders(processes)?;
    if processes < 2 {
        return Some(f64::from(processes));
    }
    if rate >= 1.0 {
        return Some(f64::INFINITY);
    }
    let others: f64 = orders.iter().map(|order| others_until_silence(order, rate)).sum();
    Some(announcements_until_heard(processes - 1, rate) + others / orders.len() as f64)
}

/// Messages of all but the best (bit 0). A round leaves a subset, which is a smaller number, so
/// solving for the sets in ascending order needs nothing but those already solved and the set
/// itself.
fn others_until_silence(order: &[u32], rate: f64) -> f64 {
    let everyone = (1 << order.len()) - 1;
    let mut expected = vec![0.0; everyone + 1];
    for set in (3..=everyone).step_by(2) {
        let (sent, after) = round(order, set, rate);
        let later: f64 = after[..set].iter().zip(&expected).map(|(p, v)| p * v).sum();
        expected[set] = (sent + later) / (1.0 - after[set]);
    }
    expected[everyone]
}

/// One round of the announcers in `start`: what all but the best send, and who is left.
fn round(order: &[u32], start: usize, rate: f64) -> (f64, Vec<f64>) {
    let mut sent = 0.0;
    let mut left = vec![0.0; start + 1];
    left[start] = 1.0;
    for &process in order.iter().filter(|process| start >> **process & 1 == 1) {
        let mut next = vec![0.0; start + 1];
        for (set, &probability) in left.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            if set >> process & 1 == 0 {
                next[set] += probability;
                continue;
            }
            if process > 0 {
                sent += probability;
            }
            let kept = set & ((2 << process) - 1);
            let worse = set & !kept;
            let mut survivors = worse;
            loop {
                let (alive, silent) = (survivors.count_ones(), (worse & !survivors).count_ones());
                next[kept | survivors] +=
                    probability * power(rate, alive) * power(1.0 - rate, silent);
                if survivors == 0 {
                    break;
                }
                survivors = (survivors - 1) & worse;
            }
        }
        left = next;
    }
    (sent, left)
}

/// All orders of `0..processes`, 0 being the best process.
fn wake_orders(processes: u32) -> Option<Vec<Vec<u32>>> {
    if processes > ENUMERATED {
        return None;
    }
    let mut orders = vec![Vec::new()];
    for newcomer in 0..processes {
        let insert = |order: &Vec<u32>, at| {
            let mut longer = order.clone();
            longer.insert(at, newcomer);
            longer
        };
        orders = orders
            .iter()
            .flat_map(|order| (0..=order.len()).map(move |at| insert(order, at)))
            .collect();
    }
    Some(orders)
}

/// Upper bound of the first round: `Σ_{m<N} w_m/(m+1)`, `w_0 = 1`,
/// `w_{m+1} = w_m + [w_m - (1-l)(w_m²+1)/2]/(m+1)`. Exact at `l = 0` and for `N = 2`; proof in
/// F3.
pub fn first_round_at_most(processes: u32, rate: f64) -> f64 {
    let mut weight: f64 = 1.0;
    let mut sum = 0.0;
    for m in 1..=processes {
        sum += weight / f64::from(m);
        weight += (weight - (1.0 - rate) * (weight * weight + 1.0) / 2.0) / f64::from(m);
    }
    sum
}

/// First round by the published recurrence with its exponents repaired, for uniform timers:
/// `Q(i,n) = Q(i-1,n-1)·g_{i-1} + Q(i,n-1)·(1-g_i)`, `g_m = (1-l^{m+1})/((m+1)(1-l))`.
///
/// It takes the senders' times for independent draws, but senders wake early: exact only for
/// `N ≤ 2`, and it grows like `√N` where the truth grows like `log N`.
pub fn first_round_published(processes: u32, rate: f64) -> f64 {
    let mut powers = 0.0;
    let sends: Vec<f64> = (0..=processes)
        .map(|m| {
            powers += power(rate, m);
            powers / f64::from(m + 1)
        })
        .collect();
    let mut sent = vec![0.0; processes as usize + 1];
    sent[0] = 1.0;
    for n in 0..processes as usize {
        for i in (0..=n).rev() {
            let moved = sent[i] * sends[i];
            sent[i] -= moved;
            sent[i + 1] += moved;
        }
    }
    (0..).zip(sent).map(|(i, p)| f64::from(i) * p).sum()
}

#[cfg(test)]
mod tests {
    use bellwether_proto::Seed;

    use super::super::{close, corrects, messages, simulates};
    use super::*;

    #[test]
    fn exact_lines_of_the_table_of_f3() {
        for (n, first, all) in [
            (2, 1.70000, 2.83333),
            (3, 2.24400, 4.08730),
            (4, 2.69046, 5.03048),
            (5, 3.06964, 5.78009),
            (6, 3.39940, 6.39957),
        ] {
            close(&format!("first, N = {n}"), first_round(n, 0.4).unwrap(), first, 5e-6);
            close(&format!("total, N = {n}"), total(n, 0.4).unwrap(), all, 5e-6);
        }
        assert_eq!(first_round(7, 0.4), None);
        assert_eq!(total(7, 0.4), None);
        assert_eq!([total(1, 1.0), total(2, 1.0)], [Some(1.0), Some(f64::INFINITY)]);
    }

    #[test]
    fn first_round_of_three() {
        let senders = first_round_distribution(3, 0.4).unwrap();
        for (value, expected) in senders.into_iter().zip([0.0, 0.12, 0.516, 0.364]) {
            close("N = 3", value, expected, 1e-12);
        }
    }

    #[test]
    fn limits_of_the_exact_forms() {
        for n in 1..=ENUMERATED {
            close("l = 0", first_round(n, 0.0).unwrap(), messages::harmonic(n), 1e-12);
            close("l = 0", total(n, 0.0).unwrap(), messages::harmonic(n), 1e-12);
            close("l = 1", first_round(n, 1.0).unwrap(), f64::from(n), 1e-12);
            close("l = 1", first_round_at_most(n, 1.0), f64::from(n), 1e-12);
            close("l = 0", first_round_at_most(n, 0.0), messages::harmonic(n), 1e-12);
        }
        close("P9", total(2, 0.7).unwrap(), messages::total(2, 0.0, 0.7), 1e-12);
    }

    #[test]
    fn bounds_of_f3() {
        for (n, upper, published) in [
            (2, 1.700, 1.700),
            (3, 2.252, 2.274),
            (4, 2.710, 2.769),
            (5, 3.103, 3.208),
            (6, 3.448, 3.607),
            (10, 4.515, 4.941),
            (50, 8.587, 12.168),
            (100, 10.534, 17.538),
            (500, 15.231, 40.135),
        ] {
            close(&format!("upper, N = {n}"), first_round_at_most(n, 0.4), upper, 5e-4);
            close(&format!("published, N = {n}"), first_round_published(n, 0.4), published, 5e-4);
        }
    }

    #[test]
    fn exact_forms_lie_between_the_bounds() {
        for n in 2..=ENUMERATED {
            for rate in [0.1, 0.4, 0.9] {
                let exact = first_round(n, rate).unwrap();
                let lower = messages::first_round(n, 0.0, rate);
                let upper = first_round_at_most(n, rate);
                assert!(lower <= exact + 1e-12 && exact <= upper + 1e-12, "N = {n}, l = {rate}");
            }
        }
    }

    #[test]
    fn whole_runs_of_four_by_simulation() {
        let mut rng = Seed::new(9).named("le-s").rng();
        simulates("N = 4", total(4, 0.4).unwrap(), || {
            let mut order = [0, 1, 2, 3];
            order.sort_by_cached_key(|_| rng.next());
            let (mut silent, mut heard) = ([false; 4], [true, false, false, false]);
            let mut sent = 0.0;
            while heard.contains(&false) {
                for sender in order {
                    if silent[sender] || !heard.contains(&false) {
                        continue;
                    }
                    sent += 1.0;
                    for worse in (sender + 1..4).filter(|_| !rng.chance(0.4)) {
                        silent[worse] = true;
                        heard[worse] |= sender == 0;
                    }
                }
            }
            sent
        });
    }

    /// Measured values of the table without delay.
    #[test]
    fn a_8_senders_wake_early() {
        close("published, l = 0, N = 3", first_round_published(3, 0.0), 1.9167, 5e-5);
        close("true, l = 0, N = 3", first_round(3, 0.0).unwrap(), 11.0 / 6.0, 1e-12);
        for (n, truth) in [(3, 2.24400), (4, 2.69046), (5, 3.06964), (6, 3.39940)] {
            let exact = first_round(n, 0.4).unwrap();
            corrects(&format!("N = {n}"), first_round_published(n, 0.4), exact, truth, 1e-5);
        }
        for (n, measured, error) in
            [(10, 4.394, 0.008), (50, 8.106, 0.028), (100, 9.835, 0.031), (500, 14.018, 0.099)]
        {
            let slack = 4.0 * error;
            assert!(messages::first_round(n, 0.0, 0.4) <= measured + slack, "N = {n}");
            assert!(first_round_at_most(n, 0.4) >= measured - slack, "N = {n}");
            assert!(first_round_published(n, 0.4) > measured + slack, "N = {n}");
        }
    }
}
