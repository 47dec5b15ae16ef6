//! What a node is asked to do, and what it refuses.

use super::*;

impl Core {
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// Whether this node leads anything.
    pub(crate) fn leads(&self) -> bool {
        // Those beside the stack hand over, or say goodbye, in leaving.
        let ours = |&at: &usize| self.tallies[at].answer.leader == Some(self.me.id);
        (0..self.tallies.len()).filter(|&at| self.is_eventual(at)).any(|at| ours(&at))
    }

    /// Whether there is nobody else.
    pub(crate) fn is_alone(&self) -> bool {
        self.stack.membership().is_empty()
    }

    /// Which elections hooks forbid it to lead.
    pub(crate) fn set_dirty(&mut self, now: Time, elections: &BTreeSet<String>, inbox: &Inbox) {
        for seat in &mut self.settings.elections {
            seat.dirty = elections.contains(&seat.name);
        }
        self.observe(now);
        self.introduce(now, inbox);
    }

    /// What it is worth from now on.
    pub(crate) fn set_priority(&mut self, now: Time, name: &str, worth: u32, inbox: &Inbox) {
        if let Some(seat) = self.settings.elections.iter_mut().find(|seat| seat.name == name) {
            seat.standing.attribute = worth;
            self.introduce(now, inbox);
        }
    }

    pub(crate) fn resign_all(&mut self, now: Time, inbox: &Inbox) {
        for at in 0..self.tallies.len() {
            if self.is_eventual(at) {
                self.command(now, at, churn_tolerant::Command::Resign, inbox);
            }
        }
    }

    pub(super) fn is_eventual(&self, at: usize) -> bool {
        matches!(self.settings.elections[at].protocol, Protocol::Eventual(_))
    }

    /// Says goodbye. Nothing is due any more once everybody was told.
    pub(crate) fn leave(&mut self, now: Time, inbox: &Inbox) {
        self.seeds.clear();
        if let Some(worth) = self.worth.take() {
            worth.keep(true, &mut self.store);
        }
        self.each_aside(now, |machine, road| machine.leave(road));
        self.input(now, Input::Leave, inbox);
    }

    pub(super) fn command(
        &mut self,
        now: Time,
        at: usize,
        command: churn_tolerant::Command,
        inbox: &Inbox,
    ) {
        let group = self.tallies[at].group;
        self.input(now, Input::Command(Command { group, command }), inbox);
    }

    /// Everything but leaving, which the driver sees to.
    pub(crate) fn on_request(
        &mut self,
        now: Time,
        request: Request,
        inbox: &Inbox,
    ) -> Result<(), Refused> {
        match request {
            Request::Join(addresses) => {
                for address in addresses {
                    match self.seeds.iter_mut().find(|seed| seed.address == address) {
                        Some(known) => known.next = now,
                        None => self.seeds.push(Place { address, next: now, found: None }),
                    }
                }
                self.knock(now);
            }
            Request::Leave => {}
            Request::ForceLeave(name) => {
                let id = self.find(&name)?;
                if self.stack.membership().member(id).is_some() {
                    let reason = format!("{name} still answers; only failed members are taken off");
                    return Err(Refused::Impossible(reason));
                }
                self.records.remove(&id);
            }
            Request::Resign(election) => {
                let at = self.led(&election)?;
                if let Some(at) = self.aside(self.tallies[at].group) {
                    self.with_aside(now, at, |machine, road| machine.resign(road))?;
                    self.look(now, inbox);
                    return Ok(());
                }
                if self.stack.membership().is_empty() {
                    let reason = "there is nobody else to lead".to_owned();
                    return Err(Refused::Impossible(reason));
                }
                self.command(now, at, churn_tolerant::Command::Resign, inbox);
            }
            Request::Transfer { election, to } => {
                let at = self.led(&election)?;
                let id = self.find(&to)?;
                if self.stack.membership().member(id).is_none() {
                    return Err(Refused::Impossible(format!("{to} is not alive")));
                }
                if let Some(at) = self.aside(self.tallies[at].group) {
                    self.with_aside(now, at, |machine, road| machine.transfer(id, road))?;
                    self.look(now, inbox);
                    return Ok(());
                }
                self.command(now, at, churn_tolerant::Command::Transfer(id), inbox);
            }
            Request::Report { election, of, cost } => {
                let at = self.election(&election)?;
                let of = match of {
                    Some(name) if name == self.settings.about.name => self.me.id,
                    Some(name) => self.find(&name)?,
                    None => self.tallies[at].answer.leader.ok_or_else(|| {
                        Refused::Impossible("nobody leads; say of whom it is".to_owned())
                    })?,
                };
                if self.settings.elections[at].learns && of == self.me.id {
                    self.doubt_ourselves(f64::from(cost.min(100)) / 100.0);
                    return Ok(());
                }
                if self.settings.elections[at].learns {
                    return Err(Refused::Impossible(format!(
                        "in {election} every node keeps its own record; ask that node's agent"
                    )));
                }
                let Some(aside) = self.aside(self.tallies[at].group) else {
                    let reason = format!("{election} learns nothing of its members");
                    return Err(Refused::Impossible(reason));
                };
                self.with_aside(now, aside, |machine, road| machine.report(of, cost, road))?;
                self.look(now, inbox);
            }
            Request::Tags(changes) => self.set_tags(now, changes, inbox)?,
        }
        Ok(())
    }

    fn set_tags(
        &mut self,
        now: Time,
        changes: BTreeMap<String, Option<String>>,
        inbox: &Inbox,
    ) -> Result<(), Refused> {
        let before = self.settings.about.tags.clone();
        for (key, value) in changes {
            match value {
                Some(value) => self.settings.about.tags.insert(key, value),
                None => self.settings.about.tags.remove(&key),
            };
        }
        if let Err(error) = self.settings.introduction() {
            self.settings.about.tags = before;
            return Err(Refused::Impossible(format!("name, tags and elections together: {error}")));
        }
        self.introduce(now, inbox);
        Ok(())
    }

    fn election(&self, election: &str) -> Result<usize, Refused> {
        let names = || self.settings.elections.iter().map(|seat| seat.name.as_str());
        names().position(|name| name == election).ok_or_else(|| {
            let all = names().collect::<Vec<_>>().join(", ");
            Refused::NoSuchElection(election.to_owned(), all)
        })
    }

    fn led(&self, election: &str) -> Result<usize, Refused> {
        let at = self.election(election)?;
        match self.tallies[at].answer.leader {
            Some(leader) if leader == self.me.id => Ok(at),
            Some(leader) => Err(Refused::NotLeader(election.to_owned(), self.named(leader).name)),
            None => Err(Refused::NotLeader(election.to_owned(), "nobody".to_owned())),
        }
    }

    fn find(&self, name: &str) -> Result<NodeId, Refused> {
        let known = self
            .records
            .iter()
            .find(|(id, record)| record.name == name || format!("{:016x}", id.get()) == name);
        known.map(|(&id, _)| id).ok_or_else(|| Refused::NoSuchMember(name.to_owned()))
    }
}
