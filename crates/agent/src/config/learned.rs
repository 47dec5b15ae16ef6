//! Settings of learned elections.

use bellwether_proto::{Duration, election::bandit::MAX_MEMBERS};

use super::{
    Config, Timing,
    field::{Field, NAMES, Result, Section, check_name},
};

/// Settings of a learned election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Learned {
    /// Whose majority decides, by name, in order; the same on every node.
    pub voters: Vec<String>,
    /// How estimates become candidates.
    pub policy: Policy,
    /// How long a leader is believed that is not heard; as the timing says if not set.
    pub lease: Option<Duration>,
    /// How often a member is sampled; as the timing says if not set.
    pub sample: Option<Duration>,
    /// How many samples of a member count. Raising it forgives later.
    pub memory: u16,
    /// For how long a leader is left in office, whoever is better.
    pub tenure: Duration,
    /// By how many hundredths a challenger must be more reliable.
    pub margin: u32,
}

/// How estimates become candidates; see `docs/protocols/bandit.md`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Policy {
    /// The most reliable; now and then, less and less, at random.
    EpsilonGreedy,
    /// The most reliable, with a bonus for whoever is little known.
    Ucb,
    /// The same, with old samples worth less and less.
    Discounted,
    /// The same, on the last samples alone.
    Sliding,
    /// The best of what is drawn from what is believed; old samples are worth less and less.
    #[default]
    Thompson,
}

impl Policy {
    const ALL: [(&'static str, Self); 5] = [
        ("epsilon-greedy", Self::EpsilonGreedy),
        ("ucb", Self::Ucb),
        ("discounted", Self::Discounted),
        ("sliding", Self::Sliding),
        ("thompson", Self::Thompson),
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("thompson", |&(name, _)| name)
    }
}

impl Learned {
    /// How long a leader is believed that is not heard.
    pub fn lease(&self, timing: &Timing) -> Duration {
        self.lease.unwrap_or(timing.beat * 10)
    }

    /// How often a member is sampled.
    pub fn sample(&self, timing: &Timing) -> Duration {
        self.sample.unwrap_or(timing.period * 5)
    }

    pub(super) fn read(section: &mut Section<'_>, config: &Config) -> Result<Self> {
        for key in ["variant", "c", "f", "on_isolation", "criterion", "priority"] {
            if let Some(field) = section.take(key) {
                let error = field.error("means nothing in a learned election");
                let allowed = "voters, role, policy, lease, sample, memory, tenure and margin";
                return Err(error.with_allowed(allowed));
            }
        }
        let field = section.require("voters", VOTERS)?;
        let voters = voters(&field)?;
        if voters.contains(&config.name) && config.data_dir.is_none() {
            let error = field.error_unquoted(
                "names this node, which, without a data_dir, would forget how it has voted when it restarts",
            );
            return Err(error.with_allowed("data_dir = \"/var/lib/bellwether\", or --data-dir"));
        }
        let lease = section.take("lease");
        let learned = Self {
            voters,
            policy: section.or("policy", Policy::default(), |field| field.choice(&Policy::ALL))?,
            lease: lease.as_ref().map(Field::duration).transpose()?,
            sample: section.take("sample").map(|field| field.duration()).transpose()?,
            memory: section.or("memory", MEMORY, |field| {
                field.integer(1..=1000).map(|samples| u16::try_from(samples).unwrap_or(MEMORY))
            })?,
            tenure: section.or("tenure", TENURE, Field::duration)?,
            margin: section.or("margin", MARGIN, |field| field.integer(0..=100))?,
        };
        let guard = config.timing.guard;
        if let Some(field) = lease.filter(|_| learned.lease(&config.timing) <= guard) {
            let problem = format!(
                "must be longer than guard of {guard}, or others would elect before a leader that was stopped gives up"
            );
            return Err(field
                .error(problem)
                .with_allowed("a longer lease, or a shorter timing.guard"));
        }
        Ok(learned)
    }
}

fn voters(field: &Field<'_>) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let items = field.strict_list(VOTERS)?;
    for item in &items {
        let name = item.text()?;
        if let Err(problem) = check_name(name) {
            return Err(item.error(problem).with_allowed(NAMES));
        }
        if found.iter().any(|known| known == name) {
            let error = item.error("is there twice, and would have two votes");
            return Err(error.with_allowed("each name once"));
        }
        found.push(name.to_owned());
    }
    if found.is_empty() || found.len() > MAX_MEMBERS {
        let error = field.error_unquoted(format!("has {} entries", found.len()));
        return Err(
            error.with_allowed(format!("from 1 to {MAX_MEMBERS} names, best an odd number"))
        );
    }
    found.sort_unstable();
    Ok(found)
}

const VOTERS: &str =
    "voters = [\"cellar\", \"kitchen\", \"roof\"]: names, the same list on every node";
const MEMORY: u16 = 50;
pub(super) const TENURE: Duration = Duration::from_secs(60);
/// A fifth: far above what one sample does to a score that stands on many.
const MARGIN: u32 = 20;
