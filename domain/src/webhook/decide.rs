//! Decides commands on an endpoint, given the endpoint's events.

use schemas::webhook::{Created, Deleted, Status, Updated};
use schemas::{Event, Sealed, WebhookId};

use super::{ChangeRequest, Request};

/// The current state of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The endpoint.
    pub id: WebhookId,
    /// Where it listens.
    pub url: String,
    /// Which events it gets; empty means all.
    pub events: Vec<String>,
    /// Its owner's description.
    pub description: Option<String>,
    /// Whether it gets events.
    pub status: Status,
}

impl Endpoint {
    /// Folds an endpoint from its events; `None` if there is none or it was deleted.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Option<Self> {
        events.into_iter().fold(None, Self::after)
    }

    /// Applies an event to an endpoint, or to none.
    pub fn after(before: Option<Self>, event: &Event) -> Option<Self> {
        match event {
            Event::WebhookCreated(created) => Some(Self {
                id: created.id.clone(),
                url: created.url.clone(),
                events: created.events.clone(),
                description: created.description.clone(),
                status: Status::Enabled,
            }),
            Event::WebhookUpdated(updated) => Some(Self {
                id: updated.id.clone(),
                url: updated.url.clone(),
                events: updated.events.clone(),
                description: updated.description.clone(),
                status: updated.status,
            }),
            Event::WebhookDisabled(_) => before.map(|before| Self {
                status: Status::Disabled,
                ..before
            }),
            Event::WebhookDeleted(_) => None,
            _ => before,
        }
    }
}

/// Creates an endpoint.
pub fn create(id: WebhookId, request: Request, secret: Sealed) -> Event {
    Event::WebhookCreated(Created {
        id,
        url: request.url,
        events: request.events,
        description: request.description,
        secret,
    })
}

/// Changes an endpoint; no event if that changes nothing.
pub fn change(old: &Endpoint, request: ChangeRequest) -> (Endpoint, Option<Event>) {
    let new = Endpoint {
        id: old.id.clone(),
        url: request.url.unwrap_or_else(|| old.url.clone()),
        events: request.events.unwrap_or_else(|| old.events.clone()),
        description: request
            .description
            .unwrap_or_else(|| old.description.clone()),
        status: request.status.unwrap_or(old.status),
    };
    let event = (new != *old).then(|| {
        Event::WebhookUpdated(Updated {
            id: new.id.clone(),
            url: new.url.clone(),
            events: new.events.clone(),
            description: new.description.clone(),
            status: new.status,
        })
    });
    (new, event)
}

/// Deletes an endpoint.
pub fn delete(old: &Endpoint) -> Event {
    Event::WebhookDeleted(Deleted { id: old.id.clone() })
}
