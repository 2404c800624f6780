//! The types of steps.

use serde::{Deserialize, Serialize};

/// The type of a step, as [`Action`](super::Action) lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "`Action` says what each does")]
pub enum StepType {
    Trigger,
    Http,
    Notify,
    Condition,
    Delay,
    WaitForEvent,
    Record,
}

impl StepType {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Trigger,
        Self::Http,
        Self::Notify,
        Self::Condition,
        Self::Delay,
        Self::WaitForEvent,
        Self::Record,
    ];

    /// Its name in a definition.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trigger => "TRIGGER",
            Self::Http => "HTTP",
            Self::Notify => "NOTIFY",
            Self::Condition => "CONDITION",
            Self::Delay => "DELAY",
            Self::WaitForEvent => "WAIT_FOR_EVENT",
            Self::Record => "RECORD",
        }
    }
}
