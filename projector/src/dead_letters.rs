//! Events that could not be applied, and those of the same aggregate that wait behind them.

pub(crate) mod repair;

use std::collections::HashMap;

use schemas::{Log, Recorded};
use serde::Serialize;
use sqlx::postgres::PgBindIterExt as _;
use sqlx::{PgConnection, PgExecutor};

use crate::checkpoint::log_name;
use crate::projection::bigint;

/// An event that a projection has put aside.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Its id: the projection and the sequence.
    pub id: String,
    /// The projection.
    pub projection: String,
    /// The log that contains the event.
    pub log: String,
    /// Its sequence in that log.
    pub sequence: u64,
    /// The aggregate's subject in the log.
    pub subject: String,
    /// The organization of its aggregate, as far as the event could be read.
    pub org_id: Option<String>,
    /// The event's type, as far as it could be read.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// Why it could not be applied; absent for one that only waits.
    pub reason: Option<String>,
    /// The sequence of the event that it waits behind.
    pub behind: Option<u64>,
}

/// Returns every dead letter, by projection and then in the order of the log.
///
/// # Errors
/// If the database does not answer.
pub async fn dead_letters(pool: &sqlx::PgPool) -> Result<Vec<DeadLetter>, sqlx::Error> {
    let found = sqlx::query!(
        "SELECT projection, log, sequence, subject, org_id, event_type, reason, behind
         FROM dead_letters ORDER BY projection, sequence"
    )
    .fetch_all(pool)
    .await?;
    let sequence = |value: i64| u64::try_from(value).unwrap_or_default();
    let letters = found.into_iter().map(|row| DeadLetter {
        id: format!("{}:{}", row.projection, row.sequence),
        projection: row.projection,
        log: row.log,
        sequence: sequence(row.sequence),
        subject: row.subject,
        org_id: row.org_id,
        event_type: row.event_type,
        reason: row.reason,
        behind: row.behind.map(sequence),
    });
    Ok(letters.collect())
}

/// The aggregates of one projection whose events wait: the subject of each, with the sequence of
/// the event that they wait behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParkedAggregates(HashMap<String, u64>);

impl ParkedAggregates {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The sequence that an aggregate's events wait behind.
    pub(crate) fn behind(&self, subject: &str) -> Option<u64> {
        self.0.get(subject).copied()
    }

    pub(crate) fn park(&mut self, subject: &str, sequence: u64) {
        self.0.insert(subject.to_owned(), sequence);
    }

    pub(crate) fn release(&mut self, subject: &str) {
        self.0.remove(subject);
    }

    /// The aggregates, in the order of the events that they wait behind: one may need what is read
    /// from an earlier one, as a run needs its workflow's definition.
    pub(crate) fn subjects(&self) -> Vec<String> {
        let mut parked: Vec<_> = self.0.iter().collect();
        parked.sort_unstable_by_key(|(_, behind)| **behind);
        let subjects = parked.into_iter().map(|(subject, _)| subject.clone());
        subjects.collect()
    }
}

/// Loads the aggregates that wait in a projection.
pub(crate) async fn parked(
    rows: impl PgExecutor<'_>,
    projection: &str,
) -> Result<ParkedAggregates, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT subject, min(sequence) AS "sequence!" FROM dead_letters
           WHERE projection = $1 GROUP BY subject"#,
        projection,
    )
    .fetch_all(rows)
    .await?;
    let parked = found.into_iter().map(|row| {
        let sequence = u64::try_from(row.sequence).unwrap_or_default();
        (row.subject, sequence)
    });
    Ok(ParkedAggregates(parked.collect()))
}

/// Why an event is put aside.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It could not be applied, for this reason.
    Refused(String),
    /// It waits behind this sequence.
    Waits(u64),
}

/// An event to put aside.
#[derive(Debug)]
pub(crate) struct NewDeadLetter<'a> {
    pub(crate) sequence: u64,
    pub(crate) subject: String,
    /// The event, if it could be decoded.
    pub(crate) event: Option<&'a Recorded>,
    pub(crate) fate: Fate,
}

/// Stores dead letters, within the transaction that moves the projection's position past them.
pub(crate) async fn keep(
    rows: &mut PgConnection,
    log: Log,
    projection: &str,
    new: &[NewDeadLetter<'_>],
) -> Result<(), sqlx::Error> {
    if new.is_empty() {
        return Ok(());
    }
    let events = || new.iter().map(|one| one.event);
    let reason = |one: &NewDeadLetter<'_>| match &one.fate {
        // The reason may quote what was in the event.
        Fate::Refused(reason) => Some(reason.replace('\0', "\u{fffd}")),
        Fate::Waits(_) => None,
    };
    let behind = |one: &NewDeadLetter<'_>| match one.fate {
        Fate::Refused(_) => None,
        Fate::Waits(behind) => Some(bigint(behind)),
    };
    // An id that cannot be stored may be the very reason why the event is put aside.
    let id = |event: &Recorded| event.stream.id.replace('\0', "\u{fffd}");
    sqlx::query!(
        "INSERT INTO dead_letters (projection, log, sequence, subject, org_id, aggregate,
             aggregate_id, event_id, event_type, reason, behind)
         SELECT $1, $2, * FROM UNNEST($3::bigint[], $4::text[], $5::text[], $6::text[],
             $7::text[], $8::uuid[], $9::text[], $10::text[], $11::bigint[])",
        projection,
        log_name(log),
        new.iter().map(|one| bigint(one.sequence)).bind_iter() as _,
        new.iter().map(|one| one.subject.as_str()).bind_iter() as _,
        events()
            .map(|event| event.map(|e| e.stream.org.as_str()))
            .bind_iter() as _,
        events()
            .map(|event| event.map(|e| e.stream.aggregate.token()))
            .bind_iter() as _,
        events().map(|event| event.map(id)).bind_iter() as _,
        events().map(|event| event.map(|e| e.id.0)).bind_iter() as _,
        events()
            .map(|event| event.map(|e| e.event.recorded_type()))
            .bind_iter() as _,
        new.iter().map(reason).bind_iter() as _,
        new.iter().map(behind).bind_iter() as _,
    )
    .execute(rows)
    .await?;
    Ok(())
}
