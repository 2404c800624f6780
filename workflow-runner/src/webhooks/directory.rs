//! Every webhook endpoint, folded from its events.

use std::collections::HashMap;
use std::sync::Arc;

use domain::webhook::any_matches;
use schemas::webhook::{ReplayRequested, Status, TestRequested};
use schemas::{Event, OrgId, Recorded, WebhookId};

use super::filters::Filters;
pub(super) use super::filters::When;
use super::secrets::Secrets;

/// The current state of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) id: WebhookId,
    pub(super) org: OrgId,
    pub(super) url: String,
    pub(super) secrets: Secrets,
    /// The sequence of the owner's last request.
    pub(super) asked: u64,
    filters: Filters,
}

impl Endpoint {
    /// The sequence after which it gets events; `None` while it is disabled.
    pub(super) fn enabled_since(&self) -> Option<u64> {
        self.filters.began()
    }

    /// Whether it wanted events of this type at this position in the log.
    pub(super) fn wants(&self, when: When, event_type: &str) -> bool {
        let in_force = self.filters.in_force(when);
        in_force.is_some_and(|patterns| any_matches(patterns, event_type))
    }
}

/// The effect of an event on the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The endpoint gets events, as of now or still.
    Enabled(WebhookId),
    /// It gets nothing more.
    Stopped(WebhookId),
    /// Its owner made a request.
    Asked(WebhookId),
}

/// All endpoints that are not deleted.
#[derive(Debug, Default)]
pub(super) struct Directory {
    endpoints: HashMap<WebhookId, Arc<Endpoint>>,
    by_org: HashMap<OrgId, Vec<WebhookId>>,
    /// The sequence up to which endpoints' events were applied.
    through: u64,
}

impl Directory {
    /// Applies an event; one that was applied before changes nothing.
    pub(super) fn apply(&mut self, recorded: &Recorded) -> Option<Change> {
        if recorded.sequence <= self.through {
            return None;
        }
        let (sequence, time) = (recorded.sequence, recorded.time);
        match &recorded.event {
            Event::WebhookCreated(created) => {
                self.through = sequence;
                let org = recorded.stream.org.clone();
                let endpoint = Endpoint {
                    id: created.id.clone(),
                    org: org.clone(),
                    url: created.url.clone(),
                    secrets: Secrets::new(created.secret.clone()),
                    asked: 0,
                    filters: Filters::since(sequence, time, &created.events),
                };
                self.endpoints
                    .insert(created.id.clone(), Arc::new(endpoint));
                self.by_org.entry(org).or_default().push(created.id.clone());
                Some(Change::Enabled(created.id.clone()))
            }
            Event::WebhookUpdated(updated) => {
                let endpoint = self.change(&updated.id, recorded)?;
                endpoint.url.clone_from(&updated.url);
                if updated.status == Status::Disabled {
                    endpoint.filters.clear();
                    return Some(Change::Stopped(updated.id.clone()));
                }
                endpoint.filters.push(sequence, time, &updated.events);
                Some(Change::Enabled(updated.id.clone()))
            }
            Event::WebhookDisabled(disabled) => {
                self.change(&disabled.id, recorded)?.filters.clear();
                Some(Change::Stopped(disabled.id.clone()))
            }
            Event::WebhookDeleted(deleted) => {
                self.through = sequence;
                self.endpoints.remove(&deleted.id);
                if let Some(ids) = self.by_org.get_mut(&recorded.stream.org) {
                    ids.retain(|id| *id != deleted.id);
                    if ids.is_empty() {
                        self.by_org.remove(&recorded.stream.org);
                    }
                }
                Some(Change::Stopped(deleted.id.clone()))
            }
            Event::WebhookSecretRotated(rotated) => {
                let endpoint = self.change(&rotated.id, recorded)?;
                let (secret, until) = (rotated.secret.clone(), rotated.previous_until);
                endpoint.secrets.rotate(secret, until);
                endpoint.enabled_since()?;
                Some(Change::Enabled(rotated.id.clone()))
            }
            Event::WebhookReplayRequested(ReplayRequested { id, .. })
            | Event::WebhookTestRequested(TestRequested { id }) => {
                self.change(id, recorded)?.asked = sequence;
                Some(Change::Asked(id.clone()))
            }
            _ => None,
        }
    }

    /// Memory held by endpoints' filters, in bytes.
    pub(super) fn wishes_bytes(&self) -> usize {
        let endpoints = self.endpoints.values();
        endpoints.map(|endpoint| endpoint.filters.bytes()).sum()
    }

    /// The sequence up to which endpoints' events were applied.
    pub(super) fn through(&self) -> u64 {
        self.through
    }

    fn change(&mut self, id: &WebhookId, recorded: &Recorded) -> Option<&mut Endpoint> {
        self.through = recorded.sequence;
        self.endpoints.get_mut(id).map(Arc::make_mut)
    }

    /// The endpoint, if it exists.
    pub(super) fn get(&self, id: &WebhookId) -> Option<&Arc<Endpoint>> {
        self.endpoints.get(id)
    }

