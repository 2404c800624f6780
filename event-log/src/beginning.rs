//! Where the stream of events begins.
//!
//! Events are kept for ever, so what is missing before the first of them is lost, unless it was
//! erased. The server does not record what was erased there, so the stream itself records where it
//! may begin.

use std::collections::HashMap;

use schemas::Log;

use crate::read::ALL;
use crate::{EventLog, ReadError};

/// The key of this record in the stream's metadata.
pub(crate) const BEGINS: &str = "waypost-begins";

/// Where a stream may begin, by its metadata; `None` where events expire.
pub(crate) fn begins(marks: &HashMap<String, String>) -> Option<u64> {
    marks.get(BEGINS)?.parse().ok()
}

impl EventLog {
    /// Records where the stream begins once these are erased.
    pub(crate) async fn note_beginning(&self, log: Log, erased: &[u64]) -> Result<(), ReadError> {
        if log != Log::Events {
            return Ok(());
        }
        let reader = self.reader(log);
        let info = reader.info().await?;
        let mut begins = info.state.first_sequence;
        if !erased.contains(&begins) {
            return Ok(());
        }
        while erased.contains(&begins) {
            let next = reader.first_after(ALL, begins).await?;
            let end = info.state.last_sequence.saturating_add(1);
            begins = next.map_or(end, |next| next.sequence);
        }
        let mut config = info.config;
        let mark = (BEGINS.to_owned(), begins.to_string());
        config.metadata.extend([mark]);
        let updated = self.context().update_stream(&config).await;
        updated.map_err(|error| ReadError::Unavailable(error.to_string()))?;
        Ok(())
    }
}
