//! Every rule that code or a page cites by its id is defined on a page of `docs/rules`; agent and simulator know the same
//! settings. Besides: which [rooms](rooms) may import which, and which [comments](docs) say something.
//!
//! Comments and documents are read as text, paragraph by paragraph. An id is one of [`FAMILIES`] and a number. On which
//! page it must have an anchor is decided by the first of these that says so:
//!
//! 1. the paragraph, if it names `docs/rules/<page>.md`;
//! 2. the row of the claims table: its experiment belongs to a page, so what the row cites does too;
//! 3. the header (`//!`) of the file, if it names a page, and the table of paths in `docs/rules/README.md`, of which
//!    the longest that fits counts. If both do, either page will do.
//!
//! An id that none of them places is an error too. So is an anchor that occurs twice, a link to an anchor that does not
//! exist, and an experiment of the lab that no page knows.

#[path = "tidy/docs.rs"]
mod docs;
#[path = "tidy/rooms.rs"]
mod rooms;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    ops::Range,
    path::{Path, PathBuf},
};

use bellwether_agent::{Config, SettingsError, config::Inputs};
use bellwether_settings::{
    election::MODES,
    node::{HOST_KEYS, NODE_KEYS},
};
use bellwether_sim::scenario::Scenario;

/// What comes before the number in an id.
const FAMILIES: &[&str] = &[
    "A", "A-", "B", "C", "C-", "D", "DC", "E", "F", "G", "H", "H-", "HB-", "K", "L", "M", "M-",
    "MI", "N", "P", "P-", "Q", "R", "R-M", "RP", "S", "TA", "TV", "TV-", "V", "W", "X", "Z",
];

/// What looks like an id and is none, and why.
const NO_IDS: &[(&str, &str)] = &[("P95", "a percentile")];

/// How ids of experiments begin. `announce-` alone begins many other words.
const EXPERIMENTS: &[&str] =
    &["wang-", "ahsan-", "favier-", "ble-", "bw-", "announce-fig-", "announce-tab-", "announce-5."];

#[test]
fn what_is_cited_is_defined() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let book = Book::read(&root.join("docs/rules"));
    let mut faults = book.faults.clone();
    for path in files(&root) {
        let text = fs::read_to_string(root.join(&path)).expect("a file just listed");
        faults.extend(book.check(&path, &text));
    }
    let list: Vec<_> = faults.iter().map(Fault::to_string).collect();
    assert!(list.is_empty(), "{} citations lead nowhere:\n{}", list.len(), list.join("\n"));
}

/// What an operator writes is what a scenario says: a key of one of them that decides who leads is a key of the other.
#[test]
fn agent_and_simulator_know_the_same_settings() {
    let keys = |error: SettingsError| -> BTreeSet<String> {
        assert!(error.problem().starts_with("is not a key here"), "{error}");
        error.allowed().expect("all keys").split(", ").map(String::from).collect()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agent.toml");
    let agent = |text: &str| {
        let host = "name = 'a'\ncluster = 'c'\nkey_file = '/k'\ndata_dir = '/d'\n";
        fs::write(&file, format!("{host}{text}")).expect("room");
        let inputs = Inputs { file: Some(file.clone()), ..Inputs::default() };
        keys(Config::load(&inputs).expect_err("a key that nobody knows"))
    };
    let node = |text: &str| {
        let world = "name = 'w'\nduration = '1s'\nnetwork.nodes = 3\n";
        let scenario = Scenario::parse("w.toml", &format!("{world}{text}"), &[]);
        keys(scenario.expect_err("a key that nobody knows"))
    };
    let ours = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let whole = agent("nobody-knows = 1\n");
    assert_eq!(whole, &ours(&NODE_KEYS) | &ours(&HOST_KEYS), "settings of agents");
    assert_eq!(node("node.nobody-knows = 1\n"), ours(&NODE_KEYS), "[node] of scenarios");
    let of_modes = MODES.iter().map(|(mode, _)| {
        let list = match *mode {
            "leased" => "members = ['a']\n",
            "learned" => "voters = ['a']\n",
            _ => "",
        };
        ("election.e", format!("mode = '{mode}'\n{list}"))
    });
    let plain = ["timing", "membership"].map(|table| (table, String::new()));
    for (table, rest) in plain.into_iter().chain(of_modes) {
        let rest = format!("{rest}nobody-knows = 1\n");
        let [one, other] =
            [agent(&format!("[{table}]\n{rest}")), node(&format!("[node.{table}]\n{rest}"))];
        assert_eq!(one, other, "[{table}] {rest}");
    }
}

/// Sources and documents, by their paths from the root.
fn files(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = ["crates", "docs"].iter().map(|name| root.join(name)).collect();
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(String::from));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry of it").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", "node_modules"].contains(&&*name) {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") || name.ends_with(".md") {
                let path = path.strip_prefix(root).expect("below the root");
                files.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    // It cites by way of example.
    files.retain(|path| path != "docs/rules/README.md");
    files.sort();
    files
}

