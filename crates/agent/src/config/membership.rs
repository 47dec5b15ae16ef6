//! How members are chosen to be probed, and where this node is.

use bellwether_proto::node::{Feedback, Position};

use super::{
    Config,
    field::{Field, Result, Section},
};

/// What is changed of how a [profile](bellwether_proto::node::TimingProfile) chooses whom to probe.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Membership {
    /// How much the near are preferred, if their positions are known: 0 is not at all. Raising it keeps traffic local
    /// and leaves the far waiting longer.
    pub exponent: Option<f64>,
    /// Who is favoured besides.
    pub feedback: Option<Feedback>,
}

impl Config {
    /// How much the near are preferred.
    pub fn exponent(&self) -> f64 {
        self.membership.exponent.unwrap_or(self.timing.profile.probing().0)
    }

    /// Who is probed out of proportion.
    pub fn feedback(&self) -> Feedback {
        self.membership.feedback.unwrap_or(self.timing.profile.probing().1)
    }
}

impl Membership {
    pub(super) fn read(mut section: Section<'_>) -> Result<Self> {
        let exponent = section.take("exponent");
        let exponent = exponent.map(|field| field.number(0.0, STEEPEST)).transpose()?;
        let feedback = section.take("feedback");
        let feedback = feedback.map(|field| field.choice(&Feedback::ALL)).transpose()?;
        section.end()?;
        Ok(Self { exponent, feedback })
    }
}

pub(super) fn position(field: &Field<'_>) -> Result<Position> {
    const EXAMPLE: &str = "two numbers, in metres: [2.5, 10]";
    let [x, y] = <[Field<'_>; 2]>::try_from(field.strict_list(EXAMPLE)?).map_err(|found| {
        field.error(format!("has {} entries", found.len())).with_allowed(EXAMPLE)
    })?;
    let [x, y] = [x, y].map(|field| field.number(-Position::FARTHEST, Position::FARTHEST));
    Ok(Position { x: x? as f32, y: y? as f32 })
}

/// What the protocol takes.
const STEEPEST: f64 = 16.0;
