//! One agent to a directory.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::StoreError;

/// Held for a life; the kernel lets go of it however that ends. The file stays, for whoever removed it could leave two
/// that each have locked one of that name.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "open as long as the lock is held")] File);

impl Lock {
    pub(super) fn take(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join("lock");
        let failed = |source| StoreError::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let (directory, holder) = (directory.to_owned(), holder(file));
                return Err(StoreError::Taken { directory, holder });
            }
            Err(error) => return Err(failed(error.into())),
        }
        say(&mut file).map_err(failed)?;
        Ok(Self(file))
    }
}

/// For whoever is refused.
fn say(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: File) -> Option<u32> {
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Bytes of a process number at most, and some.
const LONGEST: u64 = 16;
