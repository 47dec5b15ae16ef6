//! What survives a restart: who we are, how often we have started, and the newest fencing tokens.
//!
//! One file, `node.json`, replaced as a whole: written beside it, flushed, renamed. It is written at the start, so that
//! no two lives share a boot number, and when a token is minted or accepted; never while nothing changes. Only the first
//! write is waited for: the others are a [thread's](writer). Who has it holds the directory's lock, so that no two lives
//! share it either.
//!
//! `format` is the version of its form. A version of the program that has more to keep adds keys, which the others do not
//! know, leave alone and write again. Only a form that they would misread gets another number, and is refused by them.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use bellwether_proto::{
    Boot, ElectionId, Epoch, NodeId, Peer,
    election::{
        announce,
        bandit::{self, Belief},
        churn_tolerant,
    },
    node::{self, Durable, KeptBallot, KeptRecord, hex, packet::Dialect},
};
use serde::{Deserialize, Serialize};

use self::{lock::Lock, writer::Writer};
use crate::trust::{self, Distrust};

mod lock;
mod writer;

/// The file, open for this life.
#[derive(Debug)]
pub(crate) struct Store {
    /// The file and who writes it; none if nothing is kept.
    file: Option<(PathBuf, Writer)>,
    /// What is there.
    kept: Kept,
    /// What is being written.
    writing: Option<Kept>,
    /// Why the file could not be written the last time.
    problem: Option<String>,
    dialect: Dialect,
}

/// What becomes of what is to be kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Keeping {
    /// It is there, or there is nowhere to keep anything.
    Done,
    /// It is being written: [`Store::written`] says what comes of it.
    UnderWay,
}

/// What another version of the program keeps.
type More = serde_json::Map<String, serde_json::Value>;

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Kept {
    #[serde(default = "Kept::format")]
    format: u64,
    /// Hexadecimal, so that people can compare it with what the agent prints.
    id: String,
    boot: u64,
    #[serde(default)]
    elections: BTreeMap<String, Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worth: Option<WorthKept>,
    #[serde(flatten)]
    more: More,
}

/// What this node is good for by its own record, in millionths of samples.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct WorthKept {
    cost: u64,
    count: u64,
    ended_well: bool,
    #[serde(flatten)]
    more: More,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
struct Tokens {
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vouched: Option<String>,
    /// Of an announced election: no larger one was minted or vouched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<u64>,
    /// Of a leased election: none larger was promised to or known.
    #[serde(skip_serializing_if = "Option::is_none")]
    leased: Option<String>,
    /// Of a learned election.
    #[serde(skip_serializing_if = "Option::is_none")]
    ballot: Option<Ballot>,
    #[serde(flatten)]
    more: More,
}

impl Tokens {
    fn of(kept: &node::Kept) -> Self {
        let text = |epoch: &Option<Epoch>| epoch.as_ref().map(Epoch::to_string);
        let none = Self::default();
        match kept {
            node::Kept::Eventual(churn_tolerant::Durable { known, vouched }) => {
                Self { known: text(known), vouched: text(vouched), ..none }
            }
            node::Kept::Announced(announce::Durable { max_epoch, vouched }) => {
                Self { vouched: text(vouched), counter: Some(*max_epoch), ..none }
            }
            node::Kept::Leased(epoch) => Self { leased: Some(epoch.to_string()), ..none },
            node::Kept::Learned(ballot) => Self { ballot: Some(Ballot::of(ballot)), ..none },
        }
    }

    /// `None` if nothing is in it. What was read has been looked through by [`Kept::read`].
    fn kept(&self) -> Option<node::Kept> {
        let epoch = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
        Some(match self {
            Self { ballot: Some(ballot), .. } => node::Kept::Learned(ballot.kept()),
            Self { leased: Some(text), .. } => node::Kept::Leased(text.parse().ok()?),
            Self { counter: Some(max_epoch), vouched, .. } => {
                let vouched = epoch(vouched);
                node::Kept::Announced(announce::Durable { max_epoch: *max_epoch, vouched })
            }
            // Of a mode of another version.
            Self { known: None, vouched: None, .. } => return None,
            Self { known, vouched, .. } => {
                let (known, vouched) = (epoch(known), epoch(vouched));
                node::Kept::Eventual(churn_tolerant::Durable { known, vouched })
            }
        })
    }
}

