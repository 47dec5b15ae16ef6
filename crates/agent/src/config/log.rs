//! How the log is written.

/// How lines are written, and which.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Form {
    /// How a line looks.
    pub shape: Shape,
    /// What is worth one.
    pub detail: Detail,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Shape {
    /// A line that people read.
    #[default]
    Text,
    /// One object to a line.
    Json,
    /// Nothing is written.
    Nothing,
}

/// What is worth a line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Detail {
    /// What is about leading, and what should not be.
    #[default]
    Usual,
    /// Besides, each step: who is asked, what the disk has taken, which hook runs, every event.
    Debug,
    /// Besides, every packet.
    Trace,
}

impl Form {
    /// As they are written in settings.
    pub const NAMED: [(&'static str, Self); 7] = [
        ("text", Self { shape: Shape::Text, detail: Detail::Usual }),
        ("json", Self { shape: Shape::Json, detail: Detail::Usual }),
        ("none", Self { shape: Shape::Nothing, detail: Detail::Usual }),
        ("debug", Self { shape: Shape::Text, detail: Detail::Debug }),
        ("trace", Self { shape: Shape::Text, detail: Detail::Trace }),
        ("json-debug", Self { shape: Shape::Json, detail: Detail::Debug }),
        ("json-trace", Self { shape: Shape::Json, detail: Detail::Trace }),
    ];

    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, form)| *form == self).map_or("none", |(name, _)| name)
    }
}
