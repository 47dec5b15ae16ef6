//! `[election.NAME]`: one reader for each mode.

use bellwether_proto::{
    Mode,
    election::churn_tolerant::Variant,
    node::{
        AnnouncedSettings, ElectionSettings, EventualSettings, HIGHEST, LEARNED_MARGIN,
        ModeSettings, OnIsolation, PRIORITY, Role, Timing, check_name,
    },
};

use crate::{
    central,
    field::{Field, NAMES, Result, Section},
    host::Host,
    learned, leased,
};
pub use crate::{central::hysteresis, leased::FLAVOURS};

/// An election, and what is left to its host.
#[derive(Debug)]
pub struct Election<'a> {
    /// What the protocol is told.
    pub settings: ElectionSettings,
    /// `neighbours`, which says where the host learns who is in range.
    pub neighbours: Option<Field<'a>>,
}

/// Reads an election.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn read<'a>(
    name: &str,
    field: Field<'a>,
    timing: &Timing,
    host: Host<'_>,
) -> Result<Election<'a>> {
    if let Err(problem) = check_name(name) {
        return Err(field.error_unquoted(problem).with_allowed(NAMES));
    }
    let mut section = field.section()?;
    let mode = section.or("mode", Mode::Eventual, |field| field.choice(&MODES))?;
    refuse_others(&section, mode)?;
    let role = section.or("role", Role::Candidate, |field| role(field, mode))?;
    let learned = match mode {
        Mode::Eventual => by_record(&mut section, "priority")?,
        Mode::Leased => by_record(&mut section, "hash")?,
        _ => false,
    };
    let priority = section.take("priority");
    if let Some(field) = &priority {
        if role == Role::Observer {
            let error = field.error("is for candidates; this node is an observer and never leads");
            return Err(error.with_allowed("no priority, or role = \"candidate\""));
        }
        if learned {
            let error = field.error("does not go with criterion = \"learned\"");
            return Err(error.with_allowed("no priority, or criterion = \"priority\""));
        }
    }
    let priority = priority.map_or(Ok(PRIORITY), |field| field.integer(0..=HIGHEST))?;
    let mut neighbours = None;
    let mode = match mode {
        Mode::Eventual => ModeSettings::Eventual(eventual(&mut section, learned)?),
        Mode::Announced => {
            let tenures = [("sticky", true), ("preemptive", false)];
            let sticky = section.or("tenure", true, |field| field.choice(&tenures))?;
            ModeSettings::Announced(AnnouncedSettings { sticky })
        }
        Mode::Leased => ModeSettings::Leased(leased::read(&mut section, learned, host)?),
        Mode::Learned => ModeSettings::Learned(learned::read(&mut section, timing, host)?),
        Mode::Central => {
            neighbours = section.take("neighbours");
            let given = neighbours.as_ref();
            let central = central::read(&mut section, given, timing.profile, host)?;
            ModeSettings::Central(central)
        }
    };
    section.end()?;
    let settings = ElectionSettings { name: name.to_owned(), mode, role, priority };
    Ok(Election { settings, neighbours })
}

/// What other modes know and this one does not.
fn refuse_others(section: &Section<'_>, mode: Mode) -> Result<()> {
    let keys = |mode: Mode| KEYS.iter().find(|(one, _)| *one == mode).map_or(&[][..], |one| one.1);
    let name = |mode: Mode| MODES.iter().find(|(_, one)| *one == mode).map_or("", |one| one.0);
    let own = keys(mode);
    for &key in KEYS.iter().flat_map(|(_, keys)| *keys).filter(|key| !own.contains(key)) {
        let Some(field) = section.peek(key) else { continue };
        let article = if matches!(mode, Mode::Eventual | Mode::Announced) { "an" } else { "a" };
        let error = field.error(format!("means nothing in {article} {} election", name(mode)));
        let modes = KEYS.iter().filter(|(_, keys)| keys.contains(&key));
        let modes: Vec<String> = modes.map(|(one, _)| format!("{:?}", name(*one))).collect();
        let allowed = format!("{}; {key} is for mode = {}", own.join(", "), modes.join(", "));
        return Err(error.with_allowed(allowed));
    }
    Ok(())
}

fn role(field: &Field<'_>, mode: Mode) -> Result<Role> {
    match (mode, field.text()) {
        (Mode::Leased, Ok("observer")) => {
            let error =
                field.error("is for other modes: nobody outside a leased election learns of it");
            Err(error.with_allowed("\"candidate\", or \"witness\", which votes and never leads"))
        }
        (Mode::Leased, _) => {
            field.choice(&[("candidate", Role::Candidate), ("witness", Role::Witness)])
        }
        (Mode::Central, Ok("observer")) => {
            let error = field
                .error("is not possible in a central election: whoever is on the map may lead");
            Err(error.with_allowed("\"candidate\", or no such election on this node"))
        }
        (Mode::Central, _) => field.choice(&[("candidate", Role::Candidate)]),
        _ => field.choice(&[("candidate", Role::Candidate), ("observer", Role::Observer)]),
    }
}

/// Whether what a node has been found to be good for decides, and not this.
fn by_record(section: &mut Section<'_>, otherwise: &'static str) -> Result<bool> {
    section.or("criterion", false, |field| field.choice(&[(otherwise, false), ("learned", true)]))
}

fn eventual(section: &mut Section<'_>, learned: bool) -> Result<EventualSettings> {
    let margin = if learned { LEARNED_MARGIN } else { 0 };
    let default = EventualSettings { margin, learned, ..EventualSettings::default() };
    Ok(EventualSettings {
        variant: section.or("variant", default.variant, |field| field.choice(&VARIANTS))?,
        c: section.or("c", default.c, tolerated)?,
        f: section.or("f", default.f, tolerated)?,
        margin: section.or("margin", default.margin, |field| field.integer(0..=HIGHEST))?,
        on_isolation: section.or("on_isolation", default.on_isolation, on_isolation)?,
        learned,
    })
}

/// `c` or `f`: what the protocol tolerates.
///
/// # Errors
///
/// It tolerates no more than 4096.
pub fn tolerated(field: &Field<'_>) -> Result<u16> {
    field.integer(0..=4096).map(|bound| u16::try_from(bound).unwrap_or(u16::MAX))
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
            match time.trim().parse::<bellwether_proto::Duration>() {
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

/// Every mode, as it is written.
pub const MODES: [(&str, Mode); 5] = [
    ("eventual", Mode::Eventual),
    ("announced", Mode::Announced),
    ("leased", Mode::Leased),
    ("learned", Mode::Learned),
    ("central", Mode::Central),
];
/// What each of them knows besides `mode`.
const KEYS: [(Mode, &[&str]); 5] = [
    (
        Mode::Eventual,
        &["role", "priority", "variant", "c", "f", "margin", "on_isolation", "criterion"],
    ),
    (Mode::Announced, &["role", "priority", "tenure"]),
    (Mode::Leased, &["role", "members", "flavour", "drift", "criterion", "tenure", "margin"]),
    (Mode::Learned, &["role", "voters", "policy", "lease", "sample", "memory", "tenure", "margin"]),
    (
        Mode::Central,
        &[
            "role",
            "criterion",
            "spread",
            "rho",
            "tick",
            "hysteresis",
            "dwell",
            "horizon",
            "beacon",
            "silence",
            "neighbours",
        ],
    ),
];
/// Every variant of an eventual election, as it is written.
pub const VARIANTS: [(&str, Variant); 4] = [
    ("base", Variant::Base),
    ("optimistic", Variant::Optimistic),
    ("preferred", Variant::Preferred),
    ("hybrid", Variant::Hybrid),
];
