//! Named elections.

use bellwether_proto::{Duration, election::churn_tolerant::Variant};

use super::{
    Config, Learned,
    central::{Central, Neighbours},
    field::{Field, NAMES, Result, check_name, parse_duration},
    leased::{self, Leased},
};
use crate::status::Role;

/// One named election this agent takes part in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Election {
    /// Its name, the same on every node.
    pub name: String,
    /// What is promised, and by which protocol; the same on every node.
    pub mode: Mode,
    /// What this node is in it.
    pub role: Role,
    /// What this node is worth there; more is better.
    pub priority: u32,
}

/// A promise and the settings of the protocol that keeps it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Mode {
    /// One leader per connected part, once it is quiet; no quorum.
    Eventual(Eventual),
    /// One leader per segment of local multicast; nothing to configure.
    Announced(Announced),
    /// At most one leader may act at any instant; a majority of the members.
    Leased(Leased),
    /// At most one leader to a term, by the votes of a majority, whoever was the most reliable.
    Learned(Learned),
    /// The most central node of each connected part of a mesh leads it.
    Central(Central),
}

/// Settings of an announced election.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Announced {
    /// Whether a better newcomer leaves a leader in office alone.
    pub sticky: bool,
}

/// Settings of an eventual election.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Eventual {
    /// Which of the four protocols.
    pub variant: Variant,
    /// From how many other lists a live node may be missing. Raising it costs two messages an election.
    pub c: u16,
    /// How many may crash while an election runs. Raising it costs two messages an election.
    pub f: u16,
    /// By how much a challenger's priority must exceed the leader's.
    pub margin: u32,
    /// What a leader does that hears nobody any more.
    pub on_isolation: OnIsolation,
    /// Whether a node is worth what it has been found to be good for, and not what is configured.
    pub learned: bool,
}

impl Election {
    /// Whether what a node is worth is configured.
    pub fn has_priority(&self) -> bool {
        match &self.mode {
            Mode::Eventual(eventual) => !eventual.learned,
            Mode::Announced(_) => true,
            Mode::Leased(_) | Mode::Learned(_) | Mode::Central(_) => false,
        }
    }
}

/// What a leader does that hears nobody any more.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnIsolation {
    /// Goes on leading: a network of one has a leader, and so has the other part.
    #[default]
    Hold,
    /// Goes on for so long.
    HoldFor(Duration),
    /// Stops leading once it has given up on all others.
    StepDown,
}

impl Mode {
    /// As it is written.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Eventual(_) => "eventual",
            Self::Announced(_) => "announced",
            Self::Leased(_) => "leased",
            Self::Learned(_) => "learned",
            Self::Central(_) => "central",
        }
    }
}

impl Mode {
    /// Whether it is decided by what is said to everybody on the local link.
    pub(crate) fn is_multicast(&self) -> bool {
        match self {
            Self::Eventual(_) | Self::Leased(_) | Self::Learned(_) => false,
            Self::Announced(_) => true,
            Self::Central(central) => matches!(central.neighbours, Neighbours::Beacons { .. }),
        }
    }
}

impl Default for Eventual {
    fn default() -> Self {
        Self {
            variant: Variant::Hybrid,
            c: 4,
            f: 1,
            margin: 0,
            on_isolation: OnIsolation::default(),
            learned: false,
        }
    }
}

impl Default for Election {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            mode: Mode::Eventual(Eventual::default()),
            role: Role::Candidate,
            priority: PRIORITY,
        }
    }
}

impl std::fmt::Display for OnIsolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hold => f.write_str("hold"),
            Self::HoldFor(time) => write!(f, "hold-for {time}"),
            Self::StepDown => f.write_str("step-down"),
        }
    }
}

/// All `[election.NAME]`, or one eventual election called `default`.
pub(super) fn read(field: Option<Field<'_>>, config: &Config) -> Result<Vec<Election>> {
    let named = field.map_or(Ok(Vec::new()), Field::named)?;
    if named.len() > MOST {
        let (_, surplus) = &named[MOST];
        let error = surplus.error_unquoted(format!("is election number {}", MOST + 1));
        return Err(error.with_allowed(format!("at most {MOST} elections")));
    }
    if named.is_empty() {
        return Ok(vec![Election::default()]);
    }
    named.into_iter().map(|(name, field)| one(name, field, config)).collect()
}

fn one(name: &str, field: Field<'_>, config: &Config) -> Result<Election> {
    if let Err(problem) = check_name(name) {
        return Err(field.error_unquoted(problem).with_allowed(NAMES));
    }
    let mut section = field.section()?;
    let mode = section.or("mode", Promise::Eventual, promise)?;
    if let Promise::Leased = mode {
        let role = section.or("role", Role::Candidate, leased::role)?;
        let mode = Mode::Leased(leased::read(&mut section, config)?);
        section.end()?;
        return Ok(Election { name: name.to_owned(), mode, role, priority: PRIORITY });
    }
    if let Promise::Central = mode {
        let mode = Mode::Central(Central::read(&mut section, config.timing.profile)?);
        section.end()?;
        let role = Role::Candidate;
        return Ok(Election { name: name.to_owned(), mode, role, priority: PRIORITY });
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
        Promise::Learned => Mode::Learned(Learned::read(&mut section, config)?),
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
            Mode::Announced(Announced { sticky })
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
            let default = Eventual { margin, learned, ..Eventual::default() };
            let bound = |field: &Field<'_>| {
                field.integer(0..=TOLERATED).map(|bound| u16::try_from(bound).unwrap_or(u16::MAX))
            };
            Mode::Eventual(Eventual {
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
    Ok(Election { name: name.to_owned(), mode, role, priority })
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
    let allowed = "\"hold\", \"step-down\", or \"hold-for\" and a duration: \"hold-for 30s\"";
    match field.text()? {
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
/// In the middle, so that some can be worth less without all having to say so.
const PRIORITY: u32 = 100;
pub(crate) const HIGHEST: u32 = 1_000_000;
/// A tenth of what a learned worth may be: nobody takes over from a leader for a hiccup.
pub(super) const LEARNED_MARGIN: u32 = 100;
/// What the protocol tolerates at most.
const TOLERATED: u32 = 4096;
/// Most elections of one agent. Arbitrary; each costs its own messages.
const MOST: usize = 64;
