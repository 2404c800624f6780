//! A connection's bytes: read while they arrive in time, written while they are read by the peer.
//!
//! The timeouts for a head and for idle connections are kept here and not by the HTTP library,
//! which has only one for both. Timers are armed once and moved when they fire, so that a busy
//! connection does not pay for them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::answers::{self, LastAnswer};
use super::life::Life;
use super::linger::End;
use super::places::ConnectionPlace;

/// The system sees every byte that a client reads. This process notices only when there is room for
/// a good part of what the system buffers, so it waits this many times longer.
const ROOM_TAKES: u32 = 5;

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTimeouts {
    pub(super) head: Duration,
    /// Before the first byte.
    pub(super) silent: Duration,
    pub(super) idle: Duration,
    pub(super) unread: Duration,
}

/// A connection that is given up when it stalls, and that lingers at its end.
pub(super) struct Wire {
    stream: TcpStream,
    life: Arc<Life>,
    timeouts: ConnectionTimeouts,
    /// Fires when reading may have waited long enough.
    reading: Option<Pin<Box<Sleep>>>,
    /// Fires when writing has waited too long; set only while writing waits.
    writing: Option<Pin<Box<Sleep>>>,
    head: Option<Head>,
    end: Option<End>,
    _place: ConnectionPlace,
}

/// The partly received head of a request.
struct Head {
    /// How many requests had begun before it.
    after: u64,
    due: Instant,
}

impl Wire {
    pub(super) fn new(
        stream: TcpStream,
        life: Arc<Life>,
        timeouts: ConnectionTimeouts,
        place: ConnectionPlace,
    ) -> Self {
        Self {
            stream,
            life,
            timeouts,
            reading: None,
            writing: None,
            head: None,
            end: None,
            _place: place,
        }
    }

    /// The head being received, while no request is in progress.
    fn coming_head(&self) -> Option<&Head> {
        let begun = self.life.begun();
        self.head.as_ref().filter(|head| head.after == begun)
    }

    /// Records that bytes have arrived; between requests they begin a head.
    fn note_bytes(&mut self) {
        if self.life.is_busy() || self.coming_head().is_some() {
            return;
        }
        self.head = Some(Head {
            after: self.life.begun(),
            due: Instant::now() + self.timeouts.head,
        });
    }

    /// The deadline for the next bytes; `None` while the client need not send any.
    fn reading_due(&self) -> Option<Instant> {
        if self.life.is_busy() || self.writing.is_some() {
            None
        } else if let Some(head) = self.coming_head() {
            Some(head.due)
        } else if self.life.begun() == 0 {
            Some(self.life.idle_since() + self.timeouts.silent)
        } else {
            Some(self.life.idle_since() + self.timeouts.idle)
        }
    }

    /// Waits for bytes, or ends the reading side if it has waited long enough.
    fn wait_for_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.life.is_upgraded() {
            self.reading = None;
            return Poll::Pending;
        }
        loop {
            let due = self.reading_due();
            let idle = self.timeouts.idle;
            let ring = || due.unwrap_or_else(|| Instant::now() + idle);
            let timer = self
                .reading
                .get_or_insert_with(|| Box::pin(sleep_until(ring())));
            if due.is_some_and(|due| due < timer.deadline()) {
                timer.as_mut().reset(ring());
            }
            ready!(timer.as_mut().poll(cx));
            if due.is_some_and(|due| due <= Instant::now()) {
                self.give_up_reading();
                return Poll::Ready(Ok(()));
            }
            timer.as_mut().reset(ring());
        }
    }

    /// To the HTTP library this looks like the peer's own end. A client that has begun a head gets
    /// the reason.
    fn give_up_reading(&mut self) {
        let kind = if self.coming_head().is_some() {
            // No write is pending, so there is room. If it fails, there is no one to report it to.
            let _ = self.stream.try_write(&answers::HEAD_TOO_SLOW.bytes());
            "head"
        } else {
            "idle"
        };
        note_timeout(kind);
    }

    /// Applies the timeout to a write that finds no room.
    fn write_in_time(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            if self.writing.take().is_some() {
                self.life.rest();
            }
            return Poll::Ready(written.inspect_err(note_if_unread));
        }
        let max_wait = self.timeouts.unread.saturating_mul(ROOM_TAKES);
        let timer = self
            .writing
            .get_or_insert_with(|| Box::pin(sleep(max_wait)));
        ready!(timer.as_mut().poll(cx));
        let error = io::Error::from(io::ErrorKind::TimedOut);
        note_if_unread(&error);
        Poll::Ready(Err(error))
    }

    /// Returns our response to replace one that the HTTP library wrote itself.
    fn instead_of(&self, written: &[u8]) -> Option<LastAnswer> {
        if !written.starts_with(b"HTTP/1.1 4") || self.life.is_busy() {
            return None;
        }
        LastAnswer::instead_of(written)
    }
}

/// The system reports `TimedOut` if a client has read nothing for too long.
fn note_if_unread(error: &io::Error) {
    if error.kind() == io::ErrorKind::TimedOut {
        note_timeout("unread");
    }
}

/// Counts a timeout.
pub(super) fn note_timeout(kind: &'static str) {
    metrics::counter!("waypost_http_timeouts_total", "kind" => kind).increment(1);
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(read) => {
                if buffer.filled().len() > before {
                    self.note_bytes();
                }
                Poll::Ready(read.inspect_err(note_if_unread))
            }
            Poll::Pending => self.wait_for_bytes(cx),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.write_in_time(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let instead = parts.first().and_then(|part| self.instead_of(part));
        let written = match instead {
            Some(answer) => Pin::new(&mut self.stream)
                .poll_write(cx, &answer.bytes())
                // The buffer is empty before a last response, so this one was written whole.
                .map_ok(|_| parts.iter().map(|part| part.len()).sum()),
            None => Pin::new(&mut self.stream).poll_write_vectored(cx, parts),
        };
        self.write_in_time(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, end, .. } = &mut *self;
        if end.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        end.get_or_insert_with(End::new).poll(stream, cx).map(Ok)
    }
}
