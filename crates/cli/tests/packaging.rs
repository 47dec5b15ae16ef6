//! What packages contain: the manual is that of this command line, the Debian package builds, the unit and every example are
//! right, and a service manager is told what it waits for.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

const BINARY: &str = env!("CARGO_BIN_EXE_bellwether");

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").canonicalize().unwrap()
}

fn bellwether(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BELLWETHER_") {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {status}\n{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: there is no {program} here");
    }
    there
}

#[test]
fn the_manual_is_that_of_this_command_line() {
    let folder = packaging().join("man");
    if std::env::var_os("BLESS").is_some() {
        fs::remove_dir_all(&folder).unwrap();
        done(&mut bellwether(&["man", "--out", folder.to_str().unwrap()]));
    }
    let fresh = tempfile::tempdir().unwrap();
    done(&mut bellwether(&["man", "--out", fresh.path().to_str().unwrap()]));
    let (kept, fresh) = (files(&folder), files(fresh.path()));
    assert_eq!(kept["bellwether.1"], done(&mut bellwether(&["man"])));
    let names = kept.keys().chain(fresh.keys());
    let stale: Vec<&String> = names.filter(|name| kept.get(*name) != fresh.get(*name)).collect();
    assert!(stale.is_empty(), "BLESS=1 writes these again: {stale:?}");
    assert!(!fresh.keys().any(|name| name.contains("become")), "hidden verbs have no page");
}

