//! Elections on given lists, many of them on one network.
//!
//! Each begins with everybody up and listing whom [`MemberLists`] say, at one instant of a recorded membership or on lists
//! made up for the purpose; then one node is asked to elect. Messages travel as in any simulation. Nothing is set up
//! twice that two elections share: paths, lists and buffers stay.
//!
//! As the reference code does, nodes look at their lists anew every [`REFRESH`]. As published they do so while
//! somebody asks around: a leader that vanishes from a list later is another election's business.

use std::{cell::RefCell, rc::Rc};

use bellwether_proto::{
    Duration, Seed, Time,
    election::churn_tolerant::{ChurnTolerant, Command, Config, Form},
};

use crate::{
    engine::{Builder, Sim, State, TraceHash},
    lists::{
        membership_trace::MembershipTrace,
        snapshot::{ListReplay, MemberLists, feed},
    },
    observe::{EventualWatch, Metric, counted},
    world::Network,
};

/// Elections by one configuration, in one network, on one trace or on lists that do not change.
pub struct ListTrials<'a> {
    sim: Sim<ChurnTolerant, EventualWatch>,
    lists: Rc<RefCell<MemberLists>>,
    config: Config,
    trace: Option<(&'a MembershipTrace, ListReplay<'a>)>,
    everybody: Vec<u32>,
    /// When elections begin: nodes that have just started are not yet entitled to object (RP6 of
    /// `docs/rules/churn-tolerant.md`).
    begin: Time,
}

/// One election on given lists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Trial {
    /// At which look of the trace it begins: what has changed since the look before is the first that nodes are told.
    /// Means nothing without a trace.
    pub look: usize,
    /// Who is asked to elect; a random one if nobody is named.
    pub initiator: Option<u32>,
    /// When it is over at the latest.
    pub limit: Duration,
    /// Decides delays and losses, who is asked, and who initiates.
    pub seed: u64,
}

impl<'a> ListTrials<'a> {
    /// On lists that stay as they are.
    pub fn on(network: Network, lists: MemberLists, config: Config) -> Self {
        let nodes = lists.nodes();
        let lists = Rc::new(RefCell::new(lists));
        let sim = Sim::new(
            network,
            nodes,
            Seed::new(0),
            builder(Rc::clone(&lists), config),
            EventualWatch::new(nodes, config),
        );
        let begin = Time::ZERO + config.timeout() * SETTLED;
        Self { sim, lists, config, trace: None, everybody: Vec::new(), begin }
    }

    /// On the lists of a trace.
    pub fn on_trace(network: Network, trace: &'a MembershipTrace, config: Config) -> Self {
        let trace = Some((trace, ListReplay::new(trace)));
        let lists = MemberLists::empty(trace.as_ref().map_or(0, |(trace, _)| trace.nodes()));
        Self { trace, ..Self::on(network, lists, config) }
    }

    /// Changes the lists, for the elections to come.
    pub fn change(&mut self, change: impl FnOnce(&mut MemberLists)) {
        change(&mut self.lists.borrow_mut());
    }

    /// Holds an election; what was measured, and the digest of all that happened.
    pub fn hold(&mut self, trial: &Trial) -> (Vec<(Metric, Option<f64>)>, TraceHash) {
        if let Some((_, replay)) = &mut self.trace {
            replay.seek(trial.look, &mut self.lists.borrow_mut());
        }
        let seed = Seed::new(trial.seed);
        self.sim.renew(seed, seed.named("network").rng());
        self.sim.observer_mut().renew();
        self.everybody.clear();
        self.everybody.extend(self.lists.borrow().running());
        for node in (0..self.sim.len()).filter(|node| self.everybody.binary_search(node).is_err()) {
            self.sim.change_network(|network| network.set_up(node, false));
        }
        self.sim.start_all(&self.everybody, State::Lost);
        self.sim.advance(self.begin);
        self.tell(trial.look);
        let drawn = seed.named("initiator").rng().below(self.everybody.len() as u64) as usize;
        let initiator = trial.initiator.or_else(|| self.everybody.get(drawn).copied());
        if let Some(initiator) = initiator {
            self.sim.command(initiator, Command::Elect);
        }
        self.run(trial);
        let values = self.sim.observer().values(self.lists.borrow().unhealthiness());
        (counted(&self.sim, values), self.sim.trace_hash())
    }

    fn run(&mut self, trial: &Trial) {
        let end = self.begin + trial.limit;
        if let Some((trace, _)) = self.trace {
            for look in trial.look + 1..trace.looks() {
                let seen = reread(trace.interval() * (look - trial.look) as u64);
                if seen >= trial.limit || self.sim.is_quiet() {
                    break;
                }
                self.sim.advance(self.begin + seen);
                let electing = self.sim.observer().is_asking();
                if !electing && self.config.form() == Form::AsPublished {
                    break;
                }
                self.tell(look);
            }
        }
        self.sim.advance(end);
    }

    /// Tells everybody what changed on its list at this look.
    fn tell(&mut self, look: usize) {
        let Some((trace, _)) = self.trace.as_ref().filter(|(trace, _)| look < trace.looks()) else {
            return;
        };
        tell(&mut self.sim, trace.look(look));
    }
}

/// Tells everybody what changed on its list; who is said to run, or not to, starts or crashes.
pub(crate) fn tell<O: crate::engine::Observer<ChurnTolerant>>(
    sim: &mut Sim<ChurnTolerant, O>,
    changes: &[(u32, u32, u32)],
) {
    // Who starts has a list from then on, and who is gone needs none.
    for &(node, _, value) in changes.iter().filter(|(node, listed, _)| node == listed) {
        match value {
            0 => sim.crash(node),
            _ => sim.start(node, State::Lost),
        }
    }
    for &change in changes {
        if let Some(feed) = feed(change) {
            sim.feed(change.0, feed);
        }
    }
}

/// Machines that begin with what the lists say of them now.
pub(crate) fn builder(lists: Rc<RefCell<MemberLists>>, config: Config) -> Builder<ChurnTolerant> {
    Box::new(move |me, seed, durable| {
        let lists = lists.borrow();
        let list = lists.list(me.id.get() as u32);
        ChurnTolerant::new(me, config, seed, durable).knowing(list, lists.group())
    })
}

/// When a change is seen that happened so long after somebody looked: at the next look, rounded up.
pub(crate) fn reread(after: Duration) -> Duration {
    REFRESH * after.as_micros().div_ceil(REFRESH.as_micros())
}

/// How often a node looks at its list.
pub const REFRESH: Duration = Duration::from_millis(200);

/// How many timeouts nodes have been up when an election begins. Arbitrary, but twice as long as they count as new.
const SETTLED: u64 = 6;
