//! Answers that take their time: given to a client piece by piece, for as long as it takes them
//! and may have them.
//!
//! What makes the pieces runs in a task of its own, at most one piece ahead of the connection. So
//! it ends, and lets go of all that it holds, at the same moment for every reason: the client is
//! gone, takes nothing, takes too little, or may not have it any more. Left to the connection it
//! would be looked at only once that has room.
//!
//! That task gives way to everything else. Whether the answer may go on is watched beside it, at
//! normal priority: whose key has ended is cut off in time on a busy machine too.

use std::io;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

/// What an answer goes on with: the pieces to come, and the word how it ends if it is cut off.
type GoingOn = (
    mpsc::Receiver<io::Result<Bytes>>,
    oneshot::Receiver<Result<(), Cut>>,
);

/// How patient an answer is with its client.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// What is answered, in metrics.
    pub kind: &'static str,
    /// How long it waits for a client that takes nothing.
    pub stall: Duration,
    /// The bytes that a client takes in a second at least, while it is waited for.
    pub least_rate: u32,
    /// When all must have been taken.
    pub deadline: Option<Instant>,
}

/// Why an answer ends before all has been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cut {
    /// The client took nothing for too long.
    #[error("the client read nothing for too long")]
    Stalled,
    /// The client took too little for too long.
    #[error("the client read too slowly for too long")]
    Slow,
    /// It took longer than an answer may.
    #[error("the answer took too long")]
    Late,
    /// Whoever asked may not have it any more.
    #[error("the key was revoked or has expired")]
    Ended,
    /// What makes the pieces came to no end of its own.
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

/// What becomes of an answer whose key ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtKeyEnd {
    /// The connection breaks off, so that nobody takes a part for the whole.
    BreakOff,
    /// It ends as any other does: there is no whole of it.
    End,
}

/// The body of an answer made of `pieces`, until all are given, its client is given up, or `ended`
/// resolves. An error among the pieces breaks the connection off.
pub fn outflow<S, E>(
    pieces: S,
    patience: Patience,
    ended: impl Future<Output = ()> + Send + 'static,
    at_key_end: AtKeyEnd,
) -> Body
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let (pass_on, taken) = mpsc::channel(1);
    let (tell, end) = oneshot::channel();
    // Until it is told how the answer ends, the body waits for one more piece.
    let not_told = pass_on.clone();
    let made = threads().spawn(async move {
        tokio::select! {
            biased;
            () = pass_on.closed() => None,
            cut = give(pieces, &pass_on, patience) => cut,
        }
    });
    tokio::spawn(async move {
        // What makes the pieces is dropped when it is over or the answer cut off.
        let mut made = AbortOnDropHandle::new(made);
        let cut = tokio::select! {
            biased;
            () = ended => Some(Cut::Ended),
            cut = &mut made => cut.unwrap_or(Some(Cut::Failed)),
        };
        let Some(cut) = cut else { return };
        let (kind, reason) = (patience.kind, cut.name());
        metrics::counter!("waypost_answers_cut_total", "kind" => kind, "reason" => reason)
            .increment(1);
        tracing::info!(kind, reason, "An answer was cut off");
        let quiet = cut == Cut::Ended && at_key_end == AtKeyEnd::End;
        // A client that is gone need not be told.
        let _ = tell.send(if quiet { Ok(()) } else { Err(cut) });
        drop(not_told);
    });
    Body::from_stream(stream::unfold(Some((taken, end)), next))
}

/// The connection's side of an answer: what comes from `taken`, until `end` tells that it was cut
/// off. Asked first, so that what was put ready before the end is not given after it.
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

/// What reads far and writes much gives way to what is answered at once. Tests keep to their own
/// runtime, since they make its clock go by.
fn threads() -> Handle {
    if cfg!(test) {
        Handle::current()
    } else {
        background::handle()
    }
}

/// Gives one piece after the other; says why the client was given up, if it was.
async fn give<S, E>(
    pieces: S,
    pass_on: &mpsc::Sender<io::Result<Bytes>>,
    patience: Patience,
) -> Option<Cut>
where
    S: Stream<Item = Result<Bytes, E>> + Send,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut pieces = std::pin::pin!(pieces);
    let mut client = Client {
        patience,
        waited: Duration::ZERO,
        given: 0,
    };
    let deadline = patience.deadline.unwrap_or_else(far_off);
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

/// Beyond any answer; the clock could not tell a time that is never.
fn far_off() -> Instant {
    Instant::now() + Duration::from_hours(24 * 365)
}

/// What a client has taken, and how long it was waited for.
struct Client {
    patience: Patience,
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
        let stalled = began + self.patience.stall;
        let slow = began + self.allowed().saturating_sub(self.waited);
        let end = stalled.min(slow).min(deadline);
        let sent = timeout_at(end, pass_on.send(piece)).await;
        self.waited += began.elapsed();
        match sent {
            // Where nobody takes it any more, whoever called is told by the channel itself.
            Ok(_) => Ok(()),
            Err(_) if end == deadline => Err(Cut::Late),
            Err(_) if end == stalled => Err(Cut::Stalled),
            Err(_) => Err(Cut::Slow),
        }
    }

    /// How long a client that took so much may have kept it waiting.
    fn allowed(&self) -> Duration {
        let for_bytes = self.given / u64::from(self.patience.least_rate.max(1));
        self.patience.stall + Duration::from_secs(for_bytes)
    }
}

#[cfg(test)]
mod tests;
