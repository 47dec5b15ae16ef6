//! A program that prints the addresses of those to join, one or more to a line; `#` begins a comment.
//!
//! It is held to what hooks are held to: nobody but root and the agent's own user can exchange it, no shell reads it, its
//! environment is clean, and after [`PATIENCE`] it is killed with its whole process group.

use std::{io, net::SocketAddr, path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::timeout,
};

use crate::{
    config::{parse_address, quote},
    host::hooks::{self, Group},
    trust::{self, Distrust},
};

/// Why it names nobody.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// Others could have put it there.
    #[error("was not started: {0}")]
    Distrusted(#[from] Distrust),
    /// The system says no.
    #[error("cannot be run: {0}")]
    Io(#[from] io::Error),
    /// It exited with something else than 0.
    #[error("failed: {status}{}", words(said))]
    Failed {
        /// How.
        status: std::process::ExitStatus,
        /// What it said on standard error.
        said: String,
    },
    /// It went on.
    #[error("did not end within {} s and was killed", PATIENCE.as_secs())]
    Hung,
    /// It does not stop printing.
    #[error("prints more than {most} bytes", most = LARGEST)]
    TooMuch,
    /// What it printed is something else.
    #[error("line {line} of what it prints: {word:?} {problem}, need IP or IP:PORT")]
    NoAddress {
        /// From 1.
        line: usize,
        /// As printed.
        word: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

fn words(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

/// What it prints.
pub(super) async fn find(path: &Path) -> Result<Vec<SocketAddr>, ProgramError> {
    // Whose it was when the settings were read says nothing about now.
    trust::walk(path)?;
    let mut command = Command::new(path);
    hooks::clean(&mut command);
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut group = Group::of(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let run = async {
        // Read beside each other: a program that fills one of them waits for its reader.
        let (printed, said) = tokio::join!(some(stdout, LARGEST), some(stderr, SAID));
        // Whoever prints on after that would wait for ever.
        Ok::<_, io::Error>((printed?, said?, child.wait().await?))
    };
    let ended = timeout(PATIENCE, run).await;
    let Ok(ended) = ended else {
        group.end(&mut child).await;
        return Err(ProgramError::Hung);
    };
    let (printed, said, status) = ended?;
    group.forget();
    if printed.len() as u64 > LARGEST {
        return Err(ProgramError::TooMuch);
    }
    if !status.success() {
        let said = quote(String::from_utf8_lossy(&said).trim());
        return Err(ProgramError::Failed { status, said });
    }
    parse(&String::from_utf8_lossy(&printed))
}

/// What comes, and one byte more than `most` if there is more; the pipe is closed then.
async fn some(from: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(most + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn parse(text: &str) -> Result<Vec<SocketAddr>, ProgramError> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default();
        for word in text.split_whitespace() {
            let wrong = |problem| ProgramError::NoAddress { line, word: quote(word), problem };
            match parse_address(word) {
                Ok(Some(address)) => found.push(address),
                Ok(None) => return Err(wrong("is not an address")),
                Err(problem) => return Err(wrong(problem)),
            }
        }
    }
    Ok(found)
}

/// How long it may run.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of addresses, some two thousand.
const LARGEST: u64 = 64 << 10;
/// Bytes kept of what it says on standard error.
const SAID: u64 = 1 << 10;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    /// A shell script that only its owner may change.
    pub(in super::super) fn write(path: &Path, text: &str) {
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn run(text: &str) -> Result<Vec<SocketAddr>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peers");
        write(&path, text);
        find(&path).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn what_a_program_prints_is_who_to_join() {
        let found =
            run("echo '192.0.2.1 [2001:db8::1]:9 # and more'; echo; echo 192.0.2.2:8").await;
        let found: Vec<String> = found.unwrap().iter().map(SocketAddr::to_string).collect();
        assert_eq!(found, ["192.0.2.1:7738", "[2001:db8::1]:9", "192.0.2.2:8"]);
        assert_eq!(run("exit 0").await, Ok(vec![]));
        let error = run("echo 192.0.2.1; echo kitchen").await.unwrap_err();
        let wanted = "line 2 of what it prints: \"kitchen\" is not an address, need IP or IP:PORT";
        assert_eq!(error, wanted);
        let error = run("echo 0.0.0.0:1").await.unwrap_err();
        assert!(error.contains("\"0.0.0.0:1\" is nobody's address"), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_fails_floods_or_is_not_ours_is_said_so() {
        let error = run("echo no cloud here >&2; exit 3").await.unwrap_err();
        assert_eq!(error, "failed: exit status: 3: no cloud here");
        let error = run("while :; do echo 192.0.2.1; done").await.unwrap_err();
        assert_eq!(error, "prints more than 65536 bytes");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peers");
        let error = find(&path).await.unwrap_err().to_string();
        assert!(
            error.starts_with("was not started: ") && error.contains("No such file"),
            "{error}"
        );
        write(&path, "exit 0");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o757)).unwrap();
        let error = find(&path).await.unwrap_err().to_string();
        assert!(error.contains("may be changed by others: its mode is 0757"), "{error}");
    }

    #[tokio::test]
    async fn it_gets_nothing_of_the_environment_but_what_hooks_get() {
        // Those of hooks, and what a shell sets itself.
        let known = ["PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"];
        let other = |name: &std::ffi::OsStr| !known.iter().any(|known| name == *known);
        assert!(std::env::vars_os().any(|(name, _)| other(&name)), "there is something to hide");
        let names = known.join("|");
        let text = format!("env | cut -d= -f1 | grep -vxE '{names}' && exit 7; echo 192.0.2.1");
        assert_eq!(run(&text).await.map(|found| found.len()), Ok(1));
    }

    #[tokio::test]
    async fn one_that_hangs_is_killed_with_all_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let (path, pid) = (folder.path().join("peers"), folder.path().join("pid"));
        write(&path, &format!("trap '' TERM; sleep 600 & echo $! > {}; wait", pid.display()));
        let error = find(&path).await.unwrap_err().to_string();
        assert_eq!(error, "did not end within 10 s and was killed");
        let pid = fs::read_to_string(pid).unwrap();
        let gone = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
        };
        // A signal is on its way for a moment.
        for _ in 0..100 {
            if gone() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("it still runs");
    }
}
