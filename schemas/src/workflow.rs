//! Events of workflows: their definitions, and what triggers them.

mod step_type;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::run::Way;
use crate::{EventId, RunId, StepId, WorkflowId};

pub use step_type::StepType;

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

impl Step {
    /// The ways that lead out of it, with the steps that follow on each.
    pub fn ways(&self) -> Vec<(Way, &[StepId])> {
        match &self.action {
            Action::Condition(condition) => vec![
                (Way::Then, condition.then.as_slice()),
                (Way::Else, condition.otherwise.as_slice()),
            ],
            Action::WaitForEvent(wait) => vec![
                (Way::Next, self.next.as_slice()),
                (Way::OnTimeout, wait.on_timeout.as_slice()),
            ],
            _ => vec![(Way::Next, self.next.as_slice())],
        }
    }
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
    Trigger(Trigger),
    /// Calls an HTTP address.
    Http(Http),
    /// Writes a `custom.<event>` event.
    Notify(Notify),
    /// Goes one of two ways.
    Condition(Condition),
    /// Waits for a time.
    Delay(Delay),
    /// Waits for an event.
    WaitForEvent(WaitForEvent),
    /// Makes a business record or replaces it.
    Record(Record),
}

impl Action {
    /// Its type.
    pub const fn step_type(&self) -> StepType {
        match self {
            Self::Trigger(_) => StepType::Trigger,
            Self::Http(_) => StepType::Http,
            Self::Notify(_) => StepType::Notify,
            Self::Condition(_) => StepType::Condition,
            Self::Delay(_) => StepType::Delay,
            Self::WaitForEvent(_) => StepType::WaitForEvent,
            Self::Record(_) => StepType::Record,
        }
    }
}

/// Where runs begin, and what begins them beside the API and people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trigger {
    /// What sets the workflow off by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<On>,
}

/// What sets a workflow off by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum On {
    /// Every event of a type.
    Event(OnEvent),
    /// The clock.
    Schedule(OnSchedule),
}

/// Every event of a type sets the workflow off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnEvent {
    /// A type such as `lead.created`, or all of a kind such as `lead.*`.
    pub event: String,
    /// An expression over the event's `data`; only events for which it is true count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

/// The clock sets the workflow off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnSchedule {
    /// Five fields as cron reads them.
    pub schedule: String,
    /// The time zone whose clock counts, by its IANA name.
    pub timezone: String,
}

/// Goes one of two ways; `next` plays no part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// An expression.
    #[serde(rename = "if")]
    pub test: String,
    /// The steps that follow where it is true.
    #[serde(default)]
    pub then: Vec<StepId>,
    /// The steps that follow where it is not.
    #[serde(rename = "else", default)]
    pub otherwise: Vec<StepId>,
}

/// Waits for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delay {
    /// How long, from the step's beginning.
    #[serde(serialize_with = "seconds")]
    #[schemars(with = "f64")]
    pub seconds: f64,
}

/// Waits for the first event of a type that matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitForEvent {
    /// A type such as `contact.updated`, or all of a kind such as `contact.*`.
    pub event: String,
    /// An expression over the event's `data`, `trigger` and `steps`; without one the first event
    /// matches.
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pub matching: Option<String>,
    /// How long it waits, from its beginning; without this as long as the run may take.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "maybe_seconds"
    )]
    #[schemars(with = "Option<f64>")]
    pub timeout_seconds: Option<f64>,
    /// The steps that follow where nothing came in time; `next` are those that follow the event.
    #[serde(default)]
    pub on_timeout: Vec<StepId>,
}

/// Makes a business record or replaces it. Strings may be templates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The kind, such as `contacts`.
    pub kind: String,
    /// The record's id; without one the data's own, or one that is the step's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
    /// The record's fields.
    pub data: Map<String, Value>,
}

/// Writes whole seconds without a fraction, as given.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number within bounds"
)]
fn seconds<S: Serializer>(seconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if seconds.fract() == 0.0 && (0.0..=1e15).contains(seconds) {
        serializer.serialize_u64(*seconds as u64)
    } else {
        serializer.serialize_f64(*seconds)
    }
}

#[expect(clippy::ref_option, reason = "serde asks for a reference")]
fn maybe_seconds<S: Serializer>(given: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match given {
        Some(given) => seconds(given, serializer),
        None => serializer.serialize_none(),
    }
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

/// An event that a workflow listens to, or a time of its schedule, did not set it off, though it
/// might have: because of a bound, or because the workflow's filter could not be evaluated. Or one of
/// its runs that waits for an event did not go on with one, because the step's match could not be
/// evaluated. Only the first few are told: of each cause for a bound of causes, otherwise one an hour
/// for each workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotTriggered {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// Why.
    pub reason: WhyNot,
    /// The bound that was met; absent for a filter and a match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// What was wrong with the filter or the match, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// For a match: the run that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// For a match: the step that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    /// The event that it listens to; for a schedule, the one that saved it.
    pub event_id: EventId,
    /// That event's type, or `schedule`.
    pub event_type: String,
    /// The event or run from outside that all of it goes back to.
    pub cause_id: EventId,
    /// What is common to all that follows from one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// Why an event did not set a workflow off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhyNot {
    /// So many runs have set each other off, one after the other.
    Hops,
    /// So many runs have been set off in all.
    Runs,
    /// The filter failed for this event, or would have been too much work.
    Filter,
    /// So many runs of the organization are open.
    OpenRuns,
    /// The match of a step that waits failed for this event, or would have been too much work.
    Match,
}

impl WhyNot {
    /// Its external name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hops => "hops",
            Self::Runs => "runs",
            Self::Filter => "filter",
            Self::OpenRuns => "openRuns",
            Self::Match => "match",
        }
    }
}
