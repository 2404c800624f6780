//! Incoming request bodies: waited for while they keep their pace, and drained afterwards, so that
//! the next request on the connection can be read.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::life::UnderWay;
use super::wire::note_timeout;

/// A body arrived more slowly than the minimum rate.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body arrived too slowly; send it faster or in smaller parts")]
pub(crate) struct TooSlow;

/// Limits for receiving bodies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// How long a body may keep its reader waiting beyond its rate.
    pub(super) max_wait: Duration,
    pub(super) bytes_per_second: u32,
    /// The largest unread remainder that is read and discarded.
    pub(super) drain_bytes: u64,
}

/// The state of the body that decides whether the connection can be reused after the response.
pub(super) struct Fate {
    state: AtomicU8,
    rest: AtomicU64,
    /// The largest unread remainder that is read and discarded.
    drain_bytes: u64,
}

/// The reader may still read on.
const HELD: u8 = 0;
/// Nothing is left of it, or the rest is being drained.
const OUT_OF_THE_WAY: u8 = 1;
/// The client waits for `100 Continue` before it sends any of it.
const AWAITED: u8 = 2;
/// The rest is left unread.
const LEFT: u8 = 3;

impl Fate {
    /// Whether the connection has to end after this response.
    pub(super) fn ends_connection(&self) -> bool {
        match self.state.load(Ordering::Acquire) {
            OUT_OF_THE_WAY => false,
            HELD => !self.can_be_drained(),
            _ => true,
        }
    }

    fn can_be_drained(&self) -> bool {
        self.rest.load(Ordering::Relaxed) <= self.drain_bytes
    }

    fn set(&self, state: u8) {
        self.state.store(state, Ordering::Release);
    }
}

/// A body as its reader sees it.
pub(super) struct Arriving {
    /// `None` once the body has ended.
    body: Option<Incoming>,
    fate: Arc<Fate>,
    budget: WaitBudget,
    waiting: Option<Waiting>,
    max_wait: Duration,
    under_way: UnderWay,
}

impl Arriving {
    /// Wraps a body; `awaited` if the client sends none of it before it is asked to.
    pub(super) fn new(
        body: Incoming,
        awaited: bool,
        terms: Terms,
        under_way: UnderWay,
    ) -> (Self, Arc<Fate>) {
        let fate = Arc::new(Fate {
            state: AtomicU8::new(if awaited { AWAITED } else { HELD }),
            rest: AtomicU64::new(body.size_hint().upper().unwrap_or(u64::MAX)),
            drain_bytes: terms.drain_bytes,
        });
        let arriving = Self {
            body: Some(body),
            fate: Arc::clone(&fate),
            budget: WaitBudget::new(terms),
            waiting: None,
            max_wait: terms.max_wait,
            under_way,
        };
        (arriving, fate)
    }

    fn end(&mut self, state: u8) {
        self.body = None;
        self.fate.set(state);
    }

    /// Reads what is left and discards it, concurrently with the response.
    fn drain(&mut self, body: Incoming) {
        let Ok(runtime) = Handle::try_current() else {
            return self.fate.set(LEFT);
        };
        self.fate.set(OUT_OF_THE_WAY);
        let (max_wait, under_way) = (self.max_wait, self.under_way.clone());
        runtime.spawn(async move {
            let drained = timeout(max_wait, throw_away(body)).await;
            let outcome = if drained.is_ok() { "read" } else { "given_up" };
            metrics::counter!("waypost_http_bodies_drained_total", "outcome" => outcome)
                .increment(1);
            drop(under_way);
        });
    }
}

