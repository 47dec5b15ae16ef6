//! As much of MessagePack as Serf answers with.

use std::io::Read;

use serde_json::{Map, Value};

/// More than that no answer holds, and no broken one may make us allocate.
const LARGEST: usize = 1 << 20;

/// The next value, if there is one and it is understood. What is not text becomes text.
pub(crate) fn read(from: &mut impl Read) -> Option<Value> {
    read_within(from, 16)
}

fn read_within(from: &mut impl Read, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let tag = number(from, 1)?;
    let short = tag as usize;
    Some(match tag {
        0x00..=0x7f => tag.into(),
        0x80..=0x8f => map(from, short & 0x0f, depth)?,
        0x90..=0x9f => array(from, short & 0x0f, depth)?,
        0xa0..=0xbf => text(from, short & 0x1f)?,
        0xc0 => Value::Null,
        0xc2 => false.into(),
        0xc3 => true.into(),
        0xc4 | 0xd9 => text_of(from, 1)?,
        0xc5 | 0xda => text_of(from, 2)?,
        0xc6 | 0xdb => text_of(from, 4)?,
        0xcc => number(from, 1)?.into(),
        0xcd => number(from, 2)?.into(),
        0xce => number(from, 4)?.into(),
        0xcf => number(from, 8)?.into(),
        0xd0 => i64::from(number(from, 1)? as u8 as i8).into(),
        0xd1 => i64::from(number(from, 2)? as u16 as i16).into(),
        0xd2 => i64::from(number(from, 4)? as u32 as i32).into(),
        0xd3 => (number(from, 8)? as i64).into(),
        0xdc => length(from, 2).and_then(|length| array(from, length, depth))?,
        0xdd => length(from, 4).and_then(|length| array(from, length, depth))?,
        0xde => length(from, 2).and_then(|length| map(from, length, depth))?,
        0xdf => length(from, 4).and_then(|length| map(from, length, depth))?,
        0xe0..=0xff => i64::from(tag as u8 as i8).into(),
        _ => return None,
    })
}

/// Big-endian.
fn number(from: &mut impl Read, bytes: usize) -> Option<u64> {
    let mut number = [0; 8];
    from.read_exact(&mut number[8 - bytes..]).ok()?;
    Some(u64::from_be_bytes(number))
}

fn length(from: &mut impl Read, bytes: usize) -> Option<usize> {
    usize::try_from(number(from, bytes)?).ok().filter(|&length| length <= LARGEST)
}

fn text_of(from: &mut impl Read, bytes: usize) -> Option<Value> {
    let length = length(from, bytes)?;
    text(from, length)
}

fn text(from: &mut impl Read, length: usize) -> Option<Value> {
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned().into())
}

fn array(from: &mut impl Read, length: usize, depth: usize) -> Option<Value> {
    (0..length).map(|_| read_within(from, depth)).collect::<Option<Vec<_>>>().map(Value::Array)
}

fn map(from: &mut impl Read, length: usize, depth: usize) -> Option<Value> {
    let mut entry = || {
        let key = read_within(from, depth)?;
        Some((key.as_str()?.to_owned(), read_within(from, depth)?))
    };
    (0..length).map(|_| entry()).collect::<Option<Map<_, _>>>().map(Value::Object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_read() {
        let mut bytes = &b"\x94\xff\xcd\x01\x00\x82\xa1a\xc0\xa1b\xc3\xda\x00\x02hi"[..];
        let expected = serde_json::json!([-1, 256, {"a": null, "b": true}, "hi"]);
        assert_eq!(read(&mut bytes), Some(expected));
    }

    #[test]
    fn what_is_cut_short_too_long_or_too_deep_is_not_read() {
        for wrong in [&b""[..], b"\xa5hi", b"\xdb\xff\xff\xff\xff", b"\xc1", &[0x91; 40]] {
            assert_eq!(read(&mut &*wrong), None, "{wrong:?}");
        }
    }
}
