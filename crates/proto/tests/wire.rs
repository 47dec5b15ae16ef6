//! Hostile bytes: nothing panics, nothing is half read, every error names its place.

use bellwether_proto::{
    Boot, NodeId, Peer,
    election::announce,
    membership::ping,
    wire::{ClusterId, DecodeError, Envelope, HEADER_LEN, MAX_DATAGRAM, Reader, Sink, Wire},
};
use proptest::prelude::*;

const OURS: ClusterId = ClusterId::new(0x0bad_cafe);

fn datagram() -> Vec<u8> {
    let body = ping::Message::Ping { round: 7 };
    let from = Peer::new(NodeId::new(3), Boot::new(2));
    let mut bytes = Vec::new();
    let envelope = Envelope { cluster: OURS, from, group: 1, body };
    envelope.encode_into(&mut bytes).expect("small enough");
    bytes
}

fn read(bytes: &[u8]) -> Result<Envelope<ping::Message>, DecodeError> {
    Envelope::decode(bytes, OURS)
}

#[test]
fn a_datagram_cut_anywhere_is_short() {
    let whole = datagram();
    for length in 0..whole.len() {
        let error = read(&whole[..length]).unwrap_err();
        assert_eq!(error.reason(), "short", "cut to {length}: {error}");
    }
    assert!(read(&whole).is_ok());
}

#[test]
fn each_wrong_header_has_its_own_reason() {
    let wrong = |at: usize, value: u8| {
        let mut bytes = datagram();
        bytes[at] = value;
        read(&bytes).unwrap_err()
    };
    assert_eq!(wrong(0, b'X'), DecodeError::NotOurs { found: *b"XW" });
    assert_eq!(wrong(2, 9), DecodeError::Version { found: 9 });
    assert_eq!(
        wrong(3, 0).to_string(),
        "packet for cluster 000000000badca00, this is 000000000badcafe"
    );
    assert_eq!(wrong(29, 6), DecodeError::Short { field: "body", at: 31, needed: 6, left: 5 });
    assert_eq!(wrong(29, 4), DecodeError::Trailing { at: 35, extra: 1 });
    assert_eq!(wrong(31, 2), DecodeError::UnknownKind { field: "ping", at: 31, found: 2 });
}

#[test]
fn the_limit_is_the_limit() {
    let mut bytes = datagram();
    bytes.resize(MAX_DATAGRAM, 0);
    assert_eq!(read(&bytes).unwrap_err().reason(), "malformed", "short enough to look at");
    bytes.push(0);
    let error = DecodeError::TooLarge { found: MAX_DATAGRAM + 1, limit: MAX_DATAGRAM };
    assert_eq!(read(&bytes), Err(error));
    let body = List(vec![0; 146]);
    let from = Peer::new(NodeId::new(3), Boot::new(2));
    let large = Envelope { cluster: OURS, from, group: 1, body };
    let mut buffer = vec![7];
    assert_eq!(large.encode_into(&mut buffer), Err(error), "it would take {}", large.encoded_len());
    assert_eq!(buffer, [7], "nothing was written");
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
    fn envelopes_read_back_and_know_their_length(
        cluster: u64,
        id: u64,
        boot: u64,
        group: u16,
        items in prop::collection::vec(any::<u64>(), 0..140),
    ) {
        let (cluster, from) = (ClusterId::new(cluster), Peer::new(NodeId::new(id), Boot::new(boot)));
        let sent = Envelope { cluster, from, group, body: List(items) };
        let mut bytes = Vec::new();
        sent.encode_into(&mut bytes).unwrap();
        prop_assert_eq!(bytes.len(), sent.encoded_len());
        prop_assert_eq!(Envelope::decode(&bytes, cluster), Ok(sent));
    }

    #[test]
    fn any_bytes_are_refused_or_read_and_then_encode_to_themselves(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        honest_header: bool,
    ) {
        if honest_header && bytes.len() >= HEADER_LEN {
            let body = (bytes.len() - HEADER_LEN) as u16;
            bytes[..11].copy_from_slice(&datagram()[..11]);
            bytes[29..31].copy_from_slice(&body.to_le_bytes());
        }
        if let Ok(read) = Envelope::<announce::Message>::decode(&bytes, OURS) {
            let mut again = Vec::new();
            read.encode_into(&mut again).unwrap();
            prop_assert_eq!(again, bytes);
        }
    }
}
