//! What K1 to K9 ask for, one after the other.

use super::*;

const SLOTS: u32 = 24;
/// `4 T_l + T_a`, and what it takes to tell and to ask.
const BOUND: Duration = Duration::from_millis(4_600);

/// Whoever is asked.
fn members(count: u64) -> impl Iterator<Item = Life> + Clone {
    (0..count).map(life)
}

fn desired(slot: u32, members: impl Iterator<Item = Life>) -> u64 {
    Slot::new(slot).first(members, 1)[0].id().get()
}

#[test]
fn a_slot_moves_only_to_a_member_that_comes_or_from_one_that_goes() {
    let (before, after) = (members(20), members(21));
    let mut moved = 0;
    for slot in 0..4_096 {
        let (from, to) = (desired(slot, before.clone()), desired(slot, after.clone()));
        assert!(to == from || to == 20, "slot {slot} moved from {from} to {to}");
        moved += u32::from(to != from);
    }
    // A 21st of them, within three standard errors.
    assert!((154..=236).contains(&moved), "{moved}");
}

#[test]
fn members_get_about_as_many_slots_each() {
    let mut load = [0_u32; 5];
    for key in 0..10_000 {
        let slot = Slot::of(&alloc::format!("printers/{key}"), &Config::new());
        load[desired(slot.number(), members(5)) as usize] += 1;
    }
    assert!(load.iter().all(|load| (1_600..=2_400).contains(load)), "{load:?}");
}

#[test]
fn founders_own_every_slot_and_then_say_nothing() {
    let mut net = Net::founded(5, config(SLOTS, 2));
    for slot in 0..SLOTS {
        assert_eq!(net.owner(slot).0, desired(slot, members(5)), "slot {slot}");
    }
    let said = net.said;
    assert_eq!(net.watch(ms(30_000), SLOTS), Duration::ZERO);
    assert_eq!(net.said, said, "nothing has changed");
    assert!(net.nodes.values().all(Keys::is_settled));
}

#[test]
fn owners_that_crash_together_are_followed_within_the_bound_under_larger_epochs() {
    let mut net = Net::founded(7, config(SLOTS, 2));
    let before: Vec<_> = (0..SLOTS).map(|slot| net.owner(slot)).collect();
    for gone in [1, 4] {
        net.nodes.remove(&gone);
    }
    let longest = net.watch(ms(25_000), SLOTS);
    assert!(longest > Duration::from_secs(2) && longest < BOUND, "{longest}");
    for (slot, (owner, epoch)) in before.into_iter().enumerate() {
        let (now, later) = net.owner(slot as u32);
        let lost = owner == 1 || owner == 4;
        assert_eq!((now != owner, later > epoch), (lost, lost), "slot {slot} of {owner}");
    }
}

#[test]
fn a_joiner_gets_what_is_its_own_and_nobody_else_loses_anything() {
    let mut net = Net::founded(5, config(SLOTS, 2));
    let before: Vec<_> = (0..SLOTS).map(|slot| net.owner(slot)).collect();
    net.join(9, config(SLOTS, 2));
    let longest = net.watch(ms(30_000), SLOTS);
    assert!(longest < Duration::from_millis(100), "a hand-over takes two round trips: {longest}");
    let mut moved = 0;
    for (slot, (owner, epoch)) in before.into_iter().enumerate() {
        let (now, later) = net.owner(slot as u32);
        assert!(now == owner && later == epoch || now == 9 && later > epoch, "slot {slot}");
        moved += u32::from(now == 9);
    }
    assert!(moved > 0, "the joiner owns something");
}

#[test]
fn a_member_that_leaves_hands_over_first() {
    let mut net = Net::founded(5, config(SLOTS, 2));
    let owned = net.nodes[&2].owned().count();
    assert!(owned > 0);
    net.input(2, Input::Leave);
    let longest = net.watch(ms(30_000), SLOTS);
    assert!(longest < Duration::from_millis(100), "{longest}");
    assert!(net.nodes[&2].ring.is_out());
}

