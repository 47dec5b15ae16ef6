//! Whole groups on a small network: fixed delay, perhaps lossy, everybody in range of everybody.

use super::*;

struct Network {
    nodes: Vec<Option<Medley>>,
    /// Messages under way, by arrival and order of sending.
    wire: BTreeMap<(Time, u64), (Peer, NodeId, Message)>,
    sent: u64,
    now: Time,
    loss: f64,
    /// Who hears whom.
    links: fn(u64, u64) -> bool,
    rng: Rng,
    /// Who told its application what, when.
    events: Vec<(Time, u64, MembershipEvent)>,
    out: OutboxOf<Medley>,
}

impl Network {
    fn new(config: Config, count: u64, loss: f64, seed: u64) -> Self {
        let seed = Seed::new(seed);
        let node = |me: u64| {
            let contact =
                |other: u64| Contact { distance: (other.abs_diff(me)) as f32, ..member(other) };
            let contacts = (0..count).map(contact).collect();
            Some(Medley::new(peer(me, 1), config, seed.named("node").indexed(me), None, contacts))
        };
        let mut network = Self {
            nodes: (0..count).map(node).collect(),
            wire: BTreeMap::new(),
            sent: 0,
            now: Time::ZERO,
            loss,
            links: |_, _| true,
            rng: seed.named("network").rng(),
            events: vec![],
            out: Outbox::new(),
        };
        (0..count as usize).for_each(|node| network.input(node, Input::Start));
        network
    }

    fn input(&mut self, at: usize, input: InputOf<'_, Medley>) {
        let Some(node) = self.nodes[at].as_mut() else { return };
        let _counted_by_hosts = node.handle(self.now, input, &mut self.out);
        let me = node.me;
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Send { to, message } => self.transmit(me, to, message),
                Effect::Broadcast(message) => {
                    for to in (0..self.nodes.len() as u64).filter(|&to| to != me.id.get()) {
                        self.transmit(me, id(to), message.clone());
                    }
                }
                Effect::Emit(event) => self.events.push((self.now, me.id.get(), event)),
                Effect::Persist(_) => {}
                Effect::Multicast(_) => panic!("membership has no group to speak to"),
            }
        }
    }

    fn transmit(&mut self, from: Peer, to: NodeId, message: Message) {
        self.sent += 1;
        if !self.rng.chance(self.loss) && (self.links)(from.id.get(), to.get()) {
            let arrival = self.now + Duration::from_millis(20);
            self.wire.insert((arrival, self.sent), (from, to, message));
        }
    }

    fn run_until(&mut self, end: Time) {
        loop {
            let arrival = self.wire.first_key_value().map(|(&(at, _), _)| at);
            let running = self.nodes.iter().enumerate();
            let due =
                running.filter_map(|(at, node)| Some((node.as_ref()?.deadline()?.0, at))).min();
            let next = arrival.into_iter().chain(due.map(|(at, _)| at)).min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = next;
            if arrival == Some(next) {
                let (_, (from, to, message)) = self.wire.pop_first().unwrap();
                if (to.get() as usize) < self.nodes.len() {
                    let input = Input::Message { from, via: from.id, message: &message };
                    self.input(to.get() as usize, input);
                }
            } else if let Some((_, at)) = due {
                self.input(at, Input::Timeout);
                let after = self.nodes[at].as_ref().and_then(Machine::deadline);
                assert!(after.is_none_or(|(at, _)| at > next), "{after:?} at {next}");
            }
        }
        self.now = end;
    }

    fn live(&self) -> impl Iterator<Item = &Medley> {
        self.nodes.iter().flatten()
    }

    fn told(&self, wanted: impl Fn(&MembershipEvent) -> bool) -> usize {
        self.events.iter().filter(|(_, _, event)| wanted(event)).count()
    }
}

const STRATEGIES: [Strategy; 5] =
    [Strategy::Swim, Strategy::Medley, Strategy::Active, Strategy::Passive, Strategy::Both];

