//! Messages on their way.

use bellwether_proto::Peer;

/// Messages on their way, each kept once however many receivers it has.
pub(super) struct Parcels<T> {
    slots: Vec<Parcel<T>>,
    free: Vec<u32>,
}

struct Parcel<T> {
    sender: Peer,
    copies: u32,
    message: T,
}

impl<T> Parcels<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(super) fn store(&mut self, sender: Peer, message: T, copies: u32) -> u32 {
        let parcel = Parcel { sender, copies, message };
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = parcel;
            return index;
        }
        self.slots.push(parcel);
        (self.slots.len() - 1) as u32
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.free.clear();
    }

    #[inline]
    pub(super) fn sender(&self, index: u32) -> Peer {
        self.slots[index as usize].sender
    }

    #[inline]
    pub(super) fn message(&self, index: u32) -> &T {
        &self.slots[index as usize].message
    }

    /// So many more will take it.
    #[inline]
    pub(super) fn share(&mut self, index: u32, copies: u32) {
        self.slots[index as usize].copies += copies;
    }

    #[inline]
    pub(super) fn release(&mut self, index: u32) {
        let parcel = &mut self.slots[index as usize];
        parcel.copies -= 1;
        if parcel.copies == 0 {
            self.free.push(index);
        }
    }
}
