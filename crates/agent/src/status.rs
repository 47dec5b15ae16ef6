//! What an agent answers, in the one shape that HTTP, command line, hooks and embedding programs get.
//!
//! Ages are in milliseconds, on the clock that counts suspend. Identities are sixteen hexadecimal digits as JSON, names are
//! what people configured; where a name is missing the identity stands in for it.

use std::{collections::BTreeMap, net::SocketAddr};

pub use bellwether_proto::node::{Position, Role};
use bellwether_proto::{Epoch, Mode, NodeId, Time, node};
use serde::{Serialize, Serializer};

fn role<S: Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
    role.name().serialize(serializer)
}

fn mode<S: Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(mode)
}

pub(crate) fn token<S: Serializer>(
    epoch: &Option<Epoch>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match epoch {
        Some(epoch) => serializer.collect_str(epoch),
        None => serializer.serialize_none(),
    }
}

/// Sixteen hexadecimal digits.
pub(crate) fn hex<S: Serializer>(id: &NodeId, serializer: S) -> Result<S::Ok, S::Error> {
    node::hex(*id).serialize(serializer)
}

pub(crate) fn hex_if_any<S: Serializer>(
    id: &Option<NodeId>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    id.map(node::hex).serialize(serializer)
}

fn hex_each<S: Serializer>(ids: &[NodeId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().copied().map(node::hex))
}

fn coordinates<S: Serializer>(at: &Option<Position>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|Position { x, y }| [x, y]).serialize(serializer)
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Status {
    /// The node that answers.
    pub node: Identity,
    /// The cluster it belongs to.
    pub cluster: String,
    /// The program's version.
    #[cfg_attr(test, schema(value_type = String))]
    pub version: &'static str,
    /// For how long it has run.
    pub uptime_ms: u64,
    /// The number of the newest event.
    pub index: u64,
    /// Everybody known, ourselves included, by name.
    pub members: Vec<MemberStatus>,
    /// In the order of the configuration.
    pub elections: Vec<ElectionStatus>,
    /// Names that several nodes bear which live.
    pub same_names: Vec<SameName>,
    /// Who says where those to join are, besides addresses in the settings.
    pub sources: Vec<SourceStatus>,
    /// How many addresses to join are tried, and how many can be.
    pub to_join: JoinTable,
    /// How many peers are remembered, and how many can be.
    pub peers: PeerTable,
    /// Why the disk does not have what must not be forgotten, if it refuses it or does not answer.
    pub disk: Option<String>,
    /// What was sent, received and refused.
    pub counters: Counters,
    /// Under which keys.
    pub keys: KeyStatus,
}

/// A source of addresses to join: a name, a service, a program, or the file of remembered peers.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Source))]
pub struct SourceStatus {
    /// The source, as configured.
    pub source: String,
    /// What it named when it last named anybody.
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    pub addresses: Vec<SocketAddr>,
    /// Why it names nobody now, if so.
    pub problem: Option<String>,
    /// How long until it is asked again; none if it has yet to answer for the first time, or is read only at the start.
    pub next_ms: Option<u64>,
}

/// A name that tells nobody apart.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SameName {
    /// As configured on each of them.
    pub name: String,
    /// Who they are.
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    #[serde(serialize_with = "hex_each")]
    pub ids: Vec<NodeId>,
}

/// The table of peers that have proved that they live. Those that were not heard for long make room for others.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PeerTable {
    /// How many are remembered.
    pub remembered: usize,
    /// How many can be.
    pub most: usize,
}

impl PeerTable {
    /// Whether it is three quarters full, though whoever was not heard for long is forgotten.
    pub const fn is_filling(&self) -> bool {
        self.remembered >= self.most / 4 * 3
    }
}

/// The addresses that are tried to join somebody: those that were given, and those that sources name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct JoinTable {
    /// How many there are.
    pub tried: usize,
    /// How many there can be.
    pub most: usize,
}

impl JoinTable {
    /// Whether it is three quarters full.
    pub const fn is_filling(&self) -> bool {
        self.tried >= self.most / 4 * 3
    }
}

/// The keys an agent uses, by fingerprint.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Keys))]
pub struct KeyStatus {
    /// How far a rotation is.
    pub stage: Rotation,
    /// What it sends under.
    pub sends: String,
    /// What it accepts, oldest first.
    pub accepts: Vec<String>,
    /// What the other members that live send under, by name.
    pub members: Vec<KeyUser>,
}

/// How far a rotation is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rotation {
    /// There is one key.
    Settled,
    /// A newer key is accepted, an older one is sent.
    AcceptBoth,
    /// The newest key is sent, older ones are still accepted.
    SendNew,
}

