//! A running `bellwether dev`.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, ChildStdin, Command, Stdio},
};

pub(crate) struct Demo {
    child: Child,
    /// Keys; nobody presses any, but at their end nothing ends.
    _keys: ChildStdin,
    pub(crate) address: String,
}

impl Demo {
    /// On this port, or on any other if somebody else has it.
    pub(crate) fn start(port: u16) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bellwether"))
            .args(["dev", "--nodes", "5", "--port", &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let keys = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines
            .find_map(|line| {
                line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
            })
            .expect("an address to look at");
        // Somebody must read what it tells, or it stops to wait for that.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, _keys: keys, address }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
