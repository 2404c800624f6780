//! Contacts as they are exported.

use super::column::{Column, Kind};
use super::snapshot::snapshot_of;
use crate::progress::Projection;

/// All contacts.
pub static CONTACTS: Kind = Kind {
    name: "contacts",
    title: "Contacts",
    columns: &[
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
    ],
    crm: None,
    projection: Projection::Contacts,
    statement: snapshot_of!(
        "SELECT id, first_name, last_name, email, phone, job_title, company_id, company_name,
                city, country, owner, created_at, updated_at
         FROM contacts WHERE org_id = current_setting('waypost.org', true)
         ORDER BY created_at DESC, id"
    ),
};
