//! The process between `run` and its command.
//!
//! It starts the command and knows until when that may run. It ends the command and everything that the command has started
//! when that time is over, when it is told to, and when `run` is there no more. So it does not matter what becomes of `run`:
//! stopped, it sends no later time; killed, it closes the connection. Should this process be killed instead, `run` finds the
//! connection closed, is the parent of all that is left, and ends it.
//!
//! Packets, one to a message: `hold TERM KILL` (microseconds of the clock that counts suspend) and `stop KILL` come in, the
//! first with the command's standard input; `ended CODE`, if the command ended by itself, or `stopped` goes out.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg,
        socketpair,
    },
    process::{
        Pid, PidfdFlags, Signal, WaitStatus, getpid, kill_process_group, pidfd_open,
        set_child_subreaper,
    },
    time::Timespec,
};

use super::{IDLE, now, tree};
use crate::output::{Exit, Failure};

/// What the hidden verb is given.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The command's cgroup, if it has one
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// How a command came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// By itself, with this exit code.
    Itself(u8),
    /// Because its time was over.
    Stopped,
    /// Its watchdog is there no more, and whatever it watched may live.
    Lost,
}

/// The other end of a watchdog.
pub(super) struct Leash {
    control: OwnedFd,
}

impl Leash {
    /// Starts one that starts the command in this environment.
    pub(super) fn start(
        mut environment: Command,
        command: &[String],
        cgroup: Option<&Path>,
        times: (Duration, Duration),
    ) -> io::Result<Self> {
        let (control, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        if let Some(cgroup) = cgroup {
            environment.arg("--cgroup").arg(cgroup);
        }
        // In a group of its own: what a terminal sends to us is not for it.
        environment.arg("--").args(command).stdin(Stdio::from(theirs)).process_group(0);
        // How it ends it says itself, and what is left of it is found among our children.
        drop(environment.spawn()?);
        let stdin = io::stdin();
        let descriptors = [stdin.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        with.push(SendAncillaryMessage::ScmRights(&descriptors));
        let packet = hold(times);
        sendmsg(&control, &[IoSlice::new(packet.as_bytes())], &mut with, SendFlags::NOSIGNAL)?;
        Ok(Self { control })
    }

    /// For whoever waits for the end.
    pub(super) fn listener(&self) -> io::Result<OwnedFd> {
        self.control.as_fd().try_clone_to_owned()
    }

    /// It may run until then.
    pub(super) fn hold(&self, times: (Duration, Duration)) {
        self.say(&hold(times));
    }

    /// It is to end now, and be dead by then.
    pub(super) fn stop(&self, kill: Duration) {
        self.say(&format!("stop {}", kill.as_micros()));
    }

    fn say(&self, packet: &str) {
        // Not waited for: one that does not listen knows until when the command may run, and so do we.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = send(&self.control, packet.as_bytes(), flags);
    }
}

fn hold((term, kill): (Duration, Duration)) -> String {
    format!("hold {} {}", term.as_micros(), kill.as_micros())
}

/// Waits for the end.
pub(super) fn listen(control: impl AsFd) -> End {
    let mut packet = [0; PACKET];
    match recv(&control, &mut packet, RecvFlags::empty()) {
        Ok((length @ 1.., _)) => {
            let text = String::from_utf8_lossy(&packet[..length]);
            let code = text.strip_prefix("ended ").and_then(|code| code.parse().ok());
            code.map_or(End::Stopped, End::Itself)
        }
        Ok(_) | Err(_) => End::Lost,
    }
}

/// The hidden verb.
pub(crate) fn run(args: &Args) -> Result<Exit, Failure> {
    let failed = |what: &str, error: io::Error| Failure::Other(format!("{what}: {error}"));
    let control = io::stdin().as_fd().try_clone_to_owned();
    let control = control.map_err(|error| failed("nobody to obey", error))?;
    set_child_subreaper(Some(getpid()))
        .map_err(|error| failed("cannot become the parent of orphans", error.into()))?;
    // Whoever ends a service asks all of its processes to end. This one ends with the command, and after it; and what is
    // only handled here is not ignored by the command.
    let heard = std::sync::Arc::default();
    for signal in [15, 2, 1, 3] {
        signal_hook::flag::register(signal, std::sync::Arc::clone(&heard))
            .map_err(|error| failed("cannot watch signals", error))?;
    }
    let (stdin, times) = first(&control).map_err(|error| failed("nobody to obey", error))?;
    let mut watchdog = Watchdog::start(args, stdin, times)?;
    let end = watchdog.watch(&control);
    let end = watchdog.finish(end);
    let words = match end {
        End::Itself(code) => format!("ended {code}"),
        End::Stopped | End::Lost => "stopped".to_owned(),
    };
    // There may be nobody to tell.
    let _ = send(&control, words.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    Ok(Exit::Yes)
}

type Times = (Duration, Duration);

/// The command's standard input, and until when it may run.
fn first(control: &OwnedFd) -> io::Result<(OwnedFd, Times)> {
    let mut packet = [0; PACKET];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut packet)];
    let read = recvmsg(control, &mut parts, &mut with, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let stdin = with.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    match (stdin, order(&packet[..read])) {
        (Some(stdin), Some(Order::Hold(times))) => Ok((stdin, times)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

enum Order {
    Hold(Times),
    Stop(Duration),
}

fn order(packet: &[u8]) -> Option<Order> {
    let text = std::str::from_utf8(packet).ok()?;
    let (word, times) = text.split_once(' ')?;
    let times: Option<Vec<Duration>> =
        times.split(' ').map(|time| time.parse().ok().map(Duration::from_micros)).collect();
    match (word, &times?[..]) {
        ("hold", &[term, kill]) => Some(Order::Hold((term, kill))),
        ("stop", &[kill]) => Some(Order::Stop(kill)),
        _ => None,
    }
}

struct Watchdog {
    command: Pid,
    /// Readable once the command has ended.
    ended: OwnedFd,
    cgroup: Option<tree::Cgroup>,
    term: Duration,
    kill: Duration,
    stopping: bool,
    /// How the command ended, if it has.
    status: Option<WaitStatus>,
}

impl Watchdog {
    fn start(args: &Args, stdin: OwnedFd, (term, kill): Times) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::Other(format!("cannot start {:?}: {error}", args.command[0]))
        };
        let mut command = Command::new(super::OURSELVES);
        command.args(["become", &std::process::id().to_string()]);
        if let Some(cgroup) = &args.cgroup {
            command.arg("--cgroup").arg(cgroup);
        }
        command.arg("--").args(&args.command).stdin(Stdio::from(stdin)).process_group(0);
        let child = command.spawn().map_err(failed)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
        let cgroup = args.cgroup.as_deref().map(tree::Cgroup::known);
        Ok(Self { command: pid, ended, cgroup, term, kill, stopping: false, status: None })
    }

    /// Returns once nothing may run any more.
    fn watch(&mut self, control: &OwnedFd) -> End {
        loop {
            let now = now();
            if now >= self.kill {
                return End::Stopped;
            }
            if now >= self.term {
                self.ask_to_end();
            }
            let next = if self.stopping { self.kill } else { self.term };
            let ready = [control.as_fd(), self.ended.as_fd()];
            let [said, _] = wait_for(ready, next.saturating_sub(now).min(IDLE));
            // The command, and orphans it has left.
            tree::reap(|pid, how| self.note(pid, how));
            if self.status.is_some() {
                return if self.stopping { End::Stopped } else { End::Itself(0) };
            }
            if said {
                let mut packet = [0; PACKET];
                match recv(control, &mut packet, RecvFlags::DONTWAIT) {
                    Ok((length @ 1.., _)) => self.obey(&packet[..length]),
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                    // `run` is there no more.
                    Ok(_) | Err(_) => return End::Lost,
                }
            }
        }
    }

    fn obey(&mut self, packet: &[u8]) {
        match order(packet) {
            Some(Order::Hold((term, kill))) if !self.stopping => {
                (self.term, self.kill) = (term, kill);
            }
            Some(Order::Stop(kill)) => {
                self.kill = self.kill.min(kill);
                self.ask_to_end();
            }
            Some(Order::Hold(_)) | None => {}
        }
    }

    fn ask_to_end(&mut self) {
        if !self.stopping {
            self.stopping = true;
            for signal in [Signal::TERM, Signal::CONT] {
                // One that is stopped would not hear of it. It may have ended by itself.
                let _ = kill_process_group(self.command, signal);
            }
            tree::term_strays(getpid(), self.command);
        }
    }

    fn note(&mut self, pid: Pid, how: WaitStatus) {
        if pid == self.command {
            self.status = Some(how);
        }
    }

    /// Ends all that is left, and says how the command ended.
    fn finish(&mut self, end: End) -> End {
        let cgroup = self.cgroup.take();
        let gone = tree::end(getpid(), cgroup.as_ref(), |pid, how| self.note(pid, how));
        if !gone {
            eprintln!("error: something that the command has started cannot be ended");
        }
        if let Some(cgroup) = &cgroup {
            cgroup.remove();
        }
        match end {
            End::Itself(_) => End::Itself(self.status.map_or(u8::MAX, code)),
            end => end,
        }
    }
}

/// Waits for so long, and says which of these have something to say.
fn wait_for<const N: usize>(descriptors: [BorrowedFd<'_>; N], wait: Duration) -> [bool; N] {
    let mut ready = descriptors.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN));
    let wait = Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
    // Interrupted is as good as in vain.
    let _ = poll(&mut ready, Some(&wait));
    ready.map(|one| !one.revents().is_empty())
}

/// As shells have it.
fn code(status: WaitStatus) -> u8 {
    let signalled = || status.terminating_signal().map(|signal| 128 + signal);
    let code = status.exit_status().or_else(signalled);
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Bytes of a message at most.
const PACKET: usize = 64;
