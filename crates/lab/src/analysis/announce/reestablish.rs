//! F2: leadership re-establishment delay (§5.3.2), and the future work that would shorten it
//! (§5.7).

use super::delay::rounds_in_vain;
use super::{Loss, all_escape, announcements_until_heard, power, some_fall};

/// The timers of a group in steady state, in seconds. Suppression timers are uniform; `suppress` 0
/// is LE-A. The announce period is positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// `T_A`.
    pub announce: f64,
    /// `T_L`.
    pub listen: f64,
    /// `T_S`.
    pub suppress: f64,
    /// `Δ`.
    pub delay: f64,
}

/// `B = T_L + 2Δ - E[t_d] + E[t_s]`: from the departure of a leader until the others agree on the
/// next, §5.3.2.1, with `E[t_d] = T_A/2` and `E[t_s] = T_S/2`. Seconds.
///
/// Right without loss and at least two survivors. The chapter prints it for all three kinds of
/// loss, which is wrong.
pub fn departure_published(timing: &Timing) -> f64 {
    timing.listen + 2.0 * timing.delay + (timing.suppress - timing.announce) / 2.0
}

/// Departure delay, exact. `processes` counts the departed leader. Seconds.
///
/// - No loss: [`departure_published`], unless `T_L + 2Δ < T_A` lets the delay reach zero.
/// - Correlated: `E[max(0, T_L+2Δ-t_d+t_s+D·T_A)]`, `D` two-sided geometric: the losses of the
///   successor less those before the departure. They cancel in the mean, but a delay is not
///   negative.
/// - Uncorrelated: [`departure_published`] plus [`departure_excess`] periods, with C2 and without
///   that truncation: good once `l^k` is small for `T_L = kT_A`.
///
/// One survivor: [`departure_alone`]. None: 0.
pub fn departure(timing: &Timing, processes: u32, loss: Loss) -> f64 {
    let rate = match loss {
        Loss::None => 0.0,
        Loss::Correlated(rate) | Loss::Uncorrelated(rate) => rate,
    };
    match (processes, loss) {
        (0 | 1, _) => 0.0,
        (2, _) => departure_alone(timing, rate),
        (_, Loss::None | Loss::Correlated(_)) => departure_correlated(timing, rate),
        (_, Loss::Uncorrelated(_)) => {
            departure_published(timing) + timing.announce * departure_excess(processes - 2, rate)
        }
    }
}

fn departure_correlated(timing: &Timing, rate: f64) -> f64 {
    if rate >= 1.0 {
        return f64::INFINITY;
    }
    let (published, period) = (departure_published(timing), timing.announce);
    if period <= 0.0 || published.is_infinite() {
        return published.max(0.0);
    }
    // E[max(0, Y)] = E[Y] + E[max(0, -Y)], and the last has only the terms of small or negative D.
    let earliest = timing.listen + 2.0 * timing.delay;
    let mut below_zero = 0.0;
    let mut periods = libm::ceil(1.0 - earliest / period);
    loop {
        let weight = (1.0 - rate) / (1.0 + rate) * libm::pow(rate, libm::fabs(periods));
        let missing = -earliest - periods * period;
        below_zero += weight * mean_positive(missing, period, timing.suppress);
        periods -= 1.0;
        if periods < 0.0 && weight * (libm::fabs(missing) + period) < 1e-18 * (1.0 - rate) {
            return published + below_zero;
        }
    }
}

/// `E[max_{i=1..n}(G_i - min(J_s, J_i))]`: periods that uncorrelated loss adds to a departure
/// with `n = N-2` survivors beside the successor `s`. `G`, `J` are geometric from 0: `J`
/// counts the last announcements lost before the departure, `G` the first of the successor.
/// `l/(1-l²)` for `n = 1`.
///
/// Given `J_s` the `n` differences are independent, so the expectation is a sum of powers of their
/// distribution, which has a closed form. Takes time of the order of `1/(1-l)²`.
pub fn departure_excess(others: u32, rate: f64) -> f64 {
    if others == 0 || rate <= 0.0 {
        return 0.0;
    }
    if rate >= 1.0 {
        return f64::INFINITY;
    }
    let mut sum = 0.0;
    let mut weight = 1.0 - rate;
    let mut lost_by_successor = 0;
    while weight > 1e-18 * (1.0 - rate) {
        sum += weight * excess_given(lost_by_successor, others, rate);
        weight *= rate;
        lost_by_successor += 1;
    }
    sum
}

