//! `bellwether play`: a page on which a scenario runs, and on which one does things to it; and `sim --film`.
//!
//! The server keeps nothing that the page does not have: a page sends a scenario's name, a seed, overrides and edits, and
//! reads a film. Another edit is another film; their beginnings are the same, so that the page shows no seam.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use axum::{
    Json, Router,
    extract::{Path as Named, Query, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use bellwether_agent::internal::api::dashboard_file;
use bellwether_sim::{
    play::{Edit, PlayError, Session, film_of},
    scenario::Scenario,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    output::{Failure, about},
    runs::whole,
    sim::create,
};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The scenario file; those that come with the program are there without one
    #[arg(value_name = "SCENARIO")]
    file: Option<PathBuf>,
    /// The seed to begin with
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole)]
    seed: u64,
    /// Override a field of the scenario; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE", requires = "file")]
    sets: Vec<String>,
    /// Where the page is served, on this machine alone
    #[arg(long, value_name = "PORT", default_value_t = 7790)]
    port: u16,
}

const EXAMPLES: &str = "\
Examples:
  bellwether play
  bellwether play scenarios/node-leased.toml
  bellwether play scenarios/moving-field.toml --set network.nodes=100";

/// A file of the page.
struct File {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! file {
    ($name:literal, $kind:expr) => {
        File { name: $name, kind: $kind, text: include_str!(concat!("play/page/", $name)) }
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const INDEX: &str = include_str!("play/page/index.html");
/// Scripts stand in the order in which a page that is one file needs them: what imports after what is imported.
const FILES: &[File] = &[
    file!("play.css", STYLE),
    file!("film.js", SCRIPT),
    file!("draw.js", SCRIPT),
    file!("promise.js", SCRIPT),
    file!("lanes.js", SCRIPT),
    file!("panel.js", SCRIPT),
    file!("edits.js", SCRIPT),
    file!("tutorial.js", SCRIPT),
    file!("app.js", SCRIPT),
];
/// Of the dashboard's files those that this page has too.
const SHARED: [(&str, &str); 4] = [
    ("style.css", STYLE),
    ("icon.svg", "image/svg+xml"),
    ("theme.js", SCRIPT),
    ("words.js", SCRIPT),
];

/// Scenarios that come with the program: a word for each, and its text.
const WORLDS: [(&str, &str); 4] = [
    ("five", include_str!("play/worlds/five.toml")),
    ("hasty", include_str!("play/worlds/hasty.toml")),
    ("members", include_str!("play/worlds/members.toml")),
    ("crowd", include_str!("play/worlds/crowd.toml")),
];

/// Nothing but what this server serves, and nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Films kept at once: those of two sides, the two before them, and some whose readers are slow to let go.
const MOST_FILMS: usize = 8;
/// Bytes of a film in one answer.
const PIECE: usize = 4 << 20;

pub(crate) fn run(args: &Args) -> Result<bool, Failure> {
    let mut worlds: Vec<World> = Vec::new();
    if let Some(file) = &args.file {
        // It says what is wrong with a file, be it that there is none.
        Scenario::load(file, &args.sets)?;
        let text = fs::read_to_string(file).map_err(about(file))?;
        let name = file.display().to_string();
        worlds.push(World { key: name.clone(), file: name, text, sets: args.sets.clone() });
    }
    worlds.extend(WORLDS.map(|(key, text)| World {
        key: key.to_owned(),
        file: key.to_owned(),
        text: text.to_owned(),
        sets: Vec::new(),
    }));
    let failed = |error: std::io::Error| Failure::Other(format!("cannot serve the page: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listener = match TcpListener::bind(wanted).await {
            // Somebody else has that port: any other will do.
            Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
            bound => bound,
        }
        .map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        let theatre = Arc::new(Theatre {
            worlds,
            seed: args.seed,
            films: Mutex::default(),
            next: AtomicU64::new(1),
        });
        // A closed pipe is the reader's business.
        let _ = writeln!(std::io::stdout(), "http://{at}/ plays; Ctrl-C ends it");
        let served = axum::serve(listener, router(theatre));
        tokio::select! {
            ended = served => ended.map_err(failed)?,
            _ = tokio::signal::ctrl_c() => {}
        }
        Ok(true)
    })
}

/// What is on, and the films that pages read.
struct Theatre {
    worlds: Vec<World>,
    seed: u64,
    films: Mutex<BTreeMap<u64, Arc<Showing>>>,
    next: AtomicU64,
}

/// A scenario that may be played.
struct World {
    key: String,
    file: String,
    text: String,
    /// Overrides of the command line, before those of the page.
    sets: Vec<String>,
}

/// A film that is made while it is read.
#[derive(Default)]
struct Showing {
    text: Mutex<String>,
    stopped: Arc<AtomicBool>,
}

impl Showing {
    fn add(&self, line: &str) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(line);
        text.push('\n');
    }
}

/// What a page asks to see.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    world: String,
    seed: String,
    #[serde(default)]
    sets: Vec<String>,
    #[serde(default)]
    edits: Vec<Value>,
}

