use proptest::prelude::*;

use super::*;

fn judged(ip: &str, open: &str) -> Result<(), Refused> {
    check_ip(ip.parse().unwrap(), &open.parse().unwrap())
}

/// All that can be opened.
const EVERYTHING: &str = "0.0.0.0/0,::/0";

#[test]
fn public_addresses_pass() {
    for ip in [
        "1.1.1.1",
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.0",
        "168.63.129.17",
        "172.15.255.255",
        "172.32.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00::1",
        "::ffff:1.1.1.1",
        "64:ff9b::808:808",
    ] {
        assert_eq!(judged(ip, ""), Ok(()), "{ip}");
    }
}

#[test]
fn private_addresses_pass_only_where_their_range_is_named() {
    for (ip, range) in [
        ("10.1.2.3", "10.1.0.0/16"),
        ("100.64.0.1", "100.64.0.0/10"),
        ("100.127.255.255", "100.127.255.255/32"),
        ("127.0.0.1", "127.0.0.0/8"),
        ("127.255.255.254", "127.0.0.0/8"),
        ("172.16.0.1", "172.16.0.0/12"),
        ("172.31.255.255", "172.31.0.0/16"),
        ("192.168.1.1", "192.168.1.0/24"),
        ("198.18.0.1", "198.18.0.0/15"),
        ("::1", "::1/128"),
        ("fc00::1", "fc00::/8"),
        ("fdff::1", "fdff::/16"),
        ("fec0::1", "fec0::/10"),
        ("::ffff:10.1.2.3", "10.1.0.0/16"),
    ] {
        assert!(judged(ip, "").is_err(), "{ip} passed");
        assert!(judged(ip, "10.99.0.0/16,fd99::/16").is_err(), "{ip} passed");
        assert_eq!(judged(ip, range), Ok(()), "{ip} in {range}");
        assert_eq!(judged(ip, EVERYTHING), Ok(()), "{ip}");
    }
    assert!(judged("10.2.0.0", "10.1.0.0/16").is_err());
    assert!(judged("10.1.0.1", "::/0").is_err(), "it is IPv4");
    assert!(judged("fd00::1", "0.0.0.0/0").is_err(), "it is IPv6");
}

/// Addresses that no setting opens.
const ALWAYS_SHUT: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fe80::a9fe:a9fe",
    "febf::1",
    "ff02::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:1::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2a00::5efe:10.0.0.1",
    "2a00::200:5efe:10.0.0.1",
    "3fff::1",
    "100::1",
    "5f00::1",
    "64:ff9b:1::1",
];

#[test]
fn some_addresses_stay_shut_whatever_is_named() {
    for ip in ALWAYS_SHUT {
        for open in ["", "1", EVERYTHING, "169.0.0.0/8,100.64.0.0/10,fc00::/7"] {
            let outcome = judged(ip, open);
            assert!(matches!(outcome, Err(Refused::Shut(_))), "{ip} with {open}");
        }
    }
}

#[test]
fn names_of_this_machine_are_refused_and_others_left_for_later() {
    let check = |name, open: &str| check_host(&Host::Domain(name), &open.parse().unwrap());
    for name in ["localhost", "LOCALHOST", "localhost.", "a.localhost"] {
        assert!(check(name, "").is_err(), "{name} passed");
        assert!(check(name, "10.0.0.0/8").is_err(), "{name} passed");
        assert_eq!(check(name, "1"), Ok(()));
        assert_eq!(check(name, "::1/128"), Ok(()));
    }
    assert_eq!(check("hooks.example.com", ""), Ok(()));
    assert_eq!(check("notlocalhost", ""), Ok(()));
}

#[test]
fn a_list_may_name_ranges_switches_or_nothing() {
    let parse = |text: &str| text.parse::<Ranges>();
    for none in ["", "0", "false", "No", " off ", ","] {
        assert_eq!(parse(none), Ok(Ranges::default()), "{none:?}");
    }
    for usual in ["1", "true", "YES", " on"] {
        assert_eq!(parse(usual), Ok(Ranges::usual()), "{usual:?}");
    }
    let both: Ranges = parse("1, 100.64.0.0/10").unwrap();
    for ip in ["10.1.1.1", "127.0.0.1", "::1", "fd00::1", "100.64.0.1"] {
        assert_eq!(check_ip(ip.parse().unwrap(), &both), Ok(()), "{ip}");
    }
    let carrier: IpAddr = "100.64.0.1".parse().unwrap();
    assert!(check_ip(carrier, &Ranges::usual()).is_err(), "to be named");
}

