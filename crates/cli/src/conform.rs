//! `bellwether conform`: the conformance suite over many seeds.

use std::io::{self, BufWriter, Write};

use bellwether_sim::{
    check::conformance::{Case, Judgement, Subject, Trial, Verdict, subjects, sweep},
    observe::{Entry, Log},
};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::{
    output::Failure,
    runs::{at_least_one, on_threads, print_step, progress, unknown_name, whole},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these modes
    #[arg(value_name = "MODE")]
    named: Vec<String>,
    /// Only these modes
    #[arg(long = "mode", visible_alias = "subject", value_name = "NAME")]
    modes: Vec<String>,
    /// Only these cases
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<Case>,
    /// How many seeds for each mode and case
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one)]
    seeds: u64,
    /// The first of them
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole)]
    seed: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print one run step by step; needs one mode and one case
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "seed"], value_parser = whole)]
    replay: Option<u64>,
    /// Threads to use; the results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// True if every mode behaves as it is known to.
pub(crate) fn run(args: Args) -> Result<bool, Failure> {
    let names: Vec<String> = args.named.iter().chain(&args.modes).cloned().collect();
    let subjects = chosen(&names)?;
    let cases = if args.cases.is_empty() { Case::ALL.to_vec() } else { args.cases.clone() };
    if let Some(seed) = args.replay {
        let ([subject], [case]) = (subjects.as_slice(), cases.as_slice()) else {
            return Err(Failure::Other(
                "--replay shows one run: name one --mode and one --case".into(),
            ));
        };
        return replay(subject, *case, seed, args.json);
    }
    let faced = |subject: &Subject| -> Vec<Case> {
        subject.cases().filter(|case| cases.contains(case)).collect()
    };
    let runs = |subject: &Subject| faced(subject).len() as u64 * args.seeds.div_ceil(subject.cost);
    let bar = progress(subjects.iter().map(runs).sum());
    let verdicts = on_threads(args.threads.map(usize::from), || {
        let all = |subject: &Subject| {
            let one = |case| sweep(subject, case, args.seed, args.seeds, || bar.inc(1));
            faced(subject).into_iter().map(one).collect::<Vec<_>>()
        };
        subjects.iter().map(all).collect::<Vec<_>>()
    })?;
    bar.finish_and_clear();
    let mut out = io::stdout().lock();
    if args.json {
        let modes = subjects.iter().zip(&verdicts).map(|(subject, all)| mode_json(subject, all));
        writeln!(out, "{}", json!({ "seeds": args.seeds, "modes": modes.collect::<Vec<_>>() }))?;
    } else {
        print(&mut out, &subjects, &cases, &verdicts)?;
    }
    Ok(subjects.iter().zip(&verdicts).all(|(subject, all)| as_known(subject, all)))
}

fn chosen(names: &[String]) -> Result<Vec<Subject>, Failure> {
    let all = subjects();
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|one| one.name != **name)) {
        return Err(unknown_name("mode", unknown, all.iter().map(|subject| subject.name)));
    }
    let wanted = |subject: &Subject| names.is_empty() || names.iter().any(|n| n == subject.name);
    Ok(all.into_iter().filter(wanted).collect())
}

fn replay(subject: &Subject, case: Case, seed: u64, json: bool) -> Result<bool, Failure> {
    let trial = Trial::new(subject, case, seed);
    let mut out = BufWriter::new(io::stdout().lock());
    if !json {
        writeln!(out, "{}: {} nodes", trial.scenario.name, trial.scenario.network.nodes)?;
        for fault in &trial.scenario.faults {
            writeln!(out, "at {:>12} {:?}", fault.at.to_string(), fault.kind)?;
        }
        let (quiet, settled) = (trial.quiet_from, trial.settled_by);
        writeln!(out, "quiet from {quiet}, agreement due by {settled}")?;
    }
    let mut written = Ok(());
    let mut print = |entry: Entry| {
        if written.is_ok() {
            written = print_step(&mut out, json, &entry);
        }
    };
    let Judgement { violations, smallest_gap, .. } = trial.judge(seed, Log::to(&mut print));
    written?;
    out.flush()?;
    if let Some(gap) = smallest_gap {
        eprintln!("smallest gap between two that could act: {gap}");
    }
    for violation in &violations {
        eprintln!("violated: {violation}");
    }
    Ok(violations.is_empty())
}

