//! What is watched and measured while a run goes on.

mod agreement;
mod announce;
mod central;
mod detection;
mod election;
mod eventual;
mod film;
mod keys;
mod log;
mod membership;
mod metric;
mod node;
mod requests;
mod ring;
mod traffic;

pub use self::{
    agreement::Agreement,
    announce::{AnnounceWatch, Announced, Announcement, Converged},
    central::{CentralWatch, Oracle, Standing},
    detection::{Detected, Detection, DetectionWatch},
    election::{ElectionWatch, Until},
    eventual::{EventualMessage, EventualNode, EventualWatch},
    film::{Camera, Opinion, Shot},
    keys::{KeyFindings, KeyWatch},
    log::{Entry, Log, Naming, Namings},
    membership::{MembershipWatch, Promise},
    metric::{Hops, Metric, Summary, Unit},
    requests::{RequestWatch, Round, Served},
    ring::{Findings, RingMember, RingWatch},
};
pub(crate) use self::{node::NodeWatch, traffic::counted};

/// Somebody who knows whom most nodes name as their leader.
pub trait Favourite {
    /// The node that most others name, if they name any.
    fn favourite(&self) -> Option<u32>;
}

impl Favourite for () {
    fn favourite(&self) -> Option<u32> {
        None
    }
}

impl<A: Favourite, B> Favourite for (A, B) {
    fn favourite(&self) -> Option<u32> {
        self.0.favourite()
    }
}
