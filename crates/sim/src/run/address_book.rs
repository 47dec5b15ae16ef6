//! Address books: who is how far away, and whom a node hears directly, as memberships are told.

use std::cell::LazyCell;

use bellwether_proto::{
    Boot, NodeId, Peer,
    membership::medley::{Contact, ContactChange},
};

use crate::world::{Network, Placed};

/// Everybody's address book: who is how far away, and whom it hears directly. The first `members` nodes begin
/// their first life with each other on their lists; all others, and who starts again, must ask to join.
pub(super) fn contacts(network: &Network, peer: Peer, members: u32) -> Vec<Contact> {
    let me = peer.id.get() as u32;
    let founding = me < members && peer.boot == Boot::new(1);
    let lengths = network.path_lengths(me);
    // Both ascend.
    let mut near = network.neighbours(me).map(|near| near.iter().copied().peekable());
    let mut contacts = Vec::with_capacity(lengths.len());
    // Beyond any known path, as far as the farthest and a little more.
    let farthest =
        LazyCell::new(|| lengths.iter().flatten().fold(0.0_f64, |far, &length| far.max(length)));
    for (node, length) in (0..).zip(&lengths) {
        let neighbour = near.as_mut().is_none_or(|near| near.next_if_eq(&node).is_some());
        if node != me {
            contacts.push(Contact {
                id: NodeId::new(u64::from(node)),
                distance: length.unwrap_or_else(|| *farthest + 1.0).max(0.1) as f32,
                neighbour,
                member: founding && node < members,
            });
        }
    }
    contacts
}

/// Puts the nodes elsewhere in the address book; returns whom it tells what is no longer as it was.
pub(super) fn readings(book: &mut Network, placed: &Placed) -> Vec<(u32, ContactChange)> {
    let old = book.clone();
    book.rearrange(placed.clone());
    let entries = |network, node| contacts(network, Peer::new(node, Boot::new(1)), 0);
    let mut readings = Vec::new();
    for node in 0..placed.positions.len() as u32 {
        let id = NodeId::new(u64::from(node));
        for (before, after) in entries(&old, id).into_iter().zip(entries(book, id)) {
            if before != after {
                let Contact { id, distance, neighbour, .. } = after;
                readings.push((node, ContactChange::Near { id, distance, neighbour }));
            }
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use bellwether_proto::{Duration, Seed};

    use super::*;
    use crate::{
        scenario::{self, Delay, DelayLaw, Loss, MoveLaw, Per, Placement, Routing},
        world::{displace, place},
    };

    #[test]
    fn who_is_told_all_readings_has_the_address_book_of_the_new_places() {
        let placement = Placement::Random { side: 15.0, range: 4.0, robust: false };
        let delay = Delay { law: DelayLaw::Fixed(Duration::ZERO), per: Per::Hop };
        let described = scenario::NetworkSettings {
            nodes: 49,
            start_spread: Duration::ZERO,
            placement: placement.clone(),
            delay,
            loss: Loss::None,
            routing: Routing::Length,
            mobility: Default::default(),
            radio: Default::default(),
        };
        let mut rng = Seed::new(1).rng();
        let placed = place(&placement, 49, &mut rng).unwrap();
        let mut book = Network::new(&described, placed, 49, Seed::new(2).rng());
        (0..49).for_each(|node| book.set_up(node, true));
        let all = |book: &Network| -> Vec<Vec<Contact>> {
            let peer = |node| Peer::new(NodeId::new(node), Boot::new(1));
            (0..49).map(|node| contacts(book, peer(node), 0)).collect()
        };
        let mut known = all(&book);
        let step = (MoveLaw::Polar, 8.0);
        let placed = displace(book.placed(), &placement, &[3, 40], step, |_| true, &mut rng);
        let readings = readings(&mut book, &placed.unwrap());
        // At least the movers learn of each other, and not everything has changed for everybody.
        assert!((2..49 * 48).contains(&readings.len()), "{}", readings.len());
        for (node, change) in readings {
            let ContactChange::Near { id, distance, neighbour } = change else { panic!() };
            let entry = known[node as usize].iter_mut().find(|entry| entry.id == id).unwrap();
            assert_ne!((entry.distance, entry.neighbour), (distance, neighbour));
            (entry.distance, entry.neighbour) = (distance, neighbour);
        }
        assert_eq!(known, all(&book));
    }
}
