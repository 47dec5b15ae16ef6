//! Named elections.

use std::collections::BTreeMap;

use bellwether_proto::{
    election::churn_tolerant::Variant,
    node::{
        AnnouncedSettings, ElectionSettings, EventualSettings, HIGHEST, LEARNED_MARGIN,
        ModeSettings, OnIsolation, PRIORITY, Role, check_name,
    },
};

use super::{
    Config, central,
    field::{Field, NAMES, Result, parse_duration},
    learned, leased,
};
use crate::neighbours::Table;

/// The elections, and the tables by which some of them know who is in range.
pub(super) type Elections = (Vec<ElectionSettings>, BTreeMap<String, Table>);

/// All `[election.NAME]`, or one eventual election called `default`.
pub(super) fn read(field: Option<Field<'_>>, config: &Config) -> Result<Elections> {
    let named = field.map_or(Ok(Vec::new()), Field::named)?;
    if named.len() > MOST {
        let (_, surplus) = &named[MOST];
        let error = surplus.error_unquoted(format!("is election number {}", MOST + 1));
        return Err(error.with_allowed(format!("at most {MOST} elections")));
    }
    if named.is_empty() {
        return Ok((vec![ElectionSettings::default()], BTreeMap::new()));
    }
    let mut tables = BTreeMap::new();
    let elections = named.into_iter().map(|(name, field)| one(name, field, config, &mut tables));
    Ok((elections.collect::<Result<_>>()?, tables))
}

fn one(
    name: &str,
    field: Field<'_>,
    config: &Config,
    tables: &mut BTreeMap<String, Table>,
) -> Result<ElectionSettings> {
    if let Err(problem) = check_name(name) {
        return Err(field.error_unquoted(problem).with_allowed(NAMES));
    }
    let mut section = field.section()?;
    let mode = section.or("mode", Promise::Eventual, promise)?;
    if let Promise::Leased = mode {
        let role = section.or("role", Role::Candidate, leased::role)?;
        let mode = ModeSettings::Leased(leased::read(&mut section, config)?);
        section.end()?;
        return Ok(ElectionSettings { name: name.to_owned(), mode, role, priority: PRIORITY });
    }
    if let Promise::Central = mode {
        let (central, table) = central::read(&mut section, config.timing.profile)?;
        tables.extend(table.map(|table| (name.to_owned(), table)));
        let mode = ModeSettings::Central(central);
        section.end()?;
        let role = Role::Candidate;
        return Ok(ElectionSettings { name: name.to_owned(), mode, role, priority: PRIORITY });
    }
    let role = section.or("role", Role::Candidate, |field| {
        field.choice(&[("candidate", Role::Candidate), ("observer", Role::Observer)])
    })?;
    let priority = section.take("priority");
    if let (Role::Observer, Some(priority)) = (role, &priority) {
        let error = priority.error("is for candidates; this node is an observer and never leads");
        return Err(error.with_allowed("no priority, or role = \"candidate\""));
    }
    let priority = priority.map_or(Ok(PRIORITY), |field| field.integer(0..=HIGHEST))?;
    if !matches!(mode, Promise::Learned) {
        for key in ["voters", "policy", "lease", "sample", "memory"] {
            if let Some(field) = section.take(key) {
                let error = field.error("is for learned elections");
                return Err(error.with_allowed("mode = \"learned\""));
            }
        }
    }
    let mode = match mode {
        Promise::Learned => ModeSettings::Learned(learned::read(&mut section, config)?),
        Promise::Announced => {
            for key in ["variant", "c", "f", "margin", "on_isolation", "criterion"] {
                if let Some(field) = section.take(key) {
                    let error = field.error("means nothing in an announced election");
                    let allowed = "role, priority and tenure, or mode = \"eventual\"";
                    return Err(error.with_allowed(allowed));
                }
            }
            let sticky = section.or("tenure", true, |field| {
                field.choice(&[("sticky", true), ("preemptive", false)])
            })?;
            ModeSettings::Announced(AnnouncedSettings { sticky })
        }
        Promise::Eventual => {
            if let Some(field) = section.take("tenure") {
                let error = field.error("is for announced elections");
                return Err(error.with_allowed("margin, or mode = \"announced\""));
            }
            let learned = section.or("criterion", false, |field| {
                field.choice(&[("priority", false), ("learned", true)])
            })?;
            if let (true, Some(field)) = (learned, section.take("priority")) {
                let error = field.error("does not go with criterion = \"learned\"");
                return Err(error.with_allowed("no priority, or criterion = \"priority\""));
            }
            let margin = if learned { LEARNED_MARGIN } else { 0 };
            let default = EventualSettings { margin, learned, ..EventualSettings::default() };
            let bound = |field: &Field<'_>| {
                field.integer(0..=TOLERATED).map(|bound| u16::try_from(bound).unwrap_or(u16::MAX))
            };
            ModeSettings::Eventual(EventualSettings {
                variant: section.or("variant", default.variant, |field| field.choice(&VARIANTS))?,
                c: section.or("c", default.c, bound)?,
                f: section.or("f", default.f, bound)?,
                margin: section.or("margin", default.margin, |field| field.integer(0..=HIGHEST))?,
                on_isolation: section.or("on_isolation", default.on_isolation, on_isolation)?,
                learned,
            })
        }
        Promise::Leased => unreachable!("read above"),
        Promise::Central => unreachable!("read above"),
    };
    section.end()?;
    Ok(ElectionSettings { name: name.to_owned(), mode, role, priority })
}

#[derive(Clone, Copy)]
enum Promise {
    Eventual,
    Announced,
    Leased,
    Learned,
    Central,
}

fn promise(field: &Field<'_>) -> Result<Promise> {
    field.choice(&[
        ("eventual", Promise::Eventual),
        ("announced", Promise::Announced),
        ("leased", Promise::Leased),
        ("learned", Promise::Learned),
        ("central", Promise::Central),
    ])
}

fn on_isolation(field: &Field<'_>) -> Result<OnIsolation> {
    let allowed =
        "\"auto\", \"hold\", \"step-down\", or \"hold-for\" and a duration: \"hold-for 30s\"";
    match field.text()? {
        "auto" => Ok(OnIsolation::Auto),
        "hold" => Ok(OnIsolation::Hold),
        "step-down" => Ok(OnIsolation::StepDown),
        text => {
            let Some(time) = text.strip_prefix("hold-for ") else {
                return Err(field.error("is not known here").with_allowed(allowed));
            };
            match parse_duration(time.trim()) {
                Ok(time) if !time.is_zero() => Ok(OnIsolation::HoldFor(time)),
                Ok(_) => Err(field.error("holds for no time at all").with_allowed(allowed)),
                Err(problem) => {
                    let problem = format!("is not a duration: {problem}");
                    Err(field.error(problem).with_allowed(allowed))
                }
            }
        }
    }
}

/// The name of a variant, as it is written.
pub(super) fn variant_name(variant: Variant) -> &'static str {
    VARIANTS.iter().find(|(_, known)| *known == variant).map_or("hybrid", |&(name, _)| name)
}

const VARIANTS: [(&str, Variant); 4] = [
    ("base", Variant::Base),
    ("optimistic", Variant::Optimistic),
    ("preferred", Variant::Preferred),
    ("hybrid", Variant::Hybrid),
];
/// What the protocol tolerates at most.
const TOLERATED: u32 = 4096;
/// Most elections of one agent. Arbitrary; each costs its own messages.
const MOST: usize = 64;
