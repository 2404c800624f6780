//! Streamed responses: sent to a client piece by piece, for as long as it reads them and may have
//! them.
//!
//! The producer of the pieces runs in a task of its own, at most one piece ahead of the connection.
//! So it ends, and drops everything it holds, at the same moment for every reason: the client is
//! gone, reads nothing, reads too little, or may no longer have the response. If the connection
//! polled it, this would be checked only once the connection has room.
//!
//! That task has a low priority. Whether the response may continue is watched separately at normal
//! priority, so that a client whose key has ended is cut off in time on a busy machine too.

use std::io;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

/// The rest of a response: the pieces to come, and how it ends if it is cut off.
type GoingOn = (
    mpsc::Receiver<io::Result<Bytes>>,
    oneshot::Receiver<Result<(), Cut>>,
);

/// Limits on how long a response waits for its client.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// The kind of response, as a metrics label.
    pub kind: &'static str,
    /// Timeout for a client that reads nothing.
    pub stall: Duration,
    /// The bytes per second that a client must read at least while it is waited for.
    pub least_rate: u32,
    /// Deadline by which everything must have been read.
    pub deadline: Option<Instant>,
}

/// The reason why a response ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cut {
    /// The client read nothing for too long.
    #[error("the client read nothing for too long")]
    Stalled,
    /// The client read too slowly for too long.
    #[error("the client read too slowly for too long")]
    Slow,
    /// The response took longer than allowed.
    #[error("the answer took too long")]
    Late,
    /// The client is no longer allowed to have it.
    #[error("the key was revoked or has expired")]
    Ended,
    /// The producer of the pieces did not finish.
    #[error("the answer could not be finished")]
    Failed,
}

impl Cut {
    const fn name(self) -> &'static str {
        match self {
            Self::Stalled => "stalled",
            Self::Slow => "slow",
            Self::Late => "late",
            Self::Ended => "key_ended",
            Self::Failed => "failed",
        }
    }
}

/// What happens to a response whose key ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtKeyEnd {
    /// The connection is aborted, so that a partial response is not mistaken for a whole one.
    BreakOff,
    /// It ends normally: such a response is never complete.
    End,
}

/// The body of a response made of `pieces`, until all are sent, its client is given up, or `ended`
/// resolves. An error among the pieces aborts the connection.
pub fn outflow<S, E>(
    pieces: S,
    limits: StreamLimits,
    ended: impl Future<Output = ()> + Send + 'static,
    at_key_end: AtKeyEnd,
) -> Body
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let (pass_on, taken) = mpsc::channel(1);
    let (tell, end) = oneshot::channel();
    // The body waits for one more piece until it is notified how the response ends.
    let not_told = pass_on.clone();
    let made = threads().spawn(async move {
        tokio::select! {
            biased;
            () = pass_on.closed() => None,
            cut = give(pieces, &pass_on, limits) => cut,
        }
    });
    tokio::spawn(async move {
        // The producer is dropped when it is done or the response is cut off.
        let mut made = AbortOnDropHandle::new(made);
        let cut = tokio::select! {
            biased;
            () = ended => Some(Cut::Ended),
            cut = &mut made => cut.unwrap_or(Some(Cut::Failed)),
        };
        let Some(cut) = cut else { return };
        let (kind, reason) = (limits.kind, cut.name());
        metrics::counter!("waypost_answers_cut_total", "kind" => kind, "reason" => reason)
            .increment(1);
        tracing::info!(kind, reason, "An answer was cut off");
        let quiet = cut == Cut::Ended && at_key_end == AtKeyEnd::End;
        // A client that is gone need not be notified.
        let _ = tell.send(if quiet { Ok(()) } else { Err(cut) });
        drop(not_told);
    });
    Body::from_stream(stream::unfold(Some((taken, end)), next))
}

/// The connection's side of a response: the pieces from `taken`, until `end` reports that it was
/// cut off. `end` is polled first, so that a piece that was ready before the end is not sent after
/// it.
async fn next(going_on: Option<GoingOn>) -> Option<(io::Result<Bytes>, Option<GoingOn>)> {
    let (mut taken, mut end) = going_on?;
    tokio::select! {
        biased;
        Ok(end) = &mut end, if !end.is_terminated() => {
            end.err().map(|cut| (Err(io::Error::other(cut)), None))
        }
        piece = taken.recv() => piece.map(|piece| (piece, Some((taken, end)))),
    }
}

/// Large reads and writes run at a lower priority than quick responses. Tests stay on their own
/// runtime, because they advance its clock.
fn threads() -> Handle {
    if cfg!(test) {
        Handle::current()
    } else {
        background::handle()
    }
}

/// Sends one piece after the other; returns why the client was given up, if it was.
async fn give<S, E>(
    pieces: S,
    pass_on: &mpsc::Sender<io::Result<Bytes>>,
    limits: StreamLimits,
) -> Option<Cut>
where
    S: Stream<Item = Result<Bytes, E>> + Send,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut pieces = std::pin::pin!(pieces);
    let mut client = Client {
        limits,
        waited: Duration::ZERO,
        given: 0,
    };
    let deadline = limits.deadline.unwrap_or_else(far_off);
    while let Ok(piece) = timeout_at(deadline, pieces.next()).await {
        let piece = piece?.map_err(io::Error::other);
        let (broken, bytes) = (piece.is_err(), piece.as_ref().map_or(0, Bytes::len));
        if let Err(cut) = client.give(pass_on, piece, deadline).await {
            return Some(cut);
        }
        if broken {
            return None;
        }
        client.given += bytes as u64;
    }
    Some(Cut::Late)
}

/// Later than any response; the clock cannot represent an instant that is never reached.
fn far_off() -> Instant {
    Instant::now() + Duration::from_hours(24 * 365)
}

/// How much a client has read, and how long it was waited for.
struct Client {
    limits: StreamLimits,
    waited: Duration,
    given: u64,
}

impl Client {
    async fn give(
        &mut self,
        pass_on: &mpsc::Sender<io::Result<Bytes>>,
        piece: io::Result<Bytes>,
        deadline: Instant,
    ) -> Result<(), Cut> {
        let began = Instant::now();
        let stalled = began + self.limits.stall;
        let slow = began + self.allowed().saturating_sub(self.waited);
        let end = stalled.min(slow).min(deadline);
        let sent = timeout_at(end, pass_on.send(piece)).await;
        self.waited += began.elapsed();
        match sent {
            // If the receiver is gone, the caller learns that from the channel itself.
            Ok(_) => Ok(()),
            Err(_) if end == deadline => Err(Cut::Late),
            Err(_) if end == stalled => Err(Cut::Stalled),
            Err(_) => Err(Cut::Slow),
        }
    }

    /// How long a client that has read this much may have kept the producer waiting.
    fn allowed(&self) -> Duration {
        let for_bytes = self.given / u64::from(self.limits.least_rate.max(1));
        self.limits.stall + Duration::from_secs(for_bytes)
    }
}

#[cfg(test)]
mod tests;
