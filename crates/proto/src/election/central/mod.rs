//! Eventual leaders at the centre of each connected component: Topology Aware, CEL, their hardened core, and the
//! baselines they were compared with.
//!
//! Source: PhD thesis, Sorbonne 2022, Algorithms 1 and 2; rules `N`, `L`, `TA`, `C`, `H`, `F`, `G` and errata `E1` to
//! `E28` are those of `docs/rules/central.md`. Every node keeps a [`Map`] of its component and names its most central
//! member; there is no election phase, only link changes that spread. Which protocol spreads them is the [`Profile`]:
//!
//! | profile | file | spreads |
//! |---|---|---|
//! | `TopologyAware` | `published/topology_aware` | the map to a new neighbour, else differences on a tick |
//! | `Cel` | `published/cel` | the map, at once, with probability `ρ`, not where a twin does |
//! | [`Profile::LinkState`] | `link_state` | whole entries of their owners, and digests that find what got lost |
//! | `Flooding` | `published/flooding` | claims of the node of highest degree |
//! | `Gomez` | `published/gomez` | claims of the leader of the largest group, or the oldest |
//!
//! This file is what they share: neighbours, and the answer. All but the link-state core need the feature `research`.
//!
//! ```text
//! Idle    --Start-----------------> Running   arm Beacon
//! Running --Beacon fires----------> Running   broadcast a beacon (N1)
//! Running --beacon of j, or Up(j)-> Running   j is in range: the profile's Up rule if it was not (N2)
//! Running --Silence fires, Down(j)> Running   j is not: its Down rule (N3)
//! Running --any other message-----> Running   its Recv rule
//! Running --its own timers--------> Running   see its file
//! Running --Leave-----------------> Left
//!
//! With hysteresis:
//! Running --best is another-------> Running   follow it if better by so much, else arm Dwell
//! Running --Dwell fires-----------> Running   follow the best
//! ```
//!
//! Promise: once links stay as they are, all members of a component name the same one of them, its most central. It is
//! kept by the hardened forms over links that lose messages, and by none of the others (P1). Before that several may
//! believe to lead: what they command must be safe whoever says it, or fenced by [`Central::fence`] (E27).
//!
//! Departure: the thesis's `Leader()` never says "nobody"; neither does a node here while it runs.
//!
//! ```
//! use bellwether_proto::{
//!     Boot, Effect, Election, Input, Machine, NodeId, Outbox, Peer, Seed, Time,
//!     election::central::{Central, Config, Detection, Feed},
//! };
//!
//! let config = Config::hardened(Detection::Given).unwrap();
//! let [small, large] = [3, 8].map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
//! let mut node = Central::new(small, config, Seed::new(1));
//! let mut out = Outbox::new();
//! node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
//! assert_eq!(node.leadership().leader, Some(small.id), "alone, it leads itself");
//!
//! node.handle(Time::from_micros(9), Input::Feed(Feed::Up(large.id)), &mut out).unwrap();
//! assert!(matches!(out.pop(), Some(Effect::Broadcast(_))), "others should know");
//! assert_eq!(node.leadership().leader, Some(large.id), "two are equally central: the higher leads");
//! ```

use core::convert::Infallible;

use alloc::vec::Vec;

#[cfg(feature = "research")]
pub use self::config::{Order, Probes, Reading};
use self::link_state::LinkState as Core;
#[cfg(feature = "research")]
use self::published::Published;
pub use self::{
    config::{Config, ConfigError, Hysteresis, LinkState, Profile, Spread, tick},
    message::{Mark, Message, Update},
};
pub use crate::topology::{
    criterion::Criterion,
    detector::{Detection, Feed},
    map::{Answer, Edges, Map, Rank, View},
    memo::Memo,
};
use crate::{
    id::{Boot, NodeId, Peer},
    leadership::{Election, Leadership, Mode, Why},
    machine::{Input, InputOf, Machine, OutboxOf, Rejected},
    rng::{Rng, Seed},
    time::Time,
    topology::{detector::Detector, map::Survey},
};

