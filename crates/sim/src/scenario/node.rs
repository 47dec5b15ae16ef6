//! `[node]`: what an agent runs, in an agent's own keys. Names, defaults and meanings are those of `docs/agent.md`.
//!
//! Nodes are called `node-0`, `node-1`, …, joiners after them. Where an agent demands a list of members or voters, the
//! nodes of the start are meant unless a list is given. Other names in such a list are given to the first nodes that it
//! does not name.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::{
    ElectionId, Epoch, Peer,
    election::{announce, bandit, churn_tolerant},
    node::{Durable, ElectionSettings, Kept, KeptBallot, ModeSettings, Role, Settings, Timing},
};
use bellwether_settings::{Field, Result, host::Host, node as settings};

use super::Protocol;

/// What nodes are to be.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSettings {
    /// What all are, but for names and positions: those are the simulator's.
    pub common: Settings,
    /// Nodes that are not called `node-0`, `node-1`, ….
    pub names: BTreeMap<u32, String>,
    /// Nodes that were told something else.
    pub others: BTreeMap<u32, Settings>,
    /// Nodes that have elected so many leaders before the run begins, as their disks say.
    pub aged: BTreeMap<u32, u64>,
    /// Whether every other life of a node writes its packets as a later version might: see
    /// [`Dialect`](bellwether_proto::node::packet::Dialect).
    pub upgrading: bool,
}

impl NodeSettings {
    /// Nodes that all have these settings.
    pub fn alike(timing: Timing, elections: Vec<ElectionSettings>) -> Self {
        Self {
            common: Settings::new("node", timing, elections),
            names: BTreeMap::new(),
            others: BTreeMap::new(),
            aged: BTreeMap::new(),
            upgrading: false,
        }
    }

    /// The same where the first `nodes` nodes are the members and voters of elections that name none.
    pub fn among(mut self, nodes: u32) -> Self {
        let names: Vec<String> = (0..nodes).map(|node| self.name_of(node)).collect();
        for settings in std::iter::once(&mut self.common).chain(self.others.values_mut()) {
            for election in &mut settings.elections {
                let list = match &mut election.mode {
                    ModeSettings::Leased(leased) => &mut leased.members,
                    ModeSettings::Learned(learned) => &mut learned.voters,
                    _ => continue,
                };
                if list.is_empty() {
                    *list = names.clone();
                    list.sort_unstable();
                }
            }
        }
        self
    }

    /// What this node is called.
    pub fn name_of(&self, node: u32) -> String {
        self.names.get(&node).cloned().unwrap_or_else(|| name_of(node))
    }

    /// What this node is to be. It has no seat in leased elections that it is no member of: an agent would not start.
    pub fn of(&self, node: u32) -> Settings {
        let mut settings = self.others.get(&node).unwrap_or(&self.common).clone();
        let name = self.name_of(node);
        settings.elections.retain(|election| match &election.mode {
            ModeSettings::Leased(leased) => leased.members.contains(&name),
            _ => true,
        });
        settings.about.name = name;
        settings
    }
}

impl NodeSettings {
    /// What is on the disk of a node that starts for the first time.
    pub fn disk(&self, me: Peer) -> Option<Durable> {
        let node = me.id.get() as u32;
        let counter = *self.aged.get(&node)?;
        let epoch = Epoch::mint(counter, me);
        let kept = |election: &ElectionSettings| {
            let kept = match &election.mode {
                ModeSettings::Eventual(_) => {
                    let known = Some(epoch);
                    Kept::Eventual(churn_tolerant::Durable { known, vouched: known })
                }
                ModeSettings::Announced(_) => {
                    let vouched = Some(epoch);
                    Kept::Announced(announce::Durable { max_epoch: counter, vouched })
                }
                ModeSettings::Leased(_) => Kept::Leased(epoch),
                ModeSettings::Learned(_) => {
                    let durable = bandit::Durable { term: counter, ..bandit::Durable::default() };
                    Kept::Learned(KeptBallot { voters: BTreeMap::new(), durable: Some(durable) })
                }
                ModeSettings::Central(_) => return None,
            };
            Some((ElectionId::named(&election.name), kept))
        };
        let elections = self.of(node).elections.iter().filter_map(kept).collect();
        Some(Durable { elections, record: None })
    }
}

/// What a node is called that nobody has named.
fn name_of(node: u32) -> String {
    format!("node-{node}")
}

/// Reads what an agent reads, in its own words.
pub(super) fn node(field: Field<'_>, nodes: u32, told: bool) -> Result<Protocol> {
    let mut section = field.clone().section()?;
    let read = settings::node(&mut section, Host::Simulator(nodes))?;
    section.end()?;
    let elections: Vec<_> = read.elections.into_iter().map(|one| one.settings).collect();
    let never = |one: &&ElectionSettings| one.role != Role::Candidate;
    if let Some(ElectionSettings { name, role, .. }) = elections.iter().find(never).filter(|_| told)
    {
        let role = role.name();
        let problem = format!("are of a node that never leads {name:?}: its role is {role:?}");
        let error = field.error_unquoted(problem);
        return Err(error.with_allowed("the settings of a candidate: all nodes are given them"));
    }
    let mut alike = NodeSettings::alike(read.timing, elections);
    alike.common.exponent = read.membership.exponent;
    alike.common.feedback = read.membership.feedback;
    alike.names = names(&alike.common, nodes).map_err(|count| {
        let problem = format!("names {count} members and voters, and there are {nodes} nodes");
        field.error_unquoted(problem).with_allowed(format!("network.nodes = {count} or more"))
    })?;
    let settings = alike.among(nodes);
    match settings.of(0).plan() {
        Ok(_) => Ok(Protocol::Node(settings)),
        Err(error) => {
            let error = field.error_unquoted(format!("cannot work: {error}"));
            Err(error.with_allowed("what docs/agent.md says of each key"))
        }
    }
}

/// Who is called how, where members and voters are listed by names of an operator's; else how many names there are.
fn names(settings: &Settings, nodes: u32) -> std::result::Result<BTreeMap<u32, String>, usize> {
    let listed = settings.elections.iter().flat_map(|election| match &election.mode {
        ModeSettings::Leased(leased) => leased.members.clone(),
        ModeSettings::Learned(learned) => learned.voters.clone(),
        _ => Vec::new(),
    });
    let mut listed: BTreeSet<String> = listed.collect();
    let count = listed.len();
    let mut free = Vec::new();
    for node in 0..nodes {
        if !listed.remove(&name_of(node)) {
            free.push(node);
        }
    }
    // Joiners may be listed too, and are called after their numbers.
    let is_number =
        |name: &str| name.strip_prefix("node-").is_some_and(|n| n.parse::<u32>().is_ok());
    listed.retain(|name| !is_number(name));
    match listed.len() > free.len() {
        true => Err(count),
        false => Ok(free.into_iter().zip(listed).collect()),
    }
}
