//! `GET /api/v1/leads`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::list::{Found, ListQuery};
use crate::paging::{Listed, Page, Parameters, find_page};
use crate::progress::Projection;
use crate::reading::Reading;
use crate::search::{LEADS, Within, text_parameter};

#[derive(Debug, Serialize, sqlx::FromRow)]
#[serde(rename_all = "camelCase")]
struct Lead {
    id: String,
    name: String,
    phone: Option<String>,
    email: Option<String>,
    service: Option<String>,
    source: Option<String>,
    status: Option<String>,
    score: i64,
    created_at: DateTime<Utc>,
    #[serde(skip)]
    #[sqlx(default)]
    total: i64,
}

impl Listed for Lead {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl Found for Lead {
    fn total(&self) -> i64 {
        self.total
    }
}

/// The columns read of a row, besides its id and its time.
const COLUMNS: &str = "name, phone, email, service, source, status, score";

pub(super) async fn list_leads(
    reading: Reading<scope::ReadLeads>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let query = ListQuery::of(&parameters, &LEADS)?;
    let status = text_parameter(&parameters, "status")?.unwrap_or_default();
    let models = reading.models(&[Projection::Leads]).await?;
    let (org, page) = (reading.org(), &query.page);
    let within = Within::all(&LEADS, org).of_state(&status);
    if !(query.search.is_plain() && within.is_known_by_key()) {
        let hits = within
            .find::<Lead>(COLUMNS, &query.search, page, (models, reading.counts()))
            .await?;
        return Ok(query.answer(&uri, hits));
    }
    let leads = find_leads(org, &status, page, models).await?;
    let counting = (models, reading.counts());
    query.answer_rows(&uri, leads, within, counting).await
}

async fn find_leads(
    org: &OrgId,
    status: &str,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Lead>, sqlx::Error> {
    let org = org.as_str();
    // Two statements, so that each of them is planned for its own index.
    if status.is_empty() {
        find_page!(
            Lead from "leads" by "id":
            r#"shown.id AS "id!", name AS "name!", phone, email, service, source, status,
               score AS "score!", created_at AS "created_at!""#
            within "true", total "state = $3", (org, "", status), page, models
        )
    } else {
        find_page!(
            Lead from "leads" by "id":
            r#"shown.id AS "id!", name AS "name!", phone, email, service, source, status,
               score AS "score!", created_at AS "created_at!""#
            within "status_key = lower($3)",
            known as "lower($3)",
            total "$2 = '' AND field = 'status' AND value = lower($3)" in "field_totals",
            (org, "", status), page, models
        )
    }
}
