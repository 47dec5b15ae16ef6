//! Whether a member is where it says it is.
//!
//! A member that is heard from another address than those it says is asked at those, [`TRIES`] times, a second apart. If
//! it answers there, it has several addresses, and all is well. If not, what it says is wrong, or nobody gets through to
//! it: we reach it only as long as we hear it, and those that know it from hearsay do not. That is found once, and anew
//! when it says something else.

use std::net::SocketAddr;

use bellwether_proto::{Duration, NodeId, Time};

/// A member that does not answer where it says it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Misplaced {
    /// The identity of the member.
    pub id: NodeId,
    /// Where it was heard from.
    pub heard: SocketAddr,
    /// Where it says it is.
    pub said: Vec<SocketAddr>,
}

/// How far it has been looked into.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// As it says it, whether or not anybody can be there.
    said: Vec<SocketAddr>,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    None,
    /// So often, and when last.
    Asking(u8, Time),
    /// It was heard at such an address, or found not to be there.
    Over,
}

/// What is to be done about it.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Asked {
    /// Nothing.
    Nobody,
    /// Say hello there.
    At(SocketAddr),
    /// Tell of it: nobody has answered at any of these.
    InVain(Vec<SocketAddr>),
}

impl Doubt {
    /// It says that it is at these.
    pub(super) fn on_said(&mut self, said: &[SocketAddr]) {
        if self.said != said {
            *self = Self { said: said.to_vec(), state: State::None };
        }
    }

    /// It has answered at one of them.
    pub(super) fn on_answer(&mut self) {
        self.state = State::Over;
    }

    /// It was heard from there. Of what it says, `usable` can be written to.
    pub(super) fn on_heard(
        &mut self,
        now: Time,
        address: SocketAddr,
        usable: &[SocketAddr],
    ) -> Asked {
        match self.state {
            State::Over => Asked::Nobody,
            // Whoever says nothing is where it is heard from.
            _ if self.said.is_empty() => Asked::Nobody,
            _ if usable.contains(&address) => {
                self.state = State::Over;
                Asked::Nobody
            }
            State::Asking(_, last) if now.since(last) < PAUSE => Asked::Nobody,
            State::Asking(TRIES.., _) => {
                self.state = State::Over;
                Asked::InVain(self.said.clone())
            }
            State::None => {
                // One packet may have been sent on by somebody in between.
                self.state = State::Asking(0, now);
                Asked::Nobody
            }
            State::Asking(tries, _) => {
                self.state = State::Asking(tries + 1, now);
                match usable {
                    [] => Asked::Nobody,
                    some => Asked::At(some[usize::from(tries) % some.len()]),
                }
            }
        }
    }
}

/// One would be enough, if none were lost: of a fifth lost, five are in one case of two hundred.
const TRIES: u8 = 5;
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn second(count: u64) -> Time {
        Time::ZERO + Duration::from_secs(count)
    }

    #[test]
    fn who_is_heard_elsewhere_is_asked_where_it_says_and_told_of_once() {
        let mut doubt = Doubt::default();
        assert_eq!(doubt.on_heard(second(0), at(9), &[]), Asked::Nobody, "it has said nothing yet");
        let said = [at(1), at(2)];
        doubt.on_said(&said);
        assert_eq!(doubt.on_heard(second(0), at(9), &said), Asked::Nobody, "once is no proof");
        for (time, asked) in [(1, at(1)), (2, at(2)), (3, at(1)), (4, at(2)), (5, at(1))] {
            assert_eq!(doubt.on_heard(second(time), at(9), &said), Asked::At(asked));
            assert_eq!(doubt.on_heard(second(time), at(9), &said), Asked::Nobody, "not so soon");
            doubt.on_said(&said);
        }
        assert_eq!(doubt.on_heard(second(6), at(9), &said), Asked::InVain(said.to_vec()));
        assert_eq!(doubt.on_heard(second(9), at(9), &said), Asked::Nobody);
        doubt.on_said(&said[1..]);
        assert_eq!(doubt.on_heard(second(9), at(9), &said[1..]), Asked::Nobody);
        assert_eq!(doubt.on_heard(second(10), at(9), &said[1..]), Asked::At(at(2)), "another word");
    }

    #[test]
    fn who_answers_or_is_heard_where_it_says_is_not_doubted() {
        for answers in [true, false] {
            let mut doubt = Doubt::default();
            doubt.on_said(&[at(1)]);
            assert_eq!(doubt.on_heard(second(0), at(9), &[at(1)]), Asked::Nobody);
            assert_eq!(doubt.on_heard(second(1), at(9), &[at(1)]), Asked::At(at(1)));
            if answers {
                doubt.on_answer();
            } else {
                assert_eq!(doubt.on_heard(second(1), at(1), &[at(1)]), Asked::Nobody);
            }
            for time in 2..9 {
                assert_eq!(doubt.on_heard(second(time), at(9), &[at(1)]), Asked::Nobody);
            }
        }
    }

    #[test]
    fn where_nobody_can_be_nobody_is_asked() {
        let mut doubt = Doubt::default();
        doubt.on_said(&[at(0)]);
        let heard: Vec<Asked> =
            (0..9).map(|time| doubt.on_heard(second(time), at(9), &[])).collect();
        assert_eq!(heard.iter().filter(|asked| **asked != Asked::Nobody).count(), 1);
        assert_eq!(heard[6], Asked::InVain(vec![at(0)]));
    }
}
