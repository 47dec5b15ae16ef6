//! The log of `bellwether agent`, on standard error: for people, for programs, or for the journal of systemd.
//!
//! The agent tells through `tracing`, and this is who listens. A pipe that nobody reads must not stop it, so a thread of its own
//! writes; lines that it cannot keep up with are counted and lost. At a thousand members it is still readable: who has come
//! and gone is summed up once a second.

use std::{
    collections::BTreeMap,
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bellwether_agent::{
    config::{Detail, Form, Shape},
    internal::log::EVENTS,
};
use serde::Serialize;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
    subscriber::{Interest, set_global_default},
};

/// The end that is held to the end.
pub(crate) struct Log {
    heard: SyncSender<Heard>,
    ended: Receiver<()>,
}

/// The end that listens.
struct Listener {
    heard: SyncSender<Heard>,
    lost: Arc<AtomicU64>,
    most: LevelFilter,
}

/// What the thread that writes is told.
enum Heard {
    Line(Line),
    /// A member has come, gone, or told its name.
    Member {
        event: String,
        id: u64,
        name: String,
    },
    End,
}

/// One line.
#[derive(Debug, Serialize)]
struct Line {
    /// Milliseconds of the wall clock since 1970.
    unix_ms: u64,
    level: Level,
    /// What it is about: an event's name, `started`, `not-durable` and the like, or where a step was taken.
    about: String,
    /// In which election, if in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    election: Option<String>,
    /// In words, without line breaks.
    message: String,
}

/// Whether somebody should look at it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Warning,
    Info,
    Debug,
    Trace,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        })
    }
}

impl From<tracing::Level> for Level {
    fn from(level: tracing::Level) -> Self {
        match level {
            tracing::Level::ERROR | tracing::Level::WARN => Self::Warning,
            tracing::Level::INFO => Self::Info,
            tracing::Level::DEBUG => Self::Debug,
            tracing::Level::TRACE => Self::Trace,
        }
    }
}

impl Line {
    /// A line of now. Nothing in it moves a cursor or looks like another line.
    fn new(level: Level, about: impl Into<String>, message: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let message = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { unix_ms, level, about: about.into(), election: None, message }
    }
}

impl Log {
    /// From now on what this process tells is written so.
    pub(crate) fn start(form: Form) -> Self {
        let (log, listener) = Self::to(form, io::stderr());
        // Somebody else listens only if this is called twice.
        let _ = set_global_default(listener);
        log
    }

