//! Reading a recording, up to its last whole entry.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use bellwether_proto::{
    Time,
    wire::{DecodeError, Reader},
};

use super::{
    digest::Digest,
    format::{self, Cause, End, Entry, Header, LENGTH, LONGEST, MAGIC, Tail, VERSION},
};

/// Why there is no recording, or why it cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file that was to be read or written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else is where the recording is to be.
    #[error(
        "{}: {what} is there, and no recording; it is left alone, choose another file",
        path.display()
    )]
    Occupied {
        /// The file that was to be written.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// It does not begin like one.
    #[error("{}: byte 0: this is no recording of an agent", path.display())]
    NotARecording {
        /// The file that was read.
        path: PathBuf,
    },
    /// Of another format.
    #[error(
        "{}: byte {}: version {found} of the format; this program reads version {VERSION}",
        path.display(),
        MAGIC.len()
    )]
    Version {
        /// The file that was read.
        path: PathBuf,
        /// The version that the file says it has.
        found: u64,
    },
    /// It is not as it was written, or as nobody writes it.
    #[error("{}: byte {at}: {what}: {problem}", path.display())]
    Damaged {
        /// The file that was read.
        path: PathBuf,
        /// The first byte of what is damaged.
        at: u64,
        /// The part of the file that begins there.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There can be no node of these settings in this build.
    #[error("{}: the settings in its header: {problem}", path.display())]
    Settings {
        /// The file that was read.
        path: PathBuf,
        /// What is wrong with them.
        problem: String,
    },
}

/// A recording that is being read: its entries, in order. Nothing more comes after an error.
#[derive(Debug)]
pub struct Recording<R> {
    path: PathBuf,
    source: R,
    header: Header,
    /// Bytes read, and entries.
    at: u64,
    entries: u64,
    last: Time,
    end: Option<End>,
}

enum Framed {
    Body(Vec<u8>),
    End(End),
}

/// What is wrong with a frame.
enum Fault {
    Io(io::Error),
    Damaged(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Recording<BufReader<File>> {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    ///
    /// [`RecordError`].
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let failed = |source| RecordError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(RecordError::NotARecording { path: path.to_owned() });
        }
        Self::read(path, BufReader::new(file))
    }
}

impl<R: Read> Recording<R> {
    /// Reads the header; `path` is for errors.
    ///
    /// # Errors
    ///
    /// [`RecordError`].
    pub fn read(path: &Path, mut source: R) -> Result<Self, RecordError> {
        let path = path.to_owned();
        let mut magic = Vec::new();
        let taken = source.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic);
        match taken {
            Err(source) => return Err(RecordError::Io { path, source }),
            Ok(_) if magic != *MAGIC => return Err(RecordError::NotARecording { path }),
            Ok(_) => {}
        }
        let mut at = MAGIC.len() as u64;
        match length(&mut source, &mut at) {
            Ok(Ok(VERSION)) => {}
            Ok(Ok(found)) => return Err(RecordError::Version { path, found }),
            Ok(Err(_)) => return Err(half(path, at)),
            Err(Fault::Io(source)) => return Err(RecordError::Io { path, source }),
            Err(Fault::Damaged(problem)) => {
                return Err(RecordError::Damaged { path, at, what: "version".into(), problem });
            }
        }
        let start = at;
        let damaged = |path, problem| RecordError::Damaged {
            path,
            at: start,
            what: "header".to_owned(),
            problem,
        };
        let body = match frame(&mut source, &mut at) {
            Ok(Framed::Body(body)) => body,
            Ok(Framed::End(_)) => return Err(half(path, at)),
            Err(Fault::Io(source)) => return Err(RecordError::Io { path, source }),
            Err(Fault::Damaged(problem)) => return Err(damaged(path, problem)),
        };
        let mut reader = Reader::new(&body);
        let header = Header::decode(&mut reader).and_then(|header| {
            reader.finish()?;
            Ok(header)
        });
        let header = header.map_err(|error| damaged(path.clone(), error.to_string()))?;
        Ok(Self { path, source, header, at, entries: 0, last: Time::ZERO, end: None })
    }

    /// What the node was made of.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The file it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes have been read.
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// How it ends, once everything has been read.
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    fn advance(&mut self) -> Result<Option<Entry>, RecordError> {
        let start = self.at;
        let body = match frame(&mut self.source, &mut self.at) {
            Ok(Framed::Body(body)) => body,
            Ok(Framed::End(end)) => {
                self.end = Some(end);
                return Ok(None);
            }
            Err(Fault::Io(source)) => {
                return Err(RecordError::Io { path: self.path.clone(), source });
            }
            Err(Fault::Damaged(problem)) => return Err(self.damaged(start, problem)),
        };
        let undecodable = |error: DecodeError| self.damaged(start, error.to_string());
        match format::tail(&body, self.last).map_err(undecodable)? {
            Tail::Entry(entry) => {
                self.last = entry.now;
                self.entries += 1;
                Ok(Some(entry))
            }
            Tail::End(cause) => {
                let mut more = [0];
                let behind = self.source.read(&mut more);
                match behind {
                    Ok(0) => {}
                    Ok(_) => return Err(self.damaged(self.at, "bytes behind the end".into())),
                    Err(source) => {
                        return Err(RecordError::Io { path: self.path.clone(), source });
                    }
                }
                self.end = Some(End::Marked(cause));
                Ok(None)
            }
        }
    }

    fn damaged(&self, at: u64, problem: String) -> RecordError {
        let what = format!("input {}", self.entries + 1);
        RecordError::Damaged { path: self.path.clone(), at, what, problem }
    }
}