#[test]
fn completions_know_the_verbs_and_are_not_nonsense_to_the_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = done(&mut bellwether(&["completions", shell]));
        assert!(text.contains("is-leader") && !text.contains("become"), "{shell}: {text}");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        if matches!(shell, "bash" | "zsh" | "fish") && is_there(shell) {
            done(Command::new(shell).arg("-n").arg(file.path()));
        }
    }
    assert_eq!(bellwether(&["completions", "tcsh"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn every_example_is_accepted() {
    let folder = packaging().join("examples");
    let hook = folder.join("move-address").display().to_string();
    let scratch = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for (name, text) in files(&folder).iter().filter(|(name, _)| name.ends_with(".toml")) {
        let path = scratch.path().join(name);
        fs::write(&path, text.replace("/usr/local/sbin/move-address", &hook)).unwrap();
        done(&mut bellwether(&[
            "config",
            "check",
            "--no-files",
            "--config",
            path.to_str().unwrap(),
        ]));
        seen += 1;
    }
    assert!(seen >= 4, "{seen} examples");
}

/// Unknown variables and wrong values are refused, so that this notices a setting that was renamed.
#[test]
fn the_variables_in_manifests_and_container_are_settings() {
    for (name, text) in files(&packaging().join("kubernetes")) {
        let mut command = bellwether(&["config", "check", "--no-files"]);
        let (mut variable, mut count) = (None, 0);
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("- name: ") {
                variable = Some(name).filter(|name| name.starts_with("BELLWETHER_"));
            } else if let (Some(name), Some(value)) = (variable, line.strip_prefix("value: ")) {
                command.env(name, value);
                count += 1;
            }
        }
        assert!(count >= 6, "{name}: {count} variables");
        done(&mut command);
    }
    let text = fs::read_to_string(packaging().join("Containerfile")).unwrap();
    let variables = text.lines().filter_map(|line| line.strip_prefix("ENV ")?.split_once('='));
    let mut command =
        bellwether(&["config", "check", "--no-files", "--cluster", "a", "--key-file", "/k"]);
    let variables: Vec<_> = variables.collect();
    assert!(!variables.is_empty());
    done(command.envs(variables));
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    if !is_there("systemd-analyze") {
        return;
    }
    let unit = fs::read_to_string(packaging().join("systemd/bellwether.service")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bellwether.service");
    fs::write(&path, unit.replace("/usr/bin/bellwether", BINARY)).unwrap();
    let mut command = Command::new("systemd-analyze");
    let output = command.args(["verify", "--man=no"]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // It looks at units of the machine too; only what it says of ours counts.
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("bellwether")).collect();
    assert!(output.status.success() && ours.is_empty(), "{}: {said}", output.status);
    let drop_in = fs::read_to_string(packaging().join("systemd/hooks-network.conf")).unwrap();
    fs::create_dir(folder.path().join("bellwether.service.d")).unwrap();
    fs::write(folder.path().join("bellwether.service.d/network.conf"), drop_in).unwrap();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn scripts_are_scripts() {
    for script in
        ["deb", "debian/postinst", "debian/prerm", "debian/postrm", "examples/move-address"]
            .into_iter()
            .chain(["openwrt/files/bellwether.init"])
    {
        done(Command::new("sh").arg("-n").arg(packaging().join(script)));
    }
}

#[test]
fn the_debian_package_builds_and_holds_what_it_should() {
    if !is_there("dpkg-deb") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    done(Command::new(packaging().join("deb")).arg(BINARY).arg(folder.path()));
    let package = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let name = package.file_name().unwrap().to_str().unwrap().to_owned();
    let version = env!("CARGO_PKG_VERSION");
    assert!(name.starts_with(&format!("bellwether_{version}_")), "{name}");
    let field = |name| done(Command::new("dpkg-deb").arg("-f").arg(&package).arg(name));
    assert_eq!(
        (field("Package"), field("Version")),
        ("bellwether\n".into(), format!("{version}\n"))
    );
    assert!(field("Depends").starts_with("libc6 (>= 2."), "{}", field("Depends"));
    let root = folder.path().join("root");
    done(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    for file in [
        "usr/lib/systemd/system/bellwether.service",
        "usr/lib/sysusers.d/bellwether.conf",
        "usr/share/man/man1/bellwether-run.1.gz",
        "usr/share/bash-completion/completions/bellwether",
        "usr/share/doc/bellwether/copyright",
        "usr/share/doc/bellwether/examples/mesh.toml",
    ] {
        assert!(root.join(file).is_file(), "{file} is missing");
    }
    let installed = root.join("usr/bin/bellwether");
    assert_eq!(done(Command::new(installed).arg("--version")), format!("bellwether {version}\n"));
    let listed = done(Command::new("dpkg-deb").arg("-c").arg(&package));
    assert!(listed.lines().all(|line| line.contains("root/root")), "{listed}");
    let scripts = folder.path().join("control");
    done(Command::new("dpkg-deb").arg("-e").arg(&package).arg(&scripts));
    assert!(["postinst", "prerm", "postrm"].iter().all(|name| scripts.join(name).is_file()));
}

/// Stands where a service manager would.
struct Manager {
    socket: UnixDatagram,
    folder: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        Self { socket, folder }
    }

    /// What is said within so long, if anything.
    fn heard(&self, within: Duration) -> Option<String> {
        let mut text = [0; 256];
        self.socket.set_read_timeout(Some(within)).unwrap();
        let length = self.socket.recv(&mut text).ok()?;
        Some(String::from_utf8(text[..length].to_vec()).unwrap())
    }

    /// The next that is said besides that all is well.
    fn news(&self) -> String {
        let late = Instant::now() + Duration::from_secs(10);
        while Instant::now() < late {
            match self.heard(Duration::from_secs(10)) {
                Some(text) if text != "WATCHDOG=1" => return text,
                _ => {}
            }
        }
        panic!("nothing new was said");
    }
}

#[test]
fn a_service_manager_is_told_and_hears_nothing_from_a_stuck_agent() {
    let manager = Manager::new();
    let folder = manager.folder.path();
    let key = folder.join("key").display().to_string();
    done(&mut bellwether(&["keygen", &key]));
    let mut agent = bellwether(&["agent", "--cluster", "garden", "--key-file", &key])
        .args(["--name", "kitchen", "--bind", "127.0.0.1:0", "--api", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", folder.join("notify"))
        .env("WATCHDOG_USEC", "500000")
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&agent);
    assert_eq!(manager.news(), "READY=1");
    let since = Instant::now();
    for _ in 0..4 {
        let fed = manager.heard(Duration::from_secs(30)).expect("a sign of life");
        assert_eq!(fed, "WATCHDOG=1");
    }
    // Four signs, of which the first may have waited: three spans of a quarter of a second.
    let took = since.elapsed();
    assert!(took > Duration::from_millis(600), "{took:?} is more often than asked for");
    kill_process(pid, Signal::HUP).unwrap();
    assert!(manager.news().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(manager.news(), "READY=1");
    kill_process(pid, Signal::STOP).unwrap();
    thread::sleep(Duration::from_millis(100));
    while manager.heard(Duration::from_millis(1)).is_some() {}
    assert_eq!(manager.heard(Duration::from_millis(700)), None);
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(manager.heard(Duration::from_secs(5)).as_deref(), Some("WATCHDOG=1"));
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(manager.news(), "STOPPING=1");
    assert!(agent.wait().unwrap().success(), "who leaves is not to be restarted");
}

#[test]
fn a_manager_that_is_not_there_is_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key").display().to_string();
    done(&mut bellwether(&["keygen", &key]));
    let mut agent = bellwether(&["agent", "--cluster", "garden", "--key-file", &key]);
    agent.args(["--bind", "127.0.0.1:0", "--api", "127.0.0.1:0"]);
    let output = agent.env("NOTIFY_SOCKET", "/nowhere/notify").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: NOTIFY_SOCKET=/nowhere/notify: "), "{said}");
}
