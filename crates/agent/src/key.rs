//! The cluster's keys: how they look, where they are kept, how they are replaced.
//!
//! # Text
//!
//! `bw1-` and eight groups of ten hexadecimal digits: four bytes of the key and a checksum of the group and
//! its place. A mistyped digit, two swapped ones or two swapped groups are always noticed, and the message says
//! in which group to look without repeating the secret.
//!
//! # File
//!
//! One key a line, oldest first; `#` starts a comment. The key to send under is marked; a single key needs no
//! mark.
//!
//! ```text
//! # bellwether cluster keys: keep this file private
//! send   bw1-…
//! accept bw1-…
//! ```
//!
//! # Rotation
//!
//! Three stages, each visible as [`Stage`], none of which needs the cluster to stop:
//!
//! 1. [`KeyRing::add`] the new key everywhere: both are accepted, the old one is sent.
//! 2. [`KeyRing::send_newest`] everywhere: both are accepted, the new one is sent.
//! 3. [`KeyRing::retire`] once nobody sends under the old one: it is refused.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

use zeroize::Zeroize;

/// A cluster key. Whoever has it is a member.
#[derive(Clone, Eq)]
pub struct Key([u8; Self::LEN]);

impl Key {
    /// Its length in bytes.
    pub const LEN: usize = 32;

    /// A new key from the operating system's generator.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoEntropy`]: there is no second-best source to fall back to.
    pub fn generate() -> Result<Self, KeyError> {
        let mut key = Self([0; Self::LEN]);
        getrandom::fill(&mut key.0).map_err(|error| KeyError::NoEntropy(error.to_string()))?;
        Ok(key)
    }

    /// The key with these bytes, which must be random ones.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn secret(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// What may be shown of it: tells keys apart and says nothing about them.
    pub fn fingerprint(&self) -> Fingerprint {
        let hash = blake3::derive_key("bellwether 2026-11 key fingerprint", &self.0);
        Fingerprint([hash[0], hash[1], hash[2], hash[3]])
    }

    /// The secret, as it is written to a key file. For nothing else: not for logs, not for arguments.
    pub fn to_text(&self) -> String {
        let mut text = String::from(PREFIX);
        for (group, bytes) in self.0.chunks(GROUP_BYTES).enumerate() {
            if group > 0 {
                text.push('-');
            }
            for byte in bytes.iter().copied().chain([checksum(group, bytes)]) {
                text.push(char::from(DIGITS[usize::from(byte >> 4)]));
                text.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
        text
    }
}

impl FromStr for Key {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        let digits = text.strip_prefix(PREFIX).ok_or(KeyTextError::NoPrefix)?;
        let found = digits.split('-').count();
        if found != GROUPS {
            return Err(KeyTextError::Groups { found });
        }
        let mut key = Self([0; Self::LEN]);
        for (group, (text, bytes)) in
            digits.split('-').zip(key.0.chunks_mut(GROUP_BYTES)).enumerate()
        {
            let number = group + 1;
            let found = text.chars().count();
            if found != GROUP_DIGITS {
                return Err(KeyTextError::GroupLength { group: number, found });
            }
            let mut nibbles = [0; GROUP_DIGITS];
            for (at, (digit, nibble)) in text.chars().zip(&mut nibbles).enumerate() {
                *nibble = digit
                    .to_digit(16)
                    .ok_or(KeyTextError::NotADigit { group: number, digit: at + 1 })?
                    as u8;
            }
            let mut pairs = nibbles.chunks(2).map(|pair| pair[0] << 4 | pair[1]);
            for (byte, read) in bytes.iter_mut().zip(&mut pairs) {
                *byte = read;
            }
            if pairs.next() != Some(checksum(group, bytes)) {
                return Err(KeyTextError::Mistyped { group: number });
            }
        }
        Ok(key)
    }
}

/// In time that does not depend on where they differ.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        blake3::Hash::from_bytes(self.0) == blake3::Hash::from_bytes(other.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.fingerprint())
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Four bytes of a hash of a key, shown as eight hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fingerprint([u8; 4]);

impl Fingerprint {
    /// The one byte of it that travels in every packet.
    pub const fn hint(self) -> u8 {
        self.0[0]
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// How far a rotation is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// There is one key.
    Settled,
    /// A newer key is accepted, an older one is sent.
    AcceptBoth,
    /// The newest key is sent, older ones are still accepted.
    SendNew,
}

impl Stage {
    /// Of a ring of so many keys, of which this one is sent.
    pub(crate) fn of(keys: usize, sending: usize) -> Self {
        match (keys, sending + 1) {
            (1, _) => Self::Settled,
            (keys, sending) if sending < keys => Self::AcceptBoth,
            _ => Self::SendNew,
        }
    }

