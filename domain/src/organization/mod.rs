//! Organizations and their staff.

mod decide;
mod request;
mod staff;

#[cfg(test)]
mod tests;

use schemas::organization::{Created, MemberAdded, Role};
use schemas::{AccountId, Event, OrgId};

pub use decide::{CannotJoin, Joining, Refusal, accept, forget, invite, remove, withdraw};
pub use request::{Acceptance, Invitee};
pub use staff::{Invite, Member, Organization};

use crate::{FieldError, text};

const MAX_NAME: usize = 200;

/// Creates an organization.
pub fn create(org_id: OrgId, name: &str) -> Result<Event, FieldError> {
    let name = text::name("name", name, MAX_NAME)?;
    Ok(Event::OrganizationCreated(Created { org_id, name }))
}

/// Makes a person whose account is opened together with it the organization's owner: nobody else
/// becomes an owner without having agreed.
pub fn add_owner(account_id: AccountId) -> Event {
    Event::OrganizationMemberAdded(MemberAdded {
        account_id,
        role: Role::Owner,
    })
}
