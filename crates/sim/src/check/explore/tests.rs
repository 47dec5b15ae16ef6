//! A machine that counts, and everything that may go wrong with it.

use std::collections::BTreeMap;

use bellwether_proto::{
    Boot, Duration, Effect, Input, InputOf, Machine, NodeId, OutboxOf, Peer, Rejected, Time,
    wire::{DecodeError, Reader, Sink, Wire},
};

use super::*;

/// What a counter says: a number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Number(u64);

impl Wire for Number {
    fn encode(&self, sink: &mut impl Sink) {
        sink.varint(self.0);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.varint("number").map(Self)
    }
}

/// Every hundred milliseconds it counts on, writes the number down, and tells everybody.
#[derive(Clone, Debug)]
struct Counter {
    number: u64,
    due: Option<Time>,
    /// Says so before it writes it down, one round later.
    hasty: bool,
    /// What it was given, for tests to look at.
    heard: Vec<String>,
}

#[derive(Clone, Debug, Hash)]
enum Told {
    NotKept,
    Hello,
}

impl Counter {
    fn new(durable: Option<u64>, hasty: bool) -> Self {
        Self { number: durable.unwrap_or(0), due: None, hasty, heard: Vec::new() }
    }
}

impl Machine for Counter {
    type Message = Number;
    type Timer = ();
    type Feed = Told;
    type Command = ();
    type Durable = u64;
    type Event = u64;

    fn handle(
        &mut self,
        now: Time,
        input: InputOf<'_, Self>,
        out: &mut OutboxOf<Self>,
    ) -> Result<(), Rejected> {
        match input {
            Input::Start => self.due = Some(now + PERIOD),
            Input::Timeout => {
                self.heard.push("timeout".to_owned());
                self.due = Some(now + PERIOD);
                if self.hasty {
                    out.persist(self.number);
                }
                self.number += 1;
                if !self.hasty {
                    out.persist(self.number);
                }
                out.emit(self.number);
                out.multicast(Number(self.number));
            }
            Input::Message { from, message, .. } => {
                self.heard.push(format!("{} {}", from.id.get(), message.0));
            }
            Input::Feed(Told::NotKept) => {
                self.heard.push("not kept".to_owned());
                self.number -= 1;
            }
            Input::Feed(told) => self.heard.push(format!("{told:?}")),
            Input::Command(()) => out.broadcast(Number(99)),
            Input::Leave => self.due = None,
        }
        Ok(())
    }

    fn deadline(&self) -> Option<(Time, ())> {
        Some((self.due?, ()))
    }
}

/// Nobody ever says a number twice.
#[derive(Clone, Debug, Default)]
struct Once {
    said: BTreeMap<NodeId, u64>,
    /// All it was told of, and what was heard in the end.
    crashed: u64,
    restarted: u64,
    heard: BTreeMap<u64, Vec<String>>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Count {
    crashed: u64,
    restarted: u64,
    histories: Vec<Vec<String>>,
}

impl Judge<Counter> for Once {
    type Tally = Count;

    fn step(&mut self, step: &Step<'_, Counter>) -> Result<(), String> {
        let node = step.peer.id;
        for effect in step.effects {
            if let Effect::Multicast(Number(number)) = effect {
                let before = self.said.insert(node, *number);
                if before.is_some_and(|before| before >= *number) {
                    return Err(format!("{node} says {number} after {before:?}"));
                }
            }
        }
        Ok(())
    }

    fn crashed(&mut self, _now: Time, _peer: Peer) {
        self.crashed += 1;
    }

    fn restarted(&mut self, _now: Time, peer: Peer, _lost: bool) {
        assert_eq!(peer.boot, Boot::new(2));
        self.restarted += 1;
    }

    fn ended(&mut self, end: &End<'_, Counter>) -> Result<(), String> {
        for (peer, machine) in &end.nodes {
            let heard = machine.map(|machine| machine.heard.clone());
            self.heard.insert(peer.id.get(), heard.unwrap_or_default());
        }
        Ok(())
    }

