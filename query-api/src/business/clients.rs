//! `GET /api/v1/clients`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::list::{Found, ListQuery};
use crate::paging::{Listed, Page, Parameters, find_page, wrong};
use crate::progress::Projection;
use crate::reading::Reading;
use crate::search::{CLIENTS, Within};

#[derive(Debug, Serialize, sqlx::FromRow)]
#[serde(rename_all = "camelCase")]
struct Client {
    id: String,
    name: String,
    email: Option<String>,
    phone: Option<String>,
    company: Option<String>,
    city: Option<String>,
    is_active: bool,
    created_at: DateTime<Utc>,
    #[serde(skip)]
    #[sqlx(default)]
    total: i64,
}

impl Listed for Client {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl Found for Client {
    fn total(&self) -> i64 {
        self.total
    }
}

/// The columns read of a row, besides its id and its time.
const COLUMNS: &str = "name, email, phone, company, city, is_active";

pub(super) async fn list_clients(
    reading: Reading<scope::ReadClients>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let query = ListQuery::of(&parameters, &CLIENTS)?;
    let activity = asked_activity(&parameters)?;
    let models = reading.models(&[Projection::Clients]).await?;
    let (org, page) = (reading.org(), &query.page);
    let within = Within::all(&CLIENTS, org).of_state(activity);
    if !(query.search.is_plain() && activity.is_empty()) {
        let hits = within
            .find::<Client>(COLUMNS, &query.search, page, (models, reading.counts()))
            .await?;
        return Ok(query.answer(&uri, hits));
    }
    let clients = find_clients(org, page, models).await?;
    let counting = (models, reading.counts());
    query.answer_rows(&uri, clients, within, counting).await
}

/// Returns the requested activity: `true` for active clients, `false` for inactive ones, empty for
/// both.
fn asked_activity(parameters: &Parameters) -> Result<&str, HttpError> {
    match parameters.one("isActive")?.unwrap_or_default().trim() {
        activity @ ("" | "true" | "false") => Ok(activity),
        other => Err(wrong(
            "isActive",
            &format!("must be true or false, not {other:?}"),
        )),
    }
}

async fn find_clients(
    org: &OrgId,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Client>, sqlx::Error> {
    find_page!(
        Client from "clients" by "id":
        r#"shown.id AS "id!", name AS "name!", email, phone, company, city,
           is_active AS "is_active!", created_at AS "created_at!""#
        within "true", total "state = $3", (org.as_str(), "", ""), page, models
    )
}
