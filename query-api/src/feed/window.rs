//! A stretch of the feed, for pages that show a part of it.

use event_log::Position;
use schemas::{Log, OrgId};
use serde_json::Value;
use service::HttpError;

use super::asked::{Asked, Form};
use super::open;
use crate::state::State;

/// Sequences looked through at first, and how much more each time.
const FIRST: u64 = 256;
const WIDER: u64 = 8;
/// Stretches looked through for one page.
const STRETCHES: usize = 8;
/// Events read for one page at most, and of one stretch.
const MOST_READ: usize = 3_000;

/// What was found, newest first, and from where on older ones would be looked for.
pub(crate) struct Backwards {
    pub(crate) events: Vec<Value>,
    /// Everything from here on was looked through; none at the log's beginning.
    pub(crate) before: Option<Position>,
}

/// The events behind `after`, up to `through`, as the feed tells them to an organization.
async fn between(
    state: &State,
    org: &OrgId,
    after: u64,
    through: u64,
    most: usize,
) -> Result<Vec<Value>, HttpError> {
    let asked = Asked {
        form: Form::Lines,
        after: Some(after),
        types: Vec::new(),
        limit: Some(most as u64),
    };
    let mut reader = open(state, Log::Events, org, asked).await?.through(through);
    let mut events = Vec::new();
    while let Some(told) = reader.next().await.map_err(away)? {
        for one in told {
            events.push(serde_json::from_slice(&one.line).map_err(HttpError::internal)?);
        }
    }
    Ok(events)
}

fn away(error: impl std::error::Error + Send + Sync + 'static) -> HttpError {
    let message = "the event log is not available; try again in a moment";
    HttpError::unavailable(message).with_cause(error)
}

/// The newest events before a position that `wanted` takes. The log is read from its end in
/// stretches: few events mean a wider stretch next, so that neither a busy neighbour nor a long
/// silence makes a page cost much. One that turns out to hold more than is read at a time, behind a
/// silence, is read anew from nearer.
pub(crate) async fn newest_before(
    state: &State,
    org: &OrgId,
    before: Option<Position>,
    count: usize,
    wanted: impl Fn(&Value) -> bool,
) -> Result<Backwards, HttpError> {
    let mut through = match before {
        Some(before) => before.sequence().saturating_sub(1),
        None => state.log.end(Log::Events).await.map_err(away)?.sequence(),
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

/// An event, where the organization may see it.
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

/// What belongs together with an event: all of its correlation, oldest first, as far as it stands
/// within so many events before and behind it. The log has no index of correlations, and needs none:
/// what one request leads to stands close behind it.
pub(crate) async fn around(
    state: &State,
    org: &OrgId,
    at: Position,
    correlation: &str,
    reach: usize,
) -> Result<Vec<Value>, HttpError> {
    let own = |event: &Value| event["correlationId"] == correlation;
    let earlier = newest_before(state, org, Some(at), reach / 4, own).await?;
    let end = state.log.end(Log::Events).await.map_err(away)?.sequence();
    let after = at.sequence().saturating_sub(1);
    let later = between(state, org, after, end, reach).await?;
    let mut events = earlier.events;
    events.reverse();
    events.extend(later.into_iter().filter(own));
    Ok(events)
}
