//! Reading files that somebody else has written.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use crate::{
    error::{Place, SettingsError, quote},
    field::Result,
};

/// The text of a file of at most 1 MiB, without a byte order mark. `wanted` says what it should be.
///
/// # Errors
///
/// It cannot be read, or is no text.
pub fn read_text(path: &Path, wanted: &str) -> Result<String> {
    let failed = |problem: String| {
        let place = Place::File { file: quote(&path.display().to_string()) };
        SettingsError::new(place, "", problem).with_allowed(wanted)
    };
    let unreadable = |error: io::Error| {
        let problem = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "may not be read".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        failed(problem).caused_by(error)
    };
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(failed("is a directory".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(failed("is larger than 1 MiB".to_owned()).with_allowed("at most 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to();
        failed(format!("is not UTF-8 text: byte {byte} does not fit"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

/// Arbitrary: far above any real settings, and an edge list of 100,000 links fits.
const LARGEST: u64 = 1 << 20;
