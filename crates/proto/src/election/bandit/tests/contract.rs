//! Whatever arrives in whatever order: nothing breaks, nothing grows, and everything survives the wire. And clients.

use proptest::{prelude::*, strategy::Strategy};

use super::{super::client::Client, *};
use crate::wire::{MAX_DATAGRAM, Reader, SEAL_LEN, Wire};

fn any_node() -> impl Strategy<Value = NodeId> {
    prop_oneof![8 => 0..5_u64, 1 => any::<u64>()].prop_map(NodeId::new)
}

fn any_peer() -> impl Strategy<Value = Peer> {
    let boot = prop_oneof![8 => 1..3_u64, 1 => any::<u64>()];
    (any_node(), boot).prop_map(|(id, boot)| Peer::new(id, Boot::new(boot)))
}

fn any_message() -> impl Strategy<Value = Message> {
    let term = || prop_oneof![12 => 0..6_u64, 1 => any::<u64>()];
    let nodes = || prop::collection::vec(any_node(), 0..6);
    let of = || (any_node(), term()).prop_map(|(client, number)| Request { client, number });
    prop_oneof![
        (term(), 0..4_u32).prop_map(|(number, attempt)| Message::ClientRequest { number, attempt }),
        (term(), term()).prop_map(|(number, term)| Message::Reply { number, term }),
        (of(), term()).prop_map(|(request, term)| Message::RequestBroadcast { request, term }),
        (of(), term()).prop_map(|(request, term)| Message::ReplyBroadcast { request, term }),
        (term(), nodes()).prop_map(|(term, list)| Message::ShareCandidate { term, list }),
        (term(), nodes()).prop_map(|(term, voters)| Message::ConfirmElection { term, voters }),
        term().prop_map(|term| Message::Vote { term }),
        (term(), prop::option::of(any_peer()))
            .prop_map(|(term, leader)| Message::TermHint { term, leader }),
        term().prop_map(|term| Message::Heartbeat { term }),
        term().prop_map(|term| Message::HeartbeatAck { term }),
        term().prop_map(|term| Message::Resigned { term }),
        term().prop_map(|nonce| Message::Ping { nonce }),
        term().prop_map(|nonce| Message::PingReply { nonce }),
        term().prop_map(|term| Message::Objection { term }),
        (0..=100_u8).prop_map(|percent| Message::Admission { percent }),
    ]
}

fn any_config() -> impl Strategy<Value = Config> {
    let profile =
        prop::sample::select(vec![Profile::Published, Profile::Reference, Profile::Hardened]);
    let policy = prop::sample::select(vec![
        Policy::EPSILON_GREEDY,
        Policy::UCB,
        Policy::DiscountedUcb { weight: 0.5, discount: 0.9 },
        Policy::SlidingUcb { weight: 0.5, window: 7 },
        Policy::Thompson { discount: 0.9 },
        Policy::Random,
        Policy::Next,
    ]);
    let margin = prop::sample::select(vec![None, Some(0.0), Some(0.3)]);
    (profile, policy, margin).prop_map(|(profile, policy, margin)| {
        Config::new(profile, policy).with_tenure(Duration::from_secs(1), margin).unwrap()
    })
}

#[derive(Clone, Debug)]
enum Step {
    Hear(Peer, Message),
    Wait(u64),
    Feed(Feed),
    Command(Command),
    Restart,
}

fn any_step() -> impl Strategy<Value = Step> {
    let feed = (any_peer(), 0..7_u8).prop_map(|(peer, kind)| match kind {
        0 => Feed::Up(peer),
        1 => Feed::Failed(peer),
        2 => Feed::Left(peer),
        3 => Feed::Halted,
        4 => Feed::Suspected(peer),
        5 => Feed::Reported { id: peer.id, percent: peer.boot.get() as u8 },
        _ => Feed::Restored,
    });
    let command = prop::sample::select(vec![
        Command::Elect,
        Command::Resign,
        Command::Void,
        Command::Observe(true),
        Command::Observe(false),
    ]);
    prop_oneof![
        12 => (any_peer(), any_message()).prop_map(|(from, message)| Step::Hear(from, message)),
        6 => (0..3_000_000_u64).prop_map(Step::Wait),
        2 => feed.prop_map(Step::Feed),
        1 => command.prop_map(Step::Command),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #[test]
    fn messages_survive_the_wire(message in any_message()) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), message.encoded_len());
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(Message::decode(&mut reader).unwrap(), message);
        reader.finish().unwrap();
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = Message::decode(&mut Reader::new(&bytes)) {
            let mut again = Vec::new();
            message.encode(&mut again);
            prop_assert_eq!(&again[..], &bytes[..again.len()], "one encoding for every value");
        }
    }

    /// The contract, and of the hardened profile what one node alone can promise: its term never falls, and it casts
    /// one vote in each, across restarts.
    #[test]
    fn no_history_breaks_a_node(
        config in any_config(),
        steps in prop::collection::vec(any_step(), 1..80),
    ) {
        let mut now = Time::ZERO;
        let mut boot = 1;
        let build = |boot, durable| {
            let me = Peer::new(id(1), Boot::new(boot));
            Bandit::new(me, members(5), config, Seed::new(boot), durable)
        };
        let mut node = build(boot, None);
        let mut out = Outbox::new();
        node.handle(now, Input::Start, &mut out).unwrap();
        let mut disk: Option<Durable> = None;
        let mut cast = alloc::collections::BTreeMap::new();
        let mut term = 0;
        for step in steps {
            let result = match step {
                Step::Hear(from, message) => {
                    node.handle(now, Input::Message { from, via: from.id, message: &message }, &mut out)
                }
                Step::Wait(micros) => {
                    now += Duration::from_micros(micros);
                    let result = node.handle(now, Input::Timeout, &mut out);
                    prop_assert!(node.deadline().is_none_or(|(at, _)| at > now));
                    result
                }
                Step::Feed(feed) => node.handle(now, Input::Feed(feed), &mut out),
                Step::Command(command) => node.handle(now, Input::Command(command), &mut out),
                Step::Restart => {
                    boot += 1;
                    node = build(boot, disk.clone().or_else(|| Some(Durable::default())));
                    node.handle(now, Input::Start, &mut out)
                }
            };
            prop_assert!(result.is_ok() || out.is_empty());
            while let Some(effect) = out.pop() {
                let effect: EffectOf<Bandit> = effect;
                match effect {
                    Effect::Persist(durable) => disk = Some(durable),
                    Effect::Send { to, message: Message::Vote { term } } => {
                        prop_assert_eq!(*cast.entry(term).or_insert(to), to);
                        let vote = disk.as_ref().map(|disk| (disk.term >= term, disk.voted_for));
                        prop_assert!(vote.is_some_and(|(not_older, _)| not_older));
                    }
                    Effect::Send { message, .. } | Effect::Multicast(message) => {
                        prop_assert!(message.encoded_len() + SEAL_LEN <= MAX_DATAGRAM);
                    }
                    Effect::Broadcast(_) | Effect::Emit(_) => {}
                }
            }
            if let Some((own, _)) = node.ballot() {
                prop_assert!(own >= term);
                term = own;
            }
        }
    }
}