/// A citation that leads nowhere, or an anchor that is none.
#[derive(Clone, Debug, PartialEq)]
struct Fault {
    path: String,
    line: usize,
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// The pages of rules, and which code they belong to.
#[derive(Default)]
struct Book {
    /// The anchors of each page, by its name without `.md`.
    pages: BTreeMap<String, BTreeSet<String>>,
    /// Their headings as links spell them.
    headings: BTreeMap<String, BTreeSet<String>>,
    /// Paths and the names of their pages.
    routes: Vec<(String, String)>,
    faults: Vec<Fault>,
}

impl Book {
    fn read(folder: &Path) -> Self {
        let mut book = Self::default();
        for entry in fs::read_dir(folder).expect("docs/rules") {
            let path = entry.expect("an entry of it").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a page");
            if name == "README" {
                book.routes = routes(&text);
            } else {
                book.add(&name, &text);
            }
        }
        assert!(!book.routes.is_empty(), "docs/rules/README.md has no table of paths");
        book
    }

    fn add(&mut self, name: &str, text: &str) {
        let headings = text.lines().filter(|line| line.starts_with('#')).map(slug);
        self.headings.entry(name.into()).or_default().extend(headings);
        let anchors = self.pages.entry(name.into()).or_default();
        for (at, line) in text.lines().enumerate() {
            for anchor in line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let what = if anchor != anchor.to_lowercase() {
                    format!("anchor `{anchor}` is not in lower case")
                } else if !anchors.insert(anchor.into()) {
                    format!("anchor `{anchor}` occurs twice")
                } else {
                    continue;
                };
                self.faults.push(Fault {
                    path: format!("docs/rules/{name}.md"),
                    line: at + 1,
                    what,
                });
            }
        }
    }

    /// What `text`, the file at `path`, cites and no page defines.
    fn check(&self, path: &str, text: &str) -> Vec<Fault> {
        let rust = path.ends_with(".rs");
        let experiments = path.starts_with("crates/lab/src/experiments/");
        let paragraphs = if rust { comments(text, experiments) } else { document(text) };
        let header: String =
            paragraphs.iter().filter(|part| part.header).map(|part| &*part.text).collect();
        let by_file = [Self::named(&header), self.placed(path)];
        let by_file: BTreeSet<_> = by_file.into_iter().flatten().flatten().collect();
        let by_file: Option<Vec<_>> = (!by_file.is_empty()).then(|| by_file.into_iter().collect());
        let mut faults = Vec::new();
        let mut fault = |line, what| faults.push(Fault { path: path.into(), line, what });
        for part in &paragraphs {
            let (rest, broken) = self.follow_links(path, &part.text);
            broken.into_iter().for_each(|(at, what)| fault(part.line_of(at), what));
            let pages = Self::named(&part.text)
                .or_else(|| self.of_claim(path, &part.text))
                .or_else(|| by_file.clone());
            for (at, id) in ids(&rest) {
                match &pages {
                    None if id.starts_with("rule-") => {}
                    None => fault(
                        part.line_of(at),
                        format!("`{id}` is of no page: name `docs/rules/<page>.md`"),
                    ),
                    Some(pages) if self.defined(pages, &id) => {}
                    Some(pages) => fault(part.line_of(at), lacking(pages, &id)),
                }
            }
            for (at, id) in cited_experiments(&rest) {
                if !self.knows(&id.to_lowercase()) {
                    fault(
                        part.line_of(at),
                        format!("experiment `{id}` has no anchor on any page of docs/rules"),
                    );
                }
            }
        }
        if rust {
            let pages = by_file.unwrap_or_default();
            for (line, id) in tests_named_after(text) {
                if !pages.is_empty() && !self.defined_without_hyphens(&pages, &id) {
                    fault(line, lacking(&pages, &id));
                }
            }
        }
        faults
    }

