//! The tables of routing daemons, as the daemons print them.
//!
//! | format | what is read | who is a neighbour |
//! |---|---|---|
//! | babel | babeld's `dump` | each `neighbour` of finite cost; known by its link-local address and by every host route it originates (`refmetric 0`) |
//! | olsr | olsrd's txtinfo `/links`, `/neigh` or both | each remote end of a link of finite cost; each neighbour that is symmetric |
//! | batman | `batctl n -n` | each line seen within [`BATMAN_SILENCE`] seconds, by its hardware address |
//!
//! Lines about anything else are passed over. A line that is about a neighbour and cannot be read is an error: half a
//! table would be taken for links that are gone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::Format;

/// Something a neighbour is known by.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Address {
    /// Of a node.
    Ip(IpAddr),
    /// Of one of its interfaces.
    Hardware([u8; 6]),
}

impl Address {
    /// Sixteen bytes or four as people write them, or six with colons.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().map(|ip: IpAddr| Self::Ip(ip.to_canonical())).ok().or_else(|| hardware(text))
    }
}

/// One neighbour, by all that it is known by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Neighbour {
    /// At least one.
    pub addresses: Vec<Address>,
}

/// A line that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: {what} {value:?} {problem}")]
pub struct TableError {
    /// Counted from 1.
    pub line: usize,
    /// What the value should have been.
    pub what: &'static str,
    /// What is written there.
    pub value: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Reads one table.
///
/// # Errors
///
/// `TableError`: the first line that cannot be read.
pub fn parse(format: Format, text: &str) -> Result<Vec<Neighbour>, TableError> {
    match format {
        Format::Babel => babel(text),
        Format::Olsr => olsr(text),
        Format::Batman => batman(text),
    }
}

/// A value of a line, and what it should be.
#[derive(Clone, Copy)]
struct Value<'a> {
    line: usize,
    what: &'static str,
    text: &'a str,
}

impl Value<'_> {
    fn wrong(self, problem: &'static str) -> TableError {
        let value = self.text.chars().take(80).collect();
        TableError { line: self.line, what: self.what, value, problem }
    }

    fn ip(self) -> Result<IpAddr, TableError> {
        let ip = self.text.parse::<IpAddr>();
        ip.map(|ip| ip.to_canonical()).map_err(|_| self.wrong("is no IP address"))
    }

    fn number(self) -> Result<f64, TableError> {
        let number = self.text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| self.wrong("is no number"))
    }
}

/// `add neighbour ID address A if I reach R ... cost C`, and
/// `add route ID prefix P from ... refmetric 0 via A if I`.
fn babel(text: &str) -> Result<Vec<Neighbour>, TableError> {
    /// As babeld writes "never".
    const INFINITE: f64 = 65535.0;
    // The same link-local address may be heard on two interfaces.
    let mut found: Vec<((IpAddr, &str), Neighbour)> = Vec::new();
    let mut greeted = false;
    for (at, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let (verb, object) = (words.next(), words.next());
        greeted |= verb == Some("BABEL") || verb == Some("add");
        if verb != Some("add") || !matches!(object, Some("neighbour" | "route")) {
            continue;
        }
        let words: Vec<&str> = words.skip(1).collect();
        let value = |what: &'static str| {
            let text = words.chunks_exact(2).find(|pair| pair[0] == what).map(|pair| pair[1]);
            let missing = Value { line: at + 1, what, text: line };
            text.map(|text| Value { text, ..missing })
                .ok_or_else(|| missing.wrong("has no such value"))
        };
        if object == Some("neighbour") {
            let (ip, interface) = (value("address")?.ip()?, value("if")?.text);
            let reach = value("reach")?;
            let heard = u16::from_str_radix(reach.text, 16);
            let heard = heard.map_err(|_| reach.wrong("is no hexadecimal number"))? != 0;
            if heard && value("cost")?.number()? < INFINITE {
                found.push(((ip, interface), Neighbour { addresses: vec![Address::Ip(ip)] }));
            }
        } else if value("refmetric")?.number()? == 0.0 {
            let prefix = value("prefix")?;
            let host = host_route(prefix)?;
            let via = (value("via")?.ip()?, value("if")?.text);
            let neighbour = found.iter_mut().find(|(known, _)| *known == via);
            if let (Some(ip), Some((_, neighbour))) = (host, neighbour)
                && !neighbour.addresses.contains(&Address::Ip(ip))
            {
                neighbour.addresses.push(Address::Ip(ip));
            }
        }
    }
    match greeted {
        true => Ok(found.into_iter().map(|(_, neighbour)| neighbour).collect()),
        false => Err(nothing(text, "is not what babeld says")),
    }
}