impl Rotation {
    /// Of a ring of so many keys, of which this one is sent.
    pub(crate) fn of(keys: usize, sending: usize) -> Self {
        match (keys, sending + 1) {
            (1, _) => Self::Settled,
            (keys, sending) if sending < keys => Self::AcceptBoth,
            _ => Self::SendNew,
        }
    }

    /// As it is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::AcceptBoth => "accept-both",
            Self::SendNew => "send-new",
        }
    }
}

/// The key of one member.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct KeyUser {
    /// The identity of the member.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(serialize_with = "hex")]
    pub id: NodeId,
    /// As it is configured there.
    pub name: String,
    /// What it last sent under; none if it has not been heard directly.
    pub key: Option<String>,
    /// How long ago that was.
    pub heard_ms: Option<u64>,
}

/// Who somebody is.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Identity {
    /// The identity of the node.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(serialize_with = "hex")]
    pub id: NodeId,
    /// Its name, as configured.
    pub name: String,
    /// Grows with every start.
    pub boot: u64,
}

/// How a member is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// Answers, as far as is known.
    Alive,
    /// Did not answer; may still contradict.
    Suspect,
    /// Was suspected and has not contradicted.
    Failed,
    /// Has said goodbye.
    Left,
}

/// How a member is reached.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// It is this node.
    Own,
    /// It answers us.
    Direct,
    /// It answers only through this member.
    Through(String),
}

/// What is known of one member.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Member))]
pub struct MemberStatus {
    /// The identity of the member.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(serialize_with = "hex")]
    pub id: NodeId,
    /// As it is configured there.
    pub name: String,
    /// How it is.
    pub state: MemberState,
    /// For how long it has been so.
    pub since_ms: u64,
    /// The boot number of its present life.
    pub boot: u64,
    /// Which incarnation of it.
    pub incarnation: u32,
    /// Where it says it can be reached, the best first.
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    pub addresses: Vec<SocketAddr>,
    /// How it is reached.
    pub reach: Reach,
    /// How long ago a message of its own reached us; none if none has, or it is this node.
    pub heard_ms: Option<u64>,
    /// How often we have suspected it, lately.
    pub suspicions: u32,
    /// Who accuses it now, by name.
    pub accusers: Vec<String>,
    /// For a suspect: how long it has left to contradict.
    pub convicted_in_ms: Option<u64>,
    /// Where it says it is.
    #[cfg_attr(test, schema(value_type = Option<Vec<f64>>, min_items = 2, max_items = 2))]
    #[serde(serialize_with = "coordinates")]
    pub position: Option<Position>,
    /// What is configured there for others to read.
    pub tags: BTreeMap<String, String>,
    /// What was last held against it or in its favour, oldest first.
    pub verdicts: Vec<Verdict>,
}

/// One entry of a member's record.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Verdict {
    /// How long ago.
    pub ago_ms: u64,
    /// What happened to it.
    pub what: EventKind,
    /// Who said so, by name, if it was not ourselves.
    pub by: Option<String>,
}

/// One named election.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Election))]
pub struct ElectionStatus {
    /// The election's name, as configured.
    pub election: String,
    /// Which promise the answer carries.
    #[cfg_attr(test, schema(schema_with = words::modes))]
    #[serde(serialize_with = "mode")]
    pub mode: Mode,
    /// Who leads, if anybody is known to.
    pub leader: Option<LeaderStatus>,
    /// The fencing token: counter.node.boot.sequence. Never goes back; refuse what is older.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    #[serde(serialize_with = "token")]
    pub epoch: Option<Epoch>,
    /// Whether this node remembers epochs over a restart: it has a `data_dir`. Where no node does, epochs begin anew when all
    /// have stopped.
    pub epoch_durable: bool,
    /// Whether there is no present reason to doubt it.
    pub settled: bool,
    /// Whether this node leads, and may act.
    pub is_leader: bool,
    /// For how long the answer has been what it is.
    pub since_ms: u64,
    /// Leased elections, on the node that leads: how long it may still act.
    pub valid_for_ms: Option<u64>,
    /// The same as an instant: microseconds of this machine's `CLOCK_BOOTTIME`, which counts suspend.
    pub valid_until_us: Option<u64>,
    /// Leased elections: how long what the holder has begun may go on after that.
    pub step_down_ms: Option<u64>,
    /// How long this node has heard nothing from anybody, if that is longer than it should be: it may be cut off, and the
    /// others may have another leader.
    pub silent_ms: Option<u64>,
    /// Leased elections: who backs a leader, and whom of them this node hears.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub majority: Option<MajorityStatus>,
    /// What this node is in it.
    #[cfg_attr(test, schema(schema_with = words::roles))]
    #[serde(serialize_with = "role")]
    pub role: Role,
    /// What it is worth there; more is better.
    pub priority: u32,
    /// Why, in words.
    pub why: String,
    /// How far others believe the same, as far as they have said.
    pub agreement: Agreement,
    /// Who has other settings for it, where all must have the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<Differing>,
    /// How often another leader was named, since the start.
    pub changes: u64,
    /// For how long none was known, since the start.
    pub leaderless_ms: u64,
    /// Messages this node has sent in it.
    pub sent: u64,
    /// Of these, what elected: all but what keeps a leader in office and says who it is.
    pub sent_electing: u64,
    /// Where records count: what is known of those that may lead, the most reliable first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<ScoreStatus>,
    /// Central elections: what the answer follows from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub central: Option<CentralStatus>,
}