    /// Whether one of `pages` has an anchor for `id`. Where rules have no letters, `rule 2` is an id; elsewhere it is
    /// not.
    fn defined(&self, pages: &[String], id: &str) -> bool {
        let anchors = || pages.iter().filter_map(|page| self.pages.get(page));
        let unnumbered = id.starts_with("rule-")
            && !anchors().flatten().any(|anchor| anchor.starts_with("rule-"));
        unnumbered || anchors().any(|anchors| anchors.contains(&id.to_lowercase()))
    }

    /// Whether some page knows the experiment; its figures may have a word more in their names.
    fn knows(&self, experiment: &str) -> bool {
        let of = |anchor: &String| {
            experiment
                .strip_prefix(&**anchor)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.pages.values().flatten().any(of)
    }

    fn defined_without_hyphens(&self, pages: &[String], id: &str) -> bool {
        pages
            .iter()
            .filter_map(|page| self.pages.get(page))
            .flatten()
            .any(|anchor| anchor.replace('-', "") == id)
    }

    /// The pages that `text` names.
    fn named(text: &str) -> Option<Vec<String>> {
        let named: Vec<_> = text
            .split("rules/")
            .skip(1)
            .filter_map(|rest| rest.split_once(".md"))
            .map(|(name, _)| name.to_owned())
            .filter(|name| {
                name != "README" && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
            })
            .collect();
        (!named.is_empty()).then_some(named)
    }

    /// The page of the experiment that a row of the claims is about.
    fn of_claim(&self, path: &str, row: &str) -> Option<Vec<String>> {
        let experiment = row
            .strip_prefix("| ")
            .filter(|_| path == "docs/results/claims.md")?
            .split(' ')
            .next()?;
        let page =
            self.pages.iter().find(|(_, anchors)| anchors.contains(&experiment.to_lowercase()))?;
        Some(vec![page.0.clone()])
    }

    /// The page of the longest path in the table that `path` begins with.
    fn placed(&self, path: &str) -> Option<Vec<String>> {
        let fits = self.routes.iter().filter(|(start, _)| path.starts_with(&**start));
        fits.max_by_key(|(start, _)| start.len()).map(|(_, page)| vec![page.clone()])
    }

    /// Links to anchors of pages are looked up, and taken out of the text with what they cite.
    fn follow_links(&self, path: &str, text: &str) -> (String, Vec<(usize, String)>) {
        let mut rest = text.to_owned();
        let mut broken = Vec::new();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap_or_default();
            let Some((file, anchor)) = target.split_once('#') else { continue };
            let inside = path.starts_with("docs/rules/");
            let page = match file.rsplit_once('/') {
                None if inside && file.is_empty() => {
                    path.trim_start_matches("docs/rules/").trim_end_matches(".md")
                }
                None if inside => file.trim_end_matches(".md"),
                Some((folder, file)) if folder.ends_with("rules") => file.trim_end_matches(".md"),
                _ => continue,
            };
            let names = [&self.pages, &self.headings];
            if !names.iter().filter_map(|names| names.get(page)).any(|names| names.contains(anchor))
            {
                broken.push((at, format!("docs/rules/{page}.md has no anchor `{anchor}`")));
            }
            let from = text[..at].rfind('[').unwrap_or(at);
            blank(&mut rest, from..at + 2 + target.len());
        }
        (rest, broken)
    }
}

fn lacking(pages: &[String], id: &str) -> String {
    let pages: Vec<_> = pages.iter().map(|page| format!("docs/rules/{page}.md")).collect();
    format!("`{id}` has no anchor on {}", pages.join(" or "))
}

