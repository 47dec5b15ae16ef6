//! How often and how long: named profiles, what may be tuned, and which waits must exceed which.

use bellwether_proto::Duration;

use super::field::{Result, Section};

/// All waits of an agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timing {
    /// Which set of values this began as.
    pub profile: Profile,
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
    /// The longest the agent may be stopped or starved and still lead when it wakes.
    pub guard: Duration,
}

/// A named set of waits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Profile {
    /// One machine.
    Local,
    /// One building.
    #[default]
    Lan,
    /// Between sites.
    Wan,
    /// Radio, several hops, loss.
    Mesh,
}

impl Profile {
    pub(super) const ALL: [(&'static str, Self); 4] =
        [("local", Self::Local), ("lan", Self::Lan), ("wan", Self::Wan), ("mesh", Self::Mesh)];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Lan => "lan",
            Self::Wan => "wan",
            Self::Mesh => "mesh",
        }
    }

    /// Its values.
    ///
    /// Leaders are watched, so probing may be slow: without beats, a failover within 1.35 s took a period of 250 ms, at
    /// 120 kbit/s for 16 hosts together. What they mean now is in a test of [`explain`](super::explain).
    pub fn timing(self) -> Timing {
        let ms = Duration::from_millis;
        let [period, ack, suspicion, beat, election, grace, refresh] = match self {
            Self::Local => [500, 30, 500, 50, 50, 300, 2_000],
            Self::Lan => [2_000, 80, 2_000, 200, 100, 1_000, 5_000],
            Self::Wan => [3_000, 600, 6_000, 600, 750, 5_000, 10_000],
            Self::Mesh => [3_000, 500, 6_000, 1_000, 1_000, 6_000, 10_000],
        };
        let [announce, listen, suppress, guard] = match self {
            Self::Local => [100, 350, 100, 150],
            Self::Lan => [300, 1_000, 200, 400],
            Self::Wan => [2_000, 7_000, 2_000, 3_000],
            Self::Mesh => [2_000, 9_000, 2_000, 4_000],
        };
        let [lease, arbitration, step_down] = match self {
            Self::Local => [200, 100, 200],
            Self::Lan => [500, 250, 500],
            Self::Wan => [3_000, 1_500, 3_000],
            Self::Mesh => [4_000, 2_000, 4_000],
        };
        Timing {
            profile: self,
            period: ms(period),
            ack: ms(ack),
            suspicion: ms(suspicion),
            beat: ms(beat),
            election: ms(election),
            grace: ms(grace),
            refresh: ms(refresh),
            announce: ms(announce),
            listen: ms(listen),
            suppress: ms(suppress),
            lease: ms(lease),
            arbitration: ms(arbitration),
            step_down: ms(step_down),
            guard: ms(guard),
        }
    }
}

impl Timing {
    pub(super) fn read(mut section: Section<'_>) -> Result<Self> {
        let profile =
            section.or("profile", Profile::default(), |field| field.choice(&Profile::ALL))?;
        let mut timing = profile.timing();
        for (key, place) in timing.waits_mut() {
            if let Some(field) = section.take(key) {
                *place = field.duration()?;
            }
        }
        timing.check(&mut section)?;
        section.end()?;
        Ok(timing)
    }

    /// Every wait and its name.
    pub fn waits(&self) -> [(&'static str, Duration); 14] {
        let mut copy = *self;
        copy.waits_mut().map(|(name, wait)| (name, *wait))
    }

    fn waits_mut(&mut self) -> [(&'static str, &mut Duration); 14] {
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
    pub(super) fn watched(&self) -> Watched {
        let silence = self.beat * 3;
        let suspicion = silence.div(2).max(self.ack * 2);
        Watched { silence, probe: self.ack * 3, suspicion }
    }

    /// Refuses waits that contradict each other, at whichever of the two was written.
    fn check(&self, section: &mut Section<'_>) -> Result<()> {
        let longest_sleep = self.given_up_after();
        let rules = [
            (self.ack < self.period, "ack", self.ack, "shorter than", "period", self.period, ""),
            (
                self.suspicion >= self.period,
                "suspicion",
                self.suspicion,
                "at least",
                "period",
                self.period,
                ", or nobody could contradict in time",
            ),
            (
                self.listen >= self.announce + self.announce,
                "listen",
                self.listen,
                "at least twice",
                "announce",
                self.announce,
                ", or one lost announcement would depose a leader",
            ),
            (
                self.guard < longest_sleep,
                "guard",
                self.guard,
                "shorter than four times and a half the",
                "beat",
                self.beat,
                " and three times the ack, or a leader would wake up as one after the others have given it up",
            ),
            (
                self.beat < self.period,
                "beat",
                self.beat,
                "shorter than",
                "period",
                self.period,
                ", or probes would be sooner",
            ),
            (
                self.ack <= self.beat,
                "beat",
                self.beat,
                "at least",
                "ack",
                self.ack,
                ", or a late beat would be taken for a missed one",
            ),
            (
                self.refresh >= self.election,
                "refresh",
                self.refresh,
                "at least",
                "election",
                self.election,
                "",
            ),
            (
                self.arbitration <= self.lease,
                "arbitration",
                self.arbitration,
                "at most",
                "lease",
                self.lease,
                ", or verdicts would outlast what they are about",
            ),
        ];
        for (holds, name, value, must, than, other, why) in rules {
            if holds {
                continue;
            }
            let profile = self.profile.name();
            let origin = |key: &str, written: bool| match written {
                true => format!("timing.{key} of {other}"),
                false => format!("{key} of {other} (profile {profile})"),
            };
            let (field, other_field) = (section.take(name), section.take(than));
            let (problem, blamed) = match (field, other_field) {
                (Some(field), other_field) => {
                    (format!("must be {must} {}{why}", origin(than, other_field.is_some())), field)
                }
                (None, Some(other_field)) => {
                    let problem = format!(
                        "does not go with {name} of {value} (profile {profile}), which must be {must} {than}{why}"
                    );
                    (problem, other_field)
                }
                (None, None) => continue,
            };
            return Err(blamed.error(problem).with_allowed(
                "ack <= beat < period <= suspicion, 2 announce <= listen, guard < 4.5 beat + 3 ack, election <= refresh, arbitration <= lease",
            ));
        }
        Ok(())
    }
}

/// The parts of the time until a silent leader is given up.
pub(super) struct Watched {
    /// Until somebody asks.
    pub(super) silence: Duration,
    /// For an answer.
    pub(super) probe: Duration,
    /// To contradict.
    pub(super) suspicion: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_keeps_its_own_rules() {
        for (_, profile) in Profile::ALL {
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
