use super::*;

const BABEL: &str = "\
BABEL 1.0
version babeld-1.13.1
host kitchen
my-id 02:00:5e:ff:fe:00:53:01
ok
add interface wlan0 up true ipv6 fe80::5eff:fe00:5301 ipv4 192.0.2.1
add interface eth0 up false
add neighbour 55d0a1b2c3d0 address fe80::5eff:fe00:5302 if wlan0 reach ffff ureach 0000 rxcost 256 txcost 256 rtt 0.000 rttcost 0 cost 256
add neighbour 55d0a1b2c4e0 address fe80::5eff:fe00:5303 if wlan0 reach 8000 ureach 0000 rxcost 256 txcost 512 cost 512
add neighbour 55d0a1b2c5f0 address fe80::5eff:fe00:5304 if wlan0 reach 0000 ureach 0000 rxcost 65535 txcost 65535 cost 65535
add neighbour 55d0a1b2c6f0 address fe80::5eff:fe00:5305 if wlan0 reach ffff ureach 0000 rxcost 256 txcost 65535 cost 65535
add xroute 192.0.2.1/32-::/0 prefix 192.0.2.1/32 from ::/0 metric 0
add route 55d0a1b2d000 prefix 192.0.2.2/32 from 0.0.0.0/0 installed yes id 02:00:5e:ff:fe:00:53:02 metric 256 refmetric 0 via fe80::5eff:fe00:5302 if wlan0
add route 55d0a1b2d100 prefix 2001:db8::2/128 from ::/0 installed yes id 02:00:5e:ff:fe:00:53:02 metric 256 refmetric 0 via fe80::5eff:fe00:5302 if wlan0
add route 55d0a1b2d200 prefix 192.0.2.9/32 from 0.0.0.0/0 installed yes id 02:00:5e:ff:fe:00:53:09 metric 512 refmetric 256 via fe80::5eff:fe00:5302 if wlan0
add route 55d0a1b2d300 prefix 198.51.100.0/24 from 0.0.0.0/0 installed yes id 02:00:5e:ff:fe:00:53:03 metric 512 refmetric 0 via fe80::5eff:fe00:5303 if wlan0
ok
";

const OLSR: &str = "\
HTTP/1.0 200 OK
Content-type: text/plain

Table: Links
Local IP\tRemote IP\tHyst.\tLQ\tNLQ\tCost
192.0.2.1\t192.0.2.2\t0.00\t1.000\t1.000\t1.000
192.0.2.1\t192.0.2.3\t0.00\t0.521\t0.392\t4.894
192.0.2.1\t192.0.2.4\t0.00\t0.105\t0.000\tINFINITE

Table: Neighbors
IP address\tSYM\tMPR\tMPRS\tWill.\t2 Hop Neighbors
192.0.2.2\tYES\tNO\tNO\t3\t1
192.0.2.5\tNO\tNO\tNO\t0\t0
192.0.2.6\tYES\tYES\tNO\t7\t2

Table: Routes
Destination\tGateway IP\tMetric\tETX\tInterface
192.0.2.9/32\t192.0.2.2\t2\t2.000\twlan0
";

/// BATMAN_IV, and below as BATMAN_V prints it.
const BATMAN: &str = "\
[B.A.T.M.A.N. adv 2023.3, MainIF/MAC: wlan0/02:00:5e:00:53:01 (bat0/02:00:5e:00:53:81 BATMAN_IV)]
IF             Neighbor              last-seen
        wlan0\t  02:00:5e:00:53:02    0.730s
        wlan0\t  02:00:5E:00:53:03    4.999s
        wlan0\t  02:00:5e:00:53:04   27.120s
";
const BATMAN_V: &str = "\
[B.A.T.M.A.N. adv 2024.2, MainIF/MAC: wlan0/02:00:5e:00:53:01 (bat0/02:00:5e:00:53:81 BATMAN_V)]
         Neighbor   last-seen      speed           IF
02:00:5e:00:53:02    0.100s (        1.0) [     wlan0]
02:00:5e:00:53:04    9.100s (       54.0) [     wlan1]
";

fn known(format: Format, text: &str) -> Vec<Vec<Address>> {
    let found = parse(format, text).unwrap_or_else(|error| panic!("{error}"));
    found.into_iter().map(|neighbour| neighbour.addresses).collect()
}

fn all(texts: &[&str]) -> Vec<Address> {
    texts.iter().map(|text| Address::parse(text).expect(text)).collect()
}

