//! The hash chain: each record's hash covers the hash before it, so that losing, changing or moving
//! a record changes every later hash.

use ring::digest::{Context, SHA256};

/// Length of a hash.
pub(super) const HASH_BYTES: usize = 32;

/// The hash of all records up to here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain([u8; HASH_BYTES]);

impl Chain {
    /// The start of a stream's chain. It covers the name, so that two streams cannot be swapped.
    pub(super) fn start(name: &str) -> Self {
        Self(hash(&[b"waypost backup 1\n", name.as_bytes()]))
    }

    /// Extends the chain by a record.
    pub(super) fn add(&mut self, record: &[u8]) -> &[u8; HASH_BYTES] {
        self.0 = hash(&[&self.0, record]);
        &self.0
    }

    pub(super) fn is(&self, hash: &[u8]) -> bool {
        self.0 == hash
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn hash(parts: &[&[u8]]) -> [u8; HASH_BYTES] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_content_and_name_make_the_hash() {
        let of = |name, records: &[&str]| {
            let mut chain = Chain::start(name);
            for record in records {
                chain.add(record.as_bytes());
            }
            chain.to_string()
        };
        let whole = of("EVENTS", &["a", "b"]);
        assert_eq!(whole.len(), 64);
        assert_eq!(whole, of("EVENTS", &["a", "b"]));
        for other in [
            of("EVENTS", &["b", "a"]),
            of("EVENTS", &["a"]),
            of("EVENTS", &["ab"]),
            of("EVENTS", &["a", "c"]),
            of("LOCATIONS", &["a", "b"]),
        ] {
            assert_ne!(whole, other);
        }
    }
}
