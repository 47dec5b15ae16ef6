//! The worked examples, to the letter.

use super::{super::choice, *};

/// Figure 5.2.
fn printed() -> Vec<Vec<(u64, u32)>> {
    vec![
        vec![(1, 2), (2, 1), (3, 4), (4, 0)],
        vec![(0, 5), (2, 0), (3, 2), (4, 1)],
        vec![(0, 2), (1, 2), (3, 3), (4, 1)],
        vec![(0, 3), (1, 0), (2, 2), (4, 1)],
        vec![(0, 0), (1, 1), (2, 0), (3, 2)],
    ]
}

fn hybrid(form: Form, threshold: u32, rule: ExcludeRule) -> Config {
    sized(config(Variant::Hybrid, form, 2, 0), 2, threshold, rule)
}

/// A world in which `initiator` has just asked exactly these others.
fn asking(config: Config, lists: &[Vec<(u64, u32)>], initiator: u64, others: &[u64]) -> World {
    for seed in 0..10_000 {
        let mut world = World::new(config, seed, lists);
        world.elect(initiator);
        if asked(&world) == others {
            return world;
        }
    }
    panic!("no seed asks {others:?}");
}

/// Who has a question on its way.
fn asked(world: &World) -> Vec<u64> {
    let mut asked: Vec<u64> =
        world.flying.iter().filter(|letter| is_query(letter)).map(|letter| letter.to).collect();
    asked.sort_unstable();
    asked
}

/// Hands over all questions; the answers are then on their way.
fn ask(world: &mut World) {
    asked(world).iter().for_each(|_| world.deliver_where(is_query));
}

fn is_query(letter: &Letter) -> bool {
    matches!(letter.message, Message::Query(_))
}

fn answer_of(node: u64) -> impl Fn(&Letter) -> bool {
    move |letter| letter.from == node && matches!(letter.message, Message::Response(_))
}

type Said = (Vec<u64>, Vec<(u64, u32)>);

/// What is on its way from `node` to the initiator: candidates and excluded.
fn said(world: &World, node: u64) -> Said {
    let letter = world.flying.iter().find(|letter| answer_of(node)(letter)).unwrap();
    let Message::Response(response) = &letter.message else { unreachable!() };
    plain((&response.candidates, &response.excluded))
}

fn plain((candidates, excluded): (&[Candidate], &[(NodeId, u32)])) -> Said {
    let candidates = candidates.iter().map(|candidate| candidate.peer.id.get());
    let excluded = excluded.iter().map(|&(id, times)| (id.get(), times));
    (candidates.collect(), excluded.collect())
}

/// What `node` of Figure 5.2 answers.
fn answers(node: u64, most: (u16, u16), threshold: u32) -> Said {
    let world = World::new(hybrid(Form::AsPublished, 1, ExcludeRule::Union), 0, &printed());
    let view = &world.node(node).view;
    let (candidates, excluded) = view.answer(Criterion::Identity, most, threshold, &[]);
    plain((&candidates, &excluded))
}

#[test]
fn tv1_the_printed_hybrid_example() {
    for form in [Form::AsPublished, Form::Hardened] {
        for threshold in [0, 1] {
            assert_eq!(answers(4, (2, 2), threshold), (vec![0, 2], vec![(3, 2), (1, 1)]));
            let config = hybrid(form, threshold, ExcludeRule::Union);
            let mut world = asking(config, &printed(), 4, &[0, 1]);
            assert_eq!(world.notified, [0], "on its own answer");
            ask(&mut world);
            assert_eq!(said(&world, 0), (vec![0, 2], vec![(3, 4), (1, 2)]));
            assert_eq!(said(&world, 1), (vec![1, 2], vec![(0, 5), (3, 2)]));
            world.deliver_where(answer_of(0));
            assert_eq!(world.notified, [0], "nothing has changed");
            world.deliver_where(answer_of(1));
            assert_eq!(world.notified, [0, 2], "{form:?}, threshold {threshold}");
            let last = world.flying.iter().rev().find_map(|letter| match letter.message {
                Message::NotifyLeader { confirmed, .. } => Some(confirmed),
                _ => None,
            });
            assert_eq!(last, Some(form == Form::Hardened), "as published nobody knows");
            world.pass(ms(10_000));
            // As published, whichever LEADER comes last wins, here that of 0 at node 2 (C-11).
            assert_eq!(world.agreed(2), form == Form::Hardened, "{:?}", world.leaders());
        }
    }
}

#[test]
fn tv2_the_largest_sums_alone_elect_another() {
    let config = hybrid(Form::AsPublished, 1, ExcludeRule::TopOfSum);
    let mut world = asking(config, &printed(), 4, &[0, 1]);
    ask(&mut world);
    world.deliver_where(answer_of(0));
    world.deliver_where(answer_of(1));
    assert_eq!(world.notified.last(), Some(&1), "the sums exclude 3 and 0 only");
}

#[test]
fn tv4_the_order_of_answers_changes_who_is_told_but_not_who_is_last() {
    for (order, tentative) in [
        ([0, 1, 4], [0, 2, 2]),
        ([0, 4, 1], [0, 0, 2]),
        ([1, 0, 4], [1, 2, 2]),
        ([1, 4, 0], [1, 2, 2]),
        ([4, 0, 1], [0, 0, 2]),
        ([4, 1, 0], [0, 2, 2]),
    ] {
        let config = hybrid(Form::AsPublished, 1, ExcludeRule::Union).with_ask_self(false);
        let mut world = asking(config, &printed(), 3, &[0, 1, 4]);
        ask(&mut world);
        let mut told = vec![];
        for node in order {
            world.deliver_where(answer_of(node));
            told.push(*world.notified.last().unwrap());
        }
        assert_eq!(told, tentative, "{order:?}");
    }
}

