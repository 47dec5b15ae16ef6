//! Keys on disk.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use zeroize::Zeroize;

use super::{Fingerprint, Key, KeyRing, KeyTextError};
use crate::trust;

impl KeyRing {
    /// Reads the text of a key file. `place` is what messages call it.
    ///
    /// # Errors
    ///
    /// [`KeyError`] naming the line; secrets are not repeated.
    pub fn parse(place: &Path, text: &str) -> Result<Self, KeyError> {
        let mut ring: Option<Self> = None;
        let mut marked = None;
        for (line, content) in (1..).zip(text.lines()) {
            let at = |source| KeyError::Line { place: place.to_owned(), line, source };
            let content = content.split('#').next().unwrap_or("").trim();
            if content.is_empty() {
                continue;
            }
            let (mark, key) = match content.split_once(char::is_whitespace) {
                Some(("send", key)) => (Some(true), key.trim_start()),
                Some(("accept", key)) => (Some(false), key.trim_start()),
                Some(_) => return Err(at(KeyLineError::UnknownMark)),
                None => (None, content),
            };
            let key: Key = key.parse().map_err(|error| at(KeyLineError::Text(error)))?;
            match &mut ring {
                None => ring = Some(Self::new(key)),
                Some(ring) => {
                    ring.add(key).map_err(|error| at(KeyLineError::Ring(Box::new(error))))?;
                }
            }
            let index = ring.as_ref().map_or(0, |ring| ring.keys.len() - 1);
            match (mark, marked) {
                (Some(true), Some((first, _))) => {
                    return Err(at(KeyLineError::SecondSend { first }));
                }
                (Some(true), None) => marked = Some((line, index)),
                _ => {}
            }
        }
        let mut ring = ring.ok_or_else(|| KeyError::Empty(place.to_owned()))?;
        ring.sending = match (marked, ring.keys.len()) {
            (Some((_, index)), _) => index,
            (None, 1) => 0,
            (None, keys) => return Err(KeyError::NoneSent { place: place.to_owned(), keys }),
        };
        Ok(ring)
    }

    /// Reads a key file.
    ///
    /// # Errors
    ///
    /// [`KeyError`]: it is not there, others may read it, or a line is wrong.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::Read { place: path.to_owned(), source };
        let file = fs::File::open(path).map_err(failed)?;
        // Asked of the open file, so that it cannot be exchanged in between.
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(KeyError::NotAFile(path.to_owned()));
        }
        let mut text = String::new();
        (&file).take(MOST_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
        let ring = if text.len() as u64 > MOST_BYTES {
            Err(KeyError::TooLong(path.to_owned()))
        } else {
            Self::parse(path, &text)
        };
        text.zeroize();
        // Only of a key file: whoever named another file is not to change that one's mode.
        let ring = ring?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = meta.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(KeyError::Exposed { place: path.to_owned(), mode });
            }
            // Whose it is could have chosen it, and reads it whatever its mode.
            trust::owned(path, &meta)?;
        }
        Ok(ring)
    }

    /// The text of a key file.
    pub fn to_text(&self) -> String {
        let mut text = String::from("# bellwether cluster keys: keep this file private\n");
        for (index, key) in self.keys.iter().enumerate() {
            text += if index == self.sending { "send   " } else { "accept " };
            text += &key.to_text();
            text.push('\n');
        }
        text
    }

    /// Writes a key file that only its owner can read. An existing one is replaced in one step: whoever reads
    /// at the same time sees all of the old or all of the new, and so does the next start after a power cut.
    ///
    /// # Errors
    ///
    /// [`KeyError::Write`]; an existing file is as it was.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".new{}", std::process::id()));
        let draft = path.with_file_name(name);
        let mut text = self.to_text();
        let written = write_private(&draft, &text)
            .and_then(|()| fs::rename(&draft, path))
            .and_then(|()| sync_folder(path));
        text.zeroize();
        written.map_err(|source| {
            // What is left of a failed attempt holds secrets; that it was never made is no second failure.
            let _ = fs::remove_file(&draft);
            KeyError::Write { place: path.to_owned(), source }
        })
    }

    /// Makes a key file with one new key.
    ///
    /// # Errors
    ///
    /// [`KeyError::Exists`] if there is one: a cluster's only key is not overwritten by mistake.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let ring = Self::generate()?;
        match write_private(path, &ring.to_text()) {
            Ok(()) => Ok(ring),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(KeyError::Exists(path.to_owned()))
            }
            Err(source) => Err(KeyError::Write { place: path.to_owned(), source }),
        }
    }
}