/// The one address of a prefix, if it has but one.
fn host_route(prefix: Value<'_>) -> Result<Option<IpAddr>, TableError> {
    let problem = "is no prefix such as 192.0.2.7/32";
    let Some((ip, length)) = prefix.text.split_once('/') else { return Err(prefix.wrong(problem)) };
    let ip = ip.parse::<IpAddr>().map_err(|_| prefix.wrong(problem))?;
    let length = length.parse::<u32>().map_err(|_| prefix.wrong(problem))?;
    let whole = if ip.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS };
    // babeld shows prefixes of the older version in the newer one's form, or in their own.
    Ok((length == whole).then_some(ip.to_canonical()))
}

/// Tables of `Table: NAME`, a line of headings, and rows of values between tabs.
fn olsr(text: &str) -> Result<Vec<Neighbour>, TableError> {
    let mut found: Vec<Neighbour> = Vec::new();
    let mut table = "";
    let mut headings: Option<Vec<&str>> = None;
    let mut read = false;
    for (at, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix("Table: ") {
            (table, headings) = (name.trim(), None);
            read |= matches!(table, "Links" | "Neighbors");
            continue;
        }
        if line.trim().is_empty() {
            table = "";
        }
        if !matches!(table, "Links" | "Neighbors") {
            continue;
        }
        let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
        let Some(headings) = &headings else {
            headings = Some(cells);
            continue;
        };
        let value = |what: &'static str| {
            let column = headings.iter().position(|&heading| heading == what);
            let missing = Value { line: at + 1, what, text: line };
            let text = column.and_then(|column| cells.get(column));
            text.map(|text| Value { text, ..missing })
                .ok_or_else(|| missing.wrong("has no such column"))
        };
        let (ip, there) = if table == "Links" {
            let cost = value("Cost")?;
            (value("Remote IP")?.ip()?, cost.text != "INFINITE" && cost.number()? > 0.0)
        } else {
            let symmetric = value("SYM")?;
            let there = match symmetric.text {
                "YES" => true,
                "NO" => false,
                _ => return Err(symmetric.wrong("is neither YES nor NO")),
            };
            (value("IP address")?.ip()?, there)
        };
        let neighbour = Neighbour { addresses: vec![Address::Ip(ip)] };
        if there && !found.contains(&neighbour) {
            found.push(neighbour);
        }
    }
    if read { Ok(found) } else { Err(nothing(text, "has no table of links or neighbours")) }
}

/// One line each: an interface, a hardware address and the time since it was last heard, in an order that depends on the
/// algorithm of the mesh.
fn batman(text: &str) -> Result<Vec<Neighbour>, TableError> {
    let mut found: Vec<Neighbour> = Vec::new();
    let mut headed = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('[') || line.contains("last-seen") {
            headed = true;
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        if !headed {
            return Err(nothing(text, "is not what batctl n prints"));
        }
        let value = |what, text| Value { line: at + 1, what, text };
        let words = || line.split_whitespace();
        let Some(address) = words().find_map(hardware) else {
            let problem = "has no hardware address; batctl n -n prints them instead of names";
            return Err(value("neighbour", line.trim()).wrong(problem));
        };
        let seen = words().find_map(|word| word.strip_suffix('s').filter(|age| age.contains('.')));
        let seen = seen.ok_or_else(|| value("last-seen", line.trim()).wrong("is not there"))?;
        let neighbour = Neighbour { addresses: vec![address] };
        if value("last-seen", seen).number()? <= BATMAN_SILENCE && !found.contains(&neighbour) {
            found.push(neighbour);
        }
    }
    if headed { Ok(found) } else { Err(nothing(text, "is not what batctl n prints")) }
}

fn hardware(text: &str) -> Option<Address> {
    let mut address = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut address {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(Address::Hardware(address))
}

/// Of a text that is something else altogether.
fn nothing(text: &str, problem: &'static str) -> TableError {
    let first = text.lines().next().unwrap_or_default();
    Value { line: 1, what: "table", text: first }.wrong(problem)
}

/// Neighbours of batman-adv stay listed long after they are gone; it sends every second.
const BATMAN_SILENCE: f64 = 5.0;

#[cfg(test)]
mod tests;
