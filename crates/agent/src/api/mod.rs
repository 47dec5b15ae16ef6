//! The agent over HTTP: what it knows, what happens, and what may be asked of it.
//!
//! Any web page that the operator looks at can send requests to loopback, so being local proves nothing: who asks must
//! call this server by a name it has, must not come from another site, and must know the token to change anything.
//! Every route says who may use it; there is no default.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    routing::{MethodRouter, get, on, post},
};
use tokio::time::timeout;

use self::{access::Access, places::Place, problem::Problem};
pub use self::{
    door::usual_sockets,
    page::dashboard_file,
    server::serve,
    stage::{Act, Actor, Order, Stage},
    token::Token,
};
pub(crate) use self::{
    door::{Door, Shut},
    server::{serve_apart, serve_door_apart},
};
use crate::{
    config::Config,
    host::{
        clock,
        handle::{Answers, Handle, Request},
        hooks::HookView,
        refusals::Refusals,
    },
    status::{ElectionStatus, MapStatus, Status},
};

mod access;
mod answer;
mod body;
mod command;
mod deadline;
#[cfg(test)]
mod document;
mod door;
mod events;
mod framing;
mod health;
mod metrics;
mod page;
mod places;
mod problem;
mod query;
mod server;
mod stage;
mod token;

/// What the routes share.
#[derive(Clone, Debug)]
pub struct Api {
    shared: Arc<Shared>,
    /// Whether whoever asks came through the local door, and may ask for anything.
    at_the_door: bool,
}

#[derive(Clone, Debug)]
struct Shared {
    behind: Behind,
    hooks: HookView,
    token: Option<Token>,
    names: Vec<String>,
    /// Whether whoever reaches us may read: on loopback.
    open: bool,
    /// What was refused before anybody could be asked.
    refusals: Arc<Refusals>,
}

/// Who answers.
#[derive(Clone, Debug)]
enum Behind {
    /// An agent, once.
    Agent(Handle),
    /// The node in this place of a stage, in whichever life.
    Stage(Stage, usize),
}

impl Shared {
    fn handle(&self) -> Option<Handle> {
        match &self.behind {
            Behind::Agent(handle) => Some(handle.clone()),
            Behind::Stage(stage, at) => stage.handle(*at),
        }
    }

    fn stage(&self) -> Option<&Stage> {
        match &self.behind {
            Behind::Agent(_) => None,
            Behind::Stage(stage, _) => Some(stage),
        }
    }
}

impl Api {
    /// The interface of the agent behind `handle`, for a listener bound to `bound`.
    pub fn new(
        config: &Config,
        bound: SocketAddr,
        token: Option<Token>,
        handle: Handle,
        hooks: HookView,
    ) -> Self {
        Self::with(config, bound, token, Behind::Agent(handle), hooks)
    }

    /// The interface of the node in this place of a stage, which outlives the node.
    pub fn staged(
        config: &Config,
        bound: SocketAddr,
        token: Option<Token>,
        stage: Stage,
        at: usize,
    ) -> Self {
        Self::with(config, bound, token, Behind::Stage(stage, at), HookView::none())
    }

    fn with(
        config: &Config,
        bound: SocketAddr,
        token: Option<Token>,
        behind: Behind,
        hooks: HookView,
    ) -> Self {
        let refusals = match &behind {
            Behind::Agent(handle) => handle.refusals(),
            Behind::Stage(..) => Arc::default(),
        };
        let shared = Shared {
            behind,
            hooks,
            token,
            names: config.api_names.clone(),
            open: bound.ip().is_loopback(),
            refusals,
        };
        Self { shared: Arc::new(shared), at_the_door: false }
    }

    /// The same for those who came through the local door.
    fn at_the_door(&self) -> Self {
        Self { at_the_door: true, ..self.clone() }
    }

    fn refusals(&self) -> Arc<Refusals> {
        Arc::clone(&self.shared.refusals)
    }

    fn handle(&self) -> Result<Handle, Problem> {
        self.shared.handle().ok_or_else(Problem::stopped)
    }

    /// Waits until there is nobody left to ask.
    async fn over(&self) {
        match &self.shared.behind {
            Behind::Agent(handle) => handle.stopped().await,
            Behind::Stage(..) => std::future::pending().await,
        }
    }

    /// What the agent knows; it must say so soon, or it is not in a state to know.
    async fn status(&self) -> Result<Status, Problem> {
        match timeout(PATIENCE, self.handle()?.status()).await {
            Ok(Ok(status)) => {
                let now = clock::now();
                let elections = status.elections.iter().map(|one| one.clone().read_at(now));
                Ok(Status { elections: elections.collect(), ..Status::clone(&status) })
            }
            Ok(Err(_)) => Err(Problem::stopped()),
            Err(_) => Err(Problem::busy()),
        }
    }

