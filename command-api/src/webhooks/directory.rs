//! Which endpoints there are and what they are, kept in memory.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use domain::webhook::Endpoint;
use event_log::{EventLog, ReadError};
use schemas::{AggregateType, Event, OrgId, Recorded, StreamId, WebhookId};
use tokio_util::sync::CancellationToken;

use crate::follow::follow;

/// The endpoints of all organizations, folded from the log. They may lag by a moment behind what
/// was written.
#[derive(Clone, Debug, Default)]
pub struct Directory(Arc<RwLock<HashMap<OrgId, Endpoints>>>);

/// An organization's. Of one that was just made here only that it is there is known at first.
type Endpoints = HashMap<WebhookId, Option<EndpointEntry>>;

/// An endpoint as its events tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndpointEntry {
    pub(super) endpoint: Endpoint,
    pub(super) created_at: DateTime<Utc>,
    /// Where its last event stands.
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
    /// Reads all that was ever made, then follows in the background until `shutdown`.
    pub async fn start(log: EventLog, shutdown: CancellationToken) -> Result<Self, ReadError> {
        let known = Self::default();
        let folded = known.clone();
        let take_in = move |events: Vec<Recorded>| events.iter().for_each(|e| folded.apply(e));
        let kinds = [AggregateType::Webhook];
        follow(&log, 0, &kinds, "webhooks", take_in, shutdown).await?;
        Ok(known)
    }

    /// How many endpoints an organization has.
    pub(crate) fn count(&self, org: &OrgId) -> usize {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(org).map_or(0, HashMap::len)
    }

    /// An endpoint as the log has it now; `None` where there is none. Its whole stream is read only
    /// where more has happened than is known here.
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

    /// Learns of an endpoint that was just made here.
    pub(crate) fn learn(&self, org: &OrgId, id: WebhookId) {
        self.change(org, |endpoints| _ = endpoints.entry(id).or_default());
    }

    /// Learns that an endpoint was deleted.
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