/// What a voter must not forget, and what it has learnt.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
struct Ballot {
    /// Who the voters are, by name.
    voters: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    term: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vote: Option<String>,
    /// Of each: how often it did not do what it should, in millionths, and on how many samples that stands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    beliefs: BTreeMap<String, (u32, u64)>,
    #[serde(flatten)]
    more: More,
}

impl Ballot {
    fn of(KeptBallot { voters, durable }: &KeptBallot) -> Self {
        let belief = |Belief { id, mean, weight }: &Belief| {
            (hex(*id), ((mean.clamp(0.0, 1.0) * MILLION).round() as u32, *weight))
        };
        let beliefs = durable.iter().flat_map(|durable| durable.beliefs.iter().map(belief));
        Self {
            voters: voters.iter().map(|(name, &id)| (name.clone(), hex(id))).collect(),
            term: durable.as_ref().map(|durable| durable.term),
            vote: durable.as_ref().and_then(|durable| durable.voted_for).map(hex),
            beliefs: beliefs.collect(),
            more: More::new(),
        }
    }

    fn kept(&self) -> KeptBallot {
        let voter = |(name, id): (&String, &String)| Some((name.clone(), identity(id)?));
        let belief = |(id, &(mean, weight)): (&String, &(u32, u64))| {
            Some(Belief { id: identity(id)?, mean: f64::from(mean) / MILLION, weight })
        };
        let durable = self.term.map(|term| bandit::Durable {
            term,
            voted_for: self.vote.as_deref().and_then(identity),
            beliefs: self.beliefs.iter().filter_map(belief).collect(),
        });
        KeptBallot { voters: self.voters.iter().filter_map(voter).collect(), durable }
    }
}

/// Why there is no node.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is there, and is not ours.
    #[error(
        "{}: {problem}; this file is the node's identity: restore it, or remove it to start as a new node",
        path.display()
    )]
    Damaged {
        /// The file that was read.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A later version of the program has written it.
    #[error(
        "{}: format = {found} is a later version's, and this version reads {FORMAT}: start the version that wrote it",
        path.display()
    )]
    Newer {
        /// The file that was read.
        path: PathBuf,
        /// The format it says it has.
        found: u64,
    },
    /// Somebody else could have written what is there, or could write it.
    #[error("data_dir: {0}")]
    Distrusted(#[from] Distrust),
    /// Without it two nodes might have one identity, or two lives one boot number.
    #[error("the system has no randomness to draw an identity or a boot number from: {0}")]
    Entropy(getrandom::Error),
    /// Another agent lives there.
    #[error(
        "data_dir {}: {} runs on this directory; stop it, or give this agent a directory of its own (--data-dir)",
        directory.display(),
        holder.map_or("another agent".to_owned(), |pid| format!("the agent of process {pid}"))
    )]
    Taken {
        /// The directory that is in use.
        directory: PathBuf,
        /// Its process, if it has said so.
        holder: Option<u32>,
    },
}

