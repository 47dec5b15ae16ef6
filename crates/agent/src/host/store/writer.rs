//! The thread that writes the file, so that whoever decides who leads never waits for a disk.
//!
//! It is given one state at a time and says what came of it. It has the directory's lock for as long as it lives: a write
//! that hangs must not come to an end over what a later life has written.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tokio::sync::mpsc;

use super::{Kept, lock::Lock, replace};

/// Writes the file of one life. Dropped, it ends once it has written what it was given.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    done: mpsc::UnboundedReceiver<io::Result<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    job: Mutex<Job>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Job {
    /// What is to be written next.
    next: Option<Kept>,
    closed: bool,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Job> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    pub(super) fn start(path: PathBuf, lock: Lock) -> io::Result<Self> {
        let (say, done) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        thread::Builder::new().name("disk".to_owned()).spawn(move || {
            while let Some(kept) = ours.next() {
                // Nobody listens any more once the node has ended; it is written all the same.
                let _ = say.send(replace(&path, &kept));
            }
            drop(lock);
            ours.lock().ended = true;
            ours.changed.notify_all();
        })?;
        Ok(Self { shared, done })
    }

    /// Begins to write this. Once that has ended, well or not, [`Self::done`] says so.
    pub(super) fn write(&self, kept: Kept) {
        self.shared.lock().next = Some(kept);
        self.shared.changed.notify_all();
    }

    /// What came of what was written last; waits for it. May be dropped at any time.
    pub(super) async fn done(&mut self) -> io::Result<()> {
        self.done.recv().await.unwrap_or_else(|| Err(io::Error::other("its writer has ended")))
    }
}

impl Shared {
    fn next(&self) -> Option<Kept> {
        let job = self.lock();
        let idle = |job: &mut Job| job.next.is_none() && !job.closed;
        let mut job = self.changed.wait_while(job, idle).unwrap_or_else(PoisonError::into_inner);
        job.next.take()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut job = self.shared.lock();
        job.closed = true;
        self.shared.changed.notify_all();
        // The process may end right after this. A disk that hangs must not keep it from that.
        let _ = self.shared.changed.wait_timeout_while(job, PATIENCE, |job| !job.ended);
    }
}

/// How long the last write is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
