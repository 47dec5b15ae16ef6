//! Settings of elections of the most central.

use bellwether_proto::{
    Duration,
    election::central::{Criterion, Hysteresis},
    node::{CentralSettings, Neighbours, Spread, TimingProfile},
};

use super::{
    field::{Field, Result, Section},
    hook::program,
    path,
};
use crate::neighbours::{Format, Source, Table};

pub(super) fn read(
    section: &mut Section<'_>,
    profile: TimingProfile,
) -> Result<(CentralSettings, Option<Table>)> {
    refuse_others(section)?;
    let criterion =
        section.or("criterion", Criterion::Closeness, |field| field.choice(&Criterion::NAMED))?;
    let horizon = section.take("horizon");
    let horizon = horizon.map(|field| field.integer(2..=FARTHEST)).transpose()?;
    let (spread, hysteresis) = (spread(section)?, hysteresis(section)?);
    let (neighbours, table) = neighbours(section, profile)?;
    Ok((CentralSettings { spread, criterion, hysteresis, horizon, neighbours }, table))
}

/// All but the mode, as they are shown.
pub(super) fn shown(
    central: &CentralSettings,
    table: Option<&Table>,
    profile: TimingProfile,
) -> Vec<(&'static str, String)> {
    let quoted = |value: &dyn ToString| format!("{:?}", value.to_string());
    let none = || "(none)".to_owned();
    let mut all = vec![("criterion", quoted(&central.criterion.name()))];
    match central.spread {
        Spread::AtOnce(rho) => {
            all.push(("spread", quoted(&"at-once")));
            all.push(("rho", (f64::from(rho) / 1_000.0).to_string()));
        }
        Spread::Tick(tick) => {
            all.push(("spread", quoted(&"tick")));
            all.push(("tick", quoted(&tick)));
        }
    }
    let hysteresis = central.hysteresis;
    all.push(("hysteresis", hysteresis.map_or(none(), |it| it.percent.to_string())));
    all.extend(hysteresis.map(|it| ("dwell", quoted(&it.dwell))));
    all.push(("horizon", central.horizon.map_or(none(), |hops| hops.to_string())));
    if let Some((period, silence)) = central.beacons(profile) {
        all.push(("beacon", quoted(&period)));
        all.push(("silence", quoted(&silence)));
    }
    if let Some(Table { format, source, every }) = table {
        all.push(("neighbours.format", quoted(&format.name())));
        let (key, value) = match source {
            Source::Command(words) => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                ("neighbours.command", format!("[{}]", words.join(", ")))
            }
            Source::Address(address) => ("neighbours.address", quoted(address)),
            Source::File(path) => ("neighbours.file", quoted(&path.display())),
        };
        all.push((key, value));
        all.push(("neighbours.every", quoted(every)));
    }
    all
}

/// What other modes know and this one does not.
fn refuse_others(section: &mut Section<'_>) -> Result<()> {
    if let Some(field) = section.take("priority") {
        let error = field.error("means nothing in a central election: places on the map decide");
        return Err(error.with_allowed("no priority, or mode = \"eventual\""));
    }
    if let Some(field) = section.take("role")
        && !field.choice(&[("candidate", true), ("observer", false)])?
    {
        let error =
            field.error("is not possible in a central election: whoever is on the map may lead");
        return Err(error.with_allowed("\"candidate\", or no such election on this node"));
    }
    for key in ["variant", "c", "f", "margin", "on_isolation", "tenure"] {
        if let Some(field) = section.take(key) {
            let error = field.error("means nothing in a central election");
            let allowed = "criterion, spread, hysteresis, horizon, beacon and neighbours";
            return Err(error.with_allowed(allowed));
        }
    }
    Ok(())
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
            let rho = rho.map_or(Ok(1.0), |field| field.number(0.0, 1.0))?;
            Ok(Spread::AtOnce((rho * 1_000.0).round() as u32))
        }
        (false, None, tick) => Ok(Spread::Tick(tick.map_or(Ok(TICK), |field| field.duration())?)),
    }
}

fn hysteresis(section: &mut Section<'_>) -> Result<Option<Hysteresis>> {
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
    let dwell = dwell.map_or(Ok(DWELL), |field| field.duration())?;
    Ok(Some(Hysteresis { percent, dwell }))
}

fn neighbours(
    section: &mut Section<'_>,
    profile: TimingProfile,
) -> Result<(Neighbours, Option<Table>)> {
    let (beacon, silence) = (section.take("beacon"), section.take("silence"));
    if let Some(field) = section.take("neighbours") {
        if let Some(beacon) = beacon.or(silence) {
            let error = beacon.error("is for beacons, and a routing daemon says who is in range");
            return Err(error.with_allowed("beacons, or neighbours"));
        }
        return table(field.section()?).map(|table| (Neighbours::Given, Some(table)));
    }
    let read = |field: &Option<Field<'_>>| field.as_ref().map(Field::duration).transpose();
    let (period, patience) = (read(&beacon)?, read(&silence)?);
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
            (None, None) => return Ok((Neighbours::Beacons { period, silence: patience }, None)),
        };
        return Err(error.with_allowed(allowed));
    }
    Ok((Neighbours::Beacons { period, silence: patience }, None))
}

fn table(mut section: Section<'_>) -> Result<Table> {
    let example = "format = \"babel\", \"olsr\" or \"batman\"";
    let format = section.require("format", example)?.choice(&Format::ALL)?;
    let every = section.or("every", EVERY, |field| field.duration())?;
    let given = [section.take("command"), section.take("address"), section.take("file")];
    let where_from = match format {
        Format::Batman => "one of command and file",
        Format::Babel | Format::Olsr => "one of command, address and file",
    };
    if let (Format::Batman, Some(address)) = (format, &given[1]) {
        let error = address.error("is for daemons that can be asked, and batman-adv is none");
        return Err(error.with_allowed("command = [\"/usr/sbin/batctl\", \"n\", \"-n\"]"));
    }
    let whole = section.field().clone();
    // First, as a mistyped key is no place.
    section.end()?;
    let count = given.iter().flatten().count();
    if count != 1 {
        let problem = format!("names {count} places to read the table from");
        return Err(whole.error_unquoted(problem).with_allowed(where_from));
    }
    let [command, address, file] = given;
    let source = if let Some(command) = command {
        Source::Command(program(&command)?)
    } else if let Some(address) = address {
        Source::Address(address.listen(PORTS[usize::from(format == Format::Olsr)])?)
    } else if let Some(file) = file {
        Source::File(path(&file)?)
    } else {
        unreachable!("one of them was given")
    };
    Ok(Table { format, source, every })
}

/// Between two sendings of what has changed, if they are not sent at once.
const TICK: Duration = Duration::from_millis(100);
/// After which a leader that is not the best is replaced by whoever is.
const DWELL: Duration = Duration::from_secs(30);
/// Between two looks at a daemon's table.
const EVERY: Duration = Duration::from_secs(1);
/// Ports in examples: babeld's and olsrd's.
const PORTS: [u16; 2] = [33123, 2006];
/// Hops. Arbitrary; no mesh of radios that works is as wide.
const FARTHEST: u32 = 64;
/// A sum of distances ten times as small. Arbitrary.
const HIGHEST_PERCENT: u32 = 1_000;
