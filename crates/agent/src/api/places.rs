//! Who holds how many connections.
//!
//! A place is held by a caller: a user on the local socket, an address elsewhere. No caller gets all places, and whoever holds
//! one without asking anything gets out of the way of those who come: the oldest such connection is closed, of the caller
//! that has reached its share, or of the one that has most. Connections that are being answered stay.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use tokio::sync::Notify;

use crate::host::refusals::{Refusals, Refused};

/// Who holds a connection.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Caller {
    /// Whoever is at an address.
    Address(IpAddr),
    /// A user of this machine.
    User(u32),
}

impl Caller {
    /// One is counted once: all of this machine is one address, and so is the part of an IPv6 network whose addresses a host
    /// gives itself.
    pub(super) fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            address if address.is_loopback() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V6(address) => {
                let network = u128::from(address) >> HOST_BITS << HOST_BITS;
                IpAddr::V6(Ipv6Addr::from(network))
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// How many places there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Connections.
    pub(super) all: usize,
    /// Of one caller.
    pub(super) each: usize,
    /// Of all those, for answers that wait for something to happen.
    pub(super) streams: usize,
    /// Of one caller.
    pub(super) streams_each: usize,
}

/// Which of the two is counted for.
pub(super) type Which = fn(&Refusals) -> &Refused;

/// All places of a listener. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Room>);

#[derive(Debug)]
struct Room {
    limits: Limits,
    refusals: Arc<Refusals>,
    which: Which,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    /// By number: the oldest first.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    caller: Caller,
    /// How much is being answered on it.
    busy: usize,
    /// Of that, what waits for something to happen.
    streams: usize,
    out: Arc<Notify>,
}

impl Places {
    pub(super) fn new(limits: Limits, refusals: Arc<Refusals>, which: Which) -> Self {
        Self(Arc::new(Room { limits, refusals, which, held: Mutex::default() }))
    }

