use std::convert::Infallible;

use bellwether_proto::wire::{DecodeError, Reader, Sink, Wire};

use super::*;
use crate::world::{Delay, DelayLaw, Loss, NetworkSettings, Per, Placement, Routing, place};

/// Does what it is told: a message is a number, heard and remembered with the local time.
#[derive(Clone, Debug)]
struct Parrot {
    me: Peer,
    timers: Vec<Time>,
    heard: Vec<(Time, Heard)>,
    saved: Option<u32>,
    say: Vec<(NodeId, u32)>,
    /// What it says whenever its bell rings.
    chat: Vec<(NodeId, u32)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Heard {
    Number(u64, u32),
    Bell,
    Goodbye,
    Told(u8),
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Number(u32);

impl Wire for Number {
    fn encode(&self, sink: &mut impl Sink) {
        sink.u32(self.0);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(reader.u32("number")?))
    }
}

impl Machine for Parrot {
    type Message = Number;
    type Timer = ();
    type Feed = u8;
    type Command = Infallible;
    type Durable = u32;
    type Event = u8;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start => {
                out.persist(self.saved.unwrap_or(0) + 1);
                self.say.drain(..).for_each(|(to, number)| out.send(to, Number(number)));
            }
            Input::Message { message: Number(13), .. } => return Err(Rejected::NotRunning),
            // Keeps a secret: what it says afterwards would give it away.
            Input::Message { from, message: Number(50), .. } => {
                out.send(from.id, Number(1));
                out.persist(70);
                out.send(from.id, Number(2));
                out.emit(3);
                out.persist(71);
                out.multicast(Number(4));
            }
            Input::Message { from, message, .. } => {
                self.heard.push((now, Heard::Number(from.id.get(), message.0)));
            }
            Input::Timeout => {
                self.timers.retain(|&at| at > now);
                self.heard.push((now, Heard::Bell));
                self.chat.iter().for_each(|&(to, number)| out.send(to, Number(number)));
            }
            Input::Leave => {
                self.heard.push((now, Heard::Goodbye));
                self.timers = vec![now + Duration::from_millis(1)];
            }
            Input::Feed(STUBBORN) => out.persist(72),
            Input::Feed(news) => self.heard.push((now, Heard::Told(news))),
            Input::Command(never) => match never {},
        }
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, ())> {
        self.timers.iter().min().map(|&at| (at, ()))
    }
}

/// What a parrot answers by trying again, at once.
const STUBBORN: u8 = 66;
const NOT_KEPT: u8 = 99;

/// Keeps what the machines heard after they are gone.
#[derive(Default)]
struct Diary {
    heard: BTreeMap<NodeId, Vec<(Time, Heard)>>,
    told: Vec<(Time, NodeId, Told)>,
    /// Of the last of a node's ghosts.
    ghosts: BTreeMap<NodeId, Vec<(Time, Heard)>>,
}

/// What only an observer learns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Told {
    Emitted(u8),
    NotKept,
    Stopped,
    GhostGone,
}

impl Observer<Parrot> for Diary {
    fn handled(&mut self, _now: Time, node: NodeId, machine: &Parrot) {
        self.heard.insert(node, machine.heard.clone());
    }

    fn ghost_handled(&mut self, _now: Time, node: NodeId, machine: &Parrot) {
        self.ghosts.insert(node, machine.heard.clone());
    }

    fn ghost_gone(&mut self, now: Time, node: NodeId) {
        self.told.push((now, node, Told::GhostGone));
    }

    fn effect(&mut self, now: Time, node: NodeId, effect: &EffectOf<Parrot>) {
        if let Effect::Emit(event) = effect {
            self.told.push((now, node, Told::Emitted(*event)));
        }
    }

    fn not_kept(&mut self, now: Time, node: NodeId) {
        self.told.push((now, node, Told::NotKept));
    }

    fn stopped(&mut self, now: Time, node: NodeId) {
        self.told.push((now, node, Told::Stopped));
    }
}

