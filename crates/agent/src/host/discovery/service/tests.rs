use super::*;
use proptest::prelude::*;

const SERVICE: &str = "_bellwether._udp.example.org";

/// A server's answer, put together byte by byte.
struct Built(Vec<u8>);

impl Built {
    /// Flags besides those of every answer, and how many answers are announced.
    fn new(id: u16, flags: u16, answers: u16) -> Self {
        let mut built = Self(vec![]);
        built.put(&[id, RESPONSE | flags, 1, answers, 0, 0]);
        built.name(SERVICE);
        built.put(&[SRV, INTERNET]);
        built
    }

    fn put(&mut self, numbers: &[u16]) {
        self.0.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    }

    fn name(&mut self, name: &str) {
        for label in name.split('.').filter(|label| !label.is_empty()) {
            self.0.push(label.len() as u8);
            self.0.extend(label.bytes());
        }
        self.0.push(0);
    }

    /// With the question's name as its owner, by a pointer.
    fn service(mut self, priority: u16, port: u16, host: &str) -> Self {
        self.put(&[0xc00c, SRV, INTERNET, 0, 60]);
        let length = self.0.len();
        self.put(&[0, priority, 5, port]);
        self.name(host);
        let written = (self.0.len() - length - 2) as u16;
        self.0[length..length + 2].copy_from_slice(&written.to_be_bytes());
        self
    }

    fn parse(&self) -> Result<Answer, String> {
        parse(&self.0, 7, SERVICE).map_err(|error| error.to_string())
    }
}

fn target(priority: u16, port: u16, host: &str) -> Target {
    Target { priority, port, host: host.to_owned() }
}

#[test]
fn a_question_is_what_a_server_reads() {
    let packet = question(7, SERVICE);
    let mut reader = Reader { packet: &packet, at: 0 };
    assert_eq!(reader.numbers().unwrap(), [7, RECURSE, 1, 0, 0, 1]);
    assert!(reader.name().unwrap().is(SERVICE));
    assert_eq!(reader.numbers().unwrap(), [SRV, INTERNET]);
    let options = reader.record().unwrap();
    assert_eq!((options.kind, options.class, reader.at), (OPTIONS, 1_232, packet.len()));
}

#[test]
fn all_records_are_taken_the_best_first() {
    let built = Built::new(7, 0, 3)
        .service(20, 7738, "c.example.org")
        .service(10, 9, "B.Example.org")
        .service(10, 9, "a.example.org");
    let targets = vec![
        target(10, 9, "a.example.org"),
        target(10, 9, "b.example.org"),
        target(20, 7738, "c.example.org"),
    ];
    assert_eq!(built.parse(), Ok(Answer { targets, cut: false }));
}

#[test]
fn an_alias_is_followed_and_what_is_another_names_is_not() {
    let mut built = Built::new(7, 0, 3);
    built.put(&[0xc00c, ALIAS, INTERNET, 0, 60, 7]);
    let alias = built.0.len() as u16;
    built.0.extend(b"\x05other\0");
    for (owner, host) in [(0xc00c, "stale.example"), (0xc000 | alias, "real.example")] {
        built.put(&[owner, SRV, INTERNET, 0, 60, 6 + host.len() as u16 + 2, 1, 1, 9]);
        built.name(host);
    }
    let targets = vec![target(1, 9, "real.example")];
    assert_eq!(built.parse(), Ok(Answer { targets, cut: false }));
}

#[test]
fn what_is_no_answer_says_what_it_is() {
    let whole = || Built::new(7, 0, 1).service(1, 9, "a.example");
    assert_eq!(parse(&whole().0, 8, SERVICE).unwrap_err().to_string(), "answers another question");
    let other = parse(&whole().0, 7, "_other._udp.example.org").unwrap_err().to_string();
    assert_eq!(other, "answers another question");
    assert_eq!(Built::new(7, 3, 0).parse().unwrap_err(), "knows no such name (NXDOMAIN)");
    assert_eq!(Built::new(7, 2, 0).parse().unwrap_err(), "cannot answer now (SERVFAIL)");
    assert_eq!(Built::new(7, 0, 0).parse().unwrap_err(), "has no service records of that name");
    let none = Built::new(7, 0, 1).service(0, 0, ".");
    assert_eq!(none.parse().unwrap_err(), "says that nobody offers this service");
    let mut short = whole();
    short.0.pop();
    assert!(short.parse().unwrap_err().starts_with("its answer cannot be read at byte"));
    // What did not fit is asked for again, by stream.
    let mut cut = Built::new(7, CUT, 2).service(1, 9, "a.example");
    cut.0.extend([0xc0, 0x0c, 0]);
    assert_eq!(cut.parse(), Ok(Answer { targets: vec![target(1, 9, "a.example")], cut: true }));
}

#[test]
fn pointers_come_to_an_end() {
    for pointer in [0xc00c_u16, 0xc00e, 0xffff] {
        let mut reader =
            Reader { packet: &[[0; 12].as_slice(), &pointer.to_be_bytes()].concat(), at: 12 };
        assert!(reader.name().is_err(), "{pointer:x}");
    }
    // Each label and then the one before: all of them, and no more than a name may have.
    let mut packet = vec![1, b'a', 0];
    for _ in 0..200 {
        let before = if packet.len() == 3 { 0 } else { packet.len() - 4 };
        packet.extend([1, b'a', 0xc0 | (before >> 8) as u8, before as u8]);
    }
    let at = packet.len() - 4;
    assert!(Reader { packet: &packet, at }.name().is_err(), "longer than any name");
    let at = 3 + 4 * 9;
    assert_eq!(Reader { packet: &packet, at }.name().unwrap().0.len(), 11);
}

