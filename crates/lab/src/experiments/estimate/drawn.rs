//! Lists that are drawn, and elections on lists.

use std::error::Error;

use bellwether_proto::{
    Boot, Effect, Input, InputOf, Machine, NodeId, Outbox, Peer, Rng, Seed, Time,
    election::churn_tolerant::{
        ChurnTolerant, Command, Config, Feed, Member, Message, Query, Response,
    },
};

use crate::analysis::churn::draw;

/// Lists of many nodes, complete but for some that are missing from some.
pub(super) struct Lists {
    nodes: u32,
    /// Who is missing, and for each node whether it lacks it.
    missing: Vec<(u32, Vec<bool>)>,
}

impl Lists {
    /// Each of these is missing from so many lists of others; whose, is drawn apart for each.
    pub(super) fn draw(
        rng: &mut Rng,
        nodes: u32,
        missing: impl IntoIterator<Item = (u32, u32)>,
    ) -> Self {
        let mut column = |(subject, lacking): (u32, u32)| {
            let mut column = vec![false; nodes as usize];
            for other in draw(rng, nodes - 1, lacking.min(nodes - 1)) {
                // Nobody lacks itself (C-6), so the numbers from the subject's on are moved up by one.
                column[(other + u32::from(other >= subject)) as usize] = true;
            }
            (subject, column)
        };
        Self { nodes, missing: missing.into_iter().map(&mut column).collect() }
    }

    /// The true `c`.
    pub(super) fn c(&self) -> u32 {
        let count = |(_, column): &(u32, Vec<bool>)| column.iter().filter(|&&lacks| lacks).count();
        self.missing.iter().map(count).max().unwrap_or(0) as u32
    }

    fn lacks(&self, node: u32, subject: u32) -> bool {
        let of =
            |(missing, column): &(u32, Vec<bool>)| *missing == subject && column[node as usize];
        self.missing.iter().any(of)
    }

    /// Whom `node` lists, itself included.
    pub(super) fn of(&self, node: u32) -> Vec<u32> {
        (0..self.nodes).filter(|&subject| !self.lacks(node, subject)).collect()
    }

    /// The first on the list of `node`.
    pub(super) fn lowest(&self, node: u32) -> u32 {
        (0..self.nodes).find(|&subject| !self.lacks(node, subject)).unwrap_or(node)
    }
}

/// Why an election could not be held: the machine refused what it was told.
pub(super) type Failure = Box<dyn Error + Send + Sync>;

/// A list: whom, and how unhealthy each.
pub(super) type List = Vec<(u32, u32)>;

/// An election on lists that do not change, by the machine that ships, without delay or loss.
pub(super) struct Election {
    config: Config,
    initiator: ChurnTolerant,
    me: u32,
    /// Questions on their way, in the order in which they were asked.
    queries: Vec<(u32, Query)>,
    /// Who was notified last.
    told: Option<u32>,
}

impl Election {
    /// The initiator has asked.
    pub(super) fn open(config: Config, seed: Seed, me: u32, list: List) -> Result<Self, Failure> {
        let mut initiator = started(config, seed, me, list)?;
        let sent = handle(&mut initiator, Input::Command(Command::Elect))?;
        let told = last_told(&sent);
        let query = |(to, message): (Option<u32>, Message)| match message {
            Message::Query(query) => Some((to?, query)),
            _ => None,
        };
        let queries = sent.into_iter().filter_map(query).collect();
        Ok(Self { config, initiator, me, queries, told })
    }

    /// Whom it asked besides itself.
    pub(super) fn asked(&self) -> Vec<u32> {
        self.queries.iter().map(|&(to, _)| to).collect()
    }

    /// All answer, each with its list, in the order in which they were asked. Who was notified last: after its
    /// own answer, and after each other.
    pub(super) fn hold(mut self, list: impl Fn(u32) -> List) -> Result<Vec<Option<u32>>, Failure> {
        let mut told = vec![self.told];
        for (to, query) in self.queries {
            let response = answer(self.config, to, list(to), self.me, query)?;
            let from = peer(to);
            let message = &Message::Response(response);
            let heard = Input::Message { from, via: from.id, message };
            self.told = last_told(&handle(&mut self.initiator, heard)?).or(self.told);
            told.push(self.told);
        }
        Ok(told)
    }
}

/// What a node with this list answers.
pub(super) fn answer(
    config: Config,
    node: u32,
    list: List,
    initiator: u32,
    query: Query,
) -> Result<Response, Failure> {
    // It draws nothing.
    let mut node = started(config, Seed::new(0), node, list)?;
    let from = peer(initiator);
    let message = &Message::Query(query);
    let sent = handle(&mut node, Input::Message { from, via: from.id, message })?;
    let mut answers = sent.into_iter().filter_map(|(_, message)| match message {
        Message::Response(response) => Some(response),
        _ => None,
    });
    answers.next().ok_or_else(|| "a node did not answer".into())
}

fn started(config: Config, seed: Seed, node: u32, list: List) -> Result<ChurnTolerant, Failure> {
    let mut machine = ChurnTolerant::new(peer(node), config, seed, None);
    handle(&mut machine, Input::Start)?;
    for (other, unhealthiness) in list {
        let member = Member { unhealthiness, ..Member::new(peer(other)) };
        handle(&mut machine, Input::Feed(Feed::Up(member)))?;
    }
    Ok(machine)
}

/// What it sends, and to whom; to everybody is to `None`.
fn handle(
    machine: &mut ChurnTolerant,
    input: InputOf<'_, ChurnTolerant>,
) -> Result<Vec<(Option<u32>, Message)>, Failure> {
    let mut out = Outbox::new();
    machine.handle(Time::ZERO, input, &mut out)?;
    let mut sent = Vec::new();
    while let Some(effect) = out.pop() {
        match effect {
            Effect::Send { to, message } => sent.push((Some(to.get() as u32), message)),
            Effect::Multicast(message) => sent.push((None, message)),
            Effect::Broadcast(_) | Effect::Persist(_) | Effect::Emit(_) => {}
        }
    }
    Ok(sent)
}

/// Who was notified last; whoever elects itself sends LEADER at once.
fn last_told(sent: &[(Option<u32>, Message)]) -> Option<u32> {
    let told = |(to, message): &(Option<u32>, Message)| match message {
        Message::NotifyLeader { .. } => *to,
        Message::Leader(claim) => Some(claim.leader.peer.id.get() as u32),
        _ => None,
    };
    sent.iter().filter_map(told).next_back()
}

fn peer(node: u32) -> Peer {
    Peer::new(NodeId::new(u64::from(node)), Boot::new(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_missing_from_as_many_lists_of_others_as_asked() {
        let mut rng = Seed::new(1).rng();
        for lacking in [0, 1, 25, 127, 500] {
            let lists = Lists::draw(&mut rng, 128, (0..5).map(|low| (low, lacking)));
            assert_eq!(lists.c(), lacking.min(127));
            for low in 0..5 {
                let lack = (0..128).filter(|&node| !lists.of(node).contains(&low)).count();
                assert_eq!(lack as u32, lacking.min(127));
            }
            for node in 0..128 {
                let list = lists.of(node);
                assert!(list.contains(&node), "nobody lacks itself");
                assert_eq!(lists.lowest(node), list[0]);
                assert!(list.iter().filter(|&&other| other >= 5).count() == 123);
            }
        }
    }
}
