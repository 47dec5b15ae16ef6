//! The node as shipped, for the explorer: what is searched, and what every step is held to.
//!
//! A [`Case`] is a group of nodes made by the table of presets that agents are made by ([`Settings::plan`]), from a cold
//! start: they meet by gossip, found a ring or bind voters, and elect. Where the case opens its window, everything that
//! may go wrong does, in every combination up to a number of deviations.
//!
//! [`Settings::plan`]: bellwether_proto::node::Settings::plan

use std::collections::BTreeMap;

use bellwether_proto::{
    Boot, Duration, Effect, Election as _, ElectionId, Epoch, Machine as _, Mode, NodeId, Peer,
    Seed, Time, Why,
    election::{
        bandit,
        leased::{self, Flavour, Stamp},
    },
    membership::ring,
    node::{
        Durable, ElectionSettings, EventualSettings, Fact, Kept, LearnedSettings, LeasedSettings,
        Message, ModeSettings, Node, Plan, Settings as NodeSettings, TimingProfile, founding,
    },
};

use super::{End, Explored, Judge, Kind, Model, Scripted, Settings, Step, explore};

/// Nodes, what befalls them by plan, and where the search goes from there.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is called.
    pub name: &'static str,
    /// How the election is decided; members or voters are all nodes.
    pub mode: ModeSettings,
    /// How many nodes.
    pub nodes: u64,
    /// By how many millionths clocks are fast or slow, from the first node on.
    pub drift: Vec<i32>,
    /// What happens in every history.
    pub script: Vec<(Time, NodeId, Planned)>,
    /// What may happen besides.
    pub search: Settings,
    /// Whether, at the end of every history in which most nodes are up, all that are agree on one of them.
    pub live: bool,
}

/// What befalls a node by plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Planned {
    /// The node crashes.
    Crash,
    /// It crashes, and starts again from its disk after this long.
    Restart(Duration),
    /// It handles nothing for this long.
    Pause(Duration),
}

impl Case {
    /// Searches it, no further than `most` states.
    pub fn explore(&self, most: u64) -> Explored<Tally> {
        self.explore_changed(most, |_| ())
    }

    /// The same with so many deviations in a history at most.
    pub fn with_deviations(mut self, deviations: u32) -> Self {
        self.search.deviations = deviations;
        self
    }

    /// The same with nodes whose plan is not the one that is shipped.
    pub fn explore_changed(
        &self,
        most: u64,
        change: impl Fn(&mut Plan) + Send + Sync,
    ) -> Explored<Tally> {
        let search = Settings { most, ..self.search.clone() };
        explore(&self.model(change), &search, self.judge())
    }

    /// Its nodes, with a plan that may have been changed.
    pub fn model<'a>(&self, change: impl Fn(&mut Plan) + Send + Sync + 'a) -> Model<'a, Node> {
        let names: Vec<String> = (1..=self.nodes).map(name).collect();
        let mut mode = self.mode.clone();
        match &mut mode {
            ModeSettings::Leased(leased) => leased.members = names,
            ModeSettings::Learned(learned) => learned.voters = names,
            _ => {}
        }
        let seeds: Vec<NodeId> = (1..=self.nodes).map(NodeId::new).collect();
        let build = move |me: Peer, durable: Option<Durable>| {
            let elections = vec![ElectionSettings::of(ELECTION, mode.clone())];
            let settings =
                NodeSettings::new(&name(me.id.get()), TimingProfile::Lan.timing(), elections);
            let mut plan = settings.plan().expect("the defaults make a plan");
            change(&mut plan);
            let seed = Seed::new(1).indexed(me.id.get()).indexed(me.boot.get());
            Node::new(me, plan, seed, durable).with_seeds(seeds.clone())
        };
        let peers = (1..=self.nodes).map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
        let nodes: Vec<(Peer, Node)> = peers.map(|peer| (peer, build(peer, None))).collect();
        let model = Model::new(nodes).with_restarts(build).with_not_kept(Fact::NotKept);
        let drifting = (1..).zip(&self.drift);
        let model =
            drifting.fold(model, |model, (id, &ppm)| model.with_drift(NodeId::new(id), ppm));
        self.script.iter().fold(model, |model, &(at, node, planned)| {
            let what = match planned {
                Planned::Crash => Scripted::Crash,
                Planned::Restart(after) => Scripted::Restart(after),
                Planned::Pause(length) => Scripted::Pause(length),
            };
            model.with_script(at, node, what)
        })
    }

    /// What its histories are held to.
    pub fn judge(&self) -> Shipped {
        Shipped {
            group: ElectionId::named(ELECTION),
            mode: self.mode.mode(),
            nodes: self.nodes,
            step_down: TimingProfile::Lan.timing().step_down,
            window: self.search.window,
            live: self.live,
            acts: BTreeMap::new(),
            last: None,
            answered: BTreeMap::new(),
            terms: BTreeMap::new(),
            votes: BTreeMap::new(),
            disks: BTreeMap::new(),
            rings: BTreeMap::new(),
            late: BTreeMap::new(),
            backing: BTreeMap::new(),
            leads: BTreeMap::new(),
            seen: Seen::default(),
        }
    }
}

