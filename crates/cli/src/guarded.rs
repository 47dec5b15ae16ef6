//! `bellwether run GROUP -- CMD`: a command that lives while this node leads.
//!
//! The agent is asked all the time; an answer counts from the moment the question was *sent*, on the clock that counts
//! suspend, so that an answer that lay around proves nothing. With `G` the guard and `g` the grace:
//!
//! - the agent says that another leads: TERM at once, KILL after `g`;
//! - no word for `G - g` (the agent was killed, stopped or cannot say): TERM, and KILL at `G`;
//! - in a leased election: TERM when the lease ends, KILL when the step-down time is over after that, which every
//!   successor waits for; if another leads already, KILL when it is over since the agent last said that this node does.
//!
//! - the agent is gone, as the end of the connection to it says: TERM at once, KILL after `g`.
//!
//! So the command is dead at most `G` after the agent last confirmed that this node leads. What that confirmation is
//! worth is the mode's promise: an eventual election may have another leader in a part of the network that is cut off.
//!
//! What is killed is everything the command has started, in whatever session. Between this process and the command is a
//! [watchdog], which knows until when the command may run: this process may be killed or stopped, and the command ends
//! all the same. Should both be stopped, with the machine's other processes, nothing here can help, and only the epoch that
//! the command was given, checked by what it acts on, does.

mod tree;
pub(crate) mod watchdog;

use std::{
    env, fs, io,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::{
    process::{Signal, getpid, set_child_subreaper},
    time::{ClockId, clock_gettime},
};
use serde_json::Value;

use self::{
    tree::Cgroup,
    watchdog::{End, Leash},
};
use crate::{
    client::{Asked, Client, segment},
    output::{Exit, Failure},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The election
    #[arg(value_name = "GROUP")]
    group: String,
    /// The command and its arguments, after --
    #[arg(value_name = "CMD", last = true, required = true)]
    command: Vec<String>,
    /// Kill the command this long, at the latest, after the agent last confirmed that
    /// this node leads
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    guard: Duration,
    /// Between TERM and KILL
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    grace: Duration,
    /// End when leadership is lost, with exit code 1, instead of waiting to lead again
    #[arg(long)]
    once: bool,
    /// Do not put the command into a cgroup of its own
    #[arg(long)]
    no_cgroup: bool,
    #[command(flatten)]
    asked: Asked,
}

/// What the hidden verb that becomes the command is given.
#[derive(clap::Args)]
pub(crate) struct BecomeArgs {
    /// Whose child it must be
    parent: u32,
    /// The cgroup to go into, if there is one
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let read = text.parse::<bellwether_proto::Duration>().map_err(|error| error.to_string())?;
    Ok(Duration::from_micros(read.as_micros()))
}

/// Something the one loop that decides has to know.
enum News {
    /// What the agent said when asked at that time.
    Word(Duration, Word),
    /// The command with this number has ended, and all that it has started.
    Ended(u64, End),
    /// We are to end.
    Signal(i32),
}

/// How long this node may still lead, and what it has begun go on after that.
#[derive(Clone, Copy)]
struct Lease {
    valid_for: Duration,
    step_down: Duration,
}

enum Word {
    Leads {
        epoch: String,
        lease: Option<Lease>,
    },
    DoesNot,
    /// Nothing: not there, too slow, or not able to say.
    Silence,
    /// Nobody is there to say anything.
    Gone,
    /// There is no such election.
    Refused(String),
}

/// The time since the machine started, suspend included.
fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    if args.grace >= args.guard {
        let (grace, guard) = (args.grace, args.guard);
        return Err(Failure::Other(format!(
            "--grace {grace:?} must be shorter than --guard {guard:?}, or there is no time to stop in"
        )));
    }
    // Before anything is waited for: who mistyped it is not to find out when it is needed.
    if let Some(exit) = missing(&args.command[0]) {
        return Ok(exit);
    }
    // Of whatever a watchdog leaves behind.
    set_child_subreaper(Some(getpid()))
        .map_err(|error| Failure::Other(format!("cannot become the parent of orphans: {error}")))?;
    let (sender, news) = mpsc::channel();
    watch_signals(sender.clone())?;
    let path = format!("/v1/elections/{}", segment(&args.group));
    let interval = (args.guard / 10).clamp(Duration::from_millis(20), Duration::from_millis(500));
    let (client, asking, patience) = (args.asked.client()?, sender.clone(), args.guard / 2);
    thread::spawn(move || keep_asking(&client, &path, interval, patience, &asking));
    let mut keeper =
        Keeper { args, sender, running: None, started: 0, ending: None, said_waiting: false };
    loop {
        let wait = keeper.act(now());
        if let Some(exit) = keeper.finished() {
            return Ok(exit);
        }
        match news.recv_timeout(wait) {
            Ok(news) => {
                if let Some(exit) = keeper.hear(news)? {
                    return Ok(exit);
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Failure::Other("nobody is left to ask the agent".to_owned()));
            }
        }
    }
}

