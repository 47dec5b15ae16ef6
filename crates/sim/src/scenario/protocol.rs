//! Reading what the nodes run: `[membership]` or `[election]`.

use std::{collections::BTreeMap, sync::Arc};

use bellwether_proto::{
    Duration,
    election::{
        announce::{
            Bye, Config, ConfigError, Criterion, Entry, Rules, Suppression, Tenure,
            baseline::{AlConfig, Composition, SupAlConfig, SupConfig},
            several,
        },
        churn_tolerant::{self, Decision, ExcludeRule, Health, Multicast},
    },
    mechanism::pinged::Patience,
    membership::medley::{self, Attention, Carriers, Form, Phase, Piggyback, Selection, Strategy},
};

use crate::lists::membership_trace::MembershipTrace;

mod central;
mod keys;
mod ring;

use bellwether_settings::{
    Field, Reader, Result, Section,
    election::{VARIANTS, tolerated},
};

use super::{
    AnnounceSettings, Initiator, Lists, Missing, PingConfig, Protocol, Roles, SettingsError,
    SharedTrace, Trials, bandit, node::node, read::Nodes,
};

/// What else of the scenario decides which protocols make sense.
pub(super) struct World {
    pub(super) nodes: u32,
    pub(super) duration: Duration,
    /// Whether the nodes are as an agent's settings say.
    pub(super) told: bool,
}

pub(super) fn protocol<'a>(
    root: &mut Section<'a>,
    world: &World,
    nodes: &mut Nodes<'a>,
) -> Result<Protocol> {
    let either = "[node], [membership] or [election], as docs/scenarios.md has them; or --settings with an agent's settings";
    if let Some(field) = root.take("node") {
        if let Some(other) = root.take("membership").or(root.take("election")) {
            let problem = format!("is already part of the [node] at {}", field.place());
            let allowed =
                "[node] with its elections as [node.election.NAME], or no [node] (--set node=none)";
            return Err(other.error_unquoted(problem).with_allowed(allowed));
        }
        return node(field, world.nodes, world.told);
    }
    if let Some(owned) = root.take("keys") {
        return keys::keys(&owned, root, world.nodes);
    }
    Ok(match (root.take("membership"), root.take("election")) {
        (Some(field), None) => {
            let mut section = field.section()?;
            let protocol = section.kind(
                &mut world.nodes.clone(),
                &[
                    ("ping", |section, nodes| ping(section, *nodes)),
                    ("medley", |section, _| medley(section)),
                    ("ring", |section, nodes| Ok(Protocol::Ring(ring::ring(section, *nodes)?))),
                ],
            )?;
            section.end()?;
            protocol
        }
        (None, Some(field)) => {
            let mut section = field.section()?;
            let protocol = section.kind(&mut world.nodes.clone(), &elections())?;
            section.end()?;
            protocol
        }
        (Some(first), Some(second)) if ring::is_leased(&second)? => {
            ring::leased(first, &second, world.nodes, nodes)?
        }
        (Some(first), Some(second)) if is_churn_tolerant(&second)? => {
            let mut below = first.section()?;
            let below_kinds: [(_, Reader<'a, (&World, &mut Nodes<'a>), Below>); 3] = [
                ("medley", recorded),
                ("trace", |section, (world, _)| trace(section, world)),
                ("lists", |section, (_, nodes)| missing(section, nodes)),
            ];
            let initial = nodes.initial;
            let lists = below.kind(&mut (world, nodes), &below_kinds)?;
            below.end()?;
            let mut above = second.clone().section()?;
            let election: Reader<'_, (), churn_tolerant::Config> =
                |section, ()| churn_tolerant(section);
            let election = above.kind(&mut (), &[(CHURN_TOLERANT, election)])?;
            let roles = match lists {
                Below::Live(_) => roles(&mut above, initial)?,
                Below::Lists(_) => Roles::default(),
            };
            let election = standing(&mut above, election, &roles)?;
            above.end()?;
            match lists {
                Below::Live(membership) => Protocol::ChurnTolerant { membership, election, roles },
                // There is no list to wait for: elections are asked for unless a grace time says otherwise.
                Below::Lists(lists) => match second.section()?.take("grace") {
                    None => Protocol::OnLists { lists, election: election.with_grace(None) },
                    Some(_) => Protocol::OnLists { lists, election },
                },
            }
        }
        (Some(first), Some(second)) => {
            let problem = format!(
                "is of a kind that needs no [membership], and there is one at {}",
                first.place()
            );
            return Err(second.error_unquoted(problem).with_allowed(
                "no [membership] (--set membership=none), or kind = \"churn-tolerant\" or \"leased\"",
            ));
        }
        (None, None) => {
            let error = root.field().error_unquoted("does not say what the nodes run");
            return Err(error.with_allowed(either));
        }
    })
}

