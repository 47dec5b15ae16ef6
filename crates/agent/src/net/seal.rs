//! What is on the wire: every datagram authenticated, encrypted, and believed once.
//!
//! # Packet
//!
//! | bytes | field |
//! |---|---|
//! | 1 | `0xB` and the version, four bits each |
//! | 1 | kind, two bits; six bits of a hash of the cluster's name |
//! | 1 | the first byte of the key's fingerprint |
//! | 8 | sender: node id |
//! | 1…10 | sender: boot number, varint |
//! | 1…10 | number: grows with every packet of that life, varint |
//! | … | body, encrypted |
//! | 16 | tag |
//!
//! All before the body is authenticated with it. So are, in a packet to one node, the identity **and boot number
//! of its receiver**, which both ends know and which therefore do not travel. That is the whole of the replay
//! protection across restarts (ADR 7): nobody seals a packet for a life before that life has spoken, so whatever
//! opens was sealed after we started, and the window refuses what has been opened since.
//!
//! | kind | sealed for | opens |
//! |---|---|---|
//! | message | one life of one node | always |
//! | group | everybody | if this life of its sender has proved itself by a message or a welcome |
//! | hello | everybody | may be a recording: is answered by a welcome no larger, and changes nothing |
//! | welcome | one life of one node | always; repeats the number of the hello it answers, and says if there was a later life |
//!
//! Once lives were forgotten for want of room ([`table`]), a message opens only if its sender is one of those that are known, or
//! has answered a hello since.
//!
//! # Versions
//!
//! Hellos and welcomes look the same in all versions, and say which ones their sender speaks. Two nodes use the newest they
//! have in common. Of a life that has not said so yet, the version it last spoke is used, or else our oldest. To a group goes
//! the oldest of what would go to each that is known. Whoever has none in common with us is [told of](Sealer::take_foreign), at both
//! ends. Version 1 is the one described here. What needs no other version is put into the
//! [tail](bellwether_proto::node::packet) of messages.
//!
//! A packet's key is derived from the cluster key, the cluster's name, the sender's identity and boot number and
//! the purpose; the number is the nonce. Numbers never repeat within a life and lives never repeat, so neither
//! does a nonce under a key; a life that has used up its numbers can seal no more.
//!
//! Cheapest check first: length, version, cluster, key, then whether the claimed sender and number have been heard.
//! Only then is there any arithmetic on the body, and nothing is remembered of a sender before its packet proved
//! genuine.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
};

use bellwether_proto::{
    Boot, Duration, NodeId, Peer, Time,
    mechanism::replay::ReplayWindow,
    wire::{MAX_DATAGRAM, Sink},
};
use chacha20poly1305::ChaCha20Poly1305;

pub(crate) use self::packet::{CHUNK, MAX_HEADER, chunk_prefix};
pub(crate) use self::packet::{CHUNK_EXTRA, Versions};
use self::{
    packet::{
        Aad, FIXED_HEADER, HINT, Header, Hello, Kind, LAST, MAGIC, Purpose, Root, TAG, WELCOME,
        Welcome, check_chunk, chunk_nonce, decrypt, encrypt, nonce, roots, varint_len,
    },
    table::{MOST_PEERS, Proven, Table, is_plausible},
};
use crate::{
    net::{
        key::{Fingerprint, KeyRing, Rotation},
        refusal::Refusal,
    },
    status::{KeyStatus, PeerTable},
};

mod forge;
mod own;
mod packet;
mod table;

