//! Versions that differ, and lives that are forgotten.

use std::collections::BTreeSet;

use super::*;
use crate::net::seal::table::{CROWDED, FORGET_AFTER};

fn speaking(id: u64, boot: u64, oldest: u8, newest: u8) -> Sealer {
    sealer(id, boot).speaking(Versions::new(oldest, newest).unwrap())
}

fn version(packet: &[u8]) -> u8 {
    packet[0] & 0x0F
}

#[test]
fn two_speak_the_newest_version_they_have_in_common() {
    for (ours, theirs, common) in
        [((1, 1), (1, 1), 1), ((1, 2), (1, 1), 1), ((1, 3), (2, 5), 3), ((2, 2), (1, 15), 2)]
    {
        let mut ada = speaking(1, 7, ours.0, ours.1);
        let mut bob = speaking(2, 9, theirs.0, theirs.1);
        let greeting = hello(&mut ada);
        open(&mut bob, &greeting).unwrap();
        let welcome = answer(&mut bob).unwrap();
        assert!(welcome.len() <= greeting.len());
        open(&mut ada, &welcome).unwrap();
        let first = sealed(&mut ada, 2, b"m");
        assert_eq!(version(&first), common, "{ours:?} and {theirs:?}");
        open(&mut bob, &first).unwrap();
        // Bob has heard no more than that, and answers alike.
        let back = sealed(&mut bob, 1, b"m");
        assert_eq!(version(&back), common);
        open(&mut ada, &back).unwrap();
        let to_all = group(&mut ada, b"g");
        assert_eq!(version(&to_all), common);
        open(&mut bob, &to_all).unwrap();
        let mut stream = Vec::new();
        ada.seal_stream(bob.me().id, b"long", &mut stream).unwrap();
        assert_eq!(version(&stream[1..]), common);
        assert!(open_stream(&mut bob, &stream).is_ok());
    }
}

#[test]
fn a_group_is_spoken_to_as_all_of_it_understands_and_a_later_life_is_asked_anew() {
    let mut ada = speaking(1, 7, 1, 2);
    let (mut old, mut new) = (speaking(2, 9, 1, 1), speaking(3, 9, 1, 2));
    assert_eq!(version(&group(&mut ada, b"g")), 2, "nobody else is known");
    meet(&mut ada, &mut new);
    assert_eq!(version(&group(&mut ada, b"g")), 2);
    meet(&mut ada, &mut old);
    assert_eq!(version(&group(&mut ada, b"g")), 1);
    assert_eq!(version(&sealed(&mut ada, 3, b"m")), 2, "one to one as before");
    // It is said to have restarted: perhaps with a version less.
    ada.learn(peer(3, 10));
    assert_eq!(version(&sealed(&mut ada, 3, b"m")), 1);
    let mut new = speaking(3, 10, 1, 2);
    meet(&mut ada, &mut new);
    assert_eq!(version(&sealed(&mut ada, 3, b"m")), 2);
}

/// Found by upgrading real agents: one that came back as an older version had greeted others, and was known here by what it
/// said alone.
#[test]
fn a_group_is_spoken_to_as_those_understand_that_have_only_spoken() {
    let mut ada = speaking(1, 7, 1, 2);
    let mut new = speaking(3, 9, 1, 2);
    meet(&mut ada, &mut new);
    let mut old = speaking(2, 9, 1, 1);
    old.learn(ada.me());
    open(&mut ada, &sealed(&mut old, 1, b"m")).unwrap();
    let to_all = group(&mut ada, b"g");
    assert_eq!(version(&to_all), 1);
    // It is upgraded, and greets.
    let mut old = speaking(2, 10, 1, 2);
    old.learn(ada.me());
    open(&mut ada, &sealed(&mut old, 1, b"m")).unwrap();
    assert_eq!(version(&group(&mut ada, b"g")), 1, "it spoke so");
    open(&mut ada, &hello(&mut old)).unwrap();
    assert_eq!(version(&group(&mut ada, b"g")), 2, "it says more than it spoke");
    assert_eq!(version(&sealed(&mut ada, 2, b"m")), 2);
    // Of one that was only heard of nothing is known.
    ada.learn(peer(4, 1));
    assert_eq!(version(&group(&mut ada, b"g")), 1);
}

