//! The log of `bellwether agent`, on standard error: for people, for programs, or for the journal of systemd.
//!
//! A pipe that nobody reads must not stop the agent, so a thread of its own writes; lines that it cannot keep up with are
//! counted and lost.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::{Duration, UNIX_EPOCH},
};

use bellwether_agent::log::{Form, Level, Line};

pub(crate) struct Log {
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
    ended: Receiver<()>,
}

impl Log {
    pub(crate) fn start(form: Form) -> Self {
        Self::to(form, io::stderr())
    }

    fn to(form: Form, mut sink: impl io::Write + Send + 'static) -> Self {
        let (lines, waiting) = mpsc::sync_channel(WAITING);
        let (end, ended) = mpsc::channel();
        let lost = Arc::new(AtomicU64::new(0));
        let missing = Arc::clone(&lost);
        let to_journal = std::env::var_os("JOURNAL_STREAM").is_some();
        let mut write = move |line: &Line| {
            let text = match form {
                Form::Nothing => return,
                Form::Json => serde_json::to_string(line).unwrap_or_default(),
                Form::Text if to_journal => journal(line),
                Form::Text => text(line),
            };
            // There is nobody to tell.
            let _: io::Result<()> = writeln!(sink, "{text}");
        };
        thread::spawn(move || {
            for line in waiting {
                let lost = missing.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    let words = format!("{lost} lines could not be written");
                    write(&Line::new(Level::Warning, "missed", &words));
                }
                write(&line);
            }
            drop(end);
        });
        Self { lines, lost, ended }
    }

    pub(crate) fn write(&self, line: Line) {
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all is written, but not for long.
    pub(crate) fn end(self) {
        drop(self.lines);
        let _: Result<(), RecvTimeoutError> = self.ended.recv_timeout(PATIENCE);
    }
}

fn text(line: &Line) -> String {
    let time = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(line.unix_ms));
    format!("{time} {:<7} {}", line.level, line.message)
}

/// It has its own clock, and reads how grave a line is from its beginning.
fn journal(line: &Line) -> String {
    let level = match line.level {
        Level::Info => 6,
        Level::Warning => 4,
    };
    format!("<{level}>{}", line.message)
}

/// Lines that may wait to be written.
const WAITING: usize = 1024;
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_line_has_its_time_and_its_level_or_what_the_journal_wants() {
        let line = Line { unix_ms: 1_700_000_000_123, ..Line::new(Level::Warning, "stalled", "x") };
        assert_eq!(text(&line), "2023-11-14T22:13:20.123Z warning x");
        assert_eq!(journal(&line), "<4>x");
        let line = Line { level: Level::Info, ..line };
        assert_eq!(text(&line), "2023-11-14T22:13:20.123Z info    x");
    }

    /// Takes nothing until it is told to.
    struct Clogged(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl io::Write for Clogged {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _: Result<(), mpsc::RecvError> = self.0.recv();
            self.1.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_pipe_that_nobody_reads_stops_nobody_and_what_is_lost_is_counted() {
        let (open, clogged) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let log = Log::to(Form::Json, Clogged(clogged, Arc::clone(&written)));
        for at in 0..3 * WAITING {
            log.write(Line::new(Level::Info, "members", &at.to_string()));
        }
        drop(open);
        while log.lost.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        log.end();
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (missed, kept): (Vec<_>, Vec<_>) =
            lines.iter().partition(|line| line["about"] == "missed");
        let lost: usize = missed
            .iter()
            .map(|line| line["message"].as_str().unwrap().split(' ').next().unwrap())
            .map(|count| count.parse::<usize>().unwrap())
            .sum();
        assert!(lost >= WAITING, "{lost}");
        assert_eq!(kept.len() + lost, 3 * WAITING);
    }
}
