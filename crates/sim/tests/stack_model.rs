//! Full nodes, gossip membership and an election above it, checked around the regular history: three of them, one of
//! which may restart, with its disk or without.

use std::collections::BTreeMap;

use bellwether_proto::{
    Boot, Duration, Election, ElectionId, Epoch, NodeId, Peer, Seed, Time,
    election::churn_tolerant::{self, Variant},
    membership::medley::{self, Contact, Strategy},
    stack::{self, Stack},
};
use bellwether_sim::check::explore::{Explored, Judge, Kind, Model, Settings, Step, explore};

/// What a node says of who leads never carries a smaller epoch than before, unless its disk was lost.
#[derive(Clone, Default)]
struct EpochsGrow {
    last: BTreeMap<NodeId, Epoch>,
    advanced: bool,
    lenient: bool,
}

impl Judge<Stack> for EpochsGrow {
    /// In how many histories somebody saw one epoch follow another.
    type Tally = u64;

    fn step(&mut self, step: &Step<'_, Stack>) -> Result<(), String> {
        let elections = step.machine.elections();
        for epoch in elections.filter_map(|(_, election)| election.leadership().epoch) {
            let node = step.peer.id;
            if let Some(before) = self.last.insert(node, epoch) {
                self.advanced |= epoch > before;
                if epoch < before {
                    return Err(format!("{node} says {epoch} after {before}"));
                }
            }
        }
        Ok(())
    }

    fn restarted(&mut self, _now: Time, peer: Peer, lost: bool) {
        if lost && self.lenient {
            self.last.remove(&peer.id);
        }
    }

    fn tally(&self, advanced: &mut u64) {
        *advanced += u64::from(self.advanced);
    }

    fn merge(advanced: &mut u64, other: u64) {
        *advanced += other;
    }
}

fn node(me: Peer, durable: Option<stack::Durable>) -> Stack {
    let membership = medley::Config::new(Strategy::Both, medley::Form::Hardened);
    let election = churn_tolerant::Config::new(Variant::Hybrid, churn_tolerant::Form::Hardened);
    let contact =
        |id| Contact { id: NodeId::new(id), distance: 1.0, neighbour: true, member: true };
    let contacts = (0..COUNT).filter(|&id| id != me.id.get()).map(contact).collect();
    let elections = [(ElectionId::named("main"), election)];
    Stack::new(me, membership, &elections, Seed::new(me.id.get() + 1), durable, contacts)
}

fn at(seconds: u64) -> Time {
    Time::from_micros(seconds * 1_000_000)
}

fn check(judge: EpochsGrow, settings: &Settings) -> Explored<u64> {
    let peers = (0..COUNT).map(|id| Peer::new(NodeId::new(id), Boot::new(1)));
    let model = Model::new(peers.map(|peer| (peer, node(peer, None)))).with_restarts(node);
    let explored = explore(&model, settings, judge);
    let Explored { states, histories, tally, .. } = explored;
    println!("{states} states, {histories} histories, epochs followed in {tally}");
    explored
}

/// Messages are late and lost, and a node crashes and comes back, perhaps without its disk.
fn troubles(deviations: u32, most: u64) -> Settings {
    let settings = Settings {
        deviations,
        until: at(40),
        most,
        down: vec![Duration::from_millis(500), Duration::from_secs(8)],
        ..Settings::new(at(5), at(12))
    };
    settings.allow(Kind::Crash, 1, []).allow(Kind::Restart, 1, []).allow(Kind::LostDisk, 1, [])
}

fn holds(explored: &Explored<u64>) {
    if let Some(violation) = &explored.violation {
        panic!("{violation}");
    }
    assert!(explored.tally > 0, "{explored:?}");
}

#[test]
fn epochs_only_grow() {
    holds(&check(EpochsGrow { lenient: true, ..EpochsGrow::default() }, &troubles(2, 150_000)));
}

/// Who has lost its disk, and has nobody to tell it, goes back: the checker would notice.
#[test]
fn a_lost_disk_is_noticed() {
    let settings = Settings { window: (at(5), at(40)), until: at(60), ..troubles(4, 400_000) };
    let settings = [Kind::Delay, Kind::Loss, Kind::Restart]
        .into_iter()
        .fold(settings, |settings, kind| settings.allow(kind, 0, []))
        .allow(Kind::Crash, 3, []);
    let violation = check(EpochsGrow::default(), &settings).violation;
    println!("{}", violation.expect("an epoch that goes back"));
}

/// The same, deeper; some seconds.
#[test]
#[ignore = "millions of states"]
fn in_millions_of_states() {
    let judge = EpochsGrow { lenient: true, ..EpochsGrow::default() };
    holds(&check(judge, &troubles(3, 6_000_000)));
}

const COUNT: u64 = 3;