#[test]
fn slots_whose_owner_and_keepers_crash_together_find_an_owner_once_the_list_stays_as_it_is() {
    let mut net = Net::founded(9, config(SLOTS, 1));
    let list = |slot| Slot::new(slot).first(members(9), 2);
    let orphan = 7;
    let before = net.owner(orphan).1;
    for gone in list(orphan) {
        net.nodes.remove(&gone.id().get());
    }
    let longest = net.watch(ms(40_000), SLOTS);
    let (_, after) = net.owner(orphan);
    assert!(after > before, "{before} then {after}");
    assert!(longest > Duration::from_secs(5), "nobody was entitled to it: {longest}");
    assert!(longest < Duration::from_secs(11), "{longest}");
}

#[test]
fn what_was_told_stands_when_a_slot_is_handed_over() {
    let mut net = Net::founded(5, config(SLOTS, 2));
    net.join(9, config(SLOTS, 2));
    let mut told = vec![(0, Time::ZERO); SLOTS as usize];
    while net.now < ms(30_000) {
        for slot in 0..SLOTS {
            for (&key, node) in &net.nodes {
                let Some((_, until)) = node.authority(Slot::new(slot)) else { continue };
                let (owner, before) = &mut told[slot as usize];
                assert!(*owner == key || *before <= net.now, "slot {slot}: {owner} and {key}");
                (*owner, *before) = (key, until.max(*before));
            }
        }
        net.run(net.now + Duration::from_millis(5));
    }
}

fn deed(slot: u32, (counter, step): (u64, u32), list: &[Life], trusted: bool) -> Deed {
    let epoch = Epoch::mint(counter, peer(0));
    let mark = Mark { slot: Slot::new(slot), epoch, step, trusted, begun: step > 0 };
    Deed { mark, list: list.to_vec() }
}

/// A member of a running ring that neither owns nor keeps some slot, and the slot.
fn stranger() -> (Net, u64, u32) {
    let net = Net::founded(5, config(SLOTS, 1));
    let slot = (0..SLOTS).find(|&slot| {
        let list = Slot::new(slot).first(members(5), 2);
        !list.contains(&life(4)) && list[0] == life(0)
    });
    (net, 4, slot.expect("a slot of 0 that 4 does not keep"))
}

fn tell(net: &mut Net, to: u64, seen: u64, what: What) {
    let body = Body::Keys { by: life(0).inc, to: life(to).age(), what };
    let message = Message { seen, body };
    net.input(to, Input::Message { from: peer(0), via: id(0), message: &message });
}

#[test]
fn who_was_struck_off_takes_in_nothing_earlier_but_answers_again() {
    let (mut net, node, slot) = stranger();
    let with = [life(0), life(node)];
    let keep = |deed: Deed| What::Keep(vec![deed]);
    tell(&mut net, node, 9, keep(deed(slot, (9, 1), &with, true)));
    assert!(net.nodes[&node].known(Slot::new(slot)).is_some());
    tell(&mut net, node, 9, keep(deed(slot, (9, 2), &[life(0)], false)));
    assert_eq!(net.nodes[&node].known(Slot::new(slot)), None, "struck off");
    let said = net.said;
    tell(&mut net, node, 9, keep(deed(slot, (9, 2), &[life(0)], false)));
    assert_eq!(net.said, said + 1, "the answer may have been lost");
    tell(&mut net, node, 9, keep(deed(slot, (9, 1), &with, true)));
    assert_eq!(net.nodes[&node].known(Slot::new(slot)), None, "that was before");
    tell(&mut net, node, 9, keep(deed(slot, (9, 3), &with, false)));
    assert!(net.nodes[&node].known(Slot::new(slot)).is_some(), "on the list again");
}

