//! How often and how long: named sets of waits.

use super::settings::Feedback;
use crate::time::Duration;

/// All waits of a node.
///
/// ```
/// use bellwether_proto::{Duration, node::{Timing, TimingProfile}};
///
/// // A leader that falls silent is replaced in half the time, for twice the beats.
/// let beat = Duration::from_millis(100);
/// let timing = Timing { beat, ..TimingProfile::Lan.timing() };
/// assert!(timing.given_up_after() < TimingProfile::Lan.timing().given_up_after());
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Timing {
    /// Which set of values this began as.
    pub profile: TimingProfile,
    /// Between two probes. Raising it saves traffic and finds failures later.
    pub period: Duration,
    /// For the answer to a probe, before others are asked to try. Above the longest round trip.
    pub ack: Duration,
    /// For a suspect to contradict. Raising it gives up the slow less often, and the dead later.
    pub suspicion: Duration,
    /// Between two signs of life of a leader to those that watch it. Lowering it replaces a failed leader sooner.
    pub beat: Duration,
    /// For the answers of an election. At least two journeys across the network.
    pub election: Duration,
    /// After the start, before a node that knows no leader asks for one.
    pub grace: Duration,
    /// Between two times of telling somebody who leads, unasked.
    pub refresh: Duration,
    /// Between two announcements of a leader (announced elections).
    pub announce: Duration,
    /// For the leader's announcement, before it is given up (announced elections).
    pub listen: Duration,
    /// The longest wait before claiming to lead (announced elections).
    pub suppress: Duration,
    /// `T_l`: one session of a lease; a leader may act for at most two without being backed anew (leased elections).
    /// Above the longest round trip and any pause of a healthy process. Lowering it replaces a failed leader sooner.
    pub lease: Duration,
    /// `T_a`: for the verdict of those asked who of two is to go (leased elections). Above the longest round trip.
    pub arbitration: Duration,
    /// For what a leader has begun to end in, once its lease is over: every successor waits for it (leased elections).
    pub step_down: Duration,
    /// The longest the node may be stopped or starved and still lead when it wakes. Shorter in elections whose leaders are
    /// replaced sooner. Lowering it deposes leaders of busy hosts that nobody has missed.
    pub guard: Duration,
}

/// A named set of waits.
///
/// ```
/// use bellwether_proto::{Duration, node::TimingProfile};
///
/// assert_eq!(TimingProfile::Mesh.timing().beat, Duration::from_secs(1));
/// assert_eq!(TimingProfile::default().name(), "lan");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TimingProfile {
    /// Nodes on one machine.
    Local,
    /// Nodes on one local network.
    #[default]
    Lan,
    /// Nodes on several sites.
    Wan,
    /// Nodes on a radio mesh of several hops, with loss.
    Mesh,
}

impl TimingProfile {
    /// All of them, as they are written.
    pub const ALL: [(&'static str, Self); 4] =
        [("local", Self::Local), ("lan", Self::Lan), ("wan", Self::Wan), ("mesh", Self::Mesh)];

    /// The word for it in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Lan => "lan",
            Self::Wan => "wan",
            Self::Mesh => "mesh",
        }
    }

