//! Who may ask.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{Api, Problem, framing::Doubt};

/// Who may use a route.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    /// Anybody who reaches the port: probes of load balancers and orchestrators.
    Open,
    /// On loopback anybody, elsewhere those with the token.
    Read,
    /// Those with the token.
    Command,
}

/// The address of the connection on our side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local(pub(super) SocketAddr);

/// Refuses requests that call us by a name that is not ours, as those of a web page whose name was made to point here
/// do, and requests that another site's page has sent.
pub(super) async fn meant_for_us(State(api): State<Api>, request: Request, next: Next) -> Response {
    match check(&api, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(api: &Api, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let local = request.extensions().get::<Local>().map(|local| local.0.ip());
    let names = Names { local, configured: &api.shared.names };
    let host = one(headers, header::HOST.as_str())?
        .ok_or_else(|| Problem::bad("there is no Host header", "HTTP/1.1 demands one"))?;
    // A request for http://elsewhere/ is not for us either, whatever its header says.
    for name in [Some(host), request.uri().authority().map(Authority::as_str)].into_iter().flatten()
    {
        if !names.ours(name)? {
            let hint = "use an IP address or localhost, or add the name to api_names";
            let error = "this server is not called that";
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, error, hint));
        }
    }
    let foreign = |what| {
        let hint = "web pages of other sites may not ask this server";
        Problem::new(StatusCode::FORBIDDEN, what, hint)
    };
    if let Some(origin) = one(headers, header::ORIGIN.as_str())? {
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        // The whole of it, port included: another port of this host is another site's server.
        if authority.is_none_or(|authority| !authority.eq_ignore_ascii_case(host)) {
            return Err(foreign("the request comes from another site"));
        }
    }
    if let Some(site) = one(headers, "sec-fetch-site")?
        && !matches!(site, "same-origin" | "none")
    {
        return Err(foreign("the request was sent by another site's page"));
    }
    // Whoever sends both hopes that two servers will disagree about where the request ends.
    if request.extensions().get::<Doubt>().is_some_and(Doubt::is_there) {
        return Err(Problem::bad("both Transfer-Encoding and Content-Length", "send one of them"));
    }
    Ok(())
}

/// The names by which we answer.
struct Names<'a> {
    local: Option<IpAddr>,
    configured: &'a [String],
}

impl Names<'_> {
    /// Whether `HOST` or `HOST:PORT` is one of them. The port is not compared: it may be forwarded.
    fn ours(&self, text: &str) -> Result<bool, Problem> {
        let malformed = || Problem::bad("the Host header is malformed", "HOST or HOST:PORT");
        let authority: Authority = text.parse().map_err(|_| malformed())?;
        let tail = text.get(authority.host().len()..).unwrap_or_default();
        let port = tail.strip_prefix(':').map(str::parse::<u16>);
        if text.contains('@') || !tail.is_empty() && !matches!(port, Some(Ok(_))) {
            return Err(malformed());
        }
        let host = authority.host().to_ascii_lowercase();
        if host == "localhost" || self.configured.contains(&host) {
            return Ok(true);
        }
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let Ok(ip) = bare.unwrap_or(&host).parse::<IpAddr>() else { return Ok(false) };
        // An address cannot be made to point elsewhere; still, only those that lead here are ours.
        Ok(ip.is_loopback() || self.local.is_some_and(|local| local.to_canonical() == ip))
    }
}

/// The one value of a header.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Problem::bad(format!("there are several {name} headers"), "send one"));
    }
    let text = first.map(|value| value.to_str());
    text.transpose()
        .map_err(|_| Problem::bad(format!("the {name} header is not text"), "send text"))
}

/// Refuses those who may not use this route.
pub(super) async fn allowed(
    State((api, access)): State<(Api, Access)>,
    request: Request,
    next: Next,
) -> Response {
    match authorise(&api, access, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Whether whoever sent this may.
pub(super) fn authorise(
    api: &Api,
    access: Access,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let query = uri.query().unwrap_or_default();
    if query.split('&').any(names_a_token) {
        // Addresses end up in logs and histories.
        let hint = "send it in the header: Authorization: Bearer TOKEN";
        return Err(Problem::bad("a token in the address", hint));
    }
    match access {
        // The kernel has said who it is.
        _ if api.at_the_door => return Ok(()),
        Access::Open => return Ok(()),
        Access::Read if api.shared.open => return Ok(()),
        Access::Read | Access::Command => {}
    }
    let Some(token) = &api.shared.token else {
        let hint = "set api_token_file and start the agent again";
        return Err(Problem::new(StatusCode::FORBIDDEN, "this agent takes no commands", hint));
    };
    let given = one(headers, header::AUTHORIZATION.as_str())?;
    let given = given.and_then(|value| value.split_once(' '));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    match given {
        Some((_, given)) if token.is(given.trim().as_bytes()) => Ok(()),
        // Missing and wrong read the same.
        _ => {
            let hint = "send the token of this agent: Authorization: Bearer TOKEN";
            Err(Problem::new(StatusCode::UNAUTHORIZED, "a valid token is needed", hint))
        }
    }
}

/// Whether a part of a query is a token by its name, however that is written.
fn names_a_token(pair: &str) -> bool {
    let (name, _) = pair.split_once('=').unwrap_or((pair, ""));
    let mut bytes = name.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        let mut rest = bytes.clone();
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let escaped = (byte == b'%').then(|| Some((digit(rest.next())?, digit(rest.next())?)));
        plain.push(match escaped.flatten() {
            Some((high, low)) => {
                bytes = rest;
                (high * 16 + low) as u8
            }
            None => byte,
        });
    }
    plain.eq_ignore_ascii_case(b"token") || plain.eq_ignore_ascii_case(b"access_token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_however_its_name_is_written() {
        for pair in ["token=x", "access_token=x", "%74oken=x", "tok%65%6E=x", "Token", "%54OKEN"] {
            assert!(names_a_token(pair), "{pair}");
        }
        for pair in ["", "=token", "index=7", "tokens=x", "%2574oken=x", "%7", "%zzoken=x"] {
            assert!(!names_a_token(pair), "{pair}");
        }
    }

    #[test]
    fn only_our_own_names_are_ours() {
        let configured = ["kitchen.example".to_owned()];
        let local = Some("192.0.2.7".parse().unwrap());
        let names = Names { local, configured: &configured };
        for ours in [
            "localhost",
            "LOCALHOST:7739",
            "127.0.0.1",
            "127.8.8.8:1",
            "[::1]:7739",
            "192.0.2.7:7739",
            "Kitchen.Example:80",
        ] {
            assert!(names.ours(ours).unwrap(), "{ours}");
        }
        for foreign in [
            "evil.example:7739",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.8",
            "0.0.0.0:7739",
            "2130706433",
            "0x7f.1",
            "localhost.",
            "[::]:7739",
        ] {
            assert!(!names.ours(foreign).unwrap(), "{foreign}");
        }
        for malformed in ["localhost:", "localhost:port", "localhost:99999", "a@localhost", "[::1"]
        {
            assert!(names.ours(malformed).is_err(), "{malformed}");
        }
    }
}
