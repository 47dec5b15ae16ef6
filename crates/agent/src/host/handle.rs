//! How everybody else talks to the task that owns the node.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bellwether_proto::{Mode, Time};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    host::{
        clock,
        discovery::Found,
        election::{Election, Told, is_fresh},
        log,
        neighbours::Neighbour,
        peers::KnownPeer,
        refusals::Refusals,
    },
    net::key::KeyRing,
    status::{ElectionStatus, Event, MapStatus, Status},
};

/// What may be asked of a running agent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Request {
    /// Talk to these, now and until they answer.
    Join(Vec<SocketAddr>),
    /// Hand over, say goodbye and stop.
    Leave,
    /// Take a failed member off the lists, by name or identity.
    ForceLeave(String),
    /// Give up leading this election; somebody else is elected.
    Resign(String),
    /// Give up leading this election to that member, by name or identity.
    Transfer {
        /// The election's name, as configured.
        election: String,
        /// The member that is to lead, by name or identity.
        to: String,
    },
    /// Hold it against a member of a learned election, or in its favour, how it does.
    Report {
        /// The election's name, as configured.
        election: String,
        /// The member, by name or identity; the leader if none is named.
        of: Option<String>,
        /// How badly it does, in hundredths: 0 is as it should be.
        cost: u8,
    },
    /// Change what others read about this node: a value, or none to delete it.
    Tags(BTreeMap<String, Option<String>>),
}

/// Why an agent did not do what it was asked. Shown to people as it is.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The agent has stopped.
    #[error("the agent has stopped")]
    Stopped,
    /// There is nobody of that name.
    #[error("no member is called {0:?}; `bellwether members` lists them")]
    NoSuchMember(String),
    /// There is no such election.
    #[error("no election is called {0:?}; this agent takes part in {1}")]
    NoSuchElection(String, String),
    /// Only a leader can do that.
    #[error("this node does not lead {0:?}, {1} does")]
    NotLeader(String, String),
    /// It cannot be done as things are.
    #[error("{0}")]
    Impossible(String),
}

/// A way to ask a running agent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Requested>,
    history: Arc<Mutex<VecDeque<Event>>>,
    newest: watch::Receiver<u64>,
    answers: watch::Receiver<Arc<Answers>>,
    elections: Arc<[(String, watch::Receiver<Told>)]>,
    refusals: Arc<Refusals>,
}

/// What every election answers, and since when that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    at: Time,
    /// In the order of the settings; none before the start.
    pub(crate) elections: Vec<ElectionStatus>,
}

impl Answers {
    /// Whether the node has said so lately.
    pub(crate) fn are_fresh(&self) -> bool {
        is_fresh(self.at, clock::now())
    }
}

/// One question, and where the answer goes.
#[derive(Debug)]
pub enum Requested {
    /// What do you know?
    Status(oneshot::Sender<Arc<Status>>),
    /// Please do this.
    Do(Request, oneshot::Sender<Result<(), Error>>),
    /// Go on with these keys.
    Keys(KeyRing),
    /// Be worth this in an election.
    Priority(String, u32),
    /// Do not lead these: hooks have yet to undo what leading them before had set up.
    Dirty(BTreeSet<String>),
    /// Be as if the cable were pulled, or plugged in again.
    Cut(bool),
    /// Say from now on that this is where we are reached.
    Advertise(SocketAddr),
    /// These are the sources of addresses to join.
    Sources(Vec<String>),
    /// One of them has been asked.
    Found(Found),
    /// Where do the others live?
    Peers(oneshot::Sender<Vec<KnownPeer>>),
    /// What does this election's map show?
    Map(String, oneshot::Sender<Result<MapStatus, Error>>),
    /// These are in range, as a routing daemon says.
    Neighbours {
        /// For which election.
        election: String,
        /// All of them; none if the last word still stands.
        neighbours: Option<Vec<Neighbour>>,
        /// Why its table could not be read.
        problem: Option<String>,
    },
}