    /// What every election answers. The node is not asked, whatever the number of those who ask here.
    fn answers(&self) -> Result<Arc<Answers>, Problem> {
        let answers = self.handle()?.answers().map_err(|_| Problem::stopped())?;
        if answers.are_fresh() { Ok(answers) } else { Err(Problem::busy()) }
    }

    fn elections(&self) -> Result<Vec<ElectionStatus>, Problem> {
        let (answers, now) = (self.answers()?, clock::now());
        Ok(answers.elections.iter().map(|one| one.clone().read_at(now)).collect())
    }

    fn election(&self, name: &str) -> Result<ElectionStatus, Problem> {
        let answers = self.answers()?;
        match answers.elections.iter().find(|election| election.election == name) {
            Some(found) => Ok(found.clone().read_at(clock::now())),
            None => Err(Problem::no_such_election(name, &answers.elections)),
        }
    }

    async fn map(&self, name: &str) -> Result<MapStatus, Problem> {
        match timeout(PATIENCE, self.handle()?.map(name)).await {
            Ok(map) => map.map_err(|refused| Problem::refused(&refused)),
            Err(_) => Err(Problem::busy()),
        }
    }

    async fn request(&self, request: Request) -> Result<(), Problem> {
        match timeout(PATIENCE, self.handle()?.request(request)).await {
            Ok(done) => done.map_err(|refused| Problem::refused(&refused)),
            Err(_) => Err(Problem::busy()),
        }
    }
}

struct Route {
    path: &'static str,
    access: Access,
    methods: MethodRouter<Api>,
}

fn route(path: &'static str, access: Access, methods: MethodRouter<Api>) -> Route {
    Route { path, access, methods }
}

/// All there is. `openapi.json` describes the same, and a test asks for each.
fn routes() -> Vec<Route> {
    use Access::{Command, Open, Read};
    use axum::routing::MethodFilter;
    let probe = MethodFilter::GET.or(MethodFilter::HEAD).or(MethodFilter::OPTIONS);
    vec![
        // The page is for everybody, the name for those who may read.
        route("/", Open, get(query::root)),
        route("/dashboard/{file}", Open, get(page::file)),
        route("/healthz", Open, get(health::healthy)),
        route("/livez", Open, get(health::alive)),
        route("/readyz", Open, get(health::ready)),
        route("/metrics", Read, get(metrics::metrics)),
        route("/openapi.json", Open, get(query::openapi)),
        route("/v1/status", Read, get(query::status)),
        route("/v1/leader", Read, get(query::leader)),
        route("/v1/elections", Read, get(query::elections)),
        route("/v1/elections/{election}", Read, get(query::election)),
        route("/v1/elections/{election}/map", Read, get(query::map)),
        route("/v1/elections/{election}/is-leader", Open, on(probe, query::is_leader)),
        route("/v1/elections/{election}/resign", Command, post(command::resign)),
        route("/v1/elections/{election}/report", Command, post(command::report)),
        route("/v1/elections/{election}/transfer", Command, post(command::transfer)),
        route("/v1/members", Read, get(query::members)),
        route("/v1/topology", Read, get(query::topology)),
        route("/v1/why/{member}", Read, get(query::why)),
        route("/v1/hooks", Read, get(query::hooks)),
        route("/v1/events", Read, get(events::events)),
        route("/v1/join", Command, post(command::join)),
        route("/v1/leave", Command, post(command::leave)),
        route("/v1/force-leave", Command, post(command::force_leave)),
        route("/v1/tags", Command, post(command::tags)),
    ]
}

/// What there is besides on a stage: who may read the page may act, as the page of another site may not.
fn staged() -> Vec<Route> {
    use Access::Read;
    vec![
        route("/v1/dev/nodes", Read, get(stage::nodes)),
        route("/v1/dev/nodes/{node}/status", Read, get(stage::status)),
        route("/v1/dev/nodes/{node}/events", Read, get(stage::happening)),
        route("/v1/dev/nodes/{node}/why/{member}", Read, get(stage::why)),
        route("/v1/dev/nodes/{node}/{act}", Read, post(stage::act)),
    ]
}

fn router(api: &Api) -> Router {
    let add = |router: Router<Api>, Route { path, access, methods }: Route| {
        let allowed = from_fn_with_state((api.clone(), access), access::allowed);
        router.route(path, methods.layer(allowed))
    };
    let staged = api.shared.stage().map(|_| staged());
    routes()
        .into_iter()
        .chain(staged.into_iter().flatten())
        .fold(Router::new(), add)
        .fallback(query::nothing)
        .method_not_allowed_fallback(query::wrong_method)
        .layer(from_fn_with_state(api.clone(), access::meant_for_us))
        .layer(from_fn(answer::plain))
        .with_state(api.clone())
}

/// How long the agent may take to answer. It answers between two packets; more than this is a stall.
const PATIENCE: Duration = Duration::from_secs(2);