async fn throw_away(mut body: Incoming) {
    while let Some(Ok(_)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {}
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self {
            body,
            fate,
            budget,
            waiting,
            ..
        } = &mut *self;
        let Some(incoming) = body else {
            return Poll::Ready(None);
        };
        // Polling the body makes hyper ask the client to send it.
        if fate.state.load(Ordering::Relaxed) == AWAITED {
            fate.set(HELD);
        }
        let Poll::Ready(frame) = Pin::new(&mut *incoming).poll_frame(cx) else {
            let waiting = waiting.get_or_insert_with(|| Waiting::at_most(budget.left));
            ready!(waiting.timed_out.as_mut().poll(cx));
            note_timeout("body");
            self.end(LEFT);
            return Poll::Ready(Some(Err(TooSlow.into())));
        };
        match frame {
            Some(Ok(frame)) => {
                let waited = waiting.take().map(|waiting| waiting.since.elapsed());
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                budget.note(waited.unwrap_or_default(), bytes);
                let rest = incoming.size_hint().upper().unwrap_or(u64::MAX);
                fate.rest.store(rest, Ordering::Relaxed);
                if incoming.is_end_stream() {
                    self.end(OUT_OF_THE_WAY);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.end(LEFT);
                Poll::Ready(Some(Err(error.into())))
            }
            None => {
                self.end(OUT_OF_THE_WAY);
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().map(Body::size_hint);
        hint.unwrap_or_else(|| SizeHint::with_exact(0))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else {
            return;
        };
        let held = self.fate.state.load(Ordering::Acquire) == HELD;
        if body.is_end_stream() {
            self.fate.set(OUT_OF_THE_WAY);
        } else if held && self.fate.can_be_drained() {
            self.drain(body);
        } else {
            self.fate.set(LEFT);
        }
    }
}

/// How much longer a body may keep its reader waiting: waiting uses it up, every byte gives some
/// back. Time in which no read was pending does not count.
#[derive(Clone, Copy)]
struct WaitBudget {
    left: Duration,
    most: Duration,
    bytes_per_second: u32,
}

impl WaitBudget {
    fn new(terms: Terms) -> Self {
        Self {
            left: terms.max_wait,
            most: terms.max_wait,
            bytes_per_second: terms.bytes_per_second.max(1),
        }
    }

    /// Records bytes for which the reader waited this long.
    fn note(&mut self, waited: Duration, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let earned = Duration::from_secs(bytes.into()) / self.bytes_per_second;
        let left = self.left.saturating_sub(waited);
        self.left = left.saturating_add(earned).min(self.most);
    }
}

/// State of a reader that waits for the next bytes of a body.
struct Waiting {
    since: Instant,
    timed_out: Pin<Box<Sleep>>,
}

impl Waiting {
    fn at_most(max_wait: Duration) -> Self {
        Self {
            since: Instant::now(),
            timed_out: Box::pin(sleep(max_wait)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TERMS: Terms = Terms {
        max_wait: Duration::from_secs(30),
        bytes_per_second: 500,
        drain_bytes: 0,
    };

    /// Whether a reader waits for all of these pieces, each given as its delay and its bytes.
    fn waits_for(pieces: &[(Duration, usize)]) -> bool {
        let mut budget = WaitBudget::new(TERMS);
        pieces.iter().all(|(waited, bytes)| {
            let in_time = *waited <= budget.left;
            budget.note(*waited, *bytes);
            in_time
        })
    }

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_body_that_keeps_its_rate_may_take_as_long_as_it_likes() {
        assert!(waits_for(&[(seconds(1), 500); 600]));
    }

    #[test]
    fn a_body_that_trickles_is_given_up_though_it_never_stops() {
        assert!(!waits_for(&[(seconds(1), 1); 60]));
        assert!(!waits_for(&[(seconds(29), 100), (seconds(29), 100)]));
    }

    #[test]
    fn what_came_fast_buys_no_long_silence() {
        assert!(waits_for(&[(seconds(0), 100_000_000), (seconds(29), 1)]));
        assert!(!waits_for(&[(seconds(0), 100_000_000), (seconds(31), 1)]));
    }

    proptest! {
        /// No body keeps its reader waiting for longer than its bytes pay for.
        #[test]
        fn waiting_is_paid_for(
            pieces in proptest::collection::vec((0_u64..20_000, 0_usize..5_000), 1..50),
        ) {
            let pieces: Vec<_> = pieces
                .into_iter()
                .map(|(after_ms, bytes)| (Duration::from_millis(after_ms), bytes))
                .collect();
            if waits_for(&pieces) {
                let waited: Duration = pieces.iter().map(|(waited, _)| waited).sum();
                let bytes: usize = pieces.iter().map(|(_, bytes)| bytes).sum();
                let paid = TERMS.max_wait + seconds(bytes as u64) / 500;
                prop_assert!(waited <= paid, "{waited:?} for {paid:?}");
            }
        }
    }
}
