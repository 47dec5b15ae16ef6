//! Why something was refused: the names under which it is counted.

use std::{error, fmt};

use bellwether_proto::wire::DecodeError;

/// Why something was refused, given up or not sent.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Refusal {
    /// It ends too early.
    Short,
    /// It is longer than allowed.
    TooLarge,
    /// It is some other protocol's.
    NotOurs,
    /// It is of a version we do not speak.
    Version,
    /// It is of another cluster.
    OtherCluster,
    /// It is sealed under a key we do not have, or no longer.
    UnknownKey,
    /// We sent it.
    OwnPacket,
    /// Its sender has restarted since.
    OldBoot,
    /// Its sender claims a boot number that no number of restarts explains.
    ImplausibleBoot,
    /// It is of a later life of our own identity: see [`Sealer::superseded`](super::seal::Sealer::superseded).
    Duplicate,
    /// It was opened before, or is too old to tell.
    Replay,
    /// It is forged or damaged, or was sealed for somebody else or for an earlier life of ours.
    Auth,
    /// It is to the group, and its sender has not proved that it lives.
    Unproven,
    /// There is no room for another peer.
    TableFull,
    /// More hellos than are answered a second.
    HelloLimit,
    /// Genuine, and makes no sense as a message.
    Malformed,
    /// A message of a kind this build does not know.
    UnknownKind,
    /// A message that makes no sense now.
    Rejected,
    /// Not sent: the receiver has not been met. A hello went instead.
    Unmet,
    /// Not sent: no address is known.
    NoAddress,
    /// Not sent: more than was received from an address that may be forged.
    UnprovenAddress,
    /// Not sent: longer than any message may be.
    TooLargeToSend,
    /// Not sent: this life has no numbers left.
    Exhausted,
    /// Not sent: the socket's buffer is full.
    SocketFull,
    /// Not sent, or not received: the system refused.
    SocketError,
    /// A stream that was one too many.
    StreamLimit,
    /// A stream that took too long.
    StreamTimeout,
    /// A stream that ended in the middle, or could not be opened.
    StreamBroken,
}

impl Refusal {
    /// All of them, in the order of declaration.
    pub const ALL: [Self; 28] = [
        Self::Short,
        Self::TooLarge,
        Self::NotOurs,
        Self::Version,
        Self::OtherCluster,
        Self::UnknownKey,
        Self::OwnPacket,
        Self::OldBoot,
        Self::ImplausibleBoot,
        Self::Duplicate,
        Self::Replay,
        Self::Auth,
        Self::Unproven,
        Self::TableFull,
        Self::HelloLimit,
        Self::Malformed,
        Self::UnknownKind,
        Self::Rejected,
        Self::Unmet,
        Self::NoAddress,
        Self::UnprovenAddress,
        Self::TooLargeToSend,
        Self::Exhausted,
        Self::SocketFull,
        Self::SocketError,
        Self::StreamLimit,
        Self::StreamTimeout,
        Self::StreamBroken,
    ];

    /// As counters call it. Stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::TooLarge => "too-large",
            Self::NotOurs => "not-ours",
            Self::Version => "version",
            Self::OtherCluster => "other-cluster",
            Self::UnknownKey => "unknown-key",
            Self::OwnPacket => "own-packet",
            Self::OldBoot => "old-boot",
            Self::ImplausibleBoot => "implausible-boot",
            Self::Duplicate => "duplicate-identity",
            Self::Replay => "replay",
            Self::Auth => "auth",
            Self::Unproven => "unproven",
            Self::TableFull => "table-full",
            Self::HelloLimit => "hello-limit",
            Self::Malformed => "malformed",
            Self::UnknownKind => "unknown-kind",
            Self::Rejected => "rejected",
            Self::Unmet => "unmet",
            Self::NoAddress => "no-address",
            Self::UnprovenAddress => "unproven-address",
            Self::TooLargeToSend => "too-large-to-send",
            Self::Exhausted => "exhausted",
            Self::SocketFull => "socket-full",
            Self::SocketError => "socket-error",
            Self::StreamLimit => "stream-limit",
            Self::StreamTimeout => "stream-timeout",
            Self::StreamBroken => "stream-broken",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl error::Error for Refusal {}

/// What a message inside a genuine packet was refused for.
impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::UnknownKind { .. } => Self::UnknownKind,
            _ => Self::Malformed,
        }
    }
}
