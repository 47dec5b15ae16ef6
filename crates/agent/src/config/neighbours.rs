//! Where an agent learns who is in range, if it need not find out by beacons.

use bellwether_proto::{
    Duration,
    node::{CentralSettings, Spread, TimingProfile},
};
use bellwether_settings::{Result, Section};

use super::{
    hook::program,
    listen, path,
    table::{Format, Source, Table},
};

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

/// Reads `neighbours`.
pub(super) fn table(mut section: Section<'_>) -> Result<Table> {
    let example = "\"babel\", \"olsr\" or \"batman\"";
    let format = section.require("format", example)?.choice(&Format::ALL)?;
    let every = section.or("every", EVERY, |field| field.wait())?;
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
        Source::Address(listen(&address, PORTS[usize::from(format == Format::Olsr)])?)
    } else if let Some(file) = file {
        Source::File(path(&file)?)
    } else {
        unreachable!("one of them was given")
    };
    Ok(Table { format, source, every })
}

/// Between two looks at a daemon's table.
const EVERY: Duration = Duration::from_secs(1);
/// Ports in examples: babeld's and olsrd's.
const PORTS: [u16; 2] = [33123, 2006];
