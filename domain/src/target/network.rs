//! A network: the addresses with a common prefix.

use std::net::IpAddr;

/// A base and how many of its leading bits count. IPv4 is stored as mapped into IPv6, so that one
/// comparison serves both; the two families stay distinct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    base: u128,
    prefix: u32,
}

/// The prefix of an IPv4 address that is mapped into IPv6.
const MAPPED: u128 = 0xffff << 32;
const MAPPED_BITS: u32 = 96;

impl Network {
    pub(super) const fn v4(octets: [u8; 4], prefix: u32) -> Self {
        Self {
            base: MAPPED | u32::from_be_bytes(octets) as u128,
            prefix: MAPPED_BITS + prefix,
        }
    }

    pub(super) const fn v6(segments: [u16; 8], prefix: u32) -> Self {
        let (mut base, mut at) = (0, 0);
        while at < segments.len() {
            base = base << 16 | segments[at] as u128;
            at += 1;
        }
        Self { base, prefix }
    }

    /// The network of `ip`'s first `prefix` bits; `None` if it has fewer bits, or others are set.
    pub(super) fn at(ip: IpAddr, prefix: u32) -> Option<Self> {
        let (longest, network) = match ip {
            IpAddr::V4(ip) => (32, Self::v4(ip.octets(), prefix.min(32))),
            IpAddr::V6(ip) => (128, Self::v6(ip.segments(), prefix)),
        };
        (prefix <= longest && network.base & !network.mask() == 0).then_some(network)
    }

    pub(super) fn holds(self, ip: IpAddr) -> bool {
        let (bits, mapped) = match ip {
            IpAddr::V4(ip) => (MAPPED | u128::from(ip.to_bits()), true),
            IpAddr::V6(ip) => (ip.to_bits(), false),
        };
        let same_family = mapped == self.is_v4();
        same_family && (bits ^ self.base) & self.mask() == 0
    }

    /// Whether every address of `other` is in this network.
    pub(super) fn covers(self, other: Self) -> bool {
        self.is_v4() == other.is_v4()
            && self.prefix <= other.prefix
            && (self.base ^ other.base) & self.mask() == 0
    }

    fn is_v4(self) -> bool {
        self.prefix >= MAPPED_BITS && self.base & !u128::from(u32::MAX) == MAPPED
    }

    fn mask(self) -> u128 {
        u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0)
    }
}
