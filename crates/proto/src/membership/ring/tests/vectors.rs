//! Geometry, groups and Algorithm 1: V1, V2, V5, V8, V9 and V12 to V14.

use super::{
    super::{
        arbiter::{Central, Rules, Seat},
        geometry::{self, around, majority},
        upgrade::union,
    },
    *,
};

fn small() -> Space {
    Space::new(Points::Identity, 5)
}

#[test]
fn a_key_belongs_to_the_closest_and_on_a_tie_to_the_predecessor() {
    let nodes = [11, 13, 17, 19, 23].map(id);
    for (key, owner) in [
        (16, 17),
        (15, 13),
        (14, 13),
        (12, 11),
        (18, 17),
        (21, 19),
        (2, 11),
        (1, 23),
        (0, 23),
        (31, 23),
        (17, 17),
    ] {
        assert_eq!(small().owner(nodes, key), Some(id(owner)), "key {key}");
    }
}

#[test]
fn a_joiner_takes_the_nearest_of_what_its_owner_knows() {
    let known = [11, 13, 17, 19, 23].map(id);
    let mut near = geometry::neighbourhood(&small(), &known, id(16), 2);
    near.sort_unstable();
    assert_eq!(near, [11, 13, 17, 19].map(id), "figure 5");
}

#[test]
fn a_join_makes_k_pairs_too_far_apart() {
    let pairs = |ring: &[u64]| {
        let mut pairs = Vec::new();
        for at in 0..ring.len() {
            for other in around(ring.len(), at, 2) {
                if ring[at] < ring[other] {
                    pairs.push((ring[at], ring[other]));
                }
            }
        }
        pairs.sort_unstable();
        pairs
    };
    let before = pairs(&[5, 11, 13, 17, 19, 23, 29]);
    let after = pairs(&[5, 11, 13, 16, 17, 19, 23, 29]);
    let new: Vec<_> = after.iter().filter(|pair| !before.contains(pair)).collect();
    let gone: Vec<_> = before.iter().filter(|pair| !after.contains(pair)).collect();
    assert_eq!(new, [&(11, 16), &(13, 16), &(16, 17), &(16, 19)]);
    assert_eq!(gone, [&(11, 17), &(13, 19)]);
}

#[test]
fn two_joiners_that_share_neighbours_cannot_both_lock() {
    let ring = [5, 11, 13, 17, 19, 23, 29].map(id);
    assert_eq!(small().owner(ring, 16), small().owner(ring, 18));
    assert_eq!(small().owner(ring, 12), Some(id(11)));
    let near = geometry::neighbourhood(&small(), &ring, id(12), 2);
    let other = geometry::neighbourhood(&small(), &ring, id(16), 2);
    let mut shared: Vec<_> = near.iter().filter(|one| other.contains(one)).copied().collect();
    shared.sort_unstable();
    assert_eq!(shared, [11, 13, 17].map(id));
}

/// `A_PQ` for nodes `p` and `q` of a ring of `n` in order.
fn group(n: usize, p: usize, q: usize, k: usize) -> Vec<Life> {
    let near = |at| around(n, at, k).into_iter().map(|at| life(at as u64)).collect::<Vec<_>>();
    union(life(p as u64), &near(p), life(q as u64), &near(q))
}

#[test]
fn groups_are_of_the_sizes_published() {
    // Figure 3, corrected (E28): the letters L to U are 11 to 20.
    let line: Vec<u64> = group(30, 15, 16, 3).iter().map(|life| life.id().get()).collect();
    assert_eq!(line, (12..=19).collect::<Vec<_>>());
    for (k, sizes) in [
        (1, vec![(4, 3)]),
        (2, vec![(6, 4), (7, 4)]),
        (3, vec![(8, 5), (9, 5), (10, 6)]),
        (4, vec![(10, 6), (11, 6), (12, 7), (13, 7)]),
    ] {
        for (d, (size, needed)) in (1..).zip(sizes) {
            let group = group(50, 0, d, k);
            assert_eq!((group.len(), majority(group.len())), (size, needed), "k {k}, d {d}");
        }
    }
    for (k, sits_in) in [(1, 4), (2, 13), (3, 27), (4, 46), (5, 70)] {
        let mut count = 0;
        for p in 0..60 {
            for d in 1..=k {
                count += usize::from(group(60, p, (p + d) % 60, k).contains(&life(30)));
            }
        }
        assert_eq!(count, sits_in, "k {k}");
    }
}

#[test]
fn the_load_of_one_crash_is_as_reckoned() {
    let (n, k, dead) = (40, 3, 20);
    let mut load = vec![0; n];
    for p in around(n, dead, k) {
        for seat in group(n, p, dead, k) {
            load[seat.id().get() as usize] += 1;
        }
    }
    let by_offset: Vec<i32> = (0..=7).map(|offset| load[dead + offset]).collect();
    assert_eq!(by_offset, [6, 6, 6, 6, 3, 2, 1, 0]);
    assert_eq!(load.iter().sum::<i32>(), 54);
}

