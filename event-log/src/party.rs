//! The party that a request belongs to.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use schemas::{OrgId, SYSTEM_ORG, StreamId};

/// A party that asks something of the log: an organization, or a single person if what they write
/// belongs to none. Two that share a hash count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Party(pub(crate) u64);

impl Party {
    pub(crate) fn of(stream: &StreamId) -> Self {
        let id = (stream.org.as_str() == SYSTEM_ORG).then_some(stream.id.as_str());
        Self::hashed(&stream.org, id)
    }

    pub(crate) fn of_organization(org: &OrgId) -> Self {
        Self::hashed(org, None)
    }

    fn hashed(org: &OrgId, id: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        org.hash(&mut hasher);
        id.hash(&mut hasher);
        Self(hasher.finish())
    }
}
