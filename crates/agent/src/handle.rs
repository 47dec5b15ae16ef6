//! How everybody else talks to the task that owns the node.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bellwether_proto::{Duration, Time};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    api::Refusals,
    clock,
    discovery::Found,
    key::KeyRing,
    neighbours::Neighbour,
    peers::KnownPeer,
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
        /// The election.
        election: String,
        /// The member.
        to: String,
    },
    /// Hold it against a member of a learned election, or in its favour, how it does.
    Report {
        /// The election.
        election: String,
        /// The member, by name or identity; the leader if none is named.
        of: Option<String>,
        /// How badly it does, in hundredths: 0 is as it should be.
        cost: u8,
    },
    /// Change what others read about this node: a value, or none to delete it.
    Tags(BTreeMap<String, Option<String>>),
}

/// Why a request was not granted. Shown to people as it is.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refused {
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

/// The agent has stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the agent has stopped")]
pub struct Stopped;

/// A way to ask a running agent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Requested>,
    history: Arc<Mutex<VecDeque<Event>>>,
    newest: watch::Receiver<u64>,
    answers: watch::Receiver<Arc<Answers>>,
    refusals: Arc<Refusals>,
}

/// What every election answers, and since when that is known.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    at: Time,
    /// In the order of the settings; none before the start.
    pub elections: Vec<ElectionStatus>,
}

impl Answers {
    /// Whether the node has said so within the last two seconds. It says so every second, and whenever something changes:
    /// one that does not hangs, and leads nothing.
    pub fn are_fresh(&self) -> bool {
        clock::now().since(self.at) <= FRESH
    }
}

/// One question, and where the answer goes.
#[derive(Debug)]
pub enum Requested {
    /// What do you know?
    Status(oneshot::Sender<Arc<Status>>),
    /// Please do this.
    Do(Request, oneshot::Sender<Result<(), Refused>>),
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
    Map(String, oneshot::Sender<Result<MapStatus, Refused>>),
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
}

impl Handle {
    /// Both ends of a new connection.
    pub fn connect() -> (Self, Inbox) {
        let (sender, requests) = mpsc::channel(PENDING);
        let (newest, watched) = watch::channel(0);
        let history = Arc::new(Mutex::new(VecDeque::new()));
        let (answers, read) = watch::channel(Arc::default());
        let handle = Self {
            requests: sender,
            history: Arc::clone(&history),
            newest: watched,
            answers: read,
            refusals: Arc::default(),
        };
        (handle, Inbox { requests, history, newest, answers })
    }

    /// What every election answers, as of its last change or the last second. Nothing is asked of the node: whoever reads
    /// costs it nothing.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub fn answers(&self) -> Result<Arc<Answers>, Stopped> {
        match self.is_stopped() {
            true => Err(Stopped),
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
    /// [`Stopped`].
    pub async fn status(&self) -> Result<Arc<Status>, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Requested::Status(reply)).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }

    /// Asks for something to be done; returns once it is under way.
    ///
    /// # Errors
    ///
    /// [`Stopped`]; the inner result says why a living agent refused.
    pub async fn request(&self, request: Request) -> Result<Result<(), Refused>, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Requested::Do(request, reply)).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }

    /// The map by which a central election is decided.
    ///
    /// # Errors
    ///
    /// [`Stopped`]; the inner result says why a living agent has none.
    pub async fn map(&self, election: &str) -> Result<Result<MapStatus, Refused>, Stopped> {
        let (reply, answer) = oneshot::channel();
        let asked = Requested::Map(election.to_owned(), reply);
        self.requests.send(asked).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }

    /// Says who is in range, or why that is not known.
    pub(crate) async fn set_neighbours(
        &self,
        election: String,
        neighbours: Option<Vec<Neighbour>>,
        problem: Option<String>,
    ) -> Result<(), Stopped> {
        let told = Requested::Neighbours { election, neighbours, problem };
        self.requests.send(told).await.map_err(|_| Stopped)
    }

    /// Says where the node is reached from now on.
    pub(crate) async fn advertise(&self, address: SocketAddr) -> Result<(), Stopped> {
        self.requests.send(Requested::Advertise(address)).await.map_err(|_| Stopped)
    }

    /// Says which sources of addresses to join there are.
    pub(crate) async fn set_sources(&self, names: Vec<String>) -> Result<(), Stopped> {
        self.requests.send(Requested::Sources(names)).await.map_err(|_| Stopped)
    }

    /// Says what one of them says.
    pub(crate) async fn set_found(&self, found: Found) -> Result<(), Stopped> {
        self.requests.send(Requested::Found(found)).await.map_err(|_| Stopped)
    }

    /// Where the other members live that do.
    pub(crate) async fn peers(&self) -> Result<Vec<KnownPeer>, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Requested::Peers(reply)).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }

    /// From now on these keys, and these priorities.
    pub(crate) async fn change(
        &self,
        ring: KeyRing,
        priorities: impl IntoIterator<Item = (String, u32)>,
    ) -> Result<(), Stopped> {
        let priorities =
            priorities.into_iter().map(|(name, worth)| Requested::Priority(name, worth));
        for asked in core::iter::once(Requested::Keys(ring)).chain(priorities) {
            self.requests.send(asked).await.map_err(|_| Stopped)?;
        }
        Ok(())
    }

    /// Says which elections this node must not lead until further notice.
    pub(crate) async fn set_dirty(&self, elections: BTreeSet<String>) -> Result<(), Stopped> {
        self.requests.send(Requested::Dirty(elections)).await.map_err(|_| Stopped)
    }

    /// Pulls the node's cable, or plugs it in again: nothing goes out and nothing comes in, and the node is not told. For
    /// demonstrations and tests; no setting and no request of an ordinary agent leads here.
    ///
    /// # Errors
    ///
    /// [`Stopped`].
    pub async fn set_cut(&self, cut: bool) -> Result<(), Stopped> {
        self.requests.send(Requested::Cut(cut)).await.map_err(|_| Stopped)
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
    /// [`Stopped`].
    pub async fn wait_after(&mut self, index: u64) -> Result<(), Stopped> {
        self.newest.wait_for(|&newest| newest > index).await.map(|_| ()).map_err(|_| Stopped)
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
        self.answers.send_replace(Arc::new(Answers { at: clock::now(), elections }));
    }

    /// The number the next event gets.
    pub fn next_index(&self) -> u64 {
        *self.newest.borrow() + 1
    }

    /// Adds to the history. The event's index must be [`next_index`](Self::next_index).
    pub fn record(&self, event: Event) {
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

/// How long answers are believed that the node does not repeat.
const FRESH: Duration = Duration::from_secs(2);
/// Questions that may wait; whoever asks more waits before asking.
const PENDING: usize = 64;
/// Events kept for those that resume.
const KEPT: usize = 1024;