fn router(theatre: Arc<Theatre>) -> Router {
    Router::new()
        .route("/", get(|| async { page("text/html; charset=utf-8", INDEX.to_owned()) }))
        .route("/page/{name}", get(page_file))
        .route("/api/worlds", get(worlds))
        .route("/api/film", post(begin))
        .route("/api/film/{id}", get(read))
        .route("/api/scenario", post(scenario))
        .with_state(theatre)
        .layer(middleware::from_fn(meant_for_us))
}

/// Refuses requests that another site's page has sent, or one whose name was made to point here.
async fn meant_for_us(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let ours = matches!(name, "127.0.0.1" | "localhost" | "[::1]");
    match ours && matches!(site, None | Some(b"same-origin" | b"none")) {
        true => next.run(request).await,
        false => (StatusCode::FORBIDDEN, "this page is for this machine alone\n").into_response(),
    }
}

fn page(kind: &'static str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}

async fn page_file(Named(name): Named<String>) -> Response {
    let own = FILES.iter().find(|file| file.name == name);
    let shared = || {
        let &(name, kind) = SHARED.iter().find(|(shared, _)| *shared == name)?;
        Some((kind, dashboard_file(name)?))
    };
    match own.map(|file| (file.kind, file.text)).or_else(shared) {
        Some((kind, text)) => page(kind, text.to_owned()),
        None => {
            (StatusCode::NOT_FOUND, "the page has no such file; it begins at /\n").into_response()
        }
    }
}

async fn worlds(State(theatre): State<Arc<Theatre>>) -> Response {
    let world = |world: &World| {
        let title = Scenario::parse(&world.file, &world.text, &world.sets);
        let title = title.map_or_else(|error| error.to_string(), |scenario| scenario.name);
        let about: Vec<&str> =
            world.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
        json!({ "key": world.key, "title": title, "about": about.join(" "), "sets": world.sets })
    };
    let worlds: Vec<Value> = theatre.worlds.iter().map(world).collect();
    Json(json!({ "worlds": worlds, "seed": theatre.seed.to_string() })).into_response()
}

impl Theatre {
    fn session(&self, asked: &Asked) -> Result<Session, String> {
        let world = self.worlds.iter().find(|world| world.key == asked.world).ok_or_else(|| {
            let keys: Vec<&str> = self.worlds.iter().map(|world| &*world.key).collect();
            format!(
                "no scenario is called {:?} here; there are {}. Start: bellwether play SCENARIO",
                asked.world,
                keys.join(", ")
            )
        })?;
        let seed = whole(&asked.seed).map_err(|why| format!("seed {:?}: {why}", asked.seed))?;
        let edits: Result<Vec<Edit>, PlayError> = asked.edits.iter().map(Edit::read).collect();
        Ok(Session {
            file: world.file.clone(),
            text: world.text.clone(),
            sets: world.sets.iter().chain(&asked.sets).cloned().collect(),
            edits: edits.map_err(|error| error.to_string())?,
            seed,
        })
    }
}

fn wrong(problem: String) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": problem }))).into_response()
}

/// Begins a film, and says under which number it is read.
async fn begin(State(theatre): State<Arc<Theatre>>, Json(asked): Json<Asked>) -> Response {
    let session = match theatre.session(&asked) {
        Ok(session) => session,
        Err(problem) => return wrong(problem),
    };
    if let Err(error) = session.scenario() {
        return wrong(error.to_string());
    }
    let showing = Arc::new(Showing::default());
    let id = theatre.next.fetch_add(1, Ordering::Relaxed);
    {
        let mut films = theatre.films.lock().unwrap_or_else(PoisonError::into_inner);
        films.insert(id, Arc::clone(&showing));
        while films.len() > MOST_FILMS
            && let Some((_, oldest)) = films.pop_first()
        {
            oldest.stopped.store(true, Ordering::Relaxed);
        }
    }
    let made = thread::Builder::new().name(format!("film {id}")).spawn(move || {
        let added = Arc::clone(&showing);
        let result = session.film(&showing.stopped, move |line: &str| added.add(line));
        if let Err(error) = result {
            showing.add(&json!(["failed", error.to_string()]).to_string());
        }
    });
    match made {
        Ok(_) => Json(json!({ "id": id })).into_response(),
        Err(error) => wrong(format!("no thread to run it on: {error}")),
    }
}

/// From which byte on a film is read.
#[derive(Deserialize)]
struct From {
    #[serde(default)]
    from: usize,
}

