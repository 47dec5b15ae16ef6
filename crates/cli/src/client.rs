//! Asking a running agent: at its local socket, or over HTTP.

use std::{
    cell::{Cell, RefCell},
    env, fs, io,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use bellwether_agent::{config::API_PORT, internal::api::usual_sockets};
use serde_json::Value;

use crate::{
    http::{Connection, Reply, Way},
    output::Failure,
};

/// Which agent to ask, and as whom.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Asked {
    /// Local socket of the agent [env: BELLWETHER_SOCKET] [default: that of the
    /// agent on port 7739, if it is there]
    #[arg(long, value_name = "FILE", conflicts_with = "http_addr")]
    socket: Option<PathBuf>,
    /// Address of the agent [env: BELLWETHER_HTTP_ADDR] [default: 127.0.0.1:7739]
    #[arg(long, value_name = "HOST:PORT", alias = "addr")]
    http_addr: Option<String>,
    /// File with the token for commands over HTTP [env: BELLWETHER_TOKEN_FILE];
    /// the token itself may be in BELLWETHER_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// A connection to be, or to be used again.
pub(crate) struct Client {
    /// Where to ask, the best first.
    ways: Vec<Way>,
    /// That of them on which the agent was found, if it is its own socket. Whoever has talked to the agent itself does not
    /// turn to whoever has its port afterwards.
    found: Cell<Option<usize>>,
    token: Option<String>,
    kept: RefCell<Option<Connection>>,
}

/// What the agent said.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Why it said nothing.
pub(crate) struct Unanswered {
    /// Whether that is because there is no agent, and not because it is slow or far.
    pub(crate) gone: bool,
    why: String,
}

impl From<Unanswered> for Failure {
    fn from(unanswered: Unanswered) -> Self {
        Self::Unreachable(unanswered.why)
    }
}

impl Asked {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let (ways, token) = (self.ways()?, self.token()?);
        Ok(Client { ways, found: Cell::new(None), token, kept: RefCell::new(None) })
    }

    /// What is said on the command line counts more than what is in the environment; whoever names one wants that one.
    fn ways(&self) -> Result<Vec<Way>, Failure> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        if let Some(path) = &self.socket {
            return Ok(vec![Way::Socket(path.clone())]);
        }
        if let Some(address) = &self.http_addr {
            return Ok(vec![Way::Http(checked(address)?)]);
        }
        // An agent's own setting, which may turn it off.
        if let Some(path) = variable("BELLWETHER_SOCKET").filter(|value| value != "none") {
            return Ok(vec![Way::Socket(path.into())]);
        }
        if let Some(address) = variable("BELLWETHER_HTTP_ADDR") {
            return Ok(vec![Way::Http(checked(&address.to_string_lossy())?)]);
        }
        let usual = usual_sockets(API_PORT).into_iter().map(Way::Socket);
        Ok(usual.chain([Way::Http(format!("127.0.0.1:{API_PORT}"))]).collect())
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let file = self.token_file.clone();
        if file.is_none()
            && let Some(token) = variable("BELLWETHER_TOKEN")
        {
            return Ok(Some(token));
        }
        let Some(file) = file.or_else(|| variable("BELLWETHER_TOKEN_FILE").map(PathBuf::from))
        else {
            return Ok(None);
        };
        let text = fs::read_to_string(&file)
            .map_err(|error| Failure::Other(format!("token file {}: {error}", file.display())))?;
        let token = text.trim().to_owned();
        match token.chars().all(|c| c.is_ascii_graphic()) {
            true => Ok(Some(token)),
            false => Err(Failure::Other(format!("token file {}: no token", file.display()))),
        }
    }
}

fn checked(address: &str) -> Result<String, Failure> {
    let base = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let well_formed = base.rsplit_once(':').is_some_and(|(host, port)| {
        let fits = |c: char| c.is_ascii_graphic() && c != '/';
        !host.is_empty() && host.chars().all(fits) && port.parse::<u16>().is_ok()
    });
    if !well_formed {
        let text = format!(
            "address of the agent: {address:?} is not HOST:PORT\n  \
             allowed: such as 127.0.0.1:7739, in --http-addr or BELLWETHER_HTTP_ADDR"
        );
        return Err(Failure::Other(text));
    }
    Ok(base.to_owned())
}