fn as_known(subject: &Subject, verdicts: &[Verdict]) -> bool {
    let mut failures = verdicts.iter().flat_map(|verdict| &verdict.failures);
    match subject.known_to_break {
        Some(_) => failures.next().is_some(),
        None => failures.next().is_none(),
    }
}

fn print(
    out: &mut impl Write,
    subjects: &[Subject],
    cases: &[Case],
    verdicts: &[Vec<Verdict>],
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let names = subjects.iter().map(|subject| subject.name.to_owned());
    table.set_header(std::iter::once("seeds that failed".to_owned()).chain(names));
    for case in cases {
        let counts = verdicts.iter().map(|all| {
            let Some(verdict) = all.iter().find(|verdict| verdict.case == *case) else {
                return "-".to_owned();
            };
            let Verdict { failures, seeds, .. } = verdict;
            match failures.len() {
                0 => format!("0 of {seeds}"),
                failed => format!("{failed} of {seeds} ✗"),
            }
        });
        table.add_row(std::iter::once(case.to_string()).chain(counts));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{table}")?;
    for (subject, all) in subjects.iter().zip(verdicts) {
        writeln!(out, "{}: {}", subject.name, summary(all))?;
    }
    for (subject, all) in subjects.iter().zip(verdicts) {
        if let Some(why) = subject.known_to_break {
            writeln!(out, "{}: known to break its promise. {why}", subject.name)?;
        } else {
            for verdict in all.iter().filter(|verdict| !verdict.failures.is_empty()) {
                let (seed, violation) = &verdict.failures[0];
                let (mode, case) = (subject.name, verdict.case);
                writeln!(out, "{mode} {case}: {violation}")?;
                let replay = format!("bellwether conform --mode {mode} --case {case}");
                writeln!(out, "  replay: {replay} --replay {seed}")?;
            }
        }
    }
    Ok(())
}

/// `22 cases, 10120 histories, 0 violations, smallest gap 1.25s`
fn summary(verdicts: &[Verdict]) -> String {
    let histories: u64 = verdicts.iter().map(|verdict| verdict.seeds).sum();
    let failed: usize = verdicts.iter().map(|verdict| verdict.failures.len()).sum();
    let gap = verdicts.iter().filter_map(|verdict| verdict.smallest_gap).min();
    let gap = gap.map_or_else(String::new, |gap| format!(", smallest gap {gap}"));
    format!("{} cases, {histories} histories, {failed} violations{gap}", verdicts.len())
}

fn mode_json(subject: &Subject, verdicts: &[Verdict]) -> Value {
    let case = |verdict: &Verdict| {
        let failures = verdict.failures.iter().map(|(seed, violation)| {
            json!({ "seed": seed, "invariant": violation.invariant, "detail": violation.detail })
        });
        let situations = verdict.situations.iter().map(|((invariant, situation), seeds)| {
            json!({ "invariant": invariant, "sometimes": situation, "seeds": seeds })
        });
        json!({
            "case": verdict.case.name(),
            "failures": failures.collect::<Vec<_>>(),
            "situations": situations.collect::<Vec<_>>(),
        })
    };
    json!({
        "mode": subject.name,
        "known_to_break": subject.known_to_break,
        "as_known": as_known(subject, verdicts),
        "histories": verdicts.iter().map(|verdict| verdict.seeds).sum::<u64>(),
        "smallest_gap_us": verdicts.iter().filter_map(|v| v.smallest_gap).min().map(|gap| gap.as_micros()),
        "cases": verdicts.iter().map(case).collect::<Vec<_>>(),
    })
}
