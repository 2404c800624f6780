//! The header with which Waypost's own calls state their cause.
//!
//! An HTTP step or a webhook may lead back to Waypost, and so to the next run. A call that passes
//! this header on continues the count of hops and of runs instead of restarting it. Its value is
//! signed: nobody can blame another cause for runs, or count backwards.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemas::{Cause, Context};
use uuid::Uuid;

use crate::Keyring;

/// The header's name.
pub const CAUSE_HEADER: &str = "waypost-cause";

const VERSION: &str = "1";
const PURPOSE: &str = "cause header";
/// Longer than any that is issued.
const MAX_BYTES: usize = 1_024;

impl Keyring {
    /// The header's value for a call that follows from what happened in this context and has this
    /// cause.
    pub fn cause_header(&self, context: &Context, cause: Cause) -> String {
        let correlation = context.correlation_id.as_deref().unwrap_or_default();
        let correlation = URL_SAFE_NO_PAD.encode(correlation);
        let (hops, id, runs) = (context.hops, cause.id.simple(), cause.runs);
        let stated = format!("{VERSION}.{hops}.{id}.{runs}.{correlation}");
        let tag = self.keyed_hash(PURPOSE, &[stated.as_bytes()]);
        format!("{stated}.{tag}")
    }

    /// The context of a request that came with this header, one hop further; `None` if Waypost did
    /// not issue it.
    pub fn context_of_call(&self, header: &str) -> Option<Context> {
        let (stated, tag) = header.rsplit_once('.')?;
        let own = self.keyed_hash(PURPOSE, &[stated.as_bytes()]);
        if header.len() > MAX_BYTES || !is_same(own.as_bytes(), tag.as_bytes()) {
            return None;
        }
        let mut parts = stated.split('.');
        let mut next = || parts.next();
        if next()? != VERSION {
            return None;
        }
        let hops: u8 = next()?.parse().ok()?;
        let id = Uuid::try_parse(next()?).ok()?;
        let runs = next()?.parse().ok()?;
        let correlation = URL_SAFE_NO_PAD.decode(next()?).ok()?;
        let correlation = String::from_utf8(correlation).ok()?;
        Some(Context {
            correlation_id: Some(correlation).filter(|correlation| !correlation.is_empty()),
            hops: hops.saturating_add(1),
            cause: Some(Cause { id, runs }),
            ..Context::default()
        })
    }
}

/// Compares in a time that does not reveal where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    one.len() == other.len() && pairs.fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn context(correlation: &str, hops: u8) -> Context {
        Context {
            correlation_id: Some(correlation.to_owned()),
            hops,
            ..Context::default()
        }
    }

    const CAUSE: Cause = Cause {
        id: Uuid::from_u128(7),
        runs: 41,
    };

    proptest! {
        #[test]
        fn a_call_goes_on_where_it_came_from(correlation in ".{1,60}", hops: u8, runs: u32) {
            let keys = Keyring::from_master(&[7; 32]);
            let cause = Cause { runs, ..CAUSE };
            let header = keys.cause_header(&context(&correlation, hops), cause);
            prop_assert!(header.len() <= MAX_BYTES && header.bytes().all(|b| b.is_ascii_graphic()));
            let read = keys.context_of_call(&header);
            let further = context(&correlation, hops.saturating_add(1));
            prop_assert_eq!(read, Some(Context { cause: Some(cause), ..further }));
        }

        #[test]
        fn nobody_else_can_make_or_change_one(at: prop::sample::Index, to in "[ -~]", any in ".*") {
            let keys = Keyring::from_master(&[7; 32]);
            let header = keys.cause_header(&context("request", 8), CAUSE);
            let at = at.index(header.len());
            let mut changed = header.clone();
            changed.replace_range(at..=at, &to);
            prop_assert_eq!(keys.context_of_call(&changed).is_some(), changed == header);
            prop_assert_eq!(keys.context_of_call(&any), None);
            let others = Keyring::from_master(&[8; 32]);
            prop_assert_eq!(others.context_of_call(&header), None);
        }
    }
}
