//! How `openapi.json` comes about, which describes to programs what there is to ask.
//!
//! The shapes of questions and answers are those of the types that are read and written; which route has which is said here.
//! It is made by a test and not by the agent, which serves the file: code that describes its own types would be 340 kB of
//! every binary. Other tests ask for every route and hold the answers against it.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{body, command, events, health, problem::Problem, query, stage};
use crate::{
    host::hooks::HookStatus,
    status::{MapStatus, MemberStatus, Status},
};

/// `BLESS=1 cargo test` writes it.
#[test]
fn the_document_is_what_the_types_say() {
    let text = written(&Document::new().whole());
    if std::env::var_os("BLESS").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api/openapi.json");
        fs::write(file, &text).unwrap();
    }
    let told = "types or routes have changed: run it with BLESS=1, and read what has become of openapi.json";
    assert!(text == include_str!("openapi.json") || std::env::var_os("BLESS").is_some(), "{told}");
}

/// A line for each route and each shape: what has changed is seen.
fn written(document: &Value) -> String {
    let mut text = String::from("{\n");
    let lines = |text: &mut String, fields: &Map<String, Value>| {
        for (at, (name, field)) in (1..).zip(fields) {
            let comma = if at < fields.len() { "," } else { "" };
            writeln!(text, "{}: {field}{comma}", json!(name)).unwrap();
        }
    };
    let fields = document.as_object().unwrap();
    for (name, field) in
        fields.iter().filter(|(name, _)| !matches!(&***name, "paths" | "components"))
    {
        writeln!(text, "{}: {field},", json!(name)).unwrap();
    }
    text += "\"paths\": {\n";
    lines(&mut text, document["paths"].as_object().unwrap());
    text += "},\n\"components\": {\n";
    let security = &document["components"]["securitySchemes"];
    writeln!(text, "\"securitySchemes\": {security},\n\"schemas\": {{").unwrap();
    lines(&mut text, document["components"]["schemas"].as_object().unwrap());
    text += "}\n}\n}\n";
    text
}

#[derive(Default)]
struct Document {
    paths: Map<String, Value>,
    /// By name.
    shapes: BTreeMap<String, Value>,
}

impl Document {
    fn new() -> Self {
        let mut it = Self::default();
        it.probes();
        it.questions();
        it.commands();
        it.dev();
        it
    }

    fn probes(&mut self) {
        let name = json!({ "application/json": { "schema": self.told::<query::Name>() }, "text/html": text() });
        let page =
            "The dashboard for browsers; for others who leads, as elector sidecars answered it";
        self.add("get", "/", "name", page, vec![("200", "The answer.", name)]);
        let files =
            json!({ "text/css": text(), "text/javascript": text(), "image/svg+xml": text() });
        let answers = vec![
            ("200", "The file.", files),
            ("304", "It is still the one whose ETag was sent.", json!({})),
            ("404", "There is no such file.", self.answer::<Problem>()),
        ];
        self.add("get", "/dashboard/{file}", "dashboard", "A file of the dashboard", answers);
        let text = json!({ "text/plain": text() });
        self.add(
            "get",
            "/metrics",
            "metrics",
            "Metrics for Prometheus",
            vec![("200", "Text.", text)],
        );
        let this = json!({ "application/json": { "schema": { "type": "object" } } });
        self.add(
            "get",
            "/openapi.json",
            "openapi",
            "This document",
            vec![("200", "The answer.", this)],
        );
        self.get::<health::Healthy>(
            "/healthz",
            "healthy",
            "Alive, and what is not as it should be",
        );
        self.get::<health::Alive>("/livez", "alive", "Whether the agent is alive");
        self.get::<health::Ready>("/readyz", "ready", "Whether the agent is ready; followers are");
        let probe = "Role probe: 200 if this node leads and may act, else 503";
        for (method, id) in
            [("get", "getIsLeader"), ("head", "headIsLeader"), ("options", "optionsIsLeader")]
        {
            let (yes, no) = (self.told::<query::IsLeader>(), self.told::<Problem>());
            let answers = vec![
                ("200", "It leads.", as_json(yes.clone())),
                ("503", "It does not, or cannot say.", as_json(json!({ "oneOf": [yes, no] }))),
            ];
            self.add(method, "/v1/elections/{election}/is-leader", id, probe, answers);
        }
    }