/// A heading as links spell it.
fn slug(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.replace(' ', "-").chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

/// Rows of the README's table: a path in backticks, and a link to its page.
fn routes(readme: &str) -> Vec<(String, String)> {
    let row = |line: &str| {
        let (path, rest) = line.strip_prefix("| `")?.split_once('`')?;
        let (page, _) = rest.split_once("](")?.1.split_once(".md)")?;
        Some((path.to_owned(), page.to_owned()))
    };
    readme.lines().filter_map(row).collect()
}

/// Spaces in place of a part of a text, line breaks excepted, so that places stay what they are.
fn blank(text: &mut String, part: Range<usize>) {
    let blanks: String =
        text[part.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
    text.replace_range(part, &blanks);
}

/// Lines that belong together.
#[derive(Debug, Default, PartialEq)]
struct Paragraph {
    first: usize,
    text: String,
    header: bool,
}

impl Paragraph {
    fn line_of(&self, at: usize) -> usize {
        self.first - 1 + line_at(&self.text, at)
    }
}

/// Paragraphs of a document; every row of a table and every item of a list is one.
fn document(text: &str) -> Vec<Paragraph> {
    let mut parts: Vec<Paragraph> = vec![Paragraph { first: 1, ..Paragraph::default() }];
    for (at, line) in text.lines().enumerate() {
        let begins =
            line.trim().is_empty() || line.starts_with('|') || line.trim_start().starts_with("- ");
        if begins {
            parts.push(Paragraph { first: at + 1, ..Paragraph::default() });
        }
        let last = parts.last_mut().expect("there is one from the start");
        last.text.push_str(line);
        last.text.push('\n');
    }
    parts
}

/// Paragraphs of the comments of a source, and its string literals if they are to be read too.
fn comments(source: &str, literals: bool) -> Vec<Paragraph> {
    let mut parts: Vec<Paragraph> = Vec::new();
    let mut last = 0;
    for (line, piece) in pieces(source) {
        let (text, header) = match piece {
            Piece::Comment(text) => (text.trim_start_matches(['/', '!']), text.starts_with("//!")),
            Piece::Literal(text) if literals => {
                parts.push(Paragraph { first: line, text: text.into(), header: false });
                last = 0;
                continue;
            }
            Piece::Literal(_) => continue,
        };
        let blank = text.trim().is_empty();
        match parts.last_mut() {
            Some(part) if !blank && line == last + 1 && part.header == header => {
                part.text.push('\n');
                part.text.push_str(text);
            }
            _ => parts.push(Paragraph { first: line, text: text.into(), header }),
        }
        last = if blank { 0 } else { line };
    }
    parts
}

enum Piece<'a> {
    /// From its slashes to the end of the line.
    Comment(&'a str),
    /// Between its quotes.
    Literal(&'a str),
}

/// Comments and string literals of a source with the lines they begin on.
fn pieces(source: &str) -> Vec<(usize, Piece<'_>)> {
    let bytes = source.as_bytes();
    let mut pieces = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let rest = &source[at..];
        let long = if rest.starts_with("//") {
            let long = rest.find('\n').unwrap_or(rest.len());
            pieces.push((line, Piece::Comment(&rest[..long])));
            long
        } else if let Some(open) = raw_quote(rest) {
            let close = rest[open..]
                .find(&format!("\"{}", "#".repeat(open - 2)))
                .unwrap_or(rest.len() - open);
            pieces.push((line, Piece::Literal(&rest[open..open + close])));
            (open + close + open - 1).min(rest.len())
        } else if rest.starts_with('"') {
            let close = closing_quote(&bytes[at..]);
            pieces.push((line, Piece::Literal(&rest[1..close])));
            close + 1
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            3
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        let end = (at + long).min(bytes.len());
        line += bytes[at..end].iter().filter(|byte| **byte == b'\n').count();
        at = end;
    }
    pieces
}

/// A source with blanks in place of its comments and string literals.
fn without_comments(source: &str) -> String {
    let mut code = source.as_bytes().to_vec();
    for (_, piece) in pieces(source) {
        let (Piece::Comment(text) | Piece::Literal(text)) = piece;
        let from = text.as_ptr().addr() - source.as_ptr().addr();
        let part = code[from..from + text.len()].iter_mut();
        part.filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8(code).expect("whole pieces were replaced")
}

fn line_at(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// How long `r#"` is, if that is what `rest` begins with.
fn raw_quote(rest: &str) -> Option<usize> {
    let hashes = rest.strip_prefix('r')?;
    let open = hashes.find(|c| c != '#')?;
    hashes[open..].starts_with('"').then_some(open + 2)
}

fn closing_quote(literal: &[u8]) -> usize {
    let mut at = 1;
    while at < literal.len() && literal[at] != b'"' {
        at += if literal[at] == b'\\' { 2 } else { 1 };
    }
    at.min(literal.len())
}

/// The ids in a text, and where. Of a range from one id to another all are cited. Where rules have no letters, `rules 8
/// and 9` cites `rule-8` and `rule-9`.
fn ids(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(Range<usize>, String, &str, &str)> = Vec::new();
    for word in words(text) {
        let token = &text[word.clone()];
        if NO_IDS.iter().any(|(no, _)| *no == token) {
            continue;
        }
        let before = text[..word.start].split_whitespace().next_back().unwrap_or_default();
        if let Some((family, number)) = split_id(token) {
            found.push((word, token.into(), family, number));
        } else if let Some((one, other)) = token.split_once('-').filter(|_| range(token)) {
            let middle = word.start + one.len();
            for (id, place) in [(one, word.start..middle), (other, middle + 1..word.end)] {
                let (family, number) = split_id(id).expect("a range is of ids");
                found.push((place, id.into(), family, number));
            }
        } else if token.bytes().all(|byte| byte.is_ascii_digit()) {
            let counted = before.to_lowercase().trim_start_matches('(').to_owned();
            let goes_on = ["and", "to"].contains(&&*counted)
                && found
                    .last()
                    .is_some_and(|last| last.2 == "rule-" && word.start - last.0.end < 6);
            if ["rule", "rules"].contains(&&*counted) || goes_on {
                found.push((word, format!("rule-{token}"), "rule-", token));
            }
        }
    }
    let mut all = Vec::new();
    for (at, (place, id, family, number)) in found.iter().enumerate() {
        if let Some((before, _, of, from)) = at.checked_sub(1).map(|at| &found[at])
            && of == family
            && ["to", "-"].contains(&text[before.end..place.start].replace(['`', '*'], "").trim())
            && let (Ok(from), Ok(to)) = (from.parse::<u32>(), number.parse::<u32>())
        {
            all.extend((from + 1..to).map(|number| (place.start, format!("{family}{number}"))));
        }
        all.push((place.start, id.clone()));
    }
    all
}

/// Runs of letters, digits, and of points and hyphens between them. What continues a formula, a path or a name is none.
fn words(text: &str) -> Vec<Range<usize>> {
    let part = |c: char| c.is_alphanumeric() || "_.-/\\^".contains(c);
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match start {
            None if part(c) => start = Some(at),
            Some(from) if !part(c) => {
                let end = from + text[from..at].trim_end_matches(['.', '-']).len();
                words.push(from..end);
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// Whether two ids with a hyphen between them.
fn range(token: &str) -> bool {
    token
        .split_once('-')
        .is_some_and(|(one, other)| split_id(one).is_some() && split_id(other).is_some())
}

/// The family and the number of an id.
fn split_id(token: &str) -> Option<(&str, &str)> {
    let digits = token.find(|c: char| c.is_ascii_digit())?;
    let (family, number) = token.split_at(digits);
    let plain = number.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(number);
    let numeric = plain
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    (FAMILIES.contains(&family) && numeric).then_some((family, number))
}

/// Experiments that a text names; figures and tables of results are files.
fn cited_experiments(text: &str) -> Vec<(usize, String)> {
    let named = words(text).into_iter().map(|word| (word.start, text[word].to_owned()));
    named
        .filter(|(_, word)| {
            EXPERIMENTS
                .iter()
                .any(|start| word.strip_prefix(start).is_some_and(|rest| !rest.is_empty()))
        })
        .filter(|(_, word)| {
            !word.contains(['/', '_']) && !word.ends_with(".svg") && !word.ends_with(".csv")
        })
        .collect()
}

/// Ids that names of tests begin with, hyphens left out: `v3_v4_silence` has two.
fn tests_named_after(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_test = false;
    for (at, line) in source.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("fn ").filter(|_| is_test) {
            let name = name.split('(').next().unwrap_or_default();
            for word in name.split('_') {
                if split_id(&word.to_uppercase()).is_none() {
                    if word == "and" {
                        continue;
                    }
                    break;
                }
                found.push((at + 1, word.to_owned()));
            }
        }
        is_test = line == "#[test]" || (is_test && line.starts_with("#["));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "<a id=\"r1\"></a>**R1** …\n\n<a id=\"r2.3\"></a>**R2.3** …\n<a id=\"e-4\"></a>";

    fn book() -> Book {
        let mut book = Book {
            routes: routes("| `crates/a/` | [one](one.md) |\n| `docs/one.md` | [one](one.md) |\n"),
            ..Book::default()
        };
        book.add("one", PAGE);
        book.add("two", "<a id=\"r7\"></a> <a id=\"bw-it\"></a> <a id=\"rule-2\"></a>");
        book
    }

    fn faults(path: &str, text: &str) -> Vec<String> {
        book().check(path, text).iter().map(Fault::to_string).collect()
    }

    #[test]
    fn a_made_up_citation_is_reported_with_its_place_and_page() {
        let source =
            "// R1 holds.\nlet r9 = \"R9\";\n\n/// As R2.3 says,\n/// and R9.\nfn f() {}\n";
        assert_eq!(
            faults("crates/a/src/lib.rs", source),
            ["crates/a/src/lib.rs:5: `R9` has no anchor on docs/rules/one.md"]
        );
        assert_eq!(
            faults("docs/one.md", "# One\n\nR1, and\nR2.4.\n"),
            ["docs/one.md:4: `R2.4` has no anchor on docs/rules/one.md"]
        );
    }

    #[test]
    fn what_a_paragraph_or_a_header_names_comes_before_the_path() {
        assert!(faults("crates/a/x.rs", "// R7 of `docs/rules/two.md`.\n").is_empty());
        assert!(faults("crates/a/x.rs", "//! See `docs/rules/two.md`.\n\n// R7.\n").is_empty());
        assert_eq!(faults("crates/a/x.rs", "// R7.\n").len(), 1);
        let lost = "crates/b/x.rs:1: `R7` is of no page: name `docs/rules/<page>.md`";
        assert_eq!(faults("crates/b/x.rs", "// R7.\n"), [lost]);
    }

    #[test]
    fn of_a_claim_the_experiment_tells_the_page() {
        assert!(faults("docs/results/claims.md", "| bw-it | as R7 says | |\n").is_empty());
        assert_eq!(faults("docs/results/claims.md", "| bw-it | as R1 says | |\n").len(), 1);
        assert_eq!(faults("docs/results/claims.md", "| bw-other | none |\n").len(), 1);
    }

    #[test]
    fn experiments_and_their_claims_are_read_in_strings_too() {
        let path = "crates/lab/src/experiments/x.rs";
        assert!(faults(path, "//! `docs/rules/two.md`\nconst A: &str = \"bw-it: R7\";").is_empty());
        assert_eq!(
            faults(path, "//! `docs/rules/two.md`\nconst A: &str = \"bw-that: R8\";").len(),
            2
        );
        assert_eq!(
            faults(path, "//! `docs/rules/two.md`\nconst A: &str = r#\"a \" bw-that\"#; // R9")
                .len(),
            2
        );
    }

    #[test]
    fn ranges_cite_all_they_span() {
        let found = |text| ids(text).into_iter().map(|(_, id)| id).collect::<Vec<_>>();
        assert_eq!(found("`R1` to `R4`, H-3"), ["R1", "R2", "R3", "R4", "H-3"]);
        assert_eq!(found("rules 8 and 9, not 10; rule 2"), ["rule-8", "rule-9", "rule-2"]);
        assert_eq!(found("A1-A3"), ["A1", "A2", "A3"]);
        assert_eq!(found("R8.10 to R8.11"), ["R8.10", "R8.11"]);
    }

    #[test]
    fn formulas_names_and_percentiles_are_no_ids() {
        assert!(ids("N-1, R_1, l^R2, x/C2, UTF-8, f64, P95, E1E, M-, AB1, A1-5").is_empty());
    }

    #[test]
    fn rules_without_letters_are_ids_only_where_the_page_has_such() {
        assert!(faults("crates/a/x.rs", "// rule 3\n").is_empty());
        assert_eq!(faults("crates/a/x.rs", "// rules 2 and 3 of `docs/rules/two.md`\n").len(), 1);
    }

    #[test]
    fn tests_are_named_after_vectors_that_exist() {
        let test =
            |name: &str| faults("crates/a/x.rs", &format!("#[test]\nfn {name}() {{}}\n")).len();
        assert_eq!(
            [test("r1_and_e4_hold"), test("r1_r5_hold"), test("f64_is_no_rule_r5")],
            [0, 1, 1]
        );
    }

    #[test]
    fn links_lead_to_anchors() {
        assert!(faults("docs/one.md", "[R7](rules/two.md#r7)\n").is_empty());
        let lost = "docs/one.md:1: docs/rules/two.md has no anchor `r8`";
        assert_eq!(faults("docs/one.md", "[R8](rules/two.md#r8)\n"), [lost]);
    }

    #[test]
    fn an_anchor_occurs_once() {
        let mut book = book();
        book.add("one", "\n<a id=\"r1\"></a>");
        assert_eq!(book.faults[0].to_string(), "docs/rules/one.md:2: anchor `r1` occurs twice");
    }
}
