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

/// A connection. Nothing is lost when [`Wire::next`] is cancelled.
pub(super) struct Wire {
    socket: WebSocket,
    waiting: VecDeque<Message>,
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
            waiting: VecDeque::new(),
            unflushed: false,
            blocked: false,
            alive: Instant::now(),
        }
    }

    /// Queues a frame.
    pub(super) fn send(&mut self, text: String) {
        self.waiting.push_back(Message::Text(text.into()));
    }

    /// Asks the client for a sign of life.
    pub(super) fn ping(&mut self) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back(Message::Ping(bytes::Bytes::new()));
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
        if !self.is_idle() {
            match self.poll_send(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(Heard::Sent),
                Poll::Ready(Err(_)) => return Poll::Ready(Heard::Gone),
                Poll::Pending => self.blocked = true,
            }
        }
        while self.waiting.len() < MAX_WAITING {
            let heard = match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Text(text))) => Heard::Text(text),
                Some(Ok(Message::Binary(_))) => Heard::Binary,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                    self.alive = Instant::now();
                    continue;
                }
                Some(Ok(Message::Close(_))) | None => Heard::Gone,
                Some(Err(_)) => Heard::Unreadable,
            };
            self.alive = Instant::now();
            return Poll::Ready(heard);
        }
        Poll::Pending
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while !self.waiting.is_empty() {
            ready!(Pin::new(&mut self.socket).poll_ready(cx))?;
            if let Some(message) = self.waiting.pop_front() {
                Pin::new(&mut self.socket).start_send(message)?;
                self.unflushed = true;
            }
        }
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        self.unflushed = false;
        if self.blocked {
            self.blocked = false;
            self.alive = Instant::now();
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the reason and closes; frames still waiting are dropped.
    pub(super) async fn close(mut self, reason: CloseReason) {
        self.waiting.clear();
        let error = reason.words();
        self.send(Reply::Error { id: None, error }.to_text());
        self.waiting.push_back(Message::Close(Some(reason.frame())));
        let goodbye = async {
            // Read to the end: hanging up over unread frames would reset the connection, and the
            // client might never see the reason.
            while !matches!(self.next().await, Heard::Gone | Heard::Unreadable) {}
        };
        let _ = timeout(TIMEOUT, goodbye).await;
    }
}
