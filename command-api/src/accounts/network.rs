//! The network of a client's address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Addresses whose attempts count as one client's: an IPv4 address, or the /64 that a client with
/// one IPv6 address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Network {
    base: IpAddr,
    bits: u8,
}

impl Network {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            v4 @ IpAddr::V4(_) => Self { base: v4, bits: 32 },
            IpAddr::V6(v6) => Self::v6(v6, 64),
        }
    }

    /// The wider network that one client can have as a whole: the /48 of an IPv6 address.
    pub(crate) fn around(self) -> Option<Self> {
        match self.base {
            IpAddr::V4(_) => None,
            IpAddr::V6(v6) => Some(Self::v6(v6, 48)),
        }
    }

    fn v6(address: Ipv6Addr, bits: u8) -> Self {
        let kept = u128::MAX << (128 - u32::from(bits));
        Self {
            base: Ipv6Addr::from_bits(address.to_bits() & kept).into(),
            bits,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> Network {
        Network::of(address.parse().unwrap())
    }

    #[test]
    fn an_ipv6_network_is_one_client_and_lies_within_a_wider_one() {
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(
            of("2001:db8::1").around(),
            of("2001:db8:0:ff00::1").around()
        );
        assert_eq!(of("2001:db8:7:8::1").to_string(), "2001:db8:7:8::/64");
    }

    #[test]
    fn a_v4_address_is_one_client_however_it_is_written() {
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1").around(), None);
    }
}