/// Seals what this node sends and opens what it receives. Knows no socket and no clock.
///
/// ```
/// use bellwether_agent::{Key, KeyRing, internal::{Content, Sealer}};
/// use bellwether_proto::{Boot, NodeId, Peer, Time};
///
/// let ring = KeyRing::new(Key::generate()?);
/// let [ada, bob] = [1, 2].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
/// let (mut at_ada, mut at_bob) = (Sealer::new(&ring, "farm", ada), Sealer::new(&ring, "farm", bob));
/// let mut packet = Vec::new();
///
/// // They have not met: a hello, and its answer.
/// at_ada.hello(&mut packet)?;
/// at_bob.open(Time::ZERO, &mut packet)?;
/// packet.clear();
/// assert!(at_bob.answer(&mut packet).is_some());
/// assert_eq!(at_ada.open(Time::ZERO, &mut packet)?.from, bob);
///
/// packet.clear();
/// at_ada.seal(bob.id, b"ping", &mut packet)?;
/// assert_eq!(packet.len(), 4 + 29);
/// let mut copy = packet.clone();
/// let opened = at_bob.open(Time::ZERO, &mut packet)?;
/// assert_eq!((opened.from, opened.content), (ada, Content::Message));
/// assert_eq!(packet[opened.body], *b"ping");
/// assert!(at_bob.open(Time::ZERO, &mut copy).is_err(), "once");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sealer {
    me: Peer,
    cluster: String,
    cluster_hint: u8,
    /// One for each key of the ring.
    roots: Vec<Root>,
    datagrams: ChaCha20Poly1305,
    streams: ChaCha20Poly1305,
    sending: Fingerprint,
    /// The number of the next packet.
    next: u64,
    speaks: Versions,
    peers: Table,
    /// Who has no version in common with us and was told of; and who is to be.
    foreign: BTreeMap<NodeId, Boot>,
    untold: VecDeque<(Peer, Versions)>,
    answers: Budget,
    answer: Option<Answer>,
    superseded: Option<Boot>,
    /// Whether somebody has sealed something for this life of ours, and known no later one.
    accepted: bool,
    /// The hello by which we asked a later life of ours that had greeted us whether it lives, and whether it does.
    challenged: Option<u64>,
    greeted: bool,
    /// Why bytes are no message that a member could mean, if they are none.
    sensible: fn(&[u8]) -> Result<(), Refusal>,
}

/// A packet that is genuine and new.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Opened {
    /// Who sent it. Of a [`Content::Hello`]: who once sent it, perhaps long ago.
    pub from: Peer,
    /// What it is.
    pub content: Content,
    /// Where in the packet the body is, now in the clear.
    pub body: Range<usize>,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Content {
    /// A message to this node alone.
    Message,
    /// To the group.
    Group,
    /// The answer to the hello of ours with this number.
    Welcome {
        /// The number of that hello.
        answers: u64,
    },
    /// Somebody does not know us. See [`Sealer::answer`].
    Hello,
}

impl Sealer {
    /// How many bytes always fit into the body of one datagram.
    pub const ROOM: usize = MAX_DATAGRAM - MAX_HEADER - TAG;
    /// The length of every hello, which is that of the longest welcome.
    pub const HELLO: usize = MAX_HEADER + WELCOME + TAG;
    /// How many bytes fit into one stream.
    pub const STREAM_ROOM: usize = 1 << 20;
    /// How many peers are remembered at a time. Those that were not heard for ten minutes make room for others.
    pub const MOST_PEERS: usize = MOST_PEERS;

    /// Seals as `me` in the cluster of that name.
    ///
    /// `me.boot` must be larger than in any earlier life, even if the state of that one was lost: a life lived
    /// twice would use every key and nonce twice.
    pub fn new(ring: &KeyRing, cluster: &str, me: Peer) -> Self {
        let roots = roots(ring, cluster);
        let own = &roots[ring.sending_index()];
        Self {
            me,
            cluster: cluster.to_owned(),
            cluster_hint: blake3::derive_key("bellwether 2026-11 cluster hint", cluster.as_bytes())
                [0]
                & HINT,
            datagrams: own.cipher(Purpose::Datagram, me),
            streams: own.cipher(Purpose::Stream, me),
            sending: own.fingerprint,
            roots,
            next: 1,
            speaks: Versions::OURS,
            peers: Table::default(),
            foreign: BTreeMap::new(),
            untold: VecDeque::new(),
            answers: Budget::full(),
            answer: None,
            superseded: None,
            accepted: false,
            challenged: None,
            greeted: false,
            sensible: |_| Ok(()),
        }
    }

    /// The same, where a later life of a member replaces the one before only by a message that this takes for one.
    pub fn with_sense(mut self, sensible: fn(&[u8]) -> Result<(), Refusal>) -> Self {
        self.sensible = sensible;
        self
    }

    /// The same, but speaking these versions. For tests of how versions get on with each other: there is one form so far.
    pub const fn speaking(mut self, versions: Versions) -> Self {
        self.speaks = versions;
        self
    }

    /// What we speak.
    pub const fn speaks(&self) -> Versions {
        self.speaks
    }

