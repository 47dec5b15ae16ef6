//! From the tree to a [`Scenario`]: everything but the faults.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
};

use bellwether_proto::Duration;

use bellwether_settings::{
    Field, Reader, Result, Section, Tree,
    file::read_text,
    node::{HOST_KEYS, NODE_KEYS},
};

use super::{
    Cluster, Delay, DelayLaw, LinkLoss, Lists, Loss, Mobility, NetworkSettings, NodeLoss, Per,
    Placement, Protocol, Radio, Routing, Scenario, Until,
    fault::{self, Setting},
    field, file,
    protocol::{World, protocol},
};

const WANTED: &str = "a scenario file, such as scenarios/announce-failover.toml";

/// Most nodes, joiners included. Arbitrary: far above what memory allows with any protocol.
pub(super) const MOST_NODES: u32 = 1_000_000;

/// Longest run: ten years.
const LONGEST: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// The five clusters of the thesis, for its 49 nodes.
pub(crate) const THESIS: [Cluster; 5] = [
    Cluster { x: (0.0, 6.0), y: (2.0, 7.0), nodes: 9 },
    Cluster { x: (7.0, 15.0), y: (0.0, 9.0), nodes: 16 },
    Cluster { x: (0.0, 6.0), y: (9.0, 15.0), nodes: 10 },
    Cluster { x: (7.0, 10.5), y: (11.0, 15.0), nodes: 7 },
    Cluster { x: (11.5, 15.0), y: (11.0, 15.0), nodes: 7 },
];

/// The nodes there will be and those that were named. Joiners may be named before the faults that
/// bring them are read, so names are judged last.
#[derive(Debug)]
pub(super) struct Nodes<'a> {
    pub(super) initial: u32,
    pub(super) joined: u64,
    named: Vec<(Field<'a>, u32)>,
}

impl Scenario {
    /// Reads a scenario file and applies overrides, each `path=value`.
    ///
    /// # Errors
    ///
    /// The first thing wrong, and where.
    pub fn load(path: &Path, sets: &[String]) -> Result<Self> {
        Self::parse(&path.display().to_string(), &read_text(path, WANTED)?, sets)
    }

    /// The same, where the nodes are agents with these settings: `timing`, `membership` and `election` of that file are
    /// the `[node]` of the scenario, which must not have one.
    ///
    /// # Errors
    ///
    /// The first thing wrong, and where; also where both files say what the nodes run.
    pub fn load_with(path: &Path, settings: &Path, sets: &[String]) -> Result<Self> {
        let [world, agents] = [path, settings].map(|path| path.display().to_string());
        let mut tree = Tree::of_file(world, read_text(path, WANTED)?)?;
        let mut root = Field::root(&tree).section()?;
        for key in ["node", "membership", "election"] {
            if let Some(field) = root.take(key) {
                let problem = format!("says what the nodes run, and so does --settings {agents}");
                let error = field.error_unquoted(problem);
                return Err(
                    error.with_allowed("one of them; --set node.KEY=VALUE changes a setting")
                );
            }
        }
        let text = read_text(settings, "a settings file, as `bellwether init` writes one")?;
        tree.graft((agents, text), (&NODE_KEYS, &HOST_KEYS), "node")?;
        Self::read(tree, sets, true)
    }

    /// Reads a scenario from `text`; `file` is what errors call it.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(file: &str, text: &str, sets: &[String]) -> Result<Self> {
        Self::read(Tree::of_file(file.to_owned(), text.to_owned())?, sets, false)
    }

    /// The text of a scenario with the overrides in it, so that it needs none.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn written_out(file: &str, text: &str, sets: &[String]) -> Result<String> {
        let tree = overridden(Tree::of_file(file.to_owned(), text.to_owned())?, sets)?;
        scenario(Field::root(&tree).section()?, false)?;
        Ok(tree.to_toml())
    }

    fn read(tree: Tree, sets: &[String], told: bool) -> Result<Self> {
        scenario(Field::root(&overridden(tree, sets)?).section()?, told)
    }
}