impl Client {
    /// The answer to a question that an agent answers at once.
    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(path, ANSWER)?.granted()
    }

    /// The answer, whatever it is, within this time.
    pub(crate) fn ask(&self, path: &str, within: Duration) -> Result<Answer, Unanswered> {
        self.exchange("GET", path, None, within)
    }

    /// Asks for something to be done.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.exchange("POST", path, Some(&body.to_string()), ANSWER)?.granted()
    }

    /// Waits for so long, or until the agent has closed the connection.
    pub(crate) fn rest(&self, wait: Duration) {
        let mut kept = self.kept.borrow_mut();
        match &*kept {
            Some(connection) if connection.stays_open(wait) => {}
            Some(_) => *kept = None,
            None => thread::sleep(wait),
        }
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        within: Duration,
    ) -> Result<Answer, Unanswered> {
        let until = Instant::now() + within;
        let kept = self.kept.borrow_mut().take();
        if let Some(connection) = kept {
            // Those that have lain idle may have been closed; a new one tells whether the agent is still there.
            let reply = self.converse(connection, method, path, body, until);
            if !matches!(&reply, Err(error) if is_cut(error)) {
                return self.understood(reply, &self.names());
            }
        }
        let mut again = if method == "GET" { AGAIN } else { 0 };
        loop {
            let reply = self.connect_and_converse(method, path, body, until)?;
            match &reply {
                // It may be going just now, which the next attempt finds out; or it had to make way for others.
                (Err(error), _) if is_cut(error) && again > 0 => again -= 1,
                (_, way) => {
                    let way = way.to_string();
                    return self.understood(reply.0, &way);
                }
            }
            thread::sleep(MOMENT);
        }
    }

    fn connect_and_converse(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        until: Instant,
    ) -> Result<(io::Result<Reply>, &Way), Unanswered> {
        let mut tried = Vec::new();
        let ways = match self.found.get() {
            Some(at) => at..=at,
            None => 0..=self.ways.len() - 1,
        };
        for at in ways {
            let way = &self.ways[at];
            match Connection::open(way, until) {
                Ok(connection) => {
                    if matches!(way, Way::Socket(_)) {
                        self.found.set(Some(at));
                    }
                    return Ok((self.converse(connection, method, path, body, until), way));
                }
                Err(error) => tried.push((way, error)),
            }
        }
        let gone = tried.iter().all(|(_, error)| {
            Way::is_deserted(error) || error.kind() == io::ErrorKind::PermissionDenied
        });
        let said = tried.iter().map(|(way, error)| match error.kind() {
            io::ErrorKind::NotFound => format!("{way} (there is no such socket)"),
            io::ErrorKind::ConnectionRefused => format!("{way} (nobody listens there)"),
            _ => format!("{way}: {error}"),
        });
        Err(silent(gone, &said.collect::<Vec<_>>().join(", nor at ")))
    }

    fn converse(
        &self,
        mut connection: Connection,
        method: &str,
        path: &str,
        body: Option<&str>,
        until: Instant,
    ) -> io::Result<Reply> {
        // Its own socket knows who we are; nobody else is to hear the token.
        let token = self.token.as_deref().filter(|_| self.found.get().is_none());
        let reply = connection.ask(method, path, token, body, until)?;
        if reply.keep {
            *self.kept.borrow_mut() = Some(connection);
        }
        Ok(reply)
    }

    fn understood(&self, reply: io::Result<Reply>, at: &str) -> Result<Answer, Unanswered> {
        let Reply { status, body, .. } =
            reply.map_err(|error| silent(false, &format!("{at}: {error}")))?;
        let body = serde_json::from_slice(&body).map_err(|_| {
            silent(false, &format!("{at}: something answers there, but it is no agent"))
        })?;
        Ok(Answer { status, body })
    }

    fn names(&self) -> String {
        let ways = self.found.get().map_or(&self.ways[..], |at| &self.ways[at..=at]);
        ways.iter().map(Way::to_string).collect::<Vec<_>>().join(" or ")
    }
}

/// Whether the other end is there no more.
fn is_cut(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn silent(gone: bool, why: &str) -> Unanswered {
    let why = format!(
        "no agent answers at {why}\n  hint: is `bellwether agent` running there? \
         Another goes in --socket or --http-addr, BELLWETHER_SOCKET or BELLWETHER_HTTP_ADDR"
    );
    Unanswered { gone, why }
}

impl Answer {
    fn granted(self) -> Result<Value, Failure> {
        let Self { status, body } = self;
        if status < 300 {
            return Ok(body);
        }
        let said = |key: &str| body[key].as_str().map(bellwether_agent::config::quote);
        let error = said("error").unwrap_or_else(|| format!("status {status}"));
        let text = match said("hint") {
            Some(hint) => format!("{error}\n  hint: {hint}"),
            None => error.clone(),
        };
        match status {
            // It is there, but cannot be asked: nobody should act on that.
            503 => Err(Failure::Unreachable(text)),
            // What it says of headers is for programs.
            401 => Err(Failure::Other(format!(
                "{error}\n  hint: --token-file api.token, the file that `bellwether init` wrote, or BELLWETHER_TOKEN_FILE"
            ))),
            _ => Err(Failure::Other(text)),
        }
    }
}

/// Text as part of a path.
pub(crate) fn segment(text: &str) -> String {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let encode = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// How often a question is asked again that was cut off, and after how long.
const AGAIN: usize = 3;
const MOMENT: Duration = Duration::from_millis(5);
/// How long an agent may take to answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
