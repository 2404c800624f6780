//! The ranges that an operator opens.

use std::net::IpAddr;
use std::str::FromStr;

use super::network::Network;
use super::{SHUT, embedded_v4};

/// Private ranges that HTTP steps and webhooks may reach; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Network>);

/// Why a list of ranges is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangesError {
    /// It is not a range.
    #[error(
        "{0:?} is not a range: write ranges such as 10.1.0.0/16,fd12:3456::/48, or 1 for this \
         machine and the private ranges, or 0 for none"
    )]
    Malformed(String),
    /// More bits are set than its prefix has.
    #[error("{0:?} has bits set after the prefix: set them to 0")]
    BitsBehind(String),
    /// It cannot be opened.
    #[error("{0:?} cannot be allowed: {1} addresses are always refused")]
    Shut(String, &'static str),
    /// It is written in a form in which no address is checked.
    #[error("{0:?} is IPv4 written as IPv6: write it as IPv4, such as 10.1.0.0/16")]
    Embedded(String),
}

/// What `1` stands for: this machine and the ranges that are private by RFC 1918 and RFC 4193.
/// Addresses behind a carrier's NAT are shared with strangers, and have to be named.
const USUAL: &[Network] = &[
    Network::v4([127, 0, 0, 0], 8),
    Network::v4([10, 0, 0, 0], 8),
    Network::v4([172, 16, 0, 0], 12),
    Network::v4([192, 168, 0, 0], 16),
    Network::v6([0, 0, 0, 0, 0, 0, 0, 1], 128),
    Network::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
];

impl Ranges {
    /// This machine and the private ranges.
    pub fn usual() -> Self {
        Self(USUAL.to_vec())
    }

    pub(super) fn hold(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.holds(ip))
    }
}

impl FromStr for Ranges {
    type Err = RangesError;

    fn from_str(text: &str) -> Result<Self, RangesError> {
        let mut ranges = Vec::new();
        for word in text.split(',') {
            let word = word.trim();
            match word.to_ascii_lowercase().as_str() {
                "" | "0" | "false" | "no" | "off" => {}
                "1" | "true" | "yes" | "on" => ranges.extend_from_slice(USUAL),
                _ => ranges.push(parse(word)?),
            }
        }
        Ok(Self(ranges))
    }
}

fn parse(word: &str) -> Result<Network, RangesError> {
    let malformed = || RangesError::Malformed(word.to_owned());
    let (ip, prefix) = word.split_once('/').ok_or_else(malformed)?;
    let ip: IpAddr = ip.parse().map_err(|_| malformed())?;
    let digits = !prefix.is_empty() && prefix.bytes().all(|digit| digit.is_ascii_digit());
    let prefix = prefix.parse().ok().filter(|_| digits);
    let prefix: u32 = prefix.ok_or_else(malformed)?;
    let longest = if ip.is_ipv4() { 32 } else { 128 };
    if prefix > longest {
        return Err(malformed());
    }
    let network = Network::at(ip, prefix);
    let network = network.ok_or_else(|| RangesError::BitsBehind(word.to_owned()))?;
    if let IpAddr::V6(ip) = ip
        && prefix >= 96
        && embedded_v4(ip).is_some()
    {
        return Err(RangesError::Embedded(word.to_owned()));
    }
    let shut = SHUT.iter().find(|(shut, _)| shut.covers(network));
    if let Some((_, what)) = shut {
        return Err(RangesError::Shut(word.to_owned(), what));
    }
    Ok(network)
}
