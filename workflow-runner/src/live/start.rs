//! Where a subscription starts: after what the client has seen, or afresh.

use event_log::{EventLog, Position, PositionError};

use super::channel::Channel;

/// Where a subscription starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// After what the client has seen.
    Behind(u64),
    /// From now on, with a snapshot.
    Now,
    /// The same, although the client asked for more: what followed its position is not available.
    Again,
}

impl Start {
    /// Where a client starts that has seen all up to `after`; `head` is how far this process is.
    pub(super) async fn find(
        log: &EventLog,
        channel: Channel,
        after: Option<&str>,
        head: u64,
    ) -> Result<Self, String> {
        let Some(after) = after else {
            return Ok(Self::Now);
        };
        let wrong = |what: &str| format!("`after` is {what}");
        let position: Position = after
            .parse()
            .map_err(|error: PositionError| wrong(&error.to_string()))?;
        if position.log() != channel.log() {
            return Err(wrong("a position of another feed"));
        }
        match log.parse_position(after) {
            Ok(position) if is_there(log, position, head).await => {
                Ok(Self::Behind(position.sequence()))
            }
            Ok(_) | Err(PositionError::OldEpoch) => Ok(Self::Again),
            Err(error) => Err(wrong(&error.to_string())),
        }
    }
}

/// Whether the log has everything that followed a position, and has reached it: a command's
/// response may be ahead of this process, but never of the log.
async fn is_there(log: &EventLog, position: Position, head: u64) -> bool {
    match log.bounds(position.log()).await {
        Ok((first, last)) => (first..=last.max(head)).contains(&position.sequence()),
        // Unknown for now; the events that follow will come either way.
        Err(_) => true,
    }
}
