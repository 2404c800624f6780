//! The client's address: the one place that decides whether a proxy is trusted.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::http::HeaderMap;

use crate::memory::{Held, Memory};

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The client of a request; an extension of each request received by [`crate::serve`].
#[derive(Clone)]
pub struct Client {
    address: IpAddr,
    memory: Arc<Memory>,
}

impl Client {
    /// Determines the client of a request that came from `peer` with these headers.
    pub(crate) fn of(
        peer: SocketAddr,
        headers: &HeaderMap,
        trusted: &Networks,
        memory: &Arc<Memory>,
    ) -> Self {
        Self {
            address: client(peer.ip(), headers, trusted),
            memory: Arc::clone(memory),
        }
    }

    /// The client's address: the peer of the connection, or what trusted proxies report.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Memory reservation for bytes of this client, empty at first.
    pub(crate) fn room(&self) -> Held {
        Memory::room(&self.memory, one_client(self.address))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.address).finish()
    }
}

/// A client with one IPv6 address has its whole /64.
pub(crate) fn one_client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Walks back from the connection through the trusted proxies: the first address that is not one of
/// them is the client's, whatever the client itself has written before it.
fn client(peer: IpAddr, headers: &HeaderMap, trusted: &Networks) -> IpAddr {
    let mut client = peer.to_canonical();
    if !trusted.contains(client) {
        return client;
    }
    let named = headers.get_all(FORWARDED_FOR).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let hops: Vec<&str> = named.flat_map(|value| value.split(',')).collect();
    for hop in hops.into_iter().rev() {
        if !trusted.contains(client) {
            break;
        }
        let Ok(hop) = hop.trim().parse::<IpAddr>() else {
            break;
        };
        client = hop.to_canonical();
    }
    client
}

/// Address ranges, separated by commas or spaces; may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// Whether an address is in one of the ranges.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl FromStr for Networks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ranges = text.split(|c: char| c == ',' || c.is_whitespace());
        let ranges = ranges.filter(|range| !range.is_empty());
        ranges.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// A range of addresses, such as `10.0.0.0/8`; a single address is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    base: u128,
    bits: u32,
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let differing = number(address) ^ self.base;
        differing.checked_shr(128 - self.bits).unwrap_or(0) == 0
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither an address nor a range such as 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.trim().parse());
        let bits = bits.ok().filter(|bits| *bits <= most).ok_or_else(wrong)?;
        Ok(Self {
            base: number(address),
            bits: bits + 128 - most,
        })
    }
}

/// IPv4 addresses are mapped to IPv6.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn from(peer: &str, named: &[&str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in named {
            headers.append(FORWARDED_FOR, HeaderValue::from_str(value).unwrap());
        }
        let trusted: Networks = trusted.join(", ").parse().unwrap();
        client(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn nobody_is_believed_who_is_not_trusted() {
        assert_eq!(from("192.0.2.1", &["198.51.100.9"], &[]), "192.0.2.1");
        let elsewhere = from("192.0.2.1", &["198.51.100.9"], &["10.0.0.0/8"]);
        assert_eq!(elsewhere, "192.0.2.1");
    }

    #[test]
    fn behind_trusted_proxies_the_last_foreign_address_counts() {
        let trusted = &["10.0.0.0/8", "::1"];
        let one = from("10.1.2.3", &["198.51.100.9"], trusted);
        assert_eq!(one, "198.51.100.9");
        let forged = from(
            "10.1.2.3",
            &["203.0.113.7, 198.51.100.9, 10.9.9.9"],
            trusted,
        );
        assert_eq!(forged, "198.51.100.9");
        let several = from("::1", &["203.0.113.7", "198.51.100.9"], trusted);
        assert_eq!(several, "198.51.100.9");
        assert_eq!(from("10.1.2.3", &["nonsense"], trusted), "10.1.2.3");
        assert_eq!(
            from("::ffff:10.1.2.3", &["2001:db8::1"], trusted),
            "2001:db8::1"
        );
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "x"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("203.0.113.7".parse().unwrap()));
        assert!(!all.contains("2001:db8::1".parse().unwrap()));
        let spaced: Networks = " 10.0.0.0/8,192.0.2.1 ::1 ,".parse().unwrap();
        assert_eq!(spaced.0.len(), 3);
        let everything: Network = "::/0".parse().unwrap();
        assert!(everything.contains("203.0.113.7".parse().unwrap()));
    }

    #[test]
    fn a_v6_network_is_one_client() {
        let client = |address: &str| one_client(address.parse().unwrap()).to_string();
        assert_eq!(client("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(client("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(client("192.0.2.1"), "192.0.2.1");
    }
}
