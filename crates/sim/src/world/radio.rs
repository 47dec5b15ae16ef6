//! The air between nodes: one channel of 802.11, for frames that nobody acknowledges (rule R2 of
//! `docs/rules/central.md`).
//!
//! A station that has a frame waits until it has heard nobody for a while (DIFS), then as many idle slots as it drew
//! (uniform up to `CWmin`, never more: there is no acknowledgement whose absence would double it), and sends once.
//! Slots stop counting while somebody in earshot sends and go on after the next DIFS. Whoever is in earshot of two
//! senders at once understands neither, and nobody hears while it sends; hence two that do not hear each other
//! destroy their frames at whoever stands between them. Signals take no time, and all are equally loud.
//!
//! The cost is two events a frame, its beginning and its end. Back-off needs none: when a station would send follows
//! from when it last fell silent around it, is corrected when somebody else begins or ends, and the event that was
//! planned for it asks, when it comes, whether it still stands. All receivers of a frame are served by its end.

use std::collections::VecDeque;

use bellwether_proto::{Duration, Rng, Time};

use crate::world::Wifi;

/// The stations and what is in the air. The engine keeps the time: it is told when to ask again.
#[derive(Clone, Debug)]
pub struct Air {
    stations: Vec<Station>,
    capacity: usize,
    rng: Rng,
    usage: Usage,
}

/// What has happened in the air.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// How many frames were sent.
    pub frames: u64,
    /// Receivers in range that got nothing of a frame because others were sending, or they themselves.
    pub collisions: u64,
    /// Frames that found a full queue.
    pub dropped: u64,
}

/// A message on its way to the air.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Frame {
    /// What the engine knows it by.
    pub parcel: u32,
    /// The only one to take notice; `None` if everybody.
    pub to: Option<u32>,
    /// How long it is in the air.
    pub airtime: Duration,
}

/// What becomes of a station's plan to send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Turn {
    /// It sends, until then.
    Sends(Time),
    /// Not yet: ask again then.
    Later(Time),
    /// Not while somebody else sends; the end of that says when to ask.
    Waits,
}

#[derive(Clone, Debug)]
struct Station {
    queue: VecDeque<Frame>,
    /// How many others in earshot are sending.
    heard: u32,
    /// Since when nobody is, itself included.
    silent: Time,
    /// When it will send; [`Time::NEVER`] while it has nothing to send or must wait for silence.
    planned: Time,
    /// Slots left to wait.
    slots: u64,
    /// Whether the engine will ask.
    asked: bool,
    sending: bool,
    /// Whether what it sends ends in nothing: it has stopped.
    cut_short: bool,
    /// Whose frame it is receiving, if any, and whether that is spoilt.
    receiving: u32,
    spoilt: bool,
    /// Who was in earshot when its frame began.
    audience: Vec<u32>,
    sent: Duration,
    received: Duration,
}

impl Air {
    /// Stations with nothing to say.
    pub fn new(wifi: &Wifi, stations: u32, rng: Rng) -> Self {
        let station = Station {
            queue: VecDeque::new(),
            heard: 0,
            silent: Time::ZERO,
            planned: Time::NEVER,
            slots: 0,
            asked: false,
            sending: false,
            cut_short: false,
            receiving: NOBODY,
            spoilt: false,
            audience: Vec::new(),
            sent: Duration::ZERO,
            received: Duration::ZERO,
        };
        Self {
            stations: vec![station; stations as usize],
            capacity: wifi.queue as usize,
            rng,
            usage: Usage::default(),
        }
    }

    /// What has happened so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// How long a station has been sending, and receiving.
    pub fn times(&self, station: u32) -> (Duration, Duration) {
        let Station { sent, received, .. } = self.stations[station as usize];
        (sent, received)
    }

    /// A station wants to send. `Err` if its queue is full; otherwise when to ask it, if not already planned.
    #[inline]
    pub fn offer(&mut self, now: Time, from: u32, frame: Frame) -> Result<Option<Time>, Full> {
        let station = &mut self.stations[from as usize];
        if station.queue.len() >= self.capacity {
            self.usage.dropped += 1;
            return Err(Full);
        }
        station.queue.push_back(frame);
        if station.queue.len() > 1 {
            return Ok(None);
        }
        station.slots = self.rng.below(WINDOW + 1);
        Ok(station.plan(now))
    }

    /// Asks a station whether it sends now. `near` are those in range and `sensed` those in earshot, both ascending
    /// and without itself.
    #[inline]
    pub fn ask(&mut self, now: Time, from: u32, near: &[u32], sensed: Option<&[u32]>) -> Turn {
        let station = &mut self.stations[from as usize];
        station.asked = false;
        match station.planned {
            Time::NEVER => return Turn::Waits,
            planned if planned > now => {
                station.asked = true;
                return Turn::Later(planned);
            }
            _ => {}
        }
        station.planned = Time::NEVER;
        station.sending = true;
        if station.receiving != NOBODY && !station.spoilt {
            self.usage.collisions += 1;
        }
        station.receiving = NOBODY;
        let airtime = station.queue.front().map_or(Duration::ZERO, |frame| frame.airtime);
        let mut audience = std::mem::take(&mut station.audience);
        audience.clear();
        audience.extend_from_slice(sensed.unwrap_or(near));
        for &other in &audience {
            let in_range = sensed.is_none() || near.binary_search(&other).is_ok();
            self.usage.collisions +=
                u64::from(self.stations[other as usize].hears(now, from, in_range));
        }
        self.stations[from as usize].audience = audience;
        Turn::Sends(now + airtime)
    }