fn watch_signals(sender: mpsc::Sender<News>) -> Result<(), Failure> {
    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM},
        iterator::Signals,
    };
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Failure::Other(format!("cannot watch signals: {error}")))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            if sender.send(News::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

fn keep_asking(
    client: &Client,
    path: &str,
    interval: Duration,
    patience: Duration,
    sender: &mpsc::Sender<News>,
) {
    let mut interval = interval;
    loop {
        let asked = now();
        let answer = client.ask(path, patience);
        // Who was cut off asks again before long: the agent may be going just now.
        let pause = if answer.is_ok() { interval } else { interval.min(SOON) };
        let word = match answer {
            Ok(answer) if answer.status == 200 => {
                // Leases are short.
                if let Some(step_down) = answer.body["step_down_ms"].as_u64() {
                    interval = interval.min(Duration::from_millis((step_down / 4).clamp(10, 50)));
                }
                word(&answer.body)
            }
            Ok(answer) if matches!(answer.status, 401 | 403 | 404) => {
                let said = |key: &str| answer.body[key].as_str().unwrap_or_default().to_owned();
                Word::Refused(format!("{}\n  hint: {}", said("error"), said("hint")))
            }
            Err(unanswered) if unanswered.gone => Word::Gone,
            Ok(_) | Err(_) => Word::Silence,
        };
        if sender.send(News::Word(asked, word)).is_err() {
            return;
        }
        // Or until the connection ends: then whether the agent is still there is asked at once.
        client.rest(pause);
    }
}

fn word(answer: &Value) -> Word {
    // A central leader has no epoch. Whether it has led all the while is told by how often leaders changed, which is no
    // token: nobody may take it for one.
    let central = answer["central"].is_object().then(|| format!("none.{}", answer["changes"]));
    let epoch = answer["epoch"].as_str().map(str::to_owned).or(central);
    match (answer["is_leader"] == true, epoch) {
        (true, Some(epoch)) => Word::Leads {
            epoch,
            lease: answer["valid_for_ms"].as_u64().map(|valid_for| Lease {
                valid_for: Duration::from_millis(valid_for),
                step_down: Duration::from_millis(answer["step_down_ms"].as_u64().unwrap_or(0)),
            }),
        },
        _ => Word::DoesNot,
    }
}

/// Decides when the command runs.
struct Keeper<'a> {
    args: &'a Args,
    sender: mpsc::Sender<News>,
    running: Option<Running>,
    started: u64,
    /// Once it has stopped, this is how we end.
    ending: Option<Exit>,
    said_waiting: bool,
}

struct Running {
    leash: Leash,
    cgroup: Option<Cgroup>,
    number: u64,
    epoch: String,
    /// Until when it may run, as far as was last confirmed.
    bounds: Bounds,
    /// Whether it has been asked to end, and when it will be killed.
    stopping: Option<Duration>,
}

/// Of one confirmation.
#[derive(Clone, Copy)]
struct Bounds {
    /// When to ask it to end.
    term: Duration,
    /// When it must be dead.
    kill: Duration,
    /// The same, should another lead already.
    replaced: Duration,
}

impl Bounds {
    fn new(asked: Duration, lease: Option<Lease>, args: &Args) -> Self {
        let most = asked + args.guard;
        match lease {
            None => Self { term: most.saturating_sub(args.grace), kill: most, replaced: most },
            Some(Lease { valid_for, step_down }) => {
                // Dead, and not only killed, when the first successor may act: ending takes a moment, and so may waking up
                // to see to it on a busy machine. A successor is as soon as the promise lets it.
                let step_down = step_down - (step_down / 2).min(ENDING);
                let kill = (asked + valid_for + step_down).min(most);
                let term = (asked + valid_for).min(kill.saturating_sub(step_down));
                Self { term, kill, replaced: kill.min(asked + step_down) }
            }
        }
    }
}

