//! Organizations, founded by the operator, and their people.

mod accept;
mod address;
mod create;
mod forget;
mod invite;
mod remove;

use event_log::ReadError;
use schemas::{AggregateType, OrgId, Recorded, StreamId};

pub use accept::{Invitation, Joined, Joiner, accept, look};
pub use create::{NewOrganization, NewOwner, create};
pub use forget::forget_address;
pub use invite::{NewInvite, invite, link};
pub use remove::{remove, remove_address, withdraw};

pub(crate) use forget::forget_person;

use crate::Commands;

/// The stream of an organization's own events.
fn stream(org: &OrgId) -> StreamId {
    StreamId::new(org, AggregateType::Organization, org.as_str())
}

async fn load(commands: &Commands, org: &OrgId) -> Result<Vec<Recorded>, ReadError> {
    commands.log().load(&stream(org)).await
}
