//! One election of a running agent, for the program that the agent is embedded in.

use std::time::Duration as Wait;

use bellwether_proto::{Duration, Epoch, Mode, NodeId, Time};
use tokio::sync::watch;

use crate::{
    host::{
        clock,
        handle::{Error, Handle, Request},
    },
    status::ElectionStatus,
};

/// One election, as this node sees it: [`Handle::election`] gives it. Each clone waits for news on its own.
#[derive(Clone, Debug)]
pub struct Election {
    name: String,
    handle: Handle,
    told: watch::Receiver<Told>,
    /// What whoever holds this was given last.
    seen: Option<Leadership>,
}

/// Who leads, as far as this node can say.
///
/// Two of them are equal if they tell a program the same: a lease that was renewed is no other answer, nor is another
/// wording of the reason.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Leadership {
    /// Which promise the answer carries.
    pub mode: Mode,
    /// Who leads, if that is known.
    pub leader: Option<Leader>,
    /// Whether this node has no present reason to doubt that.
    pub settled: bool,
    /// There if this node leads, and may act.
    pub lead: Option<Lead>,
    /// Why all this is so, in words.
    pub why: String,
}

/// The member that leads.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Leader {
    /// The identity of its node.
    pub id: NodeId,
    /// As it is configured there; the identity in hexadecimal digits until it has said.
    pub name: String,
    /// The fencing token under which it leads. Central elections have none.
    pub epoch: Option<Epoch>,
}

/// That this node leads and may act.
///
/// Do not keep it: ask [`Election::current`] before each piece of work. Hand its epoch to whatever the work changes, which
/// refuses epochs below the highest that it has seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Lead {
    /// The fencing token. Central elections have none.
    pub epoch: Option<Epoch>,
    /// Leased elections: when it ends unless it is renewed, on the clock that [`Lead::left`] reads.
    pub valid_until: Option<Time>,
}

impl Lead {
    /// Leased elections: for how long this node may still act. Time that the machine sleeps counts.
    pub fn left(&self) -> Option<Wait> {
        let until = self.valid_until?;
        Some(Wait::from_micros(until.since(clock::now()).as_micros()))
    }

    /// Whether its lease is over. Where there is no lease nothing ends by itself, and this is false.
    pub fn is_over(&self) -> bool {
        self.valid_until.is_some_and(|until| clock::now() >= until)
    }
}

impl PartialEq for Leadership {
    fn eq(&self, other: &Self) -> bool {
        let epoch = |of: &Self| of.lead.map(|lead| lead.epoch);
        (self.mode, &self.leader, self.settled, epoch(self))
            == (other.mode, &other.leader, other.settled, epoch(other))
    }
}

impl Leadership {
    fn of(status: &ElectionStatus) -> Self {
        let ElectionStatus { mode, epoch, settled, .. } = *status;
        let leader = status.leader.as_ref();
        let valid_until = status.valid_until_us.map(Time::from_micros);
        Self {
            mode,
            leader: leader.map(|one| Leader { id: one.id, name: one.name.clone(), epoch }),
            settled,
            lead: status.is_leader.then_some(Lead { epoch, valid_until }),
            why: status.why.clone(),
        }
    }

    /// Nobody is known to lead, for this reason.
    fn unknown(self, why: &str) -> Self {
        Self { leader: None, settled: false, lead: None, why: why.to_owned(), ..self }
    }
}

/// What the node says of an election, and when it said so last.
#[derive(Debug)]
pub(crate) struct Told {
    at: Time,
    leadership: Leadership,
}

impl Told {
    /// Before the node has said anything.
    pub(crate) fn nothing(mode: Mode) -> Self {
        let why = "the agent has not started".to_owned();
        let leadership = Leadership { mode, leader: None, settled: false, lead: None, why };
        Self { at: Time::ZERO, leadership }
    }