    /// A frame ends: those who got it are added to `receivers`, and those who can now plan to send, and when to ask
    /// them, to `plans`.
    #[inline]
    pub fn end(
        &mut self,
        now: Time,
        from: u32,
        receivers: &mut Vec<u32>,
        plans: &mut Vec<(u32, Time)>,
    ) -> Frame {
        let station = &mut self.stations[from as usize];
        let frame = station.queue.pop_front().expect("what ends has begun");
        let whole = !std::mem::replace(&mut station.cut_short, false);
        station.sending = false;
        station.silent = now;
        station.sent += frame.airtime;
        self.usage.frames += 1;
        let audience = std::mem::take(&mut station.audience);
        for &other in &audience {
            let station = &mut self.stations[other as usize];
            station.heard -= 1;
            if station.receiving == from {
                station.receiving = NOBODY;
                station.received += frame.airtime;
                if whole && !station.spoilt && frame.to.is_none_or(|to| to == other) {
                    receivers.push(other);
                }
            }
            if station.heard == 0 && !station.sending {
                station.silent = now;
                if let Some(at) = station.plan(now) {
                    plans.push((other, at));
                }
            }
        }
        let station = &mut self.stations[from as usize];
        station.audience = audience;
        if !station.queue.is_empty() {
            station.slots = self.rng.below(WINDOW + 1);
            if let Some(at) = station.plan(now) {
                plans.push((from, at));
            }
        }
        frame
    }

    /// A station stops: what it has not begun to send is given back, what it is sending is lost to all.
    pub fn silence(&mut self, station: u32) -> impl Iterator<Item = Frame> + use<> {
        let station = &mut self.stations[station as usize];
        let begun = if station.sending { station.queue.pop_front() } else { None };
        let mut rest = std::mem::take(&mut station.queue);
        if let Some(frame) = begun {
            station.cut_short = true;
            station.queue.push_back(frame);
        } else {
            station.planned = Time::NEVER;
        }
        std::iter::from_fn(move || rest.pop_front())
    }
}

impl Station {
    /// Plans to send what it has, if nobody is to be heard; says when to ask it, if nobody will anyway.
    #[inline]
    fn plan(&mut self, now: Time) -> Option<Time> {
        if self.heard > 0 || self.sending || self.queue.is_empty() {
            return None;
        }
        self.planned = now.max(self.silent + DIFS) + SLOT * self.slots;
        let ask = !std::mem::replace(&mut self.asked, true);
        ask.then_some(self.planned)
    }

    /// Somebody in earshot begins to send. Returns how many frames in range this has spoilt here.
    #[inline]
    fn hears(&mut self, now: Time, from: u32, in_range: bool) -> u32 {
        self.heard += 1;
        if self.sending {
            return u32::from(in_range);
        }
        if self.heard == 1 {
            // Who is to send at this very instant does not notice any more.
            if self.planned > now && self.planned != Time::NEVER {
                let counting = self.planned.since(Time::ZERO).saturating_sub(SLOT * self.slots);
                let counted = now.since(Time::ZERO).saturating_sub(counting);
                self.slots -= counted.as_micros() / SLOT.as_micros();
                self.planned = Time::NEVER;
            }
            if in_range {
                (self.receiving, self.spoilt) = (from, false);
            }
            return 0;
        }
        let spoils = self.receiving != NOBODY && !self.spoilt;
        self.spoilt |= spoils;
        u32::from(spoils) + u32::from(in_range)
    }
}

/// The queue of a station is full.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Full;

/// How long a frame with this many bytes in it is in the air at 52 Mb/s: its preamble, then symbols of four
/// microseconds with 208 bits each.
#[inline]
pub fn airtime(bytes: u64) -> Duration {
    let bits = 22 + 8 * (bytes + HEADERS);
    Duration::from_micros(36 + 4 * bits.div_ceil(208))
}

/// The energy a radio takes in this long, and how much of it because it sent and received, in joules. EN1: it listens
/// whenever it does neither, and hearing what it does not receive takes no more than listening.
pub fn energy(whole: Duration, sent: Duration, received: Duration) -> (f64, f64) {
    let above = (SENDING - LISTENING) * sent.as_secs_f64();
    let dynamic = above + (RECEIVING - LISTENING) * received.as_secs_f64();
    (LISTENING * whole.as_secs_f64() + dynamic, dynamic)
}

const NOBODY: u32 = u32::MAX;
const SLOT: Duration = Duration::from_micros(9);
const DIFS: Duration = Duration::from_micros(28);
/// `CWmin`: the most slots a station draws.
const WINDOW: u64 = 15;
/// Bytes of everything around a message.
const HEADERS: u64 = 64;
/// Watts, as the thesis has them.
const LISTENING: f64 = 0.5;
const RECEIVING: f64 = 1.0;
const SENDING: f64 = 2.5;

#[cfg(test)]
mod tests;
