//! Export of contacts.

use super::column::{Column, Kind, with_deletion};
use super::snapshot::{changes_of, snapshot_of};
use crate::progress::Projection;

const COLUMNS: [Column; 13] = [
    Column::id("id", 36),
    Column::text("firstName", 14),
    Column::text("lastName", 16),
    Column::text("email", 32),
    Column::text("phone", 20),
    Column::text("jobTitle", 18),
    Column::id("companyId", 20),
    Column::text("companyName", 21),
    Column::text("city", 14),
    Column::text("country", 11),
    Column::text("owner", 23),
    Column::timestamp("createdAt"),
    Column::timestamp("updatedAt"),
];

/// All contacts.
pub static CONTACTS: Kind = Kind {
    name: "contacts",
    title: "Contacts",
    columns: &COLUMNS,
    crm: None,
    changes: Some(&CHANGES),
    projection: Projection::Contacts,
    statement: snapshot_of!(
        "SELECT id, first_name, last_name, email, phone, job_title, company_id, company_name,
                city, country, owner, created_at, updated_at
         FROM contacts WHERE org_id = current_setting('waypost.org', true)
         ORDER BY created_at DESC, id"
    ),
};

/// The contacts that were written or deleted since a given time, oldest change first.
static CHANGES: Kind = Kind {
    name: "contacts",
    title: "Changed contacts",
    columns: &with_deletion::<13, 14>(&COLUMNS),
    crm: None,
    changes: None,
    projection: Projection::Contacts,
    statement: changes_of!(
        "contacts",
        "deleted_contacts",
        "id, first_name, last_name, email, phone, job_title, company_id, company_name,
         city, country, owner, created_at, updated_at"
    ),
};
