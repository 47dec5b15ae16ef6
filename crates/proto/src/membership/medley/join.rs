//! Joining (R13) and comparing: fetching the list, page by page.
//!
//! A joiner fetches all pages in a row. Whoever is in already fetches one page from somebody now and
//! then, going round the list: what gossip has missed is repaired in time, at a load that does not grow
//! with the group.

use alloc::vec::Vec;

use super::{Body, Introduction, Medley, Message, Reach, Role, Timer, Update, message::ROOM};
use crate::{
    id::{NodeId, Peer},
    machine::OutboxOf,
    mechanism::sampling::one_of,
    time::Time,
    wire::Wire,
};

/// Going round the list, a page at a time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Syncing {
    /// Who has not answered which question yet.
    open: Option<(NodeId, u64)>,
    after: Option<NodeId>,
    /// Somebody heard of late whose introduction, of its present incarnation, has not come.
    stranger: Option<NodeId>,
}

/// A page of the list, and where those on it can be reached.
pub(super) struct Page {
    pub(super) updates: Vec<Update>,
    introductions: Vec<Introduction>,
    /// Where the next page begins, if there is one.
    pub(super) next: Option<NodeId>,
}

/// Who asks for the page behind some node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    Join { after: Option<NodeId> },
    Sync { after: Option<NodeId> },
}

/// Whom we have asked for the list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Joining {
    introducer: NodeId,
    sequence: u64,
    /// How many contacts have been asked in vain.
    tried: usize,
    /// Whether the answers so far named somebody we had not listed.
    found: bool,
}

impl Medley {
    /// Asks the next contact for the list from its beginning: neighbours first, then by distance.
    pub(super) fn join(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let mut contacts: Vec<usize> = (0..self.table.positions()).collect();
        contacts.sort_by(|&a, &b| {
            let key = |at| !self.table.is_neighbour(at);
            let by_distance = || self.table.distance(a).total_cmp(&self.table.distance(b));
            key(a).cmp(&key(b)).then_with(by_distance)
        });
        let tried = self.joining.take().map_or(0, |joining| joining.tried + 1);
        if contacts.is_empty() {
            return;
        }
        let introducer = self.table.id(contacts[tried % contacts.len()]);
        let joining = Joining { introducer, sequence: 0, tried, found: false };
        self.ask(now, joining, None, out);
    }

    /// Asks for the list once more, somebody else: where many join at once, introducers are as new as we.
    fn join_again(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let listed = |at| self.table.is_listed(at);
        match one_of(self.table.positions(), &mut self.rng, listed) {
            Some(at) => {
                let introducer = self.table.id(at);
                let joining = Joining { introducer, sequence: 0, tried: 0, found: false };
                self.ask(now, joining, None, out);
            }
            None => self.join(now, out),
        }
    }

    /// Somebody is there whom nobody has told us about.
    pub(super) fn on_found(&mut self, now: Time, id: NodeId, out: &mut OutboxOf<Self>) {
        let listed = |at| self.table.is_listed(at);
        if id == self.me.id || self.table.position(id).is_some_and(listed) {
            return;
        }
        let known = self.table.position(id).or_else(|| self.admit(id));
        // One question at a time; whoever found it will find it again.
        if known.is_some() && self.joining.is_none() && self.role == Role::Running {
            let joining = Joining { introducer: id, sequence: 0, tried: 0, found: false };
            self.ask(now, joining, None, out);
        }
    }

    /// Somebody we ask does not answer, or it is time to ask again.
    pub(super) fn on_join_timer(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        if self.table.listed() == 0 {
            self.join(now, out);
        } else {
            self.join_again(now, out);
        }
    }

    fn ask(
        &mut self,
        now: Time,
        joining: Joining,
        after: Option<NodeId>,
        out: &mut OutboxOf<Self>,
    ) {
        self.sequence += 1;
        self.joining = Some(Joining { sequence: self.sequence, ..joining });
        self.timers.set(Timer::Join, now + self.config.join_retry);
        self.send(now, joining.introducer, self.sequence, Body::Join { after }, out);
    }

    /// Somebody was listed that had not been.
    pub(super) fn note_found(&mut self) {
        if let Some(joining) = &mut self.joining {
            joining.found = true;
        }
    }

