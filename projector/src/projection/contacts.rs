//! Contacts: the export's columns, one row for each contact that is there.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use indexmap::IndexMap;
use schemas::record::Contact;
use schemas::{AggregateType, Event, Recorded};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::text::optional;
use super::totals::Totals;
use super::{ApplyError, Projection};

const KIND: &str = "contacts";

/// The contacts of every organization.
pub(super) struct Contacts;

/// A contact's organization and id.
type Key<'a> = (&'a str, &'a str);

/// A contact as the batch leaves it, with the time of that event; `None` where it is deleted.
type Last<'a> = Option<(&'a Contact, DateTime<Utc>)>;

impl Projection for Contacts {
    fn name(&self) -> &'static str {
        KIND
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Contact]
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let (put, deleted) = last_of_each(events);
            let mut totals = Totals::default();
            upsert(rows, &put, &mut totals).await?;
            delete(rows, &deleted, &mut totals).await?;
            totals.write(rows).await?;
            Ok(())
        })
    }
}

/// Each event carries the whole contact, so that of a batch only the last of each matters.
fn last_of_each<'a>(events: &[&'a Recorded]) -> (Vec<Put<'a>>, Vec<Key<'a>>) {
    let mut last: IndexMap<Key<'a>, Last<'a>> = IndexMap::with_capacity(events.len());
    for recorded in events {
        let key = (recorded.stream.org.as_str(), recorded.stream.id.as_str());
        match &recorded.event {
            Event::ContactCreated(contact) | Event::ContactUpdated(contact) => {
                last.insert(key, Some((contact, recorded.time)));
            }
            Event::ContactDeleted(_) => {
                last.insert(key, None);
            }
            _ => {}
        }
    }
    let mut put = Vec::with_capacity(last.len());
    let mut deleted = Vec::new();
    for (key, state) in last {
        match state {
            Some((contact, updated_at)) => put.push(Put {
                key,
                contact,
                updated_at,
            }),
            None => deleted.push(key),
        }
    }
    (put, deleted)
}

/// A contact to write.
struct Put<'a> {
    key: Key<'a>,
    contact: &'a Contact,
    updated_at: DateTime<Utc>,
}

async fn upsert(
    rows: &mut PgConnection,
    put: &[Put<'_>],
    totals: &mut Totals,
) -> Result<(), sqlx::Error> {
    if put.is_empty() {
        return Ok(());
    }
    let contacts = || put.iter().map(|put| put.contact);
    // A row that was not there before carries no trace of an updating transaction.
    let added = sqlx::query!(
        r#"WITH written AS (
               INSERT INTO contacts (org_id, id, first_name, last_name, email, phone, job_title,
                   company_id, company_name, city, country, owner, created_at, updated_at)
               SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[],
                   $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
                   $12::text[], $13::timestamptz[], $14::timestamptz[])
               ON CONFLICT (org_id, id) DO UPDATE SET
                   first_name = excluded.first_name, last_name = excluded.last_name,
                   email = excluded.email, phone = excluded.phone,
                   job_title = excluded.job_title, company_id = excluded.company_id,
                   company_name = excluded.company_name, city = excluded.city,
                   country = excluded.country, owner = excluded.owner,
                   created_at = excluded.created_at, updated_at = excluded.updated_at
               RETURNING org_id, (xmax = 0) AS added
           )
           SELECT org_id AS "org_id!", count(*) AS "count!" FROM written WHERE added GROUP BY org_id"#,
        put.iter().map(|put| put.key.0).bind_iter() as _,
        put.iter().map(|put| put.key.1).bind_iter() as _,
        contacts().map(|c| optional(c.first_name.as_ref())).bind_iter() as _,
        contacts().map(|c| optional(c.last_name.as_ref())).bind_iter() as _,
        contacts().map(|c| optional(c.email.as_ref())).bind_iter() as _,
        contacts().map(|c| optional(c.phone.as_ref())).bind_iter() as _,
        contacts().map(|c| optional(c.job_title.as_ref())).bind_iter() as _,
        contacts().map(|c| optional(c.company_id.as_ref())).bind_iter() as _,
        contacts().map(|c| optional(c.company_name.as_ref())).bind_iter() as _,
        contacts().map(|c| optional(c.city.as_ref())).bind_iter() as _,
        contacts().map(|c| optional(c.country.as_ref())).bind_iter() as _,
        contacts().map(|c| optional(c.owner.as_ref())).bind_iter() as _,
        contacts().map(|c| c.created_at).bind_iter() as _,
        put.iter().map(|put| put.updated_at).bind_iter() as _,
    )
    .fetch_all(rows)
    .await?;
    for row in added {
        totals.add(&row.org_id, KIND, row.count);
    }
    Ok(())
}

async fn delete(
    rows: &mut PgConnection,
    deleted: &[Key<'_>],
    totals: &mut Totals,
) -> Result<(), sqlx::Error> {
    if deleted.is_empty() {
        return Ok(());
    }
    let removed = sqlx::query!(
        r#"WITH removed AS (
               DELETE FROM contacts
               USING UNNEST($1::text[], $2::text[]) AS gone (org_id, id)
               WHERE contacts.org_id = gone.org_id AND contacts.id = gone.id
               RETURNING contacts.org_id
           )
           SELECT org_id AS "org_id!", count(*) AS "count!" FROM removed GROUP BY org_id"#,
        deleted.iter().map(|key| key.0).bind_iter() as _,
        deleted.iter().map(|key| key.1).bind_iter() as _,
    )
    .fetch_all(rows)
    .await?;
    for row in removed {
        totals.add(&row.org_id, KIND, -row.count);
    }
    Ok(())
}
