//! Neighbour detection (rules N): who is in range, by its beacons or by what the host says.
//!
//! A node that hears a beacon hears its sender; whether it is heard in turn it cannot tell. Beacons could list whom their
//! sender hears, but they need not: the maps of the hardened protocols say so anyway, and a link counts there only if
//! both ends tell it (H8). So beacons stay empty, a link comes up with the first one, and one-way links end up in one
//! view and in nobody's component.

use alloc::vec::Vec;

use crate::{
    id::NodeId,
    rng::Rng,
    time::{Duration, Time},
};

/// How neighbours are found.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Detection {
    /// The host says who comes and goes.
    Given,
    /// By beacons of our own (N1 to N3). What the host says is believed too, as a beacon or the lack of one would be.
    Beacons {
        /// How often to send one.
        period: Duration,
        /// How long a silent neighbour is believed to be there.
        timeout: Duration,
    },
}

/// Something the host knows of the links of this node: from a medium that tells, a routing table, or a test.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Feed {
    /// This node is in range.
    Up(NodeId),
    /// This one no longer is.
    Down(NodeId),
}

/// Who is in range of one node.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Detector {
    detection: Detection,
    /// By identity, and until when each is believed without another word.
    neighbours: Vec<(NodeId, Time)>,
    beacon: Time,
}

impl Detector {
    /// Nobody is in range yet.
    pub const fn new(detection: Detection) -> Self {
        Self { detection, neighbours: Vec::new(), beacon: Time::NEVER }
    }

    /// N1: begins to send beacons, somewhere within a period so that nodes started together do not all speak at once.
    pub fn start(&mut self, now: Time, rng: &mut Rng) {
        if let Detection::Beacons { period, .. } = self.detection {
            self.beacon = now + rng.up_to(period);
        }
    }

    /// N2: `id` has been heard. Whether it was not there before.
    pub fn hear(&mut self, now: Time, id: NodeId) -> bool {
        let until = match self.detection {
            Detection::Given => Time::NEVER,
            Detection::Beacons { timeout, .. } => now + timeout,
        };
        match self.neighbours.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(at) => {
                self.neighbours[at].1 = until;
                false
            }
            Err(at) => {
                self.neighbours.insert(at, (id, until));
                true
            }
        }
    }

    /// `id` is no longer there. Whether it was before.
    pub fn lose(&mut self, id: NodeId) -> bool {
        let at = self.neighbours.binary_search_by_key(&id, |&(id, _)| id);
        at.map(|at| self.neighbours.remove(at)).is_ok()
    }

    /// N3: one that has been silent for too long by now; it is there no more.
    pub fn expire(&mut self, now: Time) -> Option<NodeId> {
        let at = self.neighbours.iter().position(|&(_, until)| until <= now)?;
        Some(self.neighbours.remove(at).0)
    }

    /// Whether a beacon is due; if so, the next one is a period later.
    pub fn beacon(&mut self, now: Time) -> bool {
        let Detection::Beacons { period, .. } = self.detection else { return false };
        if self.beacon > now {
            return false;
        }
        // A host that comes late sends one beacon, not all it has missed.
        self.beacon = (self.beacon + period).max(now + Duration::from_micros(1));
        true
    }

    /// No more beacons, nobody in range.
    pub fn stop(&mut self) {
        self.neighbours.clear();
        self.beacon = Time::NEVER;
    }

    /// When the next beacon is due.
    pub const fn next_beacon(&self) -> Time {
        self.beacon
    }

    /// When the next neighbour will have been silent for too long.
    pub fn next_silence(&self) -> Time {
        self.neighbours.iter().map(|&(_, until)| until).min().unwrap_or(Time::NEVER)
    }

    /// Who is in range, ascending.
    pub fn neighbours(&self) -> impl ExactSizeIterator<Item = NodeId> + Clone {
        self.neighbours.iter().map(|&(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    const fn at(millis: u64) -> Time {
        Time::from_micros(millis * 1_000)
    }

    #[test]
    fn a_neighbour_is_there_from_its_first_beacon_until_it_misses_too_many() {
        let (period, timeout) = (Duration::from_millis(400), Duration::from_millis(450));
        let mut detector = Detector::new(Detection::Beacons { period, timeout });
        let id = NodeId::new(3);
        assert!(detector.hear(at(0), id));
        assert!(!detector.hear(at(400), id), "N2 tells it once (E5)");
        assert_eq!(detector.next_silence(), at(850));
        assert_eq!(detector.expire(at(849)), None);
        assert_eq!(detector.expire(at(850)), Some(id));
        assert_eq!(detector.neighbours().len(), 0);
    }

    #[test]
    fn beacons_have_a_phase_of_their_own_and_a_late_host_sends_one() {
        let period = Duration::from_millis(400);
        let mut phases = Vec::new();
        for seed in 0..100 {
            let mut detector = Detector::new(Detection::Beacons { period, timeout: period * 2 });
            detector.start(Time::ZERO, &mut Seed::new(seed).rng());
            let phase = detector.next_beacon();
            assert!(phase <= at(400));
            assert!(detector.beacon(phase) && !detector.beacon(phase));
            assert_eq!(detector.next_beacon(), phase + period);
            assert!(detector.beacon(at(5_000)) && !detector.beacon(at(5_000)));
            phases.push(phase);
        }
        phases.sort();
        assert!(phases[10] < at(120) && phases[90] > at(280), "{phases:?}");
    }

    #[test]
    fn a_host_that_tells_is_believed_for_good() {
        let mut detector = Detector::new(Detection::Given);
        detector.start(Time::ZERO, &mut Seed::new(1).rng());
        assert!(detector.hear(at(1), NodeId::new(5)));
        assert_eq!((detector.next_beacon(), detector.next_silence()), (Time::NEVER, Time::NEVER));
        assert!(detector.lose(NodeId::new(5)) && !detector.lose(NodeId::new(5)));
    }
}
