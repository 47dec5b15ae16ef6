//! Reading `[[fault]]` entries.

use std::collections::BTreeMap;

use bellwether_proto::Duration;

use bellwether_settings::{Field, Reader, Result, Section};

use super::{
    Distances, Every, Fault, FaultKind, Lack, MoveLaw, NetworkSettings, Placement, State, Who,
    file,
    read::{MOST_NODES, Nodes},
};

/// Datagrams a paused node keeps unless told otherwise: measured on Linux with its default receive
/// buffer of 212,992 bytes and datagrams of 200.
const BUFFER: u32 = 166;

/// Fastest and slowest clock, in parts per million: a tenth off.
const DRIFT: i64 = 100_000;

/// What faults may refer to.
#[derive(Debug)]
pub(super) struct Setting<'a, 'b> {
    pub(super) duration: Duration,
    pub(super) network: &'b NetworkSettings,
    pub(super) election: bool,
    /// Whether the nodes can be asked to elect.
    pub(super) asked: bool,
    /// Whether they are nodes as shipped.
    pub(super) shipped: bool,
    /// Whether the nodes make use of distances.
    pub(super) measuring: bool,
    pub(super) nodes: &'b mut Nodes<'a>,
}

type Kind<'a, 'b> = (&'static str, Reader<'a, Setting<'a, 'b>, FaultKind>);

/// What one entry stands for: a trace for everything in it, any other for itself.
pub(super) fn faults<'a>(
    mut section: Section<'a>,
    setting: &mut Setting<'a, '_>,
) -> Result<Vec<Fault>> {
    match section.take("kind").map(|kind| kind.text()) {
        Some(Ok("trace")) => file::churn(section, setting),
        _ => Ok(vec![fault(section, setting)?]),
    }
}

/// Regular, or random with a mean: `{ poisson = "30s" }`.
fn every(field: &Field<'_>) -> Result<Every> {
    let Ok(mut section) = field.clone().section() else { return field.span().map(Every::Regular) };
    let mean = section.require("poisson", "\"30s\"")?.span()?;
    section.end()?;
    Ok(Every::Poisson(mean))
}

fn fault<'a>(mut section: Section<'a>, setting: &mut Setting<'a, '_>) -> Result<Fault> {
    let kind = kind(&mut section, setting)?;
    let end = setting.duration;
    if let FaultKind::Late { .. } = kind {
        // It begins with the run and happens once.
        section.end()?;
        let (at, spread) = (Duration::ZERO, Duration::ZERO);
        return Ok(Fault { at, spread, every: None, until: None, kind });
    }
    let field = section.require("at", "\"10s\"")?;
    let at = field.duration()?;
    if at >= end {
        let error = field.error(format!("is not before the end of the run (duration = {end})"));
        return Err(error.with_allowed(format!("less than \"{end}\"")));
    }
    let every = section.take("every").map(|field| every(&field)).transpose()?;
    let spread = section.or("spread", Duration::ZERO, |field| {
        let spread = field.duration()?;
        if every.is_some() {
            let error = field.error("is for what happens once, and this is repeated");
            return Err(
                error.with_allowed("spread, or every; every = { poisson = \"30s\" } is random too")
            );
        }
        if spread >= end.saturating_sub(at) {
            let error =
                field.error(format!("reaches beyond the end of the run (duration = {end})"));
            return Err(error.with_allowed(format!("less than \"{}\"", end.saturating_sub(at))));
        }
        Ok(spread)
    })?;
    let until = match section.take("until") {
        None => None,
        Some(field) if every.is_none() => {
            let error = field.error("ends a repetition, but nothing is repeated");
            return Err(error.with_allowed("every = \"10s\" beside it, or leave it out"));
        }
        Some(field) => {
            let until = field.duration()?;
            if until <= at || until > end {
                let problem = format!("is not between the fault and the end of the run ({end})");
                let allowed = format!("more than \"{at}\", at most \"{end}\"");
                return Err(field.error(problem).with_allowed(allowed));
            }
            Some(until)
        }
    };
    let fault = Fault { at, spread, every, until, kind };
    if let FaultKind::Join { count } = fault.kind {
        let joiners = fault.times(end).saturating_mul(count.into());
        setting.nodes.joined = setting.nodes.joined.saturating_add(joiners);
        let total = setting.nodes.joined.saturating_add(setting.nodes.initial.into());
        if total > MOST_NODES.into() {
            let error = section.field().error_unquoted(format!("brings the nodes to {total}"));
            return Err(error.with_allowed(format!("at most {MOST_NODES} nodes, joiners included")));
        }
    }
    section.end()?;
    Ok(fault)
}

