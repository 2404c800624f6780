//! Searches the deliveries of an endpoint: `q`.

use event_log::Keyring;
use schemas::{EventId, OrgId};
use service::HttpError;
use sqlx::PgPool;
use uuid::Uuid;

use super::{Delivery, of_types};
use crate::paging::{Page, Parameters};
use crate::search::{anywhere, search_text};

/// The prefix of deliveries' ids.
const DELIVERY: &str = "msg_";

/// A search among an endpoint's deliveries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sought {
    /// The delivery of this id.
    One(String),
    /// The deliveries of events whose type matches this pattern.
    Type(String),
}

impl Sought {
    /// Returns the search that a request asks for. An endpoint receives an event in one delivery,
    /// whose id follows from the event's.
    pub(crate) fn from_parameters(
        parameters: &Parameters,
        webhook: &str,
        keyring: &Keyring,
    ) -> Result<Option<Self>, HttpError> {
        let Some(text) = search_text(parameters)? else {
            return Ok(None);
        };
        if let Ok(event) = Uuid::try_parse(&text) {
            let delivery = keyring.delivery_id(&webhook.into(), EventId(event));
            return Ok(Some(Self::One(delivery.into_string())));
        }
        Ok(Some(if text.starts_with(DELIVERY) {
            Self::One(text)
        } else {
            Self::Type(anywhere(text.trim_end_matches('*')))
        }))
    }

    /// Returns a page of them, newest first, and their total.
    pub(crate) async fn find(
        &self,
        org: &OrgId,
        webhook: &str,
        page: &Page,
        models: &PgPool,
    ) -> Result<(Vec<Delivery>, i64), sqlx::Error> {
        match self {
            Self::One(id) => find_one(org, webhook, id, page, models).await,
            Self::Type(pattern) => of_types::find(org, webhook, pattern, page, models).await,
        }
    }
}

async fn find_one(
    org: &OrgId,
    webhook: &str,
    id: &str,
    page: &Page,
    models: &PgPool,
) -> Result<(Vec<Delivery>, i64), sqlx::Error> {
    let found = sqlx::query_as!(
        Delivery,
        r#"SELECT delivery_id AS id, event_id, event_type, status, next_attempt_at,
                  attempts AS "attempts: _", created_at, 0::bigint AS "total!"
           FROM deliveries WHERE org_id = $1 AND webhook_id = $2 AND delivery_id = $3"#,
        org.as_str(),
        webhook,
        id,
    );
    let found = found.fetch_optional(models).await?;
    let total = i64::from(found.is_some());
    let is_on_page = |one: &Delivery| page.offset() == 0 && one.id.as_str() > page.after_id();
    Ok((found.into_iter().filter(is_on_page).collect(), total))
}
