//! `GET /api/v1/records/contacts/{id}`

use access::scope;
use axum::Json;
use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use crate::progress::Projection;
use crate::reading::{Reading, ResourceId};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Contact {
    id: String,
    first_name: Option<String>,
    last_name: Option<String>,
    email: Option<String>,
    phone: Option<String>,
    job_title: Option<String>,
    company_id: Option<String>,
    company_name: Option<String>,
    city: Option<String>,
    country: Option<String>,
    owner: Option<String>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

pub(super) async fn get_contact(
    reading: Reading<scope::WriteRecords>,
    ResourceId(id): ResourceId,
) -> Result<Json<Contact>, HttpError> {
    let models = reading.models(&[Projection::Contacts]).await?;
    let contact = find_contact(reading.org(), &id, models).await?;
    let contact = contact.ok_or_else(|| HttpError::not_found("there is no contact of this id"))?;
    Ok(Json(contact))
}

async fn find_contact(
    org: &OrgId,
    id: &str,
    models: &PgPool,
) -> Result<Option<Contact>, sqlx::Error> {
    sqlx::query_as!(
        Contact,
        "SELECT id, first_name, last_name, email, phone, job_title, company_id, company_name,
                city, country, owner, created_at, updated_at
         FROM contacts WHERE org_id = $1 AND id = $2",
        org.as_str(),
        id,
    )
    .fetch_optional(models)
    .await
}