/// What an election stands on.
enum Below {
    Live(medley::Config),
    Lists(Lists),
}

/// A membership, run beside the election or recorded before it.
fn recorded<'a>(
    section: &mut Section<'a>,
    (world, _): &mut (&World, &mut Nodes<'a>),
) -> Result<Below> {
    let elections = section.take("elections");
    let Protocol::Medley(membership) = medley(section)? else {
        unreachable!("that is what is read here")
    };
    let Some(field) = elections else { return Ok(Below::Live(membership)) };
    let mut table = field.section()?;
    let count = table.require("count", "20")?.integer(1..=1_000_000)?;
    let from = table.or("from", Duration::ZERO, |field| {
        let from = field.duration()?;
        if from >= world.duration {
            let problem =
                format!("is not before the end of the run (duration = {})", world.duration);
            return Err(field
                .error(problem)
                .with_allowed(format!("less than \"{}\"", world.duration)));
        }
        Ok(from)
    })?;
    let limit = table.or("limit", Duration::from_secs(30), Field::span)?;
    let every = table.or("every", Duration::from_secs(1), Field::span)?;
    let initiator = table.or("initiator", Initiator::Random, |field| {
        field.choice(&[("random", Initiator::Random), ("detector", Initiator::Detector)])
    })?;
    table.end()?;
    let trials = Trials { count, from, limit, every, initiator };
    Ok(Below::Lists(Lists::Recorded { membership, trials }))
}

/// Lists recorded before, in a file named from where the scenario is.
fn trace(section: &mut Section<'_>, world: &World) -> Result<Below> {
    let field = section.require("trace", "\"lists.bwmt\"")?;
    let allowed =
        "a file that bellwether sim --record-membership wrote, from where the scenario is";
    let path = field.near(field.text()?);
    let bytes = std::fs::read(&path)
        .map_err(|io| field.error(format!("cannot be read: {io}")).with_allowed(allowed))?;
    let trace = MembershipTrace::from_bytes(&bytes)
        .map_err(|error| field.error(error.to_string()).with_allowed(allowed))?;
    if trace.nodes() != world.nodes {
        let problem = format!("has the lists of {} nodes, not {}", trace.nodes(), world.nodes);
        return Err(field
            .error(problem)
            .with_allowed(format!("network.nodes = {}", trace.nodes())));
    }
    let from = section.or("from", Duration::ZERO, |field| {
        let from = field.duration()?;
        let length = trace.interval() * trace.looks() as u64;
        if from >= length {
            let error = field.error(format!("is not before the end of the trace ({length})"));
            return Err(error.with_allowed(format!("less than \"{length}\"")));
        }
        Ok(from)
    })?;
    Ok(Below::Lists(Lists::Trace { trace: SharedTrace(Arc::new(trace)), from }))
}

/// Complete lists but for those named.
fn missing<'a>(section: &mut Section<'a>, nodes: &mut Nodes<'a>) -> Result<Below> {
    let Some(list) = section.take("missing") else {
        return Ok(Below::Lists(Lists::Missing(Vec::new())));
    };
    let mut seen = BTreeMap::new();
    let mut missing = Vec::new();
    for field in list.list()? {
        let mut table = field.clone().section()?;
        let node = nodes.name(&table.require("node", "0")?)?;
        let others = nodes.initial.saturating_sub(1);
        let from = table.require("from", "25")?.integer(0..=others)?;
        table.end()?;
        if let Some(first) = seen.insert(node, field.clone()) {
            let problem = format!("is about node {node}, as {} is", first.place());
            return Err(field.error(problem).with_allowed("each node once"));
        }
        missing.push(Missing { node, from });
    }
    Ok(Below::Lists(Lists::Missing(missing)))
}

const CHURN_TOLERANT: &str = "churn-tolerant";

/// The one election that stands on a membership.
fn is_churn_tolerant(election: &Field<'_>) -> Result<bool> {
    let kind = election.clone().section()?.take("kind");
    Ok(kind.is_some_and(|kind| kind.text().is_ok_and(|kind| kind == CHURN_TOLERANT)))
}

