//! How the projector tells those who read its rows how far they are.

use serde::{Deserialize, Serialize};

/// The channel of Postgres on which it is told, in the transaction that changed the rows.
pub const CHANNEL: &str = "projection";

/// Projections that have moved on together. What is told on the channel and is no such notice says
/// that positions have changed in another way, and have to be read.
#[derive(Debug, Deserialize, Serialize)]
pub struct Moved<'a> {
    /// The epoch of their log.
    pub epoch: u32,
    /// The sequence of the last event that is in their rows.
    pub sequence: u64,
    /// Their names.
    #[serde(borrow)]
    pub projections: Vec<&'a str>,
}
