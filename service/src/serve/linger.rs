//! Closing connections so that the last response arrives.
//!
//! A request may be answered before its body has been read, for instance one without a key. If the
//! socket were closed at once, the system would answer the rest of the body with a reset, which can
//! overtake the response, most of all at a proxy in between. So only the writing side is closed at
//! first, and incoming bytes are discarded until the other side closes too.

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Timeout for the other side to close.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes that are discarded at most: the size of the largest body that is read whole.
const THROWN_AWAY: usize = 1024 * 1024;

/// What is left of a connection whose writing side is closed.
pub(super) struct End {
    timed_out: Pin<Box<Sleep>>,
    to_throw_away: usize,
}

impl End {
    pub(super) fn new() -> Self {
        Self {
            timed_out: Box::pin(sleep(TIMEOUT)),
            to_throw_away: THROWN_AWAY,
        }
    }

    /// Discards incoming bytes until the other side has closed, or has used up its time or bytes.
    pub(super) fn poll(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        let mut space = [MaybeUninit::uninit(); 4096];
        while self.to_throw_away > 0 {
            let mut buffer = ReadBuf::uninit(&mut space);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    let thrown_away = buffer.filled().len();
                    self.to_throw_away = self.to_throw_away.saturating_sub(thrown_away);
                }
                Poll::Ready(_) => self.to_throw_away = 0,
                Poll::Pending => {
                    ready!(self.timed_out.as_mut().poll(cx));
                    self.to_throw_away = 0;
                }
            }
        }
        Poll::Ready(())
    }
}
