//! The worked examples: figures 5.1 and 5.2.

use std::hash::{Hash, Hasher};

use bellwether_proto::{
    Seed,
    election::churn_tolerant::{Config, Criterion, ExcludeRule, Form, Health, Query, Variant},
};
use bellwether_sim::engine::Each;

use super::{
    drawn::{Election, Failure, List, answer},
    *,
};

pub(super) fn all() -> Vec<Experiment> {
    vec![
        Experiment {
            id: "wang-fig-5.1",
            title: "Base finds the lowest on c + 1 lists, and may not on c",
            source: "Fig. 5.1; its lists are not printed, these are ours",
            cells: |_| {
                let cell = |case: &Case| {
                    Cell::computed(case.name, Computation::new("Base by hand", *case, base), 1)
                };
                CASES.iter().map(cell).collect()
            },
            claims: figure_5_1_claims,
            figures: |_| Vec::new(),
        },
        Experiment {
            id: "wang-fig-5.2",
            title: "Hybrid, as printed step by step",
            source: "Fig. 5.2",
            cells: |_| vec![Cell::computed(PRINTED, Computation::new(PRINTED, (), hybrid), 1)],
            claims: figure_5_2_claims,
            figures: |_| Vec::new(),
        },
    ]
}

/// An election of node 3 on the lists 0: {0, 1, 2, 3}, 1: {1, 2, 3}, 2: {1, 2, 3}, 3: {0, 1, 2, 3}.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    c: u16,
    /// Whom it asks besides itself, or instead.
    asked: &'static [u32],
    ask_self: bool,
    leader: u32,
}

impl Hash for Case {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let &Self { name, c, asked, ask_self, leader } = self;
        (name, c, Each(asked), ask_self, leader).hash(state);
    }
}

const CASES: [Case; 3] = [
    Case { name: "c=2 asks 1 2 3", c: 2, asked: &[1, 2], ask_self: true, leader: 0 },
    Case { name: "c=2 asks 0 1 2", c: 2, asked: &[0, 1, 2], ask_self: false, leader: 0 },
    Case { name: "c=1 asks 1 2", c: 1, asked: &[1, 2], ask_self: false, leader: 1 },
];

fn base(case: &Case, seed: u64) -> Found {
    let lists: [&[u32]; 4] = [&[0, 1, 2, 3], &[1, 2, 3], &[1, 2, 3], &[0, 1, 2, 3]];
    let config = Config::new(Variant::Base, Form::AsPublished)
        .with_bounds(case.c, 0)?
        .with_criterion(Criterion::Identity, 0)?
        .with_grace(None)
        .with_ask_self(case.ask_self);
    let list = |node: u32| lists[node as usize].iter().map(|&other| (other, 0)).collect();
    let told = asking(case.asked, config, seed, 3, list)?;
    Ok(vec![Value::count(Leader(), told.last().copied().flatten().map(f64::from))])
}

/// Who is notified, answer by answer, in the first election, of many seeds, that asks these in this order.
fn asking(
    wanted: &[u32],
    config: Config,
    seed: u64,
    initiator: u32,
    list: impl Fn(u32) -> List,
) -> Result<Vec<Option<u32>>, Failure> {
    for attempt in 0..10_000 {
        let seed = Seed::new(seed).indexed(attempt);
        let election = Election::open(config, seed, initiator, list(initiator))?;
        if election.asked() == wanted {
            return election.hold(list);
        }
    }
    Err(format!("no seed asks {wanted:?}").into())
}

measure!(
    /// Who was elected.
    Leader() = "leader"
);

fn figure_5_1_claims(data: &Table) -> Vec<Claim> {
    let said = ["1, 1 and its own 0", "0, 1 and 1", "1 and 1 (c is too small)"];
    let claim = |(case, said): (&Case, &str)| {
        let sentence = format!(
            "Node 0 is missing from 2 lists; with c = {} the answers {said} elect node",
            case.c
        );
        data.claim(sentence, format!("node {}", case.leader))
            .digits(0)
            .exactly(data.estimate(case.name, Leader()), f64::from(case.leader))
    };
    CASES.iter().zip(said).map(claim).collect()
}

const PRINTED: &str = "Hybrid as printed";

