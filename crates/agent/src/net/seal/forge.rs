//! What only somebody who means harm would seal: whoever has the key can.

use bellwether_proto::Peer;

use super::{Kind, Sealer};
use crate::net::refusal::Refusal;

impl Sealer {
    /// Appends a genuine packet of any kind and version with any body, for tests with any bytes.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLarge`] or [`Refusal::Exhausted`].
    #[doc(hidden)]
    pub fn forge(
        &mut self,
        version: u8,
        kind: u8,
        to: Peer,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let (kind, to) = match kind & 3 {
            0 => (Kind::Message, Some(to)),
            1 => (Kind::Group, None),
            2 => (Kind::Hello, None),
            _ => (Kind::Welcome, Some(to)),
        };
        self.seal_kind(version & 0x0F, kind, to, body, out)
    }
}
