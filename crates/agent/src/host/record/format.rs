//! Headers and entries, and how they are written.

use std::fmt;

use bellwether_proto::{
    Boot, Input, InputOf, NodeId, Peer, Rejected, Time,
    node::{Command, Durable, Fact, Message, Node, Settings, hex},
    wire::{DecodeError, Reader, Sink as _, Wire},
};

use super::digest::Digest;

/// How files begin.
pub(super) const MAGIC: &[u8; 18] = b"bellwether record\n";
/// Of the format. Another one is not read.
pub const VERSION: u64 = 1;
/// Longer frames are taken for damage: a message fits a datagram, and settings fit a few.
pub(super) const LONGEST: u64 = 1 << 20;
/// Of the length of a frame, at most.
pub(super) const LENGTH: usize = 3;

/// What a node was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The version of the program that wrote it.
    pub program: String,
    /// When it began, in milliseconds since 1970; for people.
    pub unix_ms: u64,
    /// Who it was, in which life.
    pub me: Peer,
    /// Where all its randomness came from.
    pub seed: u64,
    /// What it was to be.
    pub settings: Settings,
    /// What its past life had kept.
    pub durable: Durable,
}

/// One input, when it came, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When, by the machine's clock.
    pub now: Time,
    /// What the node was given.
    pub given: Given,
    /// What came of it; none if the process ended meanwhile.
    pub outcome: Option<Outcome>,
}

/// An input of the node.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// It was started.
    Start,
    /// It heard something.
    Message {
        /// The node that sent it.
        from: Peer,
        /// Who handed it over last.
        via: NodeId,
        /// What it says, without its seal.
        message: Message,
    },
    /// Its deadline had come.
    Timeout,
    /// Its host had found something out.
    Fact(Fact),
    /// It was asked for something.
    Command(Command),
    /// It was told to leave.
    Leave,
}

/// What came of an input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// Whether it was rejected.
    pub rejected: bool,
    /// How many effects it had.
    pub effects: u64,
    /// Of all that came of this and of all inputs before.
    pub digest: u64,
}

/// How a recording ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// With a mark that says why.
    Marked(Cause),
    /// With a whole entry, but without a mark: the process was killed, or still runs.
    Open,
    /// Within an entry, with so many bytes of it: the process or the machine ended while it was written.
    Cut(u64),
}

/// Why a recording was ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// The node had left, or was told to stop.
    Stopped,
    /// It had become as large as it may.
    Limit,
    /// The disk could not keep up.
    Behind,
    /// The process ended while its node handled the last input.
    Unfinished,
}

impl Cause {
    const ALL: [Self; 4] = [Self::Stopped, Self::Limit, Self::Behind, Self::Unfinished];

    /// A name that programs can rely on.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Limit => "limit",
            Self::Behind => "behind",
            Self::Unfinished => "unfinished",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "the agent stopped",
            Self::Limit => "the recording had reached its limit; the agent went on",
            Self::Behind => "the disk could not keep up; the agent went on",
            Self::Unfinished => "the agent ended while its node handled the last input",
        })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Marked(cause) => cause.fmt(f),
            Self::Open => f.write_str("without a mark: the agent was killed, or still runs"),
            Self::Cut(bytes) => {
                write!(f, "within an entry, {bytes} bytes of it: the agent was killed")
            }
        }
    }
}

/// What a frame behind the header holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Tail {
    /// An input of the node.
    Entry(Entry),
    /// The end of the recording, and its cause.
    End(Cause),
}

impl Given {
    /// As a node takes it.
    pub fn input(&self) -> InputOf<'_, Node> {
        match self {
            Self::Start => Input::Start,
            Self::Message { from, via, message } => {
                Input::Message { from: *from, via: *via, message }
            }
            Self::Timeout => Input::Timeout,
            Self::Fact(fact) => Input::Feed(fact.clone()),
            Self::Command(command) => Input::Command(command.clone()),
            Self::Leave => Input::Leave,
        }
    }

    /// A name that programs can rely on.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Message { .. } => "message",
            Self::Timeout => "timeout",
            Self::Fact(_) => "fact",
            Self::Command(_) => "command",
            Self::Leave => "leave",
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start | Self::Timeout | Self::Leave => f.write_str(self.name()),
            Self::Message { from, via, message } => {
                write!(f, "message of {} in its life {}", hex(from.id), from.boot)?;
                if *via != from.id {
                    write!(f, " via {}", hex(*via))?;
                }
                write!(f, ": {message:?}")
            }
            Self::Fact(fact) => write!(f, "fact: {fact:?}"),
            Self::Command(command) => write!(f, "command: {command:?}"),
        }
    }
}

