//! What a node says of itself besides its addresses and where it stands: its name, its position, its tags, and how its
//! elections are set. It travels in the [`Details`] of its introduction.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec::Vec,
};
use core::hash::{Hash, Hasher};

use crate::{
    id::ElectionId,
    membership::medley::{Details, DetailsTooLong},
    stack::{Profile, Standing},
    wire::{DecodeError, Reader, Sink as _},
};

/// Where a node is, in metres from a point that all of a cluster have agreed on.
///
/// ```
/// use bellwether_proto::node::Position;
///
/// let [here, there] = [(0.0, 0.0), (3.0, 4.0)].map(|(x, y)| Position { x, y });
/// assert_eq!(here.distance(there), 5.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Metres along the first axis, to the east, say.
    pub x: f32,
    /// Metres along the second axis, to the north, then.
    pub y: f32,
}

impl Position {
    /// The largest coordinate, either way: distances raised to any exponent remain numbers.
    pub const FARTHEST: f64 = 1e6;

    /// How far it is to `other`, in metres.
    pub fn distance(self, other: Self) -> f32 {
        let [x, y] = [other.x - self.x, other.y - self.y].map(f64::from);
        libm::sqrt(x * x + y * y) as f32
    }
}

impl Hash for Position {
    fn hash<H: Hasher>(&self, state: &mut H) {
        [self.x, self.y].map(f32::to_bits).hash(state);
    }
}

/// What a node tells all others of itself.
///
/// ```
/// use bellwether_proto::node::{About, Position};
///
/// let about = About {
///     name: "kitchen".to_owned(),
///     position: Some(Position { x: 2.0, y: 0.5 }),
///     tags: [("rack".to_owned(), "b2".to_owned())].into(),
///     ..About::default()
/// };
/// ```
#[derive(Clone, Debug, Default, Hash, PartialEq)]
pub struct About {
    /// The node's name, unique in its cluster.
    pub name: String,
    /// Where it is, if that matters.
    pub position: Option<Position>,
    /// What others may read about it.
    pub tags: BTreeMap<String, String>,
    /// How its elections are set, in bytes that its host and others' compare.
    pub terms: BTreeMap<ElectionId, Vec<u8>>,
}

impl About {
    /// The details that carry it in an introduction.
    ///
    /// # Errors
    ///
    /// [`DetailsTooLong`] says by how much.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub fn to_details(
        &self,
        standings: Vec<(ElectionId, Standing)>,
    ) -> Result<Details, DetailsTooLong> {
        let mut rest = Vec::new();
        put_text(&mut rest, &self.name);
        rest.u8(u8::from(self.position.is_some()));
        if let Some(Position { x, y }) = self.position {
            [x, y].into_iter().for_each(|value| rest.u32(value.to_bits()));
        }
        for (group, _) in &standings {
            let terms = self.terms.get(group).map_or(&[][..], Vec::as_slice);
            rest.varint(terms.len() as u64);
            rest.bytes(terms);
        }
        for (key, value) in &self.tags {
            put_text(&mut rest, key);
            put_text(&mut rest, value);
        }
        Profile { standings, rest }.to_details()
    }

    /// What somebody else said of itself. Nonsense after the name is left out: who is unreadable to us may be newer than we.
    #[cfg_attr(not(feature = "research"), doc(hidden))]
    pub fn from_details(details: &Details) -> Option<Self> {
        let profile = Profile::from_details(details).ok()?;
        let mut reader = Reader::new(&profile.rest);
        let name = text(&mut reader).ok().filter(|name| !name.is_empty())?;
        let Ok(position) = position(&mut reader) else {
            return Some(Self { name, ..Self::default() });
        };
        let (mut tags, mut terms) = (BTreeMap::new(), BTreeMap::new());
        for (group, _) in profile.standings {
            let Ok(told) = told(&mut reader) else {
                return Some(Self { name, position, ..Self::default() });
            };
            terms.insert(group, told);
        }
        while let Ok(key) = text(&mut reader)
            && let Ok(value) = text(&mut reader)
        {
            tags.insert(key, value);
        }
        Some(Self { name, position, tags, terms })
    }
}

