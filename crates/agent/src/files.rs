//! What an agent will open when it starts, looked at without starting one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use crate::{
    agent::StartError,
    api::{Shut, Token},
    config::{Config, Socket},
    host::store::StoreError,
    net::key::KeyRing,
    trust,
};

/// Whether the files and folders that the settings name are such that an agent of this user can start with them. Nothing is
/// written.
///
/// # Errors
///
/// [`StartError`]: what the agent would say.
pub fn check_files(config: &Config) -> Result<(), StartError> {
    KeyRing::read(&config.key_file)?;
    match (&config.api_token_file, &config.data_dir) {
        (Some(path), _) => drop(Token::read(path).map_err(StartError::Token)?),
        (None, Some(folder)) if folder.join("api.token").exists() => {
            drop(Token::read(&folder.join("api.token")).map_err(StartError::Token)?);
        }
        (None, _) => {}
    }
    if let Some(folder) = &config.data_dir {
        let failed = |source| StoreError::Io { path: folder.clone(), source };
        writable(folder).map_err(failed)?;
        if let Ok(meta) = fs::metadata(folder) {
            trust::kept(folder, &meta).map_err(StoreError::from)?;
        }
    }
    if let Socket::At(path) = &config.socket {
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        writable(&folder).map_err(|error| Shut::new(path, error.to_string()))?;
    }
    Ok(())
}

/// Whether something can be made in this folder, or the folder itself if it is not there.
fn writable(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match (fs::metadata(folder), folder.parent()) {
        (Ok(meta), _) if !meta.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        (Ok(_), _) => Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?),
        (Err(error), Some(above)) if error.kind() == io::ErrorKind::NotFound => writable(above),
        (Err(error), _) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_would_keep_an_agent_from_starting_is_said_before() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut config = Config::new("a", "b", at("cluster.key"));
        let said = |config: &Config| check_files(config).unwrap_err().to_string();
        assert!(said(&config).contains("cluster.key: No such file"), "{}", said(&config));
        KeyRing::create(&at("cluster.key")).unwrap();
        check_files(&config).unwrap();
        config.api_token_file = Some(at("api.token"));
        assert!(said(&config).contains("copy it from the node"), "{}", said(&config));
        Token::create(&at("api.token")).unwrap();
        // Made by the agent, as long as it can be.
        config.data_dir = Some(at("state/of/node"));
        check_files(&config).unwrap();
        assert!(!at("state").exists(), "nothing is written");
        config.data_dir = Some(at("api.token"));
        assert!(said(&config).contains("api.token: "), "{}", said(&config));
        fs::create_dir(at("open")).unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
        config.data_dir = Some(at("open"));
        assert!(said(&config).contains("may be changed by others"), "{}", said(&config));
        config.data_dir = None;
        config.socket = Socket::At(at("api.token/agent.sock"));
        assert!(said(&config).contains("socket"), "{}", said(&config));
    }
}
