//! `GET /api/export/contacts`

use access::scope;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::response::Response;
use service::HttpError;

use super::column::{Column, Kind};
use super::snapshot::snapshot_of;
use super::{Exports, Format, only_listed_statuses};
use crate::progress::Projection;
use crate::reading::Reading;

/// Contacts as they are exported.
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
    statement: snapshot_of!(
        "SELECT id, first_name, last_name, email, phone, job_title, company_id, company_name,
                city, country, owner, created_at, updated_at
         FROM contacts WHERE org_id = current_setting('waypost.org', true)
         ORDER BY created_at DESC, id"
    ),
};

pub(super) async fn export_contacts(
    reading: Reading<scope::ExportContacts>,
    State(exports): State<Exports>,
    method: Method,
    uri: Uri,
) -> Result<Response, HttpError> {
    let read_from = [Projection::Contacts, Projection::Organizations];
    let models = reading.models(&read_from).await;
    models.map_err(only_listed_statuses)?;
    let format = Format::asked_for(&uri);
    exports
        .answer(reading.org(), &CONTACTS, format, &method)
        .await
}
