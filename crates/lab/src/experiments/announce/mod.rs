//! The announce-listen chapter: its table, its figures, its formulas, and what it left to future work.
//!
//! Set-up S of the chapter's experiments: `T_S = T_A = 1`, `Δ = 0.1`, nobody stops believing in a leader,
//! uniform timers, cold start, 1,000 runs up to 100 processes and 100 beyond.

mod cold;
mod future;
mod messages;
mod steady;

use super::{between, bounded, difference, ratio, shown};
use crate::experiment::{Cell, Experiment, Size};

pub(super) fn all() -> Vec<Experiment> {
    [cold::all(), messages::all(), steady::all(), future::all()].into_iter().flatten().collect()
}

/// Set-up S, for the corrected rules that the analysis describes.
const COLD: &str = r#"
    name = "set-up S"
    duration = "60m"
    until = "agreement"
    [network]
    nodes = 10
    delay = { kind = "fixed", value = "100ms" }
    [election]
    kind = "announce"
    variant = "le-s"
    form = "corrected"
    announce = "1s"
    suppress = "1s"
    listen = "never"
"#;

/// SUP with the same channel: one message each, unless somebody else's comes first.
const SUP: &str = r#"
    name = "SUP"
    duration = "1101ms"
    [network]
    nodes = 10
    delay = { kind = "fixed", value = "100ms" }
    [election]
    kind = "sup"
    suppress = "1s"
"#;

/// AL with the same channel: everybody announces every period, in phase.
const AL: &str = r#"
    name = "AL"
    duration = "60m"
    until = "agreement"
    [network]
    nodes = 10
    delay = { kind = "fixed", value = "100ms" }
    [election]
    kind = "al"
    announce = "1s"
    listen = "never"
"#;

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

    fn analytic(self) -> crate::analysis::announce::Loss {
        use crate::analysis::announce::Loss;
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
    let base = match variant {
        "sup" => SUP,
        "al" => AL,
        _ => COLD,
    };
    let cell = Cell::new(name(variant, loss, nodes), base, runs).set("network.nodes", nodes);
    let cell = if base == COLD { cell.set("election.variant", variant) } else { cell };
    loss.apply(cell)
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
