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
    /// What they mean for 16 hosts, by the formulas of [`explain`](super::explain) and with one election: `local` fails
    /// over within 0.55 s in 19 of 20 cases at 296 kbit/s for all of them together, `lan` within 1.35 s at 120, `wan`
    /// within 10.8 s at 20, `mesh` within 13.6 s at 16. Probing alone cannot have 1.5 s and 28 kbit/s both: 28 kbit/s
    /// are a period of 1 s, and the first probe of a dead leader then takes 3 s in one case of twenty.
    pub fn timing(self) -> Timing {
        let ms = Duration::from_millis;
        // Guards are below period + suspicion: whoever slept so long that the others may have given it up must not
        // wake up leading.
        let (period, ack, suspicion, election, grace, refresh, announce, listen, suppress, guard) =
            match self {
                Self::Local => (100, 30, 100, 50, 300, 1_000, 100, 350, 100, 150),
                Self::Lan => (250, 80, 250, 100, 1_000, 2_000, 300, 1_000, 200, 400),
                Self::Wan => (1_500, 600, 4_000, 750, 5_000, 10_000, 2_000, 7_000, 2_000, 4_000),
                Self::Mesh => (2_000, 500, 4_600, 1_000, 6_000, 10_000, 2_000, 9_000, 2_000, 5_000),
            };
        Timing {
            profile: self,
            period: ms(period),
            ack: ms(ack),
            suspicion: ms(suspicion),
            election: ms(election),
            grace: ms(grace),
            refresh: ms(refresh),
            announce: ms(announce),
            listen: ms(listen),
            suppress: ms(suppress),
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
    pub fn waits(&self) -> [(&'static str, Duration); 10] {
        let mut copy = *self;
        copy.waits_mut().map(|(name, wait)| (name, *wait))
    }

    fn waits_mut(&mut self) -> [(&'static str, &mut Duration); 10] {
        [
            ("period", &mut self.period),
            ("ack", &mut self.ack),
            ("suspicion", &mut self.suspicion),
            ("election", &mut self.election),
            ("grace", &mut self.grace),
            ("refresh", &mut self.refresh),
            ("announce", &mut self.announce),
            ("listen", &mut self.listen),
            ("suppress", &mut self.suppress),
            ("guard", &mut self.guard),
        ]
    }

    /// Refuses waits that contradict each other, at whichever of the two was written.
    fn check(&self, section: &mut Section<'_>) -> Result<()> {
        let longest_sleep = self.period + self.suspicion;
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
                "shorter than the period and",
                "suspicion",
                self.suspicion,
                " together, or a leader would wake up as one after the others have given it up",
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
                "ack < period <= suspicion, 2 announce <= listen, guard < period + suspicion, election <= refresh",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_keeps_its_own_rules() {
        for (_, profile) in Profile::ALL {
            let Timing {
                period, ack, suspicion, election, refresh, announce, listen, guard, ..
            } = profile.timing();
            assert!(ack < period && period <= suspicion, "{profile:?}");
            assert!(listen >= announce + announce, "{profile:?}");
            assert!(guard < period + suspicion, "{profile:?}");
            assert!(refresh >= election, "{profile:?}");
        }
    }
}
