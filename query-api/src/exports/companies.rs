//! Export of companies.

use super::column::{Column, Kind, with_deletion};
use super::snapshot::{changes_of, snapshot_of};
use crate::progress::Projection;

const COLUMNS: [Column; 14] = [
    Column::id("id", 36),
    Column::text("name", 22),
    Column::text("domain", 20),
    Column::text("industry", 16),
    Column::text("phone", 20),
    Column::text("email", 26),
    Column::text("address", 22),
    Column::text("city", 13),
    Column::text("country", 12),
    Column::integer("employees", 10),
    Column::integer("annualRevenue", 17),
    Column::text("owner", 18),
    Column::timestamp("createdAt"),
    Column::timestamp("updatedAt"),
];

/// All companies.
pub static COMPANIES: Kind = Kind {
    name: "companies",
    title: "Companies",
    columns: &COLUMNS,
    crm: Some(&CRM),
    changes: Some(&CHANGES),
    projection: Projection::Companies,
    statement: snapshot_of!(
        "SELECT id, name, domain, industry, phone, email, address, city, country, employees,
                annual_revenue, owner, created_at, updated_at
         FROM companies WHERE org_id = current_setting('waypost.org', true)
         ORDER BY created_at DESC, id"
    ),
};

/// The companies that were written or deleted since a given time, oldest change first.
static CHANGES: Kind = Kind {
    name: "companies",
    title: "Changed companies",
    columns: &with_deletion::<14, 15>(&COLUMNS),
    crm: None,
    changes: None,
    projection: Projection::Companies,
    statement: changes_of!(
        "companies",
        "deleted_companies",
        "id, name, domain, industry, phone, email, address, city, country, employees,
         annual_revenue, owner, created_at, updated_at"
    ),
};

/// The same companies under the labels that HubSpot's company import maps automatically.
static CRM: Kind = Kind {
    name: "companies-crm",
    title: "Companies",
    columns: &[
        Column::text("Company name", 22),
        Column::text("Company domain name", 20),
        Column::text("Industry", 16),
        Column::text("Phone number", 16),
        Column::text("Street address", 22),
        Column::text("City", 13),
        Column::text("Country/Region", 12),
        Column::integer("Number of employees", 10),
        Column::integer("Annual revenue", 14),
        Column::text("Company owner", 18),
        Column::timestamp("Create date"),
    ],
    crm: None,
    changes: None,
    projection: Projection::Companies,
    statement: snapshot_of!(
        "SELECT name, domain, industry, phone, address, city, country, employees,
                annual_revenue, owner, created_at
         FROM companies WHERE org_id = current_setting('waypost.org', true)
         ORDER BY created_at DESC, id"
    ),
};
