//! One subscription to events of persons.
//!
//! What follows a place in the log is read from there, page by page, up to the moment when the
//! subscription's box was opened; what came later lies in the box. Who may see an event is judged
//! again when it is sent, by all that stood in the log a moment ago.

use std::sync::Arc;
use std::time::Duration;

use domain::circles::Viewer;
use event_log::{Item, ReadError};
use schemas::Recorded;
use tokio::time::Instant;

use super::channel::Channel;
use super::flow::{Next, Page, Turns, head};
use super::frames::Reply;
use super::lookout::Lookout;
use super::mail::{Conflated, Fact};
use super::seat::Attendance;
use super::sight::Sight;

/// Events sent at a time.
const AT_ONCE: usize = 64;
/// Events read at a time, of whomever.
const PAGE: usize = 500;
/// How old what was known may be when an event is sent by it.
const FRESH: Duration = Duration::from_millis(10);

/// A subscription and its place.
pub(super) struct Watch {
    /// The client's name for it.
    id: String,
    /// The box's number.
    number: u64,
    channel: Channel,
    /// The first part of each of its frames.
    head: String,
    /// The sequence up to which the client has everything, and where the box begins.
    place: u64,
    since: u64,
    /// When all that stood in the log was known.
    settled: Option<Instant>,
}

/// What of a page the viewer may see.
pub(super) struct Seen {
    facts: Vec<Arc<Fact>>,
    through: u64,
}

impl Watch {
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

    /// What comes next.
    pub(super) fn advance(&mut self, seat: &Attendance, turns: &Turns) -> Next {
        if self.place < self.since {
            return self.catch_up(seat, turns);
        }
        let front = seat.look(self.number, |mail| {
            mail.front().map(|letter| letter.settled)
        });
        let Some(settled) = front.flatten() else {
            return Next::Wait;
        };
        let settled = settled.max(self.settled);
        if settled.is_none_or(|settled| settled.elapsed() > FRESH) {
            let lookout = seat.lookout().clone();
            return Next::Work(Box::pin(async move {
                let asked = Instant::now();
                lookout.settle().await;
                Ok(Page::Settled(asked))
            }));
        }
        let frames = self.open(seat);
        if frames.is_empty() {
            // None was for this viewer any more, and more may wait behind them.
            return self.advance(seat, turns);
        }
        Next::Frames(frames)
    }

    /// The frames of what lies uppermost in the box, as far as the viewer may see it now.
    fn open(&self, seat: &Attendance) -> Vec<String> {
        let (conflated, letters) = seat.take(self.number, AT_ONCE);
        let sights = letters.iter().map(|letter| &letter.fact.sight);
        let may_see = seat.lookout().judge(seat.viewer(), sights);
        let mut frames: Vec<String> = conflated
            .map(|conflated| self.announce(seat.lookout(), conflated))
            .into_iter()
            .collect();
        let visible = letters.iter().zip(may_see).filter(|(_, may)| *may);
        frames.extend(visible.map(|(letter, _)| letter.fact.event.frame(&self.head)));
        frames
    }

    fn announce(&self, lookout: &Lookout, conflated: Conflated) -> String {
        let position = |sequence| {
            let position = lookout.log().position(self.channel.log(), sequence);
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

    fn catch_up(&self, seat: &Attendance, turns: &Turns) -> Next {
        let (lookout, viewer) = (seat.lookout().clone(), seat.viewer().clone());
        let (channel, turns) = (self.channel, turns.clone());
        let (after, until) = (self.place, self.since);
        Next::Work(Box::pin(async move {
            let _turn = turns.take().await;
            let seen = read(&lookout, &viewer, channel, after, until).await;
            seen.map(Page::Seen)
        }))
    }

    /// The frames of a page, which moves the subscription on.
    pub(super) fn take(&mut self, page: &Seen) -> Vec<String> {
        self.place = page.through;
        let events = page.facts.iter().map(|fact| &fact.event);
        events.map(|event| event.frame(&self.head)).collect()
    }

    /// What may be sent now that all is known that stood in the log at a moment. However long ago
    /// that was: whoever asked again where the log is slow to answer would never send anything.
    pub(super) fn settled(&mut self, at: Instant, seat: &Attendance) -> Vec<String> {
        self.settled = Some(at);
        self.open(seat)
    }
}

/// What of the events behind `after`, and not behind `until`, the viewer may see.
async fn read(
    lookout: &Lookout,
    viewer: &Viewer,
    channel: Channel,
    after: u64,
    until: u64,
) -> Result<Seen, ReadError> {
    let Some(kind) = channel.only() else {
        let facts = Vec::new();
        return Ok(Seen {
            facts,
            through: until,
        });
    };
    let page = lookout.log().page_of_kind(kind, after, PAGE).await?;
    let through = if page.complete { until } else { page.through };
    lookout.settle().await;
    let told: Vec<(&Recorded, Sight)> = page
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Event(recorded) if recorded.sequence <= until => {
                Some((recorded, Sight::of(recorded)?))
            }
            _ => None,
        })
        .collect();
    let may_see = lookout.judge(viewer, told.iter().map(|(_, sight)| sight));
    let mut facts = Vec::new();
    for ((recorded, sight), may) in told.iter().zip(may_see) {
        if may {
            facts.extend(lookout.encode(recorded, sight).await);
        }
    }
    let through = through.min(until);
    Ok(Seen { facts, through })
}
