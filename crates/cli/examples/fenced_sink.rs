//! Something a leader acts on, and that refuses whoever led before: one number, over TCP, a line at a time.
//!
//! ```text
//! TAKE <epoch>          VALUE <number>   from now on, no smaller epoch
//! SET <epoch> <number>  OK
//!                       STALE <epoch>    a larger epoch has been here
//! COUNT                 ACCEPTED <count> REFUSED <count>
//! ```
//!
//! A new leader takes before it reads: an update of the last one may still be on its way, and would be overwritten
//! without either of them knowing. The epoch is what `bellwether run` gives its command as `BELLWETHER_EPOCH`.
//!
//! ```sh
//! cargo run -p bellwether --example fenced_sink -- 127.0.0.1:7800
//! ```

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use bellwether_proto::Epoch;

/// The number, and who may change it.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    value: u64,
    largest: Option<Epoch>,
    /// Every update in order.
    pub(crate) accepted: Vec<(Epoch, u64)>,
    /// Updates that came too late.
    pub(crate) refused: u64,
}

impl Sink {
    /// Answers one line.
    pub(crate) fn answer(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let parsed = |text: &str| text.parse::<Epoch>().map_err(|error| format!("WRONG {error}"));
        let answered = match words[..] {
            ["TAKE", epoch] => parsed(epoch).and_then(|epoch| {
                self.admit(epoch)?;
                Ok(format!("VALUE {}", self.value))
            }),
            ["SET", epoch, value] => parsed(epoch).and_then(|epoch| {
                let value = value.parse().map_err(|error| format!("WRONG {error}"))?;
                self.admit(epoch).inspect_err(|_| self.refused += 1)?;
                self.value = value;
                self.accepted.push((epoch, value));
                Ok("OK".to_owned())
            }),
            ["COUNT"] => Ok(format!("ACCEPTED {} REFUSED {}", self.accepted.len(), self.refused)),
            _ => Err("WRONG not TAKE, SET or COUNT".to_owned()),
        };
        answered.unwrap_or_else(|problem| problem)
    }

    /// The whole of fencing.
    fn admit(&mut self, epoch: Epoch) -> Result<(), String> {
        match self.largest {
            Some(largest) if epoch < largest => Err(format!("STALE {largest}")),
            _ => {
                self.largest = Some(epoch);
                Ok(())
            }
        }
    }
}

/// Answers everybody, for ever.
#[allow(clippy::disallowed_methods, reason = "a server of its own, no run of a simulator")]
pub(crate) fn serve(listener: &TcpListener, sink: &Arc<Mutex<Sink>>) {
    for stream in listener.incoming().flatten() {
        let sink = Arc::clone(sink);
        // Whoever hangs up has its answer, or does not want it.
        thread::spawn(move || drop(attend(stream, &sink)));
    }
}

fn attend(mut stream: TcpStream, sink: &Mutex<Sink>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if lines.by_ref().take(LONGEST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = sink.lock().unwrap_or_else(PoisonError::into_inner).answer(&line);
        stream.write_all(format!("{answer}\n").as_bytes())?;
    }
}

/// Far above any line that makes sense.
const LONGEST: u64 = 256;

#[allow(dead_code, reason = "a test includes this file for all but this")]
fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7800".to_owned());
    let listener = TcpListener::bind(&address)?;
    println!("listening on {}", listener.local_addr()?);
    serve(&listener, &Arc::default());
    Ok(())
}