impl Keeper<'_> {
    /// Does what is due, and says how long nothing else will be.
    fn act(&mut self, now: Duration) -> Duration {
        if self.running.is_none() && !self.said_waiting && self.ending.is_none() {
            self.said_waiting = true;
            eprintln!("waiting to lead {}", self.args.group);
        }
        let Some(running) = &mut self.running else { return IDLE };
        let Bounds { term, kill, .. } = running.bounds;
        if running.stopping.is_none() && now >= term {
            eprintln!("no word from the agent: stopping the command");
            running.stop(kill);
        }
        match running.stopping {
            // The watchdog would have: it is stopped, or worse.
            Some(kill) if now >= kill + LATE => {
                running.end();
                IDLE
            }
            Some(kill) => (kill + LATE - now).min(IDLE),
            None => (term - now).min(IDLE),
        }
    }

    fn finished(&mut self) -> Option<Exit> {
        if self.running.is_some() { None } else { self.ending.take() }
    }

    fn hear(&mut self, news: News) -> Result<Option<Exit>, Failure> {
        match news {
            News::Word(asked, word) => self.on_word(asked, word),
            News::Ended(number, end) => Ok(self.on_ended(number, end)),
            News::Signal(signal) => {
                let code = u8::try_from(128 + signal).unwrap_or(u8::MAX);
                self.ending = Some(Exit::Code(code));
                self.stop();
                Ok(None)
            }
        }
    }

    fn on_word(&mut self, asked: Duration, word: Word) -> Result<Option<Exit>, Failure> {
        match word {
            Word::Leads { epoch, lease } => {
                let bounds = Bounds::new(asked, lease, self.args);
                match &mut self.running {
                    Some(running) if running.epoch == epoch => {
                        let before = running.bounds;
                        running.bounds = if bounds.kill > before.kill { bounds } else { before };
                        if running.stopping.is_none() {
                            running.leash.hold(running.bounds.times());
                        }
                    }
                    // Led, lost and led again between two questions: what the first one started must not go on.
                    Some(_) => self.stop(),
                    None if self.ending.is_none() && bounds.term > now() => {
                        return self.start(epoch, bounds, lease.is_some());
                    }
                    None => {}
                }
            }
            Word::DoesNot => {
                if self.running.is_some() && self.args.once {
                    self.ending.get_or_insert(Exit::No);
                }
                self.stop();
            }
            Word::Silence => {}
            Word::Gone => {
                let kill = now() + self.args.grace;
                if let Some(running) = self.running.as_mut().filter(|one| one.stopping.is_none()) {
                    eprintln!("the agent is gone: stopping the command");
                    running.stop(kill.min(running.bounds.kill));
                }
            }
            Word::Refused(why) => {
                if self.running.is_none() {
                    return Err(Failure::Other(why));
                }
                self.stop();
            }
        }
        Ok(None)
    }

    fn on_ended(&mut self, number: u64, end: End) -> Option<Exit> {
        let mut running = self.running.take_if(|running| running.number == number)?;
        if end == End::Lost && running.stopping.is_none() {
            eprintln!("the watchdog is gone: the command was ended");
        }
        // The watchdog has ended everything before it said so; without one, this does.
        running.end();
        self.said_waiting = false;
        match (running.stopping, end) {
            (None, End::Itself(code)) => Some(Exit::Code(code)),
            _ if self.args.once && self.ending.is_none() => Some(Exit::No),
            _ => None,
        }
    }

    fn start(
        &mut self,
        epoch: String,
        bounds: Bounds,
        leased: bool,
    ) -> Result<Option<Exit>, Failure> {
        self.started += 1;
        let number = self.started;
        let name = format!("bellwether-run-{}-{number}", std::process::id());
        let cgroup = if self.args.no_cgroup { None } else { Cgroup::create(&name) };
        let environment = self.environment(&epoch, leased.then_some(bounds.term));
        let path = cgroup.as_ref().map(Cgroup::path);
        let started = Leash::start(environment, &self.args.command, path, bounds.times());
        let listened = started.and_then(|leash| Ok((leash.listener()?, leash)));
        let (listener, leash) = listened.map_err(|error| {
            Failure::Other(format!("cannot start {:?}: {error}", self.args.command[0]))
        })?;
        let sender = self.sender.clone();
        thread::spawn(move || {
            let _ = sender.send(News::Ended(number, watchdog::listen(listener)));
        });
        eprintln!("leading {} under epoch {epoch}", self.args.group);
        self.running = Some(Running { leash, cgroup, number, epoch, bounds, stopping: None });
        Ok(None)
    }

    /// In which the watchdog, and so the command, is started.
    fn environment(&self, epoch: &str, valid_until: Option<Duration>) -> Command {
        let mut command = Command::new(OURSELVES);
        if let Some(until) = valid_until {
            // Of the clock that counts suspend, as it is now; while the command runs, it is put off.
            command.env("BELLWETHER_VALID_UNTIL_US", until.as_micros().to_string());
        }
        command
            .arg("watchdog")
            // The command has no business with our token.
            .env_remove("BELLWETHER_TOKEN")
            .env_remove("BELLWETHER_TOKEN_FILE")
            .env("BELLWETHER_GROUP", &self.args.group)
            .env("BELLWETHER_EPOCH", epoch);
        command
    }

    fn stop(&mut self) {
        let kill = now() + self.args.grace;
        if let Some(running) = &mut self.running {
            running.stop(kill.min(running.bounds.replaced));
        }
    }
}