fn excess_given(lost_by_successor: u32, others: u32, rate: f64) -> f64 {
    let slower = |left: u32| (1.0 + power(rate, 2 * left + 1)) / (1.0 + rate);
    let mut above = 0.0;
    let mut beyond = rate * slower(lost_by_successor);
    loop {
        let term = some_fall(beyond, others);
        above += term;
        beyond *= rate;
        if term < 1e-18 {
            break;
        }
    }
    let at_most_minus = |early: u32| {
        let left = lost_by_successor - early;
        power(power(rate, early) * (1.0 - rate * slower(left)), others)
    };
    let below = (1..=lost_by_successor).map(at_most_minus).take_while(|term| *term > 1e-18);
    above - below.sum::<f64>()
}

/// Departure with one survivor: `E[max(0, T_L+Δ-t_d-J·T_A)]`, `J` geometric from 0. It leads as
/// soon as its own listen timer fires, and waits for no announcement of its own. Without
/// loss `T_L + Δ - T_A/2`. Seconds.
pub fn departure_alone(timing: &Timing, rate: f64) -> f64 {
    if timing.announce <= 0.0 {
        return timing.listen + timing.delay;
    }
    let mut sum = 0.0;
    let mut weight = 1.0 - rate;
    let mut left = timing.listen + timing.delay;
    while left > 0.0 && weight > 1e-18 * (1.0 - rate) {
        sum += weight * mean_positive(left, 0.0, timing.announce);
        weight *= rate;
        left -= timing.announce;
    }
    sum
}

/// `E[max(0, x+U-V)]` for `U` uniform on `[0, plus]`, `V` on `[0, minus]`.
///
/// Below `NARROW` of the other's width an interval is taken for its middle: the error is of second
/// order there, and the third differences of the exact form would have lost more.
fn mean_positive(x: f64, plus: f64, minus: f64) -> f64 {
    const NARROW: f64 = 1e-5;
    if x >= minus {
        return x + (plus - minus) / 2.0;
    }
    if x + plus <= 0.0 {
        return 0.0;
    }
    let cube = |y: f64| y.max(0.0) * y * y / 6.0;
    let square = |y: f64| y.max(0.0) * y / 2.0;
    if plus <= NARROW * minus {
        let x = x + plus / 2.0;
        (square(x) - square(x - minus)) / minus
    } else if minus <= NARROW * plus {
        let x = x - minus / 2.0;
        (square(x + plus) - square(x)) / plus
    } else {
        (cube(x + plus) - cube(x + plus - minus) - cube(x) + cube(x - minus)) / (plus * minus)
    }
}

/// Mean length, in periods, of an episode in which some of `receivers` believe a live leader gone,
/// under uncorrelated loss with `T_L = kT_A`: `[1-(1-l^k)^M] / [(1-l^k)^M - (1-l^k(2-l))^M]`
/// (§5.3.2.3, corrected by A-15).
///
/// Agreements of no length, at the tie of two receivers, do not end an episode.
pub fn false_departure_episode(receivers: u32, rate: f64, factor: u32) -> f64 {
    if rate >= 1.0 {
        return f64::INFINITY;
    }
    let gone = power(rate, factor);
    if gone * f64::from(receivers) < f64::MIN_POSITIVE {
        return 1.0 / (1.0 - rate);
    }
    // (1-x)^M - (1-x(2-l))^M = (1-x)^M·[1-(1-y)^M], y = x(1-l)/(1-x).
    let newly_gone = some_fall(gone * (1.0 - rate) / (1.0 - gone), receivers);
    some_fall(gone, receivers) / (all_escape(gone, receivers) * newly_gone)
}

/// A joiner better than the leader: `E[t_s] + Δ + T_A·X`, where all `incumbents` must hear it
/// (`X = R_N - 1` under uncorrelated loss, A-3). Seconds.
pub fn better_joiner(timing: &Timing, incumbents: u32, loss: Loss) -> f64 {
    timing.suppress / 2.0 + timing.delay + timing.announce * rounds_in_vain(incumbents, loss)
}

/// §5.3.2.3 as printed, with `X = R_N` under uncorrelated loss. Seconds.
pub fn better_joiner_published(timing: &Timing, incumbents: u32, loss: Loss) -> f64 {
    timing.suppress / 2.0 + timing.delay + timing.announce * published_rounds(incumbents, loss)
}

