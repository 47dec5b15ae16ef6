//! The announce-listen chapter: its table, its figures, its formulas, and what it left to future work.
//!
//! Set-up S of the chapter's experiments: `T_S = T_A = 1`, `Δ = 0.1`, nobody stops believing in a leader,
//! uniform timers, cold start, 1,000 runs up to 100 processes and 100 beyond.

mod cold;
mod future;
mod messages;
mod steady;

use bellwether_sim::observe::Metric;

use crate::{
    analysis::announce::Loss,
    claim::list,
    estimate::{Estimate, is_ascending, least, most},
    experiment::{Cell, Experiment, Size},
    figure::{Axis, Figure, Series},
    scenarios::{ANNOUNCE_AL, ANNOUNCE_COLD, ANNOUNCE_SUP},
    table::Table,
};

pub(super) fn all() -> Vec<Experiment> {
    [cold::all(), messages::all(), steady::all(), future::all()].into_iter().flatten().collect()
}

/// The chapter's group sizes.
const SIZES: [u32; 10] = [2, 5, 10, 20, 50, 100, 200, 300, 400, 500];

/// The chapter's runs for a group size.
fn runs(size: Size, nodes: u32) -> u64 {
    size.runs(if nodes <= 100 { 1_000 } else { 100 })
}

/// A kind of loss, as cells are named by it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lossy {
    None,
    Corr(f64),
    Uc(f64),
}

/// The loss of most figures.
const CORR: Lossy = Lossy::Corr(0.4);
const UC: Lossy = Lossy::Uc(0.4);

impl Lossy {
    fn name(self) -> String {
        match self {
            Self::None => "none".into(),
            Self::Corr(rate) => format!("corr {rate}"),
            Self::Uc(rate) => format!("uc {rate}"),
        }
    }

    fn apply(self, cell: Cell) -> Cell {
        let (kind, rate) = match self {
            Self::None => return cell,
            Self::Corr(rate) => ("correlated", rate),
            Self::Uc(rate) => ("independent", rate),
        };
        cell.set("network.loss.kind", kind).set("network.loss.rate", rate)
    }

    fn analytic(self) -> Loss {
        match self {
            Self::None => Loss::None,
            Self::Corr(rate) => Loss::Correlated(rate),
            Self::Uc(rate) => Loss::Uncorrelated(rate),
        }
    }
}

/// The name of the cell of a protocol under a loss in a group.
fn name(variant: &str, loss: Lossy, nodes: u32) -> String {
    format!("{variant} {} n={nodes}", loss.name())
}

/// A protocol of the family from a cold start.
fn cold(variant: &str, loss: Lossy, nodes: u32, runs: u64) -> Cell {
    let cell = |base| {
        let cell = Cell::new(name(variant, loss, nodes), base, runs).set("network.nodes", nodes);
        loss.apply(cell)
    };
    match variant {
        "sup" => cell(ANNOUNCE_SUP),
        "al" => cell(ANNOUNCE_AL),
        _ => cell(ANNOUNCE_COLD).set("election.variant", variant),
    }
}

/// Each protocol under each loss, at the chapter's group sizes.
fn sweep(size: Size, variants: &[&str], losses: &[Lossy]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &variant in variants {
        for &loss in losses {
            cells.extend(SIZES.map(|n| cold(variant, loss, n, runs(size, n))));
        }
    }
    cells
}

/// A metric of a protocol at the chapter's group sizes.
fn by_size(
    data: &Table,
    (label, colour): (&str, usize),
    (variant, loss): (&str, Lossy),
    metric: Metric,
) -> Series {
    let cells = SIZES.map(|n| (f64::from(n), name(variant, loss, n)));
    Series::cells(label, colour, data, metric, cells)
}

/// Each value is as given, within four standard errors and this much besides: what is given was simulated itself.
fn are_near(values: &[Estimate], given: &[f64], besides: impl Fn(f64) -> f64) -> bool {
    let near = |(one, given): (&Estimate, &f64)| {
        (one.value - given).abs() <= 4.0 * one.error + besides(*given)
    };
    values.len() == given.len() && values.iter().zip(given).all(near)
}