mod config;
mod link_state;
mod message;
#[cfg(feature = "research")]
mod published;
#[cfg(test)]
#[cfg(feature = "research")]
mod tests;

/// Why a node wants to be woken.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Timer {
    /// To send a beacon.
    Beacon,
    /// To give up a silent neighbour.
    Silence,
    /// To send what has changed, or to speak as a leader.
    Tick,
    /// To send a digest.
    Digest,
    /// To forget what nobody leads to.
    Sweep,
    /// To give up a silent leader.
    Leader,
    /// To give up a silent member.
    Member,
    /// To follow the best after all.
    Dwell,
}

/// One node of an election of the most central.
#[derive(Clone, Debug)]
pub struct Central {
    me: Peer,
    config: Config,
    rng: Rng,
    phase: Phase,
    detector: Detector,
    protocol: Protocol,
    survey: Survey,
    answer: Option<Answer>,
    leader: NodeId,
    /// Since when somebody else has been better, but not by enough.
    doubted: Option<Time>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Idle,
    Running,
    Left,
}

#[derive(Clone, Debug)]
enum Protocol {
    LinkState(Core),
    #[cfg(feature = "research")]
    Published(Published),
}

/// The first number of a life, above those of past lives unless one of them counted further than most ever will.
fn first_number(boot: Boot) -> u64 {
    boot.get().min(u64::MAX >> (COUNTED + 1)) << COUNTED
}

/// What a protocol needs from the node around it.
struct Context<'a> {
    now: Time,
    rng: &'a mut Rng,
    survey: &'a mut Survey,
    out: &'a mut OutboxOf<Central>,
}

impl Central {
    /// A node that has not started yet. Nothing of a past life is needed but the boot number that the host keeps.
    pub fn new(me: Peer, config: Config, seed: Seed) -> Self {
        let (edges, protocol) = match config.profile {
            Profile::LinkState(settings) => {
                (Edges::Mutual, Protocol::LinkState(Core::new(me, settings)))
            }
            #[cfg(feature = "research")]
            profile => {
                let (edges, published) = Published::new(me, profile);
                (edges, Protocol::Published(published))
            }
        };
        Self {
            me,
            config,
            rng: seed.rng(),
            phase: Phase::Idle,
            detector: Detector::new(config.detection),
            protocol,
            survey: Survey::new(edges, config.criterion),
            answer: None,
            leader: me.id,
            doubted: None,
        }
    }

    /// The same, sharing what it finds out about components with others in the same process: nothing that it
    /// does changes, but much of it is done once instead of once for each.
    pub fn sharing(self, memo: &Memo) -> Self {
        Self { survey: self.survey.sharing(memo.clone()), ..self }
    }

    /// What it was built with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What it knows; `None` for the baselines, which have no map.
    pub const fn map(&self) -> Option<&Map> {
        match &self.protocol {
            Protocol::LinkState(it) => Some(&it.map),
            #[cfg(feature = "research")]
            Protocol::Published(it) => it.map(),
        }
    }

    /// What the map says of our component; `None` for the baselines and before the start.
    pub const fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// All members of our component with their scores, best first: why the leader is the leader. Empty for the baselines.
    pub fn table(&self) -> Vec<Rank> {
        match self.map() {
            Some(map) => self.survey.clone().table(map),
            None => Vec::new(),
        }
    }

    /// The leader and a hash of the map it follows from. Two that name the same pair know the same component, and a resource
    /// can refuse whoever names another (E27). There is no order between pairs: it tells leaders apart, not which is newer.
    pub fn fence(&self) -> Option<(NodeId, u64)> {
        self.answer.map(|answer| (self.leader, answer.map))
    }

    /// Who is in range, ascending.
    pub fn neighbours(&self) -> impl ExactSizeIterator<Item = NodeId> + Clone {
        self.detector.neighbours()
    }

    /// The protocol, and what it needs.
    fn split<'a>(
        &'a mut self,
        now: Time,
        out: &'a mut OutboxOf<Self>,
    ) -> (&'a mut Protocol, Context<'a>) {
        let Self { rng, protocol, survey, .. } = self;
        (protocol, Context { now, rng, survey, out })
    }
}