    fn tally(&self, tally: &mut Count) {
        tally.crashed += self.crashed;
        tally.restarted += self.restarted;
        tally.histories.push(self.heard.get(&1).cloned().unwrap_or_default());
    }

    fn merge(tally: &mut Count, other: Count) {
        tally.crashed += other.crashed;
        tally.restarted += other.restarted;
        tally.histories.extend(other.histories);
    }

    fn identity(&self, hash: &mut Digest) {
        hash.fold_value(&self.said);
    }

    fn enough(&self) -> bool {
        self.said.values().any(|&number| number > 3)
    }
}

fn model(hasty: bool) -> Model<'static, Counter> {
    let peers = [0, 1].map(|node| Peer::new(NodeId::new(node), Boot::new(1)));
    let nodes = peers.map(|peer| (peer, Counter::new(None, hasty)));
    Model::new(nodes).with_restarts(move |_, durable| Counter::new(durable, hasty))
}

fn at(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

/// Nothing goes wrong yet. Numbers take ten milliseconds, and late ones 130.
fn settings(deviations: u32) -> Settings {
    Settings {
        deviations,
        late: Duration::from_millis(130),
        until: at(350),
        down: vec![Duration::from_millis(50)],
        pauses: vec![Duration::from_millis(55)],
        allowed: BTreeMap::new(),
        ..Settings::new(at(0), at(350))
    }
}

/// What node 1 has heard at the ends of all histories that are different to it.
fn ends(model: &Model<'_, Counter>, settings: &Settings) -> Vec<String> {
    let explored = explore(model, settings, Once::default());
    assert_eq!(explored.violation, None);
    assert!(!explored.cut);
    let all: std::collections::BTreeSet<String> =
        explored.tally.histories.iter().map(|heard| heard.join(", ")).collect();
    all.into_iter().collect()
}

const REGULAR: &str = "timeout, 0 1, timeout, 0 2, timeout, 0 3";

#[test]
fn without_deviations_there_is_one_history() {
    let explored = explore(&model(false), &settings(0), Once::default());
    assert_eq!((explored.histories, explored.states), (1, 12));
    assert_eq!(ends(&model(false), &settings(2)), [REGULAR], "nothing may go wrong");
}

#[test]
fn messages_are_lost_late_and_repeated() {
    let sender = [NodeId::new(0)];
    assert_eq!(
        ends(&model(false), &settings(1).allow(Kind::Loss, 1, sender)),
        [
            "timeout, 0 1, timeout, 0 2, timeout",
            REGULAR,
            "timeout, 0 1, timeout, timeout, 0 3",
            "timeout, timeout, 0 2, timeout, 0 3"
        ]
    );
    // The third is too late for the end.
    assert_eq!(
        ends(&model(false), &settings(1).allow(Kind::Delay, 1, sender)),
        [
            "timeout, 0 1, timeout, 0 2, timeout",
            REGULAR,
            "timeout, 0 1, timeout, timeout, 0 3, 0 2",
            "timeout, timeout, 0 2, 0 1, timeout, 0 3"
        ]
    );
    assert_eq!(
        ends(&model(false), &settings(1).allow(Kind::Duplicate, 1, sender)),
        [
            "timeout, 0 1, timeout, 0 2, 0 1, timeout, 0 3",
            REGULAR,
            "timeout, 0 1, timeout, 0 2, timeout, 0 3, 0 2"
        ]
    );
    assert_eq!(
        ends(&model(false), &settings(1).allow(Kind::Cut, 1, sender)),
        [
            "timeout, 0 1, timeout, 0 2, timeout",
            REGULAR,
            "timeout, 0 1, timeout, timeout",
            "timeout, timeout, timeout"
        ]
    );
}

#[test]
fn each_kind_has_its_own_bound() {
    let lose = |most| settings(3).allow(Kind::Loss, most, [NodeId::new(0)]);
    assert_eq!(ends(&model(false), &lose(1)).len(), 1 + 3);
    assert_eq!(ends(&model(false), &lose(2)).len(), 1 + 3 + 3);
    assert_eq!(ends(&model(false), &lose(3)).len(), 1 + 3 + 3 + 1);
    let both = settings(3).allow(Kind::Loss, 1, [NodeId::new(0)]);
    let both = both.allow(Kind::Crash, 1, [NodeId::new(0)]);
    let explored = explore(&model(false), &both, Once::default());
    assert!(explored.tally.crashed > 0);
}

/// What has arrived comes before the timer, though both are overdue.
#[test]
fn mail_waits_for_who_is_paused_and_comes_first() {
    let paused = settings(1).allow(Kind::Pause, 1, [NodeId::new(1)]);
    let all = ends(&model(false), &paused);
    let first = "0 1, timeout, 0 2, timeout, 0 3".to_owned();
    assert!(all.contains(&first), "{all:?}");
    assert!(all.contains(&"timeout, 0 1, 0 2, timeout, 0 3".to_owned()), "{all:?}");
}

#[test]
fn who_comes_back_has_what_it_wrote_down() {
    let returns = settings(2).allow(Kind::Crash, 1, []).allow(Kind::Restart, 1, []);
    let explored = explore(&model(false), &returns, Once::default());
    assert_eq!(explored.violation, None);
    assert!(explored.tally.crashed > 0 && explored.tally.restarted > 0);
    // Having written a number down and crashed, it never says it.
    let node = NodeId::new(1);
    let crash = Deviation { step: 1, at: at(100), what: What::Crash { node, written: true } };
    let after = Duration::from_millis(50);
    let restart = Deviation { what: What::Restart { node, after, lost: false }, ..crash };
    let mut lines = Vec::new();
    let tell = |line: super::Told<'_>| lines.push(format!("{line:?}"));
    let judged = replay(&model(false), &returns, Once::default(), &[crash, restart], tell);
    assert_eq!(judged, Ok(()));
    assert!(lines.iter().any(|line| line.contains("n1/2 -> n0/1: Number(2)")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("n1/1 -> ")), "{lines:#?}");
}

#[test]
fn lost_disks_and_haste_are_caught_and_can_be_replayed() {
    let back = settings(2).allow(Kind::Crash, 1, []);
    for (hasty, kind) in [(false, Kind::LostDisk), (true, Kind::Restart)] {
        let settings = back.clone().allow(kind, 1, []);
        let model = model(hasty);
        let explored = explore(&model, &settings, Once::default());
        let violation = explored.violation.expect("it repeats itself");
        assert_eq!(violation.path.len(), 2, "{violation}");
        assert_eq!(violation.told.len(), 2, "{violation}");
        let mut steps = 0;
        let again = replay(&model, &settings, Once::default(), &violation.path, |_| steps += 1);
        assert_eq!(again, Err(violation.problem));
        assert!(steps > 4);
    }
}

#[test]
fn what_a_disk_refuses_is_not_said() {
    let refuses = settings(1).allow(Kind::Refusal, 1, [NodeId::new(0)]);
    let told = model(false).with_not_kept(Told::NotKept);
    assert_eq!(
        ends(&told, &refuses),
        [
            "timeout, 0 1, timeout, 0 2, timeout",
            REGULAR,
            "timeout, 0 1, timeout, timeout, 0 2",
            "timeout, timeout, 0 1, timeout, 0 2"
        ]
    );
    // Who cannot be told is down.
    assert_eq!(
        ends(&model(false), &refuses),
        [
            "timeout, 0 1, timeout, 0 2, timeout",
            REGULAR,
            "timeout, 0 1, timeout, timeout",
            "timeout, timeout, timeout"
        ]
    );
    // And may come back with what it wrote before that.
    let returns = Settings { deviations: 2, ..refuses.allow(Kind::Restart, 1, []) };
    let all = ends(&model(false), &returns);
    assert!(all.contains(&"timeout, timeout, 0 1, timeout".to_owned()), "{all:?}");
}

#[test]
fn plans_feeds_and_audiences_are_kept_to() {
    let [zero, one] = [0, 1].map(NodeId::new);
    let stranger = Peer::new(NodeId::new(7), Boot::new(1));
    let planned = || {
        model(false)
            .with_feeds(one, [Told::Hello])
            .with_script(at(120), zero, Scripted::Command(()))
            .with_script(at(150), one, Scripted::Message(stranger, Number(5)))
            .with_script(at(220), one, Scripted::Leave)
    };
    let heard = "Hello, timeout, 0 1, 0 99, 7 5, timeout, 0 2, 0 3";
    assert_eq!(ends(&planned(), &settings(0)), [heard]);
    assert_eq!(ends(&planned().with_range(zero, []), &settings(0)), [heard.replace("0 99, ", "")]);
    let nobody = heard.replace("0 1, ", "").replace(", 0 2, 0 3", "");
    assert_eq!(ends(&planned().with_group([]), &settings(0)), [nobody]);
    let silent = planned().without(|number| number.0 == 2);
    assert_eq!(ends(&silent, &settings(0)), [heard.replace("0 2, ", "")]);
    // Crashes, restarts and pauses by plan.
    let crashes = model(false).with_script(at(150), zero, Scripted::Crash);
    assert_eq!(ends(&crashes, &settings(0)), ["timeout, 0 1, timeout, timeout"]);
    let restarts =
        model(false).with_script(at(150), zero, Scripted::Restart(Duration::from_millis(20)));
    assert_eq!(ends(&restarts, &settings(0)), ["timeout, 0 1, timeout, 0 2, timeout"]);
    let pauses = model(false).with_script(at(95), one, Scripted::Pause(Duration::from_millis(55)));
    assert_eq!(ends(&pauses, &settings(0)), ["0 1, timeout, 0 2, timeout, 0 3, timeout"]);
    // A clock that is fast by a fifth.
    let fast = ends(&model(false).with_drift(one, 200_000), &settings(0));
    assert_eq!(fast, [format!("{REGULAR}, timeout")]);
}

#[test]
fn threads_make_no_difference() {
    let settings = Settings { most: 300, ..settings(3) };
    let settings = settings.allow(Kind::Loss, 3, []).allow(Kind::Delay, 3, []);
    let run = |threads, hasty, settings: &Settings| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| explore(&model(hasty), settings, Once::default()))
    };
    let one = run(1, false, &settings);
    assert!(one.cut && one.states <= 300, "{}", one.states);
    assert_eq!(one, run(4, false, &settings));
    let broken = settings.allow(Kind::Crash, 1, []).allow(Kind::Restart, 1, []);
    let one = run(1, true, &broken);
    assert!(one.violation.is_some());
    for _ in 0..20 {
        assert_eq!(one, run(4, true, &broken));
    }
}

#[test]
fn in_any_order_the_same_is_caught() {
    let orders = || {
        AnyOrder::new(|counter: &Counter, _, hash: &mut Digest| hash.fold(counter.number))
            .with_restarts(1)
    };
    let careful = explore_any_order(&model(false), &orders(), Once::default());
    assert_eq!((careful.violation, careful.cut), (None, false));
    let hasty = explore_any_order(&model(true), &orders(), Once::default());
    let told = hasty.violation.expect("it repeats itself").told;
    assert_eq!(told, ["n0: timeout", "n0: restart", "n0: timeout"]);
    let lost = orders().with_restarts(0).with_lost_disks(1);
    let lost = explore_any_order(&model(false), &lost, Once::default());
    assert!(lost.violation.is_some());
}

const PERIOD: Duration = Duration::from_millis(100);
