//! Contacts: people at companies.

use schemas::record::Contact;

use super::draft::fields;
use crate::FieldError;

fields! {
    /// A contact's own fields.
    ContactFields makes Contact {
        first_name: String = "firstName",
        last_name: String = "lastName",
        email: String = "email",
        phone: String = "phone",
        job_title: String = "jobTitle",
        company_id: String = "companyId",
        company_name: String = "companyName",
        city: String = "city",
        country: String = "country",
        owner: String = "owner",
    }
}

impl ContactFields {
    /// A contact that nobody could find again is refused.
    pub(super) fn check(&self) -> Result<(), FieldError> {
        let named = [&self.first_name, &self.last_name, &self.email]
            .into_iter()
            .flatten()
            .any(|text| !text.trim().is_empty());
        if named {
            Ok(())
        } else {
            Err(FieldError::new(
                "email",
                "one of firstName, lastName and email is required",
            ))
        }
    }
}