fn parrots(
    nodes: u32,
    timers: &'static [(u64, u64)],
    say: &'static [(u64, u64, u32)],
) -> Sim<Parrot, Diary> {
    let network = NetworkSettings {
        nodes,
        start_spread: Duration::ZERO,
        placement: Placement::Mesh,
        delay: Delay { law: DelayLaw::Fixed(Duration::from_millis(10)), per: Per::Hop },
        loss: Loss::None,
        routing: Routing::Hops,
        mobility: Default::default(),
        radio: Default::default(),
    };
    let placed = place(&Placement::Mesh, nodes, &mut Seed::new(1).rng()).unwrap();
    let network = Network::new(&network, placed, nodes, Seed::new(2).rng());
    let build = move |me: Peer, _, saved| Parrot {
        me,
        timers: timers.iter().filter(|t| t.0 == me.id.get()).map(|t| ms(t.1)).collect(),
        heard: Vec::new(),
        saved,
        say: say
            .iter()
            .filter(|&&(from, ..)| from == me.id.get() && me.boot == Boot::new(1))
            .map(|&(_, to, number)| (NodeId::new(to), number))
            .collect(),
        chat: Vec::new(),
    };
    Sim::new(network, nodes, Seed::new(3), Box::new(build), Diary::default())
}

fn ms(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

fn heard(sim: &Sim<Parrot, Diary>, node: u64) -> Vec<(Time, Heard)> {
    sim.observer().heard.get(&NodeId::new(node)).cloned().unwrap_or_default()
}

#[test]
fn at_one_instant_deliveries_come_before_timers() {
    let mut sim = parrots(2, &[(1, 10)], &[(0, 1, 7), (0, 1, 8)]);
    sim.start_all(&[1, 0], State::Lost);
    sim.advance(ms(11));
    let expected =
        [(ms(10), Heard::Number(0, 7)), (ms(10), Heard::Number(0, 8)), (ms(10), Heard::Bell)];
    assert_eq!(heard(&sim, 1), expected);
    assert_eq!(sim.counters().messages, 2);
    assert_eq!(sim.counters().bytes, 2 * (wire::SEAL_LEN as u64 + 4));
}

#[test]
fn advance_handles_what_comes_before_and_not_what_comes_at() {
    let mut sim = parrots(2, &[(1, 10)], &[(0, 1, 7)]);
    sim.start_all(&[0, 1], State::Lost);
    sim.advance(ms(10));
    assert_eq!((sim.now(), heard(&sim, 1).len()), (ms(10), 0));
    sim.crash(1);
    sim.advance(ms(20));
    assert_eq!(heard(&sim, 1), [], "the crash at 10 ms came first");
    assert_eq!(sim.counters().undeliverable, 1);
}

#[test]
fn a_new_life_has_a_larger_boot_number_and_its_disk_unless_lost() {
    let mut sim = parrots(1, &[], &[]);
    for (state, boot, saved) in [
        (State::Lost, 1, None),
        (State::Kept, 2, Some(1)),
        (State::Kept, 3, Some(2)),
        (State::Lost, 4, None),
    ] {
        sim.start(0, state);
        let parrot = sim.machine(0).unwrap();
        assert_eq!((parrot.me.boot, parrot.saved), (Boot::new(boot), saved));
        sim.start(0, State::Lost);
        assert_eq!(sim.machine(0).unwrap().me.boot, Boot::new(boot), "it is running already");
        sim.crash(0);
        assert_eq!(sim.status(0), Status::Down);
    }
}

#[test]
fn a_frozen_node_reads_its_mail_before_its_clock_and_keeps_the_oldest() {
    let mut sim = parrots(2, &[(1, 15)], &[(0, 1, 1), (0, 1, 2), (0, 1, 3)]);
    sim.start_all(&[0, 1], State::Lost);
    sim.advance(ms(5));
    sim.pause(1, 2);
    sim.advance(ms(40));
    assert_eq!(heard(&sim, 1), []);
    sim.resume(1);
    sim.advance(ms(41));
    let expected =
        [(ms(40), Heard::Number(0, 1)), (ms(40), Heard::Number(0, 2)), (ms(40), Heard::Bell)];
    assert_eq!(heard(&sim, 1), expected);
    assert_eq!(sim.counters().undeliverable, 1, "the third found the buffer full");
}

#[test]
fn a_choked_node_goes_on_by_itself_and_speaks_and_hears_afterwards() {
    let mut sim = parrots(2, &[(1, 15)], &[(0, 1, 1)]);
    sim.start_all(&[0, 1], State::Lost);
    sim.choke(1, 2);
    sim.nodes[1].machine.as_mut().unwrap().say.push((node_id(0), 7));
    sim.input(1, Tag::Start, Input::Start);
    sim.advance(ms(40));
    assert_eq!((heard(&sim, 0), heard(&sim, 1)), (vec![], vec![(ms(15), Heard::Bell)]));
    sim.resume(1);
    sim.advance(ms(80));
    assert!(heard(&sim, 1).contains(&(ms(40), Heard::Number(0, 1))), "{:?}", heard(&sim, 1));
    assert!(matches!(heard(&sim, 0)[..], [(at, Heard::Number(1, 7))] if at > ms(40)));
}

/// Whoever runs hears at once, who is frozen after its mail, all others never.
#[test]
fn what_is_fed_reaches_the_running_and_is_part_of_the_trace() {
    let fed = |news: Option<u8>| {
        let mut sim = parrots(4, &[], &[(0, 1, 1)]);
        sim.start_all(&[0, 1, 2], State::Lost);
        sim.advance(ms(5));
        sim.pause(1, 2);
        sim.crash(2);
        for (node, news) in (0..4).zip(std::iter::repeat(news)) {
            news.into_iter().for_each(|news| sim.feed(node, news));
        }
        sim.advance(ms(20));
        sim.resume(1);
        sim
    };
    let sim = fed(Some(7));
    assert_eq!(heard(&sim, 0), [(ms(5), Heard::Told(7))]);
    assert_eq!(heard(&sim, 1), [(ms(20), Heard::Number(0, 1)), (ms(20), Heard::Told(7))]);
    assert_eq!((heard(&sim, 2), heard(&sim, 3)), (vec![], vec![]));
    assert_ne!(sim.trace_hash(), fed(Some(8)).trace_hash());
    assert_ne!(sim.trace_hash(), fed(None).trace_hash());
}

#[test]
fn one_who_leaves_is_driven_until_it_wants_nothing_more() {
    let mut sim = parrots(1, &[(0, 100)], &[]);
    sim.start(0, State::Lost);
    sim.advance(ms(5));
    sim.leave(0);
    assert_eq!(sim.status(0), Status::Leaving);
    sim.advance(ms(50));
    assert_eq!(sim.status(0), Status::Left);
    assert_eq!(heard(&sim, 0), [(ms(5), Heard::Goodbye), (ms(6), Heard::Bell)]);
}

#[test]
fn a_fast_clock_wakes_its_node_early_in_true_time() {
    let mut sim = parrots(2, &[(0, 1_000), (1, 1_000)], &[]);
    sim.start_all(&[0, 1], State::Lost);
    sim.drift(0, 100_000);
    sim.advance(ms(910));
    assert_eq!(heard(&sim, 0).len(), 1, "rang at 909.1 ms");
    assert!(heard(&sim, 0)[0].0 >= ms(1_000), "and thought it was a second");
    assert_eq!(heard(&sim, 1), []);
    sim.drift(1, -100_000);
    sim.advance(ms(1_009));
    assert_eq!(heard(&sim, 1), [], "slow since 910 ms");
    sim.advance(ms(1_011));
    assert_eq!(heard(&sim, 1).len(), 1);
}

#[test]
fn what_a_machine_refuses_is_counted_by_reason() {
    let mut sim = parrots(2, &[], &[(0, 1, 13), (0, 1, 14), (0, 9, 15)]);
    sim.start_all(&[0, 1], State::Lost);
    sim.advance(ms(11));
    assert_eq!(sim.rejections(), &BTreeMap::from([("not-running", 1)]));
    assert_eq!(heard(&sim, 1), [(ms(10), Heard::Number(0, 14))]);
    assert_eq!(sim.counters().undeliverable, 1, "there is no node 9");
}

#[test]
fn a_partition_stops_what_is_in_flight() {
    let mut sim = parrots(2, &[], &[(0, 1, 7)]);
    sim.start_all(&[0, 1], State::Lost);
    sim.advance(ms(5));
    sim.change_network(|network| network.partition(vec![0, 1]));
    sim.advance(ms(20));
    assert_eq!(heard(&sim, 1), []);
}

fn told(sim: &Sim<Parrot, Diary>) -> Vec<(Time, u64, Told)> {
    sim.observer().told.iter().map(|&(at, node, told)| (at, node.get(), told)).collect()
}

/// Node 0 asks node 1 for a secret while the disk of node 1 fails.
fn asked_while_the_disk_fails(feeds: HostFeeds<Parrot>) -> Sim<Parrot, Diary> {
    let mut sim = parrots(3, &[], &[(0, 1, 50)]).with_host_feeds(feeds);
    sim.start_all(&[0, 1, 2], State::Lost);
    sim.fail_disk(1);
    sim.advance(ms(15));
    sim
}

#[test]
fn what_follows_what_was_not_kept_is_not_sent_but_told() {
    let feeds = || HostFeeds { not_kept: Some(NOT_KEPT), ..HostFeeds::default() };
    let mut sim = asked_while_the_disk_fails(feeds());
    assert_eq!(sim.disks[1], Some(1), "what was kept at the start");
    assert_eq!(heard(&sim, 1), [(ms(10), Heard::Told(NOT_KEPT))], "once, and at once");
    assert_eq!(told(&sim), [(ms(10), 1, Told::NotKept), (ms(10), 1, Told::Emitted(3))]);
    sim.advance(ms(30));
    assert_eq!(heard(&sim, 0), [(ms(20), Heard::Number(1, 1))], "what came before was sent");
    assert_eq!((heard(&sim, 2), sim.counters().messages), (vec![], 2));

    let mut well = parrots(3, &[], &[(0, 1, 50)]).with_host_feeds(feeds());
    well.start_all(&[0, 1, 2], State::Lost);
    well.fail_disk(1);
    well.mend_disk(1);
    well.advance(ms(30));
    assert_eq!(well.disks[1], Some(71));
    assert_eq!(heard(&well, 0).len(), 3);
    assert_eq!(told(&well), [(ms(10), 1, Told::Emitted(3))]);
    assert_ne!(sim.trace_hash(), well.trace_hash());
}

#[test]
fn a_machine_that_cannot_be_told_crashes_when_its_disk_fails() {
    let mut sim = asked_while_the_disk_fails(HostFeeds::default());
    assert_eq!((sim.status(1), &sim.disks[1]), (Status::Down, &Some(1)));
    let crashed = [Told::NotKept, Told::Emitted(3), Told::Stopped].map(|told| (ms(10), 1, told));
    assert_eq!(told(&sim), crashed);
    sim.start(1, State::Kept);
    assert_eq!(sim.status(1), Status::Down, "a new life has the same disk");
    sim.mend_disk(1);
    sim.start(1, State::Kept);
    assert_eq!((sim.status(1), &sim.disks[1]), (Status::Up, &Some(2)));
}

/// What a choked node says is held back; what it must not say is not said later either.
#[test]
fn a_choked_node_whose_disk_fails_does_not_speak_afterwards() {
    let feeds = HostFeeds { not_kept: Some(NOT_KEPT), ..HostFeeds::default() };
    let mut sim = parrots(2, &[], &[]).with_host_feeds(feeds);
    sim.start_all(&[0, 1], State::Lost);
    sim.choke(1, 2);
    sim.fail_disk(1);
    sim.nodes[1].machine.as_mut().unwrap().say.push((node_id(0), 7));
    sim.input(1, Tag::Start, Input::Start);
    sim.mend_disk(1);
    sim.resume(1);
    sim.advance(ms(40));
    assert_eq!(heard(&sim, 1), [(ms(0), Heard::Told(NOT_KEPT))]);
    assert_eq!(heard(&sim, 0), []);
}

const WRITING: u8 = 97;
const KEPT: u8 = 98;

#[test]
fn a_slow_disk_holds_up_what_follows_and_says_when_it_is_done() {
    let feeds = || HostFeeds { writing: Some((WRITING, KEPT)), ..HostFeeds::<Parrot>::default() };
    let slow = |mend: bool| {
        let mut sim = parrots(3, &[], &[(0, 1, 50)]).with_host_feeds(feeds());
        sim.start_all(&[0, 1, 2], State::Lost);
        sim.slow_disk(1, Duration::from_secs(3_600));
        sim.advance(ms(15));
        assert_eq!(heard(&sim, 1), [(ms(10), Heard::Told(WRITING))], "at once");
        assert_eq!(sim.disks[1], Some(1), "what was kept at the start");
        if mend {
            sim.mend_disk(1);
        }
        sim.advance(ms(30));
        sim
    };
    let hangs = slow(false);
    assert_eq!((heard(&hangs, 0).len(), hangs.disks[1]), (1, Some(1)));
    let mended = slow(true);
    let words: Vec<_> = heard(&mended, 1).into_iter().map(|(_, heard)| heard).collect();
    assert_eq!(words, [WRITING, KEPT].map(Heard::Told));
    assert_eq!(mended.disks[1], Some(70), "the first of the two");
    assert_eq!(heard(&mended, 0).len(), 1, "a machine says itself what it has waited with");
    // Whoever cannot be told has a disk that takes no time.
    let mut quick = parrots(3, &[], &[(0, 1, 50)]);
    quick.start_all(&[0, 1, 2], State::Lost);
    quick.slow_disk(1, Duration::from_secs(3_600));
    quick.advance(ms(30));
    assert_eq!((heard(&quick, 0).len(), quick.disks[1]), (3, Some(71)));
}

#[test]
#[should_panic(expected = "goes on persisting at one instant")]
fn a_machine_that_tries_again_for_ever_is_found_out() {
    asked_while_the_disk_fails(HostFeeds { not_kept: Some(STUBBORN), ..HostFeeds::default() });
}

fn ghost_heard(sim: &Sim<Parrot, Diary>, node: u64) -> Vec<(Time, Heard)> {
    sim.observer().ghosts.get(&NodeId::new(node)).cloned().unwrap_or_default()
}

fn chat(sim: &mut Sim<Parrot, Diary>, from: usize, to: u32, number: u32) {
    sim.nodes[from].machine.as_mut().unwrap().chat.push((node_id(to), number));
}

const LATER_LIFE: u8 = 200;

fn knowing_ghosts() -> HostFeeds<Parrot> {
    let superseded = |boot: Boot| LATER_LIFE + boot.get() as u8;
    HostFeeds { superseded: Some(superseded), ..HostFeeds::default() }
}

/// The bells of a node's present life ring this much later.
fn delay_bells(sim: &mut Sim<Parrot, Diary>, node: u32, millis: u64) {
    let slot = &mut sim.nodes[node as usize];
    slot.wake = Time::NEVER;
    let bells = &mut slot.machine.as_mut().unwrap().timers;
    bells.iter_mut().for_each(|at| *at += Duration::from_millis(millis));
    sim.rearm(node);
}

/// Node 1 is cloned after 5 ms; whenever its bell rings, the earlier life says 7 to node 0, and a millisecond later the
/// later one says 8.
fn cloned(feeds: HostFeeds<Parrot>, bells: &'static [(u64, u64)]) -> Sim<Parrot, Diary> {
    let mut sim = parrots(3, bells, &[]).with_host_feeds(feeds);
    sim.start_all(&[0, 1, 2], State::Lost);
    chat(&mut sim, 1, 0, 7);
    sim.advance(ms(5));
    sim.clone_identity(1);
    chat(&mut sim, 1, 0, 8);
    delay_bells(&mut sim, 1, 1);
    sim
}

#[test]
fn a_clone_takes_the_place_and_the_mail_and_the_earlier_life_runs_on() {
    let mut sim = cloned(knowing_ghosts(), &[(0, 20), (1, 30)]);
    chat(&mut sim, 0, 1, 9);
    let copy = sim.machine(1).unwrap();
    assert_eq!((copy.me.boot, copy.saved), (Boot::new(2), Some(1)), "started from the same disk");
    assert_eq!((sim.len(), sim.ghosts().count()), (3, 1));
    assert_eq!(told(&sim), [(ms(5), 1, Told::Stopped)]);
    sim.advance(ms(100));
    assert_eq!(heard(&sim, 1), [(ms(30), Heard::Number(0, 9)), (ms(31), Heard::Bell)]);
    assert_eq!(ghost_heard(&sim, 1), [(ms(30), Heard::Bell)], "it hears nothing but its bell");
    let both = [(ms(40), Heard::Number(1, 7)), (ms(41), Heard::Number(1, 8))];
    assert_eq!(heard(&sim, 0)[1..], both, "nobody has heard the later life before");
    let (ghost, machine) = sim.ghosts().next().unwrap();
    assert_eq!((ghost, machine.me), (peer(1, 1), peer(1, 1)), "not told, it runs on");
}

#[test]
fn who_has_heard_the_later_life_refuses_the_earlier_one_and_tells_it() {
    let bells = &[(1, 30), (1, 60), (1, 100)];
    let mut sim = cloned(knowing_ghosts(), bells);
    sim.advance(ms(90));
    assert_eq!(heard(&sim, 0).len(), 3, "7 and 8, then only 8: {:?}", heard(&sim, 0));
    assert_eq!(sim.counters().undeliverable, 1);
    let superseded = (ms(80), Heard::Told(LATER_LIFE + 2));
    assert_eq!(ghost_heard(&sim, 1).last(), Some(&superseded), "a delay there and a delay back");
    assert_eq!(sim.ghosts().count(), 1, "its bell will ring once more");
    sim.advance(ms(200));
    assert_eq!(sim.ghosts().count(), 0);
    assert_eq!(told(&sim)[1..], [(ms(100), 1, Told::GhostGone)]);
    assert_eq!(sim.counters().undeliverable, 2, "its last word is still refused");

    let mut again = cloned(knowing_ghosts(), bells);
    again.advance(ms(200));
    assert_eq!(sim.trace_hash(), again.trace_hash());
    let mut alone = parrots(3, bells, &[]);
    alone.start_all(&[0, 1, 2], State::Lost);
    alone.advance(ms(200));
    assert_ne!(sim.trace_hash(), alone.trace_hash());
}

#[test]
fn a_ghost_that_cannot_be_told_ends_when_it_would_be() {
    let mut sim = cloned(HostFeeds::default(), &[(1, 30), (1, 60), (1, 100)]);
    sim.advance(ms(80));
    assert_eq!(sim.ghosts().count(), 1);
    sim.advance(ms(200));
    assert_eq!(told(&sim)[1..], [(ms(80), 1, Told::GhostGone)]);
    assert_eq!(sim.counters().undeliverable, 1, "it rings no more");
    assert_eq!(sim.status(1), Status::Up);
}

/// The refusal at 70 ms is stopped on its way back; the one at 110 ms arrives.
#[test]
fn a_ghost_whose_way_back_is_cut_runs_on() {
    let mut sim = cloned(knowing_ghosts(), &[(1, 30), (1, 60), (1, 100)]);
    sim.advance(ms(50));
    sim.change_network(|network| network.cut(0, 1));
    sim.advance(ms(95));
    assert_eq!(sim.counters().undeliverable, 1);
    assert_eq!(ghost_heard(&sim, 1), [ms(30), ms(60)].map(|at| (at, Heard::Bell)));
    sim.change_network(Network::heal);
    sim.advance(ms(200));
    assert_eq!(told(&sim)[1..], [(ms(120), 1, Told::GhostGone)]);
}

/// A crash of the node is one of the copy; who starts anew has heard nobody.
#[test]
fn faults_hit_the_copy_and_a_new_life_of_a_receiver_knows_no_lives() {
    let mut sim = cloned(knowing_ghosts(), &[(1, 30), (1, 60), (1, 100)]);
    sim.advance(ms(50));
    sim.crash(1);
    sim.crash(0);
    sim.start(0, State::Kept);
    sim.advance(ms(200));
    assert_eq!(heard(&sim, 0), [ms(70), ms(110)].map(|at| (at, Heard::Number(1, 7))));
    assert_eq!((sim.status(1), sim.ghosts().count()), (Status::Down, 1));
}

#[test]
fn a_node_can_be_cloned_again_and_all_earlier_lives_are_told() {
    let mut sim = cloned(knowing_ghosts(), &[(1, 30), (1, 60)]);
    sim.clone_identity(1);
    chat(&mut sim, 1, 0, 9);
    delay_bells(&mut sim, 1, 2);
    sim.advance(ms(70));
    assert_eq!(sim.ghosts().map(|(peer, _)| peer.boot.get()).collect::<Vec<_>>(), [1, 2]);
    sim.advance(ms(200));
    assert_eq!(sim.ghosts().count(), 0);
    assert_eq!(ghost_heard(&sim, 1).last(), Some(&(ms(81), Heard::Told(LATER_LIFE + 3))));
    sim.crash(1);
    sim.clone_identity(1);
    assert_eq!((sim.status(1), sim.ghosts().count()), (Status::Down, 0), "nobody to clone");
}

#[test]
fn a_ghost_keeps_the_clock_it_had() {
    let mut sim = parrots(2, &[(0, 1_000)], &[]);
    sim.start_all(&[0, 1], State::Lost);
    sim.drift(0, 100_000);
    sim.clone_identity(0);
    sim.drift(0, 0);
    sim.advance(ms(910));
    assert_eq!((ghost_heard(&sim, 0).len(), heard(&sim, 0).len()), (1, 0));
    sim.advance(ms(1_001));
    assert_eq!(heard(&sim, 0).len(), 1);
}

#[test]
fn the_trace_tells_what_a_node_was_told() {
    let trace = |news: u8| {
        let mut sim = parrots(2, &[], &[]);
        sim.start_all(&[0, 1], State::Lost);
        sim.feed(0, news);
        sim.trace_hash()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}
