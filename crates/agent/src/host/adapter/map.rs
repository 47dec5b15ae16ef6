//! The maps of central elections, and who is on them by address.

use bellwether_proto::{
    election::central::{self, Rank},
    membership::medley::Medley,
};

use super::*;
use crate::{
    host::neighbours::Address,
    status::{CentralStatus, MapNode, MapStatus},
};

impl Adapter {
    pub(super) fn central_status(&self, group: ElectionId) -> Option<CentralStatus> {
        let machine = self.node.central(group)?.machine();
        let answer = machine.answer()?;
        Some(CentralStatus {
            criterion: machine.config().criterion().name(),
            members: answer.members,
            unknown: answer.unknown,
            score: answer.score,
            map: format!("{:016x}", answer.map),
            neighbours: machine.neighbours().map(|id| self.named(id).name).collect(),
            problem: self.problems.get(&group).cloned(),
        })
    }

    /// The whole map of an election.
    pub(crate) fn map_status(&self, election: &str) -> Result<MapStatus, Error> {
        let at = self.election(election)?;
        let group = self.tallies[at].group;
        let (Some(central), Some(status)) = (self.node.central(group), self.central_status(group))
        else {
            let reason = format!("{election} is not a central election, and has no map");
            return Err(Error::Impossible(reason));
        };
        let machine = central.machine();
        let table = machine.table();
        let links = links(machine, &table);
        let mut degrees = vec![0; table.len()];
        for &(a, b) in &links {
            degrees[a as usize] += 1;
            degrees[b as usize] += 1;
        }
        let node = |(at, rank): (usize, &Rank)| {
            let LeaderStatus { id, name } = self.named(rank.id);
            // Links lead both ways, so everybody reaches everybody and has a score.
            let (score, degree) = (rank.score.unwrap_or(u64::MAX), degrees[at]);
            MapNode { id, name, rank: at as u32 + 1, score, degree, hops: rank.hops }
        };
        Ok(MapStatus {
            election: election.to_owned(),
            leader: self.tallies[at].answer.leader,
            own: self.me().id,
            central: status,
            nodes: table.iter().enumerate().map(node).collect(),
            links,
        })
    }
}

/// The members that have one of these addresses, or the hardware address in their tag [`MAC`].
pub(super) fn found(membership: &Medley, neighbours: &[Neighbour]) -> BTreeSet<NodeId> {
    let wanted: BTreeSet<Address> =
        neighbours.iter().flat_map(|one| one.addresses.iter().copied()).collect();
    let has = |id: &NodeId| {
        let Some(known) = membership.introduction_of(*id) else { return false };
        let ips = known.addresses.iter().map(|address| Address::Ip(address.ip().to_canonical()));
        let tags = About::from_details(&known.details).map(|about| about.tags);
        let macs = tags.as_ref().and_then(|tags| tags.get(MAC)).map_or("", String::as_str);
        let macs = macs.split([' ', ',']).filter_map(Address::parse);
        ips.chain(macs).any(|address| wanted.contains(&address))
    };
    membership.members().map(|member| member.id).filter(has).collect()
}

/// Who hears whom, by places in the table.
fn links(machine: &central::Central, table: &[Rank]) -> Vec<(u32, u32)> {
    let Some(map) = machine.map() else { return Vec::new() };
    let places: BTreeMap<NodeId, u32> = (0..).zip(table).map(|(at, rank)| (rank.id, at)).collect();
    let mut links = Vec::new();
    for (&id, &from) in &places {
        let Some(view) = map.get(id) else { continue };
        for &other in view.neighbours() {
            let mutual = map.get(other).is_none_or(|view| view.contains(id));
            if let Some(&to) = places.get(&other).filter(|&&to| to != from && mutual) {
                links.push((from.min(to), from.max(to)));
            }
        }
    }
    links.sort_unstable();
    links.dedup();
    links
}

/// The tag by which a member tells its hardware addresses.
const MAC: &str = "mac";
