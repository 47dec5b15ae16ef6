//! README and guide are true: every command in them is run, every piece of settings is checked.
//!
//! A page is run in a folder of its own, block after block. ` ```sh pi-2 ` is for a machine of that name; without a name all is
//! on one. A machine is a shell with its own ports on loopback; what the text says of addresses and of `/etc` is mapped to
//! these, as [`World::mapped`] tells. What stays in the foreground for people (an agent, `monitor`, `dev`, `play`) runs beside the rest.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, UdpSocket},
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        atomic::{AtomicU16, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_bellwether");

/// What is not run here, and why.
const SKIPPED: [(&str, &str); 5] = [
    ("cargo build --release", "it has been built"),
    (
        "packaging/deb target/release/bellwether .",
        "tests/packaging.rs does, where there is dpkg-deb",
    ),
    ("sudo apt install ./bellwether_*.deb", "would change this machine"),
    ("cargo run --release -- lab run --all --quick", "takes minutes; .ci/run does"),
    ("cargo test --workspace", "is what runs this"),
];

/// Stands in for what is about machines: other users, services, copies between them, addresses.
const STAND_INS: [(&str, &str); 8] = [
    ("cargo", r#"[ "$1 $2 $3" = "run --release --" ] && shift 3 && exec bellwether "$@"; exit 2"#),
    ("sudo", r#"if [ "$1" = -u ]; then shift 2; fi; exec "$@""#),
    ("chown", "exit 0"),
    (
        "scp",
        r#"for last; do :; done; to="$PAGE/${last%%:*}${last#*:}"; mkdir -p "$to"; cp "$@" "$to" 2>&1 | grep -v "$last"; exit 0"#,
    ),
    (
        "systemctl",
        r#"case "$1 $2" in
"enable --now") bellwether agent --config "$ROOT/etc/bellwether/bellwether.toml" --data-dir "$ROOT/state" & echo $! >"$ROOT/pid" ;;
"stop bellwether") kill "$(cat "$ROOT/pid")" ;;
*) exit 2 ;;
esac"#,
    ),
    // By hooks, which have nothing of our environment but stay in the agent's folder.
    ("ip", r#"echo "ip $*" >>changes"#),
    ("arping", r#"echo "arping $*" >>changes"#),
    ("job", r#"echo "the job ran""#),
];

struct Block {
    machine: String,
    line: usize,
    text: String,
}

/// The blocks of a page in one of these languages.
fn blocks(page: &str, languages: &[&str]) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|l| *l != "```").collect();
        let mut words = info.split_whitespace();
        let language = words.next().unwrap_or_default();
        if !languages.contains(&language) {
            continue;
        }
        let commands = body.iter().filter_map(|line| match language {
            "console" => line.strip_prefix("$ "),
            _ => Some(*line),
        });
        let text = commands.map(|line| format!("{line}\n")).collect();
        let machine = words.next().unwrap_or("here").to_owned();
        found.push(Block { machine, line: at + 1, text });
    }
    found
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> BTreeMap<String, String> {
    let guide = repository().join("docs/guide");
    let guides = fs::read_dir(guide).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| {
        let name = path.strip_prefix(repository()).unwrap().display().to_string();
        (name, fs::read_to_string(path).unwrap())
    };
    guides.chain([repository().join("README.md")]).map(read).collect()
}

/// Where one page is run.
struct World {
    folder: tempfile::TempDir,
    machines: BTreeMap<String, Machine>,
}

struct Machine {
    root: PathBuf,
    bind: u16,
    api: u16,
    shell: Child,
    commands: ChildStdin,
    said: Receiver<String>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        // With all it has started.
        let _ = kill_process_group(Pid::from_child(&self.shell), Signal::KILL);
        let _ = self.shell.wait();
    }
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(BINARY, bin.join("bellwether")).unwrap();
        for (name, text) in STAND_INS {
            fs::write(bin.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { folder, machines: BTreeMap::new() }
    }

    fn add(&mut self, name: &str) {
        if self.machines.contains_key(name) {
            return;
        }
        let [bind, api] = [free_port(), free_port()];
        let root = self.folder.path().join(name);
        fs::create_dir_all(root.join("usr/local/sbin")).unwrap();
        for shared in ["scenarios", "packaging"] {
            symlink(repository().join(shared), root.join(shared)).unwrap();
        }
        let path =
            format!("{}/bin:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("BELLWETHER_") {
                command.env_remove(name);
            }
        }
        if name != "here" {
            command.env("BELLWETHER_NAME", name);
        }
        command.env("BELLWETHER_BIND", format!("127.0.0.1:{bind}"));
        command.env("BELLWETHER_API", format!("127.0.0.1:{api}"));
        command.env("BELLWETHER_HTTP_ADDR", format!("127.0.0.1:{api}"));
        command.envs([("PATH", path.as_str()), ("NO_COLOR", "1")]);
        command.env("ROOT", &root).env("PAGE", self.folder.path()).current_dir(&root);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().expect("bash");
        let mut commands = shell.stdin.take().unwrap();
        writeln!(commands, "exec 2>&1; set -euo pipefail; trap 'echo; echo failed' EXIT").unwrap();
        let output = BufReader::new(shell.stdout.take().unwrap());
        let (sender, said) = mpsc::channel();
        thread::spawn(move || {
            output.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        self.machines.insert(name.to_owned(), Machine { root, bind, api, shell, commands, said });
    }

    /// The text with this world's addresses and folders.
    fn mapped(&self, machine: &str, text: &str) -> String {
        let here = &self.machines[machine];
        let (root, api) = (here.root.display(), format!("127.0.0.1:{}", here.api));
        let mut text = text
            .replace("/etc/bellwether", &format!("{root}/etc/bellwether"))
            .replace("/usr/local/sbin", &format!("{root}/usr/local/sbin"))
            .replace("127.0.0.1:7739", &api)
            .replace("10.0.0.7:7738", "127.0.0.1:9");
        // What is copied elsewhere goes to the folder as it is called there.
        for (other, machine) in &self.machines {
            text = text.replace(&format!("{other}:{root}"), &format!("{other}:"));
            if let Some(number) = other.strip_prefix("pi-") {
                let address = format!("192.168.1.1{number}:7738");
                text = text.replace(&address, &format!("127.0.0.1:{}", machine.bind));
            }
        }
        text
    }

    /// Runs a block to its end, which must come: what goes wrong may be asked for again and again.
    fn run(&mut self, page: &str, block: &Block, skipped: &mut BTreeSet<&'static str>) {
        let place = format!("{page}:{}", block.line);
        let mut script = String::new();
        for line in block.text.lines() {
            let bare = line.split(" #").next().unwrap().trim();
            if let Some((command, why)) = SKIPPED.iter().find(|(command, _)| *command == bare) {
                println!("{place}: not run: {bare}: {why}");
                skipped.insert(command);
                continue;
            }
            if bare.starts_with("curl ") && Command::new("curl").arg("-V").output().is_err() {
                println!("{place}: not run: {bare}: there is no curl here");
                continue;
            }
            println!("{place}: {}: {bare}", block.machine);
            script += &beside(&fewer(bare));
            script.push('\n');
        }
        let script = self.mapped(&block.machine, &script);
        let machine = self.machines.get_mut(&block.machine).unwrap();
        let file = machine.root.join("block");
        fs::write(&file, &script).unwrap();
        writeln!(machine.commands, "source {} </dev/null; echo; echo done with it", file.display())
            .unwrap();
        let (mut said, end) = (Vec::new(), Instant::now() + LONGEST);
        loop {
            match machine.said.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line == "done with it" => break,
                Ok(line) if line == "failed" => panic!("{place}:\n{script}\n{}", said.join("\n")),
                Ok(line) => said.push(line),
                Err(why) => panic!("{place}: {why}\n{script}\nsaid:\n{}", said.join("\n")),
            }
        }
    }
}

/// A port that nobody has, and that nobody gets who asks the system for any.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 12_000 + u16::try_from(std::process::id() % 200).unwrap() * 50;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        let at = ("127.0.0.1", port);
        if UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok() {
            return port;
        }
    }
}

