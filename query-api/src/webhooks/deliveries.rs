//! `GET /api/v1/webhooks/{id}/deliveries`

mod of_types;
mod sought;

use access::scope;
use axum::extract::State as AppState;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use schemas::OrgId;
use serde::Serialize;
use serde_json::value::RawValue;
use service::HttpError;
use sqlx::PgPool;
use sqlx::types::Json;
use uuid::Uuid;

pub(crate) use self::sought::Sought;
use super::get::{find_webhook, no_webhook};
use crate::paging::{Listed, Page, Parameters, find_page};
use crate::progress::Projection;
use crate::reading::{Reading, ResourceId};
use crate::state::State;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delivery {
    pub(super) id: String,
    pub(super) event_id: Uuid,
    #[serde(rename = "type")]
    pub(super) event_type: String,
    pub(super) status: String,
    pub(super) next_attempt_at: Option<DateTime<Utc>>,
    pub(super) attempts: Json<Box<RawValue>>,
    pub(super) created_at: DateTime<Utc>,
    #[serde(skip)]
    pub(super) total: i64,
}

impl Listed for Delivery {
    fn created_at(&self) -> DateTime<Utc> {
        self.created_at
    }

    fn id(&self) -> &str {
        &self.id
    }
}

pub(super) async fn list_deliveries(
    reading: Reading<scope::ManageWebhooks>,
    AppState(state): AppState<State>,
    ResourceId(webhook): ResourceId,
    uri: Uri,
) -> Result<Response, HttpError> {
    let parameters = Parameters::of(&uri)?;
    let page = Page::from_parameters(&parameters)?;
    let sought = Sought::from_parameters(&parameters, &webhook, state.log.keyring())?;
    let read_from = [Projection::Webhooks, Projection::Deliveries];
    let models = reading.models(&read_from).await?;
    let org = reading.org();
    if let Some(sought) = sought {
        let known = find_webhook(org, &webhook, models).await?;
        known.ok_or_else(no_webhook)?;
        let (deliveries, total) = sought.find(org, &webhook, &page, models).await?;
        return Ok(page.answer(&uri, deliveries, total));
    }
    let deliveries = find_deliveries(org, &webhook, &page, models).await?;
    let total = match deliveries.first() {
        Some(delivery) => delivery.total,
        None => count_deliveries(org, &webhook, models)
            .await?
            .ok_or_else(no_webhook)?,
    };
    Ok(page.answer(&uri, deliveries, total))
}

/// Selects a page of deliveries as [`find_page!`] does, by the type of their event or by none.
macro_rules! select_deliveries {
    (within $within:literal, total $total:literal in $counters:literal,
     ($org:expr, $webhook:expr, $event_type:expr), $page:expr, $models:expr) => {
        find_page!(
            Delivery from "deliveries" by "delivery_id":
            r#"shown.delivery_id AS "id!", event_id AS "event_id!", event_type AS "event_type!",
           status AS "status!", next_attempt_at, attempts AS "attempts!: _",
           created_at AS "created_at!""#
            within $within, known as "$3", total $total in $counters,
            ($org, $webhook, $event_type), $page, $models
        )
    };
}
use select_deliveries;

/// Returns a page of an endpoint's deliveries. A deleted endpoint has none.
pub(crate) async fn find_deliveries(
    org: &OrgId,
    webhook: &str,
    page: &Page,
    models: &PgPool,
) -> Result<Vec<Delivery>, sqlx::Error> {
    select_deliveries!(
        within "webhook_id = $2 AND EXISTS (SELECT FROM webhooks WHERE org_id = $1 AND webhook_id = $2)",
        total "parent = $2 AND $3 = ''" in "totals",
        (org.as_str(), webhook, ""), page, models
    )
}

/// Returns the number of deliveries in the list, if the endpoint exists.
async fn count_deliveries(
    org: &OrgId,
    webhook: &str,
    models: &PgPool,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT (SELECT coalesce(sum(count), 0)::bigint FROM totals
                   WHERE org_id = $1 AND kind = 'deliveries' AND parent = $2) AS "total!"
           FROM webhooks WHERE org_id = $1 AND webhook_id = $2"#,
        org.as_str(),
        webhook,
    )
    .fetch_optional(models)
    .await
}