    /// As it is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::AcceptBoth => "accept-both",
            Self::SendNew => "send-new",
        }
    }
}

/// The keys a node accepts, and the one it sends under.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRing {
    /// Oldest first, never empty, no two alike.
    keys: Vec<Key>,
    sending: usize,
}

impl KeyRing {
    /// How many keys a ring holds at most.
    pub const MOST: usize = 4;

    /// A ring of one.
    pub fn new(key: Key) -> Self {
        Self { keys: vec![key], sending: 0 }
    }

    /// A ring with a new key.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoEntropy`].
    pub fn generate() -> Result<Self, KeyError> {
        Key::generate().map(Self::new)
    }

    /// Stage one: accepts one more key.
    ///
    /// # Errors
    ///
    /// [`KeyError::TooMany`] or [`KeyError::Twice`]; the ring is as it was.
    pub fn add(&mut self, key: Key) -> Result<(), KeyError> {
        // By what tells keys apart everywhere else; two that differ only in secret are not to be had by chance.
        let fingerprint = key.fingerprint();
        if self.keys.iter().any(|known| known.fingerprint() == fingerprint) {
            return Err(KeyError::Twice(fingerprint));
        }
        if self.keys.len() >= Self::MOST {
            return Err(KeyError::TooMany);
        }
        self.keys.push(key);
        Ok(())
    }

    /// Stage two: sends under the newest key from now on.
    pub fn send_newest(&mut self) {
        self.sending = self.keys.len() - 1;
    }

    /// Stage three: accepts the key that is sent and newer ones only. Returns what is refused from now on.
    pub fn retire(&mut self) -> Vec<Fingerprint> {
        let retired = self.keys.drain(..self.sending).map(|key| key.fingerprint()).collect();
        self.sending = 0;
        retired
    }

    /// How far a rotation is.
    pub fn stage(&self) -> Stage {
        Stage::of(self.keys.len(), self.sending)
    }

    /// The keys, oldest first.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The key to send under.
    pub fn sending(&self) -> &Key {
        &self.keys[self.sending]
    }

