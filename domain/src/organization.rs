//! Organizations and their staff.

use schemas::organization::{Created, MemberAdded, Role};
use schemas::{AccountId, Event, OrgId};

use crate::{FieldError, text};

const MAX_NAME: usize = 200;

/// Founds an organization.
pub fn create(org_id: OrgId, name: &str) -> Result<Event, FieldError> {
    let name = text::name("name", name, MAX_NAME)?;
    Ok(Event::OrganizationCreated(Created { org_id, name }))
}

/// Makes a person the organization's owner.
pub fn add_owner(account_id: AccountId) -> Event {
    Event::OrganizationMemberAdded(MemberAdded {
        account_id,
        role: Role::Owner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organization_has_a_name() {
        let event = create(OrgId::from("o1"), "  Acme ").unwrap();
        assert!(matches!(event, Event::OrganizationCreated(created) if created.name == "Acme"));
        for wrong in ["", "  ", "a\nb", &"x".repeat(201)] {
            assert_eq!(create(OrgId::from("o1"), wrong).unwrap_err().field, "name");
        }
    }
}