    /// Somebody who has no version in common with us, and what it speaks: each life of it once, as long as there are not
    /// too many of them. Its word may be an old one.
    pub fn take_foreign(&mut self) -> Option<(Peer, Versions)> {
        self.untold.pop_front()
    }

    /// How full the table of peers is.
    pub fn peers(&self) -> PeerTable {
        PeerTable { remembered: self.peers.len(), most: Self::MOST_PEERS }
    }

    /// Who we are.
    pub const fn me(&self) -> Peer {
        self.me
    }

    /// Goes on with other keys. What was heard stays heard.
    pub fn set_ring(&mut self, ring: &KeyRing) {
        self.roots = roots(ring, &self.cluster);
        let own = &self.roots[ring.sending_index()];
        self.datagrams = own.cipher(Purpose::Datagram, self.me);
        self.streams = own.cipher(Purpose::Stream, self.me);
        self.sending = own.fingerprint;
    }

    /// Takes a member's word for it that another one lives, in this life. What we send it is sealed for that
    /// life; what it sends us is believed no sooner for it.
    pub fn learn(&mut self, peer: Peer) {
        if peer.id != self.me.id {
            self.peers.learn(peer, self.next);
        }
    }

    /// Whether we know which life of this node to seal for.
    pub fn knows(&self, id: NodeId) -> bool {
        self.peers.get(id).is_some()
    }

    /// Whether this life has proved itself to us.
    pub fn is_proven(&self, peer: Peer) -> bool {
        self.peers.proven(peer).is_some()
    }

    /// Who has proved itself, under which key it last sent, and when. An old key can go once nobody that still
    /// lives sends under it.
    pub fn keys_in_use(&self) -> impl Iterator<Item = (Peer, Fingerprint, Time)> {
        let of = |(id, proven): (NodeId, &Proven)| {
            (Peer::new(id, proven.boot), proven.under, proven.heard)
        };
        self.peers.all().map(of)
    }

    /// The keys we use ourselves. Who is a member is not known here.
    pub fn status(&self) -> KeyStatus {
        let accepts: Vec<Fingerprint> = self.roots.iter().map(|root| root.fingerprint).collect();
        let sending = accepts.iter().position(|&key| key == self.sending).unwrap_or_default();
        KeyStatus {
            stage: Rotation::of(accepts.len(), sending),
            sends: self.sending.to_string(),
            accepts: accepts.iter().map(Fingerprint::to_string).collect(),
            members: Vec::new(),
        }
    }

    /// The key we send under.
    pub const fn sending(&self) -> Fingerprint {
        self.sending
    }

    /// Appends the datagram that brings `plain` to one node.
    ///
    /// # Errors
    ///
    /// [`Refusal::Unmet`], [`Refusal::Version`], [`Refusal::TooLarge`] (send it with [`seal_stream`](Self::seal_stream)) or
    /// [`Refusal::Exhausted`]; `out` is as it was.
    pub fn seal(&mut self, to: NodeId, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        let life = self.peers.get(to).ok_or(Refusal::Unmet)?.life;
        let version = self.peers.version_for(to, self.speaks).ok_or(Refusal::Version)?;
        self.seal_kind(version, Kind::Message, Some(Peer::new(to, life)), plain, out)
    }

    /// Appends the datagram that brings `plain` to everybody who hears it.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLarge`] or [`Refusal::Exhausted`]; `out` is as it was.
    pub fn seal_group(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        let version = self.peers.version_for_group(self.speaks);
        self.seal_kind(version, Kind::Group, None, plain, out)
    }

    /// Appends a hello, for an address whose owner or whose life we do not know. Returns what its welcome will
    /// [answer](Content::Welcome).
    ///
    /// # Errors
    ///
    /// [`Refusal::Exhausted`]; `out` is as it was.
    pub fn hello(&mut self, out: &mut Vec<u8>) -> Result<u64, Refusal> {
        self.greet(false, out)
    }

    fn greet(&mut self, asks_back: bool, out: &mut Vec<u8>) -> Result<u64, Refusal> {
        let (number, length) = (self.next, Self::HELLO - self.header_len() - TAG);
        let mut body = [0; Self::HELLO];
        let said = Hello { speaks: self.speaks, asks_back }.write();
        body[..said.len()].copy_from_slice(&said);
        self.seal_kind(self.speaks.newest(), Kind::Hello, None, &body[..length], out)?;
        Ok(number)
    }