/// What a responder answers, and who is notified by then.
struct Step {
    node: u32,
    names: [u32; 2],
    /// The unhealthy, with their counts.
    excludes: [(u32, u32); 2],
    told: u32,
}

const STEPS: [Step; 3] = [
    Step { node: 4, names: [0, 2], excludes: [(3, 2), (1, 1)], told: 0 },
    Step { node: 0, names: [0, 2], excludes: [(3, 4), (1, 2)], told: 0 },
    Step { node: 1, names: [1, 2], excludes: [(0, 5), (3, 2)], told: 2 },
];

measure!(
    /// What a node answers: whom it names, whom it excludes, how often it counts that one.
    Answer(node: u32, what: What, at: usize) = "{node} {what} {at}"
);
measure!(
    /// Who was notified by then.
    ToldAfter(node: u32) = "told after {node}"
);
measures!(What { Names = "names", Excludes = "excludes", Counts = "counts", });

fn hybrid((): &(), seed: u64) -> Found {
    let views: [&[(u32, u32)]; 5] = [
        &[(1, 2), (2, 1), (3, 4), (4, 0)],
        &[(0, 5), (2, 0), (3, 2), (4, 1)],
        &[(0, 2), (1, 2), (3, 3), (4, 1)],
        &[(0, 3), (1, 0), (2, 2), (4, 1)],
        &[(0, 0), (1, 1), (2, 0), (3, 2)],
    ];
    let list = |node: u32| -> List { views[node as usize].to_vec() };
    let (size, rule) = (2, ExcludeRule::Union);
    let health = Health::Exclude { candidates: size, excluded: size, threshold: 1, rule };
    let config = Config::new(Variant::Hybrid, Form::AsPublished)
        .with_bounds(2, 0)?
        .with_criterion(Criterion::Identity, 0)?
        .with_health(health)?
        .with_grace(None);
    let told = asking(&[0, 1], config, seed, 4, list)?;
    let mut values = Vec::new();
    for (step, Step { node, .. }) in STEPS.into_iter().enumerate() {
        let query = Query { candidates: size, excluded: size, ..Query::default() };
        // The initiator's own answer is no message; asked by another it would give the same.
        let asker = if node == 4 { 3 } else { 4 };
        let response = answer(config, node, list(node), asker, query)?;
        let candidate = |at: usize| Some(response.candidates.get(at)?.peer.id.get() as f64);
        let excluded = |at: usize| response.excluded.get(at);
        for at in 0..usize::from(size) {
            values.push(Value::count(Answer(node, What::Names, at), candidate(at)));
            let id = excluded(at).map(|(id, _)| id.get() as f64);
            let times = excluded(at).map(|&(_, times)| f64::from(times));
            values.push(Value::count(Answer(node, What::Excludes, at), id));
            values.push(Value::count(Answer(node, What::Counts, at), times));
        }
        let told = told.get(step).copied().flatten().map(f64::from);
        values.push(Value::count(ToldAfter(node), told));
    }
    Ok(values)
}

fn figure_5_2_claims(data: &Table) -> Vec<Claim> {
    let answer = |value: &dyn Fn(What, usize) -> f64| {
        let [a, b] = [0, 1].map(|at| value(What::Names, at));
        let [c, d] =
            [0, 1].map(|at| format!("{}:{}", value(What::Excludes, at), value(What::Counts, at)));
        format!("{{{a}, {b}}} / {{{c}, {d}}}")
    };
    let mut claims = Vec::new();
    for Step { node, names, excludes, told } in STEPS {
        let printed = answer(&|what, at| {
            f64::from(match what {
                What::Names => names[at],
                What::Excludes => excludes[at].0,
                What::Counts => excludes[at].1,
            })
        });
        let found = answer(&|what, at| data.estimate(PRINTED, Answer(node, what, at)).value);
        let holds = printed == found;
        claims.push(
            data.claim(
                format!(
                    "Node {node} answers with its two candidates and the two it calls unhealthy"
                ),
                printed,
            )
            .holds(found, holds),
        );
        claims.push(
            data.claim("After this answer the one notified is node", told.to_string())
                .digits(0)
                .exactly(data.estimate(PRINTED, ToldAfter(node)), f64::from(told)),
        );
    }
    claims
}
