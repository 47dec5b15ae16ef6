//! `[node]`: what an agent runs, in an agent's own keys. Names, defaults and meanings are those of `docs/agent.md`.
//!
//! Nodes are called `node-0`, `node-1`, …, joiners after them. Where an agent demands a list of members or voters, the
//! nodes of the start are meant unless a list is given.

use std::collections::BTreeMap;

use bellwether_proto::{
    Duration, ElectionId, Epoch, Peer,
    election::{
        announce,
        bandit::{self, MAX_MEMBERS},
        central::{Criterion, Hysteresis},
        churn_tolerant::{self, Variant},
        leased::Flavour,
    },
    node::{
        AnnouncedSettings, CentralSettings, Durable, ElectionSettings, EventualSettings, Feedback,
        HIGHEST, Keeping, Kept, KeptBallot, LEARNED_MARGIN, LearnedSettings, LeasedSettings,
        ModeSettings, Neighbours, OnIsolation, PRIORITY, Policy, Role, Settings, Spread, TENURE,
        Timing, TimingProfile, check_name,
    },
};

use super::{
    Protocol,
    section::{Field, Result, Section},
};

/// What nodes are to be.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSettings {
    /// What all are, but for names and positions: those are the simulator's.
    pub common: Settings,
    /// Nodes that were told something else.
    pub others: BTreeMap<u32, Settings>,
    /// Nodes that have elected so many leaders before the run begins, as their disks say.
    pub aged: BTreeMap<u32, u64>,
    /// Whether every other life of a node writes its packets as a later version might: see
    /// [`Dialect`](bellwether_proto::node::packet::Dialect).
    pub upgrading: bool,
}

impl NodeSettings {
    /// All alike.
    pub fn alike(timing: Timing, elections: Vec<ElectionSettings>) -> Self {
        Self {
            common: Settings::new("node", timing, elections),
            others: BTreeMap::new(),
            aged: BTreeMap::new(),
            upgrading: false,
        }
    }

    /// The same where the first `nodes` nodes are the members and voters of elections that name none.
    pub fn among(mut self, nodes: u32) -> Self {
        let names = || (0..nodes).map(name_of).collect::<Vec<_>>();
        for settings in std::iter::once(&mut self.common).chain(self.others.values_mut()) {
            for election in &mut settings.elections {
                let list = match &mut election.mode {
                    ModeSettings::Leased(leased) => &mut leased.members,
                    ModeSettings::Learned(learned) => &mut learned.voters,
                    _ => continue,
                };
                if list.is_empty() {
                    *list = names();
                    list.sort_unstable();
                }
            }
        }
        self
    }

    /// What this node is to be. It has no seat in leased elections that it is no member of: an agent would not start.
    pub fn of(&self, node: u32) -> Settings {
        let mut settings = self.others.get(&node).unwrap_or(&self.common).clone();
        let name = name_of(node);
        settings.elections.retain(|election| match &election.mode {
            ModeSettings::Leased(leased) => leased.members.contains(&name),
            _ => true,
        });
        settings.about.name = name;
        settings
    }
}

impl NodeSettings {
    /// What is on the disk of a node that starts for the first time.
    pub fn disk(&self, me: Peer) -> Option<Durable> {
        let node = me.id.get() as u32;
        let counter = *self.aged.get(&node)?;
        let epoch = Epoch::mint(counter, me);
        let kept = |election: &ElectionSettings| {
            let kept = match &election.mode {
                ModeSettings::Eventual(_) => {
                    let known = Some(epoch);
                    Kept::Eventual(churn_tolerant::Durable { known, vouched: known })
                }
                ModeSettings::Announced(_) => {
                    let vouched = Some(epoch);
                    Kept::Announced(announce::Durable { max_epoch: counter, vouched })
                }
                ModeSettings::Leased(_) => Kept::Leased(epoch),
                ModeSettings::Learned(_) => {
                    let durable = bandit::Durable { term: counter, ..bandit::Durable::default() };
                    Kept::Learned(KeptBallot { voters: BTreeMap::new(), durable: Some(durable) })
                }
                ModeSettings::Central(_) => return None,
            };
            Some((ElectionId::named(&election.name), kept))
        };
        let elections = self.of(node).elections.iter().filter_map(kept).collect();
        Some(Durable { elections, record: None })
    }
}

