//! All endpoints and their state, kept in memory.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use domain::webhook::Endpoint;
use event_log::{EventLog, ReadError};
use schemas::{AggregateType, Event, OrgId, Recorded, StreamId, WebhookId};
use tokio_util::sync::CancellationToken;

use crate::follow::follow;

/// The endpoints of all organizations, folded from the log. They may briefly lag behind what was
/// written.
#[derive(Clone, Debug, Default)]
pub struct Directory(Arc<RwLock<HashMap<OrgId, Endpoints>>>);

/// An organization's endpoints. Of one that was just created here, only its existence is known at
/// first.
type Endpoints = HashMap<WebhookId, Option<EndpointEntry>>;

/// An endpoint as folded from its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndpointEntry {
    pub(super) endpoint: Endpoint,
    pub(super) created_at: DateTime<Utc>,
    /// The sequence of its last event.
    pub(super) last: u64,
}

impl EndpointEntry {
    fn after(before: Option<Self>, recorded: &Recorded) -> Option<Self> {
        let created_at = before.as_ref().map(|known| known.created_at);
        let endpoint = before.map(|known| known.endpoint);
        Some(Self {
            endpoint: Endpoint::after(endpoint, &recorded.event)?,
            created_at: created_at.unwrap_or(recorded.time),
            last: recorded.sequence,
        })
    }
}

impl Directory {
    /// Reads all endpoints, then follows the log in the background until `shutdown`.
    pub async fn start(log: EventLog, shutdown: CancellationToken) -> Result<Self, ReadError> {
        let known = Self::default();
        let folded = known.clone();
        let take_in = move |events: Vec<Recorded>| events.iter().for_each(|e| folded.apply(e));
        let kinds = [AggregateType::Webhook];
        follow(&log, 0, &kinds, "webhooks", take_in, shutdown).await?;
        Ok(known)
    }

    /// The number of endpoints of an organization.
    pub(crate) fn count(&self, org: &OrgId) -> usize {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(org).map_or(0, HashMap::len)
    }

    /// Returns an endpoint as it is currently in the log, if there is one. Its whole stream is read
    /// only if the log has more events than are known here.
    pub(super) async fn find(
        &self,
        log: &EventLog,
        stream: &StreamId,
    ) -> Result<Option<EndpointEntry>, ReadError> {
        let Some(last) = log.last(stream).await? else {
            return Ok(None);
        };
        if matches!(last.event, Event::WebhookDeleted(_)) {
            return Ok(None);
        }
        let known = self.known(&stream.org, &WebhookId::from(stream.id.clone()));
        if let Some(known) = known.filter(|known| known.last == last.sequence) {
            return Ok(Some(known));
        }
        let past = log.load(stream).await?;
        Ok(past.iter().fold(None, EndpointEntry::after))
    }

    fn known(&self, org: &OrgId, id: &WebhookId) -> Option<EndpointEntry> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(org)?.get(id)?.clone()
    }

    /// Records an endpoint that was just created here.
    pub(crate) fn learn(&self, org: &OrgId, id: WebhookId) {
        self.change(org, |endpoints| _ = endpoints.entry(id).or_default());
    }

    /// Records that an endpoint was deleted.
    pub(crate) fn forget(&self, org: &OrgId, id: &WebhookId) {
        self.change(org, |endpoints| _ = endpoints.remove(id));
    }

    fn apply(&self, recorded: &Recorded) {
        let id = WebhookId::from(recorded.stream.id.clone());
        self.change(&recorded.stream.org, |endpoints| {
            let before = endpoints.remove(&id).flatten();
            if let Some(known) = EndpointEntry::after(before, recorded) {
                endpoints.insert(id, Some(known));
            }
        });
    }

    fn change(&self, org: &OrgId, change: impl FnOnce(&mut Endpoints)) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let endpoints = known.entry(org.clone()).or_default();
        change(endpoints);
        if endpoints.is_empty() {
            known.remove(org);
        }
    }
}
