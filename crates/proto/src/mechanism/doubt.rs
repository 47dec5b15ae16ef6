//! How much silence proves.
//!
//! Where links lose messages, a far target often does not answer although it lives: over twenty lossy
//! hops there and back, two pings in three get lost. Who takes every such silence for a death accuses
//! faster than denials can spread. So a node keeps an estimate of how far a message of its own travels
//! before it is lost, and from it how likely a live target at some distance stays silent. Where nothing is
//! ever lost, one silence is proof enough; where much is, a few in a row are.
//!
//! Losses per distance travelled are taken to be a Poisson process. Its rate is estimated by the method of
//! maximum likelihood: losses divided by the distance messages have travelled, where the place of a loss,
//! which nobody sees, is replaced by its expectation under the present estimate. Only silences of
//! targets later known to live count: the dead say nothing about the network.

/// What a node has learnt about the losses around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt {
    /// A length in the unit of distances: that of one link.
    link: f64,
    /// Losses seen and links travelled, the older the less.
    lost: f64,
    travelled: f64,
}

impl Doubt {
    /// Nothing learnt yet, in a network whose links are about as long as `link`.
    pub fn new(link: f64) -> Self {
        let link = if link.is_finite() && link > 0.0 { link } else { 1.0 };
        Self { link, lost: 0.0, travelled: 0.0 }
    }

    /// A ping over this distance was answered.
    pub fn answered(&mut self, distance: f64) {
        self.fade();
        self.travelled += self.round_trip(distance);
    }

    /// A ping over this distance was not answered, and the target lives.
    pub fn unanswered(&mut self, distance: f64) {
        let (way, rate) = (self.round_trip(distance), self.rate());
        self.fade();
        self.lost += 1.0;
        self.travelled += 1.0 / rate - way / libm::expm1(rate * way);
    }

    /// How likely neither a ping over this distance is answered nor those of `helpers`, although the
    /// target lives. Asking a helper makes the way a link longer.
    pub fn silence(&self, distance: f64, helpers: u32) -> f64 {
        let lost = |links| -libm::expm1(-self.rate() * links);
        let way = self.round_trip(distance);
        (0..helpers).fold(lost(way), |all, _| all * lost(way + 2.0))
    }

    /// How likely so many messages over this distance do not arrive, although their sender lives.
    pub fn missed(&self, distance: f64, messages: u32) -> f64 {
        let lost = -libm::expm1(-self.rate() * self.round_trip(distance) / 2.0);
        libm::pow(lost, f64::from(messages))
    }

    /// Losses a link.
    fn rate(&self) -> f64 {
        (PRIOR_LOST + self.lost) / (PRIOR_TRAVELLED + self.travelled)
    }

    fn fade(&mut self) {
        self.lost *= KEPT;
        self.travelled *= KEPT;
    }

    /// In links. A distance that is not known is taken for one link.
    fn round_trip(&self, distance: f64) -> f64 {
        let links = distance / self.link;
        if links.is_finite() { 2.0 * links.clamp(0.01, 1e4) } else { 2.0 }
    }
}

/// One message in a hundred is lost on a link until that is known better; the weight of ten answered pings
/// to a neighbour. Arbitrary; a prior of nothing would let everybody accuse the world when it starts.
const PRIOR_LOST: f64 = 0.2;
const PRIOR_TRAVELLED: f64 = 20.0;
/// What remains of the past after each ping: the last 256 or so count.
const KEPT: f64 = 1.0 - 1.0 / 256.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    /// Feeds it pings at mixed distances over links that lose a share of messages.
    fn learn(loss: f64, pings: u32) -> Doubt {
        let mut doubt = Doubt::new(4.0);
        let mut rng = Seed::new(5).rng();
        for _ in 0..pings {
            let links = 1 + rng.below(3) * rng.below(6);
            let distance = 4.0 * links as f64;
            let survives = libm::pow(1.0 - loss, 2.0 * links as f64);
            if rng.chance(survives) {
                doubt.answered(distance);
            } else {
                doubt.unanswered(distance);
            }
        }
        doubt
    }

    #[test]
    fn the_estimate_finds_the_loss_of_a_link() {
        for loss in [0.02, 0.05, 0.1, 0.2, 0.4] {
            let mean =
                (0..20).map(|round| learn(loss, 500 + 100 * round).rate()).sum::<f64>() / 20.0;
            let rate = -libm::log1p(-loss);
            assert!((mean / rate - 1.0).abs() < 0.25, "loss {loss}: {mean} for {rate}");
        }
    }

    #[test]
    fn one_silence_is_proof_where_nothing_is_lost_and_little_where_much_is() {
        let quiet = learn(0.0, 300);
        assert!(quiet.silence(4.0, 3) < 1e-8 && quiet.silence(60.0, 3) < 1e-3);
        let noisy = learn(0.05, 300);
        assert!(noisy.silence(4.0, 3) < 2e-3, "{noisy:?}");
        assert!(noisy.silence(40.0, 3) > 0.05, "{noisy:?}");
        assert!(noisy.silence(40.0, 3) < noisy.silence(40.0, 0));
    }

    #[test]
    fn it_unlearns_what_is_no_longer_true() {
        let mut doubt = learn(0.3, 400);
        let before = doubt.silence(4.0, 0);
        (0..1_000).for_each(|_| doubt.answered(4.0));
        assert!(doubt.silence(4.0, 0) < before / 20.0);
    }

    #[test]
    fn odd_distances_do_no_harm() {
        for distance in [f64::NAN, f64::INFINITY, 0.0, -3.0, 1e300] {
            let mut doubt = Doubt::new(distance);
            doubt.unanswered(distance);
            doubt.answered(distance);
            let silence = doubt.silence(distance, 3);
            assert!((0.0..=1.0).contains(&silence), "{distance}: {silence}");
        }
    }
}
