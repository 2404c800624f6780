//! Spans of time.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::stored_time;

/// A span of time, including its start and excluding its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// When it began.
    #[serde(with = "stored_time")]
    pub from: DateTime<Utc>,
    /// When it ended; `None` while it lasts.
    #[serde(with = "stored_time::optional")]
    pub until: Option<DateTime<Utc>>,
}

impl Period {
    pub(super) fn beginning(from: DateTime<Utc>) -> Self {
        Self { from, until: None }
    }

    /// Whether it contains a time.
    pub fn contains(&self, at: DateTime<Utc>) -> bool {
        self.from <= at && self.until.is_none_or(|until| at < until)
    }
}
