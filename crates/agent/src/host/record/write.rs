//! Writing a recording beside a running node.
//!
//! ```text
//! node's thread   given, effects, outcome --> buffer, behind a lock that is held for a copy
//! writer's thread once a second, or sooner if much waits: takes the buffer, writes it
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    mem,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use bellwether_proto::{EffectOf, InputOf, Rejected, Time, node::Node};

use super::{
    digest::Digest,
    format::{self, Cause, Header, MAGIC, Outcome},
    read::RecordError,
};

/// How many recordings of past lives are kept.
pub const KEPT: u32 = 4;

/// A recording under way. Dropped, it is ended.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    limit: u64,
    /// Bytes handed over.
    written: u64,
    last: Time,
    digest: Digest,
    effects: u64,
    /// The input under way, without what comes of it.
    entry: Vec<u8>,
    ended: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    buffer: Vec<u8>,
    closed: bool,
    /// Whether the writer has ended, and why if it had to.
    done: bool,
    failed: Option<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    /// Begins a recording in this file, of at most so many bytes. What is there is moved aside.
    ///
    /// # Errors
    ///
    /// [`RecordError`]: the file system says no, or something else is there.
    pub fn create(path: &Path, limit: u64, header: &Header) -> Result<Self, RecordError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| RecordError::Io { path, source }
        };
        rotate(path)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let mut file = file.map_err(failed(path))?;
        let beginning = format::beginning(header);
        file.write_all(&beginning).map_err(failed(path))?;
        Self::start(file, limit, beginning.len() as u64).map_err(failed(path))
    }

    pub(super) fn start(
        file: impl io::Write + Send + 'static,
        limit: u64,
        written: u64,
    ) -> io::Result<Self> {
        let state = Mutex::new(State::default());
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let ours = Arc::clone(&shared);
        thread::Builder::new().name("record".to_owned()).spawn(move || write(file, &ours))?;
        Ok(Self {
            shared,
            limit,
            written,
            last: Time::ZERO,
            digest: Digest::new(),
            effects: 0,
            entry: Vec::new(),
            ended: false,
        })
    }

    /// The node is about to be given this.
    pub fn given(&mut self, now: Time, input: &InputOf<'_, Node>) {
        if !self.ended {
            self.effects = 0;
            self.entry.clear();
            format::put_given(&mut self.entry, self.last, now, input);
            self.last = self.last.max(now);
        }
    }

    /// This came of it.
    pub fn effect(&mut self, effect: &EffectOf<Node>) {
        if !self.ended {
            self.effects += 1;
            self.digest.effect(effect);
        }
    }

    /// And that was all. Says why, if the recording has ended by itself; nothing more is recorded then.
    pub fn outcome(
        &mut self,
        node: &Node,
        now: Time,
        result: Result<(), &Rejected>,
    ) -> Option<String> {
        if self.ended {
            return None;
        }
        self.digest.end(node, now, result.err());
        let outcome = Outcome::new(self.effects, result, self.digest);
        let mut entry = mem::take(&mut self.entry);
        format::put_outcome(&mut entry, Some(outcome));
        let ended = self.push(&entry);
        entry.clear();
        self.entry = entry;
        ended
    }

    fn push(&mut self, entry: &[u8]) -> Option<String> {
        let mut state = self.shared.lock();
        if state.done {
            self.ended = true;
            return Some(state.failed.take().unwrap_or_else(|| "its writer has ended".to_owned()));
        }
        let before = state.buffer.len();
        format::put_frame(&mut state.buffer, entry);
        self.written += (state.buffer.len() - before) as u64;
        let (cause, why) = if self.written + END > self.limit {
            (Cause::Limit, format!("it has reached its limit of {} bytes", self.limit))
        } else if before > MOST {
            (Cause::Behind, "the disk cannot keep up".to_owned())
        } else {
            if before < SOON && state.buffer.len() >= SOON {
                self.shared.changed.notify_all();
            }
            return None;
        };
        // The one that does not fit any more.
        state.buffer.truncate(before);
        drop(state);
        self.close(cause);
        Some(why)
    }

    fn close(&mut self, cause: Cause) {
        self.ended = true;
        let mut entry = Vec::new();
        format::put_end(&mut entry, cause);
        let mut state = self.shared.lock();
        format::put_frame(&mut state.buffer, &entry);
        state.closed = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.ended {
            // Whatever is under way has not come to an end: the node has panicked.
            let unfinished = !self.entry.is_empty();
            if unfinished {
                let mut entry = mem::take(&mut self.entry);
                format::put_outcome(&mut entry, None);
                let _: Option<String> = self.push(&entry);
            }
            if !self.ended {
                self.close(if unfinished { Cause::Unfinished } else { Cause::Stopped });
            }
        }
        // The process may end right after this. A disk that hangs must not keep it from that.
        let state = self.shared.lock();
        let _ = self.shared.changed.wait_timeout_while(state, PATIENCE, |state| !state.done);
    }
}

fn write(mut file: impl io::Write, shared: &Shared) {
    let mut taken = Vec::new();
    loop {
        let state = shared.lock();
        let idle = |state: &mut State| !state.closed && state.buffer.len() < SOON;
        let woken = shared.changed.wait_timeout_while(state, EVERY, idle);
        let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        mem::swap(&mut state.buffer, &mut taken);
        let closed = state.closed;
        drop(state);
        let written = file.write_all(&taken).and_then(|()| file.flush());
        taken.clear();
        if closed || written.is_err() {
            let mut state = shared.lock();
            state.done = true;
            state.failed = written.err().map(|error| error.to_string());
            shared.changed.notify_all();
            return;
        }
    }
}

/// Moves the recordings of past lives on by one; the oldest is lost. Nothing that is no recording is touched.
fn rotate(path: &Path) -> Result<(), RecordError> {
    let numbered = |number: u32| match number {
        0 => path.to_owned(),
        number => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        }
    };
    let mut there = Vec::new();
    for number in 0..=KEPT {
        let path = numbered(number);
        match is_recording(&path)? {
            true => there.push((number, path)),
            // There is room here for those before it.
            false => break,
        }
    }
    for (number, path) in there.into_iter().rev().filter(|(number, _)| *number < KEPT) {
        fs::rename(&path, numbered(number + 1))
            .map_err(|source| RecordError::Io { path, source })?;
    }
    Ok(())
}

/// Whether something is there; an error if it is no recording.
fn is_recording(path: &Path) -> Result<bool, RecordError> {
    let failed = |source| RecordError::Io { path: path.to_owned(), source };
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    let occupied = |what| Err(RecordError::Occupied { path: path.to_owned(), what });
    if !found.is_file() {
        return occupied(if found.is_dir() { "a directory" } else { "no ordinary file" });
    }
    let mut magic = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(failed)?;
    // One that ends in its first bytes may be of a life that ended there.
    match MAGIC.starts_with(&magic) {
        true => Ok(true),
        false => occupied("another file"),
    }
}

/// How often what waits is written, if little does.
const EVERY: Duration = Duration::from_secs(1);
/// With so many bytes it is written at once.
const SOON: usize = 64 << 10;
/// With so many the writer is behind: minutes of a busy cluster.
const MOST: usize = 8 << 20;
/// Of the frame that marks the end.
const END: u64 = 1 + 3 + 4;
/// How long the end of a recording is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
