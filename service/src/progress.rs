//! Notices of the projector's progress to the readers of its rows.

use serde::{Deserialize, Serialize};

/// The Postgres channel for the notices, sent in the transaction that changed the rows.
pub const CHANNEL: &str = "projection";

/// Projections that have advanced together. A message on the channel that is not such a notice
/// means that positions have changed in another way and have to be read.
#[derive(Debug, Deserialize, Serialize)]
pub struct Moved<'a> {
    /// The epoch of their log.
    pub epoch: u32,
    /// The sequence of the last event applied to their rows.
    pub sequence: u64,
    /// Their names.
    #[serde(borrow)]
    pub projections: Vec<&'a str>,
}
