//! Which routing daemon's table says who is in range.

use std::{net::SocketAddr, path::PathBuf};

use bellwether_proto::Duration;

/// Which table to read, and how often.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Table {
    /// Who writes it.
    pub format: Format,
    /// Where it comes from.
    pub source: Source,
    /// Between two looks at it.
    pub every: Duration,
}

/// Where a table comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// What this program prints; no shell reads it.
    Command(Vec<String>),
    /// What the daemon says there when it is asked.
    Address(SocketAddr),
    /// A file that somebody writes.
    File(PathBuf),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command(words) => f.write_str(&words.join(" ")),
            Self::Address(address) => address.fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Which daemon printed it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// The output of babeld.
    Babel,
    /// The output of olsrd.
    Olsr,
    /// The output of batman-adv's `batctl`.
    Batman,
}

impl Format {
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("babel", Self::Babel), ("olsr", Self::Olsr), ("batman", Self::Batman)];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Babel => "babel",
            Self::Olsr => "olsr",
            Self::Batman => "batman",
        }
    }

    /// What to say to whoever listens at an address, if it is a daemon that can be asked.
    pub(crate) const fn question(self) -> Option<&'static str> {
        match self {
            Self::Babel => Some("dump\nquit\n"),
            Self::Olsr => Some("/links\n"),
            Self::Batman => None,
        }
    }
}
