//! Movements as text, in the format of BonnMotion: a line for each node, `t x y` again and again, perhaps compressed.
//!
//! Files with a height, `t x y z`, are read and the height let go: BonnMotion marks them with a line `#3D`; a file
//! without the mark is taken for one if its lines make no sense otherwise.

use std::{fmt::Write as _, io::Read as _, path::Path};

use flate2::read::MultiGzDecoder;

use super::{Movement, Waypoint, ns2};

/// Why a movement could not be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MovementError {
    /// The file as a whole.
    #[error("{file}: {problem}")]
    File {
        /// The name of the file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// One value in it.
    #[error("{file}:{line}:{column}: {value:?} {problem}")]
    Value {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The character at which the value begins, from 1.
        column: usize,
        /// The value that is out of range.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads a movement of BonnMotion's or ns-2's format, compressed or not.
///
/// # Errors
///
/// [`MovementError`] if the file cannot be read or is not a movement.
pub fn read(path: &Path) -> Result<Movement, MovementError> {
    let name = path.display().to_string();
    let failed = |problem: String| MovementError::File { file: name.clone(), problem };
    let cannot = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => failed("there is no such file".into()),
        _ => failed(format!("cannot be read: {error}")),
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.starts_with(&GZIP) {
        let mut text = Vec::new();
        MultiGzDecoder::new(&bytes[..])
            .take(LARGEST + 1)
            .read_to_end(&mut text)
            .map_err(|error| failed(format!("cannot be decompressed: {error}")))?;
        bytes = text;
    }
    if bytes.len() as u64 > LARGEST {
        return Err(failed("is larger than 256 MiB".into()));
    }
    let text = String::from_utf8(bytes).map_err(|not_text| {
        let valid = not_text.utf8_error().valid_up_to();
        failed(format!("is not UTF-8 text: byte {valid} does not fit"))
    })?;
    match ns2::is_script(&text) {
        true => ns2::parse(&name, &text),
        false => parse(&name, &text),
    }
}

/// Reads a movement from text; `file` is what errors call it.
pub(super) fn parse(file: &str, text: &str) -> Result<Movement, MovementError> {
    let solid = text.lines().any(|line| line.trim_end() == SOLID);
    let mut trajectories = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if !line.trim_start().starts_with('#') && !line.trim().is_empty() {
            trajectories.push(trajectory(file, number, line, solid)?);
        }
    }
    if trajectories.is_empty() {
        let problem = "moves nobody: there is no line of \"t x y\"".into();
        return Err(MovementError::File { file: file.into(), problem });
    }
    Ok(Movement::new(trajectories))
}

fn trajectory(
    file: &str,
    line: usize,
    text: &str,
    solid: bool,
) -> Result<Vec<Waypoint>, MovementError> {
    let values: Vec<&str> = text.split_whitespace().collect();
    let wrong = |index: usize, problem: String| {
        let value = values[index];
        let start = value.as_ptr() as usize - text.as_ptr() as usize;
        let column = text[..start].chars().count() + 1;
        let value = value.chars().take(LONGEST_SHOWN).collect();
        MovementError::Value { file: file.into(), line, column, value, problem }
    };
    let mut numbers = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        match value.parse::<f64>() {
            Ok(number) if number.is_finite() && number.abs() <= FARTHEST => numbers.push(number),
            Ok(_) => return Err(wrong(index, "is beyond any field: at most 1e9".into())),
            Err(_) => return Err(wrong(index, "is not a number".into())),
        }
    }
    let last = values.len() - 1;
    let ascend = |per: usize| {
        let times = || numbers.iter().step_by(per);
        times().zip(times().skip(1)).position(|(before, after)| after < before)
    };
    let fits = |per: usize| values.len().is_multiple_of(per) && ascend(per).is_none();
    let per = if solid || (!fits(3) && fits(4)) { 4 } else { 3 };
    if !values.len().is_multiple_of(per) {
        let wanted = if solid { "4, t x y z" } else { "3, t x y (or 4, t x y z)" };
        let count = values.len();
        return Err(wrong(last, format!("is value {count} of a line that needs them by {wanted}")));
    }
    if let Some(index) = ascend(per) {
        let before = numbers[index * per];
        return Err(wrong((index + 1) * per, format!("is earlier than the time before, {before}")));
    }
    if numbers[0] < 0.0 {
        return Err(wrong(0, "is a time before the beginning".into()));
    }
    let point = |values: &[f64]| Waypoint { at: values[0], x: values[1], y: values[2] };
    Ok(numbers.chunks(per).map(point).collect())
}

/// A movement as text that [`read`] gives it back from, to the last bit.
pub fn to_text(movement: &Movement) -> String {
    let mut text = String::new();
    for node in 0..movement.nodes() {
        for (index, Waypoint { at, x, y }) in movement.waypoints(node).iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(text, "{space}{at} {x} {y}").expect("a string takes everything");
        }
        text.push('\n');
    }
    text
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What BonnMotion writes above movements with a height.
const SOLID: &str = "#3D";
/// Largest file in bytes, also when decompressed. Arbitrary: ten thousand nodes for a day.
const LARGEST: u64 = 256 << 20;
/// Farthest coordinate and latest time. Arbitrary: thirty years, or the way to the moon and back.
const FARTHEST: f64 = 1e9;
/// Characters of a wrong value that are shown.
const LONGEST_SHOWN: usize = 40;
