//! The history of a record, from the log, newest first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use event_log::{EventLog, Position, Whose};
use schemas::{Actor, Event, Log, OrgId, Recorded, StreamId};
use serde::Serialize;
use serde_json::Value as Json;
use service::HttpError;
use sqlx::PgPool;

use super::kinds::{Field, Kind};
use super::list::as_read;
use crate::pages::address::encoded;
use crate::pages::visit::find_name;

/// Changes shown at a time.
const SHOWN: usize = 20;
/// Events read from the log at a time.
const TAKEN: usize = 200;
/// How long a page waits for the log. A record with so many changes that it takes longer is shown
/// without its history.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The last events of a record, newest first, one more than are shown.
pub(super) struct History(VecDeque<Arc<Recorded>>);

#[derive(Serialize)]
pub(super) struct HistoryPart {
    pub(super) changes: Vec<Change>,
    /// Where older changes begin.
    older: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Change {
    time: DateTime<Utc>,
    event_type: String,
    what: &'static str,
    fields: Vec<Changed>,
    cause: Cause,
}

#[derive(Serialize)]
struct Changed {
    label: &'static str,
    before: String,
    after: String,
}

/// The cause of a change in words, with a page if there is one.
#[derive(Default, Serialize)]
struct Cause {
    text: String,
    href: Option<String>,
}

/// Parses the position before which the history is requested.
pub(super) fn before(log: &EventLog, text: Option<&str>) -> Result<Option<u64>, HttpError> {
    let parsed = text.map(|text| log.parse_position(text)).transpose();
    let parsed = parsed.map_err(|error| HttpError::bad_request(format!("before: {error}")))?;
    Ok(parsed.map(Position::sequence))
}

impl History {
    /// Reads the events before a sequence; `None` if the log does not answer in time.
    pub(super) async fn read(
        log: &EventLog,
        stream: &StreamId,
        before: Option<u64>,
    ) -> Option<Self> {
        let reading = Self::read_all(log, stream, before.unwrap_or(u64::MAX));
        tokio::time::timeout(TIMEOUT, reading).await.ok()?
    }

    async fn read_all(log: &EventLog, stream: &StreamId, before: u64) -> Option<Self> {
        let whose = Whose::Aggregates(std::slice::from_ref(stream));
        let mut tail = log.read_for(Log::Events, whose, 0).await.ok()?;
        let mut last = VecDeque::with_capacity(SHOWN + 2);
        let mut ended = tail.caught_up();
        while !ended {
            let batch = tail.next(TAKEN).await.ok()?;
            ended = batch.caught_up || batch.last_sequence >= before;
            for recorded in batch.into_readable("a record's history") {
                if recorded.sequence < before {
                    last.push_front(recorded);
                    last.truncate(SHOWN + 1);
                }
            }
        }
        Some(Self(last))
    }

    /// Describes the changes in words.
    pub(super) async fn describe(
        self,
        kind: &Kind,
        log: &EventLog,
        org: &OrgId,
        models: &PgPool,
    ) -> Result<HistoryPart, HttpError> {
        let mut states = Vec::with_capacity(self.0.len());
        for recorded in &self.0 {
            let data = log.reveal(&recorded.event).await;
            states.push(data.map_err(|_| HttpError::unavailable("the event log does not answer"))?);
        }
        let mut changes = Vec::with_capacity(SHOWN);
        for (at, recorded) in self.0.iter().take(SHOWN).enumerate() {
            changes.push(Change {
                time: recorded.time,
                event_type: recorded.event.name().into_owned(),
                what: what(&recorded.event),
                fields: changed(kind.fields, states.get(at + 1), &states[at]),
                cause: cause(recorded, org, models).await?,
            });
        }
        let older = self.0.get(SHOWN - 1).filter(|_| self.0.len() > SHOWN);
        let older = older.map(|last| log.position(Log::Events, last.sequence).to_string());
        Ok(HistoryPart { changes, older })
    }
}

fn what(event: &Event) -> &'static str {
    let name = event.name();
    match name.rsplit('.').next() {
        Some("created") => "Created",
        Some("deleted") => "Deleted",
        _ => "Changed",
    }
}

/// Returns the fields in which a record differs from its previous state.
fn changed(fields: &[Field], before: Option<&Json>, after: &Json) -> Vec<Changed> {
    let read = |record: Option<&Json>, field: &Field| {
        let text = record.map(|record| text_at(record, field.name));
        let currency = record.map(|record| text_at(record, "currency"));
        as_read(
            text.unwrap_or_default(),
            field.look,
            &currency.unwrap_or_default(),
        )
    };
    let both = fields.iter().map(|field| Changed {
        label: field.label,
        before: read(before, field),
        after: read(Some(after), field),
    });
    both.filter(|both| both.before != both.after).collect()
}

/// Returns a field's value as text. Dots lead into objects.
fn text_at(record: &Json, name: &str) -> String {
    match name
        .split('.')
        .try_fold(record, |within, part| within.get(part))
    {
        None | Some(Json::Null) => String::new(),
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Describes who or what caused a change. Keys and people have their current names.
async fn cause(recorded: &Recorded, org: &OrgId, models: &PgPool) -> Result<Cause, HttpError> {
    let Some(actor) = &recorded.context.actor else {
        return Ok(Cause::default());
    };
    let (text, href) = match actor {
        Actor::Key(id) => {
            let name = name_of_key(id, org, models).await?;
            let text = name.map_or_else(
                || format!("API key {id} (revoked)"),
                |name| format!("API key {name}"),
            );
            (text, Some("/dashboard/settings/api-manager".to_owned()))
        }
        Actor::Person(account) => {
            let name = find_name(*account, models).await?;
            (name.unwrap_or_else(|| "a person".to_owned()), None)
        }
        Actor::Run(id) => {
            let href = format!("/dashboard/runs/{}", encoded(id));
            ("a workflow's run".to_owned(), Some(href))
        }
        Actor::Operator => ("import by the operator".to_owned(), None),
    };
    Ok(Cause { text, href })
}

async fn name_of_key(
    id: &str,
    org: &OrgId,
    models: &PgPool,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT name FROM api_keys WHERE org_id = $1 AND key_id = $2")
        .bind(org.as_str())
        .bind(id)
        .fetch_optional(models)
        .await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::kinds::KINDS;
    use super::*;

    #[test]
    fn a_change_lists_what_differs_with_the_labels_of_the_form() {
        let orders = KINDS[3];
        let before = json!({"status": "ACTIVE", "amount": 500, "client": {"name": "Ada"}});
        let after = json!({"status": "ACTIVE", "amount": 1_250_000, "client": {"name": null}});
        let told = changed(orders.fields, Some(&before), &after);
        let told: Vec<_> = told
            .iter()
            .map(|one| (one.label, one.before.as_str(), one.after.as_str()))
            .collect();
        let expected = [("Amount", "5.00", "12,500.00"), ("Client", "Ada", "")];
        assert_eq!(told, expected);
        assert_eq!(changed(orders.fields, None, &after).len(), 2);
    }
}
