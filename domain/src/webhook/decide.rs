//! What a command on an endpoint leads to, given the endpoint's events.

use schemas::webhook::{Created, Deleted, Status, Updated};
use schemas::{Event, Sealed, WebhookId};

use super::{ChangeRequest, Request};

/// An endpoint as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The endpoint.
    pub id: WebhookId,
    /// Where it listens.
    pub url: String,
    /// Which events it gets; empty means all.
    pub events: Vec<String>,
    /// What its owner says of it.
    pub description: Option<String>,
    /// Whether it gets anything.
    pub status: Status,
}

impl Endpoint {
    /// The endpoint after its events; `None` where there is none or it was deleted.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Option<Self> {
        events.into_iter().fold(None, Self::after)
    }

    /// What an event makes of an endpoint, or of none.
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

/// Makes an endpoint.
pub fn create(id: WebhookId, request: Request, secret: Sealed) -> Event {
    Event::WebhookCreated(Created {
        id,
        url: request.url,
        events: request.events,
        description: request.description,
        secret,
    })
}

/// Changes an endpoint; without an event where it is that already.
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