    /// Takes over what the node says now. True if that is another answer.
    pub(crate) fn update(&mut self, now: Time, status: &ElectionStatus) -> bool {
        let before = core::mem::replace(&mut self.leadership, Leadership::of(status));
        self.at = now;
        before != self.leadership
    }

    /// Until when it stands if the node says nothing more: for ever if this node does not lead.
    fn ends(&self) -> Option<Time> {
        let Lead { valid_until, .. } = self.leadership.lead?;
        let repeated = self.at + FRESH;
        Some(valid_until.map_or(repeated, |until| until.min(repeated)))
    }

    fn read_at(&self, now: Time) -> Leadership {
        let answer = self.leadership.clone();
        match answer.lead {
            Some(Lead { valid_until: Some(until), .. }) if now >= until => {
                answer.unknown("the lease is over")
            }
            Some(_) if !is_fresh(self.at, now) => answer.unknown("the node does not answer"),
            _ => answer,
        }
    }
}

/// Whether what a node said at `at` is believed at `now`. It says so every second, and whenever something changes: one that
/// does not hangs, and leads nothing.
pub(crate) fn is_fresh(at: Time, now: Time) -> bool {
    now.since(at) <= FRESH
}

impl Election {
    pub(crate) fn new(name: &str, handle: Handle, told: watch::Receiver<Told>) -> Self {
        Self { name: name.to_owned(), handle, told, seen: None }
    }

    /// Its name, as configured.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who leads now. Nothing is asked of the node, so this may be called as often as one likes. Once the agent has stopped
    /// nobody does.
    pub fn current(&mut self) -> Leadership {
        // In one step: what is published from here on is news to `changed`.
        let now = self.told.borrow_and_update().read_at(clock::now());
        let now = match self.handle.is_stopped() {
            true => now.unknown(&Error::Stopped.to_string()),
            false => now,
        };
        self.seen = Some(now.clone());
        now
    }

    /// Waits until the answer has changed since [`current`](Self::current) or this gave one, and gives it; at once if none
    /// was given yet. What happens between two calls is not missed, and nothing is lost if the future is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn changed(&mut self) -> Result<Leadership, Error> {
        loop {
            if self.handle.is_stopped() {
                return Err(Error::Stopped);
            }
            let now = clock::now();
            let (read, ends) = {
                let told = self.told.borrow();
                (told.read_at(now), told.ends())
            };
            if self.seen.as_ref() != Some(&read) {
                return Ok(self.current());
            }
            // Whoever leads no longer does if the node falls silent.
            let silence = ends.map_or(Wait::MAX, |at| Wait::from_micros(at.since(now).as_micros()));
            tokio::select! {
                changed = self.told.changed() => {
                    changed.map_err(|_| Error::Stopped)?;
                    return Ok(self.current());
                }
                () = tokio::time::sleep(silence.max(SHORTEST)), if ends.is_some() => {}
            }
        }
    }

    /// Gives up leading; somebody else is elected. Returns once that is under way.
    ///
    /// # Errors
    ///
    /// [`Error::NotLeader`] unless this node leads; [`Error::Impossible`] if it cannot be done now; [`Error::Stopped`].
    pub async fn resign(&self) -> Result<(), Error> {
        self.handle.request(Request::Resign(self.name.clone())).await
    }

    /// Gives up leading to a member, by name or identity. Returns once that is under way.
    ///
    /// # Errors
    ///
    /// As [`resign`](Self::resign); and [`Error::NoSuchMember`].
    pub async fn transfer(&self, to: &str) -> Result<(), Error> {
        let (election, to) = (self.name.clone(), to.to_owned());
        self.handle.request(Request::Transfer { election, to }).await
    }
}

/// How long what a node said is believed that it does not repeat.
const FRESH: Duration = Duration::from_secs(2);
/// Between two looks at whether the node has fallen silent, so that none is taken too early.
const SHORTEST: Wait = Wait::from_millis(1);
