//! Events of workflows: their definitions, and what sets them off.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{RunId, StepId, WorkflowId};

/// A workflow's definition was saved; versions count from 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// This definition's number.
    pub version: u32,
    /// The definition.
    #[serde(flatten)]
    pub definition: Definition,
}

/// What a workflow is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Its name as people read it.
    pub name: String,
    /// Whether it can be triggered.
    pub status: Status,
    /// How long a run may take; past it the run is `FAILED`.
    pub timeout_seconds: u64,
    /// Its steps, in the order they were written.
    pub steps: Vec<Step>,
}

/// A workflow's status; only an `ACTIVE` one can be triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Being written.
    Draft,
    /// In use.
    Active,
    /// Out of use for now.
    Paused,
    /// Out of use for good.
    Archived,
}

/// One step of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its name within the workflow.
    pub id: StepId,
    /// What it does.
    #[serde(flatten)]
    pub action: Action,
    /// The steps that follow it.
    #[serde(default)]
    pub next: Vec<StepId>,
    /// When a step with several predecessors runs.
    #[serde(default)]
    pub join: Join,
}

/// When a step with several predecessors runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// At the first predecessor's end.
    #[default]
    Any,
    /// After all that are not skipped.
    All,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    /// Where runs begin.
    Trigger,
    /// Calls an HTTP address.
    Http(Http),
    /// Writes a `custom.<event>` event.
    Notify(Notify),
}

/// An HTTP call. Strings may be templates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Http {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// The address.
    pub url: String,
    /// Headers to send.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<String, String>,
    /// The JSON body, where one is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// How long one attempt may take.
    pub timeout_seconds: u64,
    /// What happens when an attempt fails.
    pub retry: Retry,
    /// The statuses that count as success; any 2xx where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_status: Vec<u16>,
}

/// How often and how patiently a failing step is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// All attempts together, from 1.
    pub max_attempts: u32,
    /// The wait after the first failure; it doubles from there.
    pub initial_seconds: f64,
    /// The longest wait.
    pub max_seconds: f64,
}

/// An event of the user's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notify {
    /// The name that follows `custom.`.
    pub event: String,
    /// Its data; strings may be templates.
    #[serde(default)]
    pub data: Map<String, Value>,
}

/// A run was asked for. This is the first event of the run's own stream, so that the triggers
/// of one workflow do not queue behind each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Triggered {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// The definition it follows to its end, whatever is saved meanwhile.
    pub workflow_version: u32,
    /// The caller's fields with `triggeredBy` and `triggeredAt` set over them.
    pub trigger_payload: Map<String, Value>,
}
