//! The air by itself: who sends when, who hears it, and what it costs.

use std::collections::BTreeMap;

use bellwether_proto::Seed;

use super::*;

/// A small engine: plays frames until nobody has anything to send.
struct Shack {
    air: Air,
    near: Vec<Vec<u32>>,
    sensed: Option<Vec<Vec<u32>>>,
    events: BTreeMap<(Time, u8, u32), ()>,
    /// Sender, beginning, end, receivers.
    heard: Vec<(u32, Time, Time, Vec<u32>)>,
    began: BTreeMap<u32, Time>,
}

impl Shack {
    fn new(near: &[&[u32]], sensed: Option<&[&[u32]]>, seed: u64) -> Self {
        let own = |lists: &[&[u32]]| lists.iter().map(|list| list.to_vec()).collect();
        Self {
            air: Air::new(&Wifi::default(), near.len() as u32, Seed::new(seed).rng()),
            near: own(near),
            sensed: sensed.map(own),
            events: BTreeMap::new(),
            heard: Vec::new(),
            began: BTreeMap::new(),
        }
    }

    fn offer(&mut self, now: Time, from: u32, bytes: u64) {
        let frame = Frame { parcel: 0, to: None, airtime: airtime(bytes) };
        if let Ok(Some(at)) = self.air.offer(now, from, frame) {
            self.events.insert((at, 1, from), ());
        }
    }

    fn play(&mut self) {
        while let Some(((now, lane, node), ())) = self.events.pop_first() {
            if lane == 0 {
                let (mut receivers, mut plans) = (Vec::new(), Vec::new());
                self.air.end(now, node, &mut receivers, &mut plans);
                self.heard.push((node, self.began[&node], now, receivers));
                self.events.extend(plans.into_iter().map(|(node, at)| ((at, 1, node), ())));
                continue;
            }
            let far = self.sensed.as_ref().map(|sensed| &*sensed[node as usize]);
            match self.air.ask(now, node, &self.near[node as usize], far) {
                Turn::Sends(until) => {
                    self.began.insert(node, now);
                    self.events.insert((until, 0, node), ());
                }
                Turn::Later(at) => drop(self.events.insert((at, 1, node), ())),
                Turn::Waits => {}
            }
        }
    }
}

fn at(micros: u64) -> Time {
    Time::from_micros(micros)
}

#[test]
fn airtimes_are_those_of_the_digest() {
    let times = [4, 263, 1_323].map(|bytes| airtime(bytes).as_micros());
    assert_eq!(times, [48, 88, 252]);
}

#[test]
fn v16_listening_for_half_an_hour_and_a_thousand_frames() {
    let (whole, idle) = (Duration::from_secs(1_800), Duration::ZERO);
    assert_eq!(energy(whole, idle, idle), (900.0, 0.0));
    let mut shack = Shack::new(&[&[1], &[0]], None, 1);
    for number in 0..1_000 {
        shack.offer(at(number * 1_000), 0, 1_323);
        shack.play();
    }
    let (sent, received) = shack.air.times(0);
    assert_eq!((sent, received), (Duration::from_micros(252_000), Duration::ZERO));
    let (total, dynamic) = energy(whole, sent, received);
    assert!((dynamic - 0.504).abs() < 1e-12 && (total - 900.504).abs() < 1e-9);
    // Whoever hears them takes half a watt more for as long.
    let (sent, received) = shack.air.times(1);
    assert!((energy(whole, sent, received).1 - 0.126).abs() < 1e-12);
}

/// Alone, a frame begins a DIFS and up to fifteen slots after it was offered, every number of slots alike.
#[test]
fn whoever_is_alone_waits_for_a_uniform_number_of_slots() {
    let mut shack = Shack::new(&[&[]], None, 7);
    let mut slots = [0; 16];
    for number in 1..=16_000 {
        shack.offer(at(number * 1_000), 0, 4);
        shack.play();
        let (_, began, until, _) = shack.heard.pop().unwrap();
        assert_eq!(until.since(began), airtime(4));
        // Silence has lasted since long before.
        let waited = began.since(at(number * 1_000)).as_micros();
        assert_eq!(waited % 9, 0);
        slots[(waited / 9) as usize] += 1;
    }
    assert!(slots.iter().all(|&count| (850..1_150).contains(&count)), "{slots:?}");
}