/// The thesis's values but for `c`, which nobody can guess.
fn churn_tolerant(section: &mut Section<'_>) -> Result<churn_tolerant::Config> {
    let form = section.or("form", churn_tolerant::Form::Hardened, |field| {
        field.choice(&[
            ("hardened", churn_tolerant::Form::Hardened),
            ("as-published", churn_tolerant::Form::AsPublished),
        ])
    })?;
    let variant = section
        .require("variant", "\"base\", \"optimistic\", \"preferred\" or \"hybrid\"")?
        .choice(&VARIANTS)?;
    let c = tolerated(&section.require("c", "4")?)?;
    let f = section.or("f", 0, tolerated)?;
    let mut config = churn_tolerant::Config::new(variant, form);
    config = config.with_bounds(c, f).map_err(|error| refused(section, error))?;
    let timeout = section.or("timeout", config.timeout(), Field::span)?;
    config = config.with_timeout(timeout).map_err(|error| refused(section, error))?;
    if let Some(field) = section.take("grace") {
        config = match field.text() {
            Ok("never") => config.with_grace(None),
            _ => config.with_grace(Some(field.span()?)),
        };
    }
    if let Health::Exclude { candidates, excluded, threshold, rule } = config.health() {
        let size = |field: &Field<'_>| field.integer(1..=16).map(|size| size as u16);
        let candidates = section.or("candidates", candidates, size)?;
        let excluded = section.or("excluded", excluded, size)?;
        let threshold = section.or("threshold", threshold, |field| field.integer(0..=u32::MAX))?;
        let rule = section.or("exclude", rule, |field| {
            field.choice(&[("union", ExcludeRule::Union), ("top-of-sum", ExcludeRule::TopOfSum)])
        })?;
        let health = Health::Exclude { candidates, excluded, threshold, rule };
        config = config.with_health(health).map_err(|error| refused(section, error))?;
    }
    config = config.with_decision(section.or("decision", Decision::Event, |field| {
        field.choice(&[("event", Decision::Event), ("polled", Decision::Polled)])
    })?);
    let choices = [
        ("substrate", Multicast::Substrate),
        ("oracle", Multicast::Oracle),
        ("own-list", Multicast::OwnList),
        ("gossip", GOSSIP),
    ];
    let field = section.take("multicast");
    let mut multicast = match &field {
        Some(field) => field.choice(&choices)?,
        None => config.multicast(),
    };
    if let Multicast::Gossip { spread, refresh } = &mut multicast {
        let most = |field: &Field<'_>| field.integer(0..=64).map(|spread| spread as u16);
        *spread = section.or("spread", *spread, most)?;
        *refresh = section.or("refresh", *refresh, Field::span)?;
    }
    config = config.with_multicast(multicast).map_err(|error| {
        let field = field.as_ref().unwrap_or_else(|| section.field());
        let allowed = "\"substrate\", \"oracle\", \"own-list\", or form = \"hardened\"";
        field.error(format!("cannot work: {error}")).with_allowed(allowed)
    })?;
    config = config.with_ask_self(section.or("ask_self", true, Field::flag)?);
    Ok(config.with_preempt(section.or("preempt", false, Field::flag)?))
}

/// What nodes are in an election, where they can say so.
fn roles(section: &mut Section<'_>, nodes: u32) -> Result<Roles> {
    let each = |field: Option<Field<'_>>, most: u32| -> Result<Vec<u32>> {
        let Some(field) = field else { return Ok(Vec::new()) };
        field.list()?.iter().map(|one| one.integer(0..=most)).collect()
    };
    let attributes = section.take("attributes");
    let attributes = each(attributes, u32::MAX)?;
    let observers = section.take("observers");
    let observers = each(observers, nodes.saturating_sub(1))?;
    Ok(Roles { attributes, observers, survey: section.or("survey", false, Field::flag)? })
}

