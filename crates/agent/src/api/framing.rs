//! Where a request ends.
//!
//! A request that gives both its length and chunks is read one way by one server and another way by the next: what the first
//! takes for a body the second takes for a request. The library that parses requests drops one of the two without a word, so
//! that they must be looked for in the bytes it is given.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether a connection has carried a request whose end is in doubt. Nothing on it is answered from then on.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubt(Arc<AtomicBool>);

impl Doubt {
    pub(super) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Looks through all that a peer sends, line by line. Bodies are not told from heads: who puts lines into a body that look
/// like both headers is refused, too, and misses nothing. An empty line ends a head, here as for the parser.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// How the present line begins, in lower case.
    line: Vec<u8>,
    has_length: bool,
    has_coding: bool,
    doubt: Doubt,
}

impl Heads {
    pub(super) fn doubt(&self) -> Doubt {
        self.doubt.clone()
    }

    pub(super) fn read(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.end_of_line();
            } else if self.line.len() < CODING.len() {
                self.line.push(byte.to_ascii_lowercase());
            }
        }
    }

    fn end_of_line(&mut self) {
        if matches!(&*self.line, b"" | b"\r") {
            (self.has_length, self.has_coding) = (false, false);
        }
        self.has_length |= self.line.starts_with(LENGTH);
        self.has_coding |= self.line.starts_with(CODING);
        if self.has_length && self.has_coding {
            self.doubt.0.store(true, Ordering::Relaxed);
        }
        self.line.clear();
    }
}

const LENGTH: &[u8] = b"content-length:";
const CODING: &[u8] = b"transfer-encoding:";

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts(text: &str, piece: usize) -> bool {
        let mut heads = Heads::default();
        text.as_bytes().chunks(piece).for_each(|bytes| heads.read(bytes));
        heads.doubt().is_there()
    }

    #[test]
    fn a_head_with_both_is_found_wherever_it_is_cut() {
        let first = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
        for (text, both) in [
            ("POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", true),
            ("POST / HTTP/1.1\r\ntransfer-encoding:chunked\r\nCONTENT-LENGTH:2\r\n\r\n", true),
            ("POST / HTTP/1.1\nTransfer-Encoding: chunked\nX: y\nContent-Length: 2\n\n", true),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", false),
            ("POST / HTTP/1.1\r\nX-Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        ] {
            for piece in 1..text.len() {
                assert_eq!(doubts(text, piece), both, "{text:?} in pieces of {piece}");
                // On a connection that is used again, and has had the other header before.
                assert_eq!(
                    doubts(&format!("{first}{text}"), piece),
                    both,
                    "{text:?} after {first:?}"
                );
            }
        }
    }
}