/// For a block, on a machine that is busy with others.
const LONGEST: Duration = Duration::from_secs(180);

/// The same, less often.
fn fewer(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let most = match &*words[at - 1] {
            "--runs" => 10,
            "--seeds" => 1,
            _ => continue,
        };
        let asked: u32 = words[at].parse().unwrap();
        words[at] = asked.min(most).to_string();
    }
    words.join(" ")
}

/// What stays in the foreground for people runs beside what follows.
fn beside(line: &str) -> String {
    let until =
        |what: &str| format!("for i in $(seq 100); do {what} && break; sleep 0.1; done; {what}");
    if line.starts_with("bellwether agent ") {
        return format!("{line} & {}", until("bellwether leaders >/dev/null 2>&1"));
    }
    let plays = line.starts_with("bellwether play") || line.ends_with(" play");
    if line.starts_with("bellwether monitor") || plays {
        // Ended after a moment, and still running by then.
        return format!("code=0; timeout 1 {line} || code=$?; [ $code = 124 ]");
    }
    if line.ends_with(" dev") {
        let keys = format!("(sleep 3; echo k; sleep 3; echo q) | {line} >narrated");
        return format!("{keys}; cat narrated; grep -q 'all 4 agree' narrated");
    }
    line.to_owned()
}

#[test]
fn every_command_in_readme_and_guide_works() {
    let pages = pages();
    let (mut skipped, mut worked) = (BTreeSet::new(), 0);
    thread::scope(|scope| {
        let runs: Vec<_> = pages.iter().map(|page| scope.spawn(move || run(page))).collect();
        for (more, count) in runs.into_iter().map(|run| run.join().expect("a page that works")) {
            skipped.extend(more);
            worked += count;
        }
    });
    assert!(worked > 15, "{worked} blocks");
    let idle = SKIPPED.iter().filter(|(command, _)| !skipped.contains(command));
    assert_eq!(idle.count(), 0, "in the list of what is not run, and in no page");
}