/// A joiner worse than the leader: `T_A/2 + T_A·l/(1-l)`, whatever `Δ` and the kind of loss, since
/// only the joiner must hear (§5.3.2, corrected by A-16). The brackets of the chapter's
/// `E[(t_a-Δ)/T_A]·T_A + Δ - E[t_a]` are ceilings; it is `T_A/2`. Seconds.
pub fn worse_joiner(timing: &Timing, loss: Loss) -> f64 {
    timing.announce * (0.5 + rounds_in_vain(1, loss))
}

/// §5.3.2.3 as printed: under uncorrelated loss it waits for `R_N` announcements, as if all
/// `incumbents` had to hear again. Seconds.
pub fn worse_joiner_published(timing: &Timing, incumbents: u32, loss: Loss) -> f64 {
    timing.announce * (0.5 + published_rounds(incumbents, loss))
}

fn published_rounds(incumbents: u32, loss: Loss) -> f64 {
    match loss {
        Loss::Uncorrelated(rate) => announcements_until_heard(incumbents, rate),
        Loss::None | Loss::Correlated(_) => rounds_in_vain(incumbents, loss),
    }
}

/// Departure with `copies` Byes, `spacing` seconds apart, under correlated loss and at least two
/// survivors (§5.7, derived in F3): `Σ_{j<b} l^j(1-l)(jτ+2Δ+E[t_s]+T_A·l/(1-l)) + l^b·B`.
/// Without loss `2Δ+E[t_s]`, with no Bye `B`. Seconds.
pub fn bye(timing: &Timing, copies: u32, spacing: f64, rate: f64) -> f64 {
    if rate >= 1.0 {
        return f64::INFINITY;
    }
    let heard = 2.0 * timing.delay + timing.suppress / 2.0 + timing.announce * rate / (1.0 - rate);
    let copy = |j: u32| power(rate, j) * (1.0 - rate) * (f64::from(j) * spacing + heard);
    (0..copies).map(copy).sum::<f64>() + power(rate, copies) * departure_published(timing)
}

/// A worse joiner that asks on arrival, no loss: `E[min(2Δ, U(0,T_A))] = 2Δ(1-Δ/T_A)`, at most the
/// `T_A/2` of one that waits (§5.7, derived in F3). Seconds.
pub fn query(timing: &Timing) -> f64 {
    let (answer, period) = (2.0 * timing.delay, timing.announce);
    if answer >= period { period / 2.0 } else { answer * (1.0 - answer / (2.0 * period)) }
}

/// A worse joiner that asks after its suppression timer, no loss: `E[min(t_s+2Δ, U(0,T_A))]` with
/// uniform `t_s` (§5.7, derived in F3). Seconds.
pub fn suppress_then_query(timing: &Timing) -> f64 {
    let (period, answer) = (timing.announce, 2.0 * timing.delay);
    if timing.suppress <= 0.0 {
        return query(timing);
    }
    let area = |y: f64| {
        let within = y.min(period);
        within * within * (0.5 - within / (6.0 * period)) + (y - within) * period / 2.0
    };
    (area(answer + timing.suppress) - area(answer)) / timing.suppress
}

#[cfg(test)]
mod tests {
    use bellwether_proto::Seed;

    use super::super::quadrature::integrate;
    use super::super::{close, corrects, simulates};
    use super::*;

    fn timing(listen: f64, suppress: f64) -> Timing {
        Timing { announce: 1.0, listen, suppress, delay: 0.1 }
    }

    #[test]
    fn table_of_f2_departures() {
        for (k, published, exact) in
            [(1.0, 1.2, 1.382), (2.0, 2.2, 2.273), (3.0, 3.2, 3.229), (6.0, 6.2, 6.202)]
        {
            let (group, name) = (timing(k, 1.0), format!("k = {k}"));
            close(&name, departure_published(&group), published, 1e-12);
            close(&name, departure(&group, 5, Loss::Correlated(0.4)), exact, 5e-4);
            close(&name, departure(&group, 5, Loss::None), published, 1e-12);
        }
        close("LE-A", departure(&timing(3.0, 0.0), 5, Loss::None), 2.7, 1e-12);
        close("one survivor", departure(&timing(3.0, 1.0), 2, Loss::None), 2.6, 1e-12);
        assert_eq!(departure(&timing(3.0, 1.0), 1, Loss::None), 0.0);
        assert_eq!(departure(&timing(3.0, 1.0), 3, Loss::Correlated(1.0)), f64::INFINITY);
        assert_eq!(departure(&timing(3.0, 1.0), 3, Loss::Uncorrelated(1.0)), f64::INFINITY);
    }