impl Central {
    fn on_start(&mut self, now: Time, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        if self.phase != Phase::Idle {
            return Err(Rejected::StartedTwice);
        }
        self.phase = Phase::Running;
        self.detector.start(now, &mut self.rng);
        let (protocol, mut context) = self.split(now, out);
        match protocol {
            Protocol::LinkState(it) => it.start(&mut context),
            #[cfg(feature = "research")]
            Protocol::Published(it) => it.start(&mut context),
        }
        Ok(())
    }

    fn on_message(
        &mut self,
        now: Time,
        from: Peer,
        message: &Message,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if from.id == self.me.id {
            return Err(Rejected::Loopback { from });
        }
        if let Message::Beacon = message {
            #[cfg(feature = "research")]
            if matches!(self.protocol, Protocol::Published(Published::Gomez(_))) {
                return Err(Rejected::Unsolicited { from });
            }
            self.hear(now, from.id, out);
            return Ok(());
        }
        let (protocol, mut context) = self.split(now, out);
        match (protocol, message) {
            (Protocol::LinkState(it), Message::Entries(entries)) => it.learn(entries, &mut context),
            (Protocol::LinkState(it), Message::Digest { first, last, marks }) => {
                it.compare(*first..=*last, marks, &mut context);
            }
            #[cfg(feature = "research")]
            (Protocol::Published(it), message) => return it.hear(from, message, &mut context),
            _ => return Err(Rejected::Unsolicited { from }),
        }
        Ok(())
    }

    fn on_timeout(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        while let Some(id) = self.detector.expire(now) {
            self.lose(now, id, out);
        }
        if self.detector.beacon(now) {
            out.broadcast(Message::Beacon);
        }
        let (protocol, mut context) = self.split(now, out);
        match protocol {
            Protocol::LinkState(it) => it.due(&mut context),
            #[cfg(feature = "research")]
            Protocol::Published(it) => it.due(&mut context),
        }
    }

    fn on_feed(&mut self, now: Time, feed: Feed, out: &mut OutboxOf<Self>) -> Result<(), Rejected> {
        let (Feed::Up(id) | Feed::Down(id)) = feed;
        if id == self.me.id {
            return Err(Rejected::Loopback { from: self.me });
        }
        match feed {
            Feed::Up(id) => self.hear(now, id, out),
            Feed::Down(id) if self.detector.lose(id) => self.lose(now, id, out),
            Feed::Down(_) => {}
        }
        Ok(())
    }

    /// N2.
    fn hear(&mut self, now: Time, id: NodeId, out: &mut OutboxOf<Self>) {
        let new = self.detector.hear(now, id);
        #[cfg(feature = "research")]
        let degree = self.detector.neighbours().len() as u64;
        let (protocol, mut context) = self.split(now, out);
        match protocol {
            #[cfg(feature = "research")]
            Protocol::Published(it) => it.up(id, new, degree, &mut context),
            Protocol::LinkState(it) if new => it.up(id, &mut context),
            Protocol::LinkState(_) => {}
        }
    }

    /// N3, of one that the detector has just given up.
    fn lose(&mut self, now: Time, id: NodeId, out: &mut OutboxOf<Self>) {
        #[cfg(feature = "research")]
        let degree = self.detector.neighbours().len() as u64;
        let (protocol, mut context) = self.split(now, out);
        match protocol {
            #[cfg(feature = "research")]
            Protocol::Published(it) => it.down(id, degree, &mut context),
            Protocol::LinkState(it) => it.down(id, &mut context),
        }
    }