    /// Every endpoint.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.endpoints.values()
    }

    /// The organization's endpoints that want the event.
    pub(super) fn interested<'d>(
        &'d self,
        org: &OrgId,
        when: When,
        event_type: &'d str,
    ) -> impl Iterator<Item = &'d Arc<Endpoint>> {
        let ids = self.by_org.get(org).map(Vec::as_slice).unwrap_or_default();
        ids.iter()
            .filter_map(|id| self.endpoints.get(id))
            .filter(move |endpoint| endpoint.wants(when, event_type))
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use schemas::webhook::{Created, Deleted, Disabled, Updated};
    use schemas::{AggregateType, Context, EventId, Sealed, StreamId};
    use uuid::Uuid;

    use super::*;

    const TYPE: &str = "run.started";

    fn recorded(sequence: u64, event: Event) -> Recorded {
        let org = OrgId::from("o1");
        Recorded {
            sequence,
            stream: StreamId::new(&org, AggregateType::Webhook, "h1"),
            id: EventId(Uuid::from_u128(sequence.into())),
            time: DateTime::UNIX_EPOCH,
            event,
            context: Context::default(),
            receipt: None,
        }
    }

    fn created(events: &[&str]) -> Event {
        Event::WebhookCreated(Created {
            id: "h1".into(),
            url: "https://x.example/".to_owned(),
            events: events.iter().map(ToString::to_string).collect(),
            description: None,
            secret: Sealed::from_ciphertext(String::new()),
        })
    }

    fn updated(events: &[&str], status: Status) -> Event {
        Event::WebhookUpdated(Updated {
            id: "h1".into(),
            url: "https://y.example/".to_owned(),
            events: events.iter().map(ToString::to_string).collect(),
            description: None,
            status,
        })
    }

    fn directory(events: impl IntoIterator<Item = (u64, Event)>) -> Directory {
        let mut directory = Directory::default();
        for (sequence, event) in events {
            directory.apply(&recorded(sequence, event));
        }
        directory
    }

    fn wanted(directory: &Directory, sequence: u64, event_type: &str) -> bool {
        let org = OrgId::from("o1");
        let when = When::Behind(sequence);
        directory.interested(&org, when, event_type).count() == 1
    }

    #[test]
    fn an_endpoint_gets_only_what_followed_it() {
        let directory = directory([(5, created(&[]))]);
        assert!(!wanted(&directory, 5, TYPE));
        assert!(wanted(&directory, 6, TYPE));
        let other = OrgId::from("o2");
        assert_eq!(
            directory.interested(&other, When::Behind(6), TYPE).count(),
            0
        );
    }

    #[test]
    fn events_of_another_stream_are_compared_by_their_time() {
        let directory = directory([(5, created(&["location.*"]))]);
        let endpoint = directory.get(&"h1".into()).unwrap();
        let before = DateTime::UNIX_EPOCH - chrono::TimeDelta::seconds(1);
        assert!(!endpoint.wants(When::At(before), "location.updated"));
        assert!(endpoint.wants(When::At(DateTime::UNIX_EPOCH), "location.updated"));
        assert!(!endpoint.wants(When::At(DateTime::UNIX_EPOCH), TYPE));
    }

    #[test]
    fn an_event_is_judged_by_what_was_wanted_when_it_happened() {
        let changed = updated(&["contact.*"], Status::Enabled);
        let directory = directory([(5, created(&["run.*"])), (9, changed)]);
        assert!(wanted(&directory, 8, TYPE));
        assert!(!wanted(&directory, 8, "contact.created"));
        assert!(!wanted(&directory, 10, TYPE));
        assert!(wanted(&directory, 10, "contact.created"));
        let endpoint = directory.get(&"h1".into()).unwrap();
        assert_eq!(endpoint.url, "https://y.example/");
    }

    #[test]
    fn what_happened_while_it_was_disabled_is_not_for_it() {
        let disabled = Event::WebhookDisabled(Disabled {
            id: "h1".into(),
            reason: "it only failed".to_owned(),
        });
        let again = updated(&[], Status::Enabled);
        let mut directory = directory([(5, created(&[])), (7, disabled)]);
        assert!(!wanted(&directory, 6, TYPE));
        assert!(!wanted(&directory, 8, TYPE));
        assert_eq!(
            directory.apply(&recorded(9, again)),
            Some(Change::Enabled("h1".into()))
        );
        assert!(!wanted(&directory, 8, TYPE));
        assert!(wanted(&directory, 10, TYPE));
        let switched_off = updated(&[], Status::Disabled);
        assert_eq!(
            directory.apply(&recorded(11, switched_off)),
            Some(Change::Stopped("h1".into()))
        );
        assert!(!wanted(&directory, 12, TYPE));
    }

    #[test]
    fn a_deleted_endpoint_is_gone_and_an_event_counts_once() {
        let deleted = Event::WebhookDeleted(Deleted { id: "h1".into() });
        let mut directory = directory([(5, created(&[]))]);
        assert_eq!(directory.apply(&recorded(5, created(&[]))), None);
        assert!(directory.apply(&recorded(6, deleted)).is_some());
        assert_eq!(directory.apply(&recorded(5, created(&[]))), None);
        assert_eq!(directory.all().count(), 0);
        assert!(!wanted(&directory, 7, TYPE));
    }
}
