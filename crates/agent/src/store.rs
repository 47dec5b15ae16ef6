//! What survives a restart: who we are, how often we have started, and the newest fencing tokens.
//!
//! One file, `node.json`, replaced as a whole: written beside it, flushed, renamed. It is written at the start, so that
//! no two lives share a boot number, and when a token is minted or accepted; never while nothing changes.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use bellwether_proto::{
    Boot, Epoch, NodeId, Peer,
    election::{
        announce,
        bandit::{self, Belief},
        churn_tolerant,
    },
    stack::{Durable, Group},
};
use serde::{Deserialize, Serialize};

/// The file, open for this life.
#[derive(Debug)]
pub(crate) struct Store {
    path: Option<PathBuf>,
    kept: Kept,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// Hexadecimal, so that people can compare it with what the agent prints.
    id: String,
    boot: u64,
    #[serde(default)]
    elections: BTreeMap<String, Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worth: Option<WorthKept>,
}

/// What this node is good for by its own record, in millionths of samples.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct WorthKept {
    cost: u64,
    count: u64,
    ended_well: bool,
}

/// The same, in samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Worth {
    pub(crate) cost: f64,
    pub(crate) count: f64,
    /// Whether the life that wrote it said goodbye.
    pub(crate) ended_well: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
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
}

impl Tokens {
    /// Other modes have tokens of their own.
    fn is_eventual(&self) -> bool {
        self.counter.is_none() && self.leased.is_none() && self.ballot.is_none()
    }
}

/// What a voter must not forget, and what it has learnt.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
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
}

