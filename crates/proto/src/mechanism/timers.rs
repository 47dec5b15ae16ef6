//! The timer table: every deadline a machine keeps, in one place, with its reason.
//!
//! Setting a timer again moves it, clearing it forgets it; a stale timer cannot exist because there is
//! nothing but the table. The host sees one number, the earliest deadline.

use core::fmt;

use crate::time::Time;

/// The kinds of deadline one machine keeps. Declaration order breaks ties at one instant.
pub trait TimerKind: Copy + fmt::Debug + 'static {
    /// Every kind, in declaration order.
    const ALL: &'static [Self];

    /// The position in [`TimerKind::ALL`].
    fn index(self) -> usize;
}

/// Makes an enum a [`TimerKind`]: its variants, in declaration order.
macro_rules! timer_kinds {
    ($timer:ident: $($kind:ident),+) => {
        impl $crate::mechanism::timers::TimerKind for $timer {
            const ALL: &'static [Self] = &[$(Self::$kind),+];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
pub(crate) use timer_kinds;

/// A deadline or none for each of `N` kinds.
///
/// ```
/// use bellwether_proto::{Time, mechanism::timers::{TimerKind, Timers}};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Timer { Retry, GiveUp }
/// impl TimerKind for Timer {
///     const ALL: &'static [Self] = &[Timer::Retry, Timer::GiveUp];
///     fn index(self) -> usize { self as usize }
/// }
///
/// let mut timers = Timers::<Timer, 2>::new();
/// timers.set(Timer::GiveUp, Time::from_micros(9));
/// timers.set(Timer::Retry, Time::from_micros(4));
/// assert_eq!(timers.next(), Some((Time::from_micros(4), Timer::Retry)));
/// assert_eq!(timers.take_due(Time::from_micros(4)), Some(Timer::Retry));
/// assert_eq!(timers.take_due(Time::from_micros(4)), None);
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Timers<K, const N: usize> {
    deadlines: [Time; N],
    kind: core::marker::PhantomData<K>,
}

impl<K: TimerKind, const N: usize> Timers<K, N> {
    /// A table in which nothing is armed.
    pub const fn new() -> Self {
        assert!(K::ALL.len() == N, "one slot for each kind");
        Self { deadlines: [Time::NEVER; N], kind: core::marker::PhantomData }
    }

    /// Arms `kind` for `at`, wherever it stood before.
    #[inline]
    pub fn set(&mut self, kind: K, at: Time) {
        self.deadlines[kind.index()] = at;
    }

    /// Disarms the timer `kind`.
    #[inline]
    pub fn clear(&mut self, kind: K) {
        self.deadlines[kind.index()] = Time::NEVER;
    }

    /// Disarms all of them.
    pub fn clear_all(&mut self) {
        self.deadlines = [Time::NEVER; N];
    }

    /// When `kind` is due, if armed.
    #[inline]
    pub fn deadline(&self, kind: K) -> Option<Time> {
        let at = self.deadlines[kind.index()];
        (at != Time::NEVER).then_some(at)
    }

    /// The earliest deadline and its reason; the first declared on a tie.
    #[inline]
    pub fn next(&self) -> Option<(Time, K)> {
        let (mut first, mut at) = (0, self.deadlines[0]);
        for (index, &deadline) in self.deadlines.iter().enumerate().skip(1) {
            if deadline < at {
                (first, at) = (index, deadline);
            }
        }
        (at != Time::NEVER).then(|| (at, K::ALL[first]))
    }

    /// Takes the earliest timer that is due at `now`, disarming it. Loop until `None`, bearing in
    /// mind that a handler which arms a timer for `now` itself will see it here at once.
    #[inline]
    pub fn take_due(&mut self, now: Time) -> Option<K> {
        let (at, kind) = self.next()?;
        (at <= now).then(|| {
            self.clear(kind);
            kind
        })
    }
}

impl<K: TimerKind, const N: usize> Default for Timers<K, N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Only what is armed, so that a machine's debug output reads as a list of intentions.
impl<K: TimerKind, const N: usize> fmt::Debug for Timers<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(K::ALL.iter().filter_map(|&kind| Some((kind, self.deadline(kind)?))))
            .finish()
    }
}
