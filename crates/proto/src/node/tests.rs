//! Nodes that talk to each other over a network without faults.

use alloc::{collections::BTreeMap, format, vec, vec::Vec};

use super::*;
use crate::machine::Effect;

/// Some nodes that know each other, and what is on its way.
struct Group3 {
    nodes: Vec<Node>,
    mail: BTreeMap<(Time, u64), (Peer, NodeId, Message)>,
    sent: u64,
    outbox: OutboxOf<Node>,
}

impl Group3 {
    fn leased() -> Self {
        let names = (0..3).map(|index| format!("node-{index}"));
        let leased = LeasedSettings::of(names.clone());
        let elections = vec![ElectionSettings::of("default", ModeSettings::Leased(leased))];
        let ids: Vec<NodeId> = (0..3).map(NodeId::new).collect();
        let node = |(name, &id): (String, &NodeId)| {
            let settings = Settings::new(&name, TimingProfile::Lan.timing(), elections.clone());
            let me = Peer::new(id, Boot::new(1));
            let node = Node::new(me, settings.plan().unwrap(), Seed::new(id.get()), None);
            node.with_seeds(ids.clone())
        };
        let nodes = names.zip(&ids).map(node).collect();
        Self { nodes, mail: BTreeMap::new(), sent: 0, outbox: Outbox::new() }
    }

    fn handle(&mut self, now: Time, to: usize, input: InputOf<'_, Node>) {
        // Whatever is refused is refused: who is not known yet is not heard.
        let _ = self.nodes[to].handle(now, input, &mut self.outbox);
        while let Some(effect) = self.outbox.pop() {
            if let Effect::Send { to: receiver, message } = effect {
                self.sent += 1;
                let at = now + Duration::from_millis(1);
                self.mail.insert((at, self.sent), (self.nodes[to].me, receiver, message));
            }
        }
    }

    fn run(&mut self, until: Time) {
        (0..3).for_each(|node| self.handle(Time::ZERO, node, Input::Start));
        loop {
            let due = |node: &Node| node.deadline().map_or(Time::NEVER, |(at, _)| at);
            let (woken, at) =
                self.nodes.iter().map(due).enumerate().min_by_key(|&(_, at)| at).unwrap();
            let arrives = self.mail.keys().next().copied();
            match arrives.filter(|&(arrival, _)| arrival <= at) {
                Some((now, _)) if now >= until => return,
                Some(key) => {
                    let (from, to, message) = self.mail.remove(&key).unwrap();
                    let input = Input::Message { from, via: from.id, message: &message };
                    self.handle(key.0, to.get() as usize, input);
                }
                None if at >= until => return,
                None => self.handle(at, woken, Input::Timeout),
            }
        }
    }
}

/// They took each other's answers for questions: 29,551 messages in 80 s, and millions in larger groups.
#[test]
fn those_that_have_founded_a_ring_do_not_answer_each_other_for_ever() {
    let mut group = Group3::leased();
    let end = Time::from_micros(80_000_000);
    group.run(end);
    let leaders =
        group.nodes.iter().map(|node| node.leadership_of(ElectionId::named("default"), end));
    assert!(leaders.filter(|answer| answer.leader.is_some()).count() >= 2, "a ring was founded");
    assert!(group.sent < 5_000, "{}", group.sent);
}

/// A node alone, on a disk that takes its time over everything.
struct Slow {
    node: Node,
    out: OutboxOf<Node>,
    said: Vec<Message>,
    events: Vec<Event>,
    writing: bool,
    now: Time,
}

impl Slow {
    fn new() -> Self {
        let modes = [
            ("door", ModeSettings::Announced(AnnouncedSettings::default())),
            ("place", ModeSettings::Central(CentralSettings::default())),
        ];
        let elections = modes.map(|(name, mode)| ElectionSettings::of(name, mode)).into();
        let plan = Settings::new("a", TimingProfile::Lan.timing(), elections).plan().unwrap();
        let node = Node::new(Peer::new(NodeId::new(1), Boot::new(1)), plan, Seed::new(1), None);
        let (said, events) = (Vec::new(), Vec::new());
        let mut slow =
            Self { node, out: Outbox::new(), said, events, writing: false, now: Time::ZERO };
        slow.give(Input::Start);
        slow
    }

    fn give(&mut self, input: InputOf<'_, Node>) {
        let _ = self.node.handle(self.now, input, &mut self.out);
        let mut asked = false;
        while let Some(effect) = self.out.pop() {
            match effect {
                Effect::Persist(_) => {
                    assert!(!self.writing, "one at a time");
                    asked = true;
                }
                Effect::Emit(event) => self.events.push(event),
                _ if asked => {}
                Effect::Send { message, .. }
                | Effect::Broadcast(message)
                | Effect::Multicast(message) => self.said.push(message),
            }
        }
        if asked {
            self.writing = true;
            self.give(Input::Feed(Fact::Writing));
        }
    }

    fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while let Some((at, _)) = self.node.deadline().filter(|(at, _)| *at <= end) {
            self.now = at;
            self.give(Input::Timeout);
        }
        self.now = end;
    }

    fn answers(&mut self, fact: Fact) {
        self.writing = false;
        self.give(Input::Feed(fact));
    }

    fn says(&self, name: &str) -> usize {
        let group = ElectionId::named(name);
        self.said.iter().filter(|message| message.election() == Some(group)).count()
    }

    fn answer(&self) -> Leadership {
        self.node.leadership_of(ElectionId::named("door"), self.now)
    }
}

#[test]
fn what_rests_on_a_write_waits_for_it_and_nothing_else_does() {
    let mut slow = Slow::new();
    slow.pass(600);
    assert!(slow.writing, "it is about to lead");
    let beacons = slow.says("place");
    slow.pass(500);
    assert!(slow.says("place") > beacons, "the other election goes on");
    assert_eq!((slow.says("door"), slow.answer().leader), (0, None));
    assert!(matches!(slow.answer().why, Why::BeingKept { .. }), "{:?}", slow.answer());
    slow.answers(Fact::Kept);
    assert_eq!(slow.answer().leader, Some(NodeId::new(1)));
    assert!(slow.says("door") > 0 && !slow.writing, "what it has waited with is said");
    assert_eq!(slow.events, []);
}

#[test]
fn a_disk_that_hangs_is_one_that_refuses_until_it_answers() {
    for refuses in [false, true] {
        let mut slow = Slow::new();
        slow.pass(10_000);
        assert_eq!((slow.says("door"), &slow.events[..]), (0, &[Event::DiskRefused][..]));
        assert!(matches!(slow.answer().why, Why::NotKept { .. }), "{:?}", slow.answer());
        assert!(slow.says("place") > 10);
        if refuses {
            slow.answers(Fact::NotKept);
            slow.pass(900);
            assert!(!slow.writing, "it is asked again in a while");
            slow.pass(200);
            assert!(slow.writing);
        }
        // What it held back is forgotten: it stands anew.
        slow.answers(Fact::Kept);
        assert_eq!((slow.says("door"), slow.answer().leader), (0, None));
        assert_eq!(slow.events, [Event::DiskRefused, Event::DiskRecovered]);
        for _ in 0..20 {
            slow.pass(100);
            if slow.writing {
                slow.answers(Fact::Kept);
            }
        }
        assert_eq!(slow.answer().leader, Some(NodeId::new(1)), "{:?}", slow.answer());
        assert!(slow.says("door") > 0);
    }
}

/// What a leader holds back is what the others listen for. Said a second late it deposed whoever they had elected.
#[test]
fn a_leader_that_could_not_speak_while_another_claimed_follows_it() {
    for (claims, follows) in [(1, false), (4, true)] {
        let mut slow = Slow::new();
        for _ in 0..30 {
            slow.pass(100);
            if slow.writing {
                slow.answers(Fact::Kept);
            }
        }
        assert_eq!(slow.answer().leader, Some(NodeId::new(1)));
        let rival = Peer::new(NodeId::new(9), Boot::new(1));
        let claim = |slow: &mut Slow, sequence, epoch| {
            let period = Duration::from_millis(300);
            let it = announce::Announcement {
                sequence,
                epoch,
                period,
                ..announce::Announcement::default()
            };
            let group = ElectionId::named("door");
            let message = Message::Announced(group, announce::Message::Announce(it));
            slow.give(Input::Message { from: rival, via: rival.id, message: &message });
        };
        // It has to write before it contradicts the first of these.
        let said = slow.says("door");
        for sequence in 1..=4 {
            if sequence <= claims {
                claim(&mut slow, sequence, 7);
            }
            assert!(slow.writing);
            slow.pass(240);
        }
        assert_eq!((slow.says("door"), &slow.events[..]), (said, &[][..]));
        slow.answers(Fact::Kept);
        assert_eq!(
            slow.says("door") == said,
            follows,
            "it says what it has held back, or forgets it"
        );
        if follows {
            assert_eq!(slow.answer().leader, None);
            // As it is told, its epoch is behind what we have minted.
            claim(&mut slow, 5, 20);
            assert!(slow.writing);
            slow.answers(Fact::Kept);
            assert_eq!(slow.answer().leader, Some(rival.id));
        } else {
            assert_eq!(slow.answer().leader, Some(NodeId::new(1)));
        }
    }
}