/// Why there is no node.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is there, and is not ours.
    #[error(
        "{}: {problem}; this file is the node's identity: restore it, or remove it to start as a new node",
        path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Store {
    /// Begins a new life in this directory, which is made if need be: the same node as the last time, or a new one.
    /// Without a directory the node is new every time.
    pub(crate) fn open(directory: Option<&Path>) -> Result<Self, StoreError> {
        let Some(directory) = directory else {
            return Ok(Self { path: None, kept: Kept { boot: 1, ..Kept::new() } });
        };
        let path = directory.join("node.json");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::Io { path, source }
        };
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let mut kept = match fs::read_to_string(&path) {
            Ok(text) => Kept::read(&text)
                .map_err(|problem| StoreError::Damaged { path: path.clone(), problem })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Kept::new(),
            Err(error) => return Err(failed(&path)(error)),
        };
        kept.boot += 1;
        let store = Self { path: Some(path.clone()), kept };
        store.write().map_err(failed(&path))?;
        Ok(store)
    }

    /// Nothing is kept, and it is this life.
    #[cfg(test)]
    pub(crate) fn fixed(me: Peer) -> Self {
        let id = format!("{:016x}", me.id.get());
        let kept = Kept { id, boot: me.boot.get(), elections: BTreeMap::new(), worth: None };
        Self { path: None, kept }
    }

    pub(crate) fn me(&self) -> Peer {
        Peer::new(self.kept.id().unwrap_or_default(), Boot::new(self.kept.boot))
    }

    /// What the last life knew.
    pub(crate) fn durable(&self) -> Option<Durable> {
        let epoch = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
        let eventual = self.kept.elections.iter().filter(|(_, tokens)| tokens.is_eventual());
        let elections = eventual.filter_map(|(group, tokens)| {
            let (known, vouched) = (epoch(&tokens.known), epoch(&tokens.vouched));
            Some((group.parse().ok()?, churn_tolerant::Durable { known, vouched }))
        });
        // The membership needs nothing: every life has a larger boot number.
        Some(Durable { membership: None, elections: elections.collect() })
    }

    /// Keeps the tokens; writes only if they are not those already kept.
    pub(crate) fn keep(&mut self, durable: &Durable) -> io::Result<()> {
        let text = |epoch: Option<Epoch>| epoch.map(|epoch| epoch.to_string());
        let mut elections = self.kept.elections.clone();
        for (group, churn_tolerant::Durable { known, vouched }) in &durable.elections {
            let (known, vouched) = (text(*known), text(*vouched));
            let tokens = Tokens { known, vouched, ..Tokens::default() };
            elections.insert(group.to_string(), tokens);
        }
        self.replace(elections)
    }

    /// What the last life knew of an announced election.
    pub(crate) fn announced(&self, group: Group) -> Option<announce::Durable> {
        let tokens = self.kept.elections.get(&group.to_string())?;
        let vouched = tokens.vouched.as_ref().and_then(|text| text.parse().ok());
        tokens.counter.map(|max_epoch| announce::Durable { max_epoch, vouched })
    }

    /// Keeps those of an announced election likewise.
    pub(crate) fn keep_announced(
        &mut self,
        group: Group,
        announce::Durable { max_epoch, vouched }: announce::Durable,
    ) -> io::Result<()> {
        let vouched = vouched.map(|epoch| epoch.to_string());
        let tokens = Tokens { vouched, counter: Some(max_epoch), ..Tokens::default() };
        let mut elections = self.kept.elections.clone();
        elections.insert(group.to_string(), tokens);
        self.replace(elections)
    }

    /// What the last life knew of a leased election.
    pub(crate) fn leased(&self, group: Group) -> Option<Epoch> {
        self.kept.elections.get(&group.to_string())?.leased.as_ref()?.parse().ok()
    }

    /// Keeps that likewise.
    pub(crate) fn keep_leased(&mut self, group: Group, epoch: Epoch) -> io::Result<()> {
        let tokens = Tokens { leased: Some(epoch.to_string()), ..Tokens::default() };
        let mut elections = self.kept.elections.clone();
        elections.insert(group.to_string(), tokens);
        self.replace(elections)
    }

    /// What the last life made of itself, if it kept a record.
    pub(crate) fn worth(&self) -> Option<Worth> {
        let WorthKept { cost, count, ended_well } = self.kept.worth?;
        let samples = |millionths: u64| millionths as f64 / MILLION;
        Some(Worth { cost: samples(cost), count: samples(count), ended_well })
    }

    pub(crate) fn keep_worth(&mut self, worth: Worth) -> io::Result<()> {
        let Worth { cost, count, ended_well } = worth;
        let millionths = |samples: f64| (samples.max(0.0) * MILLION).round() as u64;
        let kept = WorthKept { cost: millionths(cost), count: millionths(count), ended_well };
        if self.kept.worth.replace(kept) == Some(kept) {
            return Ok(());
        }
        self.write()
    }

    fn ballot(&self, group: Group) -> Option<&Ballot> {
        self.kept.elections.get(&group.to_string())?.ballot.as_ref()
    }

    fn keep_ballot(&mut self, group: Group, ballot: Ballot) -> io::Result<()> {
        let tokens = Tokens { ballot: Some(ballot), ..Tokens::default() };
        let mut elections = self.kept.elections.clone();
        elections.insert(group.to_string(), tokens);
        self.replace(elections)
    }

    /// Who the voters of a learned election are, as far as they were met.
    pub(crate) fn voters(&self, group: Group) -> BTreeMap<String, NodeId> {
        let voters = self.ballot(group).map(|ballot| &ballot.voters).into_iter().flatten();
        voters.filter_map(|(name, id)| Some((name.clone(), identity(id)?))).collect()
    }

    pub(crate) fn keep_voters(
        &mut self,
        group: Group,
        voters: &BTreeMap<String, NodeId>,
    ) -> io::Result<()> {
        let voters = voters.iter().map(|(name, &id)| (name.clone(), hex(id))).collect();
        let ballot = Ballot { voters, ..self.ballot(group).cloned().unwrap_or_default() };
        self.keep_ballot(group, ballot)
    }

    /// Term, vote and beliefs of the last life; none if it never voted nor heard of a term.
    pub(crate) fn learned(&self, group: Group) -> Option<bandit::Durable> {
        let ballot = self.ballot(group)?;
        let belief = |(id, &(mean, weight)): (&String, &(u32, u64))| {
            Some(Belief { id: identity(id)?, mean: f64::from(mean) / MILLION, weight })
        };
        Some(bandit::Durable {
            term: ballot.term?,
            voted_for: ballot.vote.as_deref().and_then(identity),
            beliefs: ballot.beliefs.iter().filter_map(belief).collect(),
        })
    }

    pub(crate) fn keep_learned(
        &mut self,
        group: Group,
        bandit::Durable { term, voted_for, beliefs }: &bandit::Durable,
    ) -> io::Result<()> {
        let belief = |Belief { id, mean, weight }: &Belief| {
            (hex(*id), ((mean.clamp(0.0, 1.0) * MILLION).round() as u32, *weight))
        };
        let ballot = Ballot {
            voters: self.ballot(group).map(|ballot| ballot.voters.clone()).unwrap_or_default(),
            term: Some(*term),
            vote: voted_for.map(hex),
            beliefs: beliefs.iter().map(belief).collect(),
        };
        self.keep_ballot(group, ballot)
    }

    fn replace(&mut self, elections: BTreeMap<String, Tokens>) -> io::Result<()> {
        if elections == self.kept.elections {
            return Ok(());
        }
        let before = core::mem::replace(&mut self.kept.elections, elections);
        let written = self.write();
        if written.is_err() {
            // What is not on disk is not kept: the next one to ask must not be told so.
            self.kept.elections = before;
        }
        written
    }

    fn write(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let beside = path.with_extension("json.new");
        let mut file = File::create(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(&self.kept)?)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        // The rename itself must last too.
        match path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}

