//! The earlier positions of persons who appear for the first time.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use event_log::{Batch, ReadError};
use futures::future::join_all;
use schemas::location::Updated;
use schemas::{Event, Recorded};

use super::{Geofence, partition_of_person};
use crate::people::overtaken_by;
use crate::retry::retry_while;

/// Persons whose past is looked up concurrently.
const SIDE_BY_SIDE: usize = 32;

impl Geofence {
    /// Looks up the earlier fixes of persons who appear for the first time.
    pub(super) async fn learn_past(&mut self, batch: &Batch) {
        let mut met = HashSet::new();
        let events = batch.events().filter_map(|recorded| match &recorded.event {
            Event::LocationUpdated(updated) => Some((recorded, updated)),
            _ => None,
        });
        let first: Vec<(&Recorded, &Updated)> = events
            .filter(|(_, updated)| {
                let account = updated.user_id;
                let ours = self.through.serves(partition_of_person(account));
                ours && self.recent.lacks(account) && met.insert(account)
            })
            .collect();
        for some in first.chunks(SIDE_BY_SIDE) {
            let past = some
                .iter()
                .map(|(recorded, updated)| self.before(recorded, updated));
            let past = join_all(past).await;
            for ((recorded, updated), before) in some.iter().zip(past) {
                self.recent
                    .learn(updated.user_id, before, recorded.sequence);
            }
        }
    }

    /// The time of the newest fix that came before this one, if it is not older.
    async fn before(&self, recorded: &Recorded, updated: &Updated) -> Option<DateTime<Utc>> {
        let newer = retry_while(
            || overtaken_by(&self.log, recorded, updated),
            ReadError::passes,
        )
        .await;
        newer
            .inspect_err(|error| tracing::error!(%error, "A person's positions cannot be read"))
            .ok()?
    }
}
