//! One connection: the frames waiting to be sent, and what is received.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Error;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use futures::{Sink, Stream};
use tokio::time::{Instant, timeout};

use super::close::{CloseReason, TIMEOUT};
use super::frames::Reply;

/// Frames that may wait. A subscription adds far fewer; only a client that asks without reading
/// gets here, and its frames are not read until it reads.
const MAX_WAITING: usize = 512;
/// The same in bytes, since one small frame may ask for a large snapshot.
const MAX_WAITING_BYTES: usize = 256 * 1024;
/// What a pong takes besides its payload.
const PONG_BYTES: usize = 2;

/// A connection. Nothing is lost when [`Wire::next`] is cancelled.
pub(super) struct Wire {
    socket: WebSocket,
    waiting: Waiting,
    unflushed: bool,
    /// Whether the connection has refused to take more.
    blocked: bool,
    /// When the client was last heard, or seen to take everything that had waited for room. That
    /// the system takes bytes while it has room says nothing about the client.
    alive: Instant,
}

/// What happened on a connection.
#[derive(Debug)]
pub(super) enum Heard {
    /// A text frame.
    Text(Utf8Bytes),
    /// A binary frame, which the protocol does not have.
    Binary,
    /// Everything that waited is on its way.
    Sent,
    /// A frame too large or broken.
    Unreadable,
    /// The client has disconnected.
    Gone,
}

impl Wire {
    pub(super) fn new(socket: WebSocket) -> Self {
        Self {
            socket,
            waiting: Waiting::default(),
            unflushed: false,
            blocked: false,
            alive: Instant::now(),
        }
    }

    /// Queues a frame.
    pub(super) fn send(&mut self, text: String) {
        self.waiting.push(Message::Text(text.into()));
    }

    /// Asks the client for a sign of life.
    pub(super) fn ping(&mut self) {
        if !self.waiting.is_full() {
            self.waiting.push(Message::Ping(bytes::Bytes::new()));
        }
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && !self.unflushed
    }

    /// How long there has been no sign of the client.
    pub(super) fn silence(&self) -> Duration {
        self.alive.elapsed()
    }

    /// Sends what waits while listening, until something happens.
    pub(super) async fn next(&mut self) -> Heard {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Heard> {
        loop {
            if !self.is_idle() {
                match self.poll_send(cx) {
                    Poll::Ready(Ok(())) => return Poll::Ready(Heard::Sent),
                    Poll::Ready(Err(_)) => return Poll::Ready(Heard::Gone),
                    Poll::Pending => self.blocked = true,
                }
            }
            if self.waiting.is_full() {
                return Poll::Pending;
            }
            let received = ready!(Pin::new(&mut self.socket).poll_next(cx));
            self.alive = Instant::now();
            return Poll::Ready(match received {
                Some(Ok(Message::Text(text))) => Heard::Text(text),
                Some(Ok(Message::Binary(_))) => Heard::Binary,
                Some(Ok(Message::Ping(payload))) => {
                    // The connection answers by itself, and keeps the pong until it is flushed.
                    self.waiting.pongs += PONG_BYTES + payload.len();
                    self.unflushed = true;
                    continue;
                }
                Some(Ok(Message::Pong(_))) => continue,
                Some(Ok(Message::Close(_))) | None => Heard::Gone,
                Some(Err(_)) => Heard::Unreadable,
            });
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while !self.waiting.is_empty() {
            ready!(Pin::new(&mut self.socket).poll_ready(cx))?;
            if let Some(message) = self.waiting.pop() {
                Pin::new(&mut self.socket).start_send(message)?;
                self.unflushed = true;
            }
        }
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        self.unflushed = false;
        self.waiting.pongs = 0;
        if self.blocked {
            self.blocked = false;
            self.alive = Instant::now();
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the reason and closes; frames still waiting are dropped.
    pub(super) async fn close(mut self, reason: CloseReason) {
        self.waiting = Waiting::default();
        let error = reason.words();
        self.send(Reply::Error { id: None, error }.to_text());
        self.waiting.push(Message::Close(Some(reason.frame())));
        let goodbye = async {
            // Read to the end: hanging up over unread frames would reset the connection, and the
            // client might never see the reason.
            while !matches!(self.next().await, Heard::Gone | Heard::Unreadable) {}
        };
        let _ = timeout(TIMEOUT, goodbye).await;
    }
}

/// Frames that wait to be sent.
#[derive(Default)]
struct Waiting {
    frames: VecDeque<Message>,
    /// The sum of their lengths.
    bytes: usize,
    /// Bytes of pongs that the connection may still hold.
    pongs: usize,
}

impl Waiting {
    fn push(&mut self, frame: Message) {
        self.bytes += length(&frame);
        self.frames.push_back(frame);
    }

    fn pop(&mut self) -> Option<Message> {
        let frame = self.frames.pop_front()?;
        self.bytes -= length(&frame);
        Some(frame)
    }

    fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether the client has to read before it may ask for more.
    fn is_full(&self) -> bool {
        self.frames.len() >= MAX_WAITING || self.bytes + self.pongs >= MAX_WAITING_BYTES
    }
}

fn length(frame: &Message) -> usize {
    match frame {
        Message::Text(text) => text.len(),
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len(),
        Message::Close(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(frames: usize, bytes: usize) -> Waiting {
        let mut waiting = Waiting::default();
        for _ in 0..frames {
            waiting.push(Message::Text("x".repeat(bytes).into()));
        }
        waiting
    }

    #[test]
    fn many_small_frames_or_few_large_ones_are_all_that_may_wait() {
        let almost = MAX_WAITING_BYTES / 2 - 1;
        assert!(!waiting(2, almost).is_full() && waiting(3, almost).is_full());
        assert!(!waiting(MAX_WAITING - 1, 1).is_full() && waiting(MAX_WAITING, 1).is_full());
    }

    #[test]
    fn a_frame_larger_than_all_that_may_wait_waits_alone() {
        let mut waiting = waiting(1, 2 * MAX_WAITING_BYTES);
        assert!(waiting.is_full());
        assert!(waiting.pop().is_some());
        assert!(waiting.is_empty() && !waiting.is_full());
        assert_eq!(waiting.bytes, 0);
    }
}
