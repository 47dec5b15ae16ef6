//! How what a node is made of and told becomes bytes and back: its settings, what it kept, facts and commands.
//!
//! Hosts write these down to run the same node again; nothing of it travels. Messages have their own codec: see
//! [`packet`](super::packet).
//!
//! Choices are written by their place in a table of this file or of the type. A table only ever grows at its end: what
//! was written stays readable.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};
use core::net::{IpAddr, SocketAddr, SocketAddrV6};

use super::{
    About, AnnouncedSettings, CentralSettings, Command, Durable, ElectionSettings,
    EventualSettings, Fact, Feedback, Keeping, Kept, KeptBallot, KeptRecord, LearnedSettings,
    LeasedSettings, ModeSettings, Neighbours, OnIsolation, Policy, Position, Role, Settings,
    Spread, Timing, TimingProfile,
};
use crate::{
    election::{
        announce,
        bandit::{self, Belief},
        central::{Criterion, Hysteresis},
        churn_tolerant::{self, Variant},
        leased::Flavour,
    },
    epoch::Epoch,
    id::{Boot, ElectionId, NodeId, Peer},
    membership::medley::{Addresses, MOST_ADDRESSES},
    time::Duration,
    wire::{DecodeError, Reader, Sink, Wire},
};

type Read<T> = Result<T, DecodeError>;

const ROLES: [(&str, Role); 3] =
    [("candidate", Role::Candidate), ("observer", Role::Observer), ("witness", Role::Witness)];
const VARIANTS: [(&str, Variant); 4] = [
    ("base", Variant::Base),
    ("optimistic", Variant::Optimistic),
    ("preferred", Variant::Preferred),
    ("hybrid", Variant::Hybrid),
];
const FLAVOURS: [(&str, Flavour); 3] =
    [("quorum", Flavour::Quorum), ("conservative", Flavour::Conservative), ("fast", Flavour::Fast)];

/// Shorter than any election that could be written.
const MIN_ELECTION: usize = 4;

impl Wire for Settings {
    fn encode(&self, sink: &mut impl Sink) {
        self.about.encode(sink);
        put_addresses(sink, &self.addresses);
        put_choice(sink, &TimingProfile::ALL, self.timing.profile);
        self.timing.waits().into_iter().for_each(|(_, wait)| put_span(sink, wait));
        put_option(sink, self.exponent, |sink, exponent| sink.u64(exponent.to_bits()));
        put_option(sink, self.feedback, |sink, feedback| {
            put_choice(sink, &Feedback::ALL, feedback);
        });
        sink.varint(self.elections.len() as u64);
        self.elections.iter().for_each(|election| put_election(sink, election));
    }

    fn decode(reader: &mut Reader<'_>) -> Read<Self> {
        let about = About::decode(reader)?;
        let addresses = addresses(reader)?;
        let mut timing: Timing = choice(reader, "timing profile", &TimingProfile::ALL)?.timing();
        for (name, wait) in timing.waits_mut() {
            *wait = span(reader, name)?;
        }
        let exponent =
            option(reader, "exponent", |reader| reader.u64("exponent").map(f64::from_bits))?;
        let feedback =
            option(reader, "feedback", |reader| choice(reader, "feedback", &Feedback::ALL))?;
        let elections = list(reader, "elections", MIN_ELECTION, election)?;
        Ok(Self { about, addresses, timing, exponent, feedback, elections })
    }
}