/// What is seen in one history.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    led: bool,
    /// How often one leader followed another, and the shortest time between two.
    followed: u64,
    gap: Option<Duration>,
    founded: bool,
    founded_in_window: bool,
    two_rings: bool,
    refused: bool,
    restarted: bool,
    lacking: bool,
}

/// What was seen in all histories.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Histories in which somebody led.
    pub led: u64,
    /// Histories in which another followed, a later life of the same included.
    pub followed: u64,
    /// The shortest time from the last instant at which one may have acted to the first at which another may.
    pub smallest_gap: Option<Duration>,
    /// Histories in which a ring was founded.
    pub founded: u64,
    /// Histories in which a ring was founded while things went wrong.
    pub founded_in_window: u64,
    /// Histories in which two were members of rings of which each other was not.
    pub two_rings: u64,
    /// Histories in which a disk refused something.
    pub refused: u64,
    /// Histories in which somebody came back.
    pub restarted: u64,
    /// Histories at the end of which nobody led.
    pub lacking: u64,
}

/// The promises of a shipped node.
///
/// Of a leased election at most one life may act at any instant: from when its answer names it until `valid_until` by its
/// own clock, and for as long as what it has begun may go on after that. What it has answered cannot be taken back, so it
/// does not matter whether it is paused, has crashed or has stopped meanwhile. The epochs of successive leaders grow, and
/// nobody leaves a leader that it hears.
///
/// Of a learned election nobody votes twice in a term, and a term has one leader.
///
/// Of all of them, what a node answers never goes back to an earlier epoch, and whoever says or answers something that
/// its later lives must know has it on its disk.
#[derive(Clone, Debug)]
pub struct Shipped {
    group: ElectionId,
    mode: Mode,
    nodes: u64,
    step_down: Duration,
    window: (Time, Time),
    live: bool,
    /// Until when each life may act, and until when what it begins may go on.
    acts: BTreeMap<Peer, (Time, Time)>,
    last: Option<(Epoch, Peer)>,
    answered: BTreeMap<NodeId, (Epoch, NodeId)>,
    terms: BTreeMap<u64, NodeId>,
    votes: BTreeMap<(NodeId, u64), NodeId>,
    disks: BTreeMap<NodeId, Held>,
    /// Who each member of a ring takes for one, as bits.
    rings: BTreeMap<NodeId, u64>,
    /// After when each node has overslept its deadline for longer than it may and still lead.
    late: BTreeMap<NodeId, Time>,
    /// Whom each node backs, and when it last said so to it.
    backing: BTreeMap<NodeId, (Epoch, Time)>,
    /// Who names itself, and under which epoch.
    leads: BTreeMap<NodeId, Epoch>,
    seen: Seen,
}

/// What is on a disk, as far as promises rest on it.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    epoch: Option<Epoch>,
    term: u64,
    voted_for: Option<NodeId>,
}

impl Shipped {
    fn hold(&mut self, node: NodeId, durable: &Durable) {
        let held = self.disks.entry(node).or_default();
        match durable.elections.get(&self.group) {
            Some(Kept::Leased(epoch)) => held.epoch = Some(*epoch),
            Some(Kept::Eventual(kept)) => held.epoch = kept.vouched.max(kept.known),
            Some(Kept::Learned(ballot)) => {
                if let Some(durable) = &ballot.durable {
                    (held.term, held.voted_for) = (durable.term, durable.voted_for);
                }
            }
            Some(Kept::Announced(_)) | None => {}
        }
    }