    /// A place, which somebody who asks nothing may have to leave for it.
    pub(super) fn enter(&self, caller: Caller) -> Option<Place> {
        let (limits, mut held) = (self.0.limits, self.held());
        if held.of(caller) >= limits.each && !held.make_way(Some(caller), self.refused())
            || held.connections.len() >= limits.all && !held.make_way(None, self.refused())
        {
            self.refused().connections.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let (number, out) = (held.next, Arc::new(Notify::new()));
        held.next += 1;
        let connection = Connection { caller, busy: 0, streams: 0, out: Arc::clone(&out) };
        held.connections.insert(number, connection);
        Some(Place(Arc::new(Seat { places: self.clone(), number, out })))
    }

    pub(super) fn refused(&self) -> &Refused {
        (self.0.which)(&self.0.refusals)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn of(&self, caller: Caller) -> usize {
        self.connections.values().filter(|one| one.caller == caller).count()
    }

    /// Closes the oldest connection of this caller, or of the one that has most, on which nothing is answered.
    fn make_way(&mut self, caller: Option<Caller>, refused: &Refused) -> bool {
        let idle = |one: &&Connection| one.busy == 0;
        let most = || {
            let callers = self.connections.values().filter(idle).map(|one| one.caller);
            callers.max_by_key(|&caller| self.of(caller))
        };
        let Some(caller) = caller.or_else(most) else { return false };
        let mut those = self.connections.iter().filter(|(_, one)| one.caller == caller);
        let Some((&number, _)) = those.find(|(_, one)| idle(one)) else { return false };
        if let Some(connection) = self.connections.remove(&number) {
            connection.out.notify_one();
            refused.idle.fetch_add(1, Ordering::Relaxed);
        }
        true
    }
}

/// A place of one connection, until the last clone is dropped or others need it.
#[derive(Clone, Debug)]
pub(super) struct Place(Arc<Seat>);

#[derive(Debug)]
struct Seat {
    places: Places,
    number: u64,
    out: Arc<Notify>,
}

impl Place {
    /// Waits until others need it.
    pub(super) async fn lost(&self) {
        self.0.out.notified().await;
    }

    /// Something is answered, as long as this is held.
    pub(super) fn answering(&self) -> Answering {
        self.0.change(|one| one.busy += 1);
        Answering(self.clone(), false)
    }

    /// The same for an answer that waits for something to happen, if there is a place for it.
    pub(super) fn streaming(&self) -> Option<Answering> {
        let places = &self.0.places;
        let (limits, mut held) = (places.0.limits, places.held());
        let caller = held.connections.get(&self.0.number)?.caller;
        let streams = |which: &dyn Fn(&Connection) -> bool| -> usize {
            held.connections.values().filter(|one| which(one)).map(|one| one.streams).sum()
        };
        if streams(&|_| true) >= limits.streams
            || streams(&|one| one.caller == caller) >= limits.streams_each
        {
            places.refused().streams.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let one = held.connections.get_mut(&self.0.number)?;
        (one.busy, one.streams) = (one.busy + 1, one.streams + 1);
        Some(Answering(self.clone(), true))
    }
}

impl Seat {
    fn change(&self, change: impl FnOnce(&mut Connection)) {
        // It may have been lost.
        self.places.held().connections.get_mut(&self.number).map(change);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.places.held().connections.remove(&self.number);
    }
}

/// That something is answered, and whether it waits for something to happen.
#[derive(Debug)]
pub(super) struct Answering(Place, bool);

impl Drop for Answering {
    fn drop(&mut self) {
        let streams = usize::from(self.1);
        self.0.0.change(|one| (one.busy, one.streams) = (one.busy - 1, one.streams - streams));
    }
}

/// Of an IPv6 address, those that a host chooses.
const HOST_BITS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        let limits = Limits { all: 6, each: 4, streams: 3, streams_each: 2 };
        Places::new(limits, Arc::default(), |refusals| &refusals.http)
    }

    fn counted(places: &Places, reason: &str) -> u64 {
        let of = places.0.refusals.all().find(|one| (one.0, one.1) == ("http", reason));
        of.unwrap().2
    }

    async fn is_lost(place: &Place) -> bool {
        tokio::time::timeout(std::time::Duration::ZERO, place.lost()).await.is_ok()
    }

    #[test]
    fn a_caller_is_one_however_many_addresses_it_has() {
        let at = |text: &str| Caller::at(text.parse().unwrap());
        assert_eq!(at("127.0.0.1"), at("127.9.8.7"));
        assert_eq!(at("127.0.0.1"), at("::1"));
        assert_eq!(at("192.0.2.1"), at("::ffff:192.0.2.1"));
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:ffff:0:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }

    #[tokio::test]
    async fn who_asks_nothing_makes_way_and_who_is_answered_stays() {
        let places = places();
        let [greedy, other] = [Caller::User(7), Caller::User(8)];
        let held: Vec<Place> = (0..4).map(|_| places.enter(greedy).unwrap()).collect();
        let answered = held[0].answering();
        let _fifth = places.enter(greedy).expect("the second makes way");
        assert!(!is_lost(&held[0]).await && is_lost(&held[1]).await, "the oldest that is idle");
        assert_eq!(counted(&places, "idle"), 1);
        // All six are taken, and the greedy one makes way for the others, too.
        let others: Vec<Place> = (0..3).map(|_| places.enter(other).unwrap()).collect();
        assert!(is_lost(&held[2]).await);
        for place in &others {
            assert!(!is_lost(place).await);
        }
        drop(answered);
        let busy: Vec<Answering> = others.iter().map(Place::answering).collect();
        let more = places.enter(other).unwrap();
        assert!(is_lost(&held[0]).await, "it was answered, and is idle now");
        let _busy = (busy, more.answering());
        assert!(places.enter(other).is_none(), "its share is taken, and all are answered");
        assert_eq!(counted(&places, "connections"), 1);
    }

    #[test]
    fn no_caller_gets_all_streams() {
        let places = places();
        let [greedy, other] = [7, 8].map(|user| places.enter(Caller::User(user)).unwrap());
        let first = greedy.streaming().unwrap();
        let _second = greedy.streaming().unwrap();
        assert!(greedy.streaming().is_none());
        let _third = other.streaming().expect("one is left for others");
        drop(first);
        assert!(greedy.streaming().is_some());
        assert_eq!(counted(&places, "streams"), 1);
        drop(greedy);
        assert_eq!(places.held().connections.len(), 2, "streams keep their connection's place");
    }
}