fn put_election(sink: &mut impl Sink, election: &ElectionSettings) {
    put_text(sink, &election.name);
    put_choice(sink, &ROLES, election.role);
    sink.varint(u64::from(election.priority));
    match &election.mode {
        ModeSettings::Eventual(eventual) => {
            sink.u8(0);
            put_choice(sink, &VARIANTS, eventual.variant);
            sink.varint(u64::from(eventual.c));
            sink.varint(u64::from(eventual.f));
            sink.varint(u64::from(eventual.margin));
            match eventual.on_isolation {
                OnIsolation::Hold => sink.u8(0),
                OnIsolation::HoldFor(time) => {
                    sink.u8(1);
                    put_span(sink, time);
                }
                OnIsolation::StepDown => sink.u8(2),
                OnIsolation::Auto => sink.u8(3),
            }
            put_flag(sink, eventual.learned);
        }
        ModeSettings::Announced(announced) => {
            sink.u8(1);
            put_flag(sink, announced.sticky);
        }
        ModeSettings::Leased(leased) => {
            sink.u8(2);
            put_names(sink, &leased.members);
            put_choice(sink, &FLAVOURS, leased.flavour);
            sink.varint(u64::from(leased.drift));
            put_option(sink, leased.learned, |sink, keeping| {
                put_span(sink, keeping.tenure);
                sink.varint(u64::from(keeping.margin));
            });
        }
        ModeSettings::Learned(learned) => {
            sink.u8(3);
            put_names(sink, &learned.voters);
            put_choice(sink, &Policy::ALL, learned.policy);
            put_option(sink, learned.lease, put_span);
            put_option(sink, learned.sample, put_span);
            sink.varint(u64::from(learned.memory));
            put_span(sink, learned.tenure);
            sink.varint(u64::from(learned.margin));
        }
        ModeSettings::Central(central) => {
            sink.u8(4);
            match central.spread {
                Spread::AtOnce(thousandths) => {
                    sink.u8(0);
                    sink.varint(u64::from(thousandths));
                }
                Spread::Tick(every) => {
                    sink.u8(1);
                    put_span(sink, every);
                }
            }
            put_choice(sink, &Criterion::NAMED, central.criterion);
            put_option(sink, central.hysteresis, |sink, hysteresis| {
                sink.varint(u64::from(hysteresis.percent));
                put_span(sink, hysteresis.dwell);
            });
            put_option(sink, central.horizon, |sink, horizon| sink.varint(u64::from(horizon)));
            match central.neighbours {
                Neighbours::Beacons { period, silence } => {
                    sink.u8(0);
                    put_option(sink, period, put_span);
                    put_option(sink, silence, put_span);
                }
                Neighbours::Given => sink.u8(1),
            }
        }
    }
}

fn election(reader: &mut Reader<'_>) -> Read<ElectionSettings> {
    let name = text(reader, "election")?;
    let role = choice(reader, "role", &ROLES)?;
    let priority = reader.varint32("priority")?;
    let mode = match reader.kind("mode", 5)? {
        0 => ModeSettings::Eventual(EventualSettings {
            variant: choice(reader, "variant", &VARIANTS)?,
            c: reader.varint16("c")?,
            f: reader.varint16("f")?,
            margin: reader.varint32("margin")?,
            on_isolation: match reader.kind("on_isolation", 4)? {
                0 => OnIsolation::Hold,
                1 => OnIsolation::HoldFor(span(reader, "on_isolation")?),
                2 => OnIsolation::StepDown,
                _ => OnIsolation::Auto,
            },
            learned: flag(reader, "criterion")?,
        }),
        1 => ModeSettings::Announced(AnnouncedSettings { sticky: flag(reader, "tenure")? }),
        2 => ModeSettings::Leased(LeasedSettings {
            members: names(reader, "members")?,
            flavour: choice(reader, "flavour", &FLAVOURS)?,
            drift: reader.varint32("drift")?,
            learned: option(reader, "criterion", |reader| {
                let (tenure, margin) = (span(reader, "tenure")?, reader.varint32("margin")?);
                Ok(Keeping { tenure, margin })
            })?,
        }),
        3 => ModeSettings::Learned(LearnedSettings {
            voters: names(reader, "voters")?,
            policy: choice(reader, "policy", &Policy::ALL)?,
            lease: option(reader, "lease", |reader| span(reader, "lease"))?,
            sample: option(reader, "sample", |reader| span(reader, "sample"))?,
            memory: reader.varint16("memory")?,
            tenure: span(reader, "tenure")?,
            margin: reader.varint32("margin")?,
        }),
        _ => ModeSettings::Central(CentralSettings {
            spread: match reader.kind("spread", 2)? {
                0 => Spread::AtOnce(reader.varint32("spread")?),
                _ => Spread::Tick(span(reader, "spread")?),
            },
            criterion: choice(reader, "criterion", &Criterion::NAMED)?,
            hysteresis: option(reader, "hysteresis", |reader| {
                let (percent, dwell) = (reader.varint32("hysteresis")?, span(reader, "dwell")?);
                Ok(Hysteresis { percent, dwell })
            })?,
            horizon: option(reader, "horizon", |reader| reader.varint32("horizon"))?,
            neighbours: match reader.kind("neighbours", 2)? {
                0 => Neighbours::Beacons {
                    period: option(reader, "beacon", |reader| span(reader, "beacon"))?,
                    silence: option(reader, "silence", |reader| span(reader, "silence"))?,
                },
                _ => Neighbours::Given,
            },
        }),
    };
    Ok(ElectionSettings { name, mode, role, priority })
}

