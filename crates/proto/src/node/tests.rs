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
        group.nodes.iter().map(|node| node.leadership_of(super::Group::named("default"), end));
    assert!(leaders.filter(|answer| answer.leader.is_some()).count() >= 2, "a ring was founded");
    assert!(group.sent < 5_000, "{}", group.sent);
}
