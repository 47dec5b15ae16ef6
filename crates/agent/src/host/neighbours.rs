//! Neighbours as a routing daemon knows them, for elections of the most central.
//!
//! A daemon that routes over radio knows better than any beacon of ours who is in range. Every so often its table is read
//! from a program's output, from the daemon's own socket or from a file, and told to the node, which finds the members
//! by their addresses. A table that cannot be read leaves the last one standing for [`PATIENCE`] more tries; then nobody
//! is a neighbour, as nothing is known.

use std::{net::SocketAddr, path::Path, process::Stdio};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    process::Command,
    time,
};

pub use self::tables::parse;
pub(crate) use self::tables::{Address, Neighbour};
use crate::{
    config::{Format, Source, Table},
    host::handle::Handle,
    trust,
};

mod tables;

/// Tells the node who its neighbours are, until it has stopped.
pub(crate) async fn follow(election: String, table: Table, handle: Handle) {
    let every = time::Duration::from_micros(table.every.as_micros());
    let mut ticks = time::interval(every);
    ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    let mut failures = 0;
    loop {
        ticks.tick().await;
        let read = match time::timeout(every.max(LEAST_WAIT), read(&table)).await {
            Ok(read) => read,
            Err(_) => Err(format!("{}: no answer", table.source)),
        };
        let told = match read {
            Ok(neighbours) => {
                failures = 0;
                handle.set_neighbours(election.clone(), Some(neighbours), None).await
            }
            Err(problem) => {
                failures += 1;
                let given_up = (failures > PATIENCE).then(Vec::new);
                handle.set_neighbours(election.clone(), given_up, Some(problem)).await
            }
        };
        if told.is_err() {
            return;
        }
    }
}

async fn read(table: &Table) -> Result<Vec<Neighbour>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", table.source);
    let bytes = match &table.source {
        Source::File(path) => {
            let file = tokio::fs::File::open(path).await.map_err(|error| failed(&error))?;
            whole(file).await
        }
        Source::Address(address) => ask(*address, table.format).await,
        Source::Command(words) => run(words).await,
    };
    let bytes = bytes.map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&bytes);
    parse(table.format, &text).map_err(|error| failed(&error))
}

async fn ask(address: SocketAddr, format: Format) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format.question().unwrap_or_default().as_bytes()).await?;
    whole(stream).await
}

async fn run(words: &[String]) -> std::io::Result<Vec<u8>> {
    let [program, arguments @ ..] = words else { return Ok(Vec::new()) };
    // As with hooks: whoever can exchange it decides what we run.
    trust::walk(Path::new(program)).map_err(std::io::Error::other)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let output = match child.stdout.take() {
        Some(output) => whole(output).await?,
        None => Vec::new(),
    };
    let status = child.wait().await?;
    match status.success() {
        true => Ok(output),
        false => Err(std::io::Error::other(format!("failed: {status}"))),
    }
}

/// All that comes, if it is no more than a table can be.
async fn whole(from: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes).await?;
    match bytes.len() as u64 > LARGEST {
        true => Err(std::io::Error::other(format!("is larger than {LARGEST} bytes"))),
        false => Ok(bytes),
    }
}

/// Tries that may fail before nobody is a neighbour.
pub(crate) const PATIENCE: u32 = 3;
/// What a program may take in any case.
const LEAST_WAIT: time::Duration = time::Duration::from_secs(1);
/// A table of ten thousand routes.
const LARGEST: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_proto::Duration;

    use crate::host::handle::Requested;

    async fn told(table: Table) -> (Option<Vec<Neighbour>>, Option<String>) {
        let (handle, mut inbox) = Handle::connect([]);
        let following = tokio::spawn(follow("mesh".to_owned(), table, handle));
        let asked = inbox.requests.recv().await.expect("a table, or what is wrong with it");
        following.abort();
        match asked {
            Requested::Neighbours { election, neighbours, problem } => {
                assert_eq!(election, "mesh");
                (neighbours, problem)
            }
            other => panic!("{other:?}"),
        }
    }

    fn table(format: Format, source: Source) -> Table {
        Table { format, source, every: Duration::from_millis(500) }
    }

    #[tokio::test]
    async fn tables_come_from_files_programs_and_daemons() {
        let text =
            "BABEL 1.0\nok\nadd neighbour 1 address fe80::2 if eth0 reach ffff cost 96\nok\n";
        let expected = parse(Format::Babel, text).unwrap();
        assert_eq!(expected.len(), 1);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        std::fs::write(&path, text).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut question = [0; 10];
            stream.read_exact(&mut question).await.unwrap();
            assert_eq!(&question, b"dump\nquit\n");
            stream.write_all(text.as_bytes()).await.unwrap();
        });
        let words = vec!["/bin/cat".to_owned(), path.display().to_string()];
        for source in [Source::File(path), Source::Command(words), Source::Address(address)] {
            let found = told(table(Format::Babel, source.clone())).await;
            assert_eq!(found, (Some(expected.clone()), None), "{source}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_said_with_its_source_and_leaves_the_last_table() {
        let missing = Source::File("/nowhere/dump".into());
        let (neighbours, problem) = told(table(Format::Babel, missing)).await;
        assert_eq!(neighbours, None);
        assert!(problem.unwrap().starts_with("/nowhere/dump: No such file"));
        let words = ["/bin/sh", "-c", "exit 3"].map(str::to_owned).to_vec();
        let (_, problem) = told(table(Format::Batman, Source::Command(words))).await;
        assert_eq!(problem.unwrap(), "/bin/sh -c exit 3: failed: exit status: 3");
        let words = vec!["/bin/echo".to_owned(), "what?".to_owned()];
        let (_, problem) = told(table(Format::Olsr, Source::Command(words))).await;
        let expected =
            "/bin/echo what?: line 1: table \"what?\" has no table of links or neighbours";
        assert_eq!(problem.unwrap(), expected);
    }

    #[tokio::test]
    async fn after_a_few_failures_nobody_is_a_neighbour() {
        let (handle, mut inbox) = Handle::connect([]);
        let every = Duration::from_millis(1);
        let source = Source::File("/nowhere/dump".into());
        let table = Table { every, ..table(Format::Babel, source) };
        let following = tokio::spawn(follow("mesh".to_owned(), table, handle));
        for failure in 1..=PATIENCE + 1 {
            let Some(Requested::Neighbours { neighbours, .. }) = inbox.requests.recv().await else {
                panic!("nothing was told");
            };
            let given_up = (failure > PATIENCE).then(Vec::new);
            assert_eq!(neighbours, given_up, "failure {failure}");
        }
        following.abort();
    }
}
