//! Organizations by name.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use schemas::{AggregateType, Event, Recorded, organization};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::text::storable;
use super::{ApplyError, Projection};

/// Every organization.
pub(super) struct Organizations;

impl Projection for Organizations {
    fn name(&self) -> &'static str {
        "organizations"
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Organization]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["organizations"]
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let created = events.iter().filter_map(|recorded| match &recorded.event {
                Event::OrganizationCreated(created) => Some((created, recorded.time)),
                _ => None,
            });
            insert(rows, &created.collect::<Vec<_>>()).await?;
            Ok(())
        })
    }
}

async fn insert(
    rows: &mut PgConnection,
    created: &[(&organization::Created, DateTime<Utc>)],
) -> Result<(), sqlx::Error> {
    if created.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO organizations (org_id, name, created_at)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::timestamptz[])",
        created
            .iter()
            .map(|(org, _)| org.org_id.as_str())
            .bind_iter() as _,
        created
            .iter()
            .map(|(org, _)| storable(&org.name))
            .bind_iter() as _,
        created.iter().map(|(_, at)| *at).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