/// Who backs a leased leader.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Majority))]
pub struct MajorityStatus {
    /// All members, by name, as configured.
    pub members: Vec<String>,
    /// How many of them a leader needs, itself included.
    pub needed: u32,
    /// Whom of them this node has heard of late, itself included.
    pub heard: Vec<String>,
}

/// What is known of one that may lead.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Score))]
pub struct ScoreStatus {
    /// 1 is the most reliable.
    pub rank: u32,
    /// The identity of the member.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(serialize_with = "hex")]
    pub id: NodeId,
    /// As it is configured there.
    pub name: String,
    /// How often it is there and does well, from 0 to 1.
    #[cfg_attr(test, schema(minimum = 0, maximum = 1))]
    pub score: f64,
    /// On how many samples that stands, as far as they still count. Where every node keeps its own record, only it knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub samples: Option<u64>,
    /// Whether it stands behind all others, whatever its score: given up, or it failed its electors, or may not lead.
    pub away: bool,
    /// Why, in words.
    pub why: String,
}

impl ElectionStatus {
    /// The same, for whoever reads it at `now`: an answer may lie around, as in a process that was stopped, and a lease be
    /// over.
    pub(crate) fn read_at(self, now: Time) -> Self {
        let until = self.valid_until_us.map(Time::from_micros);
        match until {
            Some(until) if now >= until => Self {
                leader: None,
                epoch: None,
                settled: false,
                is_leader: false,
                valid_for_ms: None,
                valid_until_us: None,
                why: "the lease is over".to_owned(),
                ..self
            },
            Some(until) => {
                Self { valid_for_ms: Some(until.since(now).as_micros() / 1_000), ..self }
            }
            None => self,
        }
    }
}

/// What the answer of a central election follows from.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Central))]
pub struct CentralStatus {
    /// By what the leader is the best: `closeness`, `degree`, `betweenness`, `tree` or `eigenvector`.
    #[cfg_attr(test, schema(schema_with = words::criteria))]
    pub criterion: &'static str,
    /// Nodes in our part of the mesh, this one included.
    pub members: u32,
    /// How many of them have told nothing yet.
    pub unknown: u32,
    /// The best node's score: the sum of its distances to all (`closeness`; in a spanning tree: `tree`), its neighbours
    /// (`degree`), or thousandths: of pairs of others that it is between, or of the largest part (`eigenvector`).
    pub score: u64,
    /// A hash of the map, in sixteen hexadecimal digits: who names another leader under the same one is wrong. No order:
    /// it tells maps apart, not which is newer.
    pub map: String,
    /// Who is in range, by name.
    pub neighbours: Vec<String>,
    /// Why the routing daemon's table could not be read, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub problem: Option<String>,
}

/// The map of a central election, as this node knows it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Map))]
pub struct MapStatus {
    /// Of which election.
    pub election: String,
    /// Who leads; none if this node must not, and would.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    #[serde(serialize_with = "hex_if_any")]
    pub leader: Option<NodeId>,
    /// The identity of this node.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(serialize_with = "hex")]
    pub own: NodeId,
    /// What it follows from.
    #[serde(flatten)]
    pub central: CentralStatus,
    /// All nodes, the most central first.
    pub nodes: Vec<MapNode>,
    /// Who hears whom: two places in `nodes` each, the smaller first.
    #[cfg_attr(test, schema(value_type = Vec<Vec<u32>>))]
    pub links: Vec<(u32, u32)>,
}

/// One node of a map.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct MapNode {
    /// The identity of the node.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(serialize_with = "hex")]
    pub id: NodeId,
    /// As it is configured there; the identity if nobody has said.
    pub name: String,
    /// From 1; nodes of equal score are ranked by identity, the higher first.
    pub rank: u32,
    /// By the criterion, as the best node's. Thousandths are rounded, ranks are not.
    pub score: u64,
    /// How many hear it and are heard by it.
    pub degree: u32,
    /// How far it is from this node.
    pub hops: u32,
}

/// The member that leads an election.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Leader))]
pub struct LeaderStatus {
    /// The identity of the member.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(serialize_with = "hex")]
    pub id: NodeId,
    /// As it is configured there.
    pub name: String,
}

