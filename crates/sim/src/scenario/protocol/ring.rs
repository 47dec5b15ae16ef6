//! Reading a ring, and the leased leader on it.

use bellwether_proto::{
    NodeId,
    election::leased::{self, Flavour, Preference},
    membership::ring::{
        Arbiters, Config, Decide, Departure, Far, Fresh, Pace, Phase, Points, Tie, Upgrade, Votes,
    },
};

use bellwether_settings::{Field, Reader, Result, Section, election::FLAVOURS};

use super::{
    super::{Protocol, read::Nodes},
    refused,
};

pub(super) const LEASED: &str = "leased";

/// The election that stands on a ring.
pub(super) fn is_leased(election: &Field<'_>) -> Result<bool> {
    let kind = election.clone().section()?.take("kind");
    Ok(kind.is_some_and(|kind| kind.text().is_ok_and(|kind| kind == LEASED)))
}

/// A ring and the election on it.
pub(super) fn leased<'a>(
    below: Field<'a>,
    above: &Field<'a>,
    count: u32,
    nodes: &mut Nodes<'a>,
) -> Result<Protocol> {
    let mut below = below.section()?;
    let read: Reader<'a, u32, Config> = |section, count| ring(section, *count);
    let membership = below.kind(&mut count.clone(), &[("ring", read)])?;
    below.end()?;
    let mut above = above.clone().section()?;
    above.kind(&mut (), &[(LEASED, (|_, ()| Ok(())) as Reader<'a, (), ()>)])?;
    let flavour = above.or("flavour", Flavour::Quorum, |field| field.choice(&FLAVOURS))?;
    let preference = above.or("prefer", Preference::Key, |field| {
        field.choice(&[("key", Preference::Key), ("lowest", Preference::Lowest)])
    })?;
    let least = above.or("min_members", 1, |field| field.integer(1..=u32::MAX))?;
    let waits = above.or("waits", true, Field::flag)?;
    let witnesses = match above.take("witnesses") {
        Some(list) => nodes.name_all(&list)?,
        None => Vec::new(),
    };
    above.end()?;
    let election = leased::Config::new(flavour)
        .with_preference(preference)
        .with_min_members(least as usize)
        .with_waits(waits);
    Ok(Protocol::Leased { membership, election, witnesses })
}

/// The paper's protocol, or all of its repairs, or anything between.
pub(super) fn ring(section: &mut Section<'_>, nodes: u32) -> Result<Config> {
    let form = section.or("form", Config::hardened(), |field| {
        let choices = [("hardened", Config::hardened()), ("as-published", Config::as_published())];
        field.choice(&choices)
    })?;
    let mut config = form;
    if let Some(field) = section.take("neighbours") {
        let k = field.integer(1..=32)? as usize;
        config = config.with_neighbours(k).map_err(|error| refused(section, error))?;
    }
    config = config.with_upgrade(section.or("upgrade", form.upgrade(), |field| {
        field.choice(&[("joint", Upgrade::Joint), ("published", Upgrade::Published)])
    })?);
    let lease = section.or("lease", config.session(), Field::span)?;
    let arbitration = section.or("arbitration", lease.div(2), Field::span)?;
    config = config.with_times(lease, arbitration).map_err(|error| refused(section, error))?;
    if let Some(field) = section.take("drift") {
        let ppm = field.integer(0..=500_000)?;
        config = config.with_drift(ppm).map_err(|error| refused(section, error))?;
    }
    config = arbiters(section, config, nodes)?;
    config = switches(section, config)?;
    if let Some(field) = section.take("far") {
        config = config.with_far(match field.text() {
            Ok(_) => field.choice(&[("everybody", Far::Everybody)])?,
            Err(_) => Far::Members(field.integer(0..=1_000)? as u16),
        });
    }
    if let Some(field) = section.take("retry") {
        let mut table = field.section()?;
        let least = table.require("least", "\"2.5s\"")?.span()?;
        let most = table.require("most", "\"5s\"")?;
        let longest = most.span()?;
        if longest < least {
            let error = most.error(format!("is less than the least ({least})"));
            return Err(error.with_allowed(format!("at least \"{least}\"")));
        }
        table.end()?;
        config = config.with_retry(least, longest);
    }
    if let Some(field) = section.take("memory") {
        config = config.with_memory(field.span()?);
    }
    config = config.with_promises(section.or("promises", true, Field::flag)?);
    config = config.with_hints(section.or("hints", true, Field::flag)?);
    let points = section.or("points", Points::Hash, |field| {
        field.choice(&[("hash", Points::Hash), ("identity", Points::Identity)])
    })?;
    Ok(config.with_points(points, 64))
}

/// Those outside the ring: the last nodes there are.
fn arbiters(section: &mut Section<'_>, config: Config, nodes: u32) -> Result<Config> {
    let who = section.or("arbiters", Arbiters::Pairwise, |field| {
        field.choice(&[("pairwise", Arbiters::Pairwise), ("central", Arbiters::Central)])
    })?;
    let external = section.take("external");
    let count = match &external {
        Some(field) => {
            let count = field.integer(0..=10_000)?;
            if count >= nodes {
                let error = field.error(format!("leaves no member: there are {nodes} nodes"));
                return Err(error.with_allowed(format!("at most {}", nodes.saturating_sub(1))));
            }
            count
        }
        None => 0,
    };
    let first = NodeId::new(u64::from(nodes - count));
    config.with_arbiters(who, first, u64::from(count)).map_err(|error| refused(section, error))
}

fn switches(section: &mut Section<'_>, config: Config) -> Result<Config> {
    let config = config.with_votes(section.or("votes", config.votes(), |field| {
        field.choice(&[("neutral", Votes::Neutral), ("all", Votes::All)])
    })?);
    let config = config.with_decide(section.or("decide", config.decide(), |field| {
        field.choice(&[("early", Decide::Early), ("wait", Decide::Wait)])
    })?);
    let config = config.with_tie(section.or("tie", config.tie(), |field| {
        field.choice(&[("concede", Tie::Concede), ("leave", Tie::Leave)])
    })?);
    let phases = [("half", Phase::Half), ("random", Phase::Random), ("locked", Phase::Locked)];
    let config =
        config.with_phase(section.or("phase", config.phase(), |field| field.choice(&phases))?);
    let config = config.with_fresh(section.or("fresh", config.fresh(), |field| {
        field.choice(&[("version", Fresh::Version), ("reject", Fresh::Reject)])
    })?);
    let config = config.with_departure(section.or("leave", config.departure(), |field| {
        field.choice(&[("notify", Departure::Notify), ("silent", Departure::Silent)])
    })?);
    let config = config.with_pace(section.or("pace", config.pace(), |field| {
        field.choice(&[("fast", Pace::Fast), ("slotted", Pace::Slotted)])
    })?);
    Ok(config.with_rejoin(section.or("rejoin", config.rejoins(), Field::flag)?))
}
