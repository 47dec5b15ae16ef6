//! Runs of a churn-tolerant election on a membership.

use bellwether_proto::{
    Boot, ElectionId, Incarnation, NodeId, Peer, Seed, Time,
    churn::estimate,
    election::churn_tolerant,
    membership::medley::{self, Addresses, Contact, Introduction},
    stack::{self, Profile, Stack, Standing},
};

use super::{
    Outcome, election_outcome,
    faults::{self, ExternalInputs},
    membership::{self, Members, biased_acks, members},
};
use crate::{
    engine::{Observer, Sim},
    observe::{ElectionWatch, EventualNode, EventualWatch, Log},
    scenario::{Roles, Scenario},
    world::Disconnected,
};

/// An election on a membership. Nobody announces itself again and again: besides agreement there is what elections
/// on lists are measured by.
pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    log: Log<'_>,
    (membership, election): (medley::Config, churn_tolerant::Config),
    roles: &Roles,
) -> Result<Outcome, Disconnected> {
    let made = members(scenario, seed, stacked(membership, election, roles.clone()))?;
    let Members { world, build, moved } = made;
    let eventual = EventualWatch::new(scenario.capacity(), election)
        .with_roles(roles.attributes.clone(), roles.observers.clone());
    let watch = ElectionWatch::new(scenario.capacity(), scenario.until).telling(&log);
    let acknowledges = |message: &stack::Message| match message {
        stack::Message::Membership(message) => membership::acknowledges(message),
        stack::Message::Election(..) | stack::Message::Churn(_) => false,
    };
    let observer = ((watch, eventual), (log.opinions(), log));
    let mut sim = Sim::new(world, scenario.capacity(), Seed::new(seed), build, observer)
        .with_selective_loss(biased_acks(scenario, seed, acknowledges));
    let elect =
        stack::Command { group: ElectionId::default(), command: churn_tolerant::Command::Elect };
    let inputs = ExternalInputs { moved, elect: Some(elect), resign: None };
    faults::play(&mut sim, scenario, Seed::new(seed), inputs)?;
    let mut unhealthiness = vec![0; sim.len() as usize];
    for machine in (0..sim.len()).filter_map(|node| sim.machine(node)) {
        for member in machine.membership().members() {
            unhealthiness[member.id.get() as usize] += u64::from(member.suspicions);
        }
    }
    Ok(agreed_outcome(sim, seed, &unhealthiness))
}

/// What an election came to that was watched for agreement too.
pub(super) fn agreed_outcome<M: EventualNode, L: Observer<M>>(
    mut sim: Sim<M, ((ElectionWatch, EventualWatch), L)>,
    seed: u64,
    unhealthiness: &[u64],
) -> Outcome {
    let end = sim.now();
    sim.observer_mut().0.0.finish(end);
    let (watch, eventual) = &sim.observer().0;
    election_outcome(&sim, seed, watch, eventual.values(unhealthiness))
}

/// Members that elect. If they are not all the same, those that are there from the start have introduced themselves.
fn stacked(
    membership: medley::Config,
    election: churn_tolerant::Config,
    roles: Roles,
) -> impl Fn(Peer, Seed, Option<stack::Durable>, Vec<Contact>) -> Stack {
    let alike = roles.attributes.is_empty() && roles.observers.is_empty();
    let details = move |id: NodeId| {
        let node = id.get() as u32;
        let attribute = roles.attributes.get(node as usize).copied().unwrap_or(0);
        let standing = Standing { observer: roles.observers.contains(&node), attribute };
        let profile = Profile { standings: vec![(ElectionId::default(), standing)], rest: vec![] };
        profile.to_details().expect("one standing fits")
    };
    move |me, seed, durable, contacts| {
        let listed = contacts.iter().filter(|contact| contact.member && !alike);
        let introductions: Vec<Introduction> = listed
            .map(|contact| Introduction {
                subject: Peer::new(contact.id, Boot::new(1)),
                incarnation: Incarnation::default(),
                addresses: Addresses::default(),
                details: details(contact.id),
            })
            .collect();
        let elections = [(ElectionId::default(), election)];
        let mut node = Stack::new(me, membership, &elections, seed, durable, contacts);
        if !alike {
            node = node.with_introduction(Addresses::default(), details(me.id));
            node = node.knowing(introductions);
        }
        if roles.survey {
            let config = estimate::Config::of(10).expect("its own numbers are right");
            let config = estimate::Config { start: election.churn().into(), ..config };
            node = node.with_survey(config, election.timeout(), seed, Time::ZERO);
        }
        node
    }
}