    /// Whether what is said may be said, as things are on the disk.
    fn says(&mut self, step: &Step<'_, Node>, to: NodeId, message: &Message) -> Result<(), String> {
        let node = step.peer.id;
        let held = self.disks.get(&node).copied().unwrap_or_default();
        match message {
            Message::Leased(_, founding::Message { body: founding::Body::Machine(said), .. }) => {
                let stamp = said.stamp.as_ref();
                let known = stamp.and_then(|stamp| stamp.register.map(|register| register.epoch));
                let backs = stamp.and_then(|stamp| stamp.backs);
                let last = known.max(backs);
                if last > held.epoch {
                    return Err(format!("{node} says {last:?}, on its disk is {:?}", held.epoch));
                }
                self.backs(step, to, said)?;
            }
            Message::Learned(_, said) => {
                let bandit::Message::Vote { term } = said.body else { return Ok(()) };
                let first = *self.votes.entry((node, term)).or_insert(to);
                if first != to {
                    return Err(format!("{node} votes for {first} and {to} in term {term}"));
                }
                if held.term < term || held.term == term && held.voted_for != Some(to) {
                    return Err(format!("{node} votes for {to} in term {term}, kept is {held:?}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Who backs a leader that may act, and acknowledges it, leaves it for another only if it suspects it or has been told
    /// that it has stopped (R11.9 of `docs/rules/arbitrated.md`): otherwise whoever cannot hear a leader would depose it,
    /// though all others can.
    fn backs(
        &mut self,
        step: &Step<'_, Node>,
        to: NodeId,
        said: &leased::Message,
    ) -> Result<(), String> {
        let (now, node) = (step.now, step.peer.id);
        let Some(Stamp { backs: Some(epoch), register, .. }) = &said.stamp else { return Ok(()) };
        let before = self.backing.get(&node).copied().filter(|(other, _)| other != epoch);
        let machine = step.machine.leased(self.group).and_then(founding::Founding::machine);
        if let (Some((other, heard)), Some(machine)) = (before, machine) {
            let (leader, ring) = (other.minter(), machine.ring());
            let acts = self.acts.get(&leader).is_some_and(|&(until, _)| until > now);
            let fresh = now.since(heard) < ring.config().session().div(20) * 39;
            let listed = ring.members().any(|life| life.peer == leader);
            let handed = register.is_some_and(|register| register.heir.is_some());
            let others = leader.id != node && leader.id != epoch.minter().id;
            let trusts = listed && ring.suspected(leader.id).is_none();
            if acts && fresh && trusts && others && !handed {
                return Err(format!("{node} leaves {other}, which it hears, for {epoch}"));
            }
        }
        let acknowledges = match &said.body {
            leased::Body::Grant { .. } => true,
            leased::Body::Ring(message) => matches!(message.body, ring::Body::Ack(_)),
            _ => false,
        };
        if acknowledges && epoch.minter().id == to {
            self.backing.insert(node, (*epoch, now));
        } else if before.is_some() {
            self.backing.remove(&node);
        }
        Ok(())
    }

    fn answers(&mut self, step: &Step<'_, Node>) -> Result<(), String> {
        let (now, me) = (step.now, step.peer);
        let answer = step.machine.leadership_of(self.group, step.local());
        let (Some(leader), Some(epoch)) = (answer.leader, answer.epoch) else { return Ok(()) };
        if let Some((before, old)) = self.answered.insert(me.id, (epoch, leader))
            && (epoch < before || epoch == before && leader != old)
        {
            return Err(format!("{} answers {epoch} after {before}", me.id));
        }
        if self.mode == Mode::Learned {
            let first = *self.terms.entry(epoch.counter()).or_insert(leader);
            if first != leader {
                return Err(format!("{first} and {leader} lead in term {}", epoch.counter()));
            }
        }
        if leader != me.id {
            return Ok(());
        }
        // What a lease gives is a matter of time; everybody else may have been replaced meanwhile.
        let overslept = self.late.get(&me.id).is_some_and(|&late| now > late);
        // Waiting votes may make it leader once more, honestly, of the same term.
        let anew = matches!(answer.why, Why::Unchallenged { since } if since >= step.local());
        let goes_on = self.leads.get(&me.id) == Some(&epoch) && !anew;
        if overslept && goes_on && self.mode != Mode::Leased {
            return Err(format!("{me} leads at {now}, having been stopped"));
        }
        let held = self.disks.get(&me.id).copied().unwrap_or_default();
        let kept = match self.mode {
            Mode::Leased | Mode::Eventual => held.epoch >= Some(epoch),
            Mode::Learned => held.term >= epoch.counter(),
            Mode::Announced | Mode::Central => true,
        };
        if !kept {
            return Err(format!("{} leads under {epoch}, on its disk is {held:?}", me.id));
        }
        let before = self.last.filter(|&(_, other)| other != me);
        if self.mode == Mode::Leased {
            let Some(until) = answer.valid_until.filter(|&until| step.wall(until) > now) else {
                return Ok(());
            };
            for (other, &(_, over)) in self.acts.iter().filter(|&(&other, _)| other != me) {
                if over > now {
                    return Err(format!("{me} may act at {now}, {other} until {over}"));
                }
            }
            if let Some((last, other)) = self.last
                && (epoch < last || epoch == last && other != me)
            {
                return Err(format!("{me} leads under {epoch}, {other} led under {last}"));
            }
            if let Some((_, other)) = before
                && let Some((over, _)) = self.acts.get(&other)
            {
                let gap = now.since(*over);
                self.seen.gap = Some(self.seen.gap.map_or(gap, |least| least.min(gap)));
            }
            let (acts, ends) = self.acts.entry(me).or_default();
            *acts = step.wall(until).max(*acts);
            *ends = step.wall(until + self.step_down).max(*ends);
        }
        self.seen.led = true;
        self.seen.followed += u64::from(before.is_some());
        self.last = Some((epoch, me));
        Ok(())
    }

    /// Whether rings come to be, and how many there are.
    fn look_at_ring(&mut self, step: &Step<'_, Node>) {
        let Some(founding) = step.machine.leased(self.group) else { return };
        let ring = founding.machine().map(|machine| machine.ring()).filter(|ring| ring.is_active());
        let me = step.peer.id;
        let Some(ring) = ring else {
            self.rings.remove(&me);
            return;
        };
        let members = ring.members().fold(0, |bits, life| bits | 1_u64 << (life.id().get() % 64));
        if self.rings.insert(me, members).is_none() {
            self.seen.founded = true;
            self.seen.founded_in_window |= step.now >= self.window.0 && step.now < self.window.1;
        }
        let apart = |other: NodeId, theirs: u64| {
            members >> (other.get() % 64) & 1 == 0 && theirs >> (me.get() % 64) & 1 == 0
        };
        self.seen.two_rings |= self.rings.iter().any(|(&other, &bits)| apart(other, bits));
    }
}

impl Judge<Node> for Shipped {
    type Tally = Tally;

    fn step(&mut self, step: &Step<'_, Node>) -> Result<(), String> {
        let node = step.peer.id;
        for effect in step.effects {
            match effect {
                Effect::Persist(durable) => self.hold(node, durable),
                Effect::Send { to, message } => self.says(step, *to, message)?,
                _ => {}
            }
        }
        self.look_at_ring(step);
        self.seen.refused |= step.machine.disk_refuses_since().is_some();
        self.answers(step)?;
        let answer = step.machine.leadership_of(self.group, step.local());
        match answer.epoch.filter(|_| answer.leader == Some(node)) {
            Some(epoch) => self.leads.insert(node, epoch),
            None => self.leads.remove(&node),
        };
        let guard = TimingProfile::Lan.timing().guard;
        match step.machine.deadline() {
            // What has arrived comes before the deadline, all at one instant.
            Some((due, _)) => self.late.insert(node, step.wall(due + guard).max(step.now)),
            None => self.late.remove(&node),
        };
        Ok(())
    }

    fn kept(&mut self, peer: Peer, durable: &Durable) {
        self.hold(peer.id, durable);
    }

    fn crashed(&mut self, _now: Time, peer: Peer) {
        self.rings.remove(&peer.id);
        self.late.remove(&peer.id);
        self.leads.remove(&peer.id);
        self.backing.remove(&peer.id);
    }

    fn restarted(&mut self, _now: Time, peer: Peer, lost: bool) {
        self.seen.restarted = true;
        if lost {
            self.answered.remove(&peer.id);
            self.disks.remove(&peer.id);
        }
    }

    fn ended(&mut self, end: &End<'_, Node>) -> Result<(), String> {
        if end.seen {
            return Ok(());
        }
        let up: Vec<(NodeId, &Node)> = end
            .nodes
            .iter()
            .filter_map(|(peer, machine)| machine.map(|machine| (peer.id, machine)))
            .collect();
        let answers: Vec<Option<NodeId>> =
            up.iter().map(|(_, machine)| machine.leadership().leader).collect();
        let leader = answers.first().copied().flatten();
        let agreed = leader.is_some_and(|leader| up.iter().any(|(id, _)| *id == leader))
            && answers.iter().all(|answer| *answer == leader);
        self.seen.lacking = !agreed;
        if self.live && !agreed && up.len() as u64 * 2 > self.nodes {
            let said: Vec<String> = up
                .iter()
                .zip(&answers)
                .map(|((id, machine), answer)| {
                    let why = machine.obstacle_of(self.group, end.now);
                    format!("{id}: {answer:?} {why:?}")
                })
                .collect();
            return Err(format!("nobody leads at {}: {}", end.now, said.join(", ")));
        }
        Ok(())
    }

    fn tally(&self, tally: &mut Tally) {
        let Seen { led, followed, gap, founded, founded_in_window, .. } = self.seen;
        tally.led += u64::from(led);
        tally.followed += u64::from(followed > 0);
        tally.smallest_gap = tally.smallest_gap.into_iter().chain(gap).min();
        tally.founded += u64::from(founded);
        tally.founded_in_window += u64::from(founded_in_window);
        tally.two_rings += u64::from(self.seen.two_rings);
        tally.refused += u64::from(self.seen.refused);
        tally.restarted += u64::from(self.seen.restarted);
        tally.lacking += u64::from(self.seen.lacking);
    }

    fn merge(tally: &mut Tally, other: Tally) {
        tally.led += other.led;
        tally.followed += other.followed;
        tally.smallest_gap = tally.smallest_gap.into_iter().chain(other.smallest_gap).min();
        tally.founded += other.founded;
        tally.founded_in_window += other.founded_in_window;
        tally.two_rings += other.two_rings;
        tally.refused += other.refused;
        tally.restarted += other.restarted;
        tally.lacking += other.lacking;
    }
}

fn name(id: u64) -> String {
    format!("node-{id}")
}

fn at(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

/// A leased election as shipped.
fn by_lease(flavour: Flavour) -> ModeSettings {
    ModeSettings::Leased(LeasedSettings { flavour, ..LeasedSettings::of([]) })
}

/// All that is searched, leased elections first. Without trouble the second node leads in each of them.
pub fn cases() -> Vec<Case> {
    let quorum = || by_lease(Flavour::Quorum);
    let learned = || ModeSettings::Learned(LearnedSettings::of([]));
    let eventual = || ModeSettings::Eventual(EventualSettings::default());
    let seconds = Duration::from_secs;
    let mut all = vec![
        // They meet by gossip, and are quiet.
        Case::of("leased-meeting", quorum(), 3, (0, 1_600), 9_000),
        // They are ready, found a ring, one claims and waits.
        Case::of("leased-founding", quorum(), 3, (1_200, 3_600), 9_000),
        // Two acknowledgements that do not come, and those that backed a leader follow another: nothing is as tight.
        Case::of("leased-suspicion", quorum(), 3, (6_000, 7_600), 11_000)
            .only([(Kind::Loss, 3), (Kind::Delay, 3)]),
        Case::two_rings(),
        Case::left_behind(),
        Case::all_look(),
        // The leader hears nobody any more, and nobody it.
        Case::of("leased-isolated", quorum(), 3, (5_400, 8_600), 12_000).apart(
            6_000,
            &[2],
            &[1, 3],
        ),
        // Two and two hear each other through the fifth only, which both leaders need.
        Case::of("leased-bridge", quorum(), 5, (6_600, 7_600), 13_000)
            .only([(Kind::Loss, 2), (Kind::Delay, 2)])
            .apart(6_000, &[1, 2], &[3, 4]),
        Case::of("leased-leading", quorum(), 3, (6_000, 7_100), 13_000),
        Case::of("leased-crash", quorum(), 3, (5_600, 8_600), 13_000).with(
            6_000,
            2,
            Planned::Crash,
        ),
        Case::of("leased-restart", quorum(), 3, (5_600, 8_600), 13_000).with(
            6_000,
            2,
            Planned::Restart(Duration::from_millis(200)),
        ),
        Case::of("leased-pause", quorum(), 3, (5_600, 8_600), 13_000).with(
            6_000,
            2,
            Planned::Pause(Duration::from_millis(2_100)),
        ),
        Case::of("leased-long-pause", quorum(), 3, (6_400, 11_000), 15_000).with(
            6_000,
            2,
            Planned::Pause(seconds(4)),
        ),
        // The whole group, while its leader may still act.
        (1..=3).fold(
            Case::of("leased-restart-all", quorum(), 3, (6_000, 10_500), 15_000),
            |case, id| {
                let after = Duration::from_millis(50 * id);
                case.with(5_990 + 7 * id, id, Planned::Restart(after))
            },
        ),
        Case::of("leased-of-2", quorum(), 2, (1_200, 3_600), 9_000),
        Case::of("leased-of-4", quorum(), 4, (1_200, 3_600), 9_000),
        Case::of("leased-of-4-crash", quorum(), 4, (5_600, 8_600), 13_000).with(
            6_000,
            2,
            Planned::Crash,
        ),
        Case::of("leased-of-5", quorum(), 5, (1_200, 3_600), 9_000),
        Case::of("leased-of-5-crash", quorum(), 5, (5_600, 8_600), 13_000).with(
            6_000,
            2,
            Planned::Crash,
        ),
    ];
    for (name, flavour) in
        [("leased-conservative", Flavour::Conservative), ("leased-fast", Flavour::Fast)]
    {
        all.push(Case::of(name, by_lease(flavour), 3, (1_200, 3_600), 9_000));
    }
    for (name, flavour) in
        [("leased-conservative-crash", Flavour::Conservative), ("leased-fast-crash", Flavour::Fast)]
    {
        let case = Case::of(name, by_lease(flavour), 3, (5_600, 8_600), 13_000);
        all.push(case.with(6_000, 2, Planned::Crash));
    }
    all.extend([
        Case::of("learned-meeting", learned(), 3, (0, 1_900), 8_000),
        Case::of("learned-founding", learned(), 3, (1_800, 4_100), 10_000),
        Case::of("learned-crash", learned(), 3, (4_900, 9_500), 14_000).with(
            5_000,
            2,
            Planned::Crash,
        ),
        Case::of("learned-restart", learned(), 3, (4_900, 9_500), 14_000).with(
            5_000,
            2,
            Planned::Restart(Duration::from_millis(200)),
        ),
        Case::of("learned-pause", learned(), 3, (4_900, 10_000), 15_000).with(
            5_000,
            2,
            Planned::Pause(seconds(4)),
        ),
        (1..=3).fold(
            Case::of("learned-restart-all", learned(), 3, (4_900, 9_500), 14_000),
            |case, id| {
                let after = Duration::from_millis(50 * id);
                case.with(4_990 + 7 * id, id, Planned::Restart(after))
            },
        ),
        Case::of("learned-isolated", learned(), 3, (4_900, 9_500), 14_000).apart(
            5_000,
            &[2],
            &[1, 3],
        ),
        Case::of("learned-of-5", learned(), 5, (1_800, 4_100), 10_000),
        Case::of("eventual-meeting", eventual(), 3, (0, 3_000), 9_000),
        Case::of("eventual-crash", eventual(), 3, (5_600, 9_000), 14_000).with(
            6_000,
            3,
            Planned::Crash,
        ),
        Case::of("eventual-pause", eventual(), 3, (5_600, 9_000), 14_000).with(
            6_000,
            3,
            Planned::Pause(seconds(3)),
        ),
        // A leader is watched: it is replaced before anybody's turn to probe it has come and suspicion is over.
        Case {
            live: true,
            ..Case::of("eventual-watch", eventual(), 3, (6_000, 8_000), 8_400)
                .only([(Kind::Loss, 1)])
                .with(6_000, 3, Planned::Crash)
                .with_deviations(1)
        },
    ]);
    all
}

impl Case {
    /// Clocks as bad as they may be, and everything goes wrong from here to there, twice in one history.
    fn of(
        name: &'static str,
        mode: ModeSettings,
        nodes: u64,
        (from, to): (u64, u64),
        until: u64,
    ) -> Self {
        let search = Settings {
            until: at(until),
            down: vec![Duration::from_millis(200), Duration::from_millis(1_200)],
            pauses: vec![Duration::from_millis(1_300), Duration::from_millis(3_000)],
            ..Settings::new(at(from), at(to))
        };
        let kinds =
            [Kind::Duplicate, Kind::Cut, Kind::Crash, Kind::Restart, Kind::Pause, Kind::Refusal];
        let search = kinds.into_iter().fold(search, |search, kind| search.allow(kind, 1, []));
        let drift = (1..=nodes).map(|id| if id == 2 { -DRIFT } else { DRIFT }).collect();
        Self { name, mode, nodes, drift, script: Vec::new(), search, live: false }
    }

    /// Five, two of which come late. Of three that have founded a ring one then hears nobody but the late ones, and comes
    /// back: they are a majority, and so were the others.
    fn two_rings() -> Self {
        let mode = by_lease(Flavour::Quorum);
        let case = Self::of("leased-two-rings", mode, 5, (19_000, 20_500), 26_000);
        case.only([(Kind::Loss, 1), (Kind::Delay, 1)])
            .with(1, 4, Planned::Restart(Duration::from_secs(11)))
            .with(1, 5, Planned::Restart(Duration::from_secs(11)))
            .with(11_000, 3, Planned::Restart(Duration::from_millis(100)))
            .apart(0, &[1, 2], &[4, 5])
            .apart(11_000, &[1, 2], &[3])
            .with_deviations(1)
    }

    /// Three of five start again, and the two that are left fall out of a ring that nobody else is in any more: all five
    /// found another.
    fn left_behind() -> Self {
        let mode = by_lease(Flavour::Quorum);
        let case = Self::of("leased-left-behind", mode, 5, (7_000, 11_000), 12_200);
        let case = (1..=3).fold(case, |case, id| {
            case.with(6_000 + 7 * id, id, Planned::Restart(Duration::from_millis(100)))
        });
        Self { live: true, ..case.only([(Kind::Loss, 1), (Kind::Delay, 1)]).with_deviations(1) }
    }

    /// All are stopped for so long that they fall out of their ring, and look for it at each other.
    fn all_look() -> Self {
        let case =
            Self::of("leased-all-look", by_lease(Flavour::Quorum), 3, (7_400, 10_000), 13_000);
        let case = (1..=3).fold(case, |case, id| {
            case.with(6_000 + 7 * id, id, Planned::Pause(Duration::from_millis(1_400 + 90 * id)))
        });
        Self { live: true, ..case.only([(Kind::Loss, 1), (Kind::Delay, 1)]).with_deviations(1) }
    }

    /// From then on nothing passes between these and those.
    fn apart(mut self, millis: u64, these: &[u64], those: &[u64]) -> Self {
        for &one in these {
            let pair = |&other: &u64| (at(millis), NodeId::new(one), NodeId::new(other));
            self.search.cut.extend(those.iter().map(pair));
        }
        self
    }

    /// Nothing goes wrong but this, and no more often.
    fn only(mut self, kinds: impl IntoIterator<Item = (Kind, u32)>) -> Self {
        self.search.allowed.clear();
        for (kind, most) in kinds {
            self.search = self.search.allow(kind, most, []);
        }
        self
    }

    fn with(mut self, millis: u64, node: u64, planned: Planned) -> Self {
        self.script.push((at(millis), NodeId::new(node), planned));
        self
    }
}

/// As much as leased elections allow for unless something else is said, in millionths.
const DRIFT: i32 = 1_000;
/// How the election is called.
const ELECTION: &str = "default";