fn kind<'a, 'b>(section: &mut Section<'a>, setting: &mut Setting<'a, 'b>) -> Result<FaultKind> {
    let kinds: [Kind<'a, 'b>; 24] = [
        ("crash", |section, setting| Ok(FaultKind::Crash(lost(section, setting)?))),
        ("elect", |section, setting| {
            if !setting.asked {
                let field = section.require("kind", "\"crash\"")?;
                let error = field
                    .error("asks nobody: these nodes elect without being asked, or not at all");
                return Err(error.with_allowed(
                    "an [election] of kind churn-tolerant, without elections of the membership's own",
                ));
            }
            Ok(FaultKind::Elect(who(section, setting)?))
        }),
        ("resign", |section, setting| {
            if !setting.shipped {
                let field = section.require("kind", "\"crash\"")?;
                let error = field.error("tells nobody: only nodes as shipped hand over");
                return Err(error.with_allowed("a [node] instead of [membership] and [election]"));
            }
            Ok(FaultKind::Resign(who(section, setting)?))
        }),
        ("recover", |section, setting| {
            let state = section
                .require("state", "\"kept\" or \"lost\"")?
                .choice(&[("kept", State::Kept), ("lost", State::Lost)])?;
            let who = selected(section, setting)?.unwrap_or(Who::All);
            Ok(FaultKind::Recover { who, state })
        }),
        ("leave", |section, setting| Ok(FaultKind::Leave(lost(section, setting)?))),
        ("join", join),
        ("pause", |section, setting| {
            let who = who(section, setting)?;
            Ok(FaultKind::Pause { who, length: length(section)?, buffer: buffer(section)? })
        }),
        ("starve", |section, setting| {
            let who = who(section, setting)?;
            let of = section.or("of", Lack::Processor, |field| {
                field.choice(&[("processor", Lack::Processor), ("network", Lack::Network)])
            })?;
            let blocked = section.require("blocked", "\"2s\"")?.span()?;
            let running = section.require("running", "\"100ms\"")?.span()?;
            let (length, buffer) = (length(section)?, buffer(section)?);
            Ok(FaultKind::Starve { who, of, blocked, running, length, buffer })
        }),
        ("disk", |section, setting| {
            let who = who(section, setting)?;
            Ok(FaultKind::Disk { who, length: length(section)? })
        }),
        ("slow-disk", |section, setting| {
            let (who, by) = (who(section, setting)?, by(section)?);
            Ok(FaultKind::SlowDisk { who, by, length: length(section)? })
        }),
        ("clone", |section, setting| Ok(FaultKind::Clone { who: who(section, setting)? })),
        ("late", late),
        ("partition", partition),
        ("isolate", |section, setting| Ok(FaultKind::Isolate(who(section, setting)?))),
        ("cut", cut),
        ("heal", |_, _| Ok(FaultKind::Heal)),
        ("loss", |section, _| {
            Ok(FaultKind::Loss { rate: rate(section)?, length: length(section)? })
        }),
        ("duplicate", |section, _| {
            let (rate, by) = (rate(section)?, by(section)?);
            Ok(FaultKind::Duplicate { rate, by, length: length(section)? })
        }),
        ("reorder", |section, _| {
            let (rate, by) = (rate(section)?, by(section)?);
            Ok(FaultKind::Reorder { rate, by, length: length(section)? })
        }),
        ("delay", |section, _| Ok(FaultKind::Delay { by: by(section)?, length: length(section)? })),
        ("move", displacement),
        ("place", place),
        ("drift", |section, setting| {
            let who = who(section, setting)?;
            let ppm = section.require("ppm", "200")?.signed(-DRIFT..=DRIFT)?;
            Ok(FaultKind::Drift { who, ppm: ppm as i32 })
        }),
        ("trace", |_, _| unreachable!("stands for many faults and is read as such")),
    ];
    section.kind(setting, &kinds)
}

fn rate(section: &mut Section<'_>) -> Result<f64> {
    section.require("rate", "0.1")?.rate()
}

fn by(section: &mut Section<'_>) -> Result<Duration> {
    section.require("by", "\"50ms\"")?.duration()
}

fn length(section: &mut Section<'_>) -> Result<Duration> {
    section.require("for", "\"5s\"")?.span()
}

fn buffer(section: &mut Section<'_>) -> Result<u32> {
    section.or("buffer", BUFFER, |field| field.integer(0..=MOST_NODES))
}