    fn to(form: Form, mut sink: impl io::Write + Send + 'static) -> (Self, Listener) {
        let (heard, waiting) = mpsc::sync_channel(WAITING);
        let (end, ended) = mpsc::channel();
        let lost = Arc::new(AtomicU64::new(0));
        let missing = Arc::clone(&lost);
        let to_journal = std::env::var_os("JOURNAL_STREAM").is_some();
        let mut write = move |line: &Line| {
            let lost = missing.swap(0, Ordering::Relaxed);
            let words = format!("{lost} lines could not be written");
            let missed = (lost > 0).then(|| Line::new(Level::Warning, "missed", &words));
            for line in missed.iter().chain([line]) {
                let text = match form.shape {
                    Shape::Nothing => return,
                    Shape::Json => serde_json::to_string(line).unwrap_or_default(),
                    Shape::Text if to_journal => journal(line),
                    Shape::Text => text(line),
                };
                // There is nobody to tell.
                let _: io::Result<()> = writeln!(sink, "{text}");
            }
        };
        thread::spawn(move || {
            let mut crowd = Crowd::default();
            loop {
                match crowd.next(&waiting) {
                    Ok(Heard::Line(line)) => write(&line),
                    Ok(Heard::Member { event, id, name }) => crowd.add(&event, id, name),
                    Err(RecvTimeoutError::Timeout) => crowd.take().iter().for_each(&mut write),
                    Ok(Heard::End) | Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            crowd.take().iter().for_each(&mut write);
            drop(end);
        });
        let most = match (form.shape, form.detail) {
            (Shape::Nothing, _) => LevelFilter::OFF,
            (_, Detail::Usual) => LevelFilter::INFO,
            (_, Detail::Debug) => LevelFilter::DEBUG,
            (_, Detail::Trace) => LevelFilter::TRACE,
        };
        (Self { heard: heard.clone(), ended }, Listener { heard, lost, most })
    }

    /// Waits until all is written, but not for long.
    pub(crate) fn end(self) {
        // If there is no room for it, what waits is not written within that time either.
        let _ = self.heard.try_send(Heard::End);
        let _: Result<(), RecvTimeoutError> = self.ended.recv_timeout(PATIENCE);
    }
}

impl Listener {
    fn tell(&self, heard: Heard) {
        if self.heard.try_send(heard).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether it may be about members, who are summed up though each has no line.
    fn may_be_summed(&self, metadata: &Metadata<'_>) -> bool {
        self.most != LevelFilter::OFF && metadata.target() == EVENTS
    }
}

impl Subscriber for Listener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.enabled(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        match self.most {
            LevelFilter::OFF => Some(LevelFilter::OFF),
            most => Some(most.max(LevelFilter::DEBUG)),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && (*metadata.level() <= self.most || self.may_be_summed(metadata))
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut told = Told::default();
        event.record(&mut told);
        let summed = matches!(&*told.about, "member-join" | "member-failed" | "member-leave");
        // A newcomer's name comes with its introduction.
        if let (true, Some(id)) = (summed || told.about == "member-update", told.id) {
            let (event, name) = (told.about.clone(), told.member.clone());
            self.tell(Heard::Member { event, id, name });
        }
        if *metadata.level() <= self.most {
            if told.about.is_empty() {
                told.about = metadata.target().rsplit("::").next().unwrap_or_default().to_owned();
            }
            let Told { about, election, message, .. } = told;
            let line = Line::new((*metadata.level()).into(), about, &message);
            self.tell(Heard::Line(Line { election, ..line }));
        }
    }

    // There are no spans here: one agent runs in this process.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// The fields of what is told.
#[derive(Default)]
struct Told {
    about: String,
    election: Option<String>,
    member: String,
    id: Option<u64>,
    /// And all other fields behind it.
    message: String,
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        use fmt::Write as _;
        // Writing to a text cannot fail.
        let _ = match field.name() {
            // It comes first among the fields of a macro.
            "message" => write!(self.message, "{value:?}"),
            // These are in the words of an event already.
            "epoch" if !self.about.is_empty() => Ok(()),
            name => write!(self.message, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "about" => self.about = value.to_owned(),
            "election" if !self.about.is_empty() => self.election = Some(value.to_owned()),
            "member" if !self.about.is_empty() => self.member = value.to_owned(),
            _ => self.record_debug(field, &format_args!("{value}")),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "id" if !self.about.is_empty() => self.id = Some(value),
            _ => self.record_debug(field, &value),
        }
    }
}

/// Who has come and gone since the last line about it.
#[derive(Default)]
struct Crowd {
    /// What happened last to each, by identity: its name with it.
    members: BTreeMap<u64, (String, String)>,
    due: Option<Instant>,
}

impl Crowd {
    /// What is heard next, unless it is time for a line.
    fn next(&self, waiting: &Receiver<Heard>) -> Result<Heard, RecvTimeoutError> {
        match self.due {
            Some(due) => waiting.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn add(&mut self, event: &str, id: u64, name: String) {
        let introduced = event == "member-update";
        match self.members.get_mut(&id) {
            Some((_, known)) if introduced => *known = name,
            None if introduced => {}
            _ => {
                self.members.insert(id, (event.to_owned(), name));
                self.due.get_or_insert_with(|| Instant::now() + SUMMED);
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        let members = std::mem::take(self).members;
        let mut words = Vec::new();
        for (event, what) in
            [("member-join", "joined"), ("member-failed", "failed"), ("member-leave", "left")]
        {
            let of = members.values().filter(|(happened, _)| happened == event);
            let mut names: Vec<&str> = of.map(|(_, name)| name.as_str()).collect();
            names.sort_unstable();
            let more = names.len().saturating_sub(NAMED);
            names.truncate(NAMED);
            if !names.is_empty() {
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                words.push(format!("{what}: {}{more}", names.join(", ")));
            }
        }
        (!words.is_empty()).then(|| Line::new(Level::Info, "members", &words.join("; ")))
    }
}

fn text(line: &Line) -> String {
    let time = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(line.unix_ms));
    format!("{time} {:<7} {}", line.level, line.message)
}

/// It has its own clock, and reads how grave a line is from its beginning.
fn journal(line: &Line) -> String {
    let level = match line.level {
        Level::Warning => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    };
    format!("<{level}>{}", line.message)
}

/// Lines that may wait to be written.
const WAITING: usize = 1024;
const PATIENCE: Duration = Duration::from_secs(1);
/// Comings and goings are summed up for so long.
const SUMMED: Duration = Duration::from_secs(1);
/// Names of one line that are spelt out.
const NAMED: usize = 8;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tracing::{debug, info, subscriber::with_default, trace, warn};

    use super::*;

    #[test]
    fn a_line_has_its_time_and_its_level_or_what_the_journal_wants() {
        let line = Line { unix_ms: 1_700_000_000_123, ..Line::new(Level::Warning, "stalled", "x") };
        assert_eq!(text(&line), "2023-11-14T22:13:20.123Z warning x");
        assert_eq!(journal(&line), "<4>x");
        let line = Line { level: Level::Info, ..line };
        assert_eq!(text(&line), "2023-11-14T22:13:20.123Z info    x");
    }

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that come of what is told.
    fn written(detail: Detail, tell: impl FnOnce()) -> Vec<serde_json::Value> {
        let kept = Kept::default();
        let (log, listener) = Log::to(Form { shape: Shape::Json, detail }, kept.clone());
        with_default(listener, tell);
        log.end();
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn messages(lines: &[serde_json::Value]) -> Vec<(&str, &str)> {
        let all = lines.iter();
        all.map(|line| (line["level"].as_str().unwrap(), line["message"].as_str().unwrap()))
            .collect()
    }

    fn member(event: &str, id: u64, name: &str) {
        debug!(target: EVENTS, about = event, member = name, id, "{name}: {event}");
    }

    #[test]
    fn leading_has_lines_of_its_own_and_crowds_are_summed_up() {
        let lines = written(Detail::Usual, || {
            for node in 0..900 {
                member("member-join", node, &format!("n{node:03}"));
            }
            member("member-suspect", 1, "n001");
            member("member-failed", 2, "n002");
            member("member-update", 0, "n000!");
            let epoch = tracing::field::display("7.3.1.0");
            info!(target: EVENTS, about = "leader-elected", election = "backup", member = "n003", id = 3_u64, epoch, "backup: n003 leads");
            debug!(target: EVENTS, about = "leader-confirmed", election = "backup", "no doubt");
            warn!(target: EVENTS, about = "settings-differ", election = "backup", "backup: n004 has other settings");
            debug!("a step");
        });
        assert_eq!(
            messages(&lines),
            [
                ("info", "backup: n003 leads"),
                ("warning", "backup: n004 has other settings"),
                (
                    "info",
                    "joined: n000!, n001, n003, n004, n005, n006, n007, n008 and 891 more; failed: n002"
                ),
            ]
        );
        let (leads, crowd) = (&lines[0], &lines[2]);
        assert_eq!(
            (&leads["about"], &leads["election"]),
            (&"leader-elected".into(), &"backup".into())
        );
        assert_eq!(crowd["about"], "members");
    }

    #[test]
    fn who_wants_to_know_more_is_told_each_step_and_each_packet() {
        let tell = || {
            debug!(target: "bellwether_agent::host::adapter", address = "192.0.2.7:9", in_vain = 3, "asks who is there");
            trace!(target: "bellwether_agent::net::transport", bytes = 61, reason = "auth", "packet refused");
        };
        assert_eq!(written(Detail::Usual, tell).len(), 0);
        let lines = written(Detail::Debug, tell);
        assert_eq!(
            messages(&lines),
            [("debug", "asks who is there address=192.0.2.7:9 in_vain=3")]
        );
        assert_eq!(lines[0]["about"], "adapter");
        let lines = written(Detail::Trace, tell);
        assert_eq!(messages(&lines)[1], ("trace", "packet refused bytes=61 reason=auth"));
    }

    #[test]
    fn a_name_cannot_forge_a_line() {
        let lines = written(Detail::Usual, || {
            let name = "a\n\u{1b}[2Jinfo b leads";
            info!(target: EVENTS, about = "leader-elected", member = name, "{name} leads");
            member("member-join", 1, name);
        });
        assert_eq!(lines.len(), 2);
        for (_, message) in messages(&lines) {
            assert!(!message.contains(char::is_control), "{message:?}");
        }
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
        let form = Form { shape: Shape::Json, ..Form::default() };
        let (log, listener) = Log::to(form, Clogged(clogged, Arc::clone(&written)));
        let lost = Arc::clone(&listener.lost);
        with_default(listener, || {
            for at in 0..3 * WAITING {
                info!(target: EVENTS, about = "members", "{at}");
            }
        });
        drop(open);
        while lost.load(Ordering::Relaxed) > 0 {
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