#[test]
fn tv5_when_everybody_is_excluded_the_next_attempt_names_more_and_excludes_fewer() {
    let preferred = config(Variant::Preferred, Form::Hardened, 2, 0).with_ask_self(false);
    let config = sized(preferred, 2, 1, ExcludeRule::Union);
    let tried = (0..10_000).find_map(|seed| {
        let mut world = World::new(config, seed, &printed());
        world.elect(4);
        if asked(&world) != [0, 1, 3] {
            return None;
        }
        ask(&mut world);
        [0, 1, 3].iter().for_each(|&node| world.deliver_where(answer_of(node)));
        assert_eq!(world.notified, [], "nobody is left");
        (asked(&world) == [0, 1, 3]).then_some(world)
    });
    let mut world = tried.expect("some seed asks the same again");
    ask(&mut world);
    assert_eq!(said(&world, 0), (vec![0, 1, 2], vec![(3, 4)]));
    assert_eq!(said(&world, 1), (vec![1, 2, 3], vec![(0, 5)]));
    assert_eq!(said(&world, 3), (vec![1, 2, 3], vec![(0, 3)]));
    [0, 1, 3].iter().for_each(|&node| world.deliver_where(answer_of(node)));
    assert_eq!(world.notified, [1]);
}

#[test]
fn tv6_whom_each_three_answers_elect() {
    let config = hybrid(Form::AsPublished, 1, ExcludeRule::Union);
    let world = World::new(config, 0, &printed());
    for (three, leader) in [
        ([0, 1, 2], Some(2)),
        ([0, 1, 3], None),
        ([0, 1, 4], Some(2)),
        ([0, 2, 3], None),
        ([0, 2, 4], Some(0)),
        ([0, 3, 4], None),
        ([1, 2, 3], None),
        ([1, 2, 4], Some(2)),
        ([1, 3, 4], None),
        ([2, 3, 4], None),
    ] {
        let answers = three.map(|node| {
            let view = &world.node(node).view;
            let (candidates, excluded) = view.answer(Criterion::Identity, (2, 2), 1, &[]);
            choice::Answer { from: id(node), candidates, excluded }
        });
        let elected = choice::elected(&config, &answers, 2, &[]);
        assert_eq!(elected.map(|one| one.peer.id.get()), leader, "{three:?}");
    }
    assert_eq!(answers(2, (2, 2), 1).1, [(3, 3), (1, 2)], "a tie spares the lower key");
}

#[test]
fn tv7_only_the_suspected_are_excluded_above_a_threshold() {
    let excluded = |threshold| {
        let (candidates, mut excluded) = answers(1, (2, 4), threshold);
        excluded.sort_unstable();
        (candidates, excluded.into_iter().map(|(id, _)| id).collect::<Vec<_>>())
    };
    assert_eq!(excluded(0), (vec![1], vec![0, 2, 3, 4]));
    assert_eq!(excluded(1), (vec![1, 2], vec![0, 3, 4]));
}

#[test]
fn tv8_base_finds_who_is_missing_from_two_lists_with_three_answers_but_not_with_two() {
    let full: Vec<(u64, u32)> = (0..4).map(|node| (node, 0)).collect();
    let lists = vec![full.clone(), full[1..].to_vec(), full[1..].to_vec(), full];
    for form in [Form::AsPublished, Form::Hardened] {
        let base = config(Variant::Base, form, 2, 0);
        let mut own = asking(base, &lists, 3, &[1, 2]);
        ask(&mut own);
        assert_eq!([said(&own, 1).0, said(&own, 2).0], [[1], [1]]);
        own.deliver_where(answer_of(1));
        assert_eq!(own.notified, []);
        own.deliver_where(answer_of(2));
        assert_eq!(own.notified, [0]);

        let mut others = asking(base.with_ask_self(false), &lists, 3, &[0, 1, 2]);
        ask(&mut others);
        [0, 1, 2].iter().for_each(|&node| others.deliver_where(answer_of(node)));
        assert_eq!(others.notified, [0]);

        let narrow = config(Variant::Base, form, 1, 0).with_ask_self(false);
        let mut wrong = asking(narrow, &lists, 3, &[1, 2]);
        ask(&mut wrong);
        [1, 2].iter().for_each(|&node| wrong.deliver_where(answer_of(node)));
        assert_eq!(wrong.notified, [1], "0 is missing from two lists, and c is 1");
    }
}

#[test]
fn tv9_optimistic_tells_of_improvements_only() {
    for form in [Form::AsPublished, Form::Hardened] {
        let config = config(Variant::Optimistic, form, 4, 0).with_ask_self(false);
        let mut world = World::complete(config, 3, 10);
        world.elect(9);
        let askees = asked(&world);
        world.flying.clear();
        let term = u64::from(form == Form::Hardened);
        for (&from, named) in askees.iter().zip([5, 3, 7, 3, 1]) {
            let candidates = vec![candidate(named)];
            let response = Response { term, candidates, ..Response::default() };
            let message = Message::Response(response);
            world.flying.push(Letter { from, to: 9, message });
            world.deliver_where(answer_of(from));
        }
        assert_eq!(world.notified, [5, 3, 1], "{form:?}");
    }
}

#[test]
fn tv11_sizes_of_the_next_attempt() {
    let mut sizes = (2, 2);
    for next in [(3, 1), (4, 0), (4, 0)] {
        sizes = round::next_sizes(sizes, 4);
        assert_eq!(sizes, next);
    }
}
