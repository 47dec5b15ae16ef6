//! What a node is asked to do, and what it refuses.

use super::*;
use crate::host::handle::Request;

impl Adapter {
    /// Which elections hooks forbid it to lead.
    pub(crate) fn set_dirty(&mut self, now: Time, elections: &BTreeSet<String>, inbox: &Inbox) {
        let groups = elections.iter().map(|name| ElectionId::named(name)).collect();
        self.input(now, Input::Command(Command::Bar(groups)), inbox);
    }

    /// What it is worth from now on.
    pub(crate) fn set_priority(&mut self, now: Time, name: &str, worth: u32, inbox: &Inbox) {
        self.input(now, Input::Command(Command::Priority(ElectionId::named(name), worth)), inbox);
    }

    /// Tries this address from now on.
    pub(super) fn seek(&mut self, now: Time, address: SocketAddr, named: bool) {
        match self.seeds.iter_mut().find(|seed| seed.address == address) {
            // Sources are asked again and again, which is no reason to hurry.
            Some(_) if named => {}
            Some(known) => (known.next, known.in_vain, known.named) = (now, 0, false),
            None => self.seeds.push(Place::new(address, now, named)),
        }
    }

    /// Everything but leaving, which the driver sees to.
    pub(crate) fn on_request(
        &mut self,
        now: Time,
        request: Request,
        inbox: &Inbox,
    ) -> Result<(), Error> {
        match request {
            Request::Join(addresses) => {
                let room = PLACES.saturating_sub(self.seeds.len());
                let known = |address| self.seeds.iter().any(|seed| seed.address == address);
                let new = addresses.iter().filter(|&&address| !known(address)).count();
                if new > room {
                    let reason = format!(
                        "{new} addresses more are too many: {} are tried, {PLACES} at most",
                        self.seeds.len()
                    );
                    return Err(Error::Impossible(reason));
                }
                addresses.into_iter().for_each(|address| self.seek(now, address, false));
                self.look_at_places(inbox);
                self.knock(now, inbox);
                Ok(())
            }
            Request::Leave => Ok(()),
            Request::ForceLeave(name) => {
                let id = self.find(&name)?;
                if self.node.membership().member(id).is_some() {
                    let reason = format!("{name} still answers; only failed members are taken off");
                    return Err(Error::Impossible(reason));
                }
                self.records.remove(&id);
                Ok(())
            }
            Request::Resign(election) => {
                let at = self.led(&election)?;
                self.command(now, Command::Resign(self.tallies[at].group), inbox)
            }
            Request::Transfer { election, to } => {
                let at = self.led(&election)?;
                let id = self.find(&to)?;
                if self.node.membership().member(id).is_none() {
                    return Err(Error::Impossible(format!("{to} is not alive")));
                }
                self.command(now, Command::Transfer(self.tallies[at].group, id), inbox)
            }
            Request::Report { election, of, cost } => {
                let at = self.election(&election)?;
                let of = match of {
                    Some(name) if name == self.node.plan().about.name => self.me().id,
                    Some(name) => self.find(&name)?,
                    None => self.tallies[at].answer.leader.ok_or_else(|| {
                        Error::Impossible("nobody leads; say of whom it is".to_owned())
                    })?,
                };
                let group = self.tallies[at].group;
                self.command(now, Command::Report { election: group, of, percent: cost }, inbox)
            }
            Request::Tags(changes) => {
                let mut about = self.node.plan().about.clone();
                for (key, value) in changes {
                    match value {
                        Some(value) => about.tags.insert(key, value),
                        None => about.tags.remove(&key),
                    };
                }
                if let Err(error) = self.node.fits(&about) {
                    let reason = format!("name, tags and elections together: {error}");
                    return Err(Error::Impossible(reason));
                }
                self.command(now, Command::Introduce(Box::new(about)), inbox)
            }
        }
    }

    pub(super) fn election(&self, election: &str) -> Result<usize, Error> {
        let names = || self.node.plan().seats.iter().map(|seat| seat.name.as_str());
        names().position(|name| name == election).ok_or_else(|| {
            let all = names().collect::<Vec<_>>().join(", ");
            Error::NoSuchElection(election.to_owned(), all)
        })
    }

    fn led(&self, election: &str) -> Result<usize, Error> {
        let at = self.election(election)?;
        match self.tallies[at].answer.leader {
            Some(leader) if leader == self.me().id => Ok(at),
            Some(leader) => Err(Error::NotLeader(election.to_owned(), self.named(leader).name)),
            None => Err(Error::NotLeader(election.to_owned(), "nobody".to_owned())),
        }
    }

    fn find(&self, name: &str) -> Result<NodeId, Error> {
        let known = self.records.keys().find(|&&id| self.named(id).name == name || hex(id) == name);
        known.copied().ok_or_else(|| Error::NoSuchMember(name.to_owned()))
    }
}