impl Bounds {
    fn times(self) -> (Duration, Duration) {
        (self.term, self.kill)
    }
}

impl Running {
    fn stop(&mut self, kill: Duration) {
        if self.stopping.is_none() {
            self.stopping = Some(kill);
            self.leash.stop(kill);
        }
    }

    /// Ends everything that is left, the watchdog with it.
    fn end(&mut self) {
        let cgroup = self.cgroup.as_ref();
        if !tree::end(getpid(), cgroup, |_, _| {}) {
            eprintln!("error: something that the command has started cannot be ended");
        }
        if let Some(cgroup) = cgroup {
            cgroup.remove();
        }
    }
}

/// Whatever way we end, the command does.
impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// How to end if there is no such program, as far as that can be told before it is started: as if it had been.
fn missing(program: &str) -> Option<Exit> {
    let runnable = |path: &Path| {
        let meta = fs::metadata(path)?;
        match meta.is_file() && meta.permissions().mode() & 0o111 != 0 {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
        }
    };
    let found = if program.contains('/') {
        runnable(Path::new(program))
    } else {
        let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
        let tried = env::split_paths(&path).map(|folder| runnable(&folder.join(program)));
        let mut missing = Err(io::Error::from(io::ErrorKind::NotFound));
        for result in tried {
            match result {
                Ok(()) => return None,
                Err(error) if error.kind() != io::ErrorKind::NotFound => missing = Err(error),
                Err(_) => {}
            }
        }
        missing
    };
    let Err(error) = found else { return None };
    let (problem, code) = match error.kind() {
        io::ErrorKind::NotFound => ("there is no such program".to_owned(), 127),
        io::ErrorKind::PermissionDenied => ("is no program that may be run".to_owned(), 126),
        _ => (error.to_string(), 126),
    };
    eprintln!(
        "error: command {program:?}: {problem}\n  hint: after -- come a program, by its path or in PATH, and its arguments"
    );
    Some(Exit::Code(code))
}

/// Becomes the command, after asking the kernel to kill it with its parent.
pub(crate) fn become_command(args: &BecomeArgs) -> Result<Exit, Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::Other(format!("cannot be tied to its parent: {error}")))?;
    // It may have died before that.
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    if parent.and_then(|parent| u32::try_from(parent).ok()) != Some(args.parent) {
        return Ok(Exit::No);
    }
    if let Some(cgroup) = &args.cgroup {
        // Outside it the command is watched all the same, by its parents.
        let _ = Cgroup::known(cgroup).enter();
    }
    let (program, arguments) = args.command.split_first().ok_or(Failure::ClosedPipe)?;
    let error = Command::new(program).args(arguments).exec();
    eprintln!("error: {program}: {error}");
    Ok(Exit::Code(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }))
}

/// This program, also if its file has been replaced meanwhile.
const OURSELVES: &str = "/proc/self/exe";
/// Where programs are looked for if nobody says where.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// For what was killed to be gone, if the step-down time is that long.
const ENDING: Duration = Duration::from_millis(250);
/// After a question that nobody answered.
const SOON: Duration = Duration::from_millis(50);
/// By how much a watchdog may be late before what it should have done is done here.
const LATE: Duration = Duration::from_millis(150);
/// How long to sleep at most: time on the suspend-counting clock may pass unseen.
const IDLE: Duration = Duration::from_millis(100);