    /// More digits than F2 prints: .209 is .20948, and .301 is .30145.
    #[test]
    fn table_of_f2_excess() {
        for (others, light, heavy) in [
            (1, 0.101, 0.476),
            (2, 0.2095, 1.012),
            (3, 0.3015, 1.371),
            (8, 0.651, 2.337),
            (18, 1.031, 3.185),
            (48, 1.425, 4.237),
            (98, 1.726, 5.010),
        ] {
            close(&format!("l = .1, N-2 = {others}"), departure_excess(others, 0.1), light, 5e-4);
            close(&format!("l = .4, N-2 = {others}"), departure_excess(others, 0.4), heavy, 5e-4);
        }
        for rate in [0.05, 0.4, 0.9] {
            close("N = 3", departure_excess(1, rate), rate / (1.0 - rate * rate), 1e-12);
        }
    }

    #[test]
    fn excess_by_simulation() {
        let mut rng = Seed::new(11).named("excess").rng();
        let mut lost = || (0..).find(|_| !rng.chance(0.4)).map_or(0.0, f64::from);
        simulates("N = 10", departure_excess(8, 0.4), || {
            let before = lost();
            (0..8).map(|_| lost() - before.min(lost())).fold(f64::NEG_INFINITY, f64::max)
        });
    }

    /// Parameters nobody chose, short enough for the truncation to matter.
    #[test]
    fn departures_under_correlated_loss_by_simulation() {
        let group = Timing { announce: 0.7, listen: 1.1, suppress: 1.9, delay: 0.05 };
        let mut rng = Seed::new(17).named("departures").rng();
        for (processes, name) in [(2, "alone"), (3, "two")] {
            simulates(name, departure(&group, processes, Loss::Correlated(0.6)), || {
                let mut lost = || (0..).find(|_| !rng.chance(0.6)).map_or(0.0, f64::from);
                let (before, after) = (lost(), lost());
                let (departs, wakes) = (0.7 * rng.unit(), 1.9 * rng.unit());
                let expires = 1.1 + 0.05 - departs - 0.7 * before;
                let heard = if processes == 2 { 0.0 } else { wakes + 0.05 + 0.7 * after };
                (expires + heard).max(0.0)
            });
        }
    }

    #[test]
    fn mean_of_the_positive_part_is_the_double_integral() {
        for (x, plus, minus) in
            [(-0.4, 1.0, 1.0), (0.3, 0.5, 2.0), (-0.1, 0.3, 0.0), (0.7, 0.0, 1.0), (0.2, 1e-7, 1.0)]
        {
            let over_minus = |s: f64| {
                if minus == 0.0 {
                    return (x + s).max(0.0);
                }
                let top = (x + s).clamp(0.0, minus);
                ((x + s) * top - top * top / 2.0) / minus
            };
            let expected =
                if plus == 0.0 { over_minus(0.0) } else { integrate(0.0, plus, over_minus) / plus };
            close(&format!("{x} {plus} {minus}"), mean_positive(x, plus, minus), expected, 1e-8);
        }
    }

    #[test]
    fn table_of_f2_episodes() {
        for (rate, n, k, expected, tolerance) in [
            (0.4, 5, 1, 7.716, 5e-4),
            (0.4, 5, 2, 2.623, 5e-4),
            (0.4, 5, 3, 1.963, 5e-4),
            (0.4, 20, 3, 4.580, 5e-4),
            (0.1, 5, 1, 1.524, 5e-4),
            (0.1, 20, 1, 7.403, 5e-4),
            (0.1, 20, 2, 1.321, 5e-4),
            (0.4, 20, 2, 29.39, 5e-3),
        ] {
            let value = false_departure_episode(n - 1, rate, k);
            close(&format!("l = {rate}, N = {n}, k = {k}"), value, expected, tolerance);
        }
        for rate in [0.0, 0.1, 0.6] {
            let alone = 1.0 + rate / (1.0 - rate);
            close("one receiver", false_departure_episode(1, rate, 3), alone, 1e-12);
        }
    }

