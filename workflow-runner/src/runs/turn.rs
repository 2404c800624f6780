//! The organization and origin by which runs take turns.

use std::hash::{DefaultHasher, Hash, Hasher};

use schemas::{OrgId, Recorded};

/// What started a run. Runs started by events can come in masses, since other runs and imports
/// create the events: they are worked on in separate places, far fewer of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A request, or the clock.
    Outside,
    /// An event of the log.
    Event,
}

/// An organization's runs of one origin, in four bytes. It is only for taking turns: two
/// organizations that share a number share their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Turn(pub(super) u32);

impl Turn {
    /// The turn of the run that an event opens.
    pub(super) fn of(opening: &Recorded) -> Self {
        let by_event = opening.context.hops > 0;
        Self(Self::of_org(&opening.stream.org).0 | u32::from(by_event))
    }

    /// The same for all runs of an organization.
    pub(super) fn of_org(org: &OrgId) -> Self {
        let mut hasher = DefaultHasher::new();
        org.hash(&mut hasher);
        let hash = u32::try_from(hasher.finish() >> 32).unwrap_or_default();
        Self(hash & !1)
    }

    pub(super) fn origin(self) -> Origin {
        if self.0 & 1 == 0 {
            Origin::Outside
        } else {
            Origin::Event
        }
    }

    /// The same for all runs of an organization.
    pub(super) fn org(self) -> Self {
        Self(self.0 & !1)
    }
}
