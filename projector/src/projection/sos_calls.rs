//! Calls for help: the caller, those notified, and whether open. What was said stays in the log.

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use schemas::sos::Triggered;
use schemas::{AggregateType, Event, Recorded, SosId};
use sqlx::PgConnection;
use sqlx::postgres::PgBindIterExt as _;

use super::{ApplyError, Projection, bigint};

/// Every call, once for persons and once for each notified organization.
pub(super) struct SosCalls;

impl Projection for SosCalls {
    fn name(&self) -> &'static str {
        "sos_calls"
    }

    fn aggregates(&self) -> &'static [AggregateType] {
        &[AggregateType::Sos, AggregateType::Account]
    }

    fn tables(&self) -> &'static [&'static str] {
        &["sos_calls"]
    }

    fn apply<'a>(
        &'a mut self,
        rows: &'a mut PgConnection,
        events: &'a [&'a Recorded],
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            insert(rows, events).await?;
            answer(rows, events).await?;
            forget(rows, events).await?;
            Ok(())
        })
    }
}

async fn insert(rows: &mut PgConnection, events: &[&Recorded]) -> Result<(), sqlx::Error> {
    let made = events.iter().filter_map(|recorded| match &recorded.event {
        Event::SosTriggered(call) => Some((call, *recorded)),
        _ => None,
    });
    let made: Vec<(&Triggered, &Recorded)> = made.collect();
    if made.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO sos_calls (org_id, sos_id, account_id, sequence, triggered_at)
         SELECT * FROM UNNEST($1::text[], $2::text[], $3::bigint[], $4::bigint[],
                              $5::timestamptz[]) AS made (org_id, sos_id, account_id)
         WHERE NOT EXISTS (
             SELECT FROM forgotten_accounts AS gone WHERE gone.account_id = made.account_id
         )",
        made.iter()
            .map(|(_, at)| at.stream.org.as_str())
            .bind_iter() as _,
        made.iter()
            .map(|(call, _)| call.sos_id.as_str())
            .bind_iter() as _,
        made.iter()
            .map(|(call, _)| bigint(call.user_id.0))
            .bind_iter() as _,
        made.iter().map(|(_, at)| bigint(at.sequence)).bind_iter() as _,
        made.iter().map(|(_, at)| at.time).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

/// A reply to a call, with its organization and time.
struct Reply<'e> {
    org: &'e str,
    call: &'e SosId,
    at: DateTime<Utc>,
    resolves: bool,
}

/// The first acknowledgement counts, and the first that resolves.
async fn answer(rows: &mut PgConnection, events: &[&Recorded]) -> Result<(), sqlx::Error> {
    let answers = events.iter().filter_map(|recorded| {
        let (call, resolves) = match &recorded.event {
            Event::SosAcknowledged(answered) => (&answered.sos_id, false),
            Event::SosResolved(answered) => (&answered.sos_id, true),
            _ => return None,
        };
        Some(Reply {
            org: recorded.stream.org.as_str(),
            call,
            at: recorded.time,
            resolves,
        })
    });
    let answers: Vec<Reply> = answers.collect();
    if answers.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "UPDATE sos_calls AS call
         SET acknowledged_at = coalesce(call.acknowledged_at, told.acknowledged_at),
             resolved_at = coalesce(call.resolved_at, told.resolved_at)
         FROM (
             SELECT org_id, sos_id, min(at) FILTER (WHERE NOT resolves) AS acknowledged_at,
                    min(at) FILTER (WHERE resolves) AS resolved_at
             FROM UNNEST($1::text[], $2::text[], $3::timestamptz[], $4::boolean[])
                      AS answer (org_id, sos_id, at, resolves)
             GROUP BY org_id, sos_id
         ) AS told
         WHERE call.org_id = told.org_id AND call.sos_id = told.sos_id",
        answers.iter().map(|answer| answer.org).bind_iter() as _,
        answers
            .iter()
            .map(|answer| answer.call.as_str())
            .bind_iter() as _,
        answers.iter().map(|answer| answer.at).bind_iter() as _,
        answers.iter().map(|answer| answer.resolves).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}

async fn forget(rows: &mut PgConnection, events: &[&Recorded]) -> Result<(), sqlx::Error> {
    let gone = super::personal::forgotten(events);
    if !gone.is_empty() {
        sqlx::query!("DELETE FROM sos_calls WHERE account_id = ANY($1)", &gone)
            .execute(rows)
            .await?;
    }
    Ok(())
}
