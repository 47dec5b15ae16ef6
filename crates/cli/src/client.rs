//! Asking a running agent over HTTP.

use std::{env, fs, path::PathBuf, time::Duration};

use serde_json::Value;

use crate::output::Failure;

/// Which agent to ask, and as whom.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Asked {
    /// Address of the agent [env: BELLWETHER_HTTP_ADDR] [default: 127.0.0.1:7739]
    #[arg(long, value_name = "HOST:PORT", alias = "addr")]
    http_addr: Option<String>,
    /// File with the token for commands [env: BELLWETHER_TOKEN_FILE]; the
    /// token itself may be in BELLWETHER_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// A connection to be.
pub(crate) struct Client {
    base: String,
    token: Option<String>,
}

/// What the agent said.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let address = self.http_addr.clone().or_else(|| env::var("BELLWETHER_HTTP_ADDR").ok());
        let address = address.unwrap_or_else(|| "127.0.0.1:7739".to_owned());
        let base = address.strip_prefix("http://").unwrap_or(&address).trim_end_matches('/');
        let well_formed = base.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
        });
        if !well_formed {
            let text = format!(
                "address of the agent: {address:?} is not HOST:PORT\n  \
                 allowed: such as 127.0.0.1:7739, in --http-addr or BELLWETHER_HTTP_ADDR"
            );
            return Err(Failure::Other(text));
        }
        Ok(Client { base: base.to_owned(), token: self.token()? })
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
        Ok(Some(text.trim().to_owned()))
    }
}

impl Client {
    /// The answer to a question that an agent answers at once.
    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(path, ANSWER)?.granted()
    }

    /// The answer, whatever it is, within this time.
    pub(crate) fn ask(&self, path: &str, within: Duration) -> Result<Answer, Failure> {
        let mut request = agent(within).get(self.address(path));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        self.answer(request.call())
    }

    /// Asks for something to be done.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let mut request =
            agent(ANSWER).post(self.address(path)).header("Content-Type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        self.answer(request.send(body.to_string()))?.granted()
    }

    fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.base)
    }

    fn answer(
        &self,
        result: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Answer, Failure> {
        let unreachable = |why: String| {
            let base = &self.base;
            Failure::Unreachable(format!(
                "no agent answers at {base}: {why}\n  hint: is `bellwether agent` running there? \
                 Another address goes in --http-addr or BELLWETHER_HTTP_ADDR"
            ))
        };
        let mut response = result.map_err(|error| unreachable(error.to_string()))?;
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string();
        let text = text.map_err(|error| unreachable(error.to_string()))?;
        let body = serde_json::from_str(&text)
            .map_err(|_| unreachable("something answers there, but it is no agent".to_owned()))?;
        Ok(Answer { status, body })
    }
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
            None => error,
        };
        match status {
            // It is there, but cannot be asked: nobody should act on that.
            503 => Err(Failure::Unreachable(text)),
            401 | 403 => Err(Failure::Other(format!(
                "{text}\n  hint: the token goes in BELLWETHER_TOKEN or --token-file"
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

fn agent(within: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(within))
        .http_status_as_error(false)
        .max_redirects(0)
        // The agent is next door; nobody else is to hear the token.
        .proxy(None)
        .build()
        .into()
}

/// How long an agent may take to answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
