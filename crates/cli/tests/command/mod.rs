//! What tests of the command line share.

use std::process::Command;

/// `bellwether` with these arguments, whatever this test's own environment sets.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BELLWETHER_") {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}
