//! What one run of one algorithm is measured by.

use bellwether_proto::{Time, election::bandit::Kind};
use bellwether_sim::{
    observe::{Round, Served, Unit},
    scenario::{Protocol, Scenario},
};

use crate::{
    computation::Value,
    measure::{measure, measures},
};

measures!(
    /// What one run of one algorithm is measured by.
    pub(super) Measured {
        Rounds = "rounds",
        FirstHalf = "first half",
        SecondHalf = "second half",
        Failed = "failed",
        Elected = "elected",
        Streaks = "streaks",
        StreaksOf2 = "streaks of 2",
        LongestStreak = "longest streak",
        StreakBeyond = "streak beyond f - 1",
        SlopeOfElected = "slope of elected",
        SlopeOfFailed = "slope of failed",
        FailedPer1000 = "failed per 1000 s",
        Reliable = "reliable",
        ReliableAfter500 = "reliable after 500",
        ReliableFirst = "reliable in first half",
        ReliableSecond = "reliable in second half",
        Separation = "separation",
        Tau = "tau",
        Error = "error",
        ElectionMessages = "election messages",
        PingMessages = "ping messages",
        ServingMessages = "serving messages",
        HeartbeatMessages = "heartbeat messages",
        Answered = "answered",
        Terms = "terms",
        LeadersAtOnce = "leaders at once",
        SeveralLeading = "several leading",
        Outage = "outage",
        Response = "response",
    }
);
measure!(
    /// A measure of one of several algorithms.
    pub(super) Of(variant: &'static str, of: Measured) = "{variant} {of}"
);

/// All of it, under the algorithm's name.
pub(super) fn of(name: &'static str, scenario: &Scenario, served: &Served) -> Vec<Value> {
    let requests = match &scenario.protocol {
        Protocol::Bandit(settings) => settings.client.map_or(0, |client| client.requests()),
        _ => 0,
    };
    let (first, second): (Vec<Round>, Vec<Round>) =
        served.rounds.iter().partition(|round| round.request < requests / 2);
    let warm: Vec<Round> =
        served.rounds.iter().copied().filter(|round| round.request >= 500).collect();
    let streaks = served.streaks();
    let longer = |least: u64| streaks.iter().filter(|&&length| length >= least).count() as f64;
    let longest = streaks.iter().max().copied().unwrap_or(0);
    let tolerated = u64::from(scenario.network.nodes.saturating_sub(1) / 2);
    let beyond = f64::from(u8::from(longest + 1 > tolerated));
    let failed: Vec<bool> = served.rounds.iter().map(|round| round.leader.is_none()).collect();
    let slope = |wanted: bool| {
        let times = served.rounds.iter().zip(&failed).filter(|(_, failed)| **failed == wanted);
        slope(&times.map(|(round, _)| round.began).collect::<Vec<_>>(), served.end)
    };
    let quality = quality(served);
    let sent = |kind: Kind| served.sent[kind as usize] as f64;
    let pings = sent(Kind::Ping) + sent(Kind::PingReply);
    let serving = sent(Kind::RequestBroadcast) + sent(Kind::ReplyBroadcast);
    let beats = sent(Kind::Heartbeat) + sent(Kind::HeartbeatAck);
    let count = |measure, value: f64| Value::count(Of(name, measure), value);
    let share = |measure, value: Option<f64>| Value::ratio(Of(name, measure), value);
    let seconds = |measure, value: Option<f64>| Value::new(Of(name, measure), Unit::Seconds, value);
    let outage: f64 = served.outages.iter().map(|outage| outage.as_secs_f64()).sum();
    let outages = served.outages.len();
    vec![
        count(Measured::Rounds, served.rounds.len() as f64),
        count(Measured::FirstHalf, first.len() as f64),
        count(Measured::SecondHalf, second.len() as f64),
        count(Measured::Failed, served.failed() as f64),
        count(Measured::Elected, (served.rounds.len() as u64 - served.failed()) as f64),
        count(Measured::Streaks, longer(1)),
        count(Measured::StreaksOf2, longer(2)),
        count(Measured::LongestStreak, longest as f64),
        share(Measured::StreakBeyond, Some(beyond)),
        count(Measured::SlopeOfElected, slope(false)),
        count(Measured::SlopeOfFailed, slope(true)),
        count(Measured::FailedPer1000, served.failed() as f64 * 1_000.0 / served.end.as_secs_f64()),
        share(Measured::Reliable, reliable(served, &served.rounds)),
        share(Measured::ReliableAfter500, reliable(served, &warm)),
        share(Measured::ReliableFirst, reliable(served, &first)),
        share(Measured::ReliableSecond, reliable(served, &second)),
        share(Measured::Separation, quality.map(|quality| quality.separation)),
        share(Measured::Tau, quality.map(|quality| quality.tau)),
        share(Measured::Error, quality.map(|quality| quality.error)),
        count(Measured::ElectionMessages, served.election_messages() as f64),
        count(Measured::PingMessages, pings),
        count(Measured::ServingMessages, serving),
        count(Measured::HeartbeatMessages, beats),
        count(Measured::Answered, served.answered as f64),
        count(Measured::Terms, served.terms as f64),
        count(Measured::LeadersAtOnce, f64::from(served.most_leading)),
        seconds(Measured::SeveralLeading, Some(served.several.as_secs_f64())),
        seconds(Measured::Outage, (outages > 0).then(|| outage / outages as f64)),
        seconds(
            Measured::Response,
            (served.answered > 0).then(|| served.waited.as_secs_f64() / served.answered as f64),
        ),
    ]
}

/// The share of elected leaders on machines that fail seldom.
fn reliable(served: &Served, rounds: &[Round]) -> Option<f64> {
    let elected: Vec<f64> = rounds
        .iter()
        .filter_map(|round| served.failures.get(round.leader?.get() as usize).copied())
        .collect();
    let good = elected.iter().filter(|&&failure| failure <= 0.2).count();
    (!elected.is_empty()).then(|| good as f64 / elected.len() as f64)
}

/// Least-squares slope of the number of events in windows of 1000 s, every 100 s, per step.
fn slope(events: &[Time], end: Time) -> f64 {
    let end = end.as_secs_f64();
    let windows = ((end - 1_000.0) / 100.0).max(0.0) as usize + 1;
    let counts: Vec<f64> = (0..windows)
        .map(|window| {
            let from = 100.0 * window as f64;
            let within = |at: &&Time| (from..from + 1_000.0).contains(&at.as_secs_f64());
            events.iter().filter(within).count() as f64
        })
        .collect();
    let mean_x = (windows as f64 - 1.0) / 2.0;
    let mean_y = counts.iter().sum::<f64>() / windows as f64;
    let (mut together, mut spread) = (0.0, 0.0);
    for (x, y) in counts.iter().enumerate() {
        together += (x as f64 - mean_x) * (y - mean_y);
        spread += (x as f64 - mean_x) * (x as f64 - mean_x);
    }
    if spread > 0.0 { together / spread } else { 0.0 }
}

/// How good the estimates are in the end, each node's averaged over what the others believe.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quality {
    /// The least estimate of a bad machine minus the largest of a good one.
    separation: f64,
    /// Kendall's tau-b between estimates and machines.
    tau: f64,
    /// Mean distance from the probabilities of failure.
    error: f64,
}

