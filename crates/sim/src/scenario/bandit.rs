//! Reading `[election] kind = "bandit"`, its client and its environment.

use bellwether_proto::{
    Duration,
    election::bandit::{Config, Eligible, Pings, Policy, Profile, Tally, Ties, Waits, client},
};

use bellwether_settings::{Field, Reader, Result, Section};

use super::{BanditSettings, Protocol, protocol::refused};
use crate::world::environment::{Environment, Machines, Migration, MigrationLaw, Process, Repair};

pub(super) fn settings(section: &mut Section<'_>, nodes: u32) -> Result<Protocol> {
    let profile = section.or("form", Profile::Hardened, |field| {
        field.choice(&[
            ("hardened", Profile::Hardened),
            ("reference", Profile::Reference),
            ("as-published", Profile::Published),
        ])
    })?;
    if nodes > 255 {
        let error = section.field().error_unquoted(format!("has {nodes} members"));
        return Err(error.with_allowed("network.nodes = 255 or fewer"));
    }
    let policy = policy(section)?;
    let wrong = |section: &Section<'_>, error| refused(section, error);
    let mut config =
        Config::new(profile, policy).with_policy(policy).map_err(|e| wrong(section, e))?;
    if let Some(field) = section.take("memory") {
        let length = field.integer(1..=65_535)? as u16;
        config = config.with_buffer(Some(length)).map_err(|error| {
            let allowed = "policy = \"epsilon-greedy\" or \"ucb\"";
            field.error(format!("cannot work: {error}")).with_allowed(allowed)
        })?;
    }
    if let Some(field) = section.take("candidates") {
        let most = nodes.max(1);
        let candidates = field.integer(1..=most)? as u16;
        config = config.with_candidates(candidates).map_err(|e| wrong(section, e))?;
    }
    config = count(section, config, profile)?;
    if let Some(field) = section.take("penalty") {
        let penalty = field.number()?;
        config = config.with_penalty(penalty).map_err(|error| {
            field.error(format!("cannot work: {error}")).with_allowed("a number from 0 on")
        })?;
    }
    if let Some(field) = section.take("pings") {
        config = config.with_pings(pings(&field)?).map_err(|e| wrong(section, e))?;
    }
    let Waits { suspect, share, collect, confirm } = config.waits();
    let waits = Waits {
        suspect: section.or("suspect", suspect, Field::duration)?,
        share: section.or("share", share, Field::span)?,
        collect: section.or("collect", collect, Field::span)?,
        confirm: section.or("confirm", confirm, Field::span)?,
    };
    config = config.with_waits(waits).map_err(|e| wrong(section, e))?;
    let heartbeat = section.or("heartbeat", config.heartbeat(), Field::span)?;
    config = config.with_heartbeat(heartbeat).map_err(|e| wrong(section, e))?;
    let sample = section.or("sample", config.sample(), Field::span)?;
    config = config.with_sample(sample).map_err(|e| wrong(section, e))?;
    let client = section.take("client").map(|field| client_of(field, profile)).transpose()?;
    let environment =
        section.take("environment").map(|field| environment(field, nodes)).transpose()?;
    Ok(Protocol::Bandit(BanditSettings { config, client, environment }))
}

fn policy(section: &mut Section<'_>) -> Result<Policy> {
    #[derive(Clone, Copy)]
    enum Name {
        Epsilon,
        Ucb,
        Discounted,
        Sliding,
        Thompson,
        Random,
        Next,
    }
    let name = section.or("policy", Name::Epsilon, |field| {
        field.choice(&[
            ("epsilon-greedy", Name::Epsilon),
            ("ucb", Name::Ucb),
            ("discounted", Name::Discounted),
            ("sliding", Name::Sliding),
            ("thompson", Name::Thompson),
            ("random", Name::Random),
            ("next", Name::Next),
        ])
    })?;
    let weight = |section: &mut Section<'_>, default| {
        section.or("weight", default, |field| match field.number()? {
            weight if weight >= 0.0 => Ok(weight),
            _ => Err(field.error("is less than nothing").with_allowed("a number from 0 on")),
        })
    };
    let discount = |section: &mut Section<'_>| section.or("discount", 0.95, Field::rate);
    Ok(match name {
        Name::Epsilon => Policy::EpsilonGreedy {
            epsilon: section.or("epsilon", 0.1, Field::rate)?,
            decay: section.or("decay", 0.99, Field::rate)?,
        },
        Name::Ucb => Policy::Ucb { weight: weight(section, 2.0)? },
        Name::Discounted => {
            Policy::DiscountedUcb { weight: weight(section, 0.1)?, discount: discount(section)? }
        }
        Name::Sliding => Policy::SlidingUcb {
            weight: weight(section, 0.1)?,
            window: section.or("window", 1_000, |field| field.integer(1..=10_000_000))?,
        },
        Name::Thompson => Policy::Thompson { discount: discount(section)? },
        Name::Random => Policy::Random,
        Name::Next => Policy::Next,
    })
}