#[test]
fn a_list_that_is_none_is_refused_with_what_to_write() {
    for wrong in [
        "maybe",
        "10.0.0.0",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/+8",
        "10.0.0.0/",
        "10.0.0/8",
        "010.0.0.0/8",
        "fd00::/129",
        "example.com/8",
        "127.0.0.0/8 10.0.0.0/8",
        "1;2",
    ] {
        let error = wrong.parse::<Ranges>().unwrap_err().to_string();
        assert!(error.contains("write ranges such as"), "{wrong}: {error}");
    }
    for (wrong, why) in [
        ("10.0.0.1/8", "after the prefix"),
        ("169.254.0.0/16", "always refused"),
        ("169.254.169.254/32", "always refused"),
        ("100.100.100.200/32", "always refused"),
        ("fe80::/10", "always refused"),
        ("fd00:ec2::/64", "always refused"),
        ("2002::/16", "always refused"),
        ("::ffff:10.0.0.0/104", "as IPv4"),
        ("64:ff9b::/96", "as IPv4"),
    ] {
        let error = wrong.parse::<Ranges>().unwrap_err().to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}

/// An IPv4 address at the end of an IPv6 one.
fn dressed(head: [u16; 6], ip: Ipv4Addr) -> IpAddr {
    let mut segments = [0; 8];
    segments[..6].copy_from_slice(&head);
    let ip = Ipv6Addr::from(segments).to_bits() | u128::from(ip.to_bits());
    IpAddr::V6(Ipv6Addr::from_bits(ip))
}

fn special() -> impl Strategy<Value = Ipv4Addr> {
    let metadata = prop::sample::select(vec![
        Ipv4Addr::new(169, 254, 169, 254),
        Ipv4Addr::new(100, 100, 100, 200),
        Ipv4Addr::new(168, 63, 129, 16),
    ]);
    let link_local = any::<u16>().prop_map(|low| Ipv4Addr::from(0xa9fe_0000 | u32::from(low)));
    prop_oneof![metadata, link_local]
}

fn ranges() -> impl Strategy<Value = Ranges> {
    let v4 = (any::<u32>(), 0..=32_u32).prop_map(|(bits, prefix)| {
        let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
        format!("{}/{prefix}", Ipv4Addr::from(bits & mask))
    });
    let v6 = (any::<u128>(), 0..=128_u32).prop_map(|(bits, prefix)| {
        let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
        format!("{}/{prefix}", Ipv6Addr::from(bits & mask))
    });
    let fixed = prop::sample::select(vec!["1", EVERYTHING]).prop_map(str::to_owned);
    let words = prop::collection::vec(prop_oneof![v4, v6, fixed], 0..8);
    // Keeps those of the drawn ranges that can be named at all.
    words.prop_map(|words| {
        let named = words.iter().filter(|word| word.parse::<Ranges>().is_ok());
        let named: Vec<_> = named.map(String::as_str).collect();
        named.join(",").parse().unwrap()
    })
}

proptest! {
    #[test]
    fn an_ipv4_address_is_judged_alike_in_every_ipv6_dress(bits: u32, open in ranges()) {
        let plain = Ipv4Addr::from(bits);
        // `::` and `::1` have a meaning of their own; as IPv4 they are as private.
        prop_assume!(bits > 1);
        let expected = check_ip(IpAddr::V4(plain), &open);
        for head in [[0, 0, 0, 0, 0, 0xffff], [0x64, 0xff9b, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]] {
            prop_assert_eq!(check_ip(dressed(head, plain), &open), expected);
        }
    }

    #[test]
    fn nothing_that_is_named_opens_link_local_or_metadata(
        ip in special(),
        open in ranges(),
        rest: [u16; 6],
    ) {
        let [high, low] = [ip.to_bits() >> 16, ip.to_bits() & 0xffff]
            .map(|half| u16::try_from(half).unwrap());
        let [a, b, c, d, ..] = rest;
        let forms = [
            IpAddr::V4(ip),
            IpAddr::V6(ip.to_ipv6_mapped()),
            dressed([0; 6], ip),
            dressed([0, 0, 0, 0, 0xffff, 0], ip),
            dressed([0x64, 0xff9b, 0, 0, 0, 0], ip),
            dressed([0x64, 0xff9b, 1, a, b, c], ip),
            dressed([a, b, c, d, 0, 0x5efe], ip),
            dressed([a, b, c, d, 0x200, 0x5efe], ip),
            IpAddr::V6(Ipv6Addr::new(0x2002, high, low, a, b, c, d, rest[4])),
            IpAddr::V6(Ipv6Addr::new(0x2001, 0, high, low, a, b, !high, !low)),
            IpAddr::V6(Ipv6Addr::new(0xfe80 | (a & 0x3f), b, c, d, a, b, high, low)),
        ];
        for form in forms {
            let outcome = check_ip(form, &open);
            prop_assert!(matches!(outcome, Err(Refused::Shut(_))), "{form} with {open:?}");
        }
    }

    #[test]
    fn what_is_named_opens_that_and_no_more(ip: u32, open in ranges()) {
        let ip = IpAddr::V4(Ipv4Addr::from(ip));
        let (alone, opened) = (check_ip(ip, &Ranges::default()), check_ip(ip, &open));
        match alone {
            Err(Refused::NotPublic(_)) => prop_assert_eq!(opened.is_ok(), open.hold(ip)),
            as_ever => prop_assert_eq!(opened, as_ever),
        }
    }
}