#[test]
fn servers_are_those_of_the_file_three_at_most() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let named = |text: &str| {
        std::fs::write(file.path(), text).unwrap();
        let found = servers(file.path()).unwrap();
        found.iter().map(SocketAddr::to_string).collect::<Vec<_>>()
    };
    let text = "# a comment\nsearch lan\nnameserver 192.0.2.1\nnameserver 2001:db8::1 \nnameserver nobody\n\
                nameserver 192.0.2.3\nnameserver 192.0.2.4\n";
    assert_eq!(named(text), ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"]);
    assert_eq!(named("search lan\n"), ["127.0.0.1:53"]);
    assert!(servers(Path::new("/nowhere/resolv.conf")).is_err());
}

/// Answers whoever asks by datagram, and then by stream, with what `answer` makes of the number.
async fn server(datagram: fn(u16) -> Vec<Vec<u8>>, stream: fn(u16) -> Vec<u8>) -> SocketAddr {
    let (udp, tcp) = loop {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        // Of streams the number may be somebody else's.
        if let Ok(tcp) = tokio::net::TcpListener::bind(udp.local_addr().unwrap()).await {
            break (udp, tcp);
        }
    };
    let address = udp.local_addr().unwrap();
    tokio::spawn(async move {
        let mut packet = [0; 512];
        loop {
            let (length, from) = udp.recv_from(&mut packet).await.unwrap();
            assert!(length > 12);
            for answer in datagram(u16::from_be_bytes([packet[0], packet[1]])) {
                udp.send_to(&answer, from).await.unwrap();
            }
        }
    });
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = tcp.accept().await.unwrap();
            let mut packet = vec![0; connection.read_u16().await.unwrap().into()];
            connection.read_exact(&mut packet).await.unwrap();
            let answer = stream(u16::from_be_bytes([packet[0], packet[1]]));
            connection.write_all(&(answer.len() as u16).to_be_bytes()).await.unwrap();
            connection.write_all(&answer).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn servers_are_asked_in_turn_and_by_stream_if_need_be() {
    let whole = |id| Built::new(id, 0, 1).service(1, 9, "a.example").0;
    let two = |id| Built::new(id, 0, 2).service(1, 9, "a.example").service(2, 9, "b.example").0;
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let failing = server(|id| vec![Built::new(id, 2, 0).0], |_| vec![]).await;
    // A forged answer first, under another number.
    let good = server(
        |id| {
            let forged = Built::new(!id, 0, 1).service(1, 9, "forged.example").0;
            vec![forged, Built::new(id, 0, 1).service(1, 9, "a.example").0]
        },
        |_| vec![],
    )
    .await;
    let found = targets(SERVICE, &[nobody, failing, good]).await.unwrap();
    assert_eq!(found, [target(1, 9, "a.example")]);
    let large = server(|id| vec![Built::new(id, CUT, 0).0], two).await;
    assert_eq!(targets(SERVICE, &[large]).await.unwrap().len(), 2);
    let lying = server(|id| vec![Built::new(id, CUT, 0).0], |id| Built::new(!id, 0, 0).0).await;
    let error = targets(SERVICE, &[lying]).await.unwrap_err().to_string();
    assert_eq!(error, format!("{lying}: answers another question"));
    let none = server(|id| vec![Built::new(id, 3, 0).0], whole).await;
    let error = targets(SERVICE, &[none, good]).await.unwrap_err().to_string();
    assert_eq!(error, format!("{none}: knows no such name (NXDOMAIN)"));
    let error = targets(SERVICE, &[nobody]).await.unwrap_err().to_string();
    assert!(error.starts_with("127.0.0.1:9: Connection refused"), "{error}");
    let silent = server(|_| vec![], |_| vec![]).await;
    let error = targets(SERVICE, &[silent]).await.unwrap_err().to_string();
    assert_eq!(error, format!("{silent}: does not answer within 2 s"));
}

proptest! {
    #[test]
    fn nothing_panics_and_nothing_is_endless(packet in proptest::collection::vec(any::<u8>(), 0..1_500)) {
        let _ = parse(&packet, 7, SERVICE);
        for at in 0..packet.len().min(64) {
            if let Ok(name) = (Reader { packet: &packet, at }).name() {
                let length: usize = name.0.iter().map(|label| label.len() + 1).sum();
                prop_assert!(length < NAME);
            }
        }
    }

    /// Bytes that are nearly right get further than random ones.
    #[test]
    fn changed_answers_are_read_or_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
        announced in 0_u16..400,
    ) {
        let mut packet = (0..20).fold(Built::new(7, 0, announced), |built, at| {
            built.service(at, 9, "somebody.example.org")
        }).0;
        for (at, byte) in changes {
            let at = at.index(packet.len());
            packet[at] = byte;
        }
        packet.truncate(end.index(packet.len() + 1));
        if let Ok(answer) = parse(&packet, 7, SERVICE) {
            prop_assert!(answer.targets.len() <= TARGETS);
            prop_assert!(answer.targets.iter().all(|one| is_host_name(&one.host) && one.port != 0));
        }
    }

    #[test]
    fn what_a_server_says_is_read_as_it_was_meant(
        said in proptest::collection::btree_map("[a-z][a-z0-9]{0,20}(\\.[a-z][a-z0-9-]{0,20}){0,4}", (any::<u16>(), 1_u16..), 1..30)
    ) {
        let mut built = Built::new(7, 0, said.len() as u16);
        let mut meant = vec![];
        for (host, (priority, port)) in said {
            built = built.service(priority, port, &host);
            meant.push(target(priority, port, &host));
        }
        meant.sort();
        prop_assert_eq!(built.parse(), Ok(Answer { targets: meant, cut: false }));
    }
}
