//! What an election costs (Lemma 1).

use super::*;

#[test]
fn tv10_two_messages_for_each_answer_one_notice_and_one_multicast() {
    for form in [Form::AsPublished, Form::Hardened] {
        for churn in 0..=16_u16 {
            for crashes in 0..=4_u16 {
                for own in [false, true] {
                    let config = config(Variant::Base, form, churn, crashes)
                        .with_multicast(Multicast::Substrate)
                        .unwrap()
                        .with_ask_self(own);
                    let mut world = World::complete(config, 1, 24);
                    world.elect(23);
                    world.settle();
                    assert!(world.agreed(0));
                    let asked = usize::from(churn + crashes) + 1;
                    let expected = 2 * (asked - usize::from(own)) + 1;
                    assert_eq!(
                        (world.unicasts, world.multicasts),
                        (expected, 1),
                        "c = {churn}, f = {crashes}, own list asked: {own}"
                    );
                }
            }
        }
    }
    // The vectors of the table, of which the formula above is only a restatement.
    for (churn, crashes, all, with_own) in [(2, 0, 7, 5), (4, 0, 11, 9), (4, 2, 15, 13)] {
        for (own, unicasts) in [(false, all), (true, with_own)] {
            let config =
                config(Variant::Base, Form::AsPublished, churn, crashes).with_ask_self(own);
            let mut world = World::complete(config, 1, 24);
            world.elect(23);
            world.settle();
            assert_eq!((world.unicasts, world.multicasts), (unicasts, 1));
        }
    }
}

#[test]
fn when_the_initiator_is_elected_it_need_not_notify_anybody() {
    let base = config(Variant::Base, Form::AsPublished, 2, 0);
    let mut world = World::complete(base, 1, 8);
    world.elect(0);
    world.settle();
    assert_eq!((world.unicasts, world.multicasts), (4, 1));
    assert!(world.agreed(0));
}

/// Silence costs another question to each that is missing, and nothing else is lost.
#[test]
fn whoever_is_silent_is_replaced_after_the_timeout() {
    for form in [Form::AsPublished, Form::Hardened] {
        let mut world = World::complete(config(Variant::Base, form, 3, 1), 5, 12);
        world.elect(11);
        let before = world.flying.len();
        assert_eq!(before, 4);
        world.flying.truncate(1);
        world.settle();
        assert_eq!(world.leaders()[11], None, "two answers are not four");
        world.now += ms(500);
        world.input(11, Input::Timeout).unwrap();
        assert_eq!(world.flying.len(), 3, "c + f + 1 less the two there are");
        world.pass(ms(10_000));
        assert!(world.agreed(0));
    }
}

#[test]
fn polled_answers_are_counted_when_the_timeout_ends_and_no_sooner() {
    for variant in [Variant::Base, Variant::Preferred] {
        let config = config(variant, Form::AsPublished, 2, 0).with_decision(Decision::Polled);
        let mut world = World::complete(config, 5, 8);
        world.elect(7);
        world.settle();
        assert_eq!(world.notified, []);
        world.pass(ms(499));
        assert_eq!(world.notified, []);
        world.pass(ms(1));
        assert!(world.agreed(0));
    }
}