    /// Which of [`keys`](Self::keys) is sent.
    pub(crate) const fn sending_index(&self) -> usize {
        self.sending
    }

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
            crate::trust::owned(path, &meta)?;
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
        /// The file.
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
        /// The file.
        place: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is somebody else's.
    #[error("key file: {0}")]
    Distrusted(#[from] crate::trust::Distrust),
    /// There is no key in it.
    #[error("key file {}: holds no key; `bellwether keygen` makes one", .0.display())]
    Empty(PathBuf),
    /// It is far longer than a key file is.
    #[error("key file {}: longer than {MOST_BYTES} bytes, which no key file is", .0.display())]
    TooLong(PathBuf),
    /// It does not say which of its keys to send under.
    #[error("key file {}: {keys} keys, none marked; write `send` before one, `accept` before the others", place.display())]
    NoneSent {
        /// The file.
        place: PathBuf,
        /// How many there are.
        keys: usize,
    },
    /// A line is wrong.
    #[error("key file {}:{line}: {source}", place.display())]
    Line {
        /// The file.
        place: PathBuf,
        /// The line, from one.
        line: usize,
        /// What is wrong there.
        source: KeyLineError,
    },
    /// It could not be written.
    #[error("key file {}: cannot be written: {source}", place.display())]
    Write {
        /// The file.
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

/// Why a text is no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyTextError {
    /// It starts otherwise.
    #[error("a key starts with {PREFIX:?}")]
    NoPrefix,
    /// It is cut off, or two were joined.
    #[error("{found} groups of digits, a key has {GROUPS}")]
    Groups {
        /// How many there are.
        found: usize,
    },
    /// Digits are missing from a group, or too many.
    #[error("group {group} has {found} digits, each has {GROUP_DIGITS}")]
    GroupLength {
        /// Which, from one.
        group: usize,
        /// How many digits it has.
        found: usize,
    },
    /// A character that is no digit.
    #[error("group {group}, digit {digit}: not one of 0-9 and a-f")]
    NotADigit {
        /// Which, from one.
        group: usize,
        /// Which, from one.
        digit: usize,
    },
    /// The checksum of a group is wrong.
    #[error("group {group} is mistyped: its last two digits do not match the others")]
    Mistyped {
        /// Which, from one.
        group: usize,
    },
}

/// CRC-8 with the polynomial of ATM headers: every error of up to eight neighbouring bits is noticed. The start
/// value tells the groups apart.
fn checksum(group: usize, bytes: &[u8]) -> u8 {
    bytes.iter().fold(group as u8 + 1, |crc, byte| {
        (0..8).fold(crc ^ byte, |crc, _| crc << 1 ^ if crc & 0x80 == 0 { 0 } else { 7 })
    })
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

const PREFIX: &str = "bw1-";
const DIGITS: [u8; 16] = *b"0123456789abcdef";
const GROUP_BYTES: usize = 4;
const GROUPS: usize = Key::LEN / GROUP_BYTES;
const GROUP_DIGITS: usize = 2 * (GROUP_BYTES + 1);
/// Arbitrary; a full ring takes 400.
const MOST_BYTES: u64 = 16 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(seed: u8) -> Key {
        Key::from_bytes(std::array::from_fn(|at| seed.wrapping_mul(31).wrapping_add(at as u8)))
    }

    fn place() -> &'static Path {
        Path::new("cluster.key")
    }

    fn message(text: &str) -> String {
        KeyRing::parse(place(), text).unwrap_err().to_string()
    }

    #[test]
    fn a_key_reads_back() {
        let text = key(1).to_text();
        assert_eq!(text.len(), 91);
        assert!(text.starts_with("bw1-1f202122"), "{text}");
        assert_eq!(text.parse(), Ok(key(1)));
        assert_eq!(text.to_uppercase().replacen("BW1", "bw1", 1).parse(), Ok(key(1)));
        assert_ne!(Key::generate().unwrap(), Key::generate().unwrap());
    }

    #[test]
    fn every_mistyped_digit_and_every_swap_is_named_by_its_group() {
        let text = key(9).to_text();
        let digits: Vec<usize> =
            text.char_indices().skip(4).filter(|(_, c)| *c != '-').map(|(at, _)| at).collect();
        let mut tried = 0;
        for &at in &digits {
            let group = 1 + (at - 4) / 11;
            for digit in DIGITS.map(char::from) {
                let mut wrong = text.clone().into_bytes();
                wrong[at] = digit as u8;
                let wrong = String::from_utf8(wrong).unwrap();
                if wrong != text {
                    assert_eq!(wrong.parse::<Key>(), Err(KeyTextError::Mistyped { group }));
                    tried += 1;
                }
            }
            let mut wrong = text.clone().into_bytes();
            wrong[at] = b'x';
            let digit = 1 + (at - 4) % 11;
            assert_eq!(
                String::from_utf8(wrong).unwrap().parse::<Key>(),
                Err(KeyTextError::NotADigit { group, digit })
            );
        }
        assert_eq!(tried, 80 * 15);
        for pair in digits.windows(2).filter(|pair| pair[1] == pair[0] + 1) {
            let mut wrong = text.clone().into_bytes();
            wrong.swap(pair[0], pair[1]);
            let wrong = String::from_utf8(wrong).unwrap();
            assert!(wrong == text || wrong.parse::<Key>().is_err(), "swapped at {}", pair[0]);
        }
        let mut groups: Vec<&str> = text[4..].split('-').collect();
        groups.swap(2, 5);
        let swapped = format!("bw1-{}", groups.join("-"));
        assert_eq!(swapped.parse::<Key>(), Err(KeyTextError::Mistyped { group: 3 }));
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

    #[test]
    fn rotation_goes_through_three_stages_and_survives_the_file() {
        let through_file = |ring: &KeyRing| KeyRing::parse(place(), &ring.to_text()).unwrap();
        let mut ring = KeyRing::new(key(1));
        assert_eq!(ring.stage(), Stage::Settled);
        ring.add(key(2)).unwrap();
        ring = through_file(&ring);
        assert_eq!((ring.stage(), ring.sending()), (Stage::AcceptBoth, &key(1)));
        ring.send_newest();
        ring = through_file(&ring);
        assert_eq!((ring.stage(), ring.sending()), (Stage::SendNew, &key(2)));
        assert_eq!(ring.retire(), [key(1).fingerprint()]);
        ring = through_file(&ring);
        assert_eq!((ring.stage(), ring.keys()), (Stage::Settled, &[key(2)][..]));
        assert_eq!(ring.retire(), [], "the key in use is never retired");
        assert!(matches!(ring.add(key(2)), Err(KeyError::Twice(_))));
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
        fn keys_read_back_and_no_text_panics(bytes: [u8; 32], text in ".{0,120}") {
            let key = Key::from_bytes(bytes);
            prop_assert_eq!(key.to_text().parse(), Ok(key));
            let _ = KeyRing::parse(place(), &text);
        }
    }
}
