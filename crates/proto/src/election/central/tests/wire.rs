//! Every message comes back from the wire as it was, and nothing else comes from it.

use std::{string::ToString, vec, vec::Vec};

use super::*;
use crate::{
    topology::map::Entry,
    wire::{DecodeError, Reader, Wire},
};

fn entry(of: u64, clock: u64, hears: &[u64]) -> Entry {
    Entry { id: id(of), view: View::new(id(of), clock, hears.iter().copied().map(id)) }
}

fn examples() -> Vec<Message> {
    let entries = [
        entry(0, 0, &[]),
        entry(3, 1 << 40, &[0, 9, u64::MAX]),
        entry(u64::MAX, u64::MAX, &[3, 4]),
    ];
    let update = |add: &[u64], remove: &[u64]| Update {
        source: id(7),
        add: add.iter().copied().map(id).collect(),
        remove: remove.iter().copied().map(id).collect(),
        old: 3,
        new: 5,
    };
    let marks = [Mark { id: id(1), clock: 2, hash: 3 }, Mark { id: id(9), clock: 0, hash: !0 }];
    vec![
        Message::Beacon,
        Message::Known(Vec::new().into()),
        Message::Known(entries.to_vec().into()),
        Message::Updates([update(&[7, 8], &[]), update(&[], &[1, 2, u64::MAX])].into()),
        Message::Entries([].into()),
        Message::Entries(entries.into()),
        Message::Digest { first: id(0), last: id(u64::MAX), marks: marks.into() },
        Message::Claim { leader: id(5), value: 9, sequence: 1 << 33 },
        Message::Join { id: id(5), born: 12, sequence: 1 },
        Message::Lead { id: id(5), born: 12, size: 3, sequence: 1 },
    ]
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    assert_eq!(bytes.len(), message.encoded_len());
    bytes
}

fn decoded(bytes: &[u8]) -> Result<Message, DecodeError> {
    let mut reader = Reader::new(bytes);
    let message = Message::decode(&mut reader)?;
    reader.finish()?;
    Ok(message)
}

#[test]
fn every_message_comes_back() {
    for message in examples() {
        assert_eq!(decoded(&encoded(&message)), Ok(message));
    }
}

#[test]
fn whatever_is_cut_or_changed_is_refused_or_means_something_else() {
    let mut rng = Seed::new(1).rng();
    for message in examples() {
        let bytes = encoded(&message);
        for length in 0..bytes.len() {
            assert!(decoded(&bytes[..length]).is_err(), "{message:?} cut to {length}");
        }
        for _ in 0..2_000 {
            let mut bytes = bytes.clone();
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next() as u8;
            }
            if let Ok(other) = decoded(&bytes) {
                assert_eq!(encoded(&other), bytes, "one encoding for every value");
            }
        }
    }
}

#[test]
fn a_view_without_its_owner_has_no_encoding() {
    let bytes = [1, 1, 5, 0, 1, 5];
    let error = decoded(&bytes).unwrap_err().to_string();
    assert_eq!(error, "neighbours at byte 6: 5 is out of range, at most 0");
    let bytes = [2, 1, 5, 0, 1, 0, 1, 5];
    let error = decoded(&bytes).unwrap_err().to_string();
    assert_eq!(error, "removed at byte 6: 5 is out of range, at most 0");
}

#[test]
fn names_are_written_once() {
    let random = |node: u64| crate::rng::mix(node);
    let mut ids: Vec<u64> = (0..12).map(random).collect();
    ids.sort_unstable();
    let entries: Vec<Entry> = ids.iter().map(|&of| entry(of, 9, &ids)).collect();
    let whole = Message::Entries(entries.clone().into()).encoded_len();
    let plain = Message::Known(entries.into()).encoded_len();
    assert!(whole < 12 * 10 + 12 * 15 && plain > 12 * 12 * 8, "{whole} against {plain}");
}

#[test]
fn sizes_of_the_model() {
    let entries: Vec<Entry> = (0..60).map(|of| entry(of, 9, &[(of + 1) % 60])).collect();
    assert_eq!(Message::Known(entries.into()).model_len(), 60 * (8 + 3));
    assert_eq!(Message::Claim { leader: id(1), value: 2, sequence: 3 }.model_len(), 8);
    assert_eq!(Message::Join { id: id(1), born: 2, sequence: 3 }.model_len(), 4);
}
