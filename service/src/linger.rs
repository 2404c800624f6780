//! Closing connections so that the last answer arrives.
//!
//! A request may be answered before its body has been read, one without a key for instance. Closed
//! at once, the system would answer the rest of the body with a reset, and that can overtake the
//! answer, most of all at a proxy in between. So only the writing side is closed at first, and what
//! still comes is thrown away until the other side closes too.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// How long the other side may take to close.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes that are thrown away at most: as many as the largest body that is read whole.
const THROWN_AWAY: usize = 1024 * 1024;

/// Takes connections that linger.
pub(crate) struct LingeringListener(pub(crate) TcpListener);

impl Listener for LingeringListener {
    type Io = Lingering;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Lingering, SocketAddr) {
        let (stream, addr) = Listener::accept(&mut self.0).await;
        (Lingering { stream, end: None }, addr)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A connection that waits for the other side when it is shut down.
pub(crate) struct Lingering {
    stream: TcpStream,
    end: Option<End>,
}

/// What is left of a connection whose writing side is closed.
struct End {
    out_of_patience: Pin<Box<Sleep>>,
    to_throw_away: usize,
}

impl Lingering {
    pub(crate) fn set_nodelay(&self) -> io::Result<()> {
        self.stream.set_nodelay(true)
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, end } = &mut *self;
        if end.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let end = end.get_or_insert_with(|| End {
            out_of_patience: Box::pin(sleep(PATIENCE)),
            to_throw_away: THROWN_AWAY,
        });
        end.poll(stream, cx).map(Ok)
    }
}

impl End {
    /// Throws away what comes until the other side has closed, or has had its time or its share.
    fn poll(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
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
                    ready!(self.out_of_patience.as_mut().poll(cx));
                    self.to_throw_away = 0;
                }
            }
        }
        Poll::Ready(())
    }
}