/// Whole lines of a film, from a byte that begins one.
async fn read(
    State(theatre): State<Arc<Theatre>>,
    Named(id): Named<u64>,
    Query(From { from }): Query<From>,
) -> Response {
    let films = theatre.films.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(showing) = films.get(&id).cloned() else {
        return (StatusCode::GONE, "this film is no longer kept\n").into_response();
    };
    drop(films);
    let text = showing.text.lock().unwrap_or_else(PoisonError::into_inner);
    let rest = text.get(from..).unwrap_or_default();
    let piece = match rest.as_bytes().get(..PIECE) {
        Some(piece) => {
            piece.iter().rposition(|&byte| byte == b'\n').map_or(rest, |at| &rest[..=at])
        }
        None => rest,
    };
    page("text/plain; charset=utf-8", piece.to_owned())
}

/// The session as a file for `bellwether sim`.
async fn scenario(State(theatre): State<Arc<Theatre>>, Json(asked): Json<Asked>) -> Response {
    let written = theatre
        .session(&asked)
        .and_then(|session| session.written_out().map_err(|error| error.to_string()));
    match written {
        Ok(text) => page("text/plain; charset=utf-8", text),
        Err(problem) => wrong(problem),
    }
}

/// Writes a page that is one file and shows this run.
pub(crate) fn write_film(
    scenario: &Scenario,
    file: &Path,
    seed: u64,
    path: &Path,
) -> Result<(), Failure> {
    let film = Arc::new(Showing::default());
    let added = Arc::clone(&film);
    let name = file.display().to_string();
    film_of(scenario, &name, seed, &film.stopped, &mut move |line: &str| added.add(line))
        .map_err(|error| Failure::Other(error.to_string()))?;
    let text = film.text.lock().unwrap_or_else(PoisonError::into_inner);
    create(path)?.write_all(one_file(&text).as_bytes()).map_err(about(path))
}

/// The page with everything it needs in it, and a film.
fn one_file(film: &str) -> String {
    let shared = |name| dashboard_file(name).unwrap_or_default();
    let mut style = shared("style.css").to_owned();
    let mut script = without_modules(shared("words.js"));
    for file in FILES {
        match file.kind {
            STYLE => style.push_str(file.text),
            _ => script.push_str(&without_modules(file.text)),
        }
    }
    let icon = shared("icon.svg").replace('#', "%23").replace('"', "'").replace('\n', " ");
    let mut page = String::new();
    for line in INDEX.lines() {
        // The page's own files are what is linked from it; in one file they stand in their places.
        if line.starts_with("<link rel=\"stylesheet\"") {
            // Of all style sheets the first has taken.
            let style = std::mem::take(&mut style);
            page.push_str(&format!("<style>\n{style}</style>\n"));
        } else if line.starts_with("<script src=") {
            page.push_str(&format!("<script>\n{}</script>\n", shared("theme.js")));
        } else if line.starts_with("<script type=\"module\"") {
            // It must not end the element it stands in.
            let film = film.replace("</", "<\\/");
            page.push_str(&format!("<script type=\"text/plain\" id=\"film\">\n{film}</script>\n"));
            page.push_str(&format!("<script type=\"module\">\n{script}</script>\n"));
        } else {
            page.push_str(&line.replace("/page/icon.svg", &format!("data:image/svg+xml,{icon}")));
            page.push('\n');
        }
    }
    page
}

/// What a module says, for others that stand in the same script: nothing is imported, and nothing passed on.
fn without_modules(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("import "));
    lines.flat_map(|line| [line.strip_prefix("export ").unwrap_or(line), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_without_modules_has_neither_imports_nor_exports() {
        let text =
            without_modules("import { a } from './a.js';\nexport class B {}\nconst c = 1;\n");
        assert_eq!(text, "class B {}\nconst c = 1;\n");
    }

    #[test]
    fn names_at_the_top_of_the_scripts_are_unlike_each_other() {
        let scripts = FILES.iter().filter(|file| file.kind == SCRIPT).map(|file| file.text);
        let shared = dashboard_file("words.js").into_iter();
        let mut seen = BTreeMap::new();
        for line in shared.chain(scripts).flat_map(str::lines) {
            let line = line.strip_prefix("export ").unwrap_or(line);
            let line = line.strip_prefix("async ").unwrap_or(line);
            for word in ["const ", "let ", "class ", "function "] {
                let Some(rest) = line.strip_prefix(word) else { continue };
                let end = |c: char| !c.is_alphanumeric() && c != '_' && c != '$';
                let name = rest.split(end).next().unwrap_or_default();
                if !name.is_empty() {
                    assert_eq!(
                        seen.insert(name, line),
                        None,
                        "{name} stands at the top of two scripts"
                    );
                }
            }
        }
        assert!(seen.len() > 20);
    }
}
