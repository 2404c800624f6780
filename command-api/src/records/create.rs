//! `POST /api/v1/records/{kind}`: one new record, or a stream of lines or rows (see
//! [`super::ndjson`]).

use std::sync::atomic::AtomicUsize;

use access::{Authorized, scope};
use axum::Extension;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use domain::record::{self, Draft, Exists, Kind};
use schemas::{OrgId, RecordId, StreamId};
use serde::Serialize;
use service::HttpError;

use super::answers::Sender;
use super::batch::Newness;
use super::line_splitter::SplitBy;
use super::ndjson;
use crate::body::JsonBody;
use crate::commands::{Decision, Past};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, Origin, Refusal, answer};

/// A newly created record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewRecord {
    /// The record.
    pub id: RecordId,
}

impl Refusal for Exists {
    fn into_http(self) -> HttpError {
        HttpError::conflict(self.to_string())
    }
}

/// Creates a record, under a new id if the draft has none.
pub async fn create(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    kind: Kind,
    draft: Draft,
) -> Result<Done<NewRecord>, CommandError<Exists>> {
    let id = draft.id().cloned();
    let id = id.unwrap_or_else(|| RecordId::from(commands.random.id()));
    let stream = StreamId::new(org, kind.aggregate(), id.as_str());
    let made = commands.execute_once(origin, &stream, Past::Last, id.as_str(), |past, now| {
        let last = past.last().map(|recorded| &recorded.event);
        let event = record::create(id.clone(), draft.clone(), last, now)?;
        Ok(Decision::new(id.clone(), Some(event)))
    });
    Ok(made
        .await?
        .answered(RecordId::new)
        .map(|id| NewRecord { id }))
}

pub(super) async fn create_records(
    caller: Authorized<scope::WriteRecords>,
    State(app): State<App>,
    Extension(kind): Extension<Kind>,
    repeatable: Repeatable,
    request: Request,
) -> Result<Response, HttpError> {
    if let Some(split_by) = many(request.headers()) {
        let sender = Sender {
            app,
            caller: caller.0,
            kind,
            repeatable,
            table: None,
            failures: AtomicUsize::default(),
            newness: Newness::default(),
        };
        return ndjson::write_lines(sender, split_by, request).await;
    }
    let body: JsonBody = JsonBody::from_request(request, &app).await?;
    let draft = record::parse(kind, body.value()?).map_err(Refusal::into_http)?;
    let origin = repeatable.by_key(&caller, &body);
    let done = create(&app.commands, &origin, &caller.org, kind, draft).await?;
    Ok(answer::json(StatusCode::CREATED, done))
}

/// How to split a body of many records, if it is one.
fn many(headers: &HeaderMap) -> Option<SplitBy> {
    let value = headers.get(header::CONTENT_TYPE)?;
    let essence = value.to_str().ok()?.split(';').next()?;
    match essence.trim().to_ascii_lowercase().as_str() {
        "application/x-ndjson" | "application/ndjson" => Some(SplitBy::Lines),
        "text/csv" => Some(SplitBy::Rows),
        _ => None,
    }
}