#[test]
fn the_largest_lists_fit_a_datagram() {
    let names: Vec<usize> = (0..MAX_MEMBERS / 2 + 1).collect();
    let list = list(&names);
    let confirm = Message::ConfirmElection { term: u64::MAX, voters: list };
    assert!(confirm.encoded_len() + SEAL_LEN <= MAX_DATAGRAM);
}

/// A client alone: who answers, and who confirms in which call, is in our hands.
struct Served {
    client: Client,
    now: Time,
    rounds: Vec<bool>,
    answered: u32,
}

impl Served {
    fn new(profile: Profile, requests: u64) -> Self {
        let (timeout, round) = (Duration::from_secs(2), Duration::from_secs(6));
        let config = client::Config::new(profile, requests, timeout, round).unwrap();
        let client = Client::new(peer(9), members(5), config);
        Self { client, now: Time::ZERO, rounds: Vec::new(), answered: 0 }
    }

    /// Runs to the end; `up` says whether the leader answers this request, and `elects` whether this round elects.
    fn run(mut self, up: impl Fn(u64) -> bool, elects: impl Fn(usize) -> bool) -> Self {
        let mut out = Outbox::new();
        self.client.handle(self.now, Input::Start, &mut out).unwrap();
        let mut leader = 0;
        while !self.client.is_finished() {
            let mut replies = Vec::new();
            let number = self.client.settled();
            while let Some(effect) = out.pop() {
                let effect: EffectOf<Client> = effect;
                match effect {
                    Effect::Send { to, message: Message::ClientRequest { attempt: 0, .. } }
                        if up(number) =>
                    {
                        let term = self.now.as_micros() + 1;
                        replies.push((to, Message::Reply { number, term }));
                    }
                    Effect::Send { to, message: Message::ClientRequest { attempt: 1.., .. } }
                        if to == id(4) && elects(self.rounds.len()) =>
                    {
                        leader = (leader + 1) % 2;
                        let term = self.now.as_micros() + 3_000_000;
                        let confirm = Message::ConfirmElection { term, voters: vec![] };
                        replies.push((id(leader), confirm));
                    }
                    Effect::Emit(client::Event::Round { leader, .. }) => {
                        self.rounds.push(leader.is_some());
                    }
                    Effect::Emit(client::Event::Answered { .. }) => self.answered += 1,
                    _ => {}
                }
            }
            for (from, message) in replies {
                let from = Peer::new(from, Boot::new(1));
                let input = Input::Message { from, via: from.id, message: &message };
                self.client.handle(self.now, input, &mut out).unwrap();
            }
            let Some((at, _)) = self.client.deadline() else { break };
            self.now = at;
            self.client.handle(at, Input::Timeout, &mut out).unwrap();
        }
        let rest = core::iter::from_fn(|| out.pop());
        let answered = |effect: &EffectOf<Client>| {
            matches!(effect, Effect::Emit(client::Event::Answered { .. }))
        };
        self.answered += rest.filter(answered).count() as u32;
        self
    }
}

#[test]
fn tv_16_how_long_a_run_of_the_program_takes() {
    let rows = [(5_000, 43, 9, 10_330), (5_000, 70, 43, 10_764), (2_500, 17, 1, 5_110)];
    for (requests, successes, failures, seconds) in rows {
        // The first rounds fail, all of the same request; each of the others is of one request that is forgotten.
        let served = Served::new(Profile::Reference, requests)
            .run(|number| number >= successes, |round| round >= failures);
        let ok = served.rounds.iter().filter(|&&ok| ok).count();
        assert_eq!((ok as u64, served.rounds.len()), (successes, successes as usize + failures));
        assert_eq!(served.now, Time::ZERO + Duration::from_secs(seconds));
        assert_eq!(u64::from(served.answered), requests - successes, "the others are forgotten");
    }
}

#[test]
fn other_clients_ask_again_until_they_are_answered() {
    let calls = core::cell::Cell::new(0);
    let served = Served::new(Profile::Hardened, 3).run(
        |number| {
            calls.set(calls.get() + 1);
            number != 1 || calls.get() > 2
        },
        |_| true,
    );
    assert_eq!((served.rounds, served.answered), (vec![true], 3));
}
