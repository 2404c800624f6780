//! Which endpoints there are, kept in memory: how many an organization has.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use event_log::{EventLog, ReadError};
use schemas::{AggregateType, Event, OrgId, Recorded, WebhookId};
use tokio_util::sync::CancellationToken;

use crate::follow::follow;

/// The endpoints of all organizations, folded from the log. They may lag by a moment behind what
/// was written.
#[derive(Clone, Debug, Default)]
pub struct Directory(Arc<RwLock<HashMap<OrgId, HashSet<WebhookId>>>>);

impl Directory {
    /// Reads all that was ever made, then follows in the background until `shutdown`.
    pub async fn start(log: EventLog, shutdown: CancellationToken) -> Result<Self, ReadError> {
        let known = Self::default();
        let folded = known.clone();
        let take_in = move |events: Vec<Recorded>| events.iter().for_each(|e| folded.apply(e));
        let kinds = [AggregateType::Webhook];
        follow(&log, &kinds, "webhooks", take_in, shutdown).await?;
        Ok(known)
    }

    /// How many endpoints an organization has.
    pub(crate) fn count(&self, org: &OrgId) -> usize {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(org).map_or(0, HashSet::len)
    }

    /// Learns of an endpoint that was just made here.
    pub(crate) fn learn(&self, org: &OrgId, id: WebhookId) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.entry(org.clone()).or_default().insert(id);
    }

    fn apply(&self, recorded: &Recorded) {
        let org = &recorded.stream.org;
        match &recorded.event {
            Event::WebhookCreated(created) => self.learn(org, created.id.clone()),
            Event::WebhookDeleted(deleted) => self.forget(org, &deleted.id),
            _ => {}
        }
    }

    /// Learns that an endpoint was deleted.
    pub(crate) fn forget(&self, org: &OrgId, id: &WebhookId) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_org) = known.get_mut(org) {
            of_org.remove(id);
            if of_org.is_empty() {
                known.remove(org);
            }
        }
    }
}
