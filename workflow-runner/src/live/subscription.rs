//! One subscription to an organization's own events: a position in a channel, and how it advances.
//!
//! Events after a position come from the hub's ring while the ring has them, otherwise from the
//! log, page by page at the client's own pace. Either way they are the same events in the same
//! order, so a client that falls behind loses nothing and costs no memory.

use std::sync::Arc;

use domain::circles::Viewer;
use event_log::{Item, ReadError};
use schemas::{Log, OrgId};

use super::channel::Channel;
use super::flow::{CatchUps, Next, Page, head};
use super::hub::{Hub, Membership};
use super::ring::{Found, LiveEvent};

/// Events taken at a time; together with their size this bounds what one socket holds.
const AT_ONCE: usize = 64;

/// A subscription and its position.
pub(super) struct Subscription {
    channel: Channel,
    /// The first part of each of its frames.
    head: String,
    /// The sequence up to which the client has everything.
    place: u64,
}

/// Events of an organization that were read from the log.
pub(super) struct OwnPage {
    events: Vec<LiveEvent>,
    through: u64,
}

impl Subscription {
    pub(super) fn new(id: &str, channel: Channel, place: u64) -> Self {
        Self {
            head: head(id, channel),
            channel,
            place,
        }
    }

    /// Returns what comes next.
    pub(super) fn advance(&mut self, member: &Membership, turns: &CatchUps) -> Next {
        match member.read(self.place, self.channel, AT_ONCE) {
            Found::Events(events, through) => {
                self.place = through;
                if events.is_empty() {
                    return Next::Wait;
                }
                // Persons may have left since the event was put into the ring.
                let (hub, org) = (member.hub(), member.org());
                let shown = events.iter().map(Arc::as_ref);
                let frames = self.frames(shown.filter(|event| hub.shows(org, event)));
                if frames.is_empty() {
                    // None of these, and more may follow.
                    return self.advance(member, turns);
                }
                Next::Frames(frames)
            }
            Found::Gone => {
                let (hub, org) = (member.hub().clone(), member.org().clone());
                let (channel, after, turns) = (self.channel, self.place, turns.clone());
                Next::Work(Box::pin(async move {
                    let _turn = turns.take(&Viewer::Organization(org.clone())).await;
                    read(&hub, &org, channel, after).await.map(Page::Own)
                }))
            }
        }
    }

    /// Returns the frames of a page and advances the subscription.
    pub(super) fn take(&mut self, page: &OwnPage) -> Vec<String> {
        self.place = page.through;
        self.frames(page.events.iter())
    }

    fn frames<'a>(&self, events: impl Iterator<Item = &'a LiveEvent>) -> Vec<String> {
        events.map(|event| event.frame(&self.head)).collect()
    }
}

async fn read(hub: &Hub, org: &OrgId, channel: Channel, after: u64) -> Result<OwnPage, ReadError> {
    let head_before = hub.head();
    let page = hub
        .log()
        .page(Log::Events, org, channel.only(), after, AT_ONCE)
        .await?;
    let mut through = page.through;
    if page.complete {
        // Nothing of the organization is between the page's end and the log's, and the hub was not
        // ahead of the log.
        through = through.max(head_before);
    }
    let mut events = Vec::with_capacity(page.items.len());
    for item in &page.items {
        if let Item::Event(recorded) = item {
            events.extend(hub.live_event(recorded).await);
        }
    }
    if events.iter().any(|event| event.disclosure().is_some()) {
        hub.settle().await;
    }
    events.retain(|event| hub.shows(org, event));
    Ok(OwnPage { events, through })
}