#[test]
fn algorithm_1_first_come_first_served() {
    let [a, b, c, d, e] = [1, 2, 3, 4, 5].map(life);
    let mut arbiter = Central::default();
    let fresh = Vote::Reject(Reason::Fresh);
    let no = Vote::Reject(Reason::Conflict);
    for (at, pair, vote, after) in [
        (2499, (a, b), fresh, vec![a, b]),
        (2500, (c, d), Vote::Accept, vec![a, b, d]),
        (2600, (d, c), no, vec![a, b, d]),
        (2700, (e, d), Vote::Accept, vec![a, b, d]),
        (2800, (a, c), no, vec![a, b, d]),
        (4999, (a, c), Vote::Accept, vec![c, d]),
        (5000, (d, c), Vote::Accept, vec![c]),
    ] {
        let found = arbiter.ask(ms(at), pair, Time::ZERO, Duration::from_millis(2_500));
        assert_eq!((at, found), (at, vote));
        assert_eq!(arbiter.accused().collect::<Vec<_>>(), after, "at {at}");
    }
}

fn rules(config: &Config, me: Life) -> Rules<'_> {
    Rules { config, me, up_since: Time::ZERO }
}

fn versioned(low: u32, high: u32) -> Group {
    let members = (0..8).map(life).collect();
    Group { born: 0, version: Version { low, high }, members }
}

#[test]
fn as_published_a_proposal_blocks_the_other_end_and_outdates_requests() {
    let config = published(3);
    let rules = rules(&config, life(7));
    let base = versioned(0, 0);
    let mut seat = Seat::default();
    // (a) Accepted by all: the stale end is refused.
    assert!(seat.propose(ms(3_000), 0, (&base, &versioned(1, 0)), rules));
    assert_eq!(seat.ask(ms(3_050), 1, &base, rules), Vote::Reject(Reason::Stale));
    // (b) The other end's proposal, 2499 and 2500 after.
    for (after, granted) in [(2_499, false), (2_500, true)] {
        let mut seat = Seat::default();
        assert!(seat.propose(ms(3_000), 0, (&base, &versioned(1, 0)), rules));
        let next = versioned(1, 1);
        assert_eq!(seat.propose(ms(3_000 + after), 1, (&base, &next), rules), granted, "{after}");
    }
    // (c) Four and four: neither can ever win with the old version.
    let mut seats: Vec<Seat> = vec![Seat::default(); 8];
    for (at, seat) in seats.iter_mut().enumerate() {
        let order = if at < 4 { [0, 1] } else { [1, 0] };
        for end in order {
            let next = if end == 0 { versioned(1, 0) } else { versioned(0, 1) };
            seat.propose(ms(3_000), end, (&base, &next), rules);
        }
    }
    let held = |low, high| seats.iter().filter(|s| s.version() == Version { low, high }).count();
    assert_eq!((held(1, 0), held(0, 1)), (4, 4));
    for seat in &mut seats {
        assert_eq!(seat.ask(ms(9_000), 0, &base, rules), Vote::Reject(Reason::Stale));
    }
}

#[test]
fn jointly_only_the_lower_end_proposes_and_who_asks_the_old_group_is_told_of_the_new() {
    let config = hardened(3);
    let rules = rules(&config, life(7));
    let (base, next) = (versioned(0, 0), versioned(1, 0));
    let mut seat = Seat::default();
    assert!(seat.propose(ms(3_000), 0, (&base, &next), rules));
    assert_eq!(seat.ask(ms(3_050), 1, &base, rules), Vote::Accept);
    assert_eq!(seat.newer(&base), core::slice::from_ref(&next));
    assert!(seat.newer(&next).is_empty());
    // Installed stays known when the next one is taken back.
    assert!(!seat.propose(ms(3_100), 0, (&next, &versioned(2, 0)), rules), "the other has asked");
    assert!(seat.propose(ms(9_000), 0, (&next, &versioned(2, 0)), rules));
    seat.retract(Version { low: 2, high: 0 });
    assert_eq!(seat.newer(&base), [next]);
}

#[test]
fn closed_and_condemned_exclude_each_other_at_a_seat() {
    let config = hardened(3);
    let memory = Duration::from_millis(2_500);
    let mut seat = Seat::default();
    assert!(seat.close(ms(3_000), 0, memory));
    assert_eq!(seat.ask(ms(3_001), 0, &versioned(0, 0), rules(&config, life(7))), Vote::Closed);
    let mut seat = Seat::default();
    seat.ask(ms(3_000), 0, &versioned(0, 0), rules(&config, life(7)));
    assert!(!seat.close(ms(3_001), 0, memory));
    // A later lease of the same pair is another matter.
    let mut seat = Seat::default();
    assert!(seat.close(ms(3_000), 5, memory));
    let again = Group { born: 6, ..versioned(0, 0) };
    assert_eq!(seat.ask(ms(3_001), 1, &again, rules(&config, life(7))), Vote::Accept);
}

