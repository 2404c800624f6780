//! What may be shown from memory of events that can be erased from the log.
//!
//! Erasing is announced in the log: a record's by its deletion, a run's by `run.forgotten`. A
//! process that lags behind can miss a record's deletion, which is erased as well, and one that
//! starts between the two reads what is about to be erased. Therefore copies are also used for a
//! limited time only.

use std::time::Duration;

use domain::record;
use schemas::Event;

/// How long an event may be shown from memory before it has to be read from the log again.
pub(crate) const SHOWN_FOR: Duration = Duration::from_secs(30);

/// Whether everything before this event of the same aggregate may be erased from now on.
pub(crate) fn is_announced_by(event: &Event) -> bool {
    matches!(event, Event::RunForgotten(_)) || record::is_deletion(event)
}