/// What a node is called.
pub(crate) fn name_of(node: u32) -> String {
    format!("node-{node}")
}

pub(super) fn node(field: Field<'_>, nodes: u32) -> Result<Protocol> {
    let mut section = field.clone().section()?;
    let timing = match section.take("timing") {
        Some(field) => timing(field.section()?)?,
        None => TimingProfile::default().timing(),
    };
    let exponent = section.take("exponent").map(|field| number(&field, STEEPEST)).transpose()?;
    let feedback = section.take("feedback");
    let feedback = feedback.map(|field| field.choice(&Feedback::ALL)).transpose()?;
    let named = section.take("election").map_or(Ok(Vec::new()), Field::named)?;
    if let Some((_, surplus)) = named.get(MOST) {
        let error = surplus.error_unquoted(format!("is election number {}", MOST + 1));
        return Err(error.with_allowed(format!("at most {MOST} elections")));
    }
    let mut elections = Vec::with_capacity(named.len().max(1));
    for (name, field) in named {
        elections.push(election(name, field, &timing, nodes)?);
    }
    if elections.is_empty() {
        elections.push(ElectionSettings::default());
    }
    section.end()?;
    let settings = NodeSettings {
        common: Settings { exponent, feedback, ..Settings::new("node", timing, elections) },
        others: BTreeMap::new(),
        aged: BTreeMap::new(),
        upgrading: false,
    };
    let settings = settings.among(nodes);
    match settings.of(0).plan() {
        Ok(_) => Ok(Protocol::Node(settings)),
        Err(error) => {
            let error = field.error_unquoted(format!("cannot work: {error}"));
            Err(error.with_allowed("what docs/agent.md says of each key"))
        }
    }
}

fn timing(mut section: Section<'_>) -> Result<Timing> {
    let profile = section
        .or("profile", TimingProfile::default(), |field| field.choice(&TimingProfile::ALL))?;
    let mut timing = profile.timing();
    for (key, place) in timing.waits_mut() {
        if let Some(field) = section.take(key) {
            *place = wait(&field)?;
        }
    }
    check(&timing, &mut section)?;
    section.end()?;
    Ok(timing)
}

