use alloc::{string::ToString as _, vec};

use proptest::{
    collection::{btree_map, btree_set, vec as vec_of},
    option,
    prelude::*,
    sample::select,
};

use super::*;

fn spans() -> impl Strategy<Value = Duration> {
    prop_oneof![any::<u64>(), 0..2_000_000_u64].prop_map(Duration::from_micros)
}

fn ids() -> impl Strategy<Value = NodeId> {
    any::<u64>().prop_map(NodeId::new)
}

fn groups() -> impl Strategy<Value = ElectionId> {
    any::<u32>().prop_map(ElectionId::from_number)
}

fn epochs() -> impl Strategy<Value = Epoch> {
    (any::<u64>(), ids(), any::<u64>(), any::<u32>()).prop_map(|(counter, id, boot, sequence)| {
        Epoch::nth(counter, Peer::new(id, Boot::new(boot)), sequence)
    })
}

/// A number that equals itself.
fn reals() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(-0.0), -1e6..1e6, Just(f64::INFINITY)]
}

fn chosen<T: Copy + core::fmt::Debug + 'static, const N: usize>(
    table: [(&'static str, T); N],
) -> impl Strategy<Value = T> {
    select(table.map(|(_, choice)| choice).to_vec())
}

fn names() -> impl Strategy<Value = Vec<String>> {
    vec_of("[a-zü]{0,5}", 0..4)
}

fn abouts() -> impl Strategy<Value = About> {
    let position = (-1e6_f32..1e6, -1e6_f32..1e6).prop_map(|(x, y)| Position { x, y });
    let tags = btree_map("[a-z]{1,4}", "[a-zé]{0,9}", 0..4);
    let terms = btree_map(groups(), vec_of(any::<u8>(), 0..6), 0..4);
    ("[a-z]{1,9}", option::of(position), tags, terms)
        .prop_map(|(name, position, tags, terms)| About { name, position, tags, terms })
}

fn modes() -> impl Strategy<Value = ModeSettings> {
    let isolation = prop_oneof![
        Just(OnIsolation::Auto),
        Just(OnIsolation::Hold),
        Just(OnIsolation::StepDown),
        spans().prop_map(OnIsolation::HoldFor)
    ];
    let eventual =
        (chosen(VARIANTS), any::<u16>(), any::<u16>(), any::<u32>(), isolation, any::<bool>());
    let eventual = eventual.prop_map(|(variant, c, f, margin, on_isolation, learned)| {
        ModeSettings::Eventual(EventualSettings { variant, c, f, margin, on_isolation, learned })
    });
    let announced =
        any::<bool>().prop_map(|sticky| ModeSettings::Announced(AnnouncedSettings { sticky }));
    let keeping = (spans(), any::<u32>()).prop_map(|(tenure, margin)| Keeping { tenure, margin });
    let leased = (names(), chosen(FLAVOURS), any::<u32>(), option::of(keeping));
    let leased = leased.prop_map(|(members, flavour, drift, learned)| {
        ModeSettings::Leased(LeasedSettings { members, flavour, drift, learned })
    });
    let times = (option::of(spans()), option::of(spans()), spans());
    let learned = (names(), chosen(Policy::ALL), times, any::<u16>(), any::<u32>());
    let learned = learned.prop_map(|(voters, policy, (lease, sample, tenure), memory, margin)| {
        ModeSettings::Learned(LearnedSettings {
            voters,
            policy,
            lease,
            sample,
            memory,
            tenure,
            margin,
        })
    });
    let spread = prop_oneof![any::<u32>().prop_map(Spread::AtOnce), spans().prop_map(Spread::Tick)];
    let hysteresis =
        (any::<u32>(), spans()).prop_map(|(percent, dwell)| Hysteresis { percent, dwell });
    let beacons = (option::of(spans()), option::of(spans()))
        .prop_map(|(period, silence)| Neighbours::Beacons { period, silence });
    let neighbours = prop_oneof![Just(Neighbours::Given), beacons];
    let central = (
        spread,
        chosen(Criterion::NAMED),
        option::of(hysteresis),
        option::of(any::<u32>()),
        neighbours,
    );
    let central = central.prop_map(|(spread, criterion, hysteresis, horizon, neighbours)| {
        ModeSettings::Central(CentralSettings {
            spread,
            criterion,
            hysteresis,
            horizon,
            neighbours,
        })
    });
    prop_oneof![eventual, announced, leased, learned, central]
}

fn places() -> impl Strategy<Value = Addresses> {
    let v4 = (any::<[u8; 4]>(), any::<u16>()).prop_map(SocketAddr::from);
    let v6 = (any::<[u8; 16]>(), any::<u16>(), any::<u32>(), any::<u32>())
        .prop_map(|(ip, port, flow, scope)| SocketAddrV6::new(ip.into(), port, flow, scope).into());
    vec_of(prop_oneof![v4, v6], 0..4).prop_map(Addresses::new)
}

fn settings() -> impl Strategy<Value = Settings> {
    let timing = (chosen(TimingProfile::ALL), vec_of(spans(), 14)).prop_map(|(profile, waits)| {
        let mut timing = profile.timing();
        timing.waits_mut().into_iter().zip(waits).for_each(|((_, wait), span)| *wait = span);
        timing
    });
    let elections = ("[a-z]{1,9}", modes(), chosen(ROLES), any::<u32>())
        .prop_map(|(name, mode, role, priority)| ElectionSettings { name, mode, role, priority });
    let feedback = option::of(chosen(Feedback::ALL));
    (abouts(), places(), timing, option::of(reals()), feedback, vec_of(elections, 0..5)).prop_map(
        |(about, addresses, timing, exponent, feedback, elections)| Settings {
            about,
            addresses,
            timing,
            exponent,
            feedback,
            elections,
        },
    )
}

fn durables() -> impl Strategy<Value = Durable> {
    let eventual = (option::of(epochs()), option::of(epochs()))
        .prop_map(|(known, vouched)| Kept::Eventual(churn_tolerant::Durable { known, vouched }));
    let announced = (any::<u64>(), option::of(epochs()))
        .prop_map(|(max_epoch, vouched)| Kept::Announced(announce::Durable { max_epoch, vouched }));
    let belief =
        (ids(), reals(), any::<u64>()).prop_map(|(id, mean, weight)| Belief { id, mean, weight });
    let ballot = (any::<u64>(), option::of(ids()), vec_of(belief, 0..4))
        .prop_map(|(term, voted_for, beliefs)| bandit::Durable { term, voted_for, beliefs });
    let learned = (btree_map("[a-z]{1,5}", ids(), 0..4), option::of(ballot))
        .prop_map(|(voters, durable)| Kept::Learned(KeptBallot { voters, durable }));
    let kept = prop_oneof![eventual, announced, epochs().prop_map(Kept::Leased), learned];
    let record = (any::<u64>(), any::<u64>(), any::<bool>())
        .prop_map(|(cost, count, ended_well)| KeptRecord { cost, count, ended_well });
    (btree_map(groups(), kept, 0..5), option::of(record))
        .prop_map(|(elections, record)| Durable { elections, record })
}

fn facts() -> impl Strategy<Value = Fact> {
    prop_oneof![
        ids().prop_map(Fact::Met),
        (groups(), btree_set(ids(), 0..5)).prop_map(|(group, ids)| Fact::InRange(group, ids)),
        any::<u64>().prop_map(|boot| Fact::Superseded(Boot::new(boot))),
        Just(Fact::NotKept),
        Just(Fact::Writing),
        Just(Fact::Kept),
    ]
}

fn commands() -> impl Strategy<Value = Command> {
    prop_oneof![
        groups().prop_map(Command::Elect),
        groups().prop_map(Command::Resign),
        (groups(), ids()).prop_map(|(group, to)| Command::Transfer(group, to)),
        (groups(), ids(), any::<u8>()).prop_map(|(group, of, percent)| Command::Report {
            election: group,
            of,
            percent
        }),
        (groups(), any::<u32>()).prop_map(|(group, worth)| Command::Priority(group, worth)),
        btree_set(groups(), 0..5).prop_map(Command::Bar),
        abouts().prop_map(|about| Command::Introduce(Box::new(about))),
        places().prop_map(Command::Advertise),
    ]
}

/// Comes back as it was, and no shorter piece of it passes for a whole.
fn round_trip<T: Wire + PartialEq + core::fmt::Debug>(value: &T) {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    assert_eq!(bytes.len(), value.encoded_len());
    let mut reader = Reader::new(&bytes);
    assert_eq!(T::decode(&mut reader).as_ref(), Ok(value));
    assert_eq!(reader.finish(), Ok(()));
    for cut in 0..bytes.len() {
        assert!(T::decode(&mut Reader::new(&bytes[..cut])).is_err(), "cut at {cut}");
    }
}

proptest! {
    #[test]
    fn settings_come_back(settings in settings()) {
        round_trip(&settings);
    }

    #[test]
    fn what_was_kept_comes_back(durable in durables()) {
        round_trip(&durable);
    }

    #[test]
    fn facts_and_commands_come_back(fact in facts(), command in commands()) {
        round_trip(&fact);
        round_trip(&command);
    }

    #[test]
    fn bytes_that_are_read_are_those_that_would_be_written(bytes in vec_of(0_u8..9, 0..60)) {
        fn alike<T: Wire>(bytes: &[u8]) {
            let mut reader = Reader::new(bytes);
            if let Ok(value) = T::decode(&mut reader) {
                let mut again = Vec::new();
                value.encode(&mut again);
                assert_eq!(again, bytes[..reader.at()]);
            }
        }
        alike::<Settings>(&bytes);
        alike::<Durable>(&bytes);
        alike::<Fact>(&bytes);
        alike::<Command>(&bytes);
    }
}

#[test]
fn every_choice_is_in_its_table() {
    // Whoever adds one is led here by the compiler.
    let places = |role, variant, flavour| {
        let role = match role {
            Role::Candidate => 0,
            Role::Observer => 1,
            Role::Witness => 2,
        };
        let variant = match variant {
            Variant::Base => 0,
            Variant::Optimistic => 1,
            Variant::Preferred => 2,
            Variant::Hybrid => 3,
        };
        let flavour = match flavour {
            Flavour::Quorum => 0,
            Flavour::Conservative => 1,
            Flavour::Fast => 2,
        };
        [role, variant, flavour]
    };
    for (role, variant, flavour) in [
        (Role::Candidate, Variant::Base, Flavour::Quorum),
        (Role::Observer, Variant::Optimistic, Flavour::Conservative),
        (Role::Witness, Variant::Preferred, Flavour::Fast),
        (Role::Witness, Variant::Hybrid, Flavour::Fast),
    ] {
        let mut bytes = vec![];
        put_choice(&mut bytes, &ROLES, role);
        put_choice(&mut bytes, &VARIANTS, variant);
        put_choice(&mut bytes, &FLAVOURS, flavour);
        assert_eq!(bytes, places(role, variant, flavour));
    }
}

#[test]
fn what_is_out_of_order_is_refused_with_its_place() {
    let bar = [5, 2, 7, 0, 0, 0, 7, 0, 0, 0];
    let error = Command::decode(&mut Reader::new(&bar)).unwrap_err().to_string();
    assert!(error.starts_with("barred at byte 6"), "{error}");
}