#[test]
fn a_concession_moves_the_vote_and_a_duplicate_gets_its_first_answer() {
    let config = hardened(3);
    let rules = rules(&config, life(7));
    let group = versioned(0, 0);
    let mut seat = Seat::default();
    assert_eq!(seat.ask(ms(3_000), 1, &group, rules), Vote::Accept);
    assert_eq!(seat.ask(ms(3_001), 0, &group, rules), Vote::Reject(Reason::Conflict));
    assert_eq!(seat.ask(ms(3_002), 1, &group, rules), Vote::Accept, "a duplicate");
    assert_eq!(seat.concede(ms(3_003), 1, 0), Some(Vote::Accept));
    assert_eq!(seat.accused(), [false, true]);
    assert_eq!(seat.ask(ms(3_004), 0, &group, rules), Vote::Accept);
    assert_eq!(seat.concede(ms(3_005), 1, 0), None, "told once");
}

#[test]
fn waits_grow_with_drift() {
    for (ppm, two, three) in [(10_000, 2_040_405, 2_550_506), (100, 2_000_401, 2_500_501)] {
        let config = hardened(3).with_drift(ppm).unwrap();
        assert_eq!(config.waiting(Duration::from_millis(2_000)).as_micros(), two);
        assert_eq!(config.waiting(config.t_arb()).as_micros(), three);
    }
    assert_eq!(published(3).waiting(Duration::from_millis(2_000)).as_micros(), 2_000_000);
}

#[test]
fn senseless_settings_are_refused() {
    let config = Config::hardened();
    assert!(config.with_neighbours(0).is_err() && config.with_neighbours(33).is_err());
    assert!(config.with_drift(500_001).is_err());
    let ms = Duration::from_millis;
    assert!(config.with_times(ms(0), ms(1)).is_err() && config.with_times(ms(1), ms(0)).is_err());
    assert!(config.with_arbiters(Arbiters::Central, id(0), 0).is_err());
}

#[test]
fn votes_split_as_often_as_counted() {
    // Neutral seats hear of the two in either order; each of the two has its own seat besides.
    let config = published(3);
    for (g, both_leave) in [(4, 2), (6, 6), (8, 20), (10, 70), (3, 0), (5, 0), (7, 0), (9, 0)] {
        let (neutral, needed) = (g - 2, majority(g as usize));
        let members: Vec<Life> = (0..g).map(life).collect();
        let group = Group { members, ..Group::default() };
        let mut split = 0;
        for orders in 0_u32..1 << neutral {
            let mut accepts = [1, 1];
            for seat in 0..neutral {
                let mut arbiter = Seat::default();
                let first = (orders >> seat & 1) as usize;
                for end in [first, 1 - first] {
                    let rules = rules(&config, life(2 + seat));
                    let vote = arbiter.ask(ms(9_000), end, &group, rules);
                    accepts[end] += usize::from(vote == Vote::Accept);
                }
            }
            assert!(accepts.iter().any(|&count| count < needed), "both win: {accepts:?} of {g}");
            split += u32::from(accepts.iter().all(|&count| count < needed));
        }
        assert_eq!(split, both_leave, "g {g}");
    }
}

#[test]
fn a_cut_divides_groups_as_counted() {
    // P at depth a left of the cut, Q at depth b right of it: k + a seats to k + b.
    for (a, b, left, right) in [(1, 1, 4, 4), (2, 2, 5, 5), (2, 1, 5, 4), (3, 1, 6, 4)] {
        let group = group(40, 20 - a, 19 + b, 3);
        let reached = group.iter().filter(|life| life.id().get() < 20).count();
        assert_eq!((reached, group.len() - reached), (left, right), "({a}, {b})");
    }
}

#[test]
fn the_load_of_one_upgrade_is_as_reckoned() {
    for (k, pairs, double, proposals, messages) in
        [(3, 21, 9, 30, 270), (2, 9, 3, 12, 78), (4, 38, 18, 56, 644), (5, 60, 30, 90, 1_260)]
    {
        let (n, dead) = (60_usize, 30_usize);
        let near = |at: usize| around(n, at, k).contains(&dead);
        let (mut found, mut two, mut all, mut sent) = (0, 0, 0, 0);
        for p in (0..n).filter(|&p| p != dead) {
            for q in around(n, p, k).into_iter().filter(|&q| q > p && q != dead) {
                let proposers = usize::from(near(p)) + usize::from(near(q));
                if proposers > 0 {
                    found += 1;
                    two += usize::from(proposers == 2);
                    all += proposers;
                    sent += proposers * group(n, p, q, k).len();
                }
            }
        }
        assert_eq!((found, two, all, sent), (pairs, double, proposals, messages), "k {k}");
    }
}