fn variants() -> Vec<Config> {
    let mut all = vec![];
    for strategy in STRATEGIES {
        for form in [Form::AsPublished, Form::Hardened] {
            for selection in [Selection::Independent, Selection::Bag] {
                for phase in [Phase::Sync, Phase::Random] {
                    all.push(
                        Config::new(strategy, form).with_selection(selection).with_phase(phase),
                    );
                }
            }
        }
    }
    let whole = Piggyback::WholeTable { lifetime: units(150) };
    let reference = config(Strategy::Medley, Form::AsPublished).with_carriers(Carriers::PullOnly);
    all.push(reference.with_piggyback(whole).unwrap());
    all
}

/// P2 and P4.
#[test]
fn a_crash_is_noticed_by_everybody_and_not_before_its_time() {
    for (nth, config) in variants().into_iter().enumerate() {
        for count in [3, 8] {
            let mut network = Network::new(config, count, 0.0, nth as u64);
            network.run_until(at(205));
            network.nodes[1] = None;
            network.run_until(at(3_000));
            let is_failure = |event: &MembershipEvent| matches!(event, MembershipEvent::Failed { id, .. } if *id == super::id(1));
            assert_eq!(network.told(is_failure), count as usize - 1, "{config:?}");
            let first = network.events.iter().find(|(_, _, event)| is_failure(event)).unwrap();
            // A node that crashed in the middle of a period may have been pinged just before.
            assert!(first.0 >= at(205 - 20 + 180), "{:?} with {config:?}", first.0);
            for node in network.live() {
                assert_eq!(node.len() as u64, count - 2, "{config:?}");
                assert_ne!(node.state_of(id(1)), Some(State::Alive));
            }
        }
    }
}

/// bw-medley-quiet and P6.
#[test]
fn nobody_is_suspected_while_nothing_is_lost() {
    for (nth, config) in variants().into_iter().enumerate() {
        let count = 12;
        let mut network = Network::new(config, count, 0.0, nth as u64);
        network.run_until(at(1_000));
        assert_eq!(network.events, [], "{config:?}");
        let broadcasts = if config.active.is_some() { 12 * 12 * (count - 1) } else { 0 };
        let syncs = if config.sync.is_some() { 2 * 40 } else { 0 };
        assert!(network.sent <= 2 * count * 51 + broadcasts + syncs, "{} {config:?}", network.sent);
    }
}

#[test]
fn with_loss_the_accused_clear_themselves_and_the_dead_are_found() {
    for (strategy, lifeguard) in
        [(Strategy::Swim, false), (Strategy::Both, false), (Strategy::Both, true)]
    {
        let config = Config::new(strategy, Form::Hardened)
            .with_local_health(lifeguard)
            .with_patient_suspicion(lifeguard);
        let mut network = Network::new(config, 20, 0.15, 5);
        network.run_until(at(1_000));
        network.nodes[4] = None;
        network.nodes[5] = None;
        network.run_until(at(4_000));
        let refuted = network.told(|event| matches!(event, MembershipEvent::Refuted(_)));
        let suspected = network.told(|event| matches!(event, MembershipEvent::Suspected { .. }));
        assert!(refuted > 0 && suspected > refuted, "{suspected} accused, {refuted} cleared");
        for node in network.live() {
            for dead in [4, 5] {
                let state = node.state_of(id(dead));
                assert!(!state.is_some_and(State::is_listed), "{dead} is {state:?}");
            }
            assert!(node.len() >= 16, "{} members at {}", node.len(), node.me);
        }
    }
}

/// M-13: everybody restarts at once, in its next life and knowing only one contact.
#[test]
fn the_restarted_join_again_whatever_was_said_of_their_past_lives() {
    let config = Config::new(Strategy::Both, Form::Hardened);
    let mut network = Network::new(config, 10, 0.05, 3);
    network.run_until(at(300));
    (1..10).for_each(|node| network.nodes[node] = None);
    network.run_until(at(900));
    for node in 1..10 {
        let contacts = vec![Contact { member: false, ..member(0) }];
        let seed = Seed::new(99).indexed(node);
        network.nodes[node as usize] =
            Some(Medley::new(peer(node, 2), config, seed, None, contacts));
        network.input(node as usize, Input::Start);
    }
    network.run_until(at(2_000));
    for node in network.live() {
        assert_eq!(node.len(), 9, "{} {:?}", node.me, node.members().collect::<Vec<_>>());
        assert!(node.members().all(|member| member.boot.get() == 1 + u64::from(member.id > id(0))));
    }
}

