//! What cells measure, as types: a name that does not exist does not compile.

use std::fmt::Display;

use bellwether_sim::observe::Metric;

/// What a cell measures. How it is displayed is its name in results.
pub trait Measure: Display {}

impl Measure for Metric {}

/// Defines what the computations of some experiments measure, each with its name in results.
macro_rules! measures {
    ($(#[$doc:meta])* $vis:vis $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        $vis enum $name { $($variant,)* }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $(Self::$variant => $text,)* })
            }
        }

        impl crate::measure::Measure for $name {}
    };
}

/// The same for measures of which there are many of a kind, named by a pattern.
macro_rules! measure {
    ($(#[$doc:meta])* $vis:vis $name:ident($($field:ident: $of:ty),*) = $text:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $name($($vis $of),*);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let Self($($field),*) = self;
                write!(f, $text)
            }
        }

        impl crate::measure::Measure for $name {}
    };
}

pub(crate) use {measure, measures};