impl Wire for About {
    fn encode(&self, sink: &mut impl Sink) {
        put_text(sink, &self.name);
        put_option(sink, self.position, |sink, Position { x, y }| {
            [x, y].into_iter().for_each(|value| sink.u32(value.to_bits()));
        });
        sink.varint(self.tags.len() as u64);
        for (key, value) in &self.tags {
            put_text(sink, key);
            put_text(sink, value);
        }
        sink.varint(self.terms.len() as u64);
        for (group, terms) in &self.terms {
            sink.u32(group.number());
            sink.varint(terms.len() as u64);
            sink.bytes(terms);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Read<Self> {
        let name = text(reader, "name")?;
        let position = option(reader, "position", |reader| {
            let mut coordinate = || reader.u32("position").map(f32::from_bits);
            Ok(Position { x: coordinate()?, y: coordinate()? })
        })?;
        let tags =
            map(reader, "tags", 2, |reader| Ok((text(reader, "tag")?, text(reader, "tag")?)))?;
        let terms = map(reader, "terms", 5, |reader| {
            let group = group(reader)?;
            let length = reader.count("terms", 1)?;
            Ok((group, reader.bytes("terms", length)?.to_vec()))
        })?;
        Ok(Self { name, position, tags, terms })
    }
}

impl Wire for Durable {
    fn encode(&self, sink: &mut impl Sink) {
        sink.varint(self.elections.len() as u64);
        for (group, kept) in &self.elections {
            sink.u32(group.number());
            put_kept(sink, kept);
        }
        put_option(sink, self.record, |sink, KeptRecord { cost, count, ended_well }| {
            sink.varint(cost);
            sink.varint(count);
            put_flag(sink, ended_well);
        });
    }

    fn decode(reader: &mut Reader<'_>) -> Read<Self> {
        let elections = map(reader, "kept", 5, |reader| Ok((group(reader)?, kept(reader)?)))?;
        let record = option(reader, "record", |reader| {
            Ok(KeptRecord {
                cost: reader.varint("cost")?,
                count: reader.varint("count")?,
                ended_well: flag(reader, "ended_well")?,
            })
        })?;
        Ok(Self { elections, record })
    }
}

fn put_kept(sink: &mut impl Sink, kept: &Kept) {
    match kept {
        Kept::Eventual(churn_tolerant::Durable { known, vouched }) => {
            sink.u8(0);
            put_option(sink, *known, put_epoch);
            put_option(sink, *vouched, put_epoch);
        }
        Kept::Announced(announce::Durable { max_epoch, vouched }) => {
            sink.u8(1);
            sink.varint(*max_epoch);
            put_option(sink, *vouched, put_epoch);
        }
        Kept::Leased(epoch) => {
            sink.u8(2);
            put_epoch(sink, *epoch);
        }
        Kept::Learned(KeptBallot { voters, durable }) => {
            sink.u8(3);
            sink.varint(voters.len() as u64);
            for (name, id) in voters {
                put_text(sink, name);
                sink.u64(id.get());
            }
            put_option(sink, durable.as_ref(), |sink, durable| {
                sink.varint(durable.term);
                put_option(sink, durable.voted_for, |sink, id| sink.u64(id.get()));
                sink.varint(durable.beliefs.len() as u64);
                for Belief { id, mean, weight } in &durable.beliefs {
                    sink.u64(id.get());
                    sink.u64(mean.to_bits());
                    sink.varint(*weight);
                }
            });
        }
    }
}

fn kept(reader: &mut Reader<'_>) -> Read<Kept> {
    Ok(match reader.kind("kept", 4)? {
        0 => Kept::Eventual(churn_tolerant::Durable {
            known: option(reader, "known", epoch)?,
            vouched: option(reader, "vouched", epoch)?,
        }),
        1 => Kept::Announced(announce::Durable {
            max_epoch: reader.varint("counter")?,
            vouched: option(reader, "vouched", epoch)?,
        }),
        2 => Kept::Leased(epoch(reader)?),
        _ => Kept::Learned(KeptBallot {
            voters: map(reader, "voters", 9, |reader| Ok((text(reader, "voter")?, id(reader)?)))?,
            durable: option(reader, "ballot", |reader| {
                Ok(bandit::Durable {
                    term: reader.varint("term")?,
                    voted_for: option(reader, "vote", id)?,
                    beliefs: list(reader, "beliefs", 17, |reader| {
                        Ok(Belief {
                            id: id(reader)?,
                            mean: reader.u64("mean").map(f64::from_bits)?,
                            weight: reader.varint("weight")?,
                        })
                    })?,
                })
            })?,
        }),
    })
}

impl Wire for Fact {
    fn encode(&self, sink: &mut impl Sink) {
        match self {
            Self::Met(id) => {
                sink.u8(0);
                sink.u64(id.get());
            }
            Self::InRange(group, ids) => {
                sink.u8(1);
                sink.u32(group.number());
                sink.varint(ids.len() as u64);
                ids.iter().for_each(|id| sink.u64(id.get()));
            }
            Self::Superseded(by) => {
                sink.u8(2);
                sink.varint(by.get());
            }
            Self::NotKept => sink.u8(3),
            Self::Writing => sink.u8(4),
            Self::Kept => sink.u8(5),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Read<Self> {
        Ok(match reader.kind("fact", 6)? {
            0 => Self::Met(id(reader)?),
            1 => Self::InRange(group(reader)?, set(reader, "in range", 8, id)?),
            2 => Self::Superseded(reader.varint("boot").map(Boot::new)?),
            3 => Self::NotKept,
            4 => Self::Writing,
            _ => Self::Kept,
        })
    }
}

impl Wire for Command {
    fn encode(&self, sink: &mut impl Sink) {
        let put = |sink: &mut _, kind: u8, group: &ElectionId| {
            Sink::u8(sink, kind);
            Sink::u32(sink, group.number());
        };
        match self {
            Self::Elect(group) => put(sink, 0, group),
            Self::Resign(group) => put(sink, 1, group),
            Self::Transfer(group, to) => {
                put(sink, 2, group);
                sink.u64(to.get());
            }
            Self::Report { election, of, percent } => {
                put(sink, 3, election);
                sink.u64(of.get());
                sink.u8(*percent);
            }
            Self::Priority(group, worth) => {
                put(sink, 4, group);
                sink.varint(u64::from(*worth));
            }
            Self::Bar(groups) => {
                sink.u8(5);
                sink.varint(groups.len() as u64);
                groups.iter().for_each(|group| sink.u32(group.number()));
            }
            Self::Introduce(about) => {
                sink.u8(6);
                about.encode(sink);
            }
            Self::Advertise(addresses) => {
                sink.u8(7);
                put_addresses(sink, addresses);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Read<Self> {
        Ok(match reader.kind("command", 8)? {
            0 => Self::Elect(group(reader)?),
            1 => Self::Resign(group(reader)?),
            2 => Self::Transfer(group(reader)?, id(reader)?),
            3 => Self::Report {
                election: group(reader)?,
                of: id(reader)?,
                percent: reader.u8("percent")?,
            },
            4 => Self::Priority(group(reader)?, reader.varint32("priority")?),
            5 => Self::Bar(set(reader, "barred", 4, group)?),
            6 => Self::Introduce(Box::new(About::decode(reader)?)),
            _ => Self::Advertise(addresses(reader)?),
        })
    }
}

fn put_text(sink: &mut impl Sink, text: &str) {
    sink.varint(text.len() as u64);
    sink.bytes(text.as_bytes());
}

fn text(reader: &mut Reader<'_>, field: &'static str) -> Read<String> {
    let length = reader.count(field, 1)?;
    let at = reader.at();
    let text = core::str::from_utf8(reader.bytes(field, length)?);
    text.map(Into::into).map_err(|_| DecodeError::NotText { field, at })
}

fn put_names(sink: &mut impl Sink, names: &[String]) {
    sink.varint(names.len() as u64);
    names.iter().for_each(|name| put_text(sink, name));
}

fn names(reader: &mut Reader<'_>, field: &'static str) -> Read<Vec<String>> {
    list(reader, field, 1, |reader| text(reader, field))
}

fn put_span(sink: &mut impl Sink, span: Duration) {
    sink.varint(span.as_micros());
}

fn span(reader: &mut Reader<'_>, field: &'static str) -> Read<Duration> {
    reader.varint(field).map(Duration::from_micros)
}

fn put_flag(sink: &mut impl Sink, flag: bool) {
    sink.u8(u8::from(flag));
}

fn flag(reader: &mut Reader<'_>, field: &'static str) -> Read<bool> {
    Ok(reader.kind(field, 2)? == 1)
}

/// What is in no table is written as what no reader knows.
fn put_choice<T: PartialEq>(sink: &mut impl Sink, table: &[(&'static str, T)], choice: T) {
    let place = table.iter().position(|(_, known)| *known == choice);
    sink.u8(place.map_or(u8::MAX, |place| place as u8));
}

fn choice<T: Copy>(
    reader: &mut Reader<'_>,
    field: &'static str,
    table: &[(&'static str, T)],
) -> Read<T> {
    let place = reader.kind(field, table.len() as u8)?;
    Ok(table[usize::from(place)].1)
}

fn put_option<T, S: Sink>(sink: &mut S, value: Option<T>, put: impl FnOnce(&mut S, T)) {
    put_flag(sink, value.is_some());
    if let Some(value) = value {
        put(sink, value);
    }
}

fn option<'a, T>(
    reader: &mut Reader<'a>,
    field: &'static str,
    read: impl FnOnce(&mut Reader<'a>) -> Read<T>,
) -> Read<Option<T>> {
    flag(reader, field)?.then(|| read(reader)).transpose()
}

fn list<'a, T>(
    reader: &mut Reader<'a>,
    field: &'static str,
    item_len: usize,
    mut read: impl FnMut(&mut Reader<'a>) -> Read<T>,
) -> Read<Vec<T>> {
    let count = reader.count(field, item_len)?;
    (0..count).map(|_| read(reader)).collect()
}

/// Ascending, since there is one encoding for every value.
fn set<'a, T: Ord>(
    reader: &mut Reader<'a>,
    field: &'static str,
    item_len: usize,
    mut read: impl FnMut(&mut Reader<'a>) -> Read<T>,
) -> Read<BTreeSet<T>> {
    let all = map(reader, field, item_len, |reader| Ok((read(reader)?, ())))?;
    Ok(all.into_keys().collect())
}

/// The same.
fn map<'a, K: Ord, V>(
    reader: &mut Reader<'a>,
    field: &'static str,
    item_len: usize,
    mut read: impl FnMut(&mut Reader<'a>) -> Read<(K, V)>,
) -> Read<BTreeMap<K, V>> {
    let count = reader.count(field, item_len)?;
    let mut all = BTreeMap::new();
    for place in 0..count {
        let at = reader.at();
        let (key, value) = read(reader)?;
        if all.last_key_value().is_some_and(|(last, _)| *last >= key) {
            let found = place as u64;
            return Err(DecodeError::OutOfRange { field, at, found, limit: found - 1 });
        }
        all.insert(key, value);
    }
    Ok(all)
}

fn id(reader: &mut Reader<'_>) -> Read<NodeId> {
    reader.u64("identity").map(NodeId::new)
}

fn group(reader: &mut Reader<'_>) -> Read<ElectionId> {
    reader.u32("election").map(ElectionId::from_number)
}

fn put_epoch(sink: &mut impl Sink, epoch: Epoch) {
    sink.varint(epoch.counter());
    sink.u64(epoch.minter().id.get());
    sink.varint(epoch.minter().boot.get());
    sink.varint(u64::from(epoch.sequence()));
}

fn epoch(reader: &mut Reader<'_>) -> Read<Epoch> {
    let counter = reader.varint("epoch")?;
    let minter = Peer::new(id(reader)?, Boot::new(reader.varint("boot")?));
    Ok(Epoch::nth(counter, minter, reader.varint32("sequence")?))
}

fn put_addresses(sink: &mut impl Sink, addresses: &Addresses) {
    sink.u8(addresses.iter().count() as u8);
    for address in addresses.iter() {
        match address {
            SocketAddr::V4(it) => {
                sink.u8(0);
                sink.bytes(&it.ip().octets());
            }
            SocketAddr::V6(it) => {
                sink.u8(1);
                sink.bytes(&it.ip().octets());
                sink.u32(it.flowinfo());
                sink.u32(it.scope_id());
            }
        }
        sink.u16(address.port());
    }
}

fn addresses(reader: &mut Reader<'_>) -> Read<Addresses> {
    let count = reader.kind("addresses", MOST_ADDRESSES as u8 + 1)?;
    let mut all = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        all.push(if reader.kind("address family", 2)? == 1 {
            let octets = <[u8; 16]>::try_from(reader.bytes("address", 16)?).unwrap_or_default();
            let (flow, scope) = (reader.u32("flow")?, reader.u32("scope")?);
            SocketAddrV6::new(octets.into(), reader.u16("port")?, flow, scope).into()
        } else {
            let octets = <[u8; 4]>::try_from(reader.bytes("address", 4)?).unwrap_or_default();
            SocketAddr::new(IpAddr::from(octets), reader.u16("port")?)
        });
    }
    Ok(Addresses::new(all))
}

#[cfg(test)]
mod tests;