impl Store {
    /// Begins a new life in this directory, which is made if need be: the same node as the last time, or a new one.
    /// Without a directory the node is new every time. Its boot number is larger than the last one and than `above`, by a
    /// random step: of two that begin from copies of one directory neither lives the life of the other, under its keys
    /// and with its epochs, and all can tell which is the later.
    pub(crate) fn open(directory: Option<&Path>, above: Option<Boot>) -> Result<Self, StoreError> {
        let Some(directory) = directory else {
            let kept = Kept { boot: 1, ..Kept::new()? };
            let dialect = Dialect::Present;
            return Ok(Self { file: None, kept, writing: None, problem: None, dialect });
        };
        let path = directory.join("node.json");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::Io { path, source }
        };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(failed(directory))?;
        trust::kept(directory, &fs::metadata(directory).map_err(failed(directory))?)?;
        let lock = Lock::take(directory)?;
        sweep(directory).map_err(failed(directory))?;
        let mut kept = match read(&path) {
            Ok(text) => Kept::read(&text).map_err(|unreadable| {
                let path = path.clone();
                match unreadable {
                    Unreadable::Newer(found) => StoreError::Newer { path, found },
                    Unreadable::Damaged(problem) => StoreError::Damaged { path, problem },
                }
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Kept::new()?,
            Err(error) => return Err(failed(&path)(error)),
        };
        let last = kept.boot.max(above.map_or(0, Boot::get));
        kept.boot = next_boot(last)?.ok_or_else(|| StoreError::Damaged {
            path: path.clone(),
            problem: format!("boot {last} is the last there is"),
        })?;
        replace(&path, &kept).map_err(failed(&path))?;
        let writer = Writer::start(path.clone(), lock).map_err(failed(&path))?;
        let (file, dialect) = (Some((path, writer)), Dialect::Present);
        Ok(Self { file, kept, writing: None, problem: None, dialect })
    }

    /// The same, writing as this version of the program does, or as another might.
    pub(crate) fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    pub(crate) fn me(&self) -> Peer {
        Peer::new(self.kept.id().unwrap_or_default(), Boot::new(self.kept.boot))
    }

    /// What the last life knew.
    pub(crate) fn durable(&self) -> Durable {
        let elections = self.kept.elections.iter();
        let elections =
            elections.filter_map(|(group, tokens)| Some((group.parse().ok()?, tokens.kept()?)));
        let worth = self.kept.worth.as_ref();
        let record = worth.map(|&WorthKept { cost, count, ended_well, .. }| KeptRecord {
            cost,
            count,
            ended_well,
        });
        Durable { elections: elections.collect(), record }
    }

    /// Keeps this; writes only if it is not what is kept already. One at a time: the node waits for the last one.
    pub(crate) fn keep(&mut self, durable: &Durable) -> Keeping {
        let mut kept = self.kept.clone();
        for (group, election) in &durable.elections {
            let tokens = kept.elections.entry(group.to_string()).or_default();
            // What another version keeps of this election stays.
            let before = core::mem::replace(tokens, Tokens::of(election));
            tokens.more = before.more;
            if let (Some(ballot), Some(before)) = (&mut tokens.ballot, before.ballot) {
                ballot.more = before.more;
            }
        }
        if let Some(KeptRecord { cost, count, ended_well }) = durable.record {
            let more = kept.worth.take().map(|worth| worth.more).unwrap_or_default();
            kept.worth = Some(WorthKept { cost, count, ended_well, more });
        }
        if self.dialect == Dialect::Next {
            kept.add_more();
        }
        let Some((_, writer)) = self.file.as_ref().filter(|_| kept != self.kept) else {
            self.kept = kept;
            return Keeping::Done;
        };
        debug_assert!(self.writing.is_none(), "one at a time");
        writer.write(kept.clone());
        self.writing = Some(kept);
        Keeping::UnderWay
    }

    /// Whether what was being written is kept now; waits for that, for ever if nothing is. May be dropped at any time.
    pub(crate) async fn written(&mut self) -> bool {
        let Some((path, writer)) = self.file.as_mut().filter(|_| self.writing.is_some()) else {
            return std::future::pending().await;
        };
        let written = writer.done().await;
        self.problem = written.as_ref().err().map(|error| format!("{}: {error}", path.display()));
        // What is not on disk is not kept: the next one to ask must not be told so.
        if let Some(kept) = self.writing.take().filter(|_| written.is_ok()) {
            self.kept = kept;
        }
        written.is_ok()
    }

    #[cfg(test)]
    pub(crate) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Whether there is a file at all.
    pub(crate) fn is_durable(&self) -> bool {
        self.file.is_some()
    }

    /// Why the file could not be written the last time, or that it takes long, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        let (path, _) = self.file.as_ref()?;
        match (&self.problem, &self.writing) {
            (_, Some(_)) => Some(format!("{}: the disk does not answer", path.display())),
            (problem, None) => problem.clone(),
        }
    }
}

