//! `PUT /api/v1/workflows/{id}`: saves a workflow's definition as its next version.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::workflow::{Saving, Summary};
use domain::{Invalid, Revision, Unmet, workflow};
use schemas::workflow::Definition;
use schemas::{AggregateType, Event, OrgId, StreamId, WorkflowId};
use serde::Serialize;
use serde_json::Value;
use service::HttpError;

use crate::body::JsonBody;
use crate::bounds::{TooMany, one_more};
use crate::commands::{Decision, Past};
use crate::precondition::{Expecting, tagged};
use crate::{App, CommandError, Commands, Done, Origin, Refusal, answer};

const MAX_BYTES: usize = 256 * 1024;

/// A workflow's newest version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedWorkflow {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The current version.
    pub version: u32,
}

/// Why a definition is not saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSaved {
    /// It breaks rules.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The workflow is not what it was expected to be.
    #[error(transparent)]
    Unmet(#[from] Unmet),
    /// It would be one too many.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}

impl Refusal for NotSaved {
    fn into_http(self) -> HttpError {
        match self {
            Self::Invalid(refusal) => refusal.into_http(),
            Self::Unmet(refusal) => refusal.into_http(),
            Self::TooMany(refusal) => refusal.into_http(),
        }
    }
}

/// Saves a definition. Without an id the document's own `workflowId` is used, or a new one.
pub async fn put(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    id: Option<WorkflowId>,
    document: Value,
) -> Result<Done<SavedWorkflow>, CommandError<NotSaved>> {
    let refuse = |invalid: Invalid| CommandError::Refused(invalid.into());
    let own = || document.get("workflowId").and_then(Value::as_str);
    let id = match id {
        Some(id) => id,
        None => match own() {
            Some(own) => workflow::parse_id(own).map_err(|error| refuse(error.into()))?,
            None => WorkflowId::from(commands.random.id()),
        },
    };
    let definition = workflow::parse(&id, document).map_err(refuse)?;
    let saving = save(commands, origin, org, &id, definition, |_| Ok(()));
    Ok(saving.await?.map(|(saved, _)| saved))
}

async fn save(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    id: &WorkflowId,
    definition: Definition,
    allows: impl Fn(Option<&Event>) -> Result<(), NotSaved>,
) -> Result<Done<(SavedWorkflow, Option<Summary>)>, CommandError<NotSaved>> {
    let stream = StreamId::new(org, AggregateType::Workflow, id.as_str());
    let saved = commands.execute(origin, &stream, Past::Last, |past, _| {
        let last = past.last().map(|recorded| &recorded.event);
        let answer = |version| SavedWorkflow {
            workflow_id: id.clone(),
            version,
        };
        Ok(match workflow::save(id.clone(), definition.clone(), last) {
            Saving::Unchanged { version } => Decision::new((answer(version), None), None),
            Saving::Saved(saved) => {
                allows(last)?;
                let answer = (answer(saved.version), Some(Summary::from(&saved)));
                Decision::new(answer, Some(Event::WorkflowSaved(saved)))
            }
        })
    });
    saved.await
}

pub(super) async fn put_workflow(
    caller: Authorized<scope::WriteWorkflows>,
    State(app): State<App>,
    Path(id): Path<String>,
    Expecting(expected): Expecting,
    origin: Origin,
    body: JsonBody<MAX_BYTES>,
) -> Result<Response, HttpError> {
    let id = workflow::parse_id(&id).map_err(Refusal::into_http)?;
    let definition = app.reading.definition(&caller.org, &id, &body).await?;
    let (org, most) = (&caller.org, app.bounds.workflows_per_organization);
    let allows = |last: Option<&Event>| {
        expected.check(workflow::revision(last).as_ref())?;
        if last.is_none() {
            one_more(app.workflows.count(org), most, TooMany::Workflows)?;
        }
        Ok(())
    };
    let saving = save(&app.commands, &origin, org, &id, definition, allows);
    let Done {
        answer: (saved, summary),
        position,
    } = saving.await?;
    if let Some(summary) = summary {
        let sequence = position.sequence();
        app.workflows.learn(&caller.org, &id, summary, sequence);
    }
    let revision = Revision::of_workflow(saved.version);
    let done = Done {
        answer: saved,
        position,
    };
    Ok(tagged(answer::json(StatusCode::OK, done), &revision))
}
