//! The page "a job on one machine at a time", on three hosts: its files, its election, its `run` on each, started again
//! whenever it ends. Whatever happens to the machine that has the job, no two jobs live at once.
//!
//! ```sh
//! cargo test --release -p bellwether --test hosts singleton -- --ignored --nocapture
//! ```

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bellwether_hosts::{Net, Spread};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::{
    agents::{binary, until},
    hosts, seconds,
};

/// A job that writes down when it lives, and ends when it is asked to, a little later.
const JOB: &str =
    "trap 'sleep 0.1; exit 0' TERM; while :; do echo $$ $(date +%s%N); sleep 0.02; done >> ";
/// What people do about a service that has ended.
const AGAIN: &str = "while :; do \"$@\"; sleep 0.2; done";

/// What happens to the machine that has the job.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The agent alone is killed, and started again after some seconds.
    AgentKilled,
    /// The cable is pulled, and plugged in again after some seconds.
    Cut,
    /// The agent is stopped, and goes on after some seconds.
    AgentStopped,
    /// Agent, `run` and job are killed together, as where the power fails, and started again after some seconds.
    PowerCut,
}

const TRIALS: usize = 20;
const FAULTS: [Fault; 4] = [Fault::AgentKilled, Fault::Cut, Fault::AgentStopped, Fault::PowerCut];

/// One of the three.
struct Machine {
    host: usize,
    folder: PathBuf,
    agent: Option<Child>,
    service: Option<Child>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.power_off();
    }
}

impl Machine {
    fn name(&self) -> String {
        format!("pi-{}", self.host + 1)
    }

    fn start_agent(&mut self, net: &Net) {
        let mut command = net.host(self.host).command(&binary());
        command.args(["agent", "--name", &self.name(), "--config"]);
        command.arg(self.folder.join("bellwether.toml"));
        command.args(["--bind", &format!("{}:7738", Net::address(self.host))]);
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("a log"));
        self.agent = Some(command.spawn().expect("the binary under test runs"));
    }

    fn start_service(&mut self, net: &Net) {
        let job = format!("{JOB}{}", self.jobs().display());
        let mut command = net.host(self.host).command("setsid");
        command.args(["sh", "-c", AGAIN, "again", &binary()]);
        command.args(["run", "backup", "--", "sh", "-c", &job]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.service = Some(command.spawn().expect("a shell"));
    }

    /// Nothing says good-bye.
    fn power_off(&mut self) {
        for service in self.service.iter_mut() {
            let _ = kill_process_group(Pid::from_child(service), Signal::KILL);
            let _ = service.wait();
        }
        // The job has a group of its own, which its guardian ends with it; a machine without power has neither.
        let lives = self.lives();
        let at_work =
            lives.iter().filter(|(_, life)| nanos().saturating_sub(life.1) < 1_000_000_000);
        for (pid, _) in at_work {
            if let Some(pid) = Pid::from_raw(*pid) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
        }
        for agent in self.agent.iter_mut() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        (self.agent, self.service) = (None, None);
    }

    fn signal_agent(&self, signal: Signal) {
        let agent = self.agent.as_ref().expect("it runs");
        kill_process(Pid::from_child(agent), signal).expect("it runs");
    }

    fn jobs(&self) -> PathBuf {
        self.folder.join("jobs")
    }

    /// From when to when each of its jobs lived, by process.
    fn lives(&self) -> BTreeMap<i32, (u128, u128)> {
        let mut lives = BTreeMap::new();
        for line in fs::read_to_string(self.jobs()).unwrap_or_default().lines() {
            let Some((pid, time)) = line.split_once(' ') else { continue };
            let (Ok(pid), Ok(time)) = (pid.parse(), time.parse()) else { continue };
            let life = lives.entry(pid).or_insert((time, time));
            life.1 = time;
        }
        lives
    }

    /// Whether a job has just written here.
    fn is_at_work(&self) -> bool {
        self.lives().values().any(|life| nanos().saturating_sub(life.1) < 200_000_000)
    }
}

fn nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos()
}