/// Runs a page; what was left out, and how many blocks there were.
fn run((page, text): (&String, &String)) -> (BTreeSet<&'static str>, usize) {
    let mut skipped = BTreeSet::new();
    let blocks = blocks(text, &["sh", "console"]);
    let mut world = World::new();
    blocks.iter().for_each(|block| world.add(&block.machine));
    blocks.iter().for_each(|block| world.run(page, block, &mut skipped));
    if page.ends_with("virtual-ip.md") {
        let changes = fs::read_to_string(world.machines["here"].root.join("changes"));
        let changes = changes.expect("the hook ran");
        assert!(changes.contains("ip address replace 192.168.1.80/24 dev eth0"), "{changes}");
    }
    (skipped, blocks.len())
}

#[test]
fn every_piece_of_settings_is_right() {
    let folder = tempfile::tempdir().unwrap();
    let hook = repository().join("packaging/examples/move-address").display().to_string();
    let mut checked = 0;
    let reference = fs::read_to_string(repository().join("docs/agent.md")).unwrap();
    // The hook in the reference names a program that is nobody's.
    let reference = reference.replace("\"web\"  ", "\"default\"");
    for (page, text) in pages().into_iter().chain([("docs/agent.md".to_owned(), reference)]) {
        for block in blocks(&text, &["toml"]) {
            let path = folder.path().join("piece.toml");
            fs::write(&path, block.text.replace("/usr/local/sbin/move-address", &hook)).unwrap();
            let mut command = Command::new(BINARY);
            command.args([
                "config",
                "check",
                "--no-files",
                "--cluster",
                "a",
                "--key-file",
                "/k",
                "--config",
            ]);
            let output = command.arg(&path).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{page}:{}: {said}", block.line);
            println!("{page}:{}: settings, right", block.line);
            checked += 1;
        }
    }
    assert!(checked >= 5, "{checked} pieces");
}

/// Rows of the table that `agent --help` ends with: its columns are two spaces apart or more.
fn modes() -> Vec<[String; 3]> {
    let output = Command::new(BINARY).args(["agent", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, table) = help.split_once("May it run twice?").expect("a table of modes");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with("  "));
    let columns = rows.map(|row| {
        let cells = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect::<Vec<_>>().try_into().expect("three columns")
    });
    columns.collect()
}

#[test]
fn pages_say_which_mode_is_for_what_as_the_help_does() {
    let modes = modes();
    assert_eq!(modes.len(), 5, "{modes:?}");
    for page in ["README.md", "docs/guide/first-cluster.md", "docs/guide/singleton-job.md"] {
        let text = fs::read_to_string(repository().join(page)).unwrap();
        assert!(text.contains("| may it run twice? | mode | where |"), "{page}");
        for [twice, mode, place] in &modes {
            let row = format!("| {twice} | `{mode}` | {place} |");
            assert!(text.contains(&row), "{page} lacks {row}");
        }
    }
}

#[test]
fn the_embedded_agent_is_the_example_that_is_compiled() {
    let page = fs::read_to_string(repository().join("docs/guide/embedding.md")).unwrap();
    let example = fs::read_to_string(repository().join("crates/agent/examples/embed.rs")).unwrap();
    let [program] = &blocks(&page, &["rust"])[..] else { panic!("one program") };
    assert_eq!(program.text, example);
}

#[test]
fn the_table_of_timings_is_what_config_explain_says() {
    let page = fs::read_to_string(repository().join("docs/guide/timings.md")).unwrap();
    for profile in ["local", "lan", "wan", "mesh"] {
        let mut command = Command::new(BINARY);
        command.args(["config", "explain", "--json", "--members", "16", "--cluster", "a"]);
        let output = command.args(["--key-file", "/k", "--timing", profile]).output().unwrap();
        let explained: Value = serde_json::from_slice(&output.stdout).unwrap();
        let number = |value: &Value| value.as_f64().unwrap();
        let election = &explained["elections"][0];
        let (typical, worst) = (number(&election["typical_s"]), number(&election["worst_s"]));
        let kbit = number(&explained["idle_kbit_per_s"]);
        let row = format!("| {typical:.1} s | {worst:.1} s | {kbit:.0} kbit/s |");
        let said = page.lines().find(|line| line.starts_with(&format!("| `{profile}`"))).unwrap();
        assert!(said.ends_with(&row), "{said}\n{row}");
    }
}