    fn questions(&mut self) {
        self.get::<Status>("/v1/status", "status", "All that the agent knows");
        self.get::<query::Leadership>("/v1/leader", "leader", "Who leads the first election");
        self.list::<query::Leadership>(
            "/v1/elections",
            "elections",
            "All elections and who leads them",
        );
        self.get::<query::Leadership>(
            "/v1/elections/{election}",
            "election",
            "One election and who leads it",
        );
        let map = vec![
            ("200", "The answer.", self.answer::<MapStatus>()),
            ("409", "This election is not decided by a map.", self.answer::<Problem>()),
        ];
        let what = "The map by which a central election is decided";
        self.add("get", "/v1/elections/{election}/map", "map", what, map);
        self.list::<MemberStatus>("/v1/members", "members", "Everybody known");
        self.get::<query::Topology>("/v1/topology", "topology", "The network as this node sees it");
        self.get::<query::Why>("/v1/why/{member}", "why", "A member and what is held against it");
        self.list::<HookStatus>("/v1/hooks", "hooks", "How the hooks are doing");
        let what = "What happens: a stream of server-sent events, or with index a long poll";
        let answers = vec![self.happenings()];
        self.add("get", "/v1/events", "events", what, answers);
        self.polled("/v1/events");
    }

    fn commands(&mut self) {
        let election = "/v1/elections/{election}";
        self.post::<body::Nothing>(&format!("{election}/resign"), "resign", "Give up leading");
        let what = "Give up leading to that member";
        self.post::<command::Transfer>(&format!("{election}/transfer"), "transfer", what);
        let what = "Say how the leader, or another member, does; where that is learnt, it counts";
        self.post::<command::Report>(&format!("{election}/report"), "report", what);
        self.post::<command::Join>("/v1/join", "join", "Talk to these, now and until they answer");
        self.post::<body::Nothing>("/v1/leave", "leave", "Hand over, say goodbye and stop");
        let what = "Take a failed member off the lists";
        self.post::<command::ForceLeave>("/v1/force-leave", "forceLeave", what);
        self.post::<command::Tags>("/v1/tags", "tags", "Change what others read about this node");
        for path in ["/v1/elections/{election}/resign", "/v1/leave"] {
            self.paths[path]["post"]["requestBody"]["required"] = json!(false);
        }
    }

    /// What only a cluster in one process has.
    fn dev(&mut self) {
        let nobody = "There is no such node, or this is not `bellwether dev`.";
        let missing = ("404", nobody, self.answer::<Problem>());
        let nodes = json!({ "type": "array", "items": self.told::<stage::Seen>() });
        let answers = vec![
            ("200", "The answer.", as_json(nodes)),
            ("404", "This is not `bellwether dev`.", self.answer::<Problem>()),
        ];
        let what = "Only in `bellwether dev`: all nodes, dead or alive, and what each says";
        self.add("get", "/v1/dev/nodes", "devNodes", what, answers);
        let status = json!({ "oneOf": [self.told::<Status>(), { "type": "null" }] });
        let answers = vec![("200", "The answer.", as_json(status)), missing.clone()];
        let what = "Only in `bellwether dev`: what this node knows; null if it is dead";
        self.add("get", "/v1/dev/nodes/{node}/status", "devStatus", what, answers);
        let what = "Only in `bellwether dev`: what happens at this node, as in /v1/events";
        let answers = vec![self.happenings(), missing.clone()];
        self.add("get", "/v1/dev/nodes/{node}/events", "devEvents", what, answers);
        self.polled("/v1/dev/nodes/{node}/events");
        let what = "Only in `bellwether dev`: a member as this node sees it";
        let answers = vec![("200", "The answer.", self.answer::<query::Why>()), missing.clone()];
        self.add("get", "/v1/dev/nodes/{node}/why/{member}", "devWhy", what, answers);
        let what = "Only in `bellwether dev`: do something to a node. On loopback it needs no token; pages of other sites are \
                    refused";
        let answers = vec![
            ("202", "Under way.", self.answer::<command::Accepted>()),
            missing,
            ("409", "It is dead, or alive, already.", self.answer::<Problem>()),
        ];
        self.add("post", "/v1/dev/nodes/{node}/{act}", "devAct", what, answers);
    }