/// Who is better, and by how much one must be to replace another.
fn standing(
    section: &mut Section<'_>,
    config: churn_tolerant::Config,
    roles: &Roles,
) -> Result<churn_tolerant::Config> {
    use churn_tolerant::Criterion::{Attribute, Hash, Identity};
    let choices = [("hash", Hash), ("identity", Identity), ("attribute", Attribute)];
    let stated = section.take("criterion");
    let criterion = match &stated {
        Some(field) => field.choice(&choices)?,
        None => Hash,
    };
    if let Some(field) = stated.filter(|_| criterion == Attribute && roles.attributes.is_empty()) {
        return Err(field
            .error("compares what nobody has")
            .with_allowed("\"hash\", \"identity\", or attributes = [ … ] on a live membership"));
    }
    let margin = section.or("margin", 0, |field| field.integer(0..=u32::MAX))?;
    config.with_criterion(criterion, margin).map_err(|error| refused(section, error))
}

/// As by default.
const GOSSIP: Multicast = Multicast::Gossip { spread: 2, refresh: Duration::from_secs(2) };

fn elections<'a>() -> [(&'static str, Reader<'a, u32, Protocol>); 9] {
    [
        ("announce", |section, _| announce(section)),
        ("announce-several", |section, _| {
            let (announce, listen) = periods(section)?;
            let suppression = suppression(section)?;
            let leaders = section.require("leaders", "2")?.integer(1..=u32::MAX)?;
            let config = several::Config::new(announce, listen, suppression, leaders);
            Ok(Protocol::Several(config.map_err(|error| refused(section, error))?))
        }),
        ("sup", |section, _| {
            let config = SupConfig::new(suppression(section)?);
            Ok(Protocol::Sup(config.map_err(|error| refused(section, error))?))
        }),
        ("al", |section, _| {
            let (announce, listen) = periods(section)?;
            let config = AlConfig::new(announce, listen);
            Ok(Protocol::Al(config.map_err(|error| refused(section, error))?))
        }),
        ("sup-al", |section, _| {
            let (announce, listen) = periods(section)?;
            let suppression = suppression(section)?;
            let composition = section
                .require("composition", "\"defer\" or \"persist\"")?
                .choice(&[("defer", Composition::Defer), ("persist", Composition::Persist)])?;
            let config = SupAlConfig::new(announce, listen, suppression, composition);
            Ok(Protocol::SupAl(config.map_err(|error| refused(section, error))?))
        }),
        ("bandit", |section, nodes| bandit::settings(section, *nodes)),
        ("central", |section, _| central::central(section)),
        (CHURN_TOLERANT, |section, _| {
            let error = section.field().error_unquoted("has no membership to stand on");
            Err(error.with_allowed("[membership] with kind = \"medley\" beside it"))
        }),
        (ring::LEASED, |section, _| {
            let error = section.field().error_unquoted("has no ring to stand on");
            Err(error.with_allowed("[membership] with kind = \"ring\" beside it"))
        }),
    ]
}

/// The machine's own configuration refused what each field allows by itself.
pub(super) fn refused(section: &Section<'_>, error: impl std::fmt::Display) -> SettingsError {
    let error = section.field().error_unquoted(format!("cannot work: {error}"));
    error.with_allowed("settings that go together; docs/scenarios.md lists them")
}

fn ping(section: &mut Section<'_>, nodes: u32) -> Result<Protocol> {
    if nodes < 2 {
        let error = section.field().error_unquoted("has nobody to ping: there is one node");
        return Err(error.with_allowed("network.nodes = 2 or more"));
    }
    let period = section.require("period", "\"20ms\"")?.span()?;
    let field = section.require("timeout", "\"5ms\"")?;
    let timeout = field.span()?;
    if timeout >= period {
        let error = field.error(format!("does not end within the period of {period}"));
        return Err(error.with_allowed(format!("less than \"{period}\"")));
    }
    Ok(Protocol::Ping(PingConfig { period, timeout }))
}