/// Why there is no key. Messages name the place and the remedy, never the secret.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The operating system gave no random bytes.
    #[error(
        "no random bytes from the operating system: {0}; a key made without them would be guessable"
    )]
    NoEntropy(String),
    /// The file cannot be read.
    #[error("key file {}: {source}; `bellwether keygen` makes one", place.display())]
    Read {
        /// The path of the file.
        place: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a folder, a device or a pipe.
    #[error("key file {}: is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Somebody else on this machine may read or write it.
    #[error(
        "key file {}: other users may read or change it (mode {mode:03o}); do `chmod 600 {}`",
        place.display(), place.display()
    )]
    Exposed {
        /// The path of the file.
        place: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is somebody else's.
    #[error("key file: {0}")]
    Distrusted(#[from] trust::Distrust),
    /// There is no key in it.
    #[error("key file {}: holds no key; `bellwether keygen` makes one", .0.display())]
    Empty(PathBuf),
    /// It is far longer than a key file is.
    #[error("key file {}: longer than {MOST_BYTES} bytes, which no key file is", .0.display())]
    TooLong(PathBuf),
    /// It does not say which of its keys to send under.
    #[error("key file {}: {keys} keys, none marked; write `send` before one, `accept` before the others", place.display())]
    NoneSent {
        /// The path of the file.
        place: PathBuf,
        /// How many there are.
        keys: usize,
    },
    /// A line is wrong.
    #[error("key file {}:{line}: {source}", place.display())]
    Line {
        /// The path of the file.
        place: PathBuf,
        /// The line, from one.
        line: usize,
        /// What is wrong there.
        source: KeyLineError,
    },
    /// It could not be written.
    #[error("key file {}: cannot be written: {source}", place.display())]
    Write {
        /// The path of the file.
        place: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There already is one.
    #[error("key file {}: exists and is left alone; use another name, or rotate its key with `bellwether keys`", .0.display())]
    Exists(PathBuf),
    /// The ring is full.
    #[error("a ring holds at most {} keys; retire the old ones first", KeyRing::MOST)]
    TooMany,
    /// The key is there already.
    #[error("key {0} is on the ring already")]
    Twice(Fingerprint),
}

/// Why a line of a key file is wrong.
#[derive(Debug, thiserror::Error)]
pub enum KeyLineError {
    /// The text behind the mark is no key.
    #[error(transparent)]
    Text(KeyTextError),
    /// The word before the key is neither mark.
    #[error("a key stands behind `send`, behind `accept`, or alone on its line")]
    UnknownMark,
    /// Two keys are to be sent.
    #[error("a second `send`, the first is on line {first}; mark one of them `accept`")]
    SecondSend {
        /// Where the first one is.
        first: usize,
    },
    /// The key does not go with those above.
    #[error(transparent)]
    Ring(Box<KeyError>),
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Makes the new name last; elsewhere than on Unix a folder cannot be opened for that.
fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Arbitrary; a full ring takes 400.
const MOST_BYTES: u64 = 16 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::net::key::key;

    fn place() -> &'static Path {
        Path::new("cluster.key")
    }

    fn message(text: &str) -> String {
        KeyRing::parse(place(), text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_place_and_without_the_secret() {
        let good = key(1).to_text();
        let other = key(2).to_text();
        for (text, expected) in [
            (String::new(), "key file cluster.key: holds no key; `bellwether keygen` makes one"),
            (
                "# nothing\n\n".into(),
                "key file cluster.key: holds no key; `bellwether keygen` makes one",
            ),
            ("secret".into(), "key file cluster.key:1: a key starts with \"bw1-\""),
            (
                format!("\n{}", &good[..40]),
                "key file cluster.key:2: 4 groups of digits, a key has 8",
            ),
            (good[..90].into(), "key file cluster.key:1: group 8 has 9 digits, each has 10"),
            (
                format!("use {good}"),
                "key file cluster.key:1: a key stands behind `send`, behind `accept`, or alone on its line",
            ),
            (
                format!("send {good}\nsend {other}"),
                "key file cluster.key:2: a second `send`, the first is on line 1; mark one of them `accept`",
            ),
            (
                format!("{good}\n{other}"),
                "key file cluster.key: 2 keys, none marked; write `send` before one, `accept` before the others",
            ),
        ] {
            assert_eq!(message(&text), expected);
        }
        let twice = message(&format!("send {good}\naccept {good}"));
        assert!(twice.starts_with("key file cluster.key:2: key ") && twice.ends_with("already"));
        assert!(!twice.contains(&good[4..14]));
        let many: String = (0..5).map(|seed| format!("accept {}\n", key(seed).to_text())).collect();
        assert_eq!(
            message(&many),
            "key file cluster.key:5: a ring holds at most 4 keys; retire the old ones first"
        );
        assert!(!format!("{:?}", key(1)).contains("1f20"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_others_may_read_is_refused_with_the_remedy() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.key");
        let ring = KeyRing::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(KeyRing::read(&path).unwrap(), ring);
        assert!(matches!(KeyRing::create(&path), Err(KeyError::Exists(_))));
        for mode in [0o640, 0o604, 0o620, 0o602, 0o601, 0o777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let message = KeyRing::read(&path).unwrap_err().to_string();
            assert!(
                message.contains(&format!("may read or change it (mode {mode:03o})")),
                "{message}"
            );
            assert!(message.ends_with(&format!("do `chmod 600 {}`", path.display())), "{message}");
        }
        for mode in [0o600, 0o400] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(KeyRing::read(&path).unwrap(), ring);
        }
    }

    #[test]
    fn a_rotated_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.key");
        let mut ring = KeyRing::create(&path).unwrap();
        ring.add(Key::generate().unwrap()).unwrap();
        ring.write(&path).unwrap();
        assert_eq!(KeyRing::read(&path).unwrap(), ring);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let nowhere = folder.path().join("no/such/folder.key");
        assert!(matches!(ring.write(&nowhere), Err(KeyError::Write { .. })));
        assert!(matches!(KeyRing::read(&nowhere), Err(KeyError::Read { .. })));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            let message = KeyRing::read(&path).unwrap_err().to_string();
            assert!(message.contains("belongs to user 65534, need root"), "{message}");
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        assert!(matches!(KeyRing::read(folder.path()), Err(KeyError::NotAFile(_))));
        fs::write(&path, "#".repeat(20_000)).unwrap();
        assert!(matches!(KeyRing::read(&path), Err(KeyError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,120}") {
            let _ = KeyRing::parse(place(), &text);
        }
    }
}