    /// A question that is answered by one of these.
    fn get<T: ToSchema>(&mut self, path: &str, id: &str, what: &str) {
        let answers = vec![("200", "The answer.", self.answer::<T>())];
        self.add("get", path, id, what, answers);
    }

    /// A question that is answered by a list of these.
    fn list<T: ToSchema>(&mut self, path: &str, id: &str, what: &str) {
        let all = json!({ "type": "array", "items": self.told::<T>() });
        self.add("get", path, id, what, vec![("200", "The answer.", as_json(all))]);
    }

    /// A command that brings one of these along.
    fn post<T: ToSchema>(&mut self, path: &str, id: &str, what: &str) {
        let answers = vec![("202", "Under way.", self.answer::<command::Accepted>())];
        self.add("post", path, id, what, answers);
        let operation = &mut self.paths[path]["post"];
        operation["security"] = json!([{ "token": [] }]);
        let shape = self.asked::<T>();
        self.paths[path]["post"]["requestBody"] =
            json!({ "required": true, "content": as_json(shape) });
    }

    fn add(
        &mut self,
        method: &str,
        path: &str,
        id: &str,
        what: &str,
        answers: Vec<(&str, &str, Value)>,
    ) {
        let problem = ("default", "Not as asked.", self.answer::<Problem>());
        let answer = |(code, what, content): (&str, &str, Value)| {
            (code.to_owned(), json!({ "description": what, "content": content }))
        };
        let answers: Map<String, Value> =
            answers.into_iter().chain([problem]).map(answer).collect();
        let named = path.split('{').skip(1).filter_map(|part| part.split('}').next());
        let parameters: Vec<Value> = named.map(in_path).collect();
        let operation = json!({
            "summary": what, "operationId": id, "parameters": parameters, "responses": answers,
        });
        let known = self.paths.entry(path).or_insert_with(|| json!({}));
        known[method] = operation;
    }

    /// What a stream or a poll is answered.
    fn happenings(&mut self) -> (&'static str, &'static str, Value) {
        let content = json!({
            "application/json": { "schema": self.told::<events::Events>() },
            "text/event-stream": text(),
        });
        ("200", HAPPENINGS, content)
    }

    /// Says from where on events are wanted.
    fn polled(&mut self, path: &str) {
        let more = json!([
            { "name": "index", "in": "query", "required": false,
              "description": "Events after this number.", "schema": { "type": "integer", "minimum": 0 } },
            { "name": "wait", "in": "query", "required": false, "schema": { "type": "string" },
              "description": "How long a poll waits for one, such as 30s; at most 10m." },
            { "name": "Last-Event-ID", "in": "header", "required": false, "schema": { "type": "string" },
              "description": "Resume a stream after this number." },
        ]);
        let (known, more) = (self.paths[path]["get"]["parameters"].as_array_mut(), more.as_array());
        if let (Some(known), Some(more)) = (known, more) {
            known.extend(more.iter().cloned());
        }
    }

    fn answer<T: ToSchema>(&mut self) -> Value {
        as_json(self.told::<T>())
    }

