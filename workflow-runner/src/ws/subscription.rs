//! One subscription: a place in a channel, and how it moves on.
//!
//! What follows a place comes from the hub's ring while the ring has it, else from the log, page
//! by page at the client's own pace. Either way it is the same events in the same order, so a
//! client that falls behind loses nothing and costs no memory.

use std::sync::Arc;

use event_log::{EventLog, Item, Page, ReadError};
use schemas::{Log, OrgId};
use tokio::sync::Semaphore;

use super::channel::Channel;
use super::hub::{Hub, Membership, live_event};
use super::ring::{Found, LiveEvent};

/// Events taken at a time; together with their size this bounds what one socket holds.
const AT_ONCE: usize = 64;

/// A subscription and its place.
pub(super) struct Subscription {
    /// The client's name for it.
    pub(super) id: String,
    /// Its number in this connection: ids can be used again, numbers are not.
    pub(super) number: u64,
    channel: Channel,
    /// The first part of each of its frames.
    head: String,
    /// The sequence up to which the client has everything.
    place: u64,
}

/// How a subscription goes on.
pub(super) enum Next {
    /// With these frames.
    Frames(Vec<String>),
    /// Not before something happens.
    Wait,
    /// From the log.
    Fetch(Fetch),
}

/// A page to be read from the log.
pub(super) struct Fetch {
    number: u64,
    hub: Hub,
    org: OrgId,
    channel: Channel,
    after: u64,
}

/// A page that was read.
pub(super) struct Fetched {
    pub(super) number: u64,
    pub(super) page: Result<Page, ReadError>,
    /// How far the hub was before the page was read.
    pub(super) head_before: u64,
}

impl Subscription {
    pub(super) fn new(id: String, number: u64, channel: Channel, place: u64) -> Self {
        let quoted = serde_json::Value::from(id.as_str());
        let name = channel.name();
        Self {
            head: format!(r#"{{"type":"event","id":{quoted},"channel":"{name}""#),
            id,
            number,
            channel,
            place,
        }
    }

    /// What comes next.
    pub(super) fn advance(&mut self, member: &Membership) -> Next {
        match member.read(self.place, self.channel, AT_ONCE) {
            Found::Events(events, through) => {
                self.place = through;
                if events.is_empty() {
                    Next::Wait
                } else {
                    Next::Frames(self.frames(events.iter().map(Arc::as_ref)))
                }
            }
            Found::Gone => Next::Fetch(Fetch {
                number: self.number,
                hub: member.hub().clone(),
                org: member.org().clone(),
                channel: self.channel,
                after: self.place,
            }),
        }
    }

    /// The frames of a page, which moves the subscription on.
    pub(super) fn take(&mut self, log: &EventLog, page: &Page, head_before: u64) -> Vec<String> {
        self.place = page.through;
        if page.complete {
            // Nothing of the organization lay between the page's end and the log's, and the hub
            // was not ahead of the log.
            self.place = self.place.max(head_before);
        }
        let events: Vec<LiveEvent> = page
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Event(recorded) => live_event(log, recorded),
                Item::Undecodable { .. } => None,
            })
            .collect();
        self.frames(events.iter())
    }

    fn frames<'a>(&self, events: impl Iterator<Item = &'a LiveEvent>) -> Vec<String> {
        events.map(|event| event.frame(&self.head)).collect()
    }
}

impl Fetch {
    /// Reads the page; `turns` bounds how many sockets of the process read at once.
    pub(super) async fn read(self, turns: Arc<Semaphore>) -> Fetched {
        // The semaphore is never closed; without a turn the page would only come sooner.
        let _turn = turns.acquire().await;
        let head_before = self.hub.head();
        let log = self.hub.log();
        let page = log
            .page(
                Log::Events,
                &self.org,
                self.channel.only(),
                self.after,
                AT_ONCE,
            )
            .await;
        Fetched {
            number: self.number,
            page,
            head_before,
        }
    }
}
