//! A range of the feed, for pages that show a part of it.

use event_log::Position;
use schemas::{Log, OrgId, nesting};
use serde_json::Value;
use service::HttpError;

use super::open;
use super::query::{FeedQuery, Form};
use crate::state::State;

/// Sequences searched at first, and the factor by which the range grows each time.
const FIRST: u64 = 256;
const WIDER: u64 = 8;
/// Ranges searched for one page.
const STRETCHES: usize = 8;
/// Maximum number of events read for one page, and for one range.
const MOST_READ: usize = 3_000;

/// The events found, newest first, and the position before which to search for older ones.
pub(crate) struct Backwards {
    pub(crate) events: Vec<Value>,
    /// Everything from here on was searched; `None` at the log's beginning.
    pub(crate) before: Option<Position>,
}

/// Returns the events after `after`, up to `through`, as the feed shows them to an organization.
async fn between(
    state: &State,
    org: &OrgId,
    after: u64,
    through: u64,
    most: usize,
) -> Result<Vec<Value>, HttpError> {
    let query = FeedQuery {
        form: Form::Lines,
        after: Some(after),
        types: Vec::new(),
        limit: Some(most as u64),
    };
    let mut reader = open(state, Log::Events, org, query).await?.through(through);
    let mut events = Vec::new();
    while let Some(lines) = reader.next().await.map_err(away)? {
        for one in lines {
            events.push(nesting::read(&one.line).map_err(HttpError::internal)?);
        }
    }
    Ok(events)
}

fn away(error: impl std::error::Error + Send + Sync + 'static) -> HttpError {
    let message = "the event log is not available; try again in a moment";
    HttpError::unavailable(message).with_cause(error)
}

/// Returns the newest events before a position that `wanted` accepts. The log is read from its end
/// in ranges. Few events make the next range wider, so that a page stays cheap despite a busy
/// neighbour or a long silence. A range that turns out to hold more than is read at a time, after a
/// silence, is read again with a smaller width.
pub(crate) async fn newest_before(
    state: &State,
    org: &OrgId,
    before: Option<Position>,
    count: usize,
    wanted: impl Fn(&Value) -> bool,
) -> Result<Backwards, HttpError> {
    let mut through = match before {
        Some(before) => before.sequence().saturating_sub(1),
        None => state
            .log
            .end_for_reader(Log::Events)
            .await
            .map_err(away)?
            .sequence(),
    };
    let (mut width, mut read) = (FIRST, 0);
    let mut events = Vec::new();
    let mut stretches = 0;
    while stretches < STRETCHES {
        let after = through.saturating_sub(width);
        let stretch = between(state, org, after, through, MOST_READ).await?;
        if stretch.len() >= MOST_READ && width > FIRST {
            width /= WIDER;
            continue;
        }
        stretches += 1;
        read += stretch.len();
        let few = stretch.len() as u64 * WIDER < width;
        for event in stretch.into_iter().rev().filter(&wanted) {
            if events.len() == count {
                let last = events.last().map(|event: &Value| position(state, event));
                let before = last.flatten();
                return Ok(Backwards { events, before });
            }
            events.push(event);
        }
        through = after;
        if through == 0 || read >= MOST_READ {
            break;
        }
        if few {
            width = width.saturating_mul(WIDER);
        }
    }
    let before = (through > 0).then(|| state.log.position(Log::Events, through + 1));
    Ok(Backwards { events, before })
}

fn position(state: &State, event: &Value) -> Option<Position> {
    state.log.parse_position(event["position"].as_str()?).ok()
}

/// Returns an event if the organization may see it.
pub(crate) async fn event_at(
    state: &State,
    org: &OrgId,
    at: Position,
) -> Result<Option<Value>, HttpError> {
    let sequence = at.sequence();
    let Some(before) = sequence.checked_sub(1) else {
        return Ok(None);
    };
    let mut events = between(state, org, before, sequence, 1).await?;
    Ok(events.pop())
}

/// Returns all events of an event's correlation, oldest first, within the given number of events
/// before and after it. The log has no index of correlations, and needs none: the consequences of a
/// request follow shortly after it.
pub(crate) async fn around(
    state: &State,
    org: &OrgId,
    at: Position,
    correlation: &str,
    reach: usize,
) -> Result<Vec<Value>, HttpError> {
    let own = |event: &Value| event["correlationId"] == correlation;
    let earlier = newest_before(state, org, Some(at), reach / 4, own).await?;
    let end = state
        .log
        .end_for_reader(Log::Events)
        .await
        .map_err(away)?
        .sequence();
    let after = at.sequence().saturating_sub(1);
    let later = between(state, org, after, end, reach).await?;
    let mut events = earlier.events;
    events.reverse();
    events.extend(later.into_iter().filter(own));
    Ok(events)
}