    /// Appends the answer to the packet opened last, if it is to have one, to be sent to where that came from.
    /// It is never longer than that was.
    pub fn answer(&mut self, out: &mut Vec<u8>) -> Option<Answered> {
        match self.answer.take()? {
            Answer::Hello => Some(Answered::Hello(self.greet(true, out).ok()?)),
            Answer::Challenge => {
                self.challenged = self.greet(true, out).ok();
                self.challenged.map(Answered::Hello)
            }
            Answer::Welcome { to, answers, newest } => {
                let newest = newest.filter(|&newest| newest > to.boot);
                let (body, length) = Welcome { answers, speaks: self.speaks, newest }.write();
                let version = self.speaks.newest();
                let sealed = self.seal_kind(version, Kind::Welcome, Some(to), &body[..length], out);
                sealed.ok().map(|()| Answered::Welcome)
            }
        }
    }

    /// Opens a datagram, in place.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: why it was refused. Only after [`Refusal::Unproven`], [`Refusal::OldBoot`] and [`Refusal::Version`] there may be an
    /// [`answer`](Self::answer).
    pub fn open(&mut self, now: Time, packet: &mut [u8]) -> Result<Opened, Refusal> {
        self.answer = None;
        if packet.len() > MAX_DATAGRAM {
            return Err(Refusal::TooLarge);
        }
        let length = packet.len();
        let header = Header::read(packet, self.speaks)?;
        self.pre_check(&header, Purpose::Datagram)?;
        let to = match header.kind {
            Kind::Message | Kind::Welcome => Some(self.me),
            Kind::Group | Kind::Hello => None,
        };
        let (head, sealed) = packet.split_at_mut(header.length);
        let aad = Aad::new(head, to);
        let nonce = nonce(header.number, 0);
        let (under, cipher) = self.authenticate(&header, Purpose::Datagram, |cipher| {
            decrypt(cipher, &nonce, aad.as_slice(), sealed)
        })?;
        let body = header.length..length - TAG;
        let from = header.from;
        if from.id == self.me.id {
            let earlier = from.boot < self.me.boot;
            match header.kind {
                _ if earlier => self.tell_earlier(now, &header, length),
                Kind::Hello | Kind::Group if !self.accepted => self.challenge(now, length),
                Kind::Welcome => self.on_own_welcome(from.boot, &packet[body])?,
                Kind::Hello | Kind::Group | Kind::Message => self.supersede(from.boot),
            }
            return Err(if earlier { Refusal::OldBoot } else { Refusal::Duplicate });
        }
        let content = match header.kind {
            Kind::Message => {
                let known = self.peers.newest_life(from.id);
                if let Some(newest) = known.filter(|&newest| newest > from.boot) {
                    // It still runs somewhere, perhaps. Telling it costs no more than it did.
                    let welcome = self.header_len() + WELCOME + TAG;
                    if length >= welcome && self.answers.spend(now) {
                        let (answers, newest) = (header.number, Some(newest));
                        self.answer = Some(Answer::Welcome { to: from, answers, newest });
                    }
                    return Err(Refusal::OldBoot);
                }
                if !self.is_proven(from) && self.peers.has_forgotten() {
                    return Err(self.ask_back(now, length));
                }
                if known.is_some_and(|known| known < from.boot) {
                    (self.sensible)(&packet[body.clone()])?;
                }
                self.believe(now, &header, under, cipher)?;
                self.accepted = true;
                Content::Message
            }
            Kind::Welcome => {
                let Welcome { answers, speaks, newest } =
                    Welcome::read(&packet[body.clone()], self.next)?;
                if !self.is_proven(from) && !self.peers.is_since_forgetting(answers) {
                    return Err(Refusal::Unproven);
                }
                self.believe(now, &header, under, cipher)?;
                // It answers something of ours, so it is how things are, whatever others say.
                self.peers.welcomed(from, speaks);
                newest.into_iter().for_each(|newest| self.supersede(newest));
                self.accepted |= newest.is_none_or(|newest| newest <= self.me.boot);
                self.check_versions(from, speaks)?;
                Content::Welcome { answers }
            }
            Kind::Group => {
                if !self.is_proven(from) {
                    return Err(self.ask_back(now, length));
                }
                self.believe(now, &header, under, cipher)?;
                Content::Group
            }
            Kind::Hello => {
                let Hello { speaks, asks_back } = Hello::read(&packet[body.clone()])?;
                if length < Self::HELLO {
                    return Err(Refusal::Malformed);
                }
                let newest = self.peers.newest_life(from.id);
                if self.is_proven(from) {
                    self.believe(now, &header, under, cipher)?;
                    self.peers.speaks(from, speaks);
                } else if !self.answers.spend(now) {
                    return Err(Refusal::HelloLimit);
                }
                let answers = header.number;
                let is_old = newest.is_some_and(|newest| newest > from.boot);
                let in_doubt = !self.is_proven(from) && self.peers.has_forgotten();
                self.answer = Some(match in_doubt && !asks_back && !is_old {
                    // Who it is has to be shown to us, not only to it.
                    true => Answer::Hello,
                    false => Answer::Welcome { to: from, answers, newest },
                });
                if is_old {
                    return Err(Refusal::OldBoot);
                }
                self.check_versions(from, speaks)?;
                Content::Hello
            }
        };
        Ok(Opened { from, content, body })
    }