/// Times default to the thesis's proportions of the period: a quarter for the answer, eight for the
/// suspicion, half of that for patience, twenty for attention.
fn medley(section: &mut Section<'_>) -> Result<Protocol> {
    let form = section.or("form", Form::Hardened, |field| {
        field.choice(&[("hardened", Form::Hardened), ("as-published", Form::AsPublished)])
    })?;
    let strategy = section.or("feedback", Strategy::Both, |field| {
        field.choice(&[
            ("none", Strategy::Medley),
            ("active", Strategy::Active),
            ("passive", Strategy::Passive),
            ("both", Strategy::Both),
        ])
    })?;
    let mut config = medley::Config::new(strategy, form);
    if let Some(field) = section.take("exponent") {
        config = config.with_exponent(field.number()?).map_err(|error| {
            field.error(format!("cannot work: {error}")).with_allowed("a number from 0 to 16")
        })?;
    }
    let period = section.or("period", config.period(), Field::span)?;
    let ack = section.or("ack", period.div(4), Field::span)?;
    let suspicion = section.or("suspicion", period * 8, Field::span)?;
    config = config.with_times(period, ack, suspicion).map_err(|error| refused(section, error))?;
    let interval = suspicion.div(2);
    let hardened = form == Form::Hardened;
    let silence = hardened.then_some(interval * 2);
    config = config
        .with_patience(Patience { interval, gain: 0.125, silence })
        .and_then(|config| config.with_attention(Attention { timeout: period * 20, chance: 0.1 }))
        .map_err(|error| refused(section, error))?;
    if let Some(field) = section.take("helpers") {
        let helpers = field.integer(0..=16)? as usize;
        config = config.with_helpers(helpers).map_err(|error| refused(section, error))?;
    }
    config = config.with_selection(section.or("selection", Selection::Bag, |field| {
        field.choice(&[("bag", Selection::Bag), ("independent", Selection::Independent)])
    })?);
    config = config.with_phase(section.or("phase", Phase::Random, |field| {
        field.choice(&[("random", Phase::Random), ("sync", Phase::Sync)])
    })?);
    config = config.with_carriers(section.or("carriers", Carriers::PushPull, |field| {
        field.choice(&[("push-pull", Carriers::PushPull), ("pull-only", Carriers::PullOnly)])
    })?);
    config = config
        .with_caution(section.or("caution", hardened, Field::flag)?)
        .map_err(|error| refused(section, error))?;
    if let Some(field) = section.take("sync") {
        let periods = match field.text() {
            Ok("never") => None,
            _ => Some(field.integer(1..=1_000_000)?),
        };
        config = config.with_sync(periods).map_err(|error| refused(section, error))?;
    }
    if let Some(field) = section.take("beat") {
        config = config.with_beat(Some(field.span()?)).map_err(|error| {
            field
                .error(format!("cannot work: {error}"))
                .with_allowed("a time shorter than the period")
        })?;
    }
    if let Some(field) = section.take("bag_cap") {
        let cap = match field.text() {
            Ok("none") => None,
            _ => Some(field.integer(1..=1_000_000)?),
        };
        config = config.with_bag_cap(cap).map_err(|error| refused(section, error))?;
    }
    let (health, patience) = section.or("lifeguard", (false, false), |field| {
        field.choice(&[
            ("off", (false, false)),
            ("health", (true, false)),
            ("suspicion", (false, true)),
            ("on", (true, true)),
        ])
    })?;
    config = config.with_local_health(health).with_patient_suspicion(patience);
    if let Some(field) = section.take("news") {
        let piggyback = match field.choice(&[("bounded", false), ("whole-table", true)])? {
            false => Piggyback::Bounded { most: 16, lambda: 3 },
            true => Piggyback::WholeTable { lifetime: (period * 15).div(2) },
        };
        config = config.with_piggyback(piggyback).map_err(|error| refused(section, error))?;
    }
    Ok(Protocol::Medley(config))
}

/// `T_A` and `T_L`.
fn periods(section: &mut Section<'_>) -> Result<(Duration, Option<Duration>)> {
    let announce = section.require("announce", "\"1s\"")?.span()?;
    let field = section.require("listen", "\"3s\" or \"never\"")?;
    let listen = match field.text() {
        Ok("never") => None,
        _ => Some(field.duration()?),
    };
    if listen.is_some_and(|listen| listen < announce) {
        let problem =
            format!("ends before a leader announces itself again (announce = {announce})");
        let allowed = format!("at least \"{announce}\", or \"never\"");
        return Err(field.error(problem).with_allowed(allowed));
    }
    Ok((announce, listen))
}

/// `d(T_S)`.
fn suppression(section: &mut Section<'_>) -> Result<Suppression> {
    #[derive(Clone, Copy)]
    enum Timer {
        Uniform,
        Fixed,
        Exponential,
        Mapped,
    }
    let timer = section.or("timer", Timer::Uniform, |field| {
        field.choice(&[
            ("uniform", Timer::Uniform),
            ("fixed", Timer::Fixed),
            ("exponential", Timer::Exponential),
            ("mapped", Timer::Mapped),
        ])
    })?;
    let longest = section.require("suppress", "\"1s\"")?.duration()?;
    Ok(match timer {
        Timer::Uniform => Suppression::Uniform(longest),
        Timer::Fixed => Suppression::Fixed(longest),
        Timer::Exponential => {
            let lambda = section.require("lambda", "5.6")?.length()?;
            Suppression::Exponential { longest, lambda }
        }
        Timer::Mapped => {
            Suppression::Mapped { longest, jitter: section.require("jitter", "0.5")?.rate()? }
        }
    })
}

