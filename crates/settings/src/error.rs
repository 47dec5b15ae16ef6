//! What is wrong, where, and what to write instead.

use std::{fmt, io, ops::Range};

/// Why settings or a scenario were refused. Nothing of them was used.
///
/// Its text is for people; the getters give the same facts one by one, for programs.
#[derive(Debug, thiserror::Error)]
pub struct SettingsError {
    facts: Box<Facts>,
    #[source]
    io: Option<io::Error>,
}

/// Where something is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    /// Nowhere: something is missing from all sources.
    Settings,
    /// The file or directory as a whole.
    File {
        /// As it was given.
        file: String,
    },
    /// A value or key in a file; line and column count characters from 1.
    Position {
        /// The file, as it was given.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
    },
    /// A variable of the environment.
    Variable {
        /// The variable's name.
        name: String,
    },
    /// A flag of the command line.
    Flag {
        /// As it was given; without its value, but for `--set`.
        name: String,
    },
}

#[derive(Debug)]
struct Facts {
    place: Place,
    field: String,
    found: Option<String>,
    problem: String,
    allowed: Option<String>,
    snippet: Option<Snippet>,
}

/// The line at fault and which of its characters to mark.
#[derive(Debug)]
pub(crate) struct Snippet {
    line: usize,
    text: String,
    start: usize,
    width: usize,
}

impl SettingsError {
    /// `field` is a dotted path, or empty for a file as a whole.
    pub fn new(place: Place, field: &str, problem: impl Into<String>) -> Self {
        let facts = Facts {
            place,
            field: quote(field),
            found: None,
            problem: problem.into(),
            allowed: None,
            snippet: None,
        };
        Self { facts: Box::new(facts), io: None }
    }

    /// With the value that was found.
    pub fn with_found(mut self, found: Option<&str>) -> Self {
        self.facts.found = found.map(quote);
        self
    }

    /// With what would be right.
    pub fn with_allowed(mut self, allowed: impl Into<String>) -> Self {
        self.facts.allowed = Some(allowed.into());
        self
    }

    pub(crate) fn with_snippet(mut self, snippet: Snippet) -> Self {
        self.facts.snippet = Some(snippet);
        self
    }

    /// With what the operating system said.
    pub fn caused_by(mut self, io: io::Error) -> Self {
        self.io = Some(io);
        self
    }

    /// Where it is wrong.
    pub fn place(&self) -> &Place {
        &self.facts.place
    }

    /// The field, as a dotted path; empty for a file as a whole.
    pub fn field(&self) -> &str {
        &self.facts.field
    }

    /// The value found there, escaped and cut to 80 characters, if it is about a value.
    pub fn found(&self) -> Option<&str> {
        self.facts.found.as_deref()
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &str {
        &self.facts.problem
    }

    /// What would be right, if that can be said.
    pub fn allowed(&self) -> Option<&str> {
        self.facts.allowed.as_deref()
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { place, field, found, problem, allowed, snippet } = &*self.facts;
        write!(f, "{place}: ")?;
        if !field.is_empty() {
            write!(f, "{field} ")?;
        }
        if let Some(found) = found {
            write!(f, "= {found} ")?;
        }
        write!(f, "{problem}")?;
        if let Some(Snippet { line, text, start, width }) = snippet {
            let gutter = line.to_string().len().max(3);
            write!(f, "\n{line:>gutter$} | {text}")?;
            write!(f, "\n{:gutter$} | {:start$}{:^<width$}", "", "", "")?;
        }
        if let Some(allowed) = allowed {
            write!(f, "\n  allowed: {allowed}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings => f.write_str("settings"),
            Self::File { file } => f.write_str(file),
            Self::Position { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Variable { name } => write!(f, "variable {}", quote(name)),
            Self::Flag { name } => write!(f, "{}", quote(name)),
        }
    }
}

/// Line and column of a part of `text`, and the line to show for it.
pub(crate) fn locate(text: &str, part: Range<usize>) -> (usize, usize, Snippet) {
    let start = floor(text, part.start);
    let (before, after) = text.split_at(start);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = after.find('\n').map_or(text.len(), |length| start + length);
    let end = floor(text, part.end).clamp(start, line_end);
    let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
    let column = text[line_start..start].chars().count();
    // One character for each, so that the marks stay below what they mark.
    let whole: Vec<char> = text[line_start..line_end]
        .trim_end_matches('\r')
        .chars()
        .map(|c| if hidden(c) { ' ' } else { c })
        .collect();
    // A long line is shown from shortly before the mark.
    let skip = if whole.len() > SHOWN { column.saturating_sub(SHOWN / 2) } else { 0 };
    let shown: String = whole.into_iter().skip(skip).take(SHOWN).collect();
    let width = text[start..end].chars().count().clamp(1, SHOWN - (column - skip).min(SHOWN - 1));
    let snippet = Snippet { line, text: shown.trim_end().to_owned(), start: column - skip, width };
    (line, column + 1, snippet)
}

/// `text` on one line, without characters that a terminal would obey, and not too long.
pub fn quote(text: &str) -> String {
    let mut quoted = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == QUOTED {
            quoted.push('…');
            break;
        }
        if hidden(c) { quoted.extend(c.escape_default()) } else { quoted.push(c) }
    }
    quoted
}

/// Control characters, those that turn the direction of the text around them, byte order marks.
pub fn hidden(c: char) -> bool {
    let turning = matches!(
        c,
        '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    turning || c.is_control() || c == '\u{feff}'
}

/// The candidate that `text` was probably meant to be.
pub fn similar<'n>(text: &str, candidates: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Longer than any name by far, and comparing takes the product of both lengths.
    if text.len() > 64 {
        return None;
    }
    let likeness = |name: &&str| strsim::damerau_levenshtein(text, name);
    let close = |name: &&str| likeness(name) <= name.len().div_ceil(4);
    candidates.into_iter().filter(close).min_by_key(likeness)
}

pub(crate) fn unknown_key<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    match similar(name, known) {
        Some(key) => format!("is not a key here; did you mean {key}?"),
        None => "is not a key here".to_owned(),
    }
}

fn floor(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

/// Longest quotation of a value or name, in characters.
const QUOTED: usize = 80;

/// Longest part of a line that is shown, in characters. Arbitrary: it fits most terminals.
const SHOWN: usize = 100;
