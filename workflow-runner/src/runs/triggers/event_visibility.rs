//! What an organization sees of an event.

use chrono::{DateTime, Utc};
use domain::circles::Viewer;
use schemas::{OrgId, Recorded};
use serde_json::Value;

use crate::people::{Directory, People};

/// The event's data as the feed shows it to its organization; `None` if it does not.
pub(super) async fn visible_data(
    people: &People,
    recorded: &Recorded,
    org: &OrgId,
    now: DateTime<Utc>,
) -> Option<Value> {
    if recorded.event.personal().is_some() {
        people.settle().await;
        let viewer = Viewer::Organization(org.clone());
        let shows =
            |directory: &Directory| directory.circles().shows(&viewer, &recorded.event, now);
        if !people.read(shows) {
            return None;
        }
    }
    Some(people.reveal(recorded).await)
}
