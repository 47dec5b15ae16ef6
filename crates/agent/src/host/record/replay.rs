//! Running a recorded node again.

use std::{io::Read, path::Path};

use bellwether_proto::{
    Duration, EffectOf, ElectionId, Leadership, Machine as _, Outbox, OutboxOf, Rejected, Seed,
    Time, node::Node,
};

use super::{
    digest::Digest,
    format::{End, Entry, Header, Outcome},
    read::{RecordError, Recording},
};

/// A node that runs again.
#[derive(Debug)]
pub struct Replay {
    node: Node,
    out: OutboxOf<Node>,
    digest: Digest,
    inputs: u64,
    began: Option<Time>,
    names: Vec<(ElectionId, String)>,
}

/// What came of one input.
#[derive(Clone, Debug)]
pub struct Step {
    /// The first is 1.
    pub number: u64,
    /// Since the first.
    pub at: Duration,
    /// What the node did, in order.
    pub effects: Vec<EffectOf<Node>>,
    /// If it was.
    pub rejected: Option<Rejected>,
    /// What comes of it now.
    pub outcome: Outcome,
    /// Whether that is what was recorded; an input of which nothing was recorded is.
    pub equal: bool,
}

/// What an election answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The name of the election.
    pub election: String,
    /// What it answers.
    pub leadership: Leadership,
    /// What the leader is called, if that is known.
    pub leader: Option<String>,
}

/// Where a node did something else than was recorded.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// What was given and recorded.
    pub entry: Entry,
    /// What comes of it now.
    pub step: Step,
}

/// A whole recording, run again.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What it was of.
    pub header: Header,
    /// How many inputs were given.
    pub inputs: u64,
    /// From the first to the last of them.
    pub span: Duration,
    /// Of all that came of them now.
    pub digest: u64,
    /// The first difference; nothing was given after it.
    pub divergence: Option<Divergence>,
    /// How the recording ends; none if it was not read to its end.
    pub end: Option<End>,
}

impl Replay {
    /// The node as it was before its first input.
    ///
    /// # Errors
    ///
    /// [`RecordError::Settings`] if this build can make no such node; `path` is for that.
    pub fn new(path: &Path, header: &Header) -> Result<Self, RecordError> {
        let plan = header.settings.plan().map_err(|error| RecordError::Settings {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        let names =
            plan.seats.iter().map(|seat| (ElectionId::named(&seat.name), seat.name.clone()));
        let names = names.collect();
        let durable = Some(header.durable.clone());
        Ok(Self {
            node: Node::new(header.me, plan, Seed::new(header.seed), durable),
            out: Outbox::new(),
            digest: Digest::new(),
            inputs: 0,
            began: None,
            names,
        })
    }

    /// Gives it the next input.
    pub fn step(&mut self, entry: &Entry) -> Step {
        let now = entry.now;
        let result = self.node.handle(now, entry.given.input(), &mut self.out);
        let mut effects = Vec::new();
        while let Some(effect) = self.out.pop() {
            self.digest.effect(&effect);
            effects.push(effect);
        }
        self.digest.end(&self.node, now, result.as_ref().err());
        self.inputs += 1;
        let began = *self.began.get_or_insert(now);
        let result = result.as_ref().map(|&()| ());
        let outcome = Outcome::new(effects.len() as u64, result, self.digest);
        Step {
            number: self.inputs,
            at: now.since(began),
            effects,
            rejected: result.err().copied(),
            outcome,
            equal: entry.outcome.is_none_or(|recorded| recorded == outcome),
        }
    }

    /// What all elections answer at an instant, in the order of the settings.
    pub fn answers(&self, now: Time) -> impl Iterator<Item = Answer> {
        self.names.iter().map(move |(group, election)| {
            let leadership = self.node.leadership_of(*group, now);
            let leader = leadership.leader.and_then(|id| self.node.name_of(id));
            let leader = leader.map(str::to_owned);
            Answer { election: election.clone(), leadership, leader }
        })
    }

    /// The node as it is now.
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Of all that came of its inputs so far.
    pub const fn digest(&self) -> u64 {
        self.digest.get()
    }
}

/// Runs a whole recording again, up to the first difference.
///
/// # Errors
///
/// [`RecordError`] if it cannot be read.
pub fn replay<R: Read>(mut recording: Recording<R>) -> Result<Replayed, RecordError> {
    let mut replay = Replay::new(recording.path(), recording.header())?;
    let (mut span, mut divergence) = (Duration::ZERO, None);
    while divergence.is_none()
        && let Some(entry) = recording.next().transpose()?
    {
        let step = replay.step(&entry);
        span = step.at;
        divergence = (!step.equal).then_some(Divergence { entry, step });
    }
    Ok(Replayed {
        header: recording.header().clone(),
        inputs: replay.inputs,
        span,
        digest: replay.digest(),
        divergence,
        end: recording.end(),
    })
}
