//! Any election on a segment with scripted losses, and what the rules say of two of them side by side.

use std::boxed::Box;

use proptest::prelude::*;

use super::*;
use crate::election::announce::baseline::{Sup, SupConfig};

/// The chapter's `Δ`.
pub(super) const DELAY: Duration = Duration::from_millis(100);

/// Whether a copy arrives, given sender, receiver and which message of the sender it is, from 1.
pub(super) type Arrives = Box<dyn Fn(u64, u64, u64) -> bool>;

/// Nodes that all start at zero. Deliveries come before timers at one instant.
pub(super) struct Group<M: Machine> {
    pub(super) nodes: Vec<(Peer, M)>,
    /// Arrival, sender, receiver, sent, message.
    in_flight: Vec<(Time, Peer, NodeId, u64, M::Message)>,
    arrives: Arrives,
    now: Time,
    /// When (ms) and who.
    pub(super) sent: Vec<(u64, u64)>,
    /// When sent (ms), by whom, and to whom it was delivered.
    pub(super) received: Vec<(u64, u64, u64)>,
}

impl<M: Machine> Group<M> {
    pub(super) fn new(nodes: Vec<(Peer, M)>, arrives: Arrives) -> Self {
        let mut group = Self {
            nodes,
            in_flight: vec![],
            arrives,
            now: Time::ZERO,
            sent: vec![],
            received: vec![],
        };
        for index in 0..group.nodes.len() {
            group.input(index, Input::Start);
        }
        group
    }

    fn input(&mut self, index: usize, input: InputOf<'_, M>) {
        let mut out = Outbox::new();
        let (from, machine) = &mut self.nodes[index];
        let from = *from;
        machine.handle(self.now, input, &mut out).unwrap();
        while let Some(effect) = out.pop() {
            let Effect::Multicast(message) = effect else { continue };
            let (id, now) = (from.id.get(), self.now.as_micros() / 1_000);
            self.sent.push((now, id));
            let nth = self.sent.iter().filter(|sent| sent.1 == id).count() as u64;
            for (to, _) in self.nodes.iter().filter(|(to, _)| to.id != from.id) {
                if (self.arrives)(id, to.id.get(), nth) {
                    let flight = (self.now + DELAY, from, to.id, now, message.clone());
                    self.in_flight.push(flight);
                }
            }
        }
    }

    /// Everything before `end` (ms).
    pub(super) fn run(&mut self, end: u64) {
        loop {
            let arrival = self.in_flight.iter().map(|flight| flight.0).min();
            let timer = self.nodes.iter().filter_map(|(_, node)| Some(node.deadline()?.0)).min();
            let next = arrival.unwrap_or(Time::NEVER).min(timer.unwrap_or(Time::NEVER));
            if next >= at(end) {
                return;
            }
            self.now = next;
            let due: Vec<_> = self.in_flight.extract_if(.., |flight| flight.0 <= next).collect();
            for (_, from, to, sent, message) in due {
                self.received.push((sent, from.id.get(), to.get()));
                let index = self.nodes.iter().position(|(peer, _)| peer.id == to).unwrap();
                let input = Input::Message { from, via: from.id, message: &message };
                self.input(index, input);
            }
            for index in 0..self.nodes.len() {
                self.input(index, Input::Timeout);
            }
        }
    }

    pub(super) fn sent_by(&self, id: u64) -> Vec<u64> {
        self.sent.iter().filter(|sent| sent.1 == id).map(|sent| sent.0).collect()
    }

    pub(super) fn leader(&self, id: u64) -> Option<u64>
    where
        M: Election,
    {
        let (_, node) = self.nodes.iter().find(|(peer, _)| peer.id.get() == id).unwrap();
        node.leadership().leader.map(NodeId::get)
    }

    /// Who spoke at all, ascending.
    fn senders(&self) -> Vec<u64> {
        let mut senders: Vec<_> = self.sent.iter().map(|sent| sent.1).collect();
        senders.sort_unstable();
        senders.dedup();
        senders
    }
}

/// Nodes 1, 2, … with these waits (ms).
pub(super) fn nodes<M>(waits: &[u64], make: impl Fn(Peer, Suppression) -> M) -> Vec<(Peer, M)> {
    let node = |(id, &wait)| {
        let me = peer(id, 1);
        (me, make(me, Suppression::Fixed(ms(wait))))
    };
    (1..).zip(waits).map(node).collect()
}