#[test]
fn who_has_no_version_in_common_is_counted_and_told_of_at_both_ends() {
    let (mut ada, mut bob) = (speaking(1, 7, 1, 1), speaking(2, 9, 2, 3));
    let greeting = hello(&mut ada);
    assert_eq!(open(&mut bob, &greeting), Err(Refusal::Version));
    assert_eq!(bob.take_foreign(), Some((ada.me(), Versions::OURS)));
    let welcome = answer(&mut bob).unwrap();
    assert_eq!(open(&mut ada, &welcome), Err(Refusal::Version));
    let told = ada.take_foreign().unwrap();
    assert_eq!((told.0, told.1.to_string().as_str()), (bob.me(), "2 to 3"));
    let mut packet = Vec::new();
    assert_eq!(ada.seal(bob.me().id, b"m", &mut packet), Err(Refusal::Version));
    // Once for each life.
    let again = hello(&mut ada);
    assert_eq!(open(&mut bob, &again), Err(Refusal::Version));
    assert_eq!(bob.take_foreign(), None);
    bob.learn(ada.me());
    assert_eq!(open(&mut ada, &sealed(&mut bob, 1, b"m")), Err(Refusal::Version));
    assert_eq!(ada.take_foreign(), None);
}

#[test]
fn what_a_later_version_adds_to_a_greeting_is_skipped() {
    let (mut ada, mut bob) = (sealer(1, 7), sealer(2, 9));
    let mut longer = Vec::new();
    let body = [&[0x11, 0x80][..], &[0xAA; 40]].concat();
    ada.seal_kind(9, Kind::Hello, None, &body, &mut longer).unwrap();
    assert!(open(&mut bob, &longer).is_ok());
    assert!(answer(&mut bob).is_some());
    let number = ada.next - 1;
    let (body, length) =
        Welcome { answers: number, speaks: Versions::OURS, newest: Some(Boot::new(7)) }.write();
    let body = [&body[..length], &[0xAA; 9]].concat();
    let mut welcome = Vec::new();
    bob.seal_kind(9, Kind::Welcome, Some(ada.me()), &body, &mut welcome).unwrap();
    let opened = open(&mut ada, &welcome).unwrap();
    assert_eq!(opened.content, Content::Welcome { answers: number });
}

#[test]
fn a_welcome_says_which_hello_it_answers_however_many_there_were() {
    for next in [2, 1 << 40, (1 << 40) + 1, 5 << 40, u64::MAX - 1] {
        for answers in [next - 1, next - 2, next.saturating_sub((1 << 40) - 1).max(1)] {
            let (body, length) = Welcome { answers, speaks: Versions::OURS, newest: None }.write();
            let read = Welcome::read(&body[..length], next).unwrap();
            assert_eq!(read.answers, answers, "before {next}");
        }
    }
}

/// A long life: every second two strangers come, say something and are never heard again.
struct Long {
    bob: Sealer,
    now: Time,
    met: u64,
    /// What some of them said to Bob, and to all.
    recorded: Vec<Vec<u8>>,
    most: usize,
}

impl Long {
    fn open(&mut self, packet: &[u8]) -> Result<Opened, Refusal> {
        self.bob.open(self.now, &mut packet.to_vec())
    }

    /// Whether a stranger gets to be believed, in the end.
    fn meets(&mut self, stranger: &mut Sealer) -> bool {
        let greeting = hello(stranger);
        let _ = self.open(&greeting);
        let Some(reply) = answer(&mut self.bob) else { return false };
        assert!(reply.len() <= greeting.len());
        let first = stranger.open(self.now, &mut reply.clone());
        if let Some(back) = answer(stranger) {
            // Bob asked back.
            assert_eq!(first.unwrap().content, Content::Hello);
            self.recorded.push(back.clone());
            self.open(&back).unwrap();
        } else {
            let first = sealed(stranger, 2, b"here I am");
            self.recorded.push(first.clone());
            self.open(&first).unwrap();
        }
        self.bob.is_proven(stranger.me())
    }

    fn live(&mut self, strangers: u64) {
        for _ in 0..strangers {
            self.met += 1;
            self.now += Duration::from_millis(500);
            let mut stranger = sealer(1_000 + self.met, 1);
            assert!(self.meets(&mut stranger), "stranger {}", self.met);
            stranger.learn(self.bob.me());
            self.recorded.push(sealed(&mut stranger, 2, &[7; 60]));
            self.recorded.push(group(&mut stranger, &[7; 60]));
            self.most = self.most.max(self.bob.peers().remembered);
        }
    }
}