/// The files of the page's first step, with its election.
fn files(folder: &Path) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/singleton-job.md");
    let page = fs::read_to_string(page).expect("the page");
    let election = page.split("<<'END'\n").nth(1).and_then(|rest| rest.split("END\n").next());
    let mut init = Command::new(binary());
    init.arg("init").arg(folder).args(["--cluster", "garden"]).stdout(Stdio::null());
    assert!(init.status().expect("the binary under test runs").success());
    let settings = folder.join("bellwether.toml");
    let text = fs::read_to_string(&settings).expect("settings");
    let join = format!("join = [\"{}:7738\", \"{}:7738\"]", Net::address(0), Net::address(1));
    assert!(text.contains("join = []"), "{text}");
    let text = text.replace("join = []", &join) + election.expect("the page's election");
    fs::write(settings, text).expect("settings");
}

#[test]
#[ignore = "20 faults, five minutes"]
fn singleton_of_the_guide_survives_twenty_faults() {
    let Some(net) = hosts(3) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let first = folder.path().join("pi-1");
    files(&first);
    let mut machines: Vec<Machine> = Vec::new();
    for host in 0..3 {
        let copy = folder.path().join(format!("pi-{}", host + 1));
        if host > 0 {
            fs::create_dir(&copy).expect("a folder");
            for file in ["bellwether.toml", "cluster.key", "api.token"] {
                fs::copy(first.join(file), copy.join(file)).expect("a copy");
            }
        }
        machines.push(Machine { host, folder: copy, agent: None, service: None });
    }
    for machine in &mut machines {
        machine.start_agent(&net);
        machine.start_service(&net);
    }
    let mut moved = Spread::new();
    for trial in 0..TRIALS {
        let fault = FAULTS[trial % FAULTS.len()];
        let at = until(seconds(60), "one machine has the job", || {
            machines.iter().position(Machine::is_at_work)
        });
        // Not always at the same time of a lease.
        thread::sleep(Duration::from_millis(1_000 + 137 * trial as u64 % 800));
        let begun = nanos();
        match fault {
            Fault::AgentKilled => {
                let mut agent = machines[at].agent.take().expect("it runs");
                agent.kill().and_then(|()| agent.wait().map(drop)).expect("it ran");
            }
            Fault::Cut => net.unplug(machines[at].host),
            Fault::AgentStopped => machines[at].signal_agent(Signal::STOP),
            Fault::PowerCut => machines[at].power_off(),
        }
        let others = |life: &(u128, u128)| life.0 > begun;
        let next = until(seconds(30), "another machine has the job", || {
            let all = machines.iter().enumerate().filter(|(other, _)| *other != at);
            all.flat_map(|(_, machine)| machine.lives().into_values()).filter(others).min()
        });
        moved.add((next.0 - begun) as f64 / 1e9);
        thread::sleep(seconds(3));
        match fault {
            Fault::AgentKilled => machines[at].start_agent(&net),
            Fault::Cut => net.plug(machines[at].host),
            Fault::AgentStopped => machines[at].signal_agent(Signal::CONT),
            Fault::PowerCut => {
                machines[at].start_agent(&net);
                machines[at].start_service(&net);
            }
        }
        thread::sleep(seconds(4));
    }
    let mut lives: Vec<(u128, u128, String, i32)> = Vec::new();
    for machine in &machines {
        for (pid, (from, to)) in machine.lives() {
            lives.push((from, to, machine.name(), pid));
        }
    }
    lives.sort();
    let gaps = lives.windows(2).map(|pair| (pair[1].0 as f64 - pair[0].1 as f64) / 1e6);
    println!(
        "{TRIALS} faults on three hosts, {} jobs: two at once never; the job elsewhere after {:.2} s (median), {:.2} s \
         (longest); at least {:.0} ms between two jobs",
        lives.len(),
        moved.median(),
        moved.most(),
        gaps.fold(f64::INFINITY, f64::min),
    );
    assert!(lives.len() > TRIALS, "{lives:?}");
    for pair in lives.windows(2) {
        assert!(pair[0].1 < pair[1].0, "two jobs at once: {pair:?}");
    }
}