fn overridden(mut tree: Tree, sets: &[String]) -> Result<Tree> {
    for set in sets {
        tree.set(set, "path=value, such as network.nodes=20 or fault.0.at=5s")?;
    }
    Ok(tree)
}

impl<'a> Nodes<'a> {
    /// The node this field names.
    pub(super) fn name(&mut self, field: &Field<'a>) -> Result<u32> {
        let node = field.integer(0..=u32::MAX)?;
        self.named.push((field.clone(), node));
        Ok(node)
    }

    /// The nodes this list names, each once.
    pub(super) fn name_all(&mut self, list: &Field<'a>) -> Result<Vec<u32>> {
        let mut seen = BTreeMap::new();
        self.name_new(list, &mut seen)
    }

    /// The nodes this list names; none may be among those `seen`, which they join.
    pub(super) fn name_new(
        &mut self,
        list: &Field<'a>,
        seen: &mut BTreeMap<u32, Field<'a>>,
    ) -> Result<Vec<u32>> {
        let fields = list.list()?;
        if fields.is_empty() {
            return Err(list.error("names no node").with_allowed("a list of node numbers"));
        }
        let mut nodes = Vec::with_capacity(fields.len());
        for field in fields {
            let node = self.name(&field)?;
            if let Some(first) = seen.get(&node) {
                let problem = format!("names a node again that {} has named", first.place());
                return Err(field.error(problem).with_allowed("each node at most once"));
            }
            seen.insert(node, field);
            nodes.push(node);
        }
        Ok(nodes)
    }

    fn judge(&self) -> Result<()> {
        let total = u64::from(self.initial) + self.joined;
        match self.named.iter().find(|&&(_, node)| u64::from(node) >= total) {
            None => Ok(()),
            Some((field, _)) => {
                let problem = format!("is no node: there are {total}, joiners included");
                let allowed = format!("a node number from 0 to {}", total - 1);
                Err(field.error(problem).with_allowed(allowed))
            }
        }
    }
}

fn scenario(mut root: Section<'_>, told: bool) -> Result<Scenario> {
    let name = root.require("name", "\"what this shows\"")?.text()?.to_owned();
    let length = root.require("duration", "\"60s\"")?;
    let duration = length.span()?;
    if duration > LONGEST {
        return Err(length.error("is too long").with_allowed("at most 3650 days, \"87600h\""));
    }
    let described = root.require("network", "{ nodes = 20 }")?;
    let mut section = described.clone().section()?;
    let initial = section.require("nodes", "20")?.integer(1..=MOST_NODES)?;
    let mut nodes = Nodes { initial, joined: 0, named: Vec::new() };
    let network = network(section, duration, &mut nodes)?;
    let protocol = protocol(&mut root, &World { nodes: initial, duration, told }, &mut nodes)?;
    if matches!(network.loss, Loss::BiasedAcks { .. }) && !acknowledges(&protocol) {
        let loss = described.clone().section()?.take("loss");
        let error = loss.unwrap_or(described).error("has no acknowledgements to lose");
        return Err(
            error.with_allowed("[membership] with kind = \"medley\", or another kind of loss")
        );
    }
    let served = matches!(&protocol, Protocol::Bandit(settings) if settings.client.is_some());
    if served && network.placement != Placement::Mesh {
        let error = described.error_unquoted("has no place for a client");
        return Err(error.with_allowed("placement = { kind = \"mesh\" }, or no [election.client]"));
    }
    // While a membership is recorded nobody leads.
    let recorded = matches!(protocol, Protocol::OnLists { lists: Lists::Recorded { .. }, .. });
    let elects_nobody = matches!(
        protocol,
        Protocol::Ping(_) | Protocol::Medley(_) | Protocol::Ring(_) | Protocol::Keys { .. }
    );
    let election = !elects_nobody && !recorded;
    let asked = election
        && matches!(
            protocol,
            Protocol::ChurnTolerant { .. }
                | Protocol::OnLists { .. }
                | Protocol::Leased { .. }
                | Protocol::Node(_)
        );
    let until = root.or("until", Until::Duration, |field| {
        let choices = [
            ("duration", Until::Duration),
            ("agreement", Until::Agreement),
            ("heard", Until::Heard),
        ];
        match field.choice(&choices)? {
            Until::Agreement | Until::Heard if !election => Err(field
                .error("never comes: nobody elects a leader here")
                .with_allowed("until = \"duration\", or an [election]")),
            until => Ok(until),
        }
    })?;
    let measuring = recorded || matches!(protocol, Protocol::Medley(_));
    let mut setting = Setting {
        duration,
        network: &network,
        election,
        asked,
        shipped: matches!(protocol, Protocol::Node(_)),
        measuring,
        nodes: &mut nodes,
    };
    let faults = match root.take("fault") {
        Some(list) => list
            .list()?
            .into_iter()
            .map(|field| fault::faults(field.section()?, &mut setting))
            .collect::<Result<Vec<_>>>()?
            .concat(),
        None => Vec::new(),
    };
    root.end()?;
    nodes.judge()?;
    moves_everybody(&described, (&network, duration), &protocol, &nodes)?;
    Ok(Scenario { name, duration, until, network, protocol, faults })
}