fn join<'a>(section: &mut Section<'a>, setting: &mut Setting<'a, '_>) -> Result<FaultKind> {
    let fixed = match setting.network.placement {
        Placement::Mesh
        | Placement::Ring
        | Placement::Star
        | Placement::Random { .. }
        | Placement::Field { .. } => None,
        Placement::Edges(_) => Some("edges"),
        Placement::Grid { .. } => Some("grid"),
        Placement::Cluster { .. } => Some("cluster"),
        Placement::Positions { .. } => Some("positions"),
    };
    if let Some(kind) = fixed {
        let error = section.require("kind", "\"join\"")?;
        let error =
            error.error(format!("has no place for a newcomer in a placement of kind {kind}"));
        return Err(error.with_allowed("join with a placement of kind mesh, ring, star or random"));
    }
    Ok(FaultKind::Join { count: section.or("count", 1, |field| field.integer(1..=MOST_NODES))? })
}

fn late<'a>(section: &mut Section<'a>, setting: &mut Setting<'a, '_>) -> Result<FaultKind> {
    let who = who(section, setting)?;
    let initial = setting.network.nodes;
    let nobody = match &who {
        Who::Leader => Some("nobody leads before the start".to_owned()),
        Who::Nodes(nodes) => nodes
            .iter()
            .find(|&&node| node >= initial)
            .map(|node| format!("node {node} joins, and is late by itself")),
        _ => None,
    };
    if let Some(problem) = nobody {
        let error = section.field().error_unquoted(format!("makes nobody late: {problem}"));
        return Err(
            error.with_allowed(format!("nodes of the start, 0 to {}", initial.saturating_sub(1)))
        );
    }
    let field = section.require("until", "\"10s\"")?;
    let (until, end) = (field.span()?, setting.duration);
    if until >= end {
        let error = field.error(format!("is not before the end of the run (duration = {end})"));
        return Err(error.with_allowed(format!("less than \"{end}\"")));
    }
    Ok(FaultKind::Late { who, until })
}

/// Refuses to move nodes that have no positions, or move by themselves.
fn movable(section: &mut Section<'_>, setting: &Setting<'_, '_>) -> Result<()> {
    let field = section.require("kind", "\"move\"")?;
    if !setting.network.placement.has_positions() {
        let error = field.error("moves nobody: the nodes have no positions");
        let kind = field.text()?;
        return Err(
            error.with_allowed(format!("{kind} with a placement of kind grid, random or cluster"))
        );
    }
    if !setting.network.has_fixed_positions() {
        let error = field.error("displaces nodes that move by themselves");
        return Err(error.with_allowed(format!("{} without network.mobility", field.text()?)));
    }
    Ok(())
}

fn place<'a>(section: &mut Section<'a>, setting: &mut Setting<'a, '_>) -> Result<FaultKind> {
    movable(section, setting)?;
    let node = setting.nodes.name(&section.require("node", "3")?)?;
    let [x, y] = section.require("to", "[4.0, 2.5]")?.pair()?;
    Ok(FaultKind::Place { node, at: (x.number()?, y.number()?) })
}

fn displacement<'a>(section: &mut Section<'a>, setting: &mut Setting<'a, '_>) -> Result<FaultKind> {
    movable(section, setting)?;
    let who = who(section, setting)?;
    let distance = section.require("distance", "4.0")?.length()?;
    let law = section.or("law", MoveLaw::default(), |field| {
        field.choice(&[("polar", MoveLaw::Polar), ("box", MoveLaw::Box)])
    })?;
    let distances = section.or("distances", Distances::default(), |field| {
        if !setting.measuring {
            let error = field.error("is told to nobody: these nodes do not measure distances");
            return Err(error.with_allowed("[membership] kind = \"medley\", or leave it out"));
        }
        field.choice(&[("stale", Distances::Stale), ("fresh", Distances::Fresh)])
    })?;
    Ok(FaultKind::Move { who, distance, law, distances })
}

fn partition<'a>(section: &mut Section<'a>, setting: &mut Setting<'a, '_>) -> Result<FaultKind> {
    let Some(list) = section.take("groups") else {
        // Cutting off the chosen is what isolation is.
        return Ok(FaultKind::Isolate(who(section, setting)?));
    };
    if selected(section, setting)?.is_some() {
        let error = list.error("stands beside another choice of nodes");
        return Err(error.with_allowed("groups, or one choice of nodes"));
    }
    let mut seen = BTreeMap::new();
    let mut groups = Vec::new();
    for group in list.list()? {
        groups.push(setting.nodes.name_new(&group, &mut seen)?);
    }
    if groups.is_empty() {
        return Err(list.error("parts nobody").with_allowed("groups such as [[0, 1], [2]]"));
    }
    Ok(FaultKind::Partition(groups))
}