    /// A type that is written: what may be null is there nevertheless.
    fn told<T: ToSchema>(&mut self) -> Value {
        self.shape::<T>(|shape| {
            let fields = shape["properties"].as_object();
            let null = |shape: &Value| {
                let kinds = shape["type"].as_array().into_iter().flatten();
                let choices = shape["oneOf"].as_array().into_iter().flatten();
                kinds.chain(choices.map(|choice| &choice["type"])).any(|kind| kind == "null")
            };
            let there = fields.into_iter().flatten().filter(|(_, shape)| null(shape));
            let there: Vec<Value> = there.map(|(name, _)| json!(name)).collect();
            if !there.is_empty() {
                let required = shape["required"].as_array().cloned().unwrap_or_default();
                shape["required"] = required.into_iter().chain(there).collect();
            }
        })
    }

    /// A type that is read.
    fn asked<T: ToSchema>(&mut self) -> Value {
        self.shape::<T>(|_| {})
    }

    /// Where a type is described.
    fn shape<T: ToSchema>(&mut self, finish: fn(&mut Value)) -> Value {
        let mut all = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut all);
        for (name, shape) in all {
            self.shapes.entry(name).or_insert_with(|| {
                let mut shape = json!(shape);
                each(&mut shape, finish);
                shape
            });
        }
        json!({ "$ref": format!("#/components/schemas/{}", T::name()) })
    }

    fn whole(mut self) -> Value {
        let known = self.shapes.clone();
        for shape in self.shapes.values_mut() {
            unite(shape, &known);
            each(shape, |shape| {
                if shape["properties"].is_object() && shape.get("additionalProperties").is_none() {
                    shape["additionalProperties"] = json!(false);
                }
                // Lines end where those of the source do.
                if let Some(words) = shape["description"].as_str() {
                    shape["description"] = json!(words.replace('\n', " "));
                }
            });
        }
        if let Some(healthy) = self.shapes.get_mut("Healthy") {
            // Names are for those who may read.
            healthy["required"] = json!(["status"]);
        }
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Bellwether agent",
                "version": "1",
                "description": ABOUT,
                "license": { "name": LICENSE, "identifier": LICENSE },
            },
            "servers": [{ "url": "http://127.0.0.1:7739" }],
            "paths": self.paths,
            "components": {
                "schemas": self.shapes,
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            },
        })
    }
}

/// Does something to a shape and all that it consists of.
fn each(shape: &mut Value, what: fn(&mut Value)) {
    match shape {
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| each(field, what));
            what(shape);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, what)),
        _ => {}
    }
}

/// One object instead of several of which each has a part of its fields: nothing but these is in it.
fn unite(shape: &mut Value, known: &BTreeMap<String, Value>) {
    let Some(parts) = shape["allOf"].as_array().cloned() else { return };
    let (mut fields, mut required) = (Map::new(), Vec::new());
    for part in parts {
        let name = part["$ref"].as_str().and_then(|place| place.rsplit('/').next());
        let part = name.and_then(|name| known.get(name)).cloned().unwrap_or(part);
        fields.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().cloned().unwrap_or_default());
    }
    let description = shape["description"].take();
    *shape = json!({ "type": "object", "properties": fields, "required": required });
    if !description.is_null() {
        shape["description"] = description;
    }
}

fn as_json(schema: Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn in_path(name: &str) -> Value {
    let (what, schema) = match name {
        "member" => ("Its name or identity.", json!({ "type": "string" })),
        "act" => (
            "Kill it without a word; start it again; pull its cable; plug it in.",
            json!({ "type": "string", "enum": ["kill", "revive", "cut", "heal"] }),
        ),
        _ => ("Its name.", json!({ "type": "string" })),
    };
    json!({ "name": name, "in": "path", "required": true, "description": what, "schema": schema })
}

fn text() -> Value {
    json!({ "schema": { "type": "string" } })
}

const ABOUT: &str = "Who leads, since when, and may I act. Reads are open on loopback and need the token elsewhere; commands \
                     always need it. Requests must call the server by one of its names.";
const LICENSE: &str = "MIT OR Apache-2.0";
const HAPPENINGS: &str = "With index one answer, else a stream. The stream's events are named as in Event, or reset (data: \
                          Status) after a gap, or lagged at the end of a stream that was read too slowly.";
