//! Sources of addresses to try, what each of them said last, and members that are not where they say they are.

use bellwether_proto::membership::medley::Addresses;

use super::*;
use crate::{
    host::{discovery::Found, peers::KnownPeer},
    net::transport::Misplaced,
    status::{JoinTable, SourceStatus},
};

/// What a source said last.
#[derive(Debug, Default)]
pub(super) struct Source {
    name: String,
    /// What it named when it last named anybody.
    addresses: Vec<SocketAddr>,
    /// Why it names nobody now.
    problem: Option<String>,
    /// When it is asked next, if ever.
    next: Option<Time>,
}

impl Adapter {
    /// From now on there are these sources. What others named is let go.
    pub(crate) fn set_sources(&mut self, names: Vec<String>) {
        let mut before = core::mem::take(&mut self.sources);
        let source = |name: String| {
            let known = before.iter().position(|source| source.name == name);
            let new = || Source { name: name.clone(), ..Source::default() };
            known.map_or_else(new, |at| before.swap_remove(at))
        };
        self.sources = names.into_iter().map(source).collect();
        self.let_go();
    }

    /// One of them has been asked. Of one that nobody knows any more, nothing is believed.
    pub(crate) fn on_found(&mut self, now: Time, found: Found, inbox: &Inbox) {
        let Found { source, addresses, next } = found;
        let Some(at) = self.sources.iter().position(|one| one.name == source) else { return };
        self.sources[at].next = next;
        let before = self.sources[at].problem.take();
        match addresses {
            Ok(addresses) => {
                if before.is_some() {
                    let words = match &*addresses {
                        [] => format!("{source}: is as it should be again"),
                        some => format!("{source}: stands for {}", list(some)),
                    };
                    self.event(inbox, EventKind::JoinFound, None, Some(words));
                }
                self.sources[at].addresses.clone_from(&addresses);
                self.let_go();
                for address in addresses {
                    let known = self.seeds.iter().any(|seed| seed.address == address);
                    if known || self.seeds.len() < PLACES {
                        self.seek(now, address, true);
                    } else {
                        self.refuse("too-many-addresses");
                    }
                }
                self.look_at_places(inbox);
                self.knock(now, inbox);
            }
            Err(problem) => {
                // What it named before may still be true. It is asked for life, and says the same for long.
                if before.as_ref() != Some(&problem) {
                    let wait = |next: Time| next.since(now).as_secs_f64();
                    let again = match next.map(wait) {
                        Some(wait) => {
                            format!(
                                "; next try in {wait:.0} s, then ever more rarely, once a minute at last"
                            )
                        }
                        None => String::new(),
                    };
                    let words = Some(format!("{source}: {problem}{again}"));
                    self.event(inbox, EventKind::JoinFailed, None, words);
                }
                self.sources[at].problem = Some(problem);
            }
        }
    }

    pub(super) fn to_join(&self) -> JoinTable {
        JoinTable { tried: self.seeds.len(), most: PLACES }
    }

    /// Says when there is not much room left for addresses.
    pub(super) fn look_at_places(&mut self, inbox: &Inbox) {
        let table = self.to_join();
        let before = core::mem::replace(&mut self.crowded, table.is_filling());
        if !before && self.crowded {
            let JoinTable { tried, most } = table;
            let words =
                format!("{tried} addresses are tried for those to join; above {most} no other is");
            self.event(inbox, EventKind::TableFilling, None, Some(words));
        }
    }

    /// Stops trying what sources no longer name.
    fn let_go(&mut self) {
        let sources = &self.sources;
        let named =
            |address: &SocketAddr| sources.iter().any(|source| source.addresses.contains(address));
        self.seeds.retain(|seed| !seed.named || named(&seed.address));
    }

    pub(super) fn source_statuses(&self, now: Time) -> Vec<SourceStatus> {
        let status = |source: &Source| SourceStatus {
            source: source.name.clone(),
            addresses: source.addresses.clone(),
            problem: source.problem.clone(),
            next_ms: source.next.map(|next| report::millis(next.since(now))),
        };
        self.sources.iter().map(status).collect()
    }

    /// Where others live: where they were `proven` to be, and where they say they are.
    pub(crate) fn peers(&self, proven: impl Fn(NodeId) -> Option<SocketAddr>) -> Vec<KnownPeer> {
        let living = self.records.keys().copied().filter(|&id| self.lives(id));
        let peer = |id| {
            let known = self.node.membership().introduction_of(id);
            let said =
                known.into_iter().flat_map(|known| known.addresses.iter().collect::<Vec<_>>());
            let mut addresses: Vec<SocketAddr> = proven(id).into_iter().collect();
            for address in said {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            KnownPeer { name: self.named(id).name, addresses }
        };
        living.map(peer).collect()
    }

    /// Others are told that this is where we are reached.
    pub(crate) fn advertise(&mut self, now: Time, address: SocketAddr, inbox: &Inbox) {
        let addresses = Addresses::new([address]);
        self.input(now, Input::Command(Command::Advertise(addresses)), inbox);
    }

    /// A member does not answer where it says it is reached.
    pub(crate) fn on_misplaced(&self, misplaced: Misplaced, inbox: &Inbox) {
        let Misplaced { id, heard, said } = misplaced;
        let node = self.named(id);
        let words = format!(
            "{} is heard from {heard}, but nobody answers at {}, where it says it is reached; set advertise = [\"{heard}\"] \
             there, or the address by which others reach it",
            node.name,
            list(&said),
        );
        self.event(inbox, EventKind::AddressDiffers, Some(node), Some(words));
    }
}

fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ")
}