    /// Asks for one page: whoever has not introduced itself, for its answer does, or now and then a random member.
    pub(super) fn sync(&mut self, now: Time, out: &mut OutboxOf<Self>) {
        let Some(periods) = self.config.sync else { return };
        if self.table.listed() == 0 {
            return;
        }
        let drawn = self.rng.below(u64::from(periods)) == 0;
        let stranger = self.syncing.stranger.take().filter(|&id| self.is_stranger(id));
        let listed = |at| self.table.is_listed(at);
        let partner = match stranger {
            None if drawn => one_of(self.table.positions(), &mut self.rng, listed).map(|at| {
                let id = self.table.id(at);
                match self.relays.reach(id) {
                    Reach::Direct => id,
                    Reach::Through(relay) => relay,
                }
            }),
            stranger => stranger,
        };
        if let Some(partner) = partner {
            self.sequence += 1;
            self.syncing.open = Some((partner, self.sequence));
            let after = self.syncing.after;
            self.send(now, partner, self.sequence, Body::Sync { after }, out);
        }
    }

    /// News of somebody may come without its introduction, for want of room in a packet or because the news was in the
    /// head of one. Nobody would pass it on again, so it is asked itself.
    pub(super) fn note_stranger(&mut self, id: NodeId) {
        if self.syncing.stranger.is_none() && self.is_stranger(id) {
            self.syncing.stranger = Some(id);
        }
    }

    /// Whether others introduce themselves here, and this member has not since it last changed.
    fn is_stranger(&self, id: NodeId) -> bool {
        let at = self.table.position(id).filter(|&at| self.table.is_listed(at));
        !self.directory.is_silent()
            && at.is_some_and(|at| self.directory.life_of(id) < Some(self.table.life(at)))
    }

    /// The page has been merged; the next time another.
    pub(super) fn on_sync_ack(&mut self, next: Option<NodeId>) {
        self.syncing = Syncing { open: None, after: next, ..self.syncing };
    }

    /// Whether `message` of `from` is no answer, or one to the question asked last.
    pub(super) fn is_expected(&self, from: NodeId, message: &Message) -> bool {
        let answer = (from, message.sequence);
        match message.body {
            Body::JoinAck { .. } => {
                self.joining.is_some_and(|it| (it.introducer, it.sequence) == answer)
            }
            Body::SyncAck { .. } => self.syncing.open == Some(answer),
            _ => true,
        }
    }

    /// What we hold of everybody behind `after`, as far as it fits one datagram. If the joiner itself
    /// has a tombstone that outlived it, that is among it, and the joiner contradicts.
    pub(super) fn page(&self, after: Option<NodeId>) -> Page {
        let mut updates: Vec<Update> = Vec::new();
        let mut introductions = Vec::from_iter(self.introduction(self.me.id));
        let ours: usize = introductions.iter().map(Wire::encoded_len).sum();
        let (mut room, mut next) = (ROOM - ours, None);
        let first = after.map_or(0, |after| self.table.behind(after));
        for record in (first..self.table.positions()).filter_map(|at| self.record(at)) {
            let introduction =
                self.introduction(record.subject.id).filter(|_| record.status.is_alive());
            let length = record.encoded_len() + introduction.as_ref().map_or(0, Wire::encoded_len);
            let Some(left) = room.checked_sub(length) else {
                next = updates.last().map(|last| last.subject.id);
                break;
            };
            room = left;
            updates.push(record);
            introductions.extend(introduction);
        }
        Page { updates, introductions, next }
    }

    /// Answers with a page. Not while leaving: the answer would introduce us to somebody who has not heard our
    /// goodbye, and whoever asks will ask somebody else in time.
    pub(super) fn on_question(
        &mut self,
        from: Peer,
        sequence: u64,
        question: Question,
        out: &mut OutboxOf<Self>,
    ) {
        let (Question::Join { after } | Question::Sync { after }) = question;
        if self.role == Role::Leaving {
            return;
        }
        let Page { updates, introductions, next } = self.page(after);
        let body = match question {
            Question::Join { .. } => Body::JoinAck { next },
            Question::Sync { .. } => Body::SyncAck { next },
        };
        let incarnation = self.incarnation;
        out.send(from.id, Message { sequence, incarnation, body, updates, introductions });
    }

    /// A page has been merged: ask for the next. If the list had anybody new on it, and hardened, ask
    /// somebody else for theirs in a while, until nobody can name us another.
    pub(super) fn on_join_ack(
        &mut self,
        now: Time,
        next: Option<NodeId>,
        out: &mut OutboxOf<Self>,
    ) {
        let Some(joining) = self.joining else { return };
        if next.is_some() {
            self.ask(now, joining, next, out);
            return;
        }
        self.joining = None;
        if joining.found && self.config.hardened() {
            let wait = self.config.period * 2;
            self.timers.set(Timer::Join, now + wait + self.rng.up_to(wait));
        } else {
            self.timers.clear(Timer::Join);
        }
    }
}
