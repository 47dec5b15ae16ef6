//! Reading an election of the most central node.

use bellwether_proto::{
    Duration,
    election::central::{
        Config, Criterion, Detection, LinkState, Order, Probes, Profile, Reading, Spread, tick,
    },
};

use bellwether_settings::{Field, Result, Section, election::hysteresis};

use super::{super::Protocol, refused};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    TopologyAware,
    Cel,
    Flooding,
    Gomez,
}

/// The thesis's protocols with its times, as published or repaired.
pub(super) fn central(section: &mut Section<'_>) -> Result<Protocol> {
    let example = "\"topology-aware\", \"cel\", \"flooding\" or \"gomez\"";
    let kind = section.require("profile", example)?.choice(&[
        ("topology-aware", Kind::TopologyAware),
        ("cel", Kind::Cel),
        ("flooding", Kind::Flooding),
        ("gomez", Kind::Gomez),
    ])?;
    // Of the last nothing but its reconstruction is known.
    let hardened = kind != Kind::Gomez
        && section.or("form", true, |field| {
            field.choice(&[("hardened", true), ("as-published", false)])
        })?;
    let profile = match kind {
        Kind::TopologyAware => {
            let tick = period_of_ticks(section)?;
            match hardened {
                true => Profile::LinkState(link_state(section, LinkState::ticking(tick))?),
                false => Profile::TopologyAware { tick, probes: probes(section)? },
            }
        }
        Kind::Cel => {
            let rho = section.or("rho", 1.0, Field::rate)?;
            match hardened {
                true => {
                    let prune = section.or("prune", true, Field::flag)?;
                    let settings = LinkState::at_once(rho);
                    let spread = Spread::AtOnce { rho, prune };
                    Profile::LinkState(link_state(section, LinkState { spread, ..settings })?)
                }
                false => Profile::Cel { rho },
            }
        }
        Kind::Flooding => Profile::Flooding {
            reading: section.or("reading", Reading::Tick, |field| {
                field.choice(&[
                    ("tick", Reading::Tick),
                    ("opt", Reading::Opt),
                    ("eager", Reading::Eager),
                    ("relay", Reading::Relay),
                ])
            })?,
            period: section.or("period", Duration::from_millis(250), Field::span)?,
            timeout: section.or("timeout", Duration::from_millis(300), Field::span)?,
            numbered: hardened,
        },
        Kind::Gomez => Profile::Gomez {
            order: section.or("order", Order::Size, |field| {
                field.choice(&[("size", Order::Size), ("age", Order::Age)])
            })?,
            period: section.or("period", BEACON, Field::span)?,
        },
    };
    let detection = match kind {
        Kind::Gomez => Detection::Given,
        Kind::TopologyAware | Kind::Flooding => {
            detection(section, Duration::from_millis(400), Duration::from_millis(450))?
        }
        // One beacon lost is no neighbour lost, unless the thesis is to be followed as far as it goes.
        Kind::Cel if hardened => detection(section, BEACON, Duration::from_millis(320))?,
        Kind::Cel => detection(section, BEACON, Duration::from_micros(115_200))?,
    };
    let mut config = Config::new(profile, detection).map_err(|error| refused(section, error))?;
    if matches!(kind, Kind::TopologyAware | Kind::Cel) {
        config = judged(section, config)?;
    }
    Ok(Protocol::Central(config))
}

/// By what, and how firmly, where there is a map.
fn judged(section: &mut Section<'_>, config: Config) -> Result<Config> {
    let criterion =
        section.or("criterion", Criterion::Closeness, |field| field.choice(&Criterion::NAMED))?;
    let config = config.with_criterion(criterion).map_err(|error| refused(section, error))?;
    let Some(hysteresis) = hysteresis(section)? else { return Ok(config) };
    config.with_hysteresis(hysteresis).map_err(|error| refused(section, error))
}

/// Said outright, or what the thesis has for this range.
fn period_of_ticks(section: &mut Section<'_>) -> Result<Duration> {
    let range = section.take("range");
    match section.take("tick") {
        Some(field) => match range {
            Some(range) => {
                let error =
                    range.error(format!("says the tick a second time, after {}", field.place()));
                Err(error.with_allowed("one of them: tick = \"77ms\" or range = 90"))
            }
            None => field.span(),
        },
        None => Ok(tick(range.map_or(Ok(RANGE), |field| field.length())?)),
    }
}

fn probes(section: &mut Section<'_>) -> Result<Probes> {
    section.or("probes", Probes::Once, |field| {
        field.choice(&[("once", Probes::Once), ("every", Probes::Every)])
    })
}

fn link_state(section: &mut Section<'_>, settings: LinkState) -> Result<LinkState> {
    let horizon = section.take("horizon");
    Ok(LinkState {
        digest: section.or("digest", settings.digest, Field::span)?,
        quiet: section.or("quiet", settings.quiet, Field::span)?,
        memory: section.or("memory", settings.memory, Field::span)?,
        horizon: horizon.map(|field| field.integer(2..=1_000)).transpose()?,
        boots: section.or("boots", settings.boots, Field::flag)?,
        ..settings
    })
}

/// A stated period without a timeout keeps the proportion of the two.
fn detection(section: &mut Section<'_>, period: Duration, timeout: Duration) -> Result<Detection> {
    let ratio = timeout.as_secs_f64() / period.as_secs_f64();
    let period = section.or("beacon", period, Field::span)?;
    let field = section.take("silence");
    let timeout = match &field {
        Some(field) => field.span()?,
        None => period.scale(ratio),
    };
    match field.filter(|_| timeout <= period) {
        Some(field) => {
            let error = field.error(format!("ends before the next beacon (beacon = {period})"));
            Err(error.with_allowed(format!("more than \"{period}\"")))
        }
        None => Ok(Detection::Beacons { period, timeout }),
    }
}

/// Of Wi-Fi.
const BEACON: Duration = Duration::from_micros(102_400);
/// In metres: what the thesis looks at most closely.
const RANGE: f64 = 90.0;