/// Refuses movements of too few, too long ones, and those that nobody would follow.
fn moves_everybody(
    described: &Field<'_>,
    (network, duration): (&NetworkSettings, Duration),
    protocol: &Protocol,
    nodes: &Nodes<'_>,
) -> Result<()> {
    let mut section = described.clone().section()?;
    let (mobility, radio) = (section.take("mobility"), section.take("radio"));
    let on_lists = matches!(protocol, Protocol::OnLists { .. });
    if let Some(field) = mobility.as_ref().or(radio.as_ref()).filter(|_| on_lists) {
        let error = field.error_unquoted("has no meaning for elections on lists that stand still");
        return Err(error.with_allowed("a live membership, or neither mobility nor radio"));
    }
    let Some(field) = mobility else { return Ok(()) };
    let total = u64::from(nodes.initial) + nodes.joined;
    match &network.mobility {
        Mobility::Trace(movement) if u64::from(movement.0.nodes()) < total => {
            let moved = movement.0.nodes();
            let problem = format!("moves {moved} nodes, but there are {total}, joiners included");
            Err(field.error_unquoted(problem).with_allowed("a line for each node, or fewer nodes"))
        }
        _ => field::bounded(&field, network, duration, total),
    }
}

/// Whether there is a membership that acknowledges.
fn acknowledges(protocol: &Protocol) -> bool {
    matches!(
        protocol,
        Protocol::Medley(_)
            | Protocol::ChurnTolerant { .. }
            | Protocol::OnLists { lists: Lists::Recorded { .. }, .. }
    )
}

fn network<'a>(
    mut section: Section<'a>,
    duration: Duration,
    nodes: &mut Nodes<'a>,
) -> Result<NetworkSettings> {
    let start_spread = section.or("start_spread", Duration::ZERO, |field| {
        let spread = field.duration()?;
        if spread > duration {
            let problem = format!("is longer than the run (duration = {duration})");
            return Err(field.error(problem).with_allowed(format!("at most \"{duration}\"")));
        }
        Ok(spread)
    })?;
    let placement = match section.take("placement") {
        Some(field) => placement(field.section()?, nodes)?,
        None => Placement::Mesh,
    };
    let mobility = match section.take("mobility") {
        Some(field) => field::mobility(field, &placement, nodes.initial)?,
        None => Mobility::Still,
    };
    let radio = match section.take("radio") {
        Some(field) => field::radio(field, &placement)?,
        None => Radio::Ideal,
    };
    let delay = match section.take("delay") {
        Some(field) if radio != Radio::Ideal => {
            let error = field.error_unquoted("is for the air to say: radio is \"wifi\"");
            return Err(error.with_allowed("no delay, or radio = { kind = \"ideal\" }"));
        }
        Some(field) => delay(field.section()?)?,
        None => Delay { law: DelayLaw::Fixed(Duration::from_millis(1)), per: Per::Hop },
    };
    let loss = match section.take("loss") {
        Some(field) => loss(field.section()?, nodes)?,
        None => Loss::None,
    };
    let over_the_air = radio != Radio::Ideal;
    let routing = if over_the_air { Routing::None } else { Routing::Hops };
    let routing = section.or("routing", routing, |field| {
        let choices =
            [("hops", Routing::Hops), ("length", Routing::Length), ("none", Routing::None)];
        match field.choice(&choices)? {
            Routing::Length if !placement.has_positions() => {
                Err(field.error("needs nodes with positions").with_allowed(
                    "\"hops\" or \"none\", or a placement of kind grid, random or cluster",
                ))
            }
            Routing::Length if mobility != Mobility::Still => Err(field
                .error("needs links that keep their lengths, but nodes move")
                .with_allowed("\"hops\" or \"none\"")),
            Routing::Length | Routing::Hops if over_the_air => Err(field
                .error("is not for the air: a frame goes one hop, and nobody passes it on")
                .with_allowed("\"none\", or radio = { kind = \"ideal\" }")),
            routing => Ok(routing),
        }
    })?;
    section.end()?;
    let nodes = nodes.initial;
    Ok(NetworkSettings { nodes, start_spread, placement, delay, loss, routing, mobility, radio })
}

