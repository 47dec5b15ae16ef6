//! The secret that commands must know.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use zeroize::Zeroize as _;

use crate::{config::Config, trust};

/// A secret. It has no text form, so that it cannot end up in a log, and is overwritten when it is dropped.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Token {
    /// The token of an agent: in the file that is configured, or in `api.token` in its data directory, which is made
    /// if it is not there. Without either there is none, and the agent takes no commands.
    ///
    /// # Errors
    ///
    /// A sentence that names the file and what is wrong with it.
    pub fn of(config: &Config) -> Result<Option<Self>, String> {
        let own = config.data_dir.as_ref().map(|folder| folder.join("api.token"));
        match (&config.api_token_file, own) {
            (Some(path), _) => Self::read(path).map(Some),
            (None, Some(path)) if path.exists() => Self::read(&path).map(Some),
            (None, Some(path)) => {
                let about = |error| format!("token file {}: {error}", path.display());
                Self::create(&path).map(Some).map_err(about)
            }
            (None, None) => Ok(None),
        }
    }

    /// Reads the token from a file that nobody but its owner may read.
    ///
    /// # Errors
    ///
    /// A sentence that names the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let about = |problem: String| format!("token file {}: {problem}", path.display());
        let file = fs::File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => about(
                "there is no such file; copy it from the node where `bellwether init` wrote it"
                    .to_owned(),
            ),
            _ => about(error.to_string()),
        })?;
        let meta = file.metadata().map_err(|error| about(error.to_string()))?;
        let mode = meta.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(about(format!("mode is {mode:04o}, need 0600 (chmod 600)")));
        }
        trust::owned(path, &meta).map_err(|distrust| format!("token file: {distrust}"))?;
        let mut text = String::new();
        file.take(LONGEST as u64 + 1)
            .read_to_string(&mut text)
            .map_err(|error| about(error.to_string()))?;
        let text = text.trim();
        if text.len() < SHORTEST || text.len() > LONGEST {
            let length = text.len();
            return Err(about(format!("{length} characters, need {SHORTEST} to {LONGEST}")));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(about("has characters that a header cannot carry".to_owned()));
        }
        Ok(Self(text.as_bytes().to_vec()))
    }

    /// Writes a new token to a file that must not exist yet.
    ///
    /// # Errors
    ///
    /// If the file exists, or cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        Ok(Self(text.into_bytes()))
    }

    /// Whether this is the token, in a time that does not depend on where they differ.
    pub(super) fn is(&self, other: &[u8]) -> bool {
        let same = |(a, b): (&u8, &u8)| a ^ b;
        let differences = self.0.iter().zip(other).map(same).fold(0, |all, one| all | one);
        std::hint::black_box(differences) == 0 && self.0.len() == other.len()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Shortest token: 128 bits, if it is random hexadecimal digits half of that.
const SHORTEST: usize = 16;
/// Longest token. Arbitrary.
const LONGEST: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_the_token() {
        let token = Token(b"0123456789abcdef".to_vec());
        assert!(token.is(b"0123456789abcdef"));
        for wrong in [&b""[..], b"0123456789abcdeF", b"0123456789abcde", b"0123456789abcdef0"] {
            assert!(!token.is(wrong), "{wrong:?}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test]
    fn a_token_is_kept_where_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        Token::create(&path).unwrap();
        assert!(Token::create(&path).is_err(), "nothing is overwritten");
        Token::read(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Token::read(&path).unwrap_err().contains("mode is 0644, need 0600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            let error = Token::read(&path).unwrap_err();
            assert!(error.contains("token belongs to user 65534, need root"), "{error}");
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        fs::write(&path, "short").unwrap();
        assert!(Token::read(&path).unwrap_err().contains("5 characters"));
    }

    #[test]
    fn an_agent_with_a_data_directory_makes_itself_a_token_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new("a", "b", "c");
        assert!(Token::of(&config).unwrap().is_none());
        config.data_dir = Some(folder.path().to_owned());
        let first = Token::of(&config).unwrap().unwrap();
        assert!(Token::of(&config).unwrap().unwrap().is(&first.0));
        config.api_token_file = Some(folder.path().join("none"));
        assert!(Token::of(&config).unwrap_err().contains("none"));
    }
}
