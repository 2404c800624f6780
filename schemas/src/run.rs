//! Events of a run after its trigger.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{RunId, StepId, WorkflowId};

/// A runner took the run up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
}

/// An attempt at a step began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStarted {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// The step.
    pub step_id: StepId,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// What the step works on, with secrets left out.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
}

/// A step waits for an event: what is recorded behind this counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventAwaited {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// The step.
    pub step_id: StepId,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The type that is waited for, or all of a kind such as `contact.*`.
    pub event: String,
}

/// A step ended well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepSucceeded {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// The step.
    pub step_id: StepId,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// Which way the run goes on from the step.
    pub way: Way,
    /// What later steps see as `steps.<id>.output`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
}

/// Which way a run goes on from a step: the list of the definition whose steps follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Way {
    /// `next`: what most steps have.
    #[default]
    Next,
    /// `then`: a condition was true.
    Then,
    /// `else`: a condition was not true.
    Else,
    /// `onTimeout`: what was waited for did not come.
    OnTimeout,
}

impl Way {
    /// The name of the list in a definition.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Then => "then",
            Self::Else => "else",
            Self::OnTimeout => "onTimeout",
        }
    }
}

/// An attempt at a step failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepFailed {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// The step.
    pub step_id: StepId,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// Why, for people.
    pub error: String,
    /// When the next attempt begins; without it the step has failed for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<DateTime<Utc>>,
}

/// The run goes on only at a later time: every open step waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// The step that goes on first.
    pub step_id: StepId,
    /// When it goes on.
    pub until: DateTime<Utc>,
}

/// The run ended well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Succeeded {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
}

/// The run ended in failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// Why, for people.
    pub error: String,
}

/// A run that had failed or was called off goes on: steps that have succeeded stay as they are,
/// those that had begun and have not begin another attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retried {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
}

/// The run was called off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
}

/// The run was forgotten with a person whose data it held: its earlier events are erased, and
/// nothing follows this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forgotten {
    /// The run.
    pub run_id: RunId,
}
