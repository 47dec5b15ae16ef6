//! Settings of elections of the most central.

use bellwether_proto::{
    Duration,
    election::central::{Criterion, Hysteresis},
    node::{CentralSettings, Neighbours, Spread, TimingProfile},
};

use crate::{
    field::{Field, Result, Section},
    host::Host,
};

pub(crate) fn read(
    section: &mut Section<'_>,
    given: Option<&Field<'_>>,
    profile: TimingProfile,
    host: Host<'_>,
) -> Result<CentralSettings> {
    let criterion =
        section.or("criterion", Criterion::Closeness, |field| field.choice(&Criterion::NAMED))?;
    let horizon = section.take("horizon");
    let horizon = horizon.map(|field| field.integer(2..=FARTHEST)).transpose()?;
    let (spread, hysteresis) = (spread(section)?, hysteresis(section)?);
    let neighbours = neighbours(section, given, profile, host)?;
    Ok(CentralSettings { spread, criterion, hysteresis, horizon, neighbours })
}

fn spread(section: &mut Section<'_>) -> Result<Spread> {
    let at_once =
        section.or("spread", true, |field| field.choice(&[("at-once", true), ("tick", false)]))?;
    let (rho, tick) = (section.take("rho"), section.take("tick"));
    match (at_once, rho, tick) {
        (true, _, Some(tick)) => {
            let error = tick.error("is for spread = \"tick\"");
            Err(error.with_allowed("rho, or spread = \"tick\""))
        }
        (false, Some(rho), _) => {
            let error = rho.error("is for spread = \"at-once\"");
            Err(error.with_allowed("tick, or spread = \"at-once\""))
        }
        (true, rho, None) => {
            let rho = rho.map_or(Ok(1.0), |field| field.between(0.0, 1.0))?;
            Ok(Spread::AtOnce(libm::round(rho * 1_000.0) as u32))
        }
        (false, None, tick) => Ok(Spread::Tick(tick.map_or(Ok(TICK), |field| field.wait())?)),
    }
}

/// How much better another must be, and for how long at most that holds it back.
///
/// # Errors
///
/// What is wrong with them.
pub fn hysteresis(section: &mut Section<'_>) -> Result<Option<Hysteresis>> {
    let (percent, dwell) = (section.take("hysteresis"), section.take("dwell"));
    let Some(percent) = percent else {
        return match dwell {
            Some(dwell) => {
                let error = dwell.error("bounds a hysteresis, and there is none");
                Err(error.with_allowed("hysteresis = 10 besides, or no dwell"))
            }
            None => Ok(None),
        };
    };
    let percent = percent.integer(1..=HIGHEST_PERCENT)?;
    let dwell = dwell.map_or(Ok(DWELL), |field| field.wait())?;
    Ok(Some(Hysteresis { percent, dwell }))
}

fn neighbours(
    section: &mut Section<'_>,
    given: Option<&Field<'_>>,
    profile: TimingProfile,
    host: Host<'_>,
) -> Result<Neighbours> {
    let (beacon, silence) = (section.take("beacon"), section.take("silence"));
    if let Some(field) = given {
        if let Host::Simulator(_) = host {
            let error =
                field.error_unquoted("asks a routing daemon, and there is none in a simulation");
            return Err(error.with_allowed("beacon and silence"));
        }
        if let Some(beacon) = beacon.or(silence) {
            let error = beacon.error("is for beacons, and a routing daemon says who is in range");
            return Err(error.with_allowed("beacons, or neighbours"));
        }
        return Ok(Neighbours::Given);
    }
    let wait = |field: &Option<Field<'_>>| field.as_ref().map(Field::wait).transpose();
    let (period, patience) = (wait(&beacon)?, wait(&silence)?);
    let (default, default_patience) = profile.beacons();
    if patience.unwrap_or(default_patience) <= period.unwrap_or(default) {
        let allowed = "silence above beacon, three times it or more where packets get lost";
        let error = match (&silence, &beacon) {
            (Some(silence), _) => {
                let period = period.unwrap_or(default);
                silence.error(format!("ends before the next beacon, which comes after {period}"))
            }
            (None, Some(beacon)) => beacon.error(format!(
                "is above the silence of {default_patience} (profile {}) after which one is given up",
                profile.name()
            )),
            (None, None) => return Ok(Neighbours::Beacons { period, silence: patience }),
        };
        return Err(error.with_allowed(allowed));
    }
    Ok(Neighbours::Beacons { period, silence: patience })
}

/// Between two sendings of what has changed, if they are not sent at once.
const TICK: Duration = Duration::from_millis(100);
/// After which a leader that is not the best is replaced by whoever is.
const DWELL: Duration = Duration::from_secs(30);
/// Hops. Arbitrary; no mesh of radios that works is as wide.
const FARTHEST: u32 = 64;
/// A sum of distances ten times as small. Arbitrary.
const HIGHEST_PERCENT: u32 = 1_000;