impl<R: Read> Iterator for Recording<R> {
    type Item = Result<Entry, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.end.is_some() {
            return None;
        }
        let next = self.advance();
        if next.is_err() {
            // Whoever goes on all the same finds nothing more.
            self.end = Some(End::Open);
        }
        next.transpose()
    }
}

/// A file that ends before its first entry.
fn half(path: PathBuf, at: u64) -> RecordError {
    let problem = "the file ends in it; there is nothing to replay".to_owned();
    RecordError::Damaged { path, at, what: "header".to_owned(), problem }
}

/// A short number; or how many bytes of it there are before the end.
fn length(source: &mut impl Read, at: &mut u64) -> Result<Result<u64, u64>, Fault> {
    let mut bytes = [0; LENGTH];
    for count in 0..LENGTH {
        if !fill(source, &mut bytes[count..=count])? {
            return Ok(Err(count as u64));
        }
        *at += 1;
        if bytes[count] & 0x80 == 0 {
            let read = Reader::new(&bytes[..=count]).varint("length");
            return read.map(Ok).map_err(|error| Fault::Damaged(error.to_string()));
        }
    }
    Err(Fault::Damaged(format!("length: {bytes:02x?} is above {LONGEST}")))
}

/// Whether there was as much.
fn fill(source: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match source.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn frame(source: &mut impl Read, at: &mut u64) -> Result<Framed, Fault> {
    let start = *at;
    let length = match length(source, at)? {
        Ok(length) => length,
        Err(0) => return Ok(Framed::End(End::Open)),
        Err(bytes) => return Ok(Framed::End(End::Cut(bytes))),
    };
    if length > LONGEST {
        return Err(Fault::Damaged(format!("length {length}: at most {LONGEST}")));
    }
    let mut body = Vec::new();
    let got = source.by_ref().take(length + 4).read_to_end(&mut body)? as u64;
    *at += got;
    if got < length + 4 {
        return Ok(Framed::End(End::Cut(*at - start)));
    }
    let written = body.split_off(length as usize);
    let written = u32::from_le_bytes(written.try_into().unwrap_or_default());
    let found = Digest::checksum(&body);
    if length > 0 && written == found {
        return Ok(Framed::Body(body));
    }
    // After a power cut a file may be longer than what was written, and the rest of it is zeros.
    if written == 0 && only_zeros(source, at)? {
        return Ok(Framed::End(End::Cut(*at - start)));
    }
    let problem = format!("checksum {written:08x}, but the bytes have {found:08x}: it is damaged");
    Err(Fault::Damaged(problem))
}

fn only_zeros(source: &mut impl Read, at: &mut u64) -> io::Result<bool> {
    let mut bytes = [0; 4096];
    loop {
        match source.read(&mut bytes)? {
            0 => return Ok(true),
            count => {
                *at += count as u64;
                if bytes[..count].iter().any(|&byte| byte != 0) {
                    return Ok(false);
                }
            }
        }
    }
}

impl End {
    /// Whether the last input has an outcome that nobody recorded.
    pub const fn is_unfinished(self) -> bool {
        matches!(self, Self::Marked(Cause::Unfinished))
    }
}
