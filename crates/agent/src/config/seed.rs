//! Whom to talk to first, and who knows where they are.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use bellwether_settings::{Field, Result};

use super::{PORT, hook, is_host_name};

/// Whom to talk to first: an address, or a source of addresses that is asked again and again.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Seed {
    /// One address that is known.
    Address(SocketAddr),
    /// Every address of this host.
    Name {
        /// A host name.
        host: String,
        /// The port there.
        port: u16,
    },
    /// Every host and port that the service records of this name say: `srv:_bellwether._udp.example.org`.
    Service(String),
    /// Every address that this program prints: `exec:/path/to/program`.
    Program(PathBuf),
}

impl From<SocketAddr> for Seed {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
            Self::Service(name) => write!(f, "srv:{name}"),
            Self::Program(path) => write!(f, "exec:{}", path.display()),
        }
    }
}

pub(super) fn read(field: &Field<'_>) -> Result<Vec<Seed>> {
    let mut found = Vec::new();
    for item in field.one_or_more()? {
        let seed = one(&item)?;
        if found.contains(&seed) {
            return Err(item.error("is there twice").with_allowed("each address once"));
        }
        found.push(seed);
    }
    if found.len() > MOST {
        let error = field.error_unquoted(format!("has {} entries", found.len()));
        return Err(error.with_allowed(format!("at most {MOST}; a few suffice to join")));
    }
    Ok(found)
}

fn one(field: &Field<'_>) -> Result<Seed> {
    let allowed = format!(
        "HOST:PORT, such as 192.0.2.7:{PORT}, [2001:db8::7]:{PORT} or a-host; srv:NAME; exec:/PATH"
    );
    let seed =
        parse(field.text()?).map_err(|problem| field.error(problem).with_allowed(allowed))?;
    if let Seed::Program(path) = &seed {
        hook::check_program(field, path)?;
    }
    Ok(seed)
}

/// `HOST`, `HOST:PORT`, `[IPV6]:PORT`, `srv:NAME` or `exec:/PATH`.
fn parse(text: &str) -> std::result::Result<Seed, &'static str> {
    if let Some(address) = parse_address(text)? {
        return Ok(Seed::Address(address));
    }
    match text.split_once(':') {
        // A host may be called so.
        Some((_, port)) if port.parse::<u16>().is_ok() => {}
        Some(("srv", name)) => return service(name),
        Some(("exec", path)) if path.contains('\0') => return Err("has a zero byte in it"),
        Some(("exec", path)) if Path::new(path).is_absolute() => {
            return Ok(Seed::Program(path.into()));
        }
        Some(("exec", _)) => return Err("names a program by a path that does not begin with /"),
        _ => {}
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| "has no port after its colon")?),
        None => (text, PORT),
    };
    if port == 0 {
        return Err("has port 0");
    }
    match is_host_name(host) {
        true => Ok(Seed::Name { host: host.to_owned(), port }),
        false => Err("is neither an address nor a host name"),
    }
}

/// `IP`, `IP:PORT` or `[IPV6]:PORT`; none if it is nothing of the kind.
pub(crate) fn parse_address(text: &str) -> std::result::Result<Option<SocketAddr>, &'static str> {
    let address = match (text.parse::<SocketAddr>(), text.parse::<IpAddr>()) {
        (Ok(address), _) => address,
        (_, Ok(ip)) => SocketAddr::new(ip, PORT),
        _ => return Ok(None),
    };
    let nobodys = address.ip().is_unspecified() || address.ip().is_multicast();
    match nobodys || address.port() == 0 {
        true => Err("is nobody's address"),
        false => Ok(Some(address)),
    }
}

fn service(name: &str) -> std::result::Result<Seed, &'static str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut labels = name.split('.');
    let marked = |label: Option<&str>| label.is_some_and(|label| label.starts_with('_'));
    let is_service = marked(labels.next()) && marked(labels.next()) && labels.next().is_some();
    match is_service && is_host_name(name) {
        true => Ok(Seed::Service(name.to_owned())),
        false => Err("is no name of a service, such as _bellwether._udp.example.org"),
    }
}

/// Most nodes to begin with. Arbitrary.
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_source_is_read_and_written_alike() {
        for (text, written) in [
            ("192.0.2.7", "192.0.2.7:7738"),
            ("192.0.2.7:9", "192.0.2.7:9"),
            ("2001:db8::7", "[2001:db8::7]:7738"),
            ("[2001:db8::7]:9", "[2001:db8::7]:9"),
            ("[fe80::7%2]:9", "[fe80::7%2]:9"),
            ("cellar", "cellar:7738"),
            ("cellar.example:9", "cellar.example:9"),
            ("srv:_bellwether._udp.example.org.", "srv:_bellwether._udp.example.org"),
            ("exec:/usr/local/bin/peers", "exec:/usr/local/bin/peers"),
            // Hosts that are called so.
            ("srv:7738", "srv:7738"),
            ("exec", "exec:7738"),
        ] {
            assert_eq!(parse(text).map(|seed| seed.to_string()), Ok(written.to_owned()), "{text}");
        }
        for (text, problem) in [
            ("0.0.0.0", "is nobody's address"),
            ("192.0.2.7:0", "is nobody's address"),
            ("239.1.2.3:9", "is nobody's address"),
            ("cellar:0", "has port 0"),
            ("cellar:door", "has no port after its colon"),
            ("srv:example.org", "is no name of a service, such as _bellwether._udp.example.org"),
            ("srv:_a._udp", "is no name of a service, such as _bellwether._udp.example.org"),
            ("exec:peers", "names a program by a path that does not begin with /"),
        ] {
            assert_eq!(parse(text), Err(problem), "{text}");
        }
    }
}
