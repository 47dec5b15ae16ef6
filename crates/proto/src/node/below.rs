//! What the stack below did, and what the elections beside it are told of it.

use alloc::vec::Vec;

use super::{About, Contest, Event, Kept, Listed, Message, Node, relay::detours};
use crate::{
    election::churn_tolerant,
    id::{NodeId, Peer},
    machine::{Effect, OutboxOf},
    membership::medley::MembershipEvent,
    stack::{self, Profile},
    time::Time,
};

impl Node {
    pub(super) fn send_stack(
        &mut self,
        now: Time,
        to: NodeId,
        message: stack::Message,
        out: &mut OutboxOf<Self>,
    ) {
        if let stack::Message::Election(group, said) = &message
            && let Ok(at) = self.position(*group)
        {
            let seat = &mut self.seats[at];
            if seat.barred.is_some() || self.senses.hushed {
                return;
            }
            seat.sent.all += 1;
            let elects = !matches!(said, churn_tolerant::Message::Leader(_));
            seat.sent.electing += u64::from(elects);
            if self.disk.holds(&self.durable, *group) {
                seat.held.push(Effect::Send { to, message: Message::Stack(message) });
                return;
            }
        }
        let message = Message::Stack(message);
        for (by, message) in detours(now, self.me, to, &message, &mut self.paths) {
            out.send(by, message);
        }
        out.send(to, message);
    }

    pub(super) fn drain(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        loop {
            while let Some(effect) = self.below.pop() {
                match effect {
                    Effect::Send { to, message } => self.send_stack(now, to, message, out),
                    Effect::Broadcast(message) => self.tell_some(now, &message, out),
                    Effect::Multicast(message) => self.tell_all(now, &message, out),
                    Effect::Persist(durable) => self.keep_stack(&durable, out),
                    Effect::Emit(stack::Event::Membership(event)) => {
                        self.on_membership(now, event, out);
                        out.emit(Event::Membership(event));
                    }
                    Effect::Emit(stack::Event::Election(..)) => {}
                }
            }
            if core::mem::take(&mut self.listed_changed) {
                self.tell_listed(now, out);
            }
            if !core::mem::take(&mut self.moved) {
                return;
            }
            self.measure(now);
        }
    }

    fn keep_stack(&mut self, durable: &stack::Durable, out: &mut OutboxOf<Self>) {
        let mut news = false;
        for &(group, durable) in &durable.elections {
            let kept = Kept::Eventual(durable);
            if self.durable.elections.get(&group) != Some(&kept) {
                self.durable.elections.insert(group, kept);
                news = true;
            }
        }
        if news {
            self.persist(out);
        }
    }

    fn on_membership(&mut self, now: Time, event: MembershipEvent, out: &mut OutboxOf<Self>) {
        self.each(now, out, |contest, port| {
            if let Contest::Learned(learned) = contest {
                learned.on_membership(event, port);
            }
        });
        self.listed_changed = true;
        self.note_company(event);
        let id = event.id();
        let about = self.stack.membership().introduction_of(id);
        let about = about.and_then(|known| About::from_details(&known.details));
        let placed = self.plan.about.position.is_some();
        let known = self.known.entry(id).or_default();
        if let Some(about) = about {
            known.name = about.name;
            self.moved |= placed && known.position != about.position;
            known.position = about.position;
        }
        if matches!(event, MembershipEvent::Failed { .. } | MembershipEvent::Left(_)) {
            self.seats.iter_mut().for_each(|seat| {
                seat.beliefs.remove(&id);
            });
        }
    }

    /// Tells those beside the stack who is alive, after the membership has changed.
    fn tell_listed(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.seats.iter().all(|seat| matches!(seat.contest, Contest::Eventual)) {
            return;
        }
        let membership = self.stack.membership();
        self.known.retain(|&id, _| membership.record_of(id).is_some());
        let lives = membership.members().filter_map(|member| {
            let (_, boot, _) = membership.record_of(member.id)?;
            Some(Peer::new(member.id, boot))
        });
        let standings = |id| {
            let known = membership.introduction_of(id)?;
            Some(Profile::from_details(&known.details).ok()?.standings)
        };
        let mut listed: Vec<Listed> = lives
            .map(|peer| Listed {
                peer,
                name: self.known.get(&peer.id).map(|known| known.name.clone()).unwrap_or_default(),
                standings: standings(peer.id).unwrap_or_default(),
            })
            .collect();
        let name = self.plan.about.name.clone();
        listed.push(Listed { peer: self.me, name, standings: self.standings() });
        self.each(now, out, |contest, port| match contest {
            Contest::Eventual | Contest::Announced(_) => {}
            Contest::Leased(leased) => leased.on_listed(&listed, port),
            Contest::Learned(learned) => learned.on_listed(&listed, port),
            Contest::Central(central) => central.on_listed(&listed, port),
        });
    }
}