fn placement<'a>(mut section: Section<'a>, nodes: &mut Nodes<'a>) -> Result<Placement> {
    let kinds: [(_, Reader<'a, Nodes<'a>, _>); 9] = [
        ("mesh", |_, _| Ok(Placement::Mesh)),
        ("ring", |_, _| Ok(Placement::Ring)),
        ("star", |_, _| Ok(Placement::Star)),
        ("edges", |section, nodes| {
            if section.take("file").is_some() {
                return Ok(Placement::Edges(file::edges(section, nodes)?));
            }
            let list = section.require("edges", "[[0, 1], [1, 2]], or file = \"edges.txt\"")?;
            Ok(Placement::Edges(edges(&list, nodes)?))
        }),
        ("positions", |section, nodes| {
            let range = section.require("range", "4.0")?.length()?;
            let at = file::positions(section, nodes.initial)?;
            Ok(Placement::Positions { at, range })
        }),
        ("grid", grid),
        ("random", |section, _| {
            let (side, range) = square(section)?;
            Ok(Placement::Random { side, range, robust: robust(section)? })
        }),
        ("cluster", |section, nodes| {
            let range = section.require("range", "4.0")?.length()?;
            let clusters = clusters(section, nodes.initial)?;
            Ok(Placement::Cluster { clusters, range, robust: robust(section)? })
        }),
        ("field", |section, _| {
            let (side, range) = square(section)?;
            Ok(Placement::Field { side, range })
        }),
    ];
    let placement = section.kind(nodes, &kinds)?;
    section.end()?;
    Ok(placement)
}

fn robust(section: &mut Section<'_>) -> Result<bool> {
    section.or("robust", false, Field::flag)
}

fn square(section: &mut Section<'_>) -> Result<(f64, f64)> {
    let side = section.require("side", "15.0")?.length()?;
    Ok((side, section.require("range", "4.0")?.length()?))
}

fn grid<'a>(section: &mut Section<'a>, nodes: &mut Nodes<'a>) -> Result<Placement> {
    let (side, range) = square(section)?;
    let nodes = nodes.initial;
    let rows = nodes.isqrt();
    if rows * rows != nodes {
        let problem = format!("cannot hold {nodes} nodes in as many rows as columns");
        let allowed = format!("nodes = {} or {}", rows * rows, (rows + 1) * (rows + 1));
        return Err(section.field().error(problem).with_allowed(allowed));
    }
    let spacing = grid_spacing(side, rows);
    if spacing > range {
        let problem = format!("is disconnected: neighbours are {spacing} apart, beyond the range");
        let allowed = format!("a range of at least {spacing}");
        return Err(section.field().error(problem).with_allowed(allowed));
    }
    Ok(Placement::Grid { side, range })
}

