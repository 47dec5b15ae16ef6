//! What was measured, for people and for programs.

use std::fmt::Write as _;

use bellwether_hosts::Spread;
use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use serde_json::{Value, json};

use crate::{
    measure::{BIN, Measured, PATIENCE, Plan},
    watch::PERIOD,
};

/// Every value that was measured, one a line.
pub(crate) fn csv(all: &[Measured]) -> String {
    let mut text = "system,version,nodes,measure,sample,value\n".to_owned();
    for of in all {
        for (measure, values) in samples(of) {
            for (sample, value) in values.iter().enumerate() {
                let Measured { system, version, nodes, .. } = of;
                let _ = writeln!(
                    text,
                    "{system},{version},{nodes},{measure},{},{value:.4}",
                    sample + 1
                );
            }
        }
    }
    text
}

pub(crate) fn json(all: &[Measured]) -> Value {
    let one = |of: &Measured| {
        let mut one = json!({
            "system": of.system, "version": of.version, "nodes": of.nodes, "settings": of.settings,
            "load": of.load.0, "cores": of.load.1,
        });
        for (measure, values) in samples(of) {
            // What never came is null, since JSON has no infinity.
            one[measure] = values.into();
        }
        one
    };
    all.iter().map(one).collect()
}

fn samples(of: &Measured) -> [(&'static str, Vec<f64>); 7] {
    [
        ("cpu_percent", vec![of.cpu_percent]),
        ("pss_mib", vec![of.pss_mib]),
        ("rss_mib", vec![of.rss_mib]),
        ("kbit_s", of.kbit_s.clone()),
        ("packets_s", of.packets_s.clone()),
        ("cut_s", of.cut_s.clone()),
        ("kill_s", of.kill_s.clone()),
    ]
}

pub(crate) fn table(all: &[Measured]) -> Table {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header([
        "",
        "nodes",
        "CPU % per node",
        "PSS MiB per node",
        "RSS MiB",
        "wire kbit/s, all",
        "packets/s, all",
        "cable cut, s",
        "killed, s",
    ]);
    for of in all {
        table.add_row([
            of.system.to_owned(),
            of.nodes.to_string(),
            format!("{:.3}", of.cpu_percent),
            format!("{:.1}", of.pss_mib),
            format!("{:.1}", of.rss_mib),
            spread(&of.kbit_s),
            Spread::of(&of.packets_s).map_or_else(dash, |all| format!("{:.0}", all.mean())),
            times(&of.cut_s),
            times(&of.kill_s),
        ]);
    }
    table
        .column_iter_mut()
        .skip(1)
        .for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

/// The page the figures are quoted from.
pub(crate) fn page(all: &[Measured], plan: &Plan) -> String {
    let mut page = "# Comparison, as measured\n\nWritten by `cargo run --release -p bellwether-compare`. What it \
                    means, and what it does not: [comparison.md](../comparison.md).\n\n"
        .to_owned();
    let (loads, cores) = loads(all);
    let _ = writeln!(
        page,
        "{}\n\nMean ± standard deviation over bins of {} s; for times, the median (least – most) of {} cuts and {} \
         kills. Idle for {} s after {} s of settling; nodes asked every {} ms, only while times are taken; whoever had no \
         leader after {} s got none. One machine with {cores} cores, load {loads}.\n",
        table(all),
        BIN.min(plan.idle).as_secs_f64(),
        plan.cuts,
        plan.kills,
        plan.idle.as_secs_f64(),
        plan.settle.as_secs_f64(),
        PERIOD.as_millis(),
        PATIENCE.as_secs(),
    );
    let _ =
        writeln!(page, "| | version | settings | a node names a leader when |\n|---|---|---|---|");
    for Measured { system, version, settings, naming, .. } in all {
        let _ = writeln!(page, "| {system} | {version} | {settings} | {naming} |");
    }
    let _ = writeln!(page, "\n{}\n![The same, as bars](comparison.svg)", verdicts(all));
    page
}

/// Bellwether against each of the others, measure by measure.
pub(crate) fn verdicts(all: &[Measured]) -> String {
    let mut text = String::new();
    let Some(ours) = all.iter().find(|of| of.system == "Bellwether") else { return text };
    for other in all.iter().filter(|of| of.system != ours.system) {
        let (mut ahead, mut behind) = (Vec::new(), Vec::new());
        for ((what, ours), (_, other)) in standings(ours).into_iter().zip(standings(other)) {
            if let Some((ours, other)) = ours.zip(other) {
                let words = format!("{what} ({} against {})", short(ours), short(other));
                if ours < other { ahead.push(words) } else { behind.push(words) }
            }
        }
        let list = |what: &str, of: Vec<String>| match of.len() {
            0 => String::new(),
            _ => format!("; {what} {}", of.join(", ")),
        };
        let _ = writeln!(
            text,
            "- Bellwether {} beside {} {}{}{}.",
            ours.nodes,
            other.system,
            other.nodes,
            list("ahead on", ahead),
            list("not ahead on", behind)
        );
    }
    text
}

/// Less is better in all of them.
fn standings(of: &Measured) -> [(&'static str, Option<f64>); 5] {
    let median = |times: &[f64]| Spread::of(times).map(|times| times.median());
    [
        ("CPU %", Some(of.cpu_percent)),
        ("MiB", Some(of.pss_mib)),
        ("kbit/s", Spread::of(&of.kbit_s).map(|all| all.mean())),
        ("s after a cut", median(&of.cut_s)),
        ("s after a kill", median(&of.kill_s)),
    ]
}

fn loads(all: &[Measured]) -> (String, usize) {
    let loads: Vec<f64> = all.iter().map(|of| of.load.0).collect();
    let cores = all.first().map_or(0, |of| of.load.1);
    let text = Spread::of(&loads).map(|all| format!("{:.1} – {:.1}", all.least(), all.most()));
    (text.unwrap_or_else(dash), cores)
}

fn spread(values: &[f64]) -> String {
    let Some(all) = Spread::of(values) else { return dash() };
    match all.deviation() {
        Some(deviation) => format!("{:.1} ± {deviation:.1}", all.mean()),
        None => format!("{:.1}", all.mean()),
    }
}

fn times(values: &[f64]) -> String {
    let Some(all) = Spread::of(values) else { return dash() };
    let [median, least, most] = [all.median(), all.least(), all.most()].map(time);
    format!("{median} ({least} – {most})")
}

fn time(seconds: f64) -> String {
    if seconds.is_finite() { format!("{seconds:.2}") } else { "never".to_owned() }
}

/// Three digits that mean something.
pub(crate) fn short(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "never".to_owned(),
        _ if value < 1.0 => format!("{value:.3}"),
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn dash() -> String {
    "–".to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    pub(crate) fn two() -> [Measured; 2] {
        let one = |system, cpu_percent, cut_s: &[f64]| Measured {
            system,
            version: "1".to_owned(),
            nodes: 3,
            settings: "none".to_owned(),
            naming: "it does",
            cpu_percent,
            pss_mib: 4.0,
            rss_mib: 6.0,
            kbit_s: vec![10.0, 12.0],
            packets_s: vec![5.0, 7.0],
            cut_s: cut_s.to_vec(),
            kill_s: Vec::new(),
            load: (0.5, 2),
        };
        [one("Serf", 0.2, &[3.0, f64::INFINITY, 2.0]), one("Bellwether", 0.1, &[4.0])]
    }

    #[test]
    fn every_value_is_in_the_file_and_what_never_came_says_so() {
        let csv = csv(&two());
        assert_eq!(csv.lines().count(), 1 + (3 + 2 + 2 + 3) + (3 + 2 + 2 + 1), "{csv}");
        assert!(csv.contains("\nSerf,1,3,cut_s,2,inf\n"), "{csv}");
        assert_eq!(json(&two())[0]["cut_s"], json!([3.0, null, 2.0]));
    }

    #[test]
    fn a_page_names_settings_and_says_where_we_fall_short() {
        let plan = Plan {
            idle: Duration::from_secs(20),
            settle: Duration::from_secs(5),
            cuts: 3,
            kills: 0,
            nodes: None,
        };
        let page = page(&two(), &plan);
        assert!(page.contains("3.00 (2.00 – never)"), "{page}");
        assert!(page.contains("| Serf | 1 | none | it does |"), "{page}");
        let verdict = "- Bellwether 3 beside Serf 3; ahead on CPU % (0.100 against 0.200); not ahead on MiB (4.00 \
                       against 4.00), kbit/s (11.0 against 11.0), s after a cut (4.00 against 3.00).";
        assert!(page.contains(verdict), "{page}");
    }

    #[test]
    fn without_us_there_is_no_verdict() {
        assert_eq!(verdicts(&two()[..1]), "");
    }
}