/// The beginning of an entry: everything but what comes of it.
pub(super) fn put_given(bytes: &mut Vec<u8>, last: Time, now: Time, input: &InputOf<'_, Node>) {
    bytes.varint(now.since(last).as_micros());
    match input {
        Input::Start => bytes.u8(START),
        Input::Message { from, via, message } => {
            bytes.u8(MESSAGE);
            bytes.u64(from.id.get());
            bytes.varint(from.boot.get());
            bytes.u8(u8::from(*via != from.id));
            if *via != from.id {
                bytes.u64(via.get());
            }
            bytes.varint(message.encoded_len() as u64);
            message.encode(bytes);
        }
        Input::Timeout => bytes.u8(TIMEOUT),
        Input::Feed(fact) => {
            bytes.u8(FACT);
            fact.encode(bytes);
        }
        Input::Command(command) => {
            bytes.u8(COMMAND);
            command.encode(bytes);
        }
        Input::Leave => bytes.u8(LEAVE),
    }
}

/// The rest of it.
pub(super) fn put_outcome(bytes: &mut Vec<u8>, outcome: Option<Outcome>) {
    let Some(Outcome { rejected, effects, digest }) = outcome else { return bytes.u8(0) };
    bytes.u8(1 + u8::from(rejected));
    bytes.varint(effects);
    bytes.u64(digest);
}

pub(super) fn put_end(bytes: &mut Vec<u8>, cause: Cause) {
    bytes.varint(0);
    bytes.u8(END);
    bytes.u8(cause as u8);
}

impl Outcome {
    pub(super) fn new(effects: u64, result: Result<(), &Rejected>, digest: Digest) -> Self {
        Self { rejected: result.is_err(), effects, digest: digest.get() }
    }
}

/// What is in a frame behind the header, if the last one was of this time.
pub(super) fn tail(bytes: &[u8], last: Time) -> Result<Tail, DecodeError> {
    let mut reader = Reader::new(bytes);
    let since = reader.varint("time")?;
    let now = Time::from_micros(last.as_micros().saturating_add(since));
    let given = match reader.kind("kind", END + 1)? {
        START => Given::Start,
        MESSAGE => {
            let from =
                Peer::new(NodeId::new(reader.u64("sender")?), Boot::new(reader.varint("boot")?));
            let via = match reader.kind("via", 2)? {
                0 => from.id,
                _ => NodeId::new(reader.u64("via")?),
            };
            let length = reader.count("message", 1)?;
            let mut inside = Reader::new(reader.bytes("message", length)?);
            let message = Message::decode(&mut inside)?;
            inside.finish()?;
            Given::Message { from, via, message }
        }
        TIMEOUT => Given::Timeout,
        FACT => Given::Fact(Fact::decode(&mut reader)?),
        COMMAND => Given::Command(Command::decode(&mut reader)?),
        LEAVE => Given::Leave,
        _ => {
            let cause = reader.kind("cause", Cause::ALL.len() as u8)?;
            reader.finish()?;
            return Ok(Tail::End(Cause::ALL[usize::from(cause)]));
        }
    };
    let outcome = match reader.kind("outcome", 3)? {
        0 => None,
        kind => Some(Outcome {
            rejected: kind == 2,
            effects: reader.varint("effects")?,
            digest: reader.u64("digest")?,
        }),
    };
    reader.finish()?;
    Ok(Tail::Entry(Entry { now, given, outcome }))
}

impl Header {
    fn encode(&self, sink: &mut Vec<u8>) {
        sink.varint(self.program.len() as u64);
        sink.bytes(self.program.as_bytes());
        sink.varint(self.unix_ms);
        sink.u64(self.me.id.get());
        sink.varint(self.me.boot.get());
        sink.u64(self.seed);
        self.settings.encode(sink);
        self.durable.encode(sink);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = reader.count("program", 1)?;
        let at = reader.at();
        let program = core::str::from_utf8(reader.bytes("program", length)?);
        let program = program.map_err(|_| DecodeError::NotText { field: "program", at })?;
        Ok(Self {
            program: program.to_owned(),
            unix_ms: reader.varint("unix ms")?,
            me: Peer::new(NodeId::new(reader.u64("identity")?), Boot::new(reader.varint("boot")?)),
            seed: reader.u64("seed")?,
            settings: Settings::decode(reader)?,
            durable: Durable::decode(reader)?,
        })
    }
}

/// Puts a frame around these bytes.
pub(super) fn put_frame(file: &mut Vec<u8>, body: &[u8]) {
    file.varint(body.len() as u64);
    file.bytes(body);
    file.u32(Digest::checksum(body));
}

/// Everything before the first entry.
pub(super) fn beginning(header: &Header) -> Vec<u8> {
    let (mut file, mut body) = (MAGIC.to_vec(), Vec::new());
    file.varint(VERSION);
    header.encode(&mut body);
    put_frame(&mut file, &body);
    file
}

const START: u8 = 0;
const MESSAGE: u8 = 1;
const TIMEOUT: u8 = 2;
const FACT: u8 = 3;
const COMMAND: u8 = 4;
const LEAVE: u8 = 5;
const END: u8 = 6;
