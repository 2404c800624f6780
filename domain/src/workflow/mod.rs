//! Workflows: what a definition may contain, how it is saved, when it can be triggered.

mod condition;
mod definition;
mod graph;
mod http;
mod notify;
mod on;
mod record;
mod save;
mod schedule;
mod shared;
mod step;
mod templates;
mod trigger;
mod wait;

pub use definition::{DEFAULT_TIMEOUT_SECONDS, parse, parse_id};
pub use save::{Saving, revision, save};
pub use schedule::Schedule;
pub use trigger::{MAX_HOPS, NotTriggerable, Summary, TriggeredBy, payload};

#[cfg(test)]
mod tests;
