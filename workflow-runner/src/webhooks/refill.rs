//! Reads an endpoint's wanted events from the log: after a restart, and when more came than a
//! lane holds.

use event_log::{EventLog, Item, ReadError};
use schemas::{Log, Visibility};

use super::directory::Endpoint;
use super::lane::Refill;

/// Events read at a time.
const PAGE: usize = 1_000;
/// Wanted events that are enough for one refill.
const ENOUGH: usize = 1_000;
/// Pages read for one refill, so that a lane with few wanted events shows its progress.
const PAGES: usize = 20;

/// The wanted events behind `after`. `head_before` is how far the log is known.
pub(super) async fn read(
    log: &EventLog,
    endpoint: &Endpoint,
    after: u64,
    head_before: u64,
) -> Result<Refill, ReadError> {
    let mut refill = Refill {
        sequences: Vec::new(),
        through: after,
        complete: false,
        head_before,
    };
    for _ in 0..PAGES {
        let page = log
            .page(Log::Events, &endpoint.org, None, refill.through, PAGE)
            .await?;
        refill.through = page.through;
        refill.complete = page.complete;
        refill.sequences.extend(wanted(endpoint, &page.items));
        if refill.complete || refill.sequences.len() >= ENOUGH {
            break;
        }
    }
    Ok(refill)
}

fn wanted(endpoint: &Endpoint, items: &[Item]) -> impl Iterator<Item = u64> {
    items.iter().filter_map(move |item| match item {
        Item::Event(recorded)
            if recorded.event.visibility() == Visibility::Public
                && endpoint.wants(recorded.sequence, &recorded.event.name()) =>
        {
            Some(recorded.sequence)
        }
        _ => None,
    })
}