    /// Appends the stream that brings `plain` to one node: a length byte and a packet's header, then chunks, each
    /// behind two bytes with its length and whether it is the last, each sealed.
    ///
    /// # Errors
    ///
    /// [`Refusal::Unmet`], [`Refusal::Version`], [`Refusal::TooLargeToSend`] or [`Refusal::Exhausted`]; `out` is as it was.
    pub fn seal_stream(
        &mut self,
        to: NodeId,
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let life = self.peers.get(to).ok_or(Refusal::Unmet)?.life;
        let version = self.peers.version_for(to, self.speaks).ok_or(Refusal::Version)?;
        if plain.len() > Self::STREAM_ROOM {
            return Err(Refusal::TooLargeToSend);
        }
        let length = self.header_len();
        let number = self.take_number()?;
        let chunks = plain.len().div_ceil(CHUNK).max(1);
        out.reserve(1 + length + plain.len() + chunks * (2 + TAG));
        out.push(length as u8);
        let start = out.len();
        self.write_header(version, Kind::Message, number, out);
        let aad = Aad::new(&out[start..], Some(Peer::new(to, life)));
        for index in 0..chunks {
            let last = index + 1 == chunks;
            let chunk = &plain[index * CHUNK..plain.len().min((index + 1) * CHUNK)];
            out.u16((chunk.len() + TAG) as u16 | if last { LAST } else { 0 });
            let nonce = chunk_nonce(number, index as u32, last);
            encrypt(&self.streams, &nonce, aad.as_slice(), chunk, out);
        }
        Ok(())
    }

    /// Opens the beginning of a stream: its header (without the length byte) and its first chunk, in place.
    ///
    /// # Errors
    ///
    /// [`Refusal`]: why it was refused.
    pub fn open_stream(
        &mut self,
        now: Time,
        head: &[u8],
        chunk: &mut [u8],
        last: bool,
    ) -> Result<OpenStream, Refusal> {
        let header = Header::read_exact(head, self.speaks)?;
        if header.kind != Kind::Message {
            return Err(Refusal::UnknownKind);
        }
        self.pre_check(&header, Purpose::Stream)?;
        let aad = Aad::new(head, Some(self.me));
        let nonce = chunk_nonce(header.number, 0, last);
        let (under, cipher) = self.authenticate(&header, Purpose::Stream, |cipher| {
            check_chunk(chunk, last)?;
            decrypt(cipher, &nonce, aad.as_slice(), chunk)
        })?;
        let Header { from, number, .. } = header;
        if from.id == self.me.id {
            self.supersede(from.boot);
            return Err(Refusal::Duplicate);
        }
        if !self.is_proven(from) {
            if self.peers.newest_life(from.id).is_some() || self.peers.has_forgotten() {
                // What a stream means is known when it has ended. A message is there sooner.
                return Err(Refusal::Unproven);
            }
            let root = self.roots.iter().find(|root| root.fingerprint == under);
            let datagrams = root.ok_or(Refusal::UnknownKey)?.cipher(Purpose::Datagram, from);
            self.believe(now, &header, under, datagrams)?;
        }
        let proven = self.peers.proven_mut(from).ok_or(Refusal::TableFull)?;
        let window = proven.streams.get_or_insert_with(|| Box::new(ReplayWindow::above(0)));
        if !window.accept(number) {
            return Err(Refusal::Replay);
        }
        Ok(OpenStream { from, cipher, number, next: 1, aad })
    }

