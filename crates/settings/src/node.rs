//! What decides who leads: the same keys in an agent's settings and in the `[node]` of a scenario.

use bellwether_proto::node::{ElectionSettings, Feedback, Timing, TimingProfile};

use crate::{
    election::{self, Election},
    field::{Result, Section},
    host::Host,
    timing::timing,
};

/// What is changed of how a [profile](TimingProfile) chooses whom to probe.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Membership {
    /// How much the near are preferred, if their positions are known: 0 is not at all. Raising it keeps traffic local
    /// and leaves the far waiting longer.
    pub exponent: Option<f64>,
    /// Who is favoured besides.
    pub feedback: Option<Feedback>,
}

/// What decides who leads.
#[derive(Debug)]
pub struct Node<'a> {
    /// How often and how long.
    pub timing: Timing,
    /// Whom it probes.
    pub membership: Membership,
    /// What it takes part in; at least one.
    pub elections: Vec<Election<'a>>,
}

/// Reads `timing`, `membership` and `election`.
///
/// # Errors
///
/// What is wrong with them.
pub fn node<'a>(section: &mut Section<'a>, host: Host<'_>) -> Result<Node<'a>> {
    let timing = match section.take("timing") {
        Some(field) => timing(field.section()?)?,
        None => TimingProfile::default().timing(),
    };
    let membership = match section.take("membership") {
        Some(field) => membership(field.section()?)?,
        None => Membership::default(),
    };
    let named = section.take("election").map_or(Ok(Vec::new()), crate::Field::named)?;
    if let Some((_, surplus)) = named.get(MOST) {
        let error = surplus.error_unquoted(format!("is election number {}", MOST + 1));
        return Err(error.with_allowed(format!("at most {MOST} elections")));
    }
    let elections =
        named.into_iter().map(|(name, field)| election::read(name, field, &timing, host));
    let mut elections = elections.collect::<Result<Vec<_>>>()?;
    if elections.is_empty() {
        elections.push(Election { settings: ElectionSettings::default(), neighbours: None });
    }
    Ok(Node { timing, membership, elections })
}

fn membership(mut section: Section<'_>) -> Result<Membership> {
    let exponent = section.take("exponent");
    let exponent = exponent.map(|field| field.between(0.0, STEEPEST)).transpose()?;
    let feedback = section.take("feedback");
    let feedback = feedback.map(|field| field.choice(&Feedback::ALL)).transpose()?;
    section.end()?;
    Ok(Membership { exponent, feedback })
}

/// The keys of an agent's settings that [`node`] reads.
pub const NODE_KEYS: [&str; 3] = ["election", "membership", "timing"];
/// All others: they say where an agent is and what it does besides, and mean nothing to a simulator.
pub const HOST_KEYS: [&str; 20] = [
    "advertise",
    "api",
    "api_names",
    "api_token_file",
    "bind",
    "cluster",
    "data_dir",
    "hook",
    "interfaces",
    "join",
    "key_file",
    "log",
    "multicast",
    "name",
    "position",
    "record",
    "record_limit",
    "socket",
    "socket_group",
    "tags",
];

/// What the membership takes.
const STEEPEST: f64 = 16.0;
/// Most elections of one node. Arbitrary; each costs its own messages.
const MOST: usize = 64;