/// The distance between neighbours on a grid whose outermost nodes stand on the square's border.
fn grid_spacing(side: f64, rows: u32) -> f64 {
    if rows > 1 { side / f64::from(rows - 1) } else { 0.0 }
}

fn edges<'a>(list: &Field<'a>, nodes: &mut Nodes<'a>) -> Result<Vec<(u32, u32)>> {
    let mut links = BTreeMap::new();
    let mut edges = Vec::new();
    for field in list.list()? {
        let [a, b] = field.pair()?;
        let (a, b) = (nodes.name(&a)?, nodes.name(&b)?);
        if a == b {
            let error = field.error("links a node to itself");
            return Err(error.with_allowed("two different node numbers"));
        }
        if let Some(first) = links.insert((a.min(b), a.max(b)), field.clone()) {
            let problem = format!("is a link that {} has listed", first.place());
            return Err(field.error(problem).with_allowed("each link once, in either direction"));
        }
        edges.push((a, b));
    }
    // Nobody joins a fixed graph, so its nodes can be judged, and must be before paths are followed.
    nodes.judge()?;
    linked(list, nodes.initial, edges)
}

/// Refuses links, as `said` lists them, that leave somebody out.
pub(super) fn linked(
    said: &Field<'_>,
    nodes: u32,
    edges: Vec<(u32, u32)>,
) -> Result<Vec<(u32, u32)>> {
    match unreached(nodes, &edges) {
        None => Ok(edges),
        Some(node) => {
            let error = said.error(format!("leaves node {node} out of reach of node 0"));
            Err(error.with_allowed("links that connect all nodes"))
        }
    }
}

/// The smallest node that no path connects to node 0.
fn unreached(nodes: u32, edges: &[(u32, u32)]) -> Option<u32> {
    let mut neighbours: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(a, b) in edges {
        neighbours.entry(a).or_default().push(b);
        neighbours.entry(b).or_default().push(a);
    }
    let mut reached = vec![false; nodes as usize];
    let mut queue = VecDeque::from([0]);
    while let Some(node) = queue.pop_front() {
        if !std::mem::replace(&mut reached[node as usize], true) {
            queue.extend(neighbours.get(&node).into_iter().flatten());
        }
    }
    (0..nodes).find(|&node| !reached[node as usize])
}

fn clusters(section: &mut Section<'_>, nodes: u32) -> Result<Vec<Cluster>> {
    let total = |clusters: &[Cluster]| clusters.iter().map(|c| u64::from(c.nodes)).sum::<u64>();
    let default = THESIS.to_vec();
    if total(&default) == u64::from(nodes) && section.take("clusters").is_none() {
        return Ok(default);
    }
    let list = section.require("clusters", "[{ x = [0.0, 6.0], y = [2.0, 7.0], nodes = 9 }, …]")?;
    let cluster = |field: Field<'_>| {
        let mut section = field.section()?;
        let x = interval(&section.require("x", "[0.0, 6.0]")?)?;
        let y = interval(&section.require("y", "[2.0, 7.0]")?)?;
        let nodes = section.require("nodes", "9")?.integer(1..=MOST_NODES)?;
        section.end()?;
        Ok(Cluster { x, y, nodes })
    };
    let clusters: Vec<Cluster> = list.list()?.into_iter().map(cluster).collect::<Result<_>>()?;
    match total(&clusters) {
        sum if sum == u64::from(nodes) => Ok(clusters),
        sum => {
            let error = list.error(format!("holds {sum} nodes, but the network has {nodes}"));
            Err(error.with_allowed(format!("clusters whose nodes add up to {nodes}")))
        }
    }
}

fn interval(field: &Field<'_>) -> Result<(f64, f64)> {
    let [from, to] = field.pair()?;
    let (from, to) = (from.number()?, to.number()?);
    if from > to {
        return Err(field.error("runs backwards").with_allowed("the smaller number first"));
    }
    Ok((from, to))
}

