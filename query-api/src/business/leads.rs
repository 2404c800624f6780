//! `GET /api/v1/leads`

use access::scope;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::Serialize;
use service::HttpError;
use sqlx::PgPool;

use super::list::{Found, List, find_page};
use crate::paging::{Listed, Page, Parameters};
use crate::progress::Projection;
use crate::reading::Reading;

#[derive(Debug, Serialize)]
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

pub(super) async fn list_leads(
    reading: Reading<scope::ReadLeads>,
    uri: Uri,
) -> Result<Response, HttpError> {
    let page = Page::asked_for(&Parameters::of(&uri)?)?;
    let models = reading.models(&[Projection::Leads]).await?;
    let org = reading.org();
    let leads = find_leads(org, &page, models).await?;
    let list = List {
        kind: "leads",
        state: "",
    };
    list.answer(leads, &page, &uri, (org, models)).await
}

async fn find_leads(org: &OrgId, page: &Page, models: &PgPool) -> Result<Vec<Lead>, sqlx::Error> {
    find_page!(
        Lead from "leads":
        "shown.id, name, phone, email, service, source, status, score, created_at"
        where "true",
        org, "", page
    )
    .fetch_all(models)
    .await
}