    /// `LeaderChanged` is derived: whatever has happened, who is best now?
    fn conclude(&mut self, now: Time) {
        let map = match &self.protocol {
            Protocol::LinkState(it) => {
                debug_assert!(
                    it.hears(self.detector.neighbours()),
                    "H10: our view is what we hear"
                );
                &it.map
            }
            #[cfg(feature = "research")]
            Protocol::Published(it) => match it.followed() {
                Ok(map) => map,
                Err(leader) => {
                    self.leader = leader;
                    return;
                }
            },
        };
        let answer = self.survey.answer(map);
        self.answer = Some(answer);
        if let Some(hysteresis) = self.config.hysteresis
            && answer.leader != self.leader
            && let Some(score) = self.survey.score_of(map, self.leader)
        {
            let margin = score * u64::from(hysteresis.percent);
            let enough = score.abs_diff(answer.score) * 100 >= margin;
            let since = *self.doubted.get_or_insert(now);
            if !enough && now < since + hysteresis.dwell {
                return;
            }
        }
        self.leader = answer.leader;
        self.doubted = None;
    }

    fn dwell(&self) -> Time {
        match (self.doubted, self.config.hysteresis) {
            (Some(since), Some(hysteresis)) => since + hysteresis.dwell,
            _ => Time::NEVER,
        }
    }
}

impl Machine for Central {
    type Message = Message;
    type Timer = Timer;
    type Feed = Feed;
    type Command = Infallible;
    type Durable = Infallible;
    type Event = Infallible;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        if self.phase != Phase::Running && !matches!(input, Input::Start) {
            return match input {
                Input::Timeout | Input::Leave => {
                    self.phase = Phase::Left;
                    Ok(())
                }
                _ => Err(Rejected::NotRunning),
            };
        }
        match input {
            Input::Start => self.on_start(now, out)?,
            Input::Message { from, via: _, message } => self.on_message(now, from, message, out)?,
            Input::Timeout => self.on_timeout(now, out),
            Input::Feed(feed) => self.on_feed(now, feed, out)?,
            Input::Leave => {
                self.detector.stop();
                let (protocol, mut context) = self.split(now, out);
                match protocol {
                    Protocol::LinkState(it) => it.leave(&mut context),
                    #[cfg(feature = "research")]
                    Protocol::Published(_) => {}
                }
                self.phase = Phase::Left;
                return Ok(());
            }
            Input::Command(never) => match never {},
        }
        self.conclude(now);
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, Timer)> {
        if self.phase != Phase::Running {
            return None;
        }
        let mut next = (self.detector.next_beacon(), Timer::Beacon);
        let mut consider = |at: Time, timer: Timer| {
            if at < next.0 {
                next = (at, timer);
            }
        };
        consider(self.detector.next_silence(), Timer::Silence);
        match &self.protocol {
            Protocol::LinkState(it) => it.deadlines(consider),
            #[cfg(feature = "research")]
            Protocol::Published(it) => it.deadlines(consider),
        }
        if self.dwell() < next.0 {
            next = (self.dwell(), Timer::Dwell);
        }
        (next.0 != Time::NEVER).then_some(next)
    }
}

impl Election for Central {
    fn leadership(&self) -> Leadership {
        if self.phase != Phase::Running {
            return Leadership::unknown(Mode::Central, Why::NotRunning);
        }
        #[cfg(feature = "research")]
        if let Protocol::Published(it) = &self.protocol
            && let Some(why) = it.why()
        {
            let unknown = Leadership::unknown(Mode::Central, why);
            return Leadership { leader: Some(self.leader), settled: true, ..unknown };
        }
        let (settled, why) = match self.answer {
            Some(answer) => {
                let told = match &self.protocol {
                    Protocol::LinkState(it) => it.is_quiet(),
                    #[cfg(feature = "research")]
                    Protocol::Published(_) => true,
                };
                let settled = told && answer.unknown == 0 && answer.leader == self.leader;
                let Answer { members, score, .. } = answer;
                (settled, Why::Central { members, criterion: self.config.criterion, score })
            }
            None => return Leadership::unknown(Mode::Central, Why::NotRunning),
        };
        let unknown = Leadership::unknown(Mode::Central, why);
        Leadership { leader: Some(self.leader), settled, ..unknown }
    }
}

/// Bits behind the boot number: a million changes of view, or claims to lead, in one life. More do no harm: the next life
/// then has to be told what to outbid (H4).
const COUNTED: u32 = 20;