fn count(section: &mut Section<'_>, config: Config, profile: Profile) -> Result<Config> {
    let ties = if profile == Profile::Published { Ties::Lowest } else { Ties::Highest };
    let default = match profile {
        Profile::Hardened => Tally::Borda,
        Profile::Published | Profile::Reference => Tally::Approval(ties),
    };
    let stated = section.take("tally");
    let tally = match &stated {
        Some(field) => {
            field.choice(&[("approval", Tally::Approval(ties)), ("borda", Tally::Borda)])?
        }
        None => default,
    };
    let live = section.take("winner");
    let usual = if profile == Profile::Hardened { Eligible::Living } else { Eligible::Anybody };
    let eligible = match &live {
        Some(field) => {
            field.choice(&[("living", Eligible::Living), ("anybody", Eligible::Anybody)])?
        }
        None => usual,
    };
    config.with_count(tally, eligible).map_err(|error| {
        let blame = stated.as_ref().filter(|_| tally != Tally::Borda).or(live.as_ref());
        let field = blame.unwrap_or_else(|| section.field());
        let allowed = "tally = \"borda\" and winner = \"living\", or another form";
        field.error(format!("cannot work: {error}")).with_allowed(allowed)
    })
}

fn pings(field: &Field<'_>) -> Result<Option<Pings>> {
    if let Ok("never") = field.text() {
        return Ok(None);
    }
    let mut table = field.clone().section()?;
    let pause = table.or("pause", Duration::from_secs(10), Field::span)?;
    let reply = table.or("reply", Duration::from_secs(2), Field::span)?;
    table.end()?;
    Ok(Some(Pings { pause, reply }))
}

fn client_of(field: Field<'_>, profile: Profile) -> Result<client::Config> {
    let mut table = field.section()?;
    let requests = table.require("requests", "2500")?.integer(1..=1_000_000_000)?;
    let timeout = table.or("timeout", Duration::from_secs(2), Field::span)?;
    let round = table.or("round", Duration::from_secs(6), Field::span)?;
    let config = client::Config::new(profile, u64::from(requests), timeout, round);
    let config = config.map_err(|error| refused(&table, error))?;
    table.end()?;
    Ok(config)
}

fn environment(field: Field<'_>, nodes: u32) -> Result<Environment> {
    let mut table = field.section()?;
    let period = |table: &mut Section<'_>| table.or("period", Duration::from_secs(30), Field::span);
    let processes: [(_, Reader<'_, (), bool>); 2] =
        [("block", |_, ()| Ok(true)), ("renewal", |_, ()| Ok(false))];
    let process = match table.kind(&mut (), &processes)? {
        true => Process::Block { period: period(&mut table)? },
        false => Process::Renewal { period: period(&mut table)? },
    };
    let machines = table.require("machines", "\"table-1\"")?;
    let machines = machines_of(&machines, nodes)?;
    let usual = match process {
        Process::Block { .. } => Repair::BLOCK,
        Process::Renewal { .. } => Repair::text(),
    };
    let repair = table.or("repair", usual, |field| repair(field, usual))?;
    let floor = table.or("floor", 0.8, Field::rate)?;
    let migration = table.take("migration").map(migration).transpose()?;
    table.end()?;
    Ok(Environment { machines, process, repair, floor, migration })
}

fn machines_of(field: &Field<'_>, nodes: u32) -> Result<Machines> {
    if field.text().is_ok() {
        let name = field.choice(&[("table-1", true), ("pool", false)])?;
        return Ok(if name { Machines::table_1() } else { Machines::pool() });
    }
    let list = field.list().map_err(|error| {
        error.with_allowed("\"table-1\", \"pool\", a failure probability for each node, or kinds")
    })?;
    let kinds = list.first().is_some_and(|first| first.clone().section().is_ok());
    if kinds {
        let kind = |field: Field<'_>| {
            let mut table = field.section()?;
            let count = table.require("count", "463")?.integer(1..=1_000_000_000)?;
            let failure = table.require("failure", "0.95")?.rate()?;
            table.end()?;
            Ok((f64::from(count), failure))
        };
        return Ok(Machines::Drawn(list.into_iter().map(kind).collect::<Result<_>>()?));
    }
    if list.len() != nodes as usize {
        let problem = format!("has {} entries for {nodes} nodes", list.len());
        return Err(field.error(problem).with_allowed("a failure probability for each node"));
    }
    Ok(Machines::Each(list.iter().map(Field::rate).collect::<Result<_>>()?))
}

fn repair(field: &Field<'_>, usual: Repair) -> Result<Repair> {
    let mut table = field.clone().section()?;
    let repair = Repair {
        mu: table.or("mu", usual.mu, Field::number)?,
        sigma: table.or("sigma", usual.sigma, |field| match field.number()? {
            sigma if sigma >= 0.0 => Ok(sigma),
            _ => Err(field.error("is less than nothing").with_allowed("a number from 0 on")),
        })?,
        unit: table.or("unit", usual.unit, Field::span)?,
        low: table.or("low", usual.low, Field::duration)?,
        high: table.or("high", usual.high, Field::span)?,
    };
    table.end()?;
    if repair.low > repair.high {
        let problem = format!("has a least of {} above its most, {}", repair.low, repair.high);
        return Err(field.error(problem).with_allowed("low at or below high"));
    }
    Ok(repair)
}

fn migration(field: Field<'_>) -> Result<Migration> {
    let mut table = field.section()?;
    let laws: [(_, Reader<'_, (), MigrationLaw>); 2] = [
        ("redraw", |table, ()| {
            let draws = table.or("draws", 10, |field| field.integer(1..=1_000))?;
            Ok(MigrationLaw::Redraw { draws })
        }),
        ("rotate", |_, ()| Ok(MigrationLaw::Rotate)),
    ];
    let law = table.kind(&mut (), &laws)?;
    let every = table.or("every", Duration::from_secs(180), Field::span)?;
    table.end()?;
    Ok(Migration { every, law })
}