/// The agent's end.
#[derive(Debug)]
pub struct Inbox {
    /// What is asked, in order.
    pub requests: mpsc::Receiver<Requested>,
    history: Arc<Mutex<VecDeque<Event>>>,
    newest: watch::Sender<u64>,
    answers: watch::Sender<Arc<Answers>>,
    elections: Vec<(String, watch::Sender<Told>)>,
}

impl Handle {
    /// Both ends of a new connection to an agent that takes part in these elections.
    #[doc(hidden)]
    pub fn connect(elections: impl IntoIterator<Item = (String, Mode)>) -> (Self, Inbox) {
        let (sender, requests) = mpsc::channel(PENDING);
        let (newest, watched) = watch::channel(0);
        let history = Arc::new(Mutex::new(VecDeque::new()));
        let (answers, read) = watch::channel(Arc::default());
        let one = |(name, mode)| (name, watch::Sender::new(Told::nothing(mode)));
        let elections: Vec<_> = elections.into_iter().map(one).collect();
        let told = elections.iter().map(|(name, told)| (name.clone(), told.subscribe()));
        let handle = Self {
            requests: sender,
            history: Arc::clone(&history),
            newest: watched,
            answers: read,
            elections: told.collect(),
            refusals: Arc::default(),
        };
        (handle, Inbox { requests, history, newest, answers, elections })
    }

    /// The election of this name.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchElection`]: the agent's settings name no such election.
    pub fn election(&self, name: &str) -> Result<Election, Error> {
        match self.elections.iter().find(|(known, _)| known == name) {
            Some((_, told)) => Ok(Election::new(name, self.clone(), told.clone())),
            None => {
                let all: Vec<&str> = self.elections.iter().map(|(name, _)| &**name).collect();
                Err(Error::NoSuchElection(name.to_owned(), all.join(", ")))
            }
        }
    }

    /// What every election answers, as of its last change or the last second. Nothing is asked of the node: whoever reads
    /// costs it nothing.
    pub(crate) fn answers(&self) -> Result<Arc<Answers>, Error> {
        match self.is_stopped() {
            true => Err(Error::Stopped),
            false => Ok(Arc::clone(&self.answers.borrow())),
        }
    }

    /// What its interfaces refused before it could be asked.
    pub(crate) fn refusals(&self) -> Arc<Refusals> {
        Arc::clone(&self.refusals)
    }