fn announce(section: &mut Section<'_>) -> Result<Protocol> {
    #[derive(Clone, Copy, PartialEq)]
    enum Variant {
        LeA,
        LeS,
        LeM,
    }
    let variant = section.require("variant", "\"le-a\", \"le-s\" or \"le-m\"")?.choice(&[
        ("le-a", Variant::LeA),
        ("le-s", Variant::LeS),
        ("le-m", Variant::LeM),
    ])?;
    let (announce, listen) = periods(section)?;
    let suppression = match variant {
        Variant::LeA => no_suppression(section)?,
        Variant::LeS | Variant::LeM => suppression(section)?,
    };
    let rules = section.or("form", Rules::Hardened, |field| {
        field.choice(&[
            ("hardened", Rules::Hardened),
            ("corrected", Rules::Corrected),
            ("as-published", Rules::AsPublished),
        ])
    })?;
    let mut config = Config::new(announce, listen, suppression, rules)
        .map_err(|error| refused(section, error))?;
    if variant == Variant::LeM {
        config = config.with_criterion(Criterion::Wake).map_err(|error| refused(section, error))?;
    }
    let random_goodness = match section.take("criterion") {
        Some(field) if variant == Variant::LeM && !section.is_leftover("criterion") => {
            let error = field.error("has no meaning in le-m, where the first to wake is the best");
            return Err(error.with_allowed("leave it out, or variant = \"le-s\""));
        }
        Some(field) => field.choice(&[("identity", false), ("random", true)])?,
        None => false,
    };
    let config = policies(section, config)?;
    Ok(Protocol::Announce(AnnounceSettings { config, random_goodness }))
}

/// LE-A has no wait to configure; what a changed variant left behind may stay.
fn no_suppression(section: &mut Section<'_>) -> Result<Suppression> {
    for key in ["suppress", "timer", "lambda", "jitter"] {
        if !section.is_leftover(key)
            && let Some(field) = section.take(key)
        {
            let error = field.error("has no meaning in le-a, which claims leadership at once");
            return Err(error.with_allowed("leave it out, or variant = \"le-s\""));
        }
    }
    Ok(Suppression::None)
}

fn policies(section: &mut Section<'_>, mut config: Config) -> Result<Config> {
    let apply = |result: std::result::Result<Config, ConfigError>, field: &Field<'_>, allowed| {
        result.map_err(|error| field.error(format!("cannot work: {error}")).with_allowed(allowed))
    };
    if let Some(field) = section.take("reply") {
        config = apply(config.with_reply(field.duration()?), &field, "at least \"1us\"")?;
    }
    if let Some(field) = section.take("tenure") {
        let choices = [("preemptive", Tenure::Preemptive), ("sticky", Tenure::Sticky)];
        let allowed = "\"preemptive\", or hardened rules and a listen timeout";
        config = apply(config.with_tenure(field.choice(&choices)?), &field, allowed)?;
    }
    if let Some(field) = section.take("bye") {
        let mut table = field.clone().section()?;
        let copies = table.require("copies", "2")?.integer(1..=255)?;
        let spacing = table.require("spacing", "\"200ms\"")?.duration()?;
        table.end()?;
        let copies = u8::try_from(copies).unwrap_or(u8::MAX);
        let allowed = "{ copies = 2, spacing = \"200ms\" }";
        config = apply(config.with_bye(Bye { copies, spacing }), &field, allowed)?;
    }
    if let Some(field) = section.take("entry") {
        let timeout = |section: &mut Section<'_>| section.require("query", "\"400ms\"")?.span();
        let entry = match field.choice(&[("plain", 0), ("query", 1), ("suppress-query", 2)])? {
            0 => Entry::Plain,
            1 => Entry::Query { timeout: timeout(section)? },
            _ => Entry::SuppressThenQuery { timeout: timeout(section)? },
        };
        let allowed = "a query above zero, such as \"400ms\"";
        config = apply(config.with_entry(entry), &field, allowed)?;
    }
    Ok(config)
}