    fn seal_kind(
        &mut self,
        version: u8,
        kind: Kind,
        to: Option<Peer>,
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let length = self.header_len() + plain.len() + TAG;
        if length > MAX_DATAGRAM {
            return Err(Refusal::TooLarge);
        }
        let number = self.take_number()?;
        out.reserve(length);
        let start = out.len();
        self.write_header(version, kind, number, out);
        let aad = Aad::new(&out[start..], to);
        encrypt(&self.datagrams, &nonce(number, 0), aad.as_slice(), plain, out);
        Ok(())
    }

    /// The last number is never used, so that counting cannot wrap.
    fn take_number(&mut self) -> Result<u64, Refusal> {
        let number = self.next;
        self.next = number.checked_add(1).ok_or(Refusal::Exhausted)?;
        Ok(number)
    }

    fn header_len(&self) -> usize {
        FIXED_HEADER + varint_len(self.me.boot.get()) + varint_len(self.next)
    }

    fn write_header(&self, version: u8, kind: Kind, number: u64, out: &mut Vec<u8>) {
        out.u8(MAGIC | version);
        out.u8((kind as u8) << 6 | self.cluster_hint);
        out.u8(self.sending.hint());
        out.u64(self.me.id.get());
        out.varint(self.me.boot.get());
        out.varint(number);
    }

    /// All that can be said without arithmetic on the body. It is only claimed so far, so it may refuse and must
    /// not change anything.
    fn pre_check(&self, header: &Header, purpose: Purpose) -> Result<(), Refusal> {
        if header.cluster_hint != self.cluster_hint {
            return Err(Refusal::OtherCluster);
        }
        if !self.roots.iter().any(|root| root.fingerprint.hint() == header.key_hint) {
            return Err(Refusal::UnknownKey);
        }
        let from = header.from;
        if from == self.me {
            return Err(Refusal::OwnPacket);
        }
        if from.id == self.me.id && from.boot < self.me.boot {
            // A recording, or somebody in need of being told, whom nobody else may ever tell.
            let answered = matches!(header.kind, Kind::Hello | Kind::Group);
            return match purpose {
                Purpose::Datagram if answered => Ok(()),
                Purpose::Datagram | Purpose::Stream => Err(Refusal::OldBoot),
            };
        }
        let Some(proven) = self.peers.get(from.id).and_then(|known| known.proven.as_ref()) else {
            return Ok(());
        };
        if from.boot < proven.boot {
            // What an earlier life says is a recording, or somebody in need of being told.
            let answered = matches!(header.kind, Kind::Hello | Kind::Message);
            return match purpose {
                Purpose::Datagram if answered => Ok(()),
                Purpose::Datagram | Purpose::Stream => Err(Refusal::OldBoot),
            };
        }
        if !is_plausible(proven.boot, from.boot) {
            return Err(Refusal::ImplausibleBoot);
        }
        let window = match purpose {
            Purpose::Datagram => Some(&proven.window),
            Purpose::Stream => proven.streams.as_deref(),
        };
        let heard = window.is_some_and(|window| !window.is_fresh(header.number));
        if from.boot == proven.boot && heard { Err(Refusal::Replay) } else { Ok(()) }
    }

    /// Finds the key under which it opens: the one it names. Two keys of a ring with the same hint, one ring in
    /// 256 while it holds two, are both tried.
    fn authenticate(
        &self,
        header: &Header,
        purpose: Purpose,
        mut open: impl FnMut(&ChaCha20Poly1305) -> Result<(), Refusal>,
    ) -> Result<(Fingerprint, ChaCha20Poly1305), Refusal> {
        let cached = self.peers.proven(header.from).filter(|_| purpose == Purpose::Datagram);
        let mut refused = Refusal::UnknownKey;
        for root in self.roots.iter().filter(|root| root.fingerprint.hint() == header.key_hint) {
            let cipher = match cached {
                Some(proven) if proven.under == root.fingerprint => proven.cipher.clone(),
                _ => root.cipher(purpose, header.from),
            };
            match open(&cipher) {
                Ok(()) => return Ok((root.fingerprint, cipher)),
                Err(drop) => refused = drop,
            }
        }
        Err(refused)
    }

