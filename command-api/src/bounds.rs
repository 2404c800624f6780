//! Upper bounds on the number of each thing, so that no caller can make it grow without end.
//!
//! What belongs to one aggregate is counted there, exactly. What an organization or a person has is
//! counted from what this process has read of the log, so concurrent commands may exceed the bound
//! by their number.

use clap::Args;
use domain::circles::{Bounds, Full, NotMember};
use service::HttpError;
use service::settings::defaults;

use crate::Refusal;

/// How many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct BoundSettings {
    /// Most workflows of an organization, archived ones included; does not bind operators.
    #[arg(
        long,
        env = "WAYPOST_WORKFLOWS_PER_ORGANIZATION",
        default_value_t = 1_000
    )]
    pub workflows_per_organization: usize,
    /// Most webhooks of an organization.
    #[arg(long, env = "WAYPOST_WEBHOOKS_PER_ORGANIZATION", default_value_t = 500)]
    pub webhooks_per_organization: usize,
    /// Most circles of an organization.
    #[arg(
        long,
        env = "WAYPOST_CIRCLES_PER_ORGANIZATION",
        default_value_t = 10_000
    )]
    pub circles_per_organization: usize,
    /// Most circles that one person may create.
    #[arg(long, env = "WAYPOST_CIRCLES_PER_PERSON", default_value_t = 200)]
    pub circles_per_person: usize,
    /// Most members of a circle.
    #[arg(long, env = "WAYPOST_MEMBERS_PER_CIRCLE", default_value_t = 10_000)]
    pub members_per_circle: usize,
    /// Most places that a circle watches.
    #[arg(long, env = "WAYPOST_PLACES_PER_CIRCLE", default_value_t = 500)]
    pub places_per_circle: usize,
    /// Most invitations to a circle that have not expired.
    #[arg(long, env = "WAYPOST_INVITES_PER_CIRCLE", default_value_t = 1_000)]
    pub invites_per_circle: usize,
}

impl Default for BoundSettings {
    fn default() -> Self {
        defaults()
    }
}

impl BoundSettings {
    /// The bounds of one circle.
    pub(crate) fn of_circle(&self) -> Bounds {
        Bounds {
            members: self.members_per_circle,
            places: self.places_per_circle,
            invites: self.invites_per_circle,
        }
    }
}

/// The bound has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// Workflows.
    #[error(
        "your organization has {0} workflows, the most it may have; save the new one under the id \
         of one that is no longer needed"
    )]
    Workflows(usize),
    /// Webhooks.
    #[error("your organization has {0} webhooks, the most it may have; delete one of them first")]
    Webhooks(usize),
    /// An organization's circles.
    #[error(
        "your organization has {0} circles, the most it may have; invite people to one that is \
         there"
    )]
    Circles(usize),
    /// A person's circles.
    #[error("you have created {0} circles, the most one may; invite people to one that is there")]
    CirclesOfPerson(usize),
    /// Contents of one circle.
    #[error(transparent)]
    InCircle(#[from] Full),
}

impl TooMany {
    fn name(self) -> &'static str {
        match self {
            Self::Workflows(_) => "workflows",
            Self::Webhooks(_) => "webhooks",
            Self::Circles(_) | Self::CirclesOfPerson(_) => "circles",
            Self::InCircle(full) => full.name(),
        }
    }
}

impl Refusal for TooMany {
    fn into_http(self) -> HttpError {
        metrics::counter!("waypost_bounds_refused_total", "bound" => self.name()).increment(1);
        HttpError::conflict(self.to_string())
    }
}

/// Why nothing is added to a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAdded {
    #[error(transparent)]
    NotMember(#[from] NotMember),
    #[error(transparent)]
    Full(#[from] Full),
}

impl Refusal for NotAdded {
    fn into_http(self) -> HttpError {
        match self {
            Self::NotMember(refusal) => refusal.into_http(),
            Self::Full(full) => TooMany::from(full).into_http(),
        }
    }
}

/// Checks that one more fits, given `there` existing ones and at most `most`.
pub(crate) fn one_more(
    there: usize,
    most: usize,
    too_many: impl FnOnce(usize) -> TooMany,
) -> Result<(), TooMany> {
    if there < most {
        Ok(())
    } else {
        Err(too_many(most))
    }
}