    /// What the agent knows now.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn status(&self) -> Result<Arc<Status>, Error> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Requested::Status(reply)).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)
    }

    /// Asks for something to be done; returns once it is under way.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub async fn request(&self, request: Request) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Requested::Do(request, reply)).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)?
    }

    /// Asks it to leave without waiting for an answer. False if that cannot be asked: it has stopped, or hangs.
    pub(crate) fn try_leave(&self) -> bool {
        let (reply, _) = oneshot::channel();
        self.requests.try_send(Requested::Do(Request::Leave, reply)).is_ok()
    }

    /// The map by which a central election is decided.
    ///
    /// # Errors
    ///
    /// [`Error`]; only central elections have one.
    pub async fn map(&self, election: &str) -> Result<MapStatus, Error> {
        let (reply, answer) = oneshot::channel();
        let asked = Requested::Map(election.to_owned(), reply);
        self.requests.send(asked).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)?
    }

    /// Says who is in range, or why that is not known.
    pub(crate) async fn set_neighbours(
        &self,
        election: String,
        neighbours: Option<Vec<Neighbour>>,
        problem: Option<String>,
    ) -> Result<(), Error> {
        let told = Requested::Neighbours { election, neighbours, problem };
        self.requests.send(told).await.map_err(|_| Error::Stopped)
    }

    /// Says where the node is reached from now on.
    pub(crate) async fn advertise(&self, address: SocketAddr) -> Result<(), Error> {
        self.requests.send(Requested::Advertise(address)).await.map_err(|_| Error::Stopped)
    }

    /// Says which sources of addresses to join there are.
    pub(crate) async fn set_sources(&self, names: Vec<String>) -> Result<(), Error> {
        self.requests.send(Requested::Sources(names)).await.map_err(|_| Error::Stopped)
    }

    /// Says what one of them says.
    pub(crate) async fn set_found(&self, found: Found) -> Result<(), Error> {
        self.requests.send(Requested::Found(found)).await.map_err(|_| Error::Stopped)
    }

    /// Where the other members live that do.
    pub(crate) async fn peers(&self) -> Result<Vec<KnownPeer>, Error> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Requested::Peers(reply)).await.map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)
    }

    /// From now on these keys, and these priorities.
    pub(crate) async fn change(
        &self,
        ring: KeyRing,
        priorities: impl IntoIterator<Item = (String, u32)>,
    ) -> Result<(), Error> {
        let priorities =
            priorities.into_iter().map(|(name, worth)| Requested::Priority(name, worth));
        for asked in core::iter::once(Requested::Keys(ring)).chain(priorities) {
            self.requests.send(asked).await.map_err(|_| Error::Stopped)?;
        }
        Ok(())
    }

    /// Says which elections this node must not lead until further notice.
    pub(crate) async fn set_dirty(&self, elections: BTreeSet<String>) -> Result<(), Error> {
        self.requests.send(Requested::Dirty(elections)).await.map_err(|_| Error::Stopped)
    }

    /// Pulls the node's cable, or plugs it in again: nothing goes out and nothing comes in, and the node is not told. For
    /// demonstrations and tests; no setting and no request of an ordinary agent leads here.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    #[doc(hidden)]
    pub async fn set_cut(&self, cut: bool) -> Result<(), Error> {
        self.requests.send(Requested::Cut(cut)).await.map_err(|_| Error::Stopped)
    }

    /// The number of the newest event.
    pub fn index(&self) -> u64 {
        *self.newest.borrow()
    }

    /// Events after `index`, oldest first, and whether older ones than these are no longer kept.
    pub fn events_after(&self, index: u64) -> (Vec<Event>, bool) {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let missed = history.front().is_some_and(|oldest| oldest.index > index + 1);
        (history.iter().filter(|event| event.index > index).cloned().collect(), missed)
    }

    /// Waits until there is an event after `index`.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub async fn wait_after(&mut self, index: u64) -> Result<(), Error> {
        self.newest.wait_for(|&newest| newest > index).await.map(|_| ()).map_err(|_| Error::Stopped)
    }

    /// Whether the agent has stopped.
    pub fn is_stopped(&self) -> bool {
        self.requests.is_closed()
    }

    /// Waits until the agent has stopped.
    pub async fn stopped(&self) {
        self.requests.closed().await;
    }
}

impl Inbox {
    /// What every election answers from now on.
    pub fn publish(&self, elections: Vec<ElectionStatus>) {
        let at = clock::now();
        for status in &elections {
            let told = self.elections.iter().find(|(name, _)| *name == status.election);
            told.map(|(_, told)| told.send_if_modified(|told| told.update(at, status)));
        }
        self.answers.send_replace(Arc::new(Answers { at, elections }));
    }

    /// The number the next event gets.
    pub fn next_index(&self) -> u64 {
        *self.newest.borrow() + 1
    }

    /// Adds to the history. The event's index must be [`next_index`](Self::next_index).
    pub fn record(&self, event: Event) {
        log::tell(&event);
        let index = event.index;
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.len() >= KEPT {
            history.pop_front();
        }
        history.push_back(event);
        drop(history);
        self.newest.send_replace(index);
    }
}

/// Questions that may wait; whoever asks more waits before asking.
const PENDING: usize = 64;
/// Events kept for those that resume.
const KEPT: usize = 1024;
