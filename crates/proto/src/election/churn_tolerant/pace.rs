//! What our own questions tell of the network: how long answers take, and how many never come.

use crate::time::Duration;

/// Round trips and losses, as answers to our own questions show them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Pace {
    /// The smoothed round trip and its mean deviation.
    trip: Option<(Duration, Duration)>,
    /// Questions of late, and how many of them were answered.
    asked: u32,
    answered: u32,
}

impl Pace {
    /// So many were asked.
    pub(super) fn asked(&mut self, questions: usize) {
        self.asked = self.asked.saturating_add(u32::try_from(questions).unwrap_or(u32::MAX));
        while self.asked > MEMORY {
            // The network of long ago counts ever less.
            (self.asked, self.answered) = (self.asked.div_ceil(2), self.answered.div_ceil(2));
        }
    }

    /// One answered, and after how long, if it was asked but once: of two questions nobody knows which one it
    /// answers.
    pub(super) fn answered(&mut self, trip: Option<Duration>) {
        self.answered = self.answered.saturating_add(1).min(self.asked);
        let Some(trip) = trip else { return };
        self.trip = Some(match self.trip {
            None => (trip, trip.div(2)),
            Some((mean, deviation)) => {
                let off = trip.saturating_sub(mean) + mean.saturating_sub(trip);
                ((mean * 7 + trip).div(8), (deviation * 3 + off).div(4))
            }
        });
    }

    /// How long to wait for an answer before asking again: hardly any takes longer. As configured until one was
    /// measured.
    pub(super) fn retry(&self, timeout: Duration) -> Duration {
        let Some((mean, deviation)) = self.trip else { return timeout };
        (mean + deviation * 4).clamp(timeout.div(FASTEST), timeout * SLOWEST)
    }

    /// How often to ask in vain before silence means that nobody is there: were it alive, so many losses in a row
    /// would be one chance in sixty-four.
    pub(super) fn tries(&self) -> u64 {
        // Two that were answered, so that few questions prove little.
        let asked = u64::from(self.asked) + 2;
        let lost = u64::from(self.asked - self.answered);
        let mut chance = ONE;
        for tries in 0..MOST_TRIES {
            if chance <= ONE / 64 {
                return tries;
            }
            chance = chance * lost / asked;
        }
        MOST_TRIES
    }
}

/// Questions that are remembered.
const MEMORY: u32 = 64;
/// Waits are no shorter than this part of the configured timeout: the first to answer are the nearest.
const FASTEST: u64 = 2;
/// And no longer than so many timeouts.
const SLOWEST: u64 = 8;
/// Certainty, in fixed point.
const ONE: u64 = 1 << 20;
/// However much is lost, somebody that silent is given up.
const MOST_TRIES: u64 = 24;
