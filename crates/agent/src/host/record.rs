//! Record and replay: what a node was given, written down so that the same value can be run again.
//!
//! A [`Node`](bellwether_proto::node::Node) is a function of what it was made of and of its inputs. A recording holds both,
//! and of what came of every input a digest. [`Replay`] runs the node again, without a network, a clock or a disk, and
//! compares: what went wrong in the field goes wrong again, step by step, in a test.
//!
//! # The file
//!
//! One life of one agent. Numbers, texts and values are in the codec of [`bellwether_proto::wire`].
//!
//! ```text
//! "bellwether record\n"   18 bytes
//! version                 varint: VERSION
//! frame                   the header: program version, unix ms, identity (8), boot, seed (8), Settings, Durable
//! frame ...               the entries
//!
//! frame    length varint, above zero; so many bytes; checksum of them (4)
//! entry    microseconds since the last one varint; kind (1); what was given; what came of it
//! ```
//!
//! | kind | given | what was given |
//! |---|---|---|
//! | 0 | start | |
//! | 1 | message | sender (8), its boot, via (one byte 0 if the sender itself, else 1 and 8), length, the message |
//! | 2 | timeout | |
//! | 3 | fact | as [`Fact`](bellwether_proto::node::Fact) is encoded |
//! | 4 | command | as [`Command`](bellwether_proto::node::Command) is encoded |
//! | 5 | leave | |
//! | 6 | end | why (1): see [`End`]; nothing comes of it |
//!
//! What came of it: 0 if nobody knows, because the process ended while its node handled it; else 1 (accepted) or 2
//! (rejected), the number of effects, and 8 bytes of a digest. The digest is a running one: it covers the effects, the
//! rejection, what every election then answers and when the node then wants to be woken, of this and of all inputs before.
//! So it is equal from the first to the last input, or from the first divergence on never again. Messages and what is to
//! be kept are digested by their encodings, which builds share, and not by how this build lays them out.
//!
//! Time is the machine's `CLOCK_BOOTTIME`, as the node was told.
//!
//! # Bounds
//!
//! - A later part alone could not be replayed, since the node's state is made of all its inputs. So a recording that
//!   has reached its limit ends, and does not begin anew.
//! - One life a file: at the start the last one becomes `FILE.1`, and so on up to `FILE.4`.
//! - The node's thread only appends to a buffer; a thread of its own writes that at least once a second. If the disk cannot
//!   keep up or refuses, the recording ends and the agent goes on.
//! - A file may end anywhere, as after a power cut: it is readable up to its last whole entry.
//! - There are no keys and no tokens in it: messages are as they are inside the seal. Names, tags, addresses and the seed of
//!   the node's randomness are: whoever reads it while this life lasts can foretell what it will draw. Its mode is 0600.

pub use self::{
    format::{Cause, End, Entry, Given, Header, Outcome, Tail, VERSION},
    read::{RecordError, Recording},
    replay::{Answer, Divergence, Replay, Replayed, Step, replay},
    write::{KEPT, Recorder},
};

mod digest;
mod format;
mod read;
mod replay;
#[cfg(test)]
mod tests;
mod write;
