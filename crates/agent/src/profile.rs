//! What an agent says of itself besides where it is and where it stands: its name and its tags.

use std::collections::BTreeMap;

use bellwether_proto::{
    membership::medley::{Details, DetailsTooLong},
    stack::{Group, Profile, Standing},
    wire::{DecodeError, Reader, Sink as _},
};

/// Name and tags.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) tags: BTreeMap<String, String>,
}

impl About {
    pub(crate) fn to_details(
        &self,
        standings: Vec<(Group, Standing)>,
    ) -> Result<Details, DetailsTooLong> {
        let mut rest = Vec::new();
        let mut text = |text: &str| {
            rest.varint(text.len() as u64);
            rest.bytes(text.as_bytes());
        };
        text(&self.name);
        for (key, value) in &self.tags {
            text(key);
            text(value);
        }
        Profile { standings, rest }.to_details()
    }

    /// What somebody else said. Nonsense after the name is left out: who is unreadable to us may be newer than we.
    pub(crate) fn from_details(details: &Details) -> Option<Self> {
        let profile = Profile::from_details(details).ok()?;
        let mut reader = Reader::new(&profile.rest);
        let name = text(&mut reader).ok().filter(|name| !name.is_empty())?;
        let mut tags = BTreeMap::new();
        while let Ok(key) = text(&mut reader)
            && let Ok(value) = text(&mut reader)
        {
            tags.insert(key, value);
        }
        Some(Self { name, tags })
    }
}

fn text(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let length = reader.count("text", 1)?;
    let bytes = reader.bytes("text", length)?;
    // Shown to people: nothing that could move their cursor.
    Ok(String::from_utf8_lossy(bytes).chars().filter(|char| !char.is_control()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_tags_arrive_as_they_were_sent() {
        let tags = [("rack", "b2"), ("empty", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let about = About { name: "küche".to_owned(), tags: tags.into_iter().collect() };
        let stands = vec![(Group::named("backup"), Standing { observer: true, attribute: 9 })];
        let details = about.to_details(stands.clone()).unwrap();
        assert_eq!(About::from_details(&details), Some(about));
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
        let named = |name: &str| Some(About { name: name.to_owned(), tags: BTreeMap::new() });
        assert_eq!(about(&[1, b'a', 3, b'x']), named("a"));
        assert_eq!(about(&[3, b'a', 0x1b, b'b']), named("ab"), "no escape sequences");
    }
}