fn cut<'a>(section: &mut Section<'a>, setting: &mut Setting<'a, '_>) -> Result<FaultKind> {
    let (from, to) = (section.take("from"), section.take("to"));
    let mut seen = BTreeMap::new();
    let mut side = |field: &Field<'a>| {
        if field.text().is_ok() {
            field.choice(&[("leader", ())])?;
            return leader(field, setting);
        }
        if let Ok(mut section) = field.clone().section() {
            let who = who(&mut section, setting)?;
            return section.end().map(|()| who);
        }
        Ok(Who::Nodes(setting.nodes.name_new(field, &mut seen)?))
    };
    let ends = (from.as_ref().map(&mut side).transpose()?, to.as_ref().map(&mut side).transpose()?);
    match (&ends, to) {
        ((None, None), _) => {
            let error = section.field().error_unquoted("does not say between whom to cut");
            Err(error.with_allowed(
                "from or to: node numbers in a list, \"leader\", or a choice such as { count = 1 }",
            ))
        }
        ((Some(Who::Leader), Some(Who::Leader)), Some(to)) => {
            Err(to.error("cuts the leader off itself").with_allowed("two different sides"))
        }
        _ => {
            let both = section.or("both", false, Field::flag)?;
            let length = section.take("for").map(|field| field.span()).transpose()?;
            Ok(FaultKind::Cut { from: ends.0, to: ends.1, both, length })
        }
    }
}

fn leader(field: &Field<'_>, setting: &Setting<'_, '_>) -> Result<Who> {
    if !setting.election {
        let error = field.error("finds nobody: there is no election");
        return Err(error.with_allowed("node numbers, or an [election]"));
    }
    Ok(Who::Leader)
}

/// The chosen nodes; there must be a choice.
fn who<'a>(section: &mut Section<'a>, setting: &mut Setting<'a, '_>) -> Result<Who> {
    selected(section, setting)?.ok_or_else(|| {
        section.field().error_unquoted("does not say which nodes it hits").with_allowed(
            "one of node = 3, nodes = [1, 2], count = 2, fraction = 0.3, target = \"leader\", \
             cluster = 1, all = true",
        )
    })
}

/// The nodes that are to go, perhaps such that the rest stays connected.
fn lost<'a>(section: &mut Section<'a>, setting: &mut Setting<'a, '_>) -> Result<Who> {
    let who = who(section, setting)?;
    let Some(keep) = section.take("keep") else { return Ok(who) };
    keep.choice(&[("connected", ())])?;
    if !matches!(who, Who::Count(_) | Who::Fraction(_) | Who::AnyCluster) {
        let error = keep.error("has nothing to draw anew: these nodes are not chosen at random");
        return Err(error.with_allowed("keep beside count, fraction or cluster = \"random\""));
    }
    Ok(Who::LeavingConnected(Box::new(who)))
}

fn selected<'a>(section: &mut Section<'a>, setting: &mut Setting<'a, '_>) -> Result<Option<Who>> {
    type Select<'a, 'b> = fn(&Field<'a>, &mut Setting<'a, 'b>) -> Result<Who>;
    let selectors: [(&'static str, Select<'a, '_>); 7] = [
        ("node", |field, setting| Ok(Who::Nodes(vec![setting.nodes.name(field)?]))),
        ("nodes", |field, setting| Ok(Who::Nodes(setting.nodes.name_all(field)?))),
        ("count", |field, _| Ok(Who::Count(field.integer(1..=MOST_NODES)?))),
        ("fraction", |field, _| Ok(Who::Fraction(field.rate()?))),
        ("target", |field, setting| {
            field.choice(&[("leader", ())])?;
            leader(field, setting)
        }),
        ("cluster", cluster),
        ("all", |field, _| match field.flag()? {
            true => Ok(Who::All),
            false => Err(field.error("chooses nobody").with_allowed("true, or leave it out")),
        }),
    ];
    let mut chosen: Option<(Who, Field<'a>)> = None;
    for (key, select) in selectors {
        let Some(field) = section.take(key) else { continue };
        if let Some((_, first)) = &chosen {
            let problem =
                format!("is a second choice of nodes beside the one at {}", first.place());
            return Err(field.error(problem).with_allowed("one choice of nodes"));
        }
        chosen = Some((select(&field, setting)?, field));
    }
    Ok(chosen.map(|(who, _)| who))
}

fn cluster<'a>(field: &Field<'a>, setting: &mut Setting<'a, '_>) -> Result<Who> {
    let Placement::Cluster { clusters, .. } = &setting.network.placement else {
        let error = field.error("finds nobody: the nodes are not placed in clusters");
        return Err(error.with_allowed("a placement of kind cluster, or another choice of nodes"));
    };
    if field.text().is_ok() {
        return field.choice(&[("random", ())]).map(|()| Who::AnyCluster);
    }
    let last = u32::try_from(clusters.len().saturating_sub(1)).unwrap_or(u32::MAX);
    Ok(Who::Cluster(field.integer(0..=last)?))
}