    /// The waits of this set.
    ///
    /// Leaders are watched, so probing may be slow: without beats, a failover within 1.35 s took a period of 250 ms, at
    /// 120 kbit/s for 16 hosts together.
    pub const fn timing(self) -> Timing {
        let [period, ack, suspicion, beat, election, grace, refresh] = match self {
            Self::Local => [500, 30, 500, 50, 50, 300, 2_000],
            Self::Lan => [2_000, 80, 2_000, 200, 100, 1_000, 5_000],
            Self::Wan => [3_000, 600, 6_000, 600, 750, 5_000, 10_000],
            Self::Mesh => [3_000, 500, 6_000, 1_000, 1_000, 6_000, 10_000],
        };
        let [announce, listen, suppress, guard] = match self {
            Self::Local => [100, 350, 100, 230],
            Self::Lan => [300, 1_000, 200, 850],
            Self::Wan => [2_000, 7_000, 2_000, 3_600],
            Self::Mesh => [2_000, 9_000, 2_000, 4_500],
        };
        let [lease, arbitration, step_down] = match self {
            Self::Local => [200, 100, 200],
            Self::Lan => [400, 200, 400],
            Self::Wan => [3_000, 1_500, 3_000],
            Self::Mesh => [4_000, 2_000, 4_000],
        };
        Timing {
            profile: self,
            period: Duration::from_millis(period),
            ack: Duration::from_millis(ack),
            suspicion: Duration::from_millis(suspicion),
            beat: Duration::from_millis(beat),
            election: Duration::from_millis(election),
            grace: Duration::from_millis(grace),
            refresh: Duration::from_millis(refresh),
            announce: Duration::from_millis(announce),
            listen: Duration::from_millis(listen),
            suppress: Duration::from_millis(suppress),
            lease: Duration::from_millis(lease),
            arbitration: Duration::from_millis(arbitration),
            step_down: Duration::from_millis(step_down),
            guard: Duration::from_millis(guard),
        }
    }

    /// How much near members are preferred, and who is probed out of proportion. Where all are as good as near nobody is.
    pub const fn probing(self) -> (f64, Feedback) {
        match self {
            Self::Local | Self::Lan | Self::Wan => (0.0, Feedback::None),
            Self::Mesh => (3.0, Feedback::Both),
        }
    }

    /// Between two beacons, and for how long a silent neighbour is believed to be there: three may get lost.
    pub const fn beacons(self) -> (Duration, Duration) {
        let (period, silence) = match self {
            Self::Local => (100, 350),
            Self::Lan => (300, 1_000),
            Self::Wan | Self::Mesh => (1_000, 3_500),
        };
        (Duration::from_millis(period), Duration::from_millis(silence))
    }
}

impl Timing {
    /// Every wait and its name.
    pub fn waits(&self) -> [(&'static str, Duration); 14] {
        let mut copy = *self;
        copy.waits_mut().map(|(name, wait)| (name, *wait))
    }

    /// The same, to be set.
    pub fn waits_mut(&mut self) -> [(&'static str, &mut Duration); 14] {
        [
            ("period", &mut self.period),
            ("ack", &mut self.ack),
            ("suspicion", &mut self.suspicion),
            ("beat", &mut self.beat),
            ("election", &mut self.election),
            ("grace", &mut self.grace),
            ("refresh", &mut self.refresh),
            ("announce", &mut self.announce),
            ("listen", &mut self.listen),
            ("suppress", &mut self.suppress),
            ("lease", &mut self.lease),
            ("arbitration", &mut self.arbitration),
            ("step_down", &mut self.step_down),
            ("guard", &mut self.guard),
        ]
    }

    /// The soonest that others may give up a leader that falls silent.
    pub fn given_up_after(&self) -> Duration {
        let Watched { silence, probe, suspicion } = self.watched();
        silence + probe + suspicion
    }

    /// How a leader that falls silent is given up.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub fn watched(&self) -> Watched {
        let silence = self.beat * 3;
        let suspicion = silence.div(2).max(self.ack * 2);
        Watched { silence, probe: self.ack * 3, suspicion }
    }
}

/// The parts of the time until a silent leader is given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Watched {
    /// Until a watcher probes the silent leader.
    pub silence: Duration,
    /// For the answer to the probe.
    pub probe: Duration,
    /// For the suspected leader to contradict.
    pub suspicion: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_keeps_its_own_rules() {
        for (_, profile) in TimingProfile::ALL {
            let timing = profile.timing();
            let Timing { period, ack, beat, suspicion, .. } = timing;
            let Timing { election, refresh, announce, listen, guard, .. } = timing;
            assert!(ack <= beat && beat < period && period <= suspicion, "{profile:?}");
            assert!(listen >= announce + announce, "{profile:?}");
            assert!(guard < timing.given_up_after(), "{profile:?}");
            assert!(refresh >= election, "{profile:?}");
        }
    }
}