fn hex(id: NodeId) -> String {
    format!("{:016x}", id.get())
}

fn identity(text: &str) -> Option<NodeId> {
    u64::from_str_radix(text, 16).ok().map(NodeId::new)
}

const MILLION: f64 = 1e6;

impl Kept {
    /// A node nobody has seen before.
    fn new() -> Self {
        let id = loop {
            match getrandom::u64() {
                Ok(0) => {}
                Ok(id) => break id,
                // No randomness at all: the clock has to do.
                Err(_) => {
                    break crate::clock::unix_ms().rotate_left(20) ^ u64::from(std::process::id());
                }
            }
        };
        Self { id: format!("{id:016x}"), boot: 0, elections: BTreeMap::new(), worth: None }
    }

    fn id(&self) -> Option<NodeId> {
        u64::from_str_radix(&self.id, 16).ok().map(NodeId::new)
    }

    fn read(text: &str) -> Result<Self, String> {
        let kept: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if kept.id().is_none() || kept.id.len() != 16 {
            return Err(format!("id {:?} is not sixteen hexadecimal digits", kept.id));
        }
        if kept.boot == u64::MAX {
            return Err(format!("boot {} is the last there is", kept.boot));
        }
        for (group, tokens) in &kept.elections {
            group.parse::<Group>().map_err(|_| format!("{group:?} names no election"))?;
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
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durable(counter: u64) -> Durable {
        let epoch = Some(Epoch::mint(counter, Peer::new(NodeId::new(3), Boot::new(2))));
        let tokens = churn_tolerant::Durable { known: epoch, vouched: epoch };
        Durable { membership: None, elections: vec![(Group::named("backup"), tokens)] }
    }

    #[test]
    fn the_same_node_starts_again_with_a_larger_boot_number_and_its_tokens() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let mut first = Store::open(Some(&path)).unwrap();
        assert_eq!((first.me().boot, first.durable().unwrap().elections.len()), (Boot::new(1), 0));
        first.keep(&durable(7)).unwrap();
        let second = Store::open(Some(&path)).unwrap();
        assert_eq!(second.me(), Peer::new(first.me().id, Boot::new(2)));
        assert_eq!(second.durable(), Some(durable(7)));
        assert_ne!(Store::open(None).unwrap().me().id, Store::open(None).unwrap().me().id);
    }

    #[test]
    fn nothing_is_written_that_is_kept_already() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(Some(directory.path())).unwrap();
        store.keep(&durable(7)).unwrap();
        let path = directory.path().join("node.json");
        fs::remove_file(&path).unwrap();
        store.keep(&durable(7)).unwrap();
        assert!(!path.exists());
        store.keep(&durable(8)).unwrap();
        assert!(path.exists());
    }

    #[test]
    fn a_damaged_file_is_named_and_left_alone() {
        for (text, word) in [
            ("", "EOF"),
            ("{}", "missing field"),
            (r#"{"id":"12","boot":1}"#, "sixteen"),
            (r#"{"id":"zzzzzzzzzzzzzzzz","boot":1}"#, "sixteen"),
            (r#"{"id":"0000000000000001","boot":18446744073709551615}"#, "last"),
            (r#"{"id":"0000000000000001","boot":1,"more":2}"#, "unknown field"),
            (r#"{"id":"0000000000000001","boot":1,"elections":{"x":{}}}"#, "names no election"),
            (
                r#"{"id":"0000000000000001","boot":1,"elections":{"0000000a":{"known":"1"}}}"#,
                "four decimal numbers",
            ),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("node.json");
            fs::write(&path, text).unwrap();
            let error = Store::open(Some(directory.path())).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("node.json"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let error = Store::open(Some(Path::new("/dev/null/here"))).unwrap_err().to_string();
        assert!(error.contains("/dev/null/here"), "{error}");
    }
}
