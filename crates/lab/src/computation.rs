//! What a cell can do besides running a scenario: a named function of parameters and a seed.
//!
//! A closed form, a game of chance, a replay of recorded lists: whatever has no nodes and messages of its own, or
//! measures what no run does. It is digested, resumed, sharded and summed up like the runs of a scenario.

use std::{error::Error, fmt, hash::Hash, sync::Arc};

use bellwether_sim::{engine::TraceHash, observe::Unit, scenario::Scenario};

use crate::{experiment::Setup, measure::Measure};

/// What one run of a computation found.
pub type Found = Result<Vec<Value>, Box<dyn Error + Send + Sync>>;

/// One value of one run. All runs of a computation have the same, in the same order.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its name, unique in the run.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// `None` if there was nothing to measure.
    pub value: Option<f64>,
}

impl Value {
    /// A value in this unit.
    pub fn new(measure: impl Measure, unit: Unit, value: impl Into<Option<f64>>) -> Self {
        Self { metric: measure.to_string(), unit, value: value.into() }
    }

    /// How many of something.
    pub fn count(measure: impl Measure, value: impl Into<Option<f64>>) -> Self {
        Self::new(measure, Unit::Count, value)
    }

    /// A share between 0 and 1.
    pub fn ratio(measure: impl Measure, value: impl Into<Option<f64>>) -> Self {
        Self::new(measure, Unit::Ratio, value)
    }

    /// A share of runs: 0 or 1 in one of them.
    pub fn whether(measure: impl Measure, holds: bool) -> Self {
        Self::ratio(measure, f64::from(u8::from(holds)))
    }
}

/// A function of parameters and a seed, and nothing else.
#[derive(Clone)]
pub struct Computation {
    /// Names the function: whoever changes what it computes changes its name, since results are kept by it.
    name: &'static str,
    /// The parameters, for people.
    shown: String,
    /// The parameters, by value.
    parameters: TraceHash,
    body: Body,
}

#[derive(Clone)]
enum Body {
    Alone(Arc<Alone>),
    Over(Setup, Arc<Over>),
}

type Alone = dyn Fn(u64) -> Found + Send + Sync;
type Over = dyn Fn(&Scenario, u64) -> Found + Send + Sync;

impl Computation {
    /// `run` with these parameters.
    pub fn new<P: fmt::Debug + Hash + Send + Sync + 'static>(
        name: &'static str,
        parameters: P,
        run: fn(&P, u64) -> Found,
    ) -> Self {
        let (shown, digest) = known(&parameters);
        let body = Body::Alone(Arc::new(move |seed| run(&parameters, seed)));
        Self { name, shown, parameters: digest, body }
    }

    /// `run` with these parameters and a scenario, which the [`set`](crate::experiment::Cell::set) of its
    /// cell changes.
    pub fn over<P: fmt::Debug + Hash + Send + Sync + 'static>(
        name: &'static str,
        base: &'static str,
        parameters: P,
        run: fn(&Scenario, &P, u64) -> Found,
    ) -> Self {
        let (shown, digest) = known(&parameters);
        let run = Arc::new(move |scenario: &Scenario, seed| run(scenario, &parameters, seed));
        Self { name, shown, parameters: digest, body: Body::Over(Setup::new(base), run) }
    }

    /// The scenario it takes, if it does.
    pub fn setup(&self) -> Option<&Setup> {
        match &self.body {
            Body::Alone(_) => None,
            Body::Over(setup, _) => Some(setup),
        }
    }

    pub(crate) fn setup_mut(&mut self) -> Option<&mut Setup> {
        match &mut self.body {
            Body::Alone(_) => None,
            Body::Over(setup, _) => Some(setup),
        }
    }

    /// Digest of what it does, with its scenario if it takes one.
    pub fn digest(&self, scenario: Option<&Scenario>) -> TraceHash {
        let mut digest = TraceHash::new();
        digest.fold_value(&(self.name, self.parameters));
        digest.fold(scenario.map_or(0, |scenario| scenario.digest().get()));
        digest
    }

    /// Computes it for one seed, with its scenario if it takes one.
    ///
    /// # Errors
    ///
    /// Its own, and if the scenario is missing.
    pub fn run(&self, scenario: Option<&Scenario>, seed: u64) -> Found {
        match (&self.body, scenario) {
            (Body::Alone(run), _) => run(seed),
            (Body::Over(_, run), Some(scenario)) => run(scenario, seed),
            (Body::Over(..), None) => Err(format!("{} needs its scenario", self.name).into()),
        }
    }
}

fn known(parameters: &(impl fmt::Debug + Hash)) -> (String, TraceHash) {
    let mut digest = TraceHash::new();
    digest.fold_value(parameters);
    (format!("{parameters:?}"), digest)
}

impl fmt::Debug for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} of {:?}", self.setup())
    }
}

impl fmt::Display for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {}", self.name, self.shown)
    }
}

/// The same name is the same function.
impl PartialEq for Computation {
    fn eq(&self, other: &Self) -> bool {
        let all = |one: &Self| (one.name, one.parameters, one.setup().cloned());
        all(self) == all(other)
    }
}
