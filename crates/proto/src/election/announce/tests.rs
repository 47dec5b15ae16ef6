use std::{vec, vec::Vec};

use super::*;
use crate::{
    id::Boot,
    machine::{Effect, Outbox},
};

mod baseline;
mod commands;
mod contract;
mod group;
mod policies;
mod segment;
mod several;

type Effects = Vec<Effect<Message, Durable, Event>>;

const ALL_RULES: [Rules; 3] = [Rules::AsPublished, Rules::Corrected, Rules::Hardened];

fn peer(id: u64, boot: u64) -> Peer {
    Peer::new(NodeId::new(id), Boot::new(boot))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

fn config(suppression: Suppression, rules: Rules) -> Config {
    Config::new(ms(1_000), Some(ms(3_000)), suppression, rules).unwrap()
}

/// As a node of [`config`] with hardened rules says it.
fn announce(sequence: u64, epoch: u64) -> Message {
    Message::Announce(Announcement {
        sequence,
        epoch,
        period: ms(1_000),
        ..Announcement::default()
    })
}

/// As a node of the base forms says it.
fn plain(sequence: u64) -> Message {
    Message::Announce(Announcement { sequence, ..Announcement::default() })
}

fn hint(sequence: u64, need: u64) -> Message {
    Message::Hint { sequence, need }
}

fn bye(sequence: u64, epoch: u64) -> Message {
    Message::Bye { sequence, epoch }
}

fn token(counter: u64, id: u64) -> Option<Epoch> {
    Some(Epoch::mint(counter, peer(id, 1)))
}

fn said(message: Message) -> Effect<Message, Durable, Event> {
    Effect::Multicast(message)
}

/// [`Node::input_at`] has checked the token and left it out.
fn persisted(max_epoch: u64) -> Effect<Message, Durable, Event> {
    Effect::Persist(durable(max_epoch))
}

fn durable(max_epoch: u64) -> Durable {
    Durable { max_epoch, vouched: None }
}

/// One machine and the effects of its last input. Each step returns those effects.
struct Node {
    machine: Announce,
    out: OutboxOf<Announce>,
}

impl Node {
    fn new(id: u64, suppression: Suppression, rules: Rules) -> Self {
        Self::with(peer(id, 1), config(suppression, rules), None)
    }

    fn with(me: Peer, config: Config, durable: Option<Durable>) -> Self {
        let machine = Announce::new(me, config, Seed::new(me.id.get()), durable);
        Self { machine, out: Outbox::new() }
    }

    /// Node 5, leading since zero under epoch 1.
    fn leading(rules: Rules) -> Self {
        let mut node = Self::new(5, Suppression::None, rules);
        node.start(0);
        assert!(matches!(node.machine.role(), Role::Leading { .. }));
        node
    }

    /// Node 5, hardened, following node 8 since zero under `epoch`.
    fn following(epoch: u64) -> Self {
        let mut node = Self::new(5, Suppression::Fixed(ms(500)), Rules::Hardened);
        node.start(0);
        node.hears(0, peer(8, 1), announce(1, epoch)).unwrap();
        assert_eq!(node.view().epoch, token(epoch, 8));
        node
    }

    fn input_at(&mut self, now: Time, input: InputOf<'_, Announce>) -> Result<Effects, Rejected> {
        self.machine.handle(now, input, &mut self.out)?;
        let effects = core::iter::from_fn(|| self.out.pop()).map(|effect| match effect {
            Effect::Persist(Durable { max_epoch, vouched }) => {
                assert_eq!(vouched, self.machine.vouched);
                persisted(max_epoch)
            }
            other => other,
        });
        Ok(effects.collect())
    }

    fn input(&mut self, now: u64, input: InputOf<'_, Announce>) -> Result<Effects, Rejected> {
        self.input_at(at(now), input)
    }

    fn start(&mut self, now: u64) -> Effects {
        self.input(now, Input::Start).unwrap()
    }

    fn hears(&mut self, now: u64, from: Peer, message: Message) -> Result<Effects, Rejected> {
        self.input(now, Input::Message { from, via: from.id, message: &message })
    }

    fn wakes(&mut self, now: u64) -> Effects {
        self.input(now, Input::Timeout).unwrap()
    }

    fn view(&self) -> Leadership {
        self.machine.leadership()
    }

    fn due(&self) -> Option<(Time, Timer)> {
        self.machine.deadline()
    }
}

#[test]
fn starting_waits_out_the_suppression_and_then_claims() {
    for rules in ALL_RULES {
        let hardened = rules == Rules::Hardened;
        let mut node = Node::new(5, Suppression::Fixed(ms(500)), rules);
        assert_eq!(node.view(), Leadership::unknown(Mode::Announced, Why::NotRunning));
        assert_eq!(node.start(100), []);
        assert_eq!(node.due(), Some((at(600), Timer::Suppress)));
        assert_eq!(node.machine.role(), Role::Suppressing { since: at(100) });
        assert_eq!(node.machine.follows(), Some(NodeId::new(5)));
        let expected = (!hardened).then_some(NodeId::new(5));
        assert_eq!((node.view().leader, node.view().settled), (expected, false), "{rules:?}");
        assert_eq!(node.view().why, Why::Standing { since: at(100) });

        let effects = node.wakes(600);
        if hardened {
            assert_eq!(effects, [persisted(1), said(announce(1, 1))], "persist comes first");
        } else {
            assert_eq!(effects, [said(plain(1))]);
        }
        assert_eq!(node.due(), Some((at(1_600), Timer::Announce)));
        let view = node.view();
        assert_eq!((view.leader, view.settled), (Some(NodeId::new(5)), true));
        assert_eq!(view.epoch, if hardened { token(1, 5) } else { None });
        assert_eq!(view.why, Why::Unchallenged { since: at(600) });
    }
}

#[test]
fn a_wait_of_zero_claims_within_the_same_input() {
    for suppression in [
        Suppression::None,
        Suppression::Fixed(Duration::ZERO),
        Suppression::Uniform(Duration::ZERO),
    ] {
        let mut node = Node::new(5, suppression, Rules::Corrected);
        assert_eq!(node.start(0), [said(plain(1))], "{suppression:?}");
        assert_eq!(node.due(), Some((at(1_000), Timer::Announce)));
    }
}

#[test]
fn a_uniform_wait_stays_within_its_bound_and_is_redrawn() {
    let mut node = Node::new(5, Suppression::Uniform(ms(500)), Rules::Corrected);
    node.start(0);
    let (first, _) = node.due().unwrap();
    node.hears(0, peer(8, 1), announce(1, 0)).unwrap();
    assert_eq!(node.due(), Some((at(3_000), Timer::Listen)));
    node.wakes(3_000);
    let (second, why) = node.due().unwrap();
    assert!(first <= at(500) && second <= at(3_500) && why == Timer::Suppress);
    assert_ne!(first.since(at(0)), second.since(at(3_000)), "a fresh draw (rule 6)");
}

#[test]
fn a_leader_announces_every_period() {
    for rules in ALL_RULES {
        let mut node = Node::leading(rules);
        for beat in 1..4 {
            let expected = match rules {
                Rules::Hardened => announce(beat + 1, 1),
                Rules::AsPublished | Rules::Corrected => plain(beat + 1),
            };
            assert_eq!(node.wakes(1_000 * beat), [said(expected)]);
            assert_eq!(node.due(), Some((at(1_000 * (beat + 1)), Timer::Announce)));
        }
        assert_eq!(node.wakes(3_500), [], "an early wake-up is harmless");
    }
}

#[test]
fn only_a_better_announcement_unseats_a_leader_or_a_candidate() {
    for rules in ALL_RULES {
        for suppression in [Suppression::None, Suppression::Fixed(ms(500))] {
            for (claimant, epoch, leader) in [(3, 0, 5), (9, 2, 9)] {
                let mut node = Node::new(5, suppression, rules);
                node.start(0);
                let before = node.due();
                node.hears(100, peer(claimant, 1), announce(1, epoch)).unwrap();
                assert_eq!(node.machine.follows(), Some(NodeId::new(leader)));
                if leader == 5 {
                    assert_eq!(node.due(), before, "{rules:?} {suppression:?}");
                } else {
                    assert_eq!(node.due(), Some((at(3_100), Timer::Listen)));
                }
            }
        }
    }
}

#[test]
fn only_the_mended_rules_trust_a_leader_they_hear() {
    for (rules, listen) in
        [(Rules::AsPublished, 3_000), (Rules::Corrected, 4_000), (Rules::Hardened, 4_000)]
    {
        let mut node = Node::new(5, Suppression::Fixed(ms(500)), rules);
        node.start(0);
        node.hears(0, peer(8, 1), announce(1, 1)).unwrap();
        node.hears(1_000, peer(8, 1), announce(2, 1)).unwrap();
        assert_eq!(node.due(), Some((at(listen), Timer::Listen)), "{rules:?}");
        node.hears(1_500, peer(7, 1), announce(1, 0)).unwrap();
        assert_eq!(node.machine.follows(), Some(NodeId::new(8)), "worse than the leader");
        node.hears(2_000, peer(9, 1), announce(1, 2)).unwrap();
        assert_eq!(node.machine.follows(), Some(NodeId::new(9)), "better than the leader");
        assert_eq!(node.due(), Some((at(5_000), Timer::Listen)));
        assert_eq!(node.view().why, Why::Announced { heard: at(2_000) });
        assert_eq!(node.wakes(5_000), []);
        assert_eq!(node.due(), Some((at(5_500), Timer::Suppress)), "stands again");
    }
}

#[test]
fn without_a_listen_timeout_a_leader_is_trusted_for_ever() {
    let config = Config::new(ms(1_000), None, Suppression::None, Rules::Corrected).unwrap();
    let mut node = Node::with(peer(5, 1), config, None);
    node.start(0);
    node.hears(0, peer(8, 1), announce(1, 0)).unwrap();
    assert_eq!(node.due(), None);
}

#[test]
fn inputs_out_of_order_are_refused() {
    for rules in ALL_RULES {
        let mut node = Node::new(5, Suppression::None, rules);
        assert_eq!(node.hears(0, peer(8, 1), announce(1, 0)), Err(Rejected::NotRunning));
        assert_eq!(node.wakes(0), []);
        node.start(0);
        assert_eq!(node.input(0, Input::Start), Err(Rejected::StartedTwice));
        assert_eq!(node.input(10, Input::Leave), Ok(vec![]));
        assert_eq!((node.machine.role(), node.due()), (Role::Idle, None));
        assert_eq!(node.hears(20, peer(8, 1), announce(1, 0)), Err(Rejected::NotRunning));
        assert_eq!(node.input(20, Input::Start), Err(Rejected::StartedTwice));
        assert_eq!(node.input(20, Input::Leave), Ok(vec![]));
        assert_eq!(node.wakes(5_000), []);
        assert_eq!(node.view(), Leadership::unknown(Mode::Announced, Why::NotRunning));
    }
}

#[test]
fn a_leader_ranked_below_ourselves_is_given_up_whatever_it_says() {
    // no input leads here, corrupted memory may.
    for rules in [Rules::Corrected, Rules::Hardened] {
        let mut node = Node::new(5, Suppression::None, rules);
        node.start(0);
        node.machine.become_following(at(0), peer(3, 1), &Announcement::default());
        for beat in 1..3 {
            node.hears(1_000 * beat, peer(3, 1), announce(beat, 0)).unwrap();
        }
        assert_eq!(node.machine.timers.deadline(Timer::Listen), Some(at(3_000)), "{rules:?}");
        node.wakes(3_000);
        assert_eq!(node.machine.follows(), Some(NodeId::new(5)));
    }
}

#[test]
fn unsound_settings_are_refused_with_their_values() {
    let new = |announce, listen| {
        Config::new(ms(announce), Some(ms(listen)), Suppression::None, Rules::Hardened)
    };
    assert_eq!(new(0, 1), Err(ConfigError::AnnounceZero { announce: ms(0) }));
    let short = ConfigError::ListenTooShort { listen: ms(9), announce: ms(10) };
    assert_eq!(new(10, 9), Err(short));
    let sound = new(10, 10).unwrap();
    assert_eq!(sound.reply(), ms(2));
    assert_eq!(sound.with_reply(ms(0)), Err(ConfigError::ReplyZero { reply: ms(0) }));
    assert_eq!(sound.with_reply(ms(3)).unwrap().reply(), ms(3));
    let tiny = Config::new(Duration::from_micros(1), None, Suppression::None, Rules::Hardened);
    assert!(!tiny.unwrap().reply().is_zero());
}

#[test]
fn our_own_voice_and_our_past_lives_are_dropped() {
    let mut node = Node::with(peer(5, 3), config(Suppression::None, Rules::Hardened), None);
    node.start(0);
    let before = node.machine.clone();
    for boot in [1, 2, 3] {
        let from = peer(5, boot);
        for message in [announce(9, 9), hint(9, 9)] {
            assert_eq!(node.hears(1, from, message), Err(Rejected::Loopback { from }));
        }
    }
    assert_eq!(node.machine, before);
}

#[test]
fn a_twin_started_later_makes_us_stop() {
    for message in [announce(1, 1), hint(1, 1)] {
        let mut node = Node::leading(Rules::Hardened);
        let other = peer(5, 2);
        let told = Effect::Emit(Event::DuplicateIdentity { other });
        assert_eq!(node.hears(1, other, message), Ok(vec![told]));
        assert_eq!((node.machine.role(), node.due()), (Role::Idle, None));
        assert_eq!(node.view().why, Why::NotRunning);
        assert_eq!(node.hears(2, other, announce(2, 1)), Err(Rejected::NotRunning));
    }
}

#[test]
fn a_dead_life_of_the_leader_cannot_be_revived_by_replay() {
    let mut node = Node::following(1);
    let (old, new) = (peer(8, 1), peer(8, 2));
    node.hears(1_000, new, announce(1, 2)).unwrap();
    assert_eq!(node.view().epoch, Some(Epoch::mint(2, new)));
    node.wakes(4_000);
    for (from, sequence) in [(old, 2), (old, 999), (new, 1)] {
        let before = node.machine.clone();
        let refused = Err(Rejected::Replayed { from, sequence });
        assert_eq!(node.hears(4_100, from, announce(sequence, 2)), refused);
        assert_eq!(node.hears(4_100, from, hint(sequence, 2)), refused, "one counter for both");
        assert_eq!(node.machine, before);
    }
}

#[test]
fn an_epoch_is_believed_only_within_reach_of_those_before() {
    let limit = Epoch::believable(1);
    let mut node = Node::following(1);
    let (from, found) = (peer(8, 1), limit + 1);
    let refused = Err(Rejected::ImplausibleEpoch { from, found, limit });
    let before = node.machine.clone();
    assert_eq!(node.hears(1, from, announce(2, found)), refused);
    assert_eq!(node.hears(1, from, hint(2, found)), refused);
    assert_eq!(node.machine, before, "not even the sequence number was remembered");
    assert_eq!(node.hears(1, from, announce(2, limit)), Ok(vec![persisted(limit)]));
    assert_eq!(node.view().epoch, token(limit, 8));
}

#[test]
fn a_newcomer_takes_the_first_epoch_it_hears_but_a_survivor_does_not() {
    for (durable, accepted) in [(None, true), (Some(durable(3)), false)] {
        let config = config(Suppression::None, Rules::Hardened);
        let mut node = Node::with(peer(5, 1), config, durable);
        node.start(0);
        assert_eq!(node.hears(1, peer(8, 1), announce(1, u64::MAX - 1)).is_ok(), accepted);
        let mut leader = Node::with(peer(5, 1), config, durable);
        leader.start(0);
        assert!(leader.hears(1, peer(3, 1), hint(1, 1 << 63)).is_ok());
        assert!(leader.hears(2, peer(3, 1), hint(2, u64::MAX)).is_err(), "but only the first");
    }
}

#[test]
fn an_exhausted_counter_neither_wraps_nor_repeats_an_answer() {
    let mut node = Node::new(5, Suppression::None, Rules::Hardened);
    node.start(0);
    node.hears(1, peer(8, 1), announce(1, u64::MAX)).unwrap();
    assert_eq!(node.view().epoch, token(u64::MAX, 8));
    assert_eq!(node.wakes(3_001), [persisted(u64::MAX), said(announce(2, u64::MAX))]);
    assert_eq!(node.view().epoch, None, "5's token of the same counter would be a step back");
    node.hears(3_002, peer(3, 1), announce(1, u64::MAX)).unwrap();
    node.hears(3_003, peer(3, 1), hint(2, u64::MAX)).unwrap();
    node.hears(3_500, peer(8, 1), announce(2, u64::MAX)).unwrap();
    assert_eq!(node.view().epoch, token(u64::MAX, 8), "the same token again is no step back");
}

#[test]
fn a_restarted_node_counts_on_from_what_it_persisted() {
    let mut node =
        Node::with(peer(5, 2), config(Suppression::None, Rules::Hardened), Some(durable(41)));
    assert_eq!(node.start(0), [persisted(42), said(announce(1, 42))]);
    node.hears(1, peer(8, 1), announce(1, 41)).unwrap();
    let why = Why::EpochBehind { leader: NodeId::new(8), need: 43 };
    assert_eq!(node.view(), Leadership::unknown(Mode::Announced, why));
}

#[test]
fn a_restarted_observer_does_not_step_back_between_tokens_of_one_counter() {
    let config = config(Suppression::Fixed(ms(500)), Rules::Hardened);
    let durable = Durable { max_epoch: 7, vouched: token(7, 9) };
    let mut node = Node::with(peer(5, 2), config, Some(durable));
    node.start(0);
    node.hears(1, peer(8, 1), announce(1, 7)).unwrap();
    assert_eq!(node.view().leader, None, "7.9 was vouched for, 7.8 is smaller");
    node.hears(2, peer(9, 1), announce(1, 7)).unwrap();
    assert_eq!(node.view().epoch, token(7, 9));
}

#[test]
fn a_leader_outbids_a_worse_claimant_at_most_once_per_reply_interval() {
    let mut node = Node::leading(Rules::Hardened);
    assert_eq!(node.hears(100, peer(3, 1), announce(1, 0)), Ok(vec![]), "no threat to ours");
    let answer = node.hears(100, peer(3, 1), announce(2, 1)).unwrap();
    assert_eq!(answer, [persisted(2), said(announce(2, 2))]);
    assert_eq!(node.due(), Some((at(1_100), Timer::Announce)), "the answer was a heartbeat");

    assert_eq!(node.hears(150, peer(4, 1), announce(1, 6)), Ok(vec![]));
    assert_eq!(node.due(), Some((at(300), Timer::Answer)));
    assert_eq!((node.view().epoch, node.view().settled), (token(2, 5), false));
    assert_eq!(node.hears(200, peer(3, 1), hint(3, 9)), Ok(vec![]));
    assert_eq!(node.wakes(300), [persisted(9), said(announce(3, 9))], "one answer for both");
    assert_eq!(node.due(), Some((at(1_300), Timer::Announce)));
    assert_eq!((node.view().epoch, node.view().settled), (token(9, 5), true));

    assert_eq!(node.hears(500, peer(3, 1), hint(4, 9)), Ok(vec![]), "has it already");
    let answer = node.hears(500, peer(3, 1), hint(5, 10)).unwrap();
    assert_eq!(answer, [persisted(10), said(announce(4, 10))]);
}

#[test]
fn a_late_host_fires_what_is_due_in_order_of_deadline() {
    let mut node = Node::leading(Rules::Hardened);
    node.hears(100, peer(3, 1), announce(1, 1)).unwrap();
    node.hears(150, peer(3, 1), announce(2, 2)).unwrap();
    let effects = node.wakes(5_000);
    assert_eq!(effects, [persisted(3), said(announce(3, 3))], "Answer, and it was the heartbeat");
    assert_eq!(node.due(), Some((at(6_000), Timer::Announce)));

    let mut node = Node::following(7);
    node.hears(1_000, peer(9, 1), announce(1, 3)).unwrap();
    assert_eq!(node.wakes(9_000), [said(hint(1, 8))], "Hint, then Listen");
    assert_eq!(node.due(), Some((at(9_500), Timer::Suppress)));
}

#[test]
fn a_leader_that_owes_an_answer_owes_nothing_once_it_follows() {
    let mut node = Node::leading(Rules::Hardened);
    node.hears(100, peer(3, 1), announce(1, 1)).unwrap();
    node.hears(150, peer(3, 1), announce(2, 7)).unwrap();
    node.hears(160, peer(8, 1), announce(1, 8)).unwrap();
    assert_eq!(node.due(), Some((at(3_160), Timer::Listen)));
    assert_eq!(node.view().epoch, token(8, 8));
}

#[test]
fn only_a_leader_reacts_to_a_hint() {
    for role in ["suppressing", "following"] {
        let mut node = Node::new(5, Suppression::Fixed(ms(500)), Rules::Hardened);
        node.start(0);
        if role == "following" {
            node.hears(0, peer(8, 1), announce(1, 1)).unwrap();
        }
        let (before, max_epoch) = (node.view(), node.machine.max_epoch);
        assert_eq!(node.hears(1, peer(3, 1), hint(1, 9)), Ok(vec![]), "{role}");
        assert_eq!((node.view(), node.machine.max_epoch), (before, max_epoch), "{role}");
    }
}

#[test]
fn a_leader_with_a_stale_epoch_is_followed_in_silence_and_hinted() {
    let mut node = Node::following(7);
    node.hears(1_000, peer(9, 1), announce(1, 3)).unwrap();
    assert_eq!(node.machine.follows(), Some(NodeId::new(9)));
    let why = Why::EpochBehind { leader: NodeId::new(9), need: 8 };
    assert_eq!(node.view(), Leadership::unknown(Mode::Announced, why));
    let (first, timer) = node.due().unwrap();
    assert!(timer == Timer::Hint && first < at(1_200), "{first}");
    for sequence in 1..9 {
        node.hears(1_000, peer(2, 1), announce(sequence, 1)).unwrap();
        assert_eq!(node.due(), Some((first, Timer::Hint)), "once drawn it stands");
    }
    assert_eq!(node.wakes(1_200), [said(hint(1, 8))]);
    assert_eq!(node.due(), Some((at(4_000), Timer::Listen)));

    node.hears(1_300, peer(9, 1), announce(2, 3)).unwrap();
    assert_eq!(node.due(), Some((at(1_700), Timer::Hint)), "half a period after the last hint");
    assert_eq!(node.hears(1_400, peer(9, 1), announce(3, 8)), Ok(vec![persisted(8)]));
    assert_eq!(node.due(), Some((at(4_400), Timer::Listen)), "nothing left to ask");
    assert_eq!((node.view().epoch, node.view().settled), (token(8, 9), true));
    assert_eq!(node.hears(1_500, peer(9, 1), announce(4, 8)), Ok(vec![]), "vouched once");
}

#[test]
fn a_hint_of_another_spares_ours_if_it_asks_for_as_much() {
    for (need, spared) in [(7, false), (8, true), (9, true)] {
        let mut node = Node::following(7);
        node.hears(1_000, peer(9, 1), announce(1, 3)).unwrap();
        node.hears(1_000, peer(2, 1), hint(1, need)).unwrap();
        assert_eq!(node.wakes(1_200).is_empty(), spared, "need {need}");
        // Still behind at the next heartbeat: the other's hint may have been lost.
        node.hears(2_000, peer(9, 1), announce(2, 3)).unwrap();
        assert_eq!(node.wakes(2_200), [said(hint(if spared { 1 } else { 2 }, 8))]);
    }
}

#[test]
fn a_larger_epoch_from_a_worse_claimant_makes_the_leaders_token_stale() {
    let mut node = Node::following(5);
    node.hears(500, peer(6, 1), announce(1, 7)).unwrap();
    assert_eq!(node.machine.follows(), Some(NodeId::new(8)));
    assert_eq!(node.view().why, Why::EpochBehind { leader: NodeId::new(8), need: 8 });
    assert_eq!(node.due().map(|(_, timer)| timer), Some(Timer::Hint));
    node.hears(501, peer(8, 1), announce(2, 8)).unwrap();
    assert_eq!(node.view().epoch, token(8, 8));
}

#[test]
fn equal_counters_of_two_leaders_are_never_vouched_one_after_the_other() {
    let mut node = Node::following(7);
    node.hears(1_000, peer(9, 1), announce(1, 7)).unwrap();
    assert_eq!(node.view().leader, None, "7.9 after 7.8: the counter must grow");
    // Nor does it help to lead in between.
    node.wakes(4_000);
    assert_eq!(node.wakes(4_500), [persisted(8), said(announce(2, 8))]);
    node.hears(5_000, peer(9, 1), announce(2, 8)).unwrap();
    assert_eq!(node.view().leader, None);
}

#[test]
fn a_new_life_of_the_leader_replaces_the_old_one() {
    let mut node = Node::following(7);
    let reborn = peer(8, 2);
    node.hears(1_000, reborn, announce(1, 8)).unwrap();
    assert_eq!(node.due(), Some((at(4_000), Timer::Listen)));
    assert_eq!(node.view().epoch, Some(Epoch::mint(8, reborn)));
}
