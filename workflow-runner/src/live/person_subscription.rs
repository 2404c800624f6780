//! One subscription to events of persons.
//!
//! Events after a position in the log are read from there, page by page, up to the moment when the
//! subscription's outbox was opened; later events are in the outbox. Who may see an event is judged
//! again when it is sent, by everything that was in the log a moment ago.

use std::sync::Arc;
use std::time::Duration;

use domain::circles::Viewer;
use event_log::{Item, ReadError};
use schemas::Recorded;
use tokio::time::Instant;

use super::channel::Channel;
use super::fan_out::FanOut;
use super::flow::{CatchUps, Next, Page, head};
use super::frames::Reply;
use super::outbox::{Conflated, Fact};
use super::subscriber::Registration;
use super::visibility::Visibility;

/// Events sent at a time.
const AT_ONCE: usize = 64;
/// Events read at a time, of any person.
const PAGE: usize = 500;
/// How old the knowledge may be by which an event is sent.
const FRESH: Duration = Duration::from_millis(10);

/// A subscription and its position.
pub(super) struct PersonSubscription {
    /// The client's name for it.
    id: String,
    /// The outbox's number.
    number: u64,
    channel: Channel,
    /// The first part of each of its frames.
    head: String,
    /// The sequence up to which the client has everything, and where the outbox begins.
    place: u64,
    since: u64,
    /// The time as of which everything in the log is known.
    settled: Option<Instant>,
}

/// The part of a page that the viewer may see.
pub(super) struct VisiblePage {
    facts: Vec<Arc<Fact>>,
    through: u64,
}

impl PersonSubscription {
    pub(super) fn new(id: String, number: u64, channel: Channel, place: u64, since: u64) -> Self {
        Self {
            head: head(&id, channel),
            id,
            number,
            channel,
            place,
            since,
            settled: None,
        }
    }

    /// Returns what comes next.
    pub(super) fn advance(&mut self, subscriber: &Registration, turns: &CatchUps) -> Next {
        if self.place < self.since {
            return self.catch_up(subscriber, turns);
        }
        let front = subscriber.look(self.number, |outbox| {
            outbox.front().map(|entry| entry.settled)
        });
        let Some(settled) = front.flatten() else {
            return Next::Wait;
        };
        let settled = settled.max(self.settled);
        if settled.is_none_or(|settled| settled.elapsed() > FRESH) {
            let fan_out = subscriber.fan_out().clone();
            return Next::Work(Box::pin(async move {
                let asked = Instant::now();
                fan_out.settle().await;
                Ok(Page::Settled(asked))
            }));
        }
        let frames = self.open(subscriber);
        if frames.is_empty() {
            // None was for this viewer any more, and more may wait after them.
            return self.advance(subscriber, turns);
        }
        Next::Frames(frames)
    }

    /// The frames of the oldest entries in the outbox, as far as the viewer may see them now.
    fn open(&self, subscriber: &Registration) -> Vec<String> {
        let (conflated, entries) = subscriber.take(self.number, AT_ONCE);
        let visibilities = entries.iter().map(|entry| &entry.fact.visibility);
        let may_see = subscriber
            .fan_out()
            .check(subscriber.viewer(), visibilities);
        let mut frames: Vec<String> = conflated
            .map(|conflated| self.announce(subscriber.fan_out(), conflated))
            .into_iter()
            .collect();
        let visible = entries.iter().zip(may_see).filter(|(_, may)| *may);
        frames.extend(visible.map(|(entry, _)| entry.fact.event.frame(&self.head)));
        frames
    }

    fn announce(&self, fan_out: &FanOut, conflated: Conflated) -> String {
        let position = |sequence| {
            let position = fan_out.log().position(self.channel.log(), sequence);
            position.to_string()
        };
        let (from, to) = (position(conflated.from), position(conflated.to));
        let reply = Reply::Conflated {
            id: &self.id,
            from: &from,
            to: &to,
        };
        reply.to_text()
    }

    fn catch_up(&self, subscriber: &Registration, turns: &CatchUps) -> Next {
        let (fan_out, viewer) = (subscriber.fan_out().clone(), subscriber.viewer().clone());
        let (channel, turns) = (self.channel, turns.clone());
        let (after, until) = (self.place, self.since);
        Next::Work(Box::pin(async move {
            let _turn = turns.take(&viewer).await;
            let seen = read(&fan_out, &viewer, channel, after, until).await;
            seen.map(Page::VisiblePage)
        }))
    }

    /// Returns the frames of a page and advances the subscription.
    pub(super) fn take(&mut self, page: &VisiblePage) -> Vec<String> {
        self.place = page.through;
        let events = page.facts.iter().map(|fact| &fact.event);
        events.map(|event| event.frame(&self.head)).collect()
    }

    /// Returns what may be sent now that everything in the log at `at` is known, however long ago
    /// that was: asking again while the log is slow to answer would mean never sending anything.
    pub(super) fn settled(&mut self, at: Instant, subscriber: &Registration) -> Vec<String> {
        self.settled = Some(at);
        self.open(subscriber)
    }
}

/// The events after `after`, up to `until`, that the viewer may see.
async fn read(
    fan_out: &FanOut,
    viewer: &Viewer,
    channel: Channel,
    after: u64,
    until: u64,
) -> Result<VisiblePage, ReadError> {
    let Some(kind) = channel.only() else {
        let facts = Vec::new();
        return Ok(VisiblePage {
            facts,
            through: until,
        });
    };
    let page = fan_out.log().page_of_kind(kind, after, PAGE).await?;
    let through = if page.complete { until } else { page.through };
    fan_out.settle().await;
    let told: Vec<(&Recorded, Visibility)> = page
        .items
        .iter()
        .filter_map(Item::event)
        .filter(|recorded| recorded.sequence <= until)
        .filter_map(|recorded| Some((recorded, Visibility::of(recorded)?)))
        .collect();
    let may_see = fan_out.check(viewer, told.iter().map(|(_, visibility)| visibility));
    let mut facts = Vec::new();
    for ((recorded, visibility), may) in told.iter().zip(may_see) {
        if may {
            facts.extend(fan_out.encode(recorded, visibility).await);
        }
    }
    let through = through.min(until);
    Ok(VisiblePage { facts, through })
}