fn election(waits: &[u64], criterion: Criterion, arrives: Arrives) -> Group<Announce> {
    let make = |me, wait| {
        let config = Config::new(ms(1_000), None, wait, Rules::Corrected).unwrap();
        Announce::new(me, config.with_criterion(criterion).unwrap(), Seed::new(1), None)
    };
    Group::new(nodes(waits, make), arrives)
}

fn suppression(waits: &[u64], arrives: Arrives) -> Group<Sup> {
    let make = |me, wait| Sup::new(me, SupConfig::new(wait).unwrap(), Seed::new(1));
    Group::new(nodes(waits, make), arrives)
}

/// One coin for each message and receiver.
fn uncorrelated(seed: u64, loss: f64) -> Arrives {
    Box::new(move |from, to, nth| {
        !Seed::new(seed).indexed(from).indexed(to).indexed(nth).rng().chance(loss)
    })
}

/// One coin for each message, the same for all receivers.
fn correlated(seed: u64, loss: f64) -> Arrives {
    Box::new(move |from, _, nth| !Seed::new(seed).indexed(from).indexed(nth).rng().chance(loss))
}

proptest! {
    /// P4: who is suppressed stays silent for ever, and who has begun stops once at most.
    #[test]
    fn p4_the_suppressed_stay_silent_without_a_listen_timeout(
        waits in prop::collection::vec(0..900_u64, 1..12), seed: u64, loss in 0.0..0.9,
        wake: bool,
    ) {
        let criterion = if wake { Criterion::Wake } else { Criterion::Identity };
        let mut group = election(&waits, criterion, uncorrelated(seed, loss));
        group.run(8_000);
        for (id, &wait) in (1..).zip(&waits) {
            let sent = group.sent_by(id);
            let beats: Vec<_> = (0..sent.len() as u64).map(|beat| wait + beat * 1_000).collect();
            prop_assert_eq!(sent, beats, "node {}", id);
        }
        // P3 under loss: the best never stops.
        let earliest = waits.iter().zip(1_u64..).map(|(&wait, id)| (u64::MAX - wait, id)).max();
        let best = if wake { earliest.unwrap().1 } else { waits.len() as u64 };
        prop_assert_eq!(group.sent_by(best).len(), 8);
    }

    /// P5: in the first round LE-M is SUP, whatever is lost. A wait of zero is left out: it leaves no
    /// instant at which to be suppressed.
    #[test]
    fn p5_the_first_round_of_le_m_is_sup(
        waits in prop::collection::vec(1..900_u64, 1..12), seed: u64, loss in 0.0..1.0,
    ) {
        for arrives in [uncorrelated, correlated] {
            let mut election = election(&waits, Criterion::Wake, arrives(seed, loss));
            let mut suppression = suppression(&waits, arrives(seed, loss));
            election.run(900);
            suppression.run(900);
            prop_assert_eq!(election.sent, suppression.sent);
        }
    }

    /// P6: LE-S says at least as much as SUP, if losses strike all receivers alike.
    #[test]
    fn p6_le_s_senders_include_those_of_sup(
        waits in prop::collection::vec(1..900_u64, 1..12), seed: u64, loss in 0.0..1.0,
    ) {
        let mut election = election(&waits, Criterion::Identity, correlated(seed, loss));
        let mut suppression = suppression(&waits, correlated(seed, loss));
        election.run(900);
        suppression.run(900);
        let senders = election.senders();
        prop_assert!(suppression.senders().iter().all(|id| senders.contains(id)));
    }

    /// P10: LE-S is later than LE-A by exactly the best node's draw.
    #[test]
    fn p10_suppression_costs_the_draw_of_the_best(
        waits in prop::collection::vec(0..900_u64, 2..9), seed: u64, loss in 0.0..0.6,
    ) {
        let best = waits.len() as u64;
        // When the announcement of the best that made everybody know it was sent.
        let last_told = |waits: &[u64]| {
            let mut group = election(waits, Criterion::Identity, uncorrelated(seed, loss));
            group.run(60_000);
            let told = (1..best).map(|id| {
                let heard = |&&(_, from, to): &&(u64, u64, u64)| (from, to) == (best, id);
                group.received.iter().find(heard).map(|received| received.0)
            });
            told.collect::<Option<Vec<_>>>().map(|told| told.into_iter().max().unwrap())
        };
        if let (Some(at_once), Some(waited)) = (last_told(&vec![0; waits.len()]), last_told(&waits)) {
            prop_assert_eq!(waited, at_once + waits[waits.len() - 1]);
        }
    }
}