#[test]
fn whoever_leaves_has_left_and_did_not_fail() {
    for strategy in STRATEGIES {
        let mut network = Network::new(Config::new(strategy, Form::Hardened), 9, 0.0, 8);
        network.run_until(at(100));
        network.input(2, Input::Leave);
        network.run_until(at(700));
        assert_eq!(network.nodes[2].as_ref().unwrap().deadline(), None);
        network.nodes[2] = None;
        assert_eq!(network.told(|event| *event == MembershipEvent::Left(id(2))), 8);
        assert_eq!(network.told(|event| matches!(event, MembershipEvent::Failed { .. })), 0);
        assert!(network.live().all(|node| node.state_of(id(2)) == Some(State::Left)));
    }
}

/// M-15, for a group cut in half and for one node cut off.
#[test]
fn a_partition_heals_only_in_the_hardened_form() {
    let half: fn(u64, u64) -> bool = |from, to| (from < 4) == (to < 4);
    let one: fn(u64, u64) -> bool = |from, to| (from < 1) == (to < 1);
    for (cut, links, form) in [
        (4, half, Form::AsPublished),
        (4, half, Form::Hardened),
        (1, one, Form::AsPublished),
        (1, one, Form::Hardened),
    ] {
        let mut network = Network::new(Config::new(Strategy::Swim, form), 8, 0.0, 2);
        network.run_until(at(100));
        network.links = links;
        network.run_until(at(1_200));
        let sizes = |network: &Network| network.live().map(Medley::len).collect::<Vec<_>>();
        let apart: Vec<_> = (0..8).map(|node| if node < cut { cut } else { 8 - cut } - 1).collect();
        assert_eq!(sizes(&network), apart.iter().map(|&n| n as usize).collect::<Vec<_>>());
        network.links = |_, _| true;
        network.run_until(at(2_400));
        if form == Form::Hardened {
            assert_eq!(sizes(&network), [7; 8], "cut at {cut}");
        } else {
            assert_eq!(sizes(&network), apart.iter().map(|&n| n as usize).collect::<Vec<_>>());
        }
    }
}

/// Leaves hear only the hub (serf#223): as published they bury each other, cautious they find the way.
#[test]
fn on_a_star_everybody_is_reached_through_the_hub() {
    for (form, seed) in
        [(Form::AsPublished, 0), (Form::Hardened, 0), (Form::Hardened, 1), (Form::Hardened, 2)]
    {
        let mut network = Network::new(Config::new(Strategy::Swim, form), 12, 0.0, seed);
        network.links = |from, to| from == 0 || to == 0;
        network.run_until(at(6_000));
        let removals = network.told(|event| matches!(event, MembershipEvent::Failed { .. }));
        if form == Form::AsPublished {
            assert!(removals > 100, "{removals}");
            continue;
        }
        assert_eq!(removals, 0, "seed {seed}");
        for node in network.live().filter(|node| node.me.id != id(0)) {
            let hub = |member: &MemberView| member.reach == Reach::Through(id(0));
            assert_eq!(node.members().filter(hub).count(), 10, "all other leaves");
        }
    }
}

/// What gossip has missed, a comparison of lists finds.
#[test]
fn lists_are_compared_and_agree_in_the_end() {
    let config = Config::new(Strategy::Swim, Form::Hardened).with_sync(Some(5)).unwrap();
    let mut network = Network::new(config, 6, 0.0, 4);
    network.run_until(at(50));
    // Known to node 0 alone, and no longer news to it.
    let node = network.nodes[0].as_mut().unwrap();
    let stranger = news(peer(77, 1), 0, Status::Left);
    node.learn(at(50), &stranger, &mut network.out);
    node.gossip = Gossip::new(GOSSIP);
    network.run_until(at(1_500));
    assert!(network.live().all(|node| node.state_of(id(77)) == Some(State::Left)));
}

#[test]
fn one_seed_gives_one_history() {
    let history = |seed| {
        let mut network = Network::new(Config::new(Strategy::Both, Form::Hardened), 12, 0.2, seed);
        network.run_until(at(600));
        (network.sent, network.events)
    };
    assert_eq!(history(1), history(1));
    assert_ne!(history(1), history(2));
}
