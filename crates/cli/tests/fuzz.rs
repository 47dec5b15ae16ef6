//! Every fuzz target, on its seeds and a few thousand inputs made of them. libFuzzer does it for hours: docs/fuzzing.md.

#[path = "../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "the fuzz programs use it as a library")]
mod targets;

use std::{fs, panic, path::Path};

use bellwether_proto::{Rng, Seed};

/// Inputs of each target.
const INPUTS: u32 = 3_000;

#[test]
fn no_input_breaks_a_promise() {
    for target in targets::TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        let mut rng = Seed::new(1).named(target.name).rng();
        seeds.iter().for_each(|seed| attempt(&target, seed));
        for _ in 0..INPUTS {
            attempt(&target, &mutant(&seeds, &mut rng));
        }
    }
}

/// What was found once is not found again.
#[test]
fn what_was_found_stays_mended() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/found");
    for target in targets::TARGETS {
        let inputs = fs::read_dir(found.join(target.name));
        for input in inputs.into_iter().flatten() {
            let path = input.expect("a file").path();
            attempt(&target, &fs::read(path).expect("a file just listed"));
        }
    }
}

fn attempt(target: &targets::Target, bytes: &[u8]) {
    let run = panic::catch_unwind(|| (target.run)(bytes));
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(run.is_ok(), "{} panics on {hex}", target.name);
}

/// A seed with something changed, cut off, repeated or taken from another.
fn mutant(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let pick = |rng: &mut Rng, count: usize| rng.below(count.max(1) as u64) as usize;
    let mut bytes = seeds[pick(rng, seeds.len())].clone();
    for _ in 0..=pick(rng, 6) {
        let at = pick(rng, bytes.len());
        match rng.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
            1 if !bytes.is_empty() => bytes[at] = rng.below(256) as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at.min(bytes.len()), [0, 1, 0x7f, 0x80, 0xff][pick(rng, 5)]),
            4 if !bytes.is_empty() => drop(bytes.remove(at)),
            5 => {
                let other = &seeds[pick(rng, seeds.len())];
                let from = pick(rng, other.len());
                let to = (from + pick(rng, 64)).min(other.len());
                bytes.splice(at.min(bytes.len())..at.min(bytes.len()), other[from..to].to_vec());
            }
            _ => {
                let end = (at + pick(rng, 32)).min(bytes.len());
                let part = bytes[at.min(end)..end].to_vec();
                bytes.extend(part);
            }
        }
    }
    bytes
}
