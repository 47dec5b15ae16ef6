//! How often and how long: reading the waits, and which of them must exceed which.

use bellwether_proto::node::{Timing, TimingProfile};

use crate::field::{Result, Section};

/// Reads a set of waits: a profile, and what is changed of it.
///
/// # Errors
///
/// What is wrong with them.
pub fn timing(mut section: Section<'_>) -> Result<Timing> {
    let profile = section
        .or("profile", TimingProfile::default(), |field| field.choice(&TimingProfile::ALL))?;
    let mut timing = profile.timing();
    for (key, place) in timing.waits_mut() {
        if let Some(field) = section.take(key) {
            *place = field.wait()?;
        }
    }
    check(&timing, &mut section)?;
    section.end()?;
    Ok(timing)
}

/// Refuses waits that contradict each other, at whichever of the two was written.
fn check(timing: &Timing, section: &mut Section<'_>) -> Result<()> {
    let longest_sleep = timing.given_up_after();
    let rules = [
        (
            timing.ack < timing.period,
            "ack",
            timing.ack,
            "shorter than",
            "period",
            timing.period,
            "",
        ),
        (
            timing.suspicion >= timing.period,
            "suspicion",
            timing.suspicion,
            "at least",
            "period",
            timing.period,
            ", or nobody could contradict in time",
        ),
        (
            timing.listen >= timing.announce + timing.announce,
            "listen",
            timing.listen,
            "at least twice",
            "announce",
            timing.announce,
            ", or one lost announcement would depose a leader",
        ),
        (
            timing.guard < longest_sleep,
            "guard",
            timing.guard,
            "shorter than 4.5 times the",
            "beat",
            timing.beat,
            " and three times the ack, or a leader that was stopped would still take itself for one when the others have another",
        ),
        (
            timing.beat < timing.period,
            "beat",
            timing.beat,
            "shorter than",
            "period",
            timing.period,
            ", or probes would be sooner",
        ),
        (
            timing.ack <= timing.beat,
            "beat",
            timing.beat,
            "at least",
            "ack",
            timing.ack,
            ", or a late beat would be taken for a missed one",
        ),
        (
            timing.refresh >= timing.election,
            "refresh",
            timing.refresh,
            "at least",
            "election",
            timing.election,
            "",
        ),
        (
            timing.arbitration <= timing.lease,
            "arbitration",
            timing.arbitration,
            "at most",
            "lease",
            timing.lease,
            ", or verdicts would outlast what they are about",
        ),
    ];
    for (holds, name, value, must, than, other, why) in rules {
        if holds {
            continue;
        }
        let profile = timing.profile.name();
        let origin = |key: &str, written: bool| match written {
            true => format!("timing.{key} of {other}"),
            false => format!("{key} of {other} (profile {profile})"),
        };
        let (field, other_field) = (section.take(name), section.take(than));
        let (problem, blamed) = match (field, other_field) {
            (Some(field), other_field) => {
                (format!("must be {must} {}{why}", origin(than, other_field.is_some())), field)
            }
            // Each mode cuts it short by itself.
            (None, _) if name == "guard" => continue,
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
