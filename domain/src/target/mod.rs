//! Where a webhook or an HTTP step may connect to: the public internet, and the private ranges
//! that the operator names. Some addresses are always refused: no hasty setting may hand a cloud's
//! credentials to the author of a workflow.
//!
//! A name is checked when it is dialled, by the addresses it then resolves to. Only literal
//! addresses and names that always mean this machine can be checked before.

mod network;
mod ranges;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

use network::Network;
pub use ranges::{Ranges, RangesError};

/// Why an address is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not on the public internet, and not in a range that the operator named.
    #[error(
        "the address is {0}, not on the public internet; the operator can allow its range with \
         WAYPOST_ALLOW_PRIVATE_TARGETS"
    )]
    NotPublic(&'static str),
    /// It is always refused.
    #[error("the address is {0}, not on the public internet; such addresses are always refused")]
    Shut(&'static str),
}

/// Checks a host as written in a URL: `Ok` for names, which are checked when dialled.
pub fn check_host(host: &Host<&str>, open: &Ranges) -> Result<(), Refused> {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            if name == "localhost" || name.ends_with(".localhost") {
                let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                let opened = loopback.iter().any(|ip| check_ip(*ip, open).is_ok());
                return opened.then_some(()).ok_or(Refused::NotPublic(LOOPBACK));
            }
            Ok(())
        }
        Host::Ipv4(ip) => check_ip(IpAddr::V4(*ip), open),
        Host::Ipv6(ip) => check_ip(IpAddr::V6(*ip), open),
    }
}

/// Checks an address that is about to be dialled.
pub fn check_ip(ip: IpAddr, open: &Ranges) -> Result<(), Refused> {
    let ip = meant(ip);
    if let Some(what) = shut(ip) {
        return Err(Refused::Shut(what));
    }
    match find(PRIVATE, ip) {
        Some(what) if !open.hold(ip) => Err(Refused::NotPublic(what)),
        _ => Ok(()),
    }
}

const LOOPBACK: &str = "this machine";

/// Networks that an operator may name: reachable only from this machine, site or provider.
const PRIVATE: &[(Network, &str)] = &[
    (Network::v4([10, 0, 0, 0], 8), "private"),
    (
        Network::v4([100, 64, 0, 0], 10),
        "behind a carrier's translation",
    ),
    (Network::v4([127, 0, 0, 0], 8), LOOPBACK),
    (Network::v4([172, 16, 0, 0], 12), "private"),
    (Network::v4([192, 168, 0, 0], 16), "private"),
    (Network::v4([198, 18, 0, 0], 15), "for benchmarks"),
    (Network::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), LOOPBACK),
    (
        Network::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
        "unique-local",
    ),
    (Network::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local"),
];

/// Networks that cannot be opened. They include tunnels, since no check sees where these lead, and
/// documentation, discard-only and reserved addresses, since nothing listens there.
const SHUT: &[(Network, &str)] = &[
    (Network::v4([169, 254, 0, 0], 16), "link-local"),
    // Metadata services outside the link: Alibaba's, Azure's; Oracle's is reserved, AWS' and
    // Google's in IPv6 are unique-local.
    (Network::v4([100, 100, 100, 200], 32), METADATA),
    (Network::v4([168, 63, 129, 16], 32), METADATA),
    (
        Network::v6([0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0], 32),
        METADATA,
    ),
    (
        Network::v6([0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0], 32),
        METADATA,
    ),
    (Network::v4([0, 0, 0, 0], 8), "this network"),
    (Network::v4([192, 0, 0, 0], 24), "reserved"),
    (Network::v4([192, 0, 2, 0], 24), "for documentation"),
    (Network::v4([192, 88, 99, 0], 24), "a 6to4 relay"),
    (Network::v4([198, 51, 100, 0], 24), "for documentation"),
    (Network::v4([203, 0, 113, 0], 24), "for documentation"),
    (Network::v4([224, 0, 0, 0], 4), "multicast"),
    (Network::v4([255, 255, 255, 255], 32), "broadcast"),
    (Network::v4([240, 0, 0, 0], 4), "reserved"),
    (Network::v6([0; 8], 128), "unspecified"),
    (
        Network::v6([0x0064, 0xff9b, 0x0001, 0, 0, 0, 0, 0], 48),
        "a local translation to IPv4",
    ),
    (Network::v6([0x0100, 0, 0, 0, 0, 0, 0, 0], 64), "discarded"),
    (
        Network::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32),
        "a Teredo tunnel",
    ),
    (Network::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "reserved"),
    (
        Network::v6([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32),
        "for documentation",
    ),
    (
        Network::v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
        "a 6to4 tunnel",
    ),
    (
        Network::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
        "for documentation",
    ),
    (
        Network::v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),
        "for segment routing",
    ),
    (Network::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local"),
    (Network::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast"),
];

const METADATA: &str = "a cloud's metadata service";

fn find(networks: &[(Network, &'static str)], ip: IpAddr) -> Option<&'static str> {
    let found = networks.iter().find(|(network, _)| network.holds(ip));
    found.map(|(_, what)| *what)
}

/// Why this address is never called, whatever the operator names.
fn shut(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V6(ip) if is_isatap(ip) => Some("an ISATAP tunnel"),
        _ => find(SHUT, ip),
    }
}

/// The address that is meant: for a mapped, compatible or translated (NAT64) one, the IPv4 address
/// that it stands for.
fn meant(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => embedded_v4(v6).map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    if ip.is_unspecified() || ip.is_loopback() {
        return None;
    }
    let segments = ip.segments();
    let [.., high, low] = segments;
    let embedding = matches!(
        segments[..6],
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0]
    );
    embedding.then(|| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

/// Whether packets would be tunnelled to the IPv4 address at the end, whatever the network.
fn is_isatap(ip: Ipv6Addr) -> bool {
    let [.., middle, mark, _, _] = ip.segments();
    // The bit that says whether the IPv4 address is unique in the world may be set or not.
    middle & !0x0200 == 0 && mark == 0x5efe
}

#[cfg(test)]
mod tests;