/// Puts this in the place of the file, whole or not at all.
fn replace(path: &Path, kept: &Kept) -> io::Result<()> {
    // A lock binds only those that ask for it: whoever did not must not be given a life that was lived.
    let there = read(path).ok().and_then(|text| Kept::read(&text).ok());
    let boot = there.map_or(0, |there| there.boot).max(kept.boot);
    let beside = path.with_extension(format!("json.{}.new", std::process::id()));
    let mut options = File::options();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(&serde_json::to_vec_pretty(&Kept { boot, ..kept.clone() })?)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // The rename itself must last too.
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Removes drafts that earlier lives did not come to finish. Their names have numbers in them, so that they would add up.
fn sweep(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("node.json.") && name.ends_with(".new") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A boot number above this one, if there is one.
fn next_boot(last: u64) -> Result<Option<u64>, StoreError> {
    let step = getrandom::u32().map_err(StoreError::Entropy)?;
    Ok(last.checked_add(1).and_then(|next| next.checked_add(step.into())))
}

/// What is in the file, which is not read without an end: a node keeps a few kilobytes.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LARGEST + 1).read_to_string(&mut text)?;
    match text.len() as u64 > LARGEST {
        true => Err(io::Error::other(format!("has more than {LARGEST} bytes"))),
        false => Ok(text),
    }
}

fn identity(text: &str) -> Option<NodeId> {
    u64::from_str_radix(text, 16).ok().map(NodeId::new)
}

/// What is read of such a file, as it is written again. For tests with any text.
///
/// # Errors
///
/// Why it is not read.
#[doc(hidden)]
pub fn rewritten(text: &str) -> Result<String, String> {
    let kept = Kept::read(text).map_err(|unreadable| match unreadable {
        Unreadable::Newer(found) => format!("format {found}"),
        Unreadable::Damaged(problem) => problem,
    })?;
    let dialect = Dialect::Present;
    let mut store = Store { file: None, kept, writing: None, problem: None, dialect };
    // Without a file it is kept at once.
    store.keep(&store.durable());
    serde_json::to_string(&store.kept).map_err(|error| error.to_string())
}

/// Why a file is not read.
enum Unreadable {
    Newer(u64),
    Damaged(String),
}

const MILLION: f64 = 1e6;
/// Bytes of the file. Arbitrary: 64 elections of the largest kind, and as much again of a later version's.
const LARGEST: u64 = 4 << 20;
/// Of the file. Another number means that the versions before would misread it.
const FORMAT: u64 = 1;

impl Kept {
    /// A node nobody has seen before.
    fn new() -> Result<Self, StoreError> {
        let id = loop {
            match getrandom::u64().map_err(StoreError::Entropy)? {
                0 => {}
                id => break id,
            }
        };
        Ok(Self {
            format: FORMAT,
            id: format!("{id:016x}"),
            boot: 0,
            elections: BTreeMap::new(),
            worth: None,
            more: More::new(),
        })
    }

    /// What is meant by a file that does not say.
    const fn format() -> u64 {
        FORMAT
    }

    /// As a later version might that this one has to live with.
    fn add_more(&mut self) {
        let add = |more: &mut More| {
            more.insert("later".to_owned(), serde_json::json!({ "than": FORMAT, "list": [1.5] }));
        };
        add(&mut self.more);
        self.worth.iter_mut().for_each(|worth| add(&mut worth.more));
        for tokens in self.elections.values_mut() {
            add(&mut tokens.more);
            tokens.ballot.iter_mut().for_each(|ballot| add(&mut ballot.more));
        }
    }

    fn id(&self) -> Option<NodeId> {
        u64::from_str_radix(&self.id, 16).ok().map(NodeId::new)
    }

    fn read(text: &str) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Form {
            #[serde(default = "Kept::format")]
            format: u64,
        }
        let damaged = |error: serde_json::Error| Unreadable::Damaged(error.to_string());
        match serde_json::from_str::<Form>(text).map_err(damaged)?.format {
            FORMAT => {}
            0 => return Err(Unreadable::Damaged("format 0 is none".to_owned())),
            found => return Err(Unreadable::Newer(found)),
        }
        let kept: Self = serde_json::from_str(text).map_err(damaged)?;
        kept.check().map_err(Unreadable::Damaged)?;
        Ok(kept)
    }

    fn check(&self) -> Result<(), String> {
        let kept = self;
        if kept.id().is_none() || kept.id.len() != 16 {
            return Err(format!("id {:?} is not sixteen hexadecimal digits", kept.id));
        }
        if kept.id().is_some_and(|id| id.get() == 0) {
            return Err("id 0 is nobody's".to_owned());
        }
        for (group, tokens) in &kept.elections {
            group.parse::<ElectionId>().map_err(|_| format!("{group:?} names no election"))?;
            for epoch in [&tokens.known, &tokens.vouched, &tokens.leased].into_iter().flatten() {
                epoch.parse::<Epoch>().map_err(|error| format!("election {group}: {error}"))?;
            }
            let ballot = tokens.ballot.iter();
            let named = |ballot: &Ballot| -> Vec<String> {
                let believed = ballot.beliefs.keys().chain(ballot.voters.values());
                believed.chain(&ballot.vote).cloned().collect()
            };
            if let Some(wrong) = ballot.flat_map(named).find(|id| identity(id).is_none()) {
                return Err(format!("election {group}: {wrong:?} is nobody's identity"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durable(counter: u64) -> Durable {
        let minted = Epoch::mint(counter, Peer::new(NodeId::new(3), Boot::new(2)));
        let epoch = Some(minted);
        let tokens = churn_tolerant::Durable { known: epoch, vouched: epoch };
        let ballot = KeptBallot {
            voters: [("roof".to_owned(), NodeId::new(9))].into(),
            durable: Some(bandit::Durable {
                term: counter,
                voted_for: Some(NodeId::new(9)),
                beliefs: vec![Belief { id: NodeId::new(9), mean: 0.25, weight: 4 }],
            }),
        };
        let kept = [
            ("backup", node::Kept::Eventual(tokens)),
            (
                "door",
                node::Kept::Announced(announce::Durable { max_epoch: counter, vouched: epoch }),
            ),
            ("disk", node::Kept::Leased(minted)),
            ("vote", node::Kept::Learned(ballot)),
        ];
        let elections = kept.map(|(name, kept)| (ElectionId::named(name), kept)).into();
        let record = Some(KeptRecord { cost: 1, count: counter, ended_well: true });
        Durable { elections, record }
    }

    /// Keeps this and waits until it is, or is refused.
    fn keep(store: &mut Store, durable: &Durable) -> bool {
        match store.keep(durable) {
            Keeping::Done => true,
            Keeping::UnderWay => {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(store.written())
            }
        }
    }

    #[test]
    fn the_same_node_starts_again_with_a_larger_boot_number_and_its_tokens() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let mut first = Store::open(Some(&path), None).unwrap();
        assert!(first.me().boot >= Boot::new(1) && first.durable().elections.is_empty());
        assert!(keep(&mut first, &durable(7)));
        let before = first.me();
        drop(first);
        use std::os::unix::fs::PermissionsExt as _;
        let copy = directory.path().join("copy");
        fs::create_dir(&copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
        fs::copy(path.join("node.json"), copy.join("node.json")).unwrap();
        let second = Store::open(Some(&path), None).unwrap();
        assert!(second.me().id == before.id && second.me().boot > before.boot);
        let twin = Store::open(Some(&copy), None).unwrap().me();
        assert!(twin.id == before.id && twin.boot > before.boot);
        assert_ne!(twin.boot, second.me().boot, "once in four billion times");
        let later = Boot::new(twin.boot.get() + (1 << 40));
        let renewed = Store::open(Some(&copy), Some(later)).unwrap().me();
        assert!(renewed.id == before.id && renewed.boot > later);
        assert_eq!(second.durable(), durable(7));
        assert_ne!(
            Store::open(None, None).unwrap().me().id,
            Store::open(None, None).unwrap().me().id
        );
    }

    #[test]
    fn a_directory_is_one_agents_and_the_refusal_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let first = Store::open(Some(directory.path()), None).unwrap();
        let error = Store::open(Some(directory.path()), None).unwrap_err().to_string();
        let (path, pid) = (directory.path().display(), std::process::id());
        let words = format!("data_dir {path}: the agent of process {pid} runs on this directory");
        assert!(error.starts_with(&words) && error.contains("--data-dir"), "{error}");
        drop(first);
        Store::open(Some(directory.path()), None).unwrap();
    }

    #[test]
    fn a_directory_that_others_may_change_is_refused_and_what_is_written_is_ours_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        drop(Store::open(Some(&path), None).unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let kept = path.join("node.json");
        assert_eq!((mode(&path), mode(&kept), mode(&path.join("lock"))), (0o700, 0o600, 0o600));
        for wrong in [0o770, 0o702, 0o1777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(wrong)).unwrap();
            let error = Store::open(Some(&path), None).unwrap_err().to_string();
            let words = format!("data_dir: {} may be changed by others", path.display());
            assert!(error.starts_with(&words), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        drop(Store::open(Some(&path), None).unwrap());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            let error = Store::open(Some(&path), None).unwrap_err().to_string();
            assert!(error.contains("belongs to user 65534"), "{error}");
        }
    }

    #[test]
    fn a_boot_number_on_disk_does_not_go_down_and_drafts_do_not_add_up() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(Some(directory.path()), None).unwrap();
        let path = directory.path().join("node.json");
        // Somebody who did not ask for the lock has begun a later life.
        // So much later that no step of ours gets there by chance.
        let (ours, theirs) = (store.me().boot, store.me().boot.get() + (1 << 40));
        let (old, new) = (format!("\"boot\": {ours}"), format!("\"boot\": {theirs}"));
        let later = fs::read_to_string(&path).unwrap().replace(&old, &new);
        fs::write(&path, later).unwrap();
        assert!(keep(&mut store, &durable(7)));
        assert_eq!(store.me().boot, ours, "this life stays the one it is");
        assert!(fs::read_to_string(&path).unwrap().contains(&new), "theirs stays on disk");
        drop(store);
        fs::write(directory.path().join("node.json.1.new"), "half").unwrap();
        let next = Store::open(Some(directory.path()), None).unwrap();
        assert!(next.me().boot > Boot::new(theirs) && next.durable() == durable(7));
        assert!(!directory.path().join("node.json.1.new").exists());
    }

    /// Forth and back: what the other version keeps is there when it comes back.
    #[test]
    fn what_another_version_keeps_is_left_alone_and_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.json");
        let file = || -> serde_json::Value {
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
        };
        let later = |of: &serde_json::Value| of["later"]["list"][0] == 1.5;
        let everywhere = |file: &serde_json::Value| {
            let elections = file["elections"].as_object().unwrap();
            let ballot = &elections[&ElectionId::named("vote").to_string()]["ballot"];
            let ours = elections.values().filter(|tokens| tokens.get("quorum").is_none());
            ours.clone().count() == 4
                && ours.into_iter().all(later)
                && later(file)
                && later(&file["worth"])
                && later(ballot)
        };
        let open = || Store::open(Some(directory.path()), None).unwrap();
        let mut next = open().with_dialect(Dialect::Next);
        assert!(keep(&mut next, &durable(7)));
        let (id, boot) = (next.me().id, next.me().boot);
        drop(next);
        let mut written = file();
        assert!(written["format"] == 1 && everywhere(&written), "{written}");
        // And what this one cannot even imagine: an election of another mode, in numbers beyond ours.
        written["elections"]["0000000a"] = serde_json::json!({ "quorum": { "of": 1e300 } });
        fs::write(&path, written.to_string()).unwrap();
        let mut present = open();
        assert!(present.me().id == id && present.me().boot > boot);
        assert_eq!(present.durable(), durable(7));
        assert!(keep(&mut present, &durable(8)));
        drop(present);
        let written = file();
        assert!(everywhere(&written), "{written}");
        assert_eq!(written["elections"]["0000000a"]["quorum"]["of"], 1e300);
        // However often it is written: numbers do not drift.
        let digits = "2".repeat(109);
        for number in ["0.1", "1e-7", "5e-324", "18446744073709551615", &*digits] {
            let text = format!(r#"{{"id":"0000000000000001","boot":1,"later":{number}}}"#);
            let once = rewritten(&text).unwrap();
            assert_eq!(rewritten(&once).unwrap(), once, "{number}");
        }
        assert_eq!(open().durable(), durable(8));
    }

    #[test]
    fn nothing_is_written_that_is_kept_already() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(Some(directory.path()), None).unwrap();
        assert!(keep(&mut store, &durable(7)));
        let path = directory.path().join("node.json");
        fs::remove_file(&path).unwrap();
        assert!(keep(&mut store, &durable(7)));
        assert!(!path.exists());
        assert!(keep(&mut store, &durable(8)));
        assert!(path.exists());
    }

    #[test]
    fn what_could_not_be_written_is_not_kept_and_the_reason_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let mut store = Store::open(Some(&path), None).unwrap();
        assert!(keep(&mut store, &durable(7)));
        let aside = directory.path().join("aside");
        fs::rename(&path, &aside).unwrap();
        assert!(!keep(&mut store, &durable(8)));
        assert!(store.problem().unwrap().contains("node.json"), "{:?}", store.problem());
        assert_eq!(store.durable(), durable(7));
        fs::rename(&aside, &path).unwrap();
        assert!(keep(&mut store, &durable(8)));
        assert_eq!((store.durable(), store.problem()), (durable(8), None));
    }

    #[test]
    fn a_damaged_file_is_named_and_left_alone() {
        for (text, word) in [
            ("", "EOF"),
            ("{}", "missing field"),
            (r#"{"id":"0000000000000000","boot":1}"#, "id 0 is nobody's"),
            (&" ".repeat(5 << 20), "more than 4194304 bytes"),
            (r#"{"id":"12","boot":1}"#, "sixteen"),
            (r#"{"id":"zzzzzzzzzzzzzzzz","boot":1}"#, "sixteen"),
            (r#"{"id":"0000000000000001","boot":18446744073709551615}"#, "last"),
            (r#"{"id":"0000000000000001","boot":1,"format":0}"#, "format 0"),
            (
                r#"{"format":2,"identity":"in another form"}"#,
                "format = 2 is a later version's, and this version reads 1",
            ),
            (r#"{"id":"0000000000000001","boot":1,"elections":{"x":{}}}"#, "names no election"),
            (
                r#"{"id":"0000000000000001","boot":1,"elections":{"0000000a":{"known":"1"}}}"#,
                "four decimal numbers",
            ),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("node.json");
            fs::write(&path, text).unwrap();
            let error = Store::open(Some(directory.path()), None).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("node.json"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let error = Store::open(Some(Path::new("/dev/null/here")), None).unwrap_err().to_string();
        assert!(error.contains("/dev/null/here"), "{error}");
    }
}