#[test]
fn babel_neighbours_are_those_that_answer_with_the_hosts_they_are() {
    assert_eq!(
        known(Format::Babel, BABEL),
        [
            all(&["fe80::5eff:fe00:5302", "192.0.2.2", "2001:db8::2"]),
            all(&["fe80::5eff:fe00:5303"])
        ]
    );
    assert_eq!(known(Format::Babel, "BABEL 1.0\nok\nok\n"), Vec::<Vec<Address>>::new());
}

#[test]
fn olsr_neighbours_are_the_far_ends_of_links_that_work() {
    assert_eq!(
        known(Format::Olsr, OLSR),
        [all(&["192.0.2.2"]), all(&["192.0.2.3"]), all(&["192.0.2.6"])]
    );
    let none = "Table: Links\nLocal IP\tRemote IP\tHyst.\tLQ\tNLQ\tCost\n\n";
    assert_eq!(known(Format::Olsr, none), Vec::<Vec<Address>>::new());
}

#[test]
fn batman_neighbours_are_those_heard_lately_whatever_the_algorithm() {
    let [near, late] = ["02:00:5e:00:53:02", "02:00:5e:00:53:03"].map(|text| all(&[text]));
    assert_eq!(known(Format::Batman, BATMAN), [near.clone(), late]);
    assert_eq!(known(Format::Batman, BATMAN_V), [near]);
}

#[test]
fn a_line_that_cannot_be_read_is_named_with_its_value() {
    let babel = |from, to| (Format::Babel, BABEL.replace(from, to));
    let olsr = |from, to| (Format::Olsr, OLSR.replace(from, to));
    let batman = |from, to| (Format::Batman, BATMAN.replace(from, to));
    for ((format, text), message) in [
        (babel("reach ffff", "reach soon"), "line 8: reach \"soon\" is no hexadecimal number"),
        (
            babel("address fe80::5eff:fe00:5303", "address fe80::g"),
            "line 9: address \"fe80::g\" is no IP address",
        ),
        (babel("cost 512\n", "cost much\n"), "line 9: cost \"much\" is no number"),
        (
            babel("192.0.2.2/32", "192.0.2.2"),
            "line 13: prefix \"192.0.2.2\" is no prefix such as 192.0.2.7/32",
        ),
        (olsr("192.0.2.3\t0", "kitchen\t0"), "line 7: Remote IP \"kitchen\" is no IP address"),
        (olsr("4.894", "-"), "line 7: Cost \"-\" is no number"),
        (olsr("192.0.2.5\tNO", "192.0.2.5\tMAYBE"), "line 13: SYM \"MAYBE\" is neither YES nor NO"),
        (
            batman("02:00:5e:00:53:02    ", "cellar_wlan0    "),
            "line 3: neighbour \"wlan0\\t  cellar_wlan0    0.730s\" has no hardware address; batctl n -n prints them \
             instead of names",
        ),
        (batman("0.730s", "0.7x0s"), "line 3: last-seen \"0.7x0\" is no number"),
        (
            (Format::Babel, "curl: (7) Failed\n".to_owned()),
            "line 1: table \"curl: (7) Failed\" is not what babeld says",
        ),
        ((Format::Olsr, String::new()), "line 1: table \"\" has no table of links or neighbours"),
        (
            (Format::Batman, "Error - interface bat0 is not present\n".to_owned()),
            "line 1: table \"Error - interface bat0 is not present\" is not what batctl n prints",
        ),
    ] {
        let error = parse(format, &text).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn no_text_whatever_panics() {
    for text in [BABEL, OLSR, BATMAN, BATMAN_V] {
        for cut in (0..text.len()).filter(|&cut| text.is_char_boundary(cut)) {
            for (_, format) in Format::ALL {
                let _ = parse(format, &text[..cut]);
                let _ = parse(format, &text[cut..]);
            }
        }
    }
}

#[test]
fn addresses_are_read_in_one_form() {
    assert_eq!(Address::parse("::ffff:192.0.2.1"), Address::parse("192.0.2.1"));
    assert_eq!(Address::parse("02:00:5E:00:53:01"), Address::parse("02:00:5e:00:53:01"));
    for wrong in ["", "kitchen", "02:00:5e:00:53", "02:00:5e:00:53:01:02", "2:0:5e:0:53:1"] {
        assert_eq!(Address::parse(wrong), None, "{wrong}");
    }
}
