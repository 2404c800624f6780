//! RECORD: creates or replaces a business record.
//!
//! The decision is that of `PUT /api/v1/records/{kind}/{id}`, by the same function. The record's
//! event is in one commit with the step's success, so it is written exactly once; if another writer
//! changes the record meanwhile, the commit is refused and decided again.

use chrono::{DateTime, Utc};
use domain::record::{self, Change, Draft, Kind};
use domain::template::{Secrets, Tree};
use event_log::{EventLog, Expected, ReadError};
use schemas::workflow::Record;
use schemas::{Event, OrgId, RecordId, StepId, StreamId};
use serde_json::{Value, json};

use super::super::program::RecordTemplates;
use super::{Surroundings, within_bounds};

/// A record to be written.
pub(in super::super) struct Call {
    kind: Kind,
    /// `None` if no id was given: it is the step's alone.
    id: Option<RecordId>,
    draft: Draft,
    step: StepId,
}

/// What is to be written after the current record.
pub(in super::super) struct Written {
    pub(in super::super) stream: StreamId,
    pub(in super::super) expected: Expected,
    /// `None` if the record is already the same.
    pub(in super::super) event: Option<Event>,
    /// What later steps see.
    pub(in super::super) output: Value,
}

/// Renders a record and checks it; an error is permanent.
pub(super) fn prepare(
    step: &StepId,
    record: &Record,
    templates: &RecordTemplates,
    with: &Surroundings<'_>,
) -> Result<(Value, Call), String> {
    let render = |tree: &Tree, place: &str| {
        // Records are public: definitions with secrets here are not saved, and would show masks.
        let rendered = tree.render(with.scope, &Secrets::Masked, with.meter);
        rendered.map_err(|error| error.at(place).to_string())
    };
    let kind = Kind::parse(&record.kind)
        .ok_or_else(|| format!("kind: unknown kind of record {}", record.kind))?;
    let data = render(&templates.data, "data")?;
    let mut input = json!({ "kind": kind.name(), "data": data });
    within_bounds("data", &data)?;
    let Value::Object(fields) = data else {
        return Err("data: must be an object".to_owned());
    };
    let mut draft = record::parse_object(kind, fields).map_err(|wrong| format!("data.{wrong}"))?;
    let mut id = draft.id().cloned();
    if let Some(named) = &templates.id {
        let named = text(render(named, "recordId")?)?;
        let named =
            record::parse_id(&named).map_err(|wrong| format!("recordId: {}", wrong.reason))?;
        let addressed = draft.addressed(named.clone());
        draft = addressed.map_err(|_| "data.id: must equal recordId".to_owned())?;
        id = Some(named);
    }
    if let Some(id) = &id {
        input["recordId"] = Value::from(id.as_str());
    }
    let call = Call {
        kind,
        id,
        draft,
        step: step.clone(),
    };
    Ok((input, call))
}

/// Numbers may be ids too.
fn text(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err("recordId: must be a string".to_owned()),
    }
}

/// Reads the current record and decides.
pub(in super::super) async fn decide(
    call: &Call,
    log: &EventLog,
    run: &StreamId,
    now: DateTime<Utc>,
) -> Result<Written, ReadError> {
    let id = call
        .id
        .clone()
        .unwrap_or_else(|| own_id(call, log, &run.id, &run.org));
    let stream = StreamId::new(&run.org, call.kind.aggregate(), id.as_str());
    let last = log.last(&stream).await?;
    let standing = last.as_ref().map(|last| &last.event);
    let (change, event) = record::put(id.clone(), call.draft.clone(), standing, now);
    Ok(Written {
        stream,
        expected: Expected::after(last.map(|last| last.sequence)),
        event,
        output: json!({ "id": id, "status": status(change) }),
    })
}

/// The same id however often the step begins.
fn own_id(call: &Call, log: &EventLog, run: &str, org: &OrgId) -> RecordId {
    let parts = [org.as_str(), run, call.step.as_str()].map(str::as_bytes);
    let id = log.keyring().derived_uuid("record of a step", &parts);
    RecordId::new(id.to_string())
}

fn status(change: Change) -> &'static str {
    match change {
        Change::Created => "created",
        Change::Updated => "updated",
        Change::Unchanged => "unchanged",
    }
}