    #[test]
    fn table_of_f2_joiners() {
        let group = timing(3.0, 0.9);
        let (corr, uc) = (Loss::Correlated(0.4), Loss::Uncorrelated(0.4));
        for (n, better, published_better, published_worse) in
            [(1, 1.217, 2.217, 2.167), (5, 2.541, 3.541, 3.491), (20, 3.977, 4.977, 4.927)]
        {
            let name = format!("N = {n}");
            close(&name, better_joiner(&group, n, Loss::None), 0.55, 1e-12);
            close(&name, better_joiner(&group, n, corr), 1.217, 5e-4);
            close(&name, better_joiner(&group, n, uc), better, 5e-4);
            close(&name, better_joiner_published(&group, n, uc), published_better, 5e-4);
            close(&name, worse_joiner_published(&group, n, uc), published_worse, 5e-4);
        }
        close("worse", worse_joiner(&group, Loss::None), 0.5, 1e-12);
        close("worse", worse_joiner(&group, corr), 1.167, 5e-4);
        close("worse", worse_joiner(&group, uc), 1.167, 5e-4);
        let le_a = better_joiner(&timing(3.0, 0.0), 5, Loss::None);
        close("LE-A", better_joiner(&group, 5, Loss::None) - le_a, 0.45, 1e-12);
    }

    #[test]
    fn byes_and_queries_of_f3() {
        let group = timing(6.0, 0.9);
        for (copies, expected) in [(0, 6.150), (1, 3.250), (2, 2.138), (3, 1.712), (5, 1.488)] {
            close(&format!("b = {copies}"), bye(&group, copies, 0.2, 0.4), expected, 5e-4);
        }
        close("no loss", bye(&group, 1, 0.2, 0.0), 0.65, 1e-12);
        close("query", query(&timing(3.0, 1.0)), 0.18, 1e-12);
        close("S-then-Q", suppress_then_query(&timing(3.0, 1.0)), 0.41467, 5e-6);
        close("S-then-Q, T_S = 0", suppress_then_query(&timing(3.0, 0.0)), 0.18, 1e-12);
        let slow = Timing { delay: 0.7, ..timing(3.0, 1.0) };
        close("slow", query(&slow), 0.5, 1e-12);
        close("slow", suppress_then_query(&slow), 0.5, 1e-12);
    }

    #[test]
    fn a_12_losses_cancel_only_above_zero() {
        let group = timing(1.0, 1.0);
        let exact = departure(&group, 5, Loss::Correlated(0.4));
        corrects("k = 1", departure_published(&group), exact, 1.378, 4.0 * 0.016);
        close("+.18", exact - departure_published(&group), 0.18, 5e-3);
        for (k, measured, error) in [(2.0, 2.258, 0.018), (3.0, 3.202, 0.019), (6.0, 6.237, 0.020)]
        {
            let exact = departure(&timing(k, 1.0), 5, Loss::Correlated(0.4));
            close(&format!("k = {k}"), exact, measured, 4.0 * error);
        }
    }

    #[test]
    fn a_13_uncorrelated_losses_do_not_cancel() {
        for (n, rate, k, printed, measured, error) in [
            (3, 0.4, 12.0, 12.626, 12.629, 0.013),
            (5, 0.4, 12.0, 13.521, 13.502, 0.015),
            (10, 0.4, 12.0, 14.487, 14.464, 0.016),
            (3, 0.1, 6.0, 6.251, 6.253, 0.010),
            (5, 0.1, 6.0, 6.451, 6.433, 0.010),
            (10, 0.1, 6.0, 6.801, 6.812, 0.010),
        ] {
            let group = timing(k, 0.9);
            let exact = departure(&group, n, Loss::Uncorrelated(rate));
            let name = format!("l = {rate}, N = {n}");
            close(&name, exact, printed, 5e-4);
            corrects(&name, departure_published(&group), exact, measured, 4.0 * error);
        }
        let group = timing(6.0, 0.9);
        let ratio = departure(&group, 10, Loss::Uncorrelated(0.4)) / departure_published(&group);
        assert!(ratio > 1.3, "announce-5.3-reest: {ratio}");
    }

    #[test]
    fn a_16_only_a_worse_joiner_must_hear() {
        let (group, uc) = (timing(3.0, 0.9), Loss::Uncorrelated(0.4));
        for (n, measured) in [(1, 1.170), (5, 1.152), (20, 1.132)] {
            let published = worse_joiner_published(&group, n, uc);
            // The largest standard error of the table.
            corrects(
                &format!("N = {n}"),
                published,
                worse_joiner(&group, uc),
                measured,
                4.0 * 0.023,
            );
        }
    }
}
