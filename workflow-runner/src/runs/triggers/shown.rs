//! What an organization sees of an event.

use chrono::{DateTime, Utc};
use domain::circles::Viewer;
use schemas::{OrgId, Recorded};
use serde_json::Value;

use crate::people::{Book, Roll};

/// The event's data as the feed shows it to its organization; `None` where it does not.
pub(super) async fn shown(
    roll: &Roll,
    recorded: &Recorded,
    org: &OrgId,
    now: DateTime<Utc>,
) -> Option<Value> {
    if recorded.event.personal().is_some() {
        roll.settle().await;
        let viewer = Viewer::Organization(org.clone());
        let shows = |book: &Book| book.circles().shows(&viewer, &recorded.event, now);
        if !roll.read(shows) {
            return None;
        }
    }
    Some(roll.reveal(recorded).await)
}
