//! Hostile bytes: nothing panics, nothing is half read, every error names its place.

use bellwether_proto::{
    ElectionId,
    election::announce,
    node::{Message, packet::Packet},
    wire::{DecodeError, Reader, Sink, Wire},
};
use proptest::prelude::*;

fn packet() -> Vec<u8> {
    let query = announce::Message::Query { sequence: u64::MAX, nonce: u64::MAX, claim: None };
    let mut bytes = Vec::new();
    Message::Announced(ElectionId::named("door"), query).encode(&mut bytes);
    bytes
}

fn read(bytes: &[u8]) -> Result<Message, DecodeError> {
    let mut reader = Reader::new(bytes);
    let packet = Packet::decode(&mut reader)?;
    reader.finish()?;
    Ok(packet.message)
}

#[test]
fn a_packet_cut_anywhere_is_short() {
    let whole = packet();
    for length in 0..whole.len() {
        let error = read(&whole[..length]).unwrap_err();
        assert_eq!(error.reason(), "short", "cut to {length}: {error}");
    }
    assert!(read(&whole).is_ok());
}

#[test]
fn each_wrong_byte_has_its_own_reason() {
    let wrong = |at: usize, value: u8| {
        let mut bytes = packet();
        bytes[at] = value;
        read(&bytes).unwrap_err()
    };
    assert_eq!(wrong(0, 21), DecodeError::UnknownKind { field: "kind", at: 0, found: 21 });
    let last = packet().len() - 1;
    assert_eq!(
        wrong(last, 7).to_string(),
        format!("padding at byte {}: 7 is out of range, at most 0", 25)
    );
    let mut longer = packet();
    longer.push(0);
    // The beginning of a tail.
    let (field, at) = ("tail", last + 2);
    assert_eq!(read(&longer), Err(DecodeError::Short { field, at, needed: 1, left: 0 }));
}

/// Found by fuzzing: introductions were announced, and then there were none of them.
#[test]
fn a_membership_message_has_one_encoding() {
    for bytes in [&[0x00, 0x20, 0x7a, 0x01, 0x00, 0x00][..], &[0x00, 0x8e, 0x7a, 0x01, 0x00, 0x00]]
    {
        let mut reader = Reader::new(bytes);
        if let Ok(packet) = Packet::decode(&mut reader) {
            let mut again = Vec::new();
            packet.encode(&mut again);
            assert_eq!(again, bytes);
        }
    }
    assert!(read(&[0x00, 0x0e, 0x7a, 0x01, 0x00]).is_ok());
    let error = read(&[0x00, 0x8e, 0x7a, 0x01, 0x00, 0x00]).unwrap_err();
    assert_eq!(error.reason(), "malformed", "{error}");
}

/// A body of any length.
#[derive(Clone, Debug, Eq, PartialEq)]
struct List(Vec<u64>);

impl Wire for List {
    fn encode(&self, sink: &mut impl Sink) {
        sink.varint(self.0.len() as u64);
        self.0.iter().for_each(|&item| sink.u64(item));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.count("items", 8)?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(reader.u64("item")?);
        }
        Ok(Self(items))
    }
}

#[test]
fn a_count_is_believed_only_as_far_as_the_bytes_reach() {
    for count in [1, 2, 1 << 20, u64::MAX / 8, u64::MAX] {
        let mut bytes = Vec::new();
        bytes.varint(count);
        bytes.extend([0; 7]);
        let error = List::decode(&mut Reader::new(&bytes)).unwrap_err();
        assert!(matches!(error, DecodeError::BadCount { field: "items", .. }), "{count}: {error}");
    }
}

#[test]
fn a_number_has_one_encoding() {
    for bytes in [
        &[0x80, 0x00][..],
        &[0xff, 0x80, 0x00],
        &[0xff; 10],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
    ] {
        let error = Reader::new(bytes).varint("n").unwrap_err();
        assert_eq!(error, DecodeError::BadVarint { field: "n", at: 0 }, "{bytes:02x?}");
    }
}

proptest! {
    #[test]
    fn numbers_read_back(value: u64, small in 0_u64..300) {
        for value in [value, small, value >> 32] {
            let mut bytes = Vec::new();
            bytes.varint(value);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varint("n"), Ok(value));
            prop_assert!(reader.finish().is_ok());
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_and_then_encode_to_themselves(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in 0_u8..24,
        known_kind: bool,
    ) {
        if known_kind && !bytes.is_empty() {
            bytes[0] = kind;
        }
        if let Ok(read) = read(&bytes) {
            let mut again = Vec::new();
            read.encode(&mut again);
            prop_assert_eq!(read.encoded_len(), bytes.len());
            prop_assert_eq!(again, bytes);
        }
    }
}