#[test]
fn a_keeper_that_not_all_know_of_claims_nothing() {
    for trusted in [false, true] {
        let (mut net, node, slot) = stranger();
        let with = [life(0), life(node)];
        tell(&mut net, node, 9, What::Keep(vec![deed(slot, (9, 1), &with, trusted)]));
        // The owner leaves without a word to the others, whose record is the earlier one.
        let others: Vec<u64> = net.nodes.keys().copied().filter(|&key| key != node).collect();
        let mut node = net.nodes.remove(&node).unwrap();
        let mut out = Outbox::new();
        let gone = ring::Body::Leave { forced: true };
        let body = Body::Ring(ring::Message { inc: life(0).inc, body: gone });
        let leave = Message { seen: 9, body };
        let input = Input::Message { from: peer(0), via: id(0), message: &leave };
        node.handle(net.now, input, &mut out).unwrap();
        let owner = node.known(Slot::new(slot)).map(|(owner, _)| owner);
        assert_eq!(owner == Some(life(4)), trusted, "{others:?}");
    }
}

#[test]
fn a_founder_promises_nothing_to_a_claim_below_what_it_kept() {
    let founders: Vec<Peer> = (0..3).map(peer).collect();
    let ring = Ring::new(peer(1), below(), Seed::new(1), &founders, &[]);
    let mut node = Keys::new(ring, config(SLOTS, 2), Some(41));
    let mut out = Outbox::new();
    node.handle(Time::ZERO, Input::Start, &mut out).unwrap();
    while out.pop().is_some() {}
    let list: Vec<Life> = members(3).collect();
    for (counter, taken) in [(41, false), (50, true)] {
        let what = What::Keep(vec![deed(3, (counter, 0), &list, false)]);
        let body = Body::Keys { by: life(0).inc, to: life(1).age(), what };
        let message = Message { seen: counter, body };
        let input = Input::Message { from: peer(0), via: id(0), message: &message };
        node.handle(ms(1), input, &mut out).unwrap();
        let mut persisted = false;
        while let Some(effect) = out.pop() {
            match effect {
                Effect::Persist(kept) => {
                    persisted = true;
                    assert_eq!(kept, 50, "before it is said");
                }
                Effect::Send { message: Message { body: Body::Keys { what, .. }, .. }, .. } => {
                    assert_eq!(matches!(what, What::Kept(_)), taken, "{what:?}");
                    assert!(persisted || !taken, "promised before it was kept");
                }
                _ => {}
            }
        }
        assert_eq!(node.known(Slot::new(3)).is_some(), taken);
    }
}

#[test]
fn messages_survive_the_wire_and_bytes_that_are_none_are_refused() {
    let mark = Mark {
        slot: Slot::new(700),
        epoch: Epoch::mint(9, peer(3)),
        step: 4,
        trusted: true,
        begun: false,
    };
    let epoch = mark.epoch;
    let slots = vec![Slot::new(1), Slot::new(70_000)];
    let all = [
        What::Keep(vec![Deed { mark, list: members(4).collect() }]),
        What::Kept(vec![mark, Mark { begun: true, trusted: false, ..mark }]),
        What::Refuse(vec![(Slot::new(1), None), (Slot::new(2), Some(epoch))]),
        What::Cede { leaves: true, slots: vec![(Slot::new(1), epoch)] },
        What::Seek(Seek { epoch, digest: u64::MAX, binding: true, slots: slots.clone() }),
        What::Sought { epoch, binding: false, held: slots },
    ];
    for what in all {
        let body = Body::Keys { by: life(1).inc, to: life(2).age(), what };
        let message = Message { seen: u64::MAX, body };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        assert_eq!(Message::decode(&mut crate::wire::Reader::new(&bytes)), Ok(message));
        for len in 0..bytes.len() {
            assert!(Message::decode(&mut crate::wire::Reader::new(&bytes[..len])).is_err());
        }
    }
}

#[test]
fn a_claim_of_an_epoch_that_nobody_has_seen_is_not_believed() {
    let (mut net, node, slot) = stranger();
    tell(&mut net, node, 9, What::Keep(vec![deed(slot, (10, 1), &[life(0), life(node)], true)]));
    assert_eq!(net.nodes[&node].known(Slot::new(slot)), None);
    let seen = net.nodes[&node].seen;
    tell(&mut net, node, u64::MAX, What::Keep(Vec::new()));
    assert_eq!(net.nodes[&node].seen, seen, "nobody could mint a larger one");
}
