//! One agent to a directory.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    thread,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    process::{Pid, test_kill_process},
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

/// Who has it. Between taking it and saying so passes a moment, in which the file is empty or names the last one.
fn holder(mut file: File) -> Option<u32> {
    let mut named = None;
    for _ in 0..LOOKS {
        let mut text = String::new();
        let read = file.rewind().and_then(|()| (&file).take(LONGEST).read_to_string(&mut text));
        named = read.ok().and_then(|_| text.trim().parse().ok());
        if named.is_some_and(is_there) {
            break;
        }
        thread::sleep(PAUSE);
    }
    // It may be one that is not to be seen from here, as in another container.
    named
}

fn is_there(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// Bytes of a process number at most, and some.
const LONGEST: u64 = 16;
/// Half a second, for two that are started at once.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// As between a start and the moment in which it has said who it is.
    #[test]
    fn whoever_is_refused_waits_for_the_holder_to_say_who_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let _lock = Lock::take(folder.path()).unwrap();
        let path = folder.path().join("lock");
        // Of a process that has ended; no machine here counts so far.
        for last in ["", "4194999\n"] {
            std::fs::write(&path, last).unwrap();
            let later = thread::spawn({
                let path = path.clone();
                move || {
                    thread::sleep(PAUSE * 5);
                    std::fs::write(path, format!("{}\n", std::process::id())).unwrap();
                }
            });
            let Err(StoreError::Taken { holder, .. }) = Lock::take(folder.path()) else {
                panic!("it is taken")
            };
            later.join().unwrap();
            assert_eq!(holder, Some(std::process::id()), "after {last:?}");
        }
    }
}