/// Refuses waits that contradict each other, at whichever of the two was written.
fn check(timing: &Timing, section: &mut Section<'_>) -> Result<()> {
    let Timing { period, ack, suspicion, beat, election, refresh, .. } = *timing;
    let Timing { announce, listen, guard, lease, arbitration, .. } = *timing;
    let rules = [
        (ack < period, ("ack", ack), "shorter than", ("period", period), ""),
        (
            suspicion >= period,
            ("suspicion", suspicion),
            "at least",
            ("period", period),
            ", or nobody could contradict in time",
        ),
        (
            listen >= announce + announce,
            ("listen", listen),
            "at least twice",
            ("announce", announce),
            ", or one lost announcement would depose a leader",
        ),
        (
            guard < timing.given_up_after(),
            ("guard", guard),
            "shorter than four times and a half the",
            ("beat", beat),
            " and three times the ack, or a leader would wake up as one after the others have given it up",
        ),
        (
            beat < period,
            ("beat", beat),
            "shorter than",
            ("period", period),
            ", or probes would be sooner",
        ),
        (
            ack <= beat,
            ("beat", beat),
            "at least",
            ("ack", ack),
            ", or a late beat would be taken for a missed one",
        ),
        (refresh >= election, ("refresh", refresh), "at least", ("election", election), ""),
        (
            arbitration <= lease,
            ("arbitration", arbitration),
            "at most",
            ("lease", lease),
            ", or verdicts would outlast what they are about",
        ),
    ];
    for (holds, (name, value), must, (than, other), why) in rules {
        if holds {
            continue;
        }
        let profile = timing.profile.name();
        let (field, other_field) = (section.take(name), section.take(than));
        let (problem, blamed) = match (field, other_field) {
            (Some(field), other_field) => {
                let origin = match other_field {
                    Some(_) => format!("timing.{than} of {other}"),
                    None => format!("{than} of {other} (profile {profile})"),
                };
                (format!("must be {must} {origin}{why}"), field)
            }
            // Each mode cuts it short by itself.
            (None, _) if name == "guard" => continue,
            (None, Some(field)) => {
                let problem = format!(
                    "does not go with {name} of {value} (profile {profile}), which must be {must} {than}{why}"
                );
                (problem, field)
            }
            (None, None) => continue,
        };
        return Err(blamed.error(problem).with_allowed(
            "ack <= beat < period <= suspicion, 2 announce <= listen, guard < 4.5 beat + 3 ack, election <= refresh, arbitration <= lease",
        ));
    }
    Ok(())
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Promise {
    Eventual,
    Announced,
    Leased,
    Learned,
    Central,
}

fn election(name: &str, field: Field<'_>, timing: &Timing, nodes: u32) -> Result<ElectionSettings> {
    if let Err(problem) = check_name(name) {
        return Err(field.error_unquoted(problem).with_allowed(NAMES));
    }
    let mut section = field.section()?;
    let promise = section.or("mode", Promise::Eventual, |field| {
        field.choice(&[
            ("eventual", Promise::Eventual),
            ("announced", Promise::Announced),
            ("leased", Promise::Leased),
            ("learned", Promise::Learned),
            ("central", Promise::Central),
        ])
    })?;
    refuse_others(&mut section, promise)?;
    let role = section.or("role", Role::Candidate, |field| role(field, promise))?;
    let learned = match promise {
        Promise::Eventual => section.or("criterion", false, |field| {
            field.choice(&[("priority", false), ("learned", true)])
        })?,
        Promise::Leased => section
            .or("criterion", false, |field| field.choice(&[("hash", false), ("learned", true)]))?,
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
    let mode = match promise {
        Promise::Eventual => ModeSettings::Eventual(eventual(&mut section, learned)?),
        Promise::Announced => {
            let sticky = section.or("tenure", true, |field| {
                field.choice(&[("sticky", true), ("preemptive", false)])
            })?;
            ModeSettings::Announced(AnnouncedSettings { sticky })
        }
        Promise::Leased => ModeSettings::Leased(leased(&mut section, learned, nodes)?),
        Promise::Learned => ModeSettings::Learned(learned_by_votes(&mut section, timing, nodes)?),
        Promise::Central => ModeSettings::Central(central(&mut section, timing.profile)?),
    };
    section.end()?;
    Ok(ElectionSettings { name: name.to_owned(), mode, role, priority })
}

/// What other modes know and this one does not.
fn refuse_others(section: &mut Section<'_>, promise: Promise) -> Result<()> {
    let (what, keys, allowed): (&str, &[&'static str], &str) = match promise {
        Promise::Eventual => (
            "an eventual election",
            &["tenure", "voters", "policy", "lease", "sample", "memory", "members"],
            "variant, c, f, margin, on_isolation and criterion, or another mode",
        ),
        Promise::Announced => (
            "an announced election",
            &["variant", "c", "f", "margin", "on_isolation", "criterion", "voters", "members"],
            "role, priority and tenure, or mode = \"eventual\"",
        ),
        Promise::Leased => (
            "a leased election",
            &["priority", "variant", "c", "f", "on_isolation", "voters"],
            "role, members, flavour, drift and criterion, or mode = \"eventual\"",
        ),
        Promise::Learned => (
            "a learned election",
            &["priority", "variant", "c", "f", "on_isolation", "criterion", "members"],
            "voters, policy, lease, sample, memory, tenure and margin, or mode = \"eventual\"",
        ),
        Promise::Central => (
            "a central election",
            &["priority", "variant", "c", "f", "margin", "on_isolation", "tenure", "members"],
            "criterion, spread, hysteresis, horizon and beacon",
        ),
    };
    for &key in keys {
        if let Some(field) = section.take(key) {
            let error = field.error(format!("means nothing in {what}"));
            return Err(error.with_allowed(allowed));
        }
    }
    Ok(())
}

fn role(field: &Field<'_>, promise: Promise) -> Result<Role> {
    match (promise, field.text()) {
        (Promise::Leased, Ok("observer")) => {
            let error =
                field.error("is for other modes: nobody outside a leased election learns of it");
            Err(error.with_allowed("\"candidate\", or \"witness\", which votes and never leads"))
        }
        (Promise::Leased, _) => {
            field.choice(&[("candidate", Role::Candidate), ("witness", Role::Witness)])
        }
        (Promise::Central, Ok("observer")) => {
            let error = field
                .error("is not possible in a central election: whoever is on the map may lead");
            Err(error.with_allowed("\"candidate\", or no such election on this node"))
        }
        _ => field.choice(&[("candidate", Role::Candidate), ("observer", Role::Observer)]),
    }
}

fn eventual(section: &mut Section<'_>, learned: bool) -> Result<EventualSettings> {
    let margin = if learned { LEARNED_MARGIN } else { 0 };
    let default = EventualSettings { margin, learned, ..EventualSettings::default() };
    let bound = |field: &Field<'_>| {
        field.integer(0..=TOLERATED).map(|bound| u16::try_from(bound).unwrap_or(u16::MAX))
    };
    Ok(EventualSettings {
        variant: section.or("variant", default.variant, |field| field.choice(&VARIANTS))?,
        c: section.or("c", default.c, bound)?,
        f: section.or("f", default.f, bound)?,
        margin: section.or("margin", default.margin, |field| field.integer(0..=HIGHEST))?,
        on_isolation: section.or("on_isolation", default.on_isolation, on_isolation)?,
        learned,
    })
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
            match parse_wait(time.trim()) {
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

fn leased(section: &mut Section<'_>, learned: bool, nodes: u32) -> Result<LeasedSettings> {
    let members = match section.take("members") {
        Some(field) => names(&field, MOST_MEMBERS, "members; each leases from all others")?,
        None if nodes as usize > MOST_MEMBERS => {
            let problem = format!("is among {nodes} nodes, and names no members");
            let error = section.field().error_unquoted(problem);
            return Err(
                error.with_allowed(format!("members = [\"node-0\", …], at most {MOST_MEMBERS}"))
            );
        }
        None => Vec::new(),
    };
    let flavour = section.or("flavour", Flavour::Quorum, |field| field.choice(&FLAVOURS))?;
    let drift = section.or("drift", DRIFT, |field| field.integer(1..=MOST_DRIFT))?;
    if !learned {
        for key in ["tenure", "margin"] {
            if let Some(field) = section.take(key) {
                let error = field.error("is about records, and a hash decides who comes first");
                return Err(error.with_allowed("criterion = \"learned\""));
            }
        }
        return Ok(LeasedSettings { members, flavour, drift, learned: None });
    }
    if let Some(field) = section.take("criterion").filter(|_| flavour != Flavour::Quorum) {
        let error = field.error(
            "needs a quorum: by any other flavour two might lead if members differ about records",
        );
        return Err(error.with_allowed("flavour = \"quorum\", or criterion = \"hash\""));
    }
    let keeping = Keeping {
        tenure: section.or("tenure", TENURE, wait)?,
        margin: section.or("margin", LEARNED_MARGIN, |field| field.integer(0..=1000))?,
    };
    Ok(LeasedSettings { members, flavour, drift, learned: Some(keeping) })
}

fn learned_by_votes(
    section: &mut Section<'_>,
    timing: &Timing,
    nodes: u32,
) -> Result<LearnedSettings> {
    let voters = match section.take("voters") {
        Some(field) => names(&field, MAX_MEMBERS, "voters, best an odd number")?,
        None if nodes as usize > MAX_MEMBERS => {
            let problem = format!("is among {nodes} nodes, and names no voters");
            let error = section.field().error_unquoted(problem);
            return Err(
                error.with_allowed(format!("voters = [\"node-0\", …], at most {MAX_MEMBERS}"))
            );
        }
        None => Vec::new(),
    };
    let default = LearnedSettings::of(voters);
    let lease = section.take("lease");
    let learned = LearnedSettings {
        policy: section.or("policy", default.policy, |field| field.choice(&Policy::ALL))?,
        lease: lease.as_ref().map(wait).transpose()?,
        sample: section.take("sample").as_ref().map(wait).transpose()?,
        memory: section.or("memory", default.memory, |field| {
            field.integer(1..=1000).map(|samples| u16::try_from(samples).unwrap_or(u16::MAX))
        })?,
        tenure: section.or("tenure", default.tenure, wait)?,
        margin: section.or("margin", default.margin, |field| field.integer(0..=100))?,
        ..default
    };
    let ack = timing.ack;
    if let Some(field) = lease.filter(|_| learned.lease(timing) <= ack * 4) {
        let problem = format!(
            "must be longer than four times the ack of {ack}, or one late answer would depose a leader"
        );
        return Err(field.error(problem).with_allowed("a longer lease, or a shorter timing.ack"));
    }
    Ok(learned)
}

fn central(section: &mut Section<'_>, profile: TimingProfile) -> Result<CentralSettings> {
    let criterion =
        section.or("criterion", Criterion::Closeness, |field| field.choice(&Criterion::NAMED))?;
    let horizon = section.take("horizon");
    let horizon = horizon.map(|field| field.integer(2..=FARTHEST)).transpose()?;
    let (spread, hysteresis) = (spread(section)?, hysteresis(section)?);
    if let Some(field) = section.take("neighbours") {
        let error =
            field.error_unquoted("asks a routing daemon, and there is none in a simulation");
        return Err(error.with_allowed("beacon and silence"));
    }
    let neighbours = beacons(section, profile)?;
    Ok(CentralSettings { spread, criterion, hysteresis, horizon, neighbours })
}

fn spread(section: &mut Section<'_>) -> Result<Spread> {
    let at_once =
        section.or("spread", true, |field| field.choice(&[("at-once", true), ("tick", false)]))?;
    let (rho, tick) = (section.take("rho"), section.take("tick"));
    match (at_once, rho, tick) {
        (true, _, Some(tick)) => {
            let error = tick.error("is for spread = \"tick\"");
            Err(error.with_allowed("rho, or spread = \"tick\""))
        }
        (false, Some(rho), _) => {
            let error = rho.error("is for spread = \"at-once\"");
            Err(error.with_allowed("tick, or spread = \"at-once\""))
        }
        (true, rho, None) => {
            let rho = rho.map_or(Ok(1.0), |field| number(&field, 1.0))?;
            Ok(Spread::AtOnce(libm::round(rho * 1_000.0) as u32))
        }
        (false, None, tick) => Ok(Spread::Tick(tick.map_or(Ok(TICK), |field| wait(&field))?)),
    }
}

fn hysteresis(section: &mut Section<'_>) -> Result<Option<Hysteresis>> {
    let (percent, dwell) = (section.take("hysteresis"), section.take("dwell"));
    let Some(percent) = percent else {
        return match dwell {
            Some(dwell) => {
                let error = dwell.error("bounds a hysteresis, and there is none");
                Err(error.with_allowed("hysteresis = 10 besides, or no dwell"))
            }
            None => Ok(None),
        };
    };
    let percent = percent.integer(1..=HIGHEST_PERCENT)?;
    let dwell = dwell.map_or(Ok(DWELL), |field| wait(&field))?;
    Ok(Some(Hysteresis { percent, dwell }))
}

fn beacons(section: &mut Section<'_>, profile: TimingProfile) -> Result<Neighbours> {
    let (beacon, silence) = (section.take("beacon"), section.take("silence"));
    let period = beacon.as_ref().map(wait).transpose()?;
    let patience = silence.as_ref().map(wait).transpose()?;
    let (default, default_patience) = profile.beacons();
    if patience.unwrap_or(default_patience) <= period.unwrap_or(default) {
        let allowed = "silence above beacon, three times it or more where packets get lost";
        let error = match (&silence, &beacon) {
            (Some(silence), _) => {
                let period = period.unwrap_or(default);
                silence.error(format!("ends before the next beacon, which comes after {period}"))
            }
            (None, Some(beacon)) => beacon.error(format!(
                "is above the silence of {default_patience} (profile {}) after which one is given up",
                profile.name()
            )),
            (None, None) => return Ok(Neighbours::Beacons { period, silence: patience }),
        };
        return Err(error.with_allowed(allowed));
    }
    Ok(Neighbours::Beacons { period, silence: patience })
}

/// Names of nodes, ascending.
fn names(field: &Field<'_>, most: usize, what: &str) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for item in field.list()? {
        let name = item.text()?;
        if let Err(problem) = check_name(name) {
            return Err(item.error(problem).with_allowed(NAMES));
        }
        if found.iter().any(|known| known == name) {
            let error = item.error("is there twice");
            return Err(error.with_allowed("each name once: a majority is counted by names"));
        }
        found.push(name.to_owned());
    }
    if found.is_empty() || found.len() > most {
        let error = field.error_unquoted(format!("has {} entries", found.len()));
        return Err(error.with_allowed(format!("from 1 to {most} {what}")));
    }
    found.sort_unstable();
    Ok(found)
}

fn number(field: &Field<'_>, most: f64) -> Result<f64> {
    match field.number()? {
        number if (0.0..=most).contains(&number) => Ok(number),
        number => {
            let problem = if number > most { "is too large" } else { "is too small" };
            Err(field.error(problem).with_allowed(format!("a number from 0 to {most}")))
        }
    }
}

/// As an agent reads it.
fn wait(field: &Field<'_>) -> Result<Duration> {
    let wait = match field.text().map(parse_wait) {
        Ok(Ok(wait)) => wait,
        // What an agent refuses is refused here, in a scenario's words.
        _ => field.duration()?,
    };
    if wait < SHORTEST || wait > LONGEST {
        let problem = if wait < SHORTEST { "is too short" } else { "is too long" };
        return Err(field.error(problem).with_allowed("a duration from 1ms to 1h"));
    }
    Ok(wait)
}

/// As protocols write durations, and `m` for minutes besides.
fn parse_wait(text: &str) -> std::result::Result<Duration, String> {
    let minutes =
        text.strip_suffix('m').filter(|number| number.ends_with(|c: char| c.is_ascii_digit()));
    let whole = minutes.map(|number| format!("{number}min"));
    whole.as_deref().unwrap_or(text).parse::<Duration>().map_err(|error| error.to_string())
}

const VARIANTS: [(&str, Variant); 4] = [
    ("base", Variant::Base),
    ("optimistic", Variant::Optimistic),
    ("preferred", Variant::Preferred),
    ("hybrid", Variant::Hybrid),
];
const FLAVOURS: [(&str, Flavour); 3] =
    [("quorum", Flavour::Quorum), ("conservative", Flavour::Conservative), ("fast", Flavour::Fast)];
const NAMES: &str = "up to 63 letters, digits, '-', '_' and '.', a letter or digit first";
/// What the kernel may slew a clock by, on both sides, and a crystal besides.
const DRIFT: u32 = 1_000;
/// A tenth. Beyond that a clock is broken.
const MOST_DRIFT: u32 = 100_000;
/// Lists of all members, old and new, fit a datagram.
const MOST_MEMBERS: usize = 15;
/// What the protocol tolerates at most.
const TOLERATED: u32 = 4096;
/// Between two sendings of what has changed, if they are not sent at once.
const TICK: Duration = Duration::from_millis(100);
/// After which a leader that is not the best is replaced by whoever is.
const DWELL: Duration = Duration::from_secs(30);
/// Hops. Arbitrary; no mesh of radios that works is as wide.
const FARTHEST: u32 = 64;
/// A sum of distances ten times as small. Arbitrary.
const HIGHEST_PERCENT: u32 = 1_000;
/// What the membership takes.
const STEEPEST: f64 = 16.0;
/// Most elections of one node. Arbitrary; each costs its own messages.
const MOST: usize = 64;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(3600);