/// Two that hear each other: they collide only if they drew the same slot, otherwise the later one waits, and
/// goes on counting where it was stopped.
#[test]
fn two_in_earshot_collide_once_in_sixteen_times() {
    let (mut collided, rounds) = (0, 16_000);
    let mut shack = Shack::new(&[&[1, 2], &[0, 2], &[0, 1]], None, 3);
    for number in 0..rounds {
        shack.heard.clear();
        let start = at(number * 10_000);
        shack.offer(start, 0, 4);
        shack.offer(start, 1, 4);
        shack.play();
        let [first, second] = &shack.heard[..] else { panic!("two frames, once each") };
        if first.1 == second.1 {
            collided += 1;
            assert!(first.3.is_empty() && second.3.is_empty());
        } else {
            let other = |from: u32| vec![1 - from, 2];
            assert_eq!((&first.3, &second.3), (&other(first.0), &other(second.0)));
            let gap = second.1.since(first.2);
            assert!(gap >= DIFS && (gap.saturating_sub(DIFS)).as_micros() % 9 == 0, "{gap}");
            // Both had counted the same slots until the first began.
            let (early, late) = (first.1.since(start), gap.saturating_sub(DIFS));
            assert!((early + late).as_micros() / 9 <= WINDOW, "{early} {late}");
        }
    }
    let share = f64::from(collided) / rounds as f64;
    assert!((share - 1.0 / 16.0).abs() < 0.006, "{share}");
    // In a collision the two miss each other and the third misses both.
    assert_eq!(shack.air.usage().collisions, 4 * collided as u64);
    assert_eq!(shack.air.usage().frames, 2 * rounds);
}

/// 0 and 2 do not hear each other: what they send at nearly the same time is lost on 1 between them.
#[test]
fn hidden_stations_destroy_each_others_frames_unless_earshot_is_longer() {
    let near: [&[u32]; 3] = [&[1], &[0, 2], &[1]];
    let everybody: [&[u32]; 3] = [&[1, 2], &[0, 2], &[0, 1]];
    let play = |sensed| {
        let mut shack = Shack::new(&near, sensed, 5);
        for number in 0..4_000 {
            shack.offer(at(number * 10_000), 0, 1_323);
            shack.offer(at(number * 10_000), 2, 1_323);
            shack.play();
        }
        let got = shack.heard.iter().filter(|frame| frame.3 == [1]).count();
        assert!(shack.heard.iter().all(|frame| frame.3 == [1] || frame.3.is_empty()));
        (got, shack.air.usage().collisions)
    };
    // 252 us are longer than any back-off: all is lost, always.
    assert_eq!(play(None), (0, 8_000));
    // Who notices the other waits, but for one in sixteen.
    let (got, lost) = play(Some(&everybody));
    assert_eq!(got as u64 + lost, 8_000);
    assert!((lost as f64 / 8_000.0 - 1.0 / 16.0).abs() < 0.01, "{lost}");
}

/// Interference from beyond the range spoils a frame but is not received.
#[test]
fn what_is_only_noticed_spoils_but_is_not_heard() {
    let near: [&[u32]; 3] = [&[1], &[0], &[]];
    // 2 disturbs 1, but hears nobody.
    let sensed: [&[u32]; 3] = [&[1], &[0], &[1]];
    let mut shack = Shack::new(&near, Some(&sensed), 5);
    shack.offer(at(0), 0, 1_323);
    shack.offer(at(0), 2, 1_323);
    shack.play();
    assert!(shack.heard.iter().all(|frame| frame.3.is_empty()), "{:?}", shack.heard);
    assert_eq!(shack.air.usage().collisions, 1);
    shack.heard.clear();
    shack.offer(at(5_000), 2, 4);
    shack.offer(at(6_000), 0, 4);
    shack.play();
    assert!(shack.heard[0].3.is_empty());
    assert_eq!(shack.heard[1].3, [1]);
}

#[test]
fn a_full_queue_drops_and_a_stopped_station_sends_no_more() {
    let mut shack = Shack::new(&[&[1], &[0]], None, 5);
    (0..150).for_each(|_| shack.offer(at(0), 0, 4));
    assert_eq!(shack.air.usage().dropped, 50);
    // The first is in the air when it stops.
    let ((now, ..), ()) = shack.events.pop_first().unwrap();
    assert!(matches!(shack.air.ask(now, 0, &[1], None), Turn::Sends(_)));
    assert_eq!(shack.air.silence(0).count(), 99);
    let (mut receivers, mut plans) = (Vec::new(), Vec::new());
    shack.air.end(now + airtime(4), 0, &mut receivers, &mut plans);
    assert_eq!((receivers, plans), (vec![], vec![]));
    // Before it has begun to send, all is given back.
    (0..3).for_each(|_| shack.offer(at(500_000), 0, 4));
    assert_eq!(shack.air.silence(0).count(), 3);
    shack.play();
    assert!(shack.heard.is_empty());
    // And it can begin again.
    shack.offer(at(1_000_000), 0, 4);
    shack.play();
    assert_eq!(shack.heard[0].3, [1]);
}