    /// Takes note of a genuine packet that was sealed after we started.
    fn believe(
        &mut self,
        now: Time,
        header: &Header,
        under: Fingerprint,
        cipher: ChaCha20Poly1305,
    ) -> Result<(), Refusal> {
        let &Header { version, from, number, .. } = header;
        // Greetings may be of a version that we do not speak.
        let version = version.clamp(self.speaks.oldest(), self.speaks.newest());
        if let Some(proven) = self.peers.proven_mut(from) {
            if !proven.window.accept(number) {
                return Err(Refusal::Replay);
            }
            if proven.under != under {
                (proven.under, proven.cipher) = (under, cipher);
            }
            proven.heard = now;
            self.peers.spoke(from, version);
            return Ok(());
        }
        let proven = Proven {
            boot: from.boot,
            window: ReplayWindow::above(number),
            streams: None,
            under,
            cipher,
            heard: now,
            version,
        };
        if self.peers.prove(now, from.id, proven, self.next) {
            Ok(())
        } else {
            Err(Refusal::TableFull)
        }
    }

    /// It may be a recording. Asking costs no more than it did.
    fn ask_back(&mut self, now: Time, length: usize) -> Refusal {
        if length >= Self::HELLO && self.answers.spend(now) {
            self.answer = Some(Answer::Hello);
        }
        Refusal::Unproven
    }

    /// Whether we have a version in common with somebody; if not, it is told of.
    fn check_versions(&mut self, who: Peer, speaks: Versions) -> Result<(), Refusal> {
        if self.speaks.common(speaks).is_some() {
            return Ok(());
        }
        let known = self.foreign.get(&who.id);
        let room = known.is_some() || self.foreign.len() < MOST_FOREIGN;
        if room && known != Some(&who.boot) {
            self.foreign.insert(who.id, who.boot);
            self.untold.push_back((who, speaks));
        }
        Err(Refusal::Version)
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer")
            .field("me", &self.me)
            .field("cluster", &self.cluster)
            .field("sending", &self.sending)
            .field("next", &self.next)
            .field("peers", &self.peers.len())
            .finish_non_exhaustive()
    }
}

/// A stream whose beginning has proved genuine. Holds its own key: the rest is opened where it is read.
pub struct OpenStream {
    /// Who sends it.
    pub from: Peer,
    cipher: ChaCha20Poly1305,
    number: u64,
    next: u32,
    aad: Aad,
}

impl OpenStream {
    /// Opens the next chunk, in place; what is left of it without the last [`CHUNK_EXTRA`] bytes is the plain
    /// text.
    ///
    /// # Errors
    ///
    /// [`Refusal::Auth`] or [`Refusal::Malformed`]; the stream is worthless.
    pub fn open_next(&mut self, chunk: &mut [u8], last: bool) -> Result<(), Refusal> {
        check_chunk(chunk, last)?;
        let nonce = chunk_nonce(self.number, self.next, last);
        self.next += 1;
        decrypt(&self.cipher, &nonce, self.aad.as_slice(), chunk)
    }
}

impl std::fmt::Debug for OpenStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenStream").field("from", &self.from).finish_non_exhaustive()
    }
}

/// What was said in answer to a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answered {
    /// A welcome: the hello was believed.
    Welcome,
    /// Another question: the hello of this number.
    Hello(u64),
}

enum Answer {
    Hello,
    /// The same, to a later life of our own.
    Challenge,
    Welcome {
        to: Peer,
        answers: u64,
        newest: Option<Boot>,
    },
}

/// Answers to what may be recordings.
struct Budget {
    left: u64,
    filled: Time,
}

impl Budget {
    const fn full() -> Self {
        Self { left: ANSWERS, filled: Time::ZERO }
    }

    fn spend(&mut self, now: Time) -> bool {
        if now.since(self.filled) >= Duration::from_secs(1) {
            *self = Self { left: ANSWERS, filled: now };
        }
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        true
    }
}

/// Lives of those who speak no version of ours that are told of.
const MOST_FOREIGN: usize = 256;
/// Answered hellos a second of those that may be recordings; arbitrary. 118 KB/s at most.
const ANSWERS: u64 = 2_000;

#[cfg(test)]
pub(crate) const PEER_BYTES: usize = size_of::<(NodeId, table::Known)>();

#[cfg(test)]
mod tests;
