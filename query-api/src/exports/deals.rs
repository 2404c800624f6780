//! Export of deals.

use super::column::{Column, Kind, with_deletion};
use super::snapshot::{changes_of, snapshot_of};
use crate::progress::Projection;

const COLUMNS: [Column; 14] = [
    Column::id("id", 36),
    Column::text("title", 26),
    Column::text("stage", 15),
    Column::integer("amount", 16),
    Column::text("currency", 8),
    Column::number("probability", 10),
    Column::id("companyId", 27),
    Column::text("companyName", 21),
    Column::id("contactId", 27),
    Column::text("contactName", 18),
    Column::text("owner", 18),
    Column::date("expectedCloseDate"),
    Column::timestamp("createdAt"),
    Column::timestamp("updatedAt"),
];

/// All deals.
pub static DEALS: Kind = Kind {
    name: "deals",
    title: "Deals",
    columns: &COLUMNS,
    crm: None,
    changes: Some(&CHANGES),
    projection: Projection::Deals,
    statement: snapshot_of!(
        "SELECT id, title, stage, amount, currency, probability, company_id, company_name,
                contact_id, contact_name, owner, expected_close_date, created_at, updated_at
         FROM deals WHERE org_id = current_setting('waypost.org', true)
         ORDER BY created_at DESC, id"
    ),
};

/// The deals that were written or deleted since a given time, oldest change first.
static CHANGES: Kind = Kind {
    name: "deals",
    title: "Changed deals",
    columns: &with_deletion::<14, 15>(&COLUMNS),
    crm: None,
    changes: None,
    projection: Projection::Deals,
    statement: changes_of!(
        "deals",
        "deleted_deals",
        "id, title, stage, amount, currency, probability, company_id, company_name,
         contact_id, contact_name, owner, expected_close_date, created_at, updated_at"
    ),
};
