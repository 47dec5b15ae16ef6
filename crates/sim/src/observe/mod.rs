//! What is watched and measured while a run goes on.

pub mod agreement;
pub mod announce;
pub mod central;
pub mod detection;
pub mod election;
pub mod eventual;
pub mod log;
pub mod membership;
pub mod metric;
pub mod node;
pub mod requests;
pub mod ring;
pub mod traffic;

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
