//! Where a webhook or an HTTP step may connect to: the public internet and nothing else, unless
//! the operator allows private addresses.
//!
//! A name is judged when it is dialled, by the addresses that it then has; only literal
//! addresses and names that always mean this machine can be judged before.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// Why an address is not the public internet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address is {0}, not on the public internet")]
pub struct NotPublic(&'static str);

/// Judges a host as it stands in an address: `Ok` for names, which are judged when dialled.
pub fn check_host(host: &Host<&str>) -> Result<(), NotPublic> {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            if name == "localhost" || name.ends_with(".localhost") {
                return Err(NotPublic("this machine"));
            }
            Ok(())
        }
        Host::Ipv4(ip) => check_ip(IpAddr::V4(*ip)),
        Host::Ipv6(ip) => check_ip(IpAddr::V6(*ip)),
    }
}

/// Judges an address that is about to be dialled.
pub fn check_ip(ip: IpAddr) -> Result<(), NotPublic> {
    match ip {
        IpAddr::V4(ip) => check_v4(ip),
        IpAddr::V6(ip) => check_v6(ip),
    }
}

/// IPv4 networks that are not the public internet's: base, length of the prefix, what they are.
const V4: &[([u8; 4], u32, &str)] = &[
    ([0, 0, 0, 0], 8, "this network"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "behind a carrier's translation"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "reserved"),
    ([192, 0, 2, 0], 24, "for documentation"),
    ([192, 88, 99, 0], 24, "a 6to4 relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "for benchmarks"),
    ([198, 51, 100, 0], 24, "for documentation"),
    ([203, 0, 113, 0], 24, "for documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    // Holds the broadcast address as well.
    ([240, 0, 0, 0], 4, "reserved"),
];

fn check_v4(ip: Ipv4Addr) -> Result<(), NotPublic> {
    let found = V4.iter().find(|(base, prefix, _)| {
        let apart = u32::from(ip) ^ u32::from(Ipv4Addr::from(*base));
        apart >> (32 - prefix) == 0
    });
    found.map_or(Ok(()), |(_, _, what)| Err(NotPublic(what)))
}

/// IPv6 networks that are not the public internet's, or lead to IPv4 in ways that a firewall may
/// not see: the first segments, length of the prefix, what they are.
const V6: &[([u16; 4], u32, &str)] = &[
    (
        [0x0064, 0xff9b, 0x0001, 0],
        48,
        "a local translation to IPv4",
    ),
    ([0x0100, 0, 0, 0], 64, "discarded"),
    ([0x2001, 0, 0, 0], 32, "a Teredo tunnel"),
    ([0x2001, 0, 0, 0], 23, "reserved"),
    ([0x2001, 0x0db8, 0, 0], 32, "for documentation"),
    ([0x2002, 0, 0, 0], 16, "a 6to4 tunnel"),
    ([0x3fff, 0, 0, 0], 20, "for documentation"),
    ([0x5f00, 0, 0, 0], 16, "for segment routing"),
    ([0xfc00, 0, 0, 0], 7, "unique-local"),
    ([0xfe80, 0, 0, 0], 10, "link-local"),
    ([0xfec0, 0, 0, 0], 10, "site-local"),
    ([0xff00, 0, 0, 0], 8, "multicast"),
];

fn check_v6(ip: Ipv6Addr) -> Result<(), NotPublic> {
    if ip.is_unspecified() {
        return Err(NotPublic("unspecified"));
    }
    if ip.is_loopback() {
        return Err(NotPublic("loopback"));
    }
    if let Some(embedded) = embedded_v4(ip) {
        return check_v4(embedded);
    }
    let [a, b, c, d, ..] = ip.segments();
    let head = join([a, b, c, d]);
    let found = V6
        .iter()
        .find(|(base, prefix, _)| (head ^ join(*base)) >> (64 - prefix) == 0);
    found.map_or(Ok(()), |(_, _, what)| Err(NotPublic(what)))
}

fn join(segments: [u16; 4]) -> u64 {
    segments
        .iter()
        .fold(0, |joined, segment| joined << 16 | u64::from(*segment))
}

/// The IPv4 address that a mapped, compatible or translated (NAT64) address stands for.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = ip.segments();
    let [.., high, low] = segments;
    let embedding = matches!(
        segments[..6],
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0]
    );
    embedding.then(|| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judged(ip: &str) -> Result<(), NotPublic> {
        check_ip(ip.parse().unwrap())
    }

    #[test]
    fn public_addresses_pass() {
        for ip in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
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
            assert_eq!(judged(ip), Ok(()), "{ip}");
        }
    }

    #[test]
    fn every_other_kind_of_address_is_refused() {
        for ip in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:1::1",
            "2001:db8::1",
            "3fff::1",
            "100::1",
            "5f00::1",
            "64:ff9b:1::1",
        ] {
            assert!(judged(ip).is_err(), "{ip} passed");
        }
    }

    #[test]
    fn names_of_this_machine_are_refused_and_others_left_for_later() {
        for name in ["localhost", "LOCALHOST", "localhost.", "a.localhost"] {
            assert!(check_host(&Host::Domain(name)).is_err(), "{name} passed");
        }
        assert_eq!(check_host(&Host::Domain("hooks.example.com")), Ok(()));
        assert_eq!(check_host(&Host::Domain("notlocalhost")), Ok(()));
    }

    proptest! {
        #[test]
        fn an_ipv4_address_is_judged_alike_in_every_ipv6_dress(bits: u32) {
            let plain = Ipv4Addr::from(bits);
            let [a, b, c, d] = plain.octets();
            let low = [u16::from(a) << 8 | u16::from(b), u16::from(c) << 8 | u16::from(d)];
            let dressed = |head: [u16; 6]| {
                let [p, q, r, s, t, u] = head;
                IpAddr::V6(Ipv6Addr::new(p, q, r, s, t, u, low[0], low[1]))
            };
            let expected = check_ip(IpAddr::V4(plain)).is_ok();
            for head in [[0, 0, 0, 0, 0, 0xffff], [0x64, 0xff9b, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]] {
                prop_assert_eq!(check_ip(dressed(head)).is_ok(), expected);
            }
        }
    }
}