/// How many believe the same.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Agreement {
    /// Members that named the same leader when they were last heard, ourselves included.
    pub agree: u32,
    /// Members that have named one.
    pub heard: u32,
    /// Who named another: member and leader, by name.
    #[cfg_attr(test, schema(value_type = Vec<Vec<String>>))]
    pub dissent: Vec<(String, String)>,
}

/// A member that has set an election otherwise than this node.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Differing {
    /// The identity of the member.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(serialize_with = "hex")]
    pub id: NodeId,
    /// As it is configured there.
    pub name: String,
    /// The settings that differ; nothing but `mode` if that does.
    #[cfg_attr(test, schema(value_type = Vec<String>, min_items = 1))]
    pub settings: Vec<&'static str>,
}

/// What was sent, received and refused since the start.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Counters {
    /// Datagrams that were sent.
    pub sent: u64,
    /// Their bytes, as handed to the socket.
    pub sent_bytes: u64,
    /// Datagrams received and believed.
    pub received: u64,
    /// Bytes of all datagrams received.
    pub received_bytes: u64,
    /// Refused or given up, by reason. Every reason is there from the start.
    #[cfg_attr(test, schema(value_type = BTreeMap<String, u64>))]
    pub dropped: BTreeMap<&'static str, u64>,
    /// Accusations against this node it has contradicted.
    pub refuted: u64,
    /// Accusations of members that were heard of.
    pub accusations: u64,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A member is new, or back.
    MemberJoin,
    /// A member did not answer.
    MemberSuspect,
    /// A suspect has contradicted.
    MemberAlive,
    /// A member was given up.
    MemberFailed,
    /// A member has said goodbye.
    MemberLeave,
    /// A member's tags or addresses have changed.
    MemberUpdate,
    /// Somebody leads who did not before.
    LeaderElected,
    /// Nothing casts doubt on the leader any more.
    LeaderConfirmed,
    /// Nobody is known to lead any more.
    LeaderLost,
    /// This node leads.
    BecameLeader,
    /// This node no longer leads.
    StoppedLeading,
    /// A member has other settings for an election than this node, where all must have the same.
    SettingsDiffer,
    /// Two nodes that live bear one name.
    SameName,
    /// A node of this cluster speaks no version of packets that this one speaks.
    VersionsDiffer,
    /// The table of peers is three quarters full of those that were heard not long ago.
    TableFilling,
    /// Another node runs under our identity; this one stops.
    DuplicateIdentity,
    /// The process was not running for longer than it may; whoever led gave up.
    Stalled,
    /// The disk refuses what must be kept; elections that need it take no part.
    DiskRefused,
    /// The disk takes it again.
    DiskRecovered,
    /// What this node is given is no longer recorded; it goes on.
    RecordEnded,
    /// A source of addresses to join names nobody; it is asked again.
    JoinFailed,
    /// It names somebody again.
    JoinFound,
    /// A member does not answer where it says it is reached.
    AddressDiffers,
}

/// One line of the history.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Event {
    /// Grows by one with every event.
    pub index: u64,
    /// Milliseconds of the wall clock since 1970; for people, never compared.
    pub unix_ms: u64,
    /// What has happened, by name.
    pub event: EventKind,
    /// In which election, if in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub election: Option<String>,
    /// To which member, or who leads now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub node: Option<LeaderStatus>,
    /// Under which token.
    #[cfg_attr(test, schema(value_type = String))]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "token")]
    pub epoch: Option<Epoch>,
    /// Leased elections, where this node leads: for how long it might act as it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub valid_for_ms: Option<u64>,
    /// In words, if there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub detail: Option<String>,
}

/// What words there are for what other crates define, for the description of answers.
#[cfg(test)]
mod words {
    use bellwether_proto::{Mode, node::Role, topology::criterion::Criterion};
    use serde_json::Value;
    use utoipa::openapi::{Object, ObjectBuilder, schema::Type};

    pub(super) fn modes() -> Object {
        let all = [Mode::Eventual, Mode::Announced, Mode::Central, Mode::Leased, Mode::Learned];
        choices("Which promise the answer carries.", all.map(|mode| mode.to_string()))
    }

    pub(super) fn roles() -> Object {
        let all = [Role::Candidate, Role::Observer, Role::Witness];
        choices("What this node is in it.", all.map(Role::name))
    }

    pub(super) fn criteria() -> Object {
        choices("By what the leader is the best.", Criterion::NAMED.map(|(name, _)| name))
    }

    /// One of these words. What is documented of such a field is said here.
    fn choices<T: Into<Value>>(what: &str, all: impl IntoIterator<Item = T>) -> Object {
        let one = ObjectBuilder::new().schema_type(Type::String).description(Some(what));
        one.enum_values(Some(all)).build()
    }
}