fn quality(served: &Served) -> Option<Quality> {
    let failures = &served.failures;
    let nodes = failures.len();
    let believed = |node: usize| {
        let others = (0..served.beliefs.len()).filter(|&observer| observer != node);
        let means: Vec<f64> =
            others.filter_map(|observer| Some(served.beliefs[observer].get(node)?.0)).collect();
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    };
    let estimates: Vec<f64> = (0..nodes).map(believed).collect::<Option<_>>()?;
    let of = |keep: fn(f64) -> bool| {
        estimates
            .iter()
            .zip(failures)
            .filter(move |&(_, &p)| keep(p))
            .map(|(&estimate, _)| estimate)
    };
    let bad = of(|failure| failure >= 0.7).min_by(f64::total_cmp)?;
    let good = of(|failure| failure <= 0.2).max_by(f64::total_cmp)?;
    let distance = |(estimate, failure): (&f64, &f64)| (estimate - failure).abs();
    let error = estimates.iter().zip(failures).map(distance).sum::<f64>() / nodes as f64;
    Some(Quality { separation: bad - good, tau: tau(&estimates, failures), error })
}

/// Kendall's tau-b: ties count for neither side, and are taken out of the norm.
fn tau(one: &[f64], other: &[f64]) -> f64 {
    let sign = |a: f64, b: f64| f64::from(i8::from(a > b) - i8::from(a < b));
    let (mut together, mut of_one, mut of_other) = (0.0, 0.0, 0.0);
    for i in 0..one.len() {
        for j in 0..i {
            let (a, b) = (sign(one[i], one[j]), sign(other[i], other[j]));
            together += a * b;
            of_one += a * a;
            of_other += b * b;
        }
    }
    let norm = libm::sqrt(of_one * of_other);
    if norm > 0.0 { together / norm } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tau_is_one_in_order_minus_one_against_it_and_minds_ties() {
        assert_eq!(tau(&[1.0, 2.0, 3.0], &[0.1, 0.2, 0.3]), 1.0);
        assert_eq!(tau(&[3.0, 2.0, 1.0], &[0.1, 0.2, 0.3]), -1.0);
        let tied = tau(&[1.0, 2.0, 3.0], &[0.1, 0.1, 0.3]);
        assert!((tied - 2.0 / libm::sqrt(6.0)).abs() < 1e-12, "{tied}");
    }

    #[test]
    fn a_steady_trickle_has_no_slope_and_a_drying_one_a_negative_one() {
        let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
        let steady: Vec<Time> = (0..100).map(|step| at(step * 100)).collect();
        assert!(slope(&steady, at(10_000)).abs() < 1e-9);
        let drying: Vec<Time> = (0..50).map(|step| at(step * step * 4)).collect();
        assert!(slope(&drying, at(10_000)) < 0.0);
    }
}
