//! The Debian packages the others come from.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::Failure;

/// Sees to it that these are there: installs what is not, where that is possible.
pub(crate) fn ensure(packages: &[&'static str]) -> Result<(), Failure> {
    let missing: Vec<&str> = packages.iter().copied().filter(|name| !is_there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let remedy = format!("apt-get install --no-install-recommends {}", missing.join(" "));
    if !rustix::process::geteuid().is_root() || !on_path("apt-get") {
        return Err(Failure::new(format!(
            "not installed: {}; this would do it as root of a Debian\n  remedy: {remedy}",
            missing.join(", ")
        )));
    }
    eprintln!("installing {}", missing.join(", "));
    let policy = Policy::set()?;
    // Old lists may do; whether they did is what installing tells.
    let update = apt(&["update", "-q"]).err().unwrap_or_default();
    let install = apt(&[&["install", "-qy", "--no-install-recommends"], &missing[..]].concat());
    drop(policy);
    if let Err(why) = install {
        return Err(Failure::new(format!("{update}\n{why}\n  remedy: {remedy}")));
    }
    for service in missing {
        // Nothing here starts a service, and none shall start when this machine does.
        let _ = quiet("systemctl", &["disable", service.trim_end_matches("-server")]);
    }
    Ok(())
}

fn is_there(package: &str) -> bool {
    let output =
        Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]).output();
    output.is_ok_and(|output| output.stdout == b"installed")
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn apt(args: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("apt-get: {error}"))?;
    let why = String::from_utf8_lossy(&output.stderr);
    let done = output.status.success();
    done.then_some(()).ok_or_else(|| format!("apt-get {}: {}", args.join(" "), why.trim()))
}

fn quiet(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Debian's way of installing services without starting them. Ours is removed; somebody else's is left alone.
struct Policy(Option<&'static Path>);

impl Policy {
    fn set() -> Result<Self, Failure> {
        let path = Path::new("/usr/sbin/policy-rc.d");
        if path.exists() {
            return Ok(Self(None));
        }
        let fail = |error| Failure::new(format!("{}: {error}", path.display()));
        fs::write(path, "#!/bin/sh\nexit 101\n").map_err(fail)?;
        let policy = Self(Some(path));
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(path, executable).map_err(fail)?;
        Ok(policy)
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
