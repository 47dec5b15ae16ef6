//! What happened, in numbers.

/// What was counted, whatever the protocol.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Inputs handled by machines.
    pub events: u64,
    /// Messages sent; one to many counts once.
    pub messages: u64,
    /// Messages that reached a running machine.
    pub deliveries: u64,
    /// Receivers that lost a message on the way.
    pub lost: u64,
    /// Receivers that were down, cut off, out of reach, had a full buffer or knew a later life of the sender.
    pub undeliverable: u64,
    /// Inputs the machines refused.
    pub rejected: u64,
    /// Bytes of the datagrams sent, the seal included, counted once each.
    pub bytes: u64,
    /// Times a message went over the air or a wire.
    pub transmissions: u64,
    /// Bytes of all those transmissions.
    pub hop_bytes: u64,
    /// Messages by their transmissions, none at all first; the last entry is of all longer ways.
    pub by_hops: [u64; LONGEST_WAY + 2],
}

/// The longest way in hops that is counted by itself. Arbitrary: it crosses the field of the thesis.
pub const LONGEST_WAY: usize = 6;