fn delay(mut section: Section<'_>) -> Result<Delay> {
    let law = section.kind(
        &mut (),
        &[
            ("fixed", |section, ()| {
                Ok(DelayLaw::Fixed(section.require("value", "\"1ms\"")?.duration()?))
            }),
            ("uniform", |section, ()| {
                let low = section.require("low", "\"0ms\"")?.duration()?;
                let field = section.require("high", "\"50ms\"")?;
                let high = field.duration()?;
                if high < low {
                    let error = field.error(format!("is below low = {low}"));
                    return Err(error.with_allowed(format!("at least \"{low}\"")));
                }
                Ok(DelayLaw::Uniform { low, high })
            }),
            ("poisson", |section, ()| {
                Ok(DelayLaw::Poisson { mean: section.require("mean", "\"20ms\"")?.duration()? })
            }),
        ],
    )?;
    let per = section
        .or("per", Per::Hop, |field| field.choice(&[("hop", Per::Hop), ("path", Per::Path)]))?;
    section.end()?;
    Ok(Delay { law, per })
}

fn loss<'a>(mut section: Section<'a>, nodes: &mut Nodes<'a>) -> Result<Loss> {
    let kinds: [(_, Reader<'a, Nodes<'a>, _>); 6] = [
        ("none", |_, _| Ok(Loss::None)),
        ("independent", |section, _| {
            Ok(Loss::Independent { rate: section.require("rate", "0.05")?.rate()? })
        }),
        ("correlated", |section, _| {
            Ok(Loss::Correlated { rate: section.require("rate", "0.05")?.rate()? })
        }),
        ("biased-acks", |section, _| {
            let rate = section.require("rate", "0.05")?.rate()?;
            let nodes = section.or("nodes", 5, |field| field.integer(1..=MOST_NODES))?;
            Ok(Loss::BiasedAcks { rate, nodes })
        }),
        ("per-node", |section, nodes| {
            let rate = section.or("rate", 0.0, Field::rate)?;
            let list = section.require("nodes", "[{ node = 3, outbound = 0.5 }]")?;
            Ok(Loss::PerNode { rate, nodes: node_losses(&list, nodes)? })
        }),
        ("per-link", |section, nodes| {
            let rate = section.or("rate", 0.0, Field::rate)?;
            let list = section.require("links", "[{ from = 0, to = 1, rate = 0.5 }]")?;
            Ok(Loss::PerLink { rate, links: link_losses(&list, nodes)? })
        }),
    ];
    let loss = section.kind(nodes, &kinds)?;
    section.end()?;
    Ok(loss)
}

fn node_losses<'a>(list: &Field<'a>, nodes: &mut Nodes<'a>) -> Result<Vec<NodeLoss>> {
    let mut seen = BTreeMap::new();
    let mut losses = Vec::new();
    for field in list.list()? {
        let mut section = field.clone().section()?;
        let node = nodes.name(&section.require("node", "3")?)?;
        let outbound = section.or("outbound", 0.0, Field::rate)?;
        let inbound = section.or("inbound", 0.0, Field::rate)?;
        section.end()?;
        if let Some(first) = seen.insert(node, field.clone()) {
            let problem = format!("is about node {node}, as {} is", first.place());
            return Err(field.error(problem).with_allowed("each node once"));
        }
        losses.push(NodeLoss { node, outbound, inbound });
    }
    Ok(losses)
}

fn link_losses<'a>(list: &Field<'a>, nodes: &mut Nodes<'a>) -> Result<Vec<LinkLoss>> {
    let mut seen = BTreeMap::new();
    let mut losses = Vec::new();
    for field in list.list()? {
        let mut section = field.clone().section()?;
        let from = nodes.name(&section.require("from", "0")?)?;
        let to = nodes.name(&section.require("to", "1")?)?;
        let rate = section.require("rate", "0.5")?.rate()?;
        section.end()?;
        if from == to {
            let error = field.error("links a node to itself");
            return Err(error.with_allowed("two different node numbers"));
        }
        if let Some(first) = seen.insert((from, to), field.clone()) {
            let problem = format!("is about the link {from} to {to}, as {} is", first.place());
            return Err(field.error(problem).with_allowed("each direction of a link once"));
        }
        losses.push(LinkLoss { from, to, rate });
    }
    Ok(losses)
}