/// Whether this may be a node's or an election's name, and if not, what is wrong with it.
///
/// # Errors
///
/// What is wrong, to be read after the name: "is empty".
///
/// ```
/// use bellwether_proto::node::check_name;
///
/// assert_eq!(check_name("kitchen-2"), Ok(()));
/// assert_eq!(check_name("two words"), Err("has ' ' in it".to_owned()));
/// ```
pub fn check_name(text: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() {
        return Err("is empty".to_string());
    }
    if text.len() > LONGEST_NAME {
        return Err(alloc::format!("has {} characters", text.chars().count()));
    }
    if let Some(wrong) = text.chars().find(|&c| !fits(c)) {
        return Err(alloc::format!("has {wrong:?} in it"));
    }
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err("starts with neither letter nor digit".to_string());
    }
    Ok(())
}

/// A label of DNS, so that host names are names.
const LONGEST_NAME: usize = 63;

fn put_text(rest: &mut Vec<u8>, text: &str) {
    rest.varint(text.len() as u64);
    rest.bytes(text.as_bytes());
}

/// A place that is none counts as not said.
fn position(reader: &mut Reader<'_>) -> Result<Option<Position>, DecodeError> {
    if reader.kind("position", 2)? == 0 {
        return Ok(None);
    }
    let mut coordinate = || reader.u32("position").map(f32::from_bits);
    let [x, y] = [coordinate()?, coordinate()?];
    let sane = |value: f32| f64::from(value).abs() <= Position::FARTHEST;
    Ok((sane(x) && sane(y)).then_some(Position { x, y }))
}

fn told(reader: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
    let length = reader.count("terms", 1)?;
    reader.bytes("terms", length).map(<[u8]>::to_vec)
}

fn text(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let length = reader.count("text", 1)?;
    let bytes = reader.bytes("text", length)?;
    // Shown to people: nothing that could move their cursor.
    Ok(String::from_utf8_lossy(bytes).chars().filter(|char| !char.is_control()).collect())
}

#[cfg(test)]
mod tests {
    use alloc::{borrow::ToOwned as _, vec};

    use super::*;

    #[test]
    fn name_position_and_tags_arrive_as_they_were_sent() {
        let tags = [("rack", "b2"), ("empty", "")].map(|(k, v)| (k.to_string(), v.to_owned()));
        let mut about = About { name: "küche".to_string(), tags: tags.into(), ..About::default() };
        let stands = vec![(ElectionId::named("backup"), Standing { observer: true, attribute: 9 })];
        let details = about.to_details(stands.clone()).unwrap();
        about.terms.insert(ElectionId::named("backup"), vec![]);
        assert_eq!(About::from_details(&details), Some(about.clone()), "nothing told of it");
        about.terms.insert(ElectionId::named("backup"), vec![3, 0, 255]);
        about.position = Some(Position { x: -2.5, y: 1e6 });
        let placed = about.to_details(stands.clone()).unwrap();
        assert_eq!(About::from_details(&placed), Some(about.clone()));
        about.terms.insert(ElectionId::named("another"), vec![1]);
        assert_eq!(about.to_details(stands.clone()), Ok(placed), "where it does not stand");
        assert_eq!(Profile::from_details(&details).unwrap().standings, stands);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        let about = |rest: &[u8]| {
            let profile = Profile { standings: vec![], rest: rest.to_vec() };
            About::from_details(&profile.to_details().unwrap())
        };
        assert_eq!(about(&[]), None);
        assert_eq!(about(&[0]), None, "no name");
        assert_eq!(about(&[9, b'a']), None, "cut off");
        let named = |name: &str| Some(About { name: name.to_string(), ..About::default() });
        assert_eq!(about(&[1, b'a']), named("a"), "nothing more to say");
        assert_eq!(about(&[1, b'a', 0, 3, b'x']), named("a"));
        assert_eq!(about(&[1, b'a', 1, 0, 0, 0, 0, 0]), named("a"), "half a position");
        let at = |x: f32| [&[1, b'a', 1][..], &x.to_le_bytes(), &[0; 4]].concat();
        assert_eq!(about(&at(f32::NAN)), named("a"), "nowhere");
        assert_eq!(about(&at(2e6)), named("a"), "too far away");
        assert_ne!(about(&at(2e3)), named("a"));
        assert_eq!(about(&[3, b'a', 0x1b, b'b']), named("ab"), "no escape sequences");
    }
}