/// Bar: a hundred thousand identities in one life, memory bounded, newcomers taken, no recording believed.
#[test]
fn a_hundred_thousand_identities_leave_room_for_the_next_and_no_recording_is_believed() {
    let bob = sealer(2, 9);
    let mut long = Long { bob, now: NOW, met: 0, recorded: Vec::new(), most: 0 };
    let mut ada = sealer(1, 7);
    assert!(long.meets(&mut ada));
    ada.learn(long.bob.me());
    for _ in 0..100 {
        long.live(1_000);
        // She is heard from all the time, and goes on as if nothing had happened.
        let said = sealed(&mut ada, 2, b"still here");
        assert_eq!(long.open(&said).unwrap().from, ada.me());
    }
    assert_eq!(long.met, 100_000);
    assert!(long.most < Sealer::MOST_PEERS, "{} at most", long.most);
    assert!(long.most >= CROWDED, "lives were forgotten");
    // Whoever said that is forgotten, or has been heard; none of it is believed.
    let known: BTreeSet<u64> = long.bob.keys_in_use().map(|(who, ..)| who.id.get()).collect();
    let mut refused = BTreeMap::new();
    for (at, packet) in core::mem::take(&mut long.recorded).iter().enumerate() {
        let header = Header::read(packet, Versions::OURS).unwrap();
        let opened = long.open(packet);
        if let Ok(opened) = &opened {
            // Sent, and held back so far, by somebody who is still known.
            assert!(known.contains(&opened.from.id.get()), "{at}: {opened:?}");
            assert_eq!(long.open(packet), Err(Refusal::Replay));
        } else {
            *refused.entry(opened.unwrap_err()).or_insert(0) += 1;
        }
        if !known.contains(&header.from.id.get()) {
            assert!(!long.bob.is_proven(header.from), "{at}");
        }
        long.now += Duration::from_micros(1_000);
    }
    assert!(refused[&Refusal::Unproven] > 200_000, "{refused:?}");
    let after: BTreeSet<u64> = long.bob.keys_in_use().map(|(who, ..)| who.id.get()).collect();
    assert!(after.is_subset(&known));
    // One that was forgotten and lives is asked, answers, and goes on; its own recordings stay what they are.
    let mut back = sealer(1_001, 1);
    back.next = 500;
    let late = sealed_for(&mut back, &long.bob, b"sealed before Bob asked");
    assert!(long.meets(&mut back));
    assert_eq!(long.open(&late), Err(Refusal::Replay));
    let said = sealed_for(&mut back, &long.bob, b"m");
    long.open(&said).unwrap();
}

fn sealed_for(from: &mut Sealer, to: &Sealer, plain: &[u8]) -> Vec<u8> {
    from.learn(to.me());
    sealed(from, to.me().id.get(), plain)
}

#[test]
fn after_a_life_was_forgotten_no_older_and_no_later_one_is_believed_on_a_message() {
    let mut bob = sealer(2, 9);
    let mut ada = sealer(1, 7);
    meet(&mut ada, &mut bob);
    let (to_bob, to_all) = (sealed(&mut ada, 2, &[1; 60]), group(&mut ada, &[1; 60]));
    let old_welcome = {
        let question = hello(&mut bob);
        open(&mut ada, &question).unwrap();
        answer(&mut ada).unwrap()
    };
    let mut stream = Vec::new();
    ada.seal_stream(bob.me().id, b"long", &mut stream).unwrap();
    // Many come, and she is not heard for long.
    for id in 1_000..1_000 + CROWDED as u64 {
        let mut stranger = sealer(id, 1);
        stranger.learn(bob.me());
        let packet = sealed(&mut stranger, 2, b"m");
        bob.open(NOW, &mut packet.clone()).unwrap();
    }
    let later = NOW + FORGET_AFTER;
    let mut newcomer = sealer(3, 1);
    newcomer.learn(bob.me());
    bob.open(later, &mut sealed(&mut newcomer, 2, &[0; 60])).unwrap();
    assert!(bob.peers().remembered < 10 && !bob.is_proven(ada.me()));
    for packet in [&to_bob, &to_all, &old_welcome] {
        assert_eq!(bob.open(later, &mut packet.clone()), Err(Refusal::Unproven));
        let asked = answer(&mut bob);
        assert!(asked.is_none_or(|asked| asked.len() <= packet.len()));
    }
    assert_eq!(open_stream(&mut bob, &stream), Err(Refusal::Unproven));
    // An earlier life of hers that runs on answers. A recording of the later one still does not replace it.
    let mut earlier = sealer(1, 6);
    let greeting = hello(&mut earlier);
    bob.open(later, &mut greeting.clone()).unwrap();
    let question = answer(&mut bob).unwrap();
    open(&mut earlier, &question).unwrap();
    let welcome = answer(&mut earlier).unwrap();
    bob.open(later, &mut welcome.clone()).unwrap();
    assert!(bob.is_proven(earlier.me()));
    assert_eq!(bob.open(later, &mut to_bob.clone()), Err(Refusal::Unproven));
    assert!(bob.is_proven(earlier.me()));
    // Two that have both forgotten somebody still meet.
    earlier.peers.forget_all(1);
    earlier.peers.forget_all(earlier.next);
    bob.peers.forget_all(bob.next);
    let greeting = hello(&mut earlier);
    bob.open(later, &mut greeting.clone()).unwrap();
    let question = answer(&mut bob).unwrap();
    earlier.open(later, &mut question.clone()).unwrap();
    let welcome = answer(&mut earlier).unwrap();
    assert_eq!(bob.open(later, &mut welcome.clone()).unwrap().from, earlier.me());
}
