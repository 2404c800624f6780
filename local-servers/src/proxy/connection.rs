//! One connection, and the bytes that go over it in both directions.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::{Passage, State, Way};

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// An accepted client.
pub(super) struct Connection {
    pub(super) client: TcpStream,
    /// The number of cuts before it was accepted.
    pub(super) cuts: u64,
    pub(super) state: watch::Receiver<State>,
}

impl Connection {
    /// Carries bytes between it and the server until one of the two ends.
    pub(super) async fn carry(self, there: String) -> io::Result<()> {
        let server = TcpStream::connect(there).await?;
        // Data that arrives in several parts is passed on in as many.
        self.client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, to_client) = self.client.into_split();
        let (from_server, to_server) = server.into_split();
        let there = Carrier {
            state: self.state.clone(),
            passage: |way| way.there,
            cut_after: None,
        };
        let back = Carrier {
            state: self.state,
            passage: |way| way.back,
            cut_after: Some(self.cuts),
        };
        // One side may have sent all while the other continues; an error in one ends both
        // directions.
        tokio::try_join!(
            there.carry(from_client, to_server),
            back.carry(from_server, to_client)
        )?;
        Ok(())
    }
}

/// Carries the bytes of one direction.
#[derive(Clone)]
struct Carrier {
    state: watch::Receiver<State>,
    passage: fn(&Way) -> Passage,
    /// The last cut before this connection, if this direction can be cut.
    cut_after: Option<u64>,
}

impl Carrier {
    async fn carry(self, from: OwnedReadHalf, to: OwnedWriteHalf) -> io::Result<()> {
        let (depart, under_way) = mpsc::unbounded_channel();
        let departing = self.clone().take(from, depart);
        tokio::try_join!(departing, self.deliver(under_way, to))?;
        Ok(())
    }

    /// While bytes are held none are read: what a sender has sent fills its own buffers.
    async fn take(
        mut self,
        mut from: OwnedReadHalf,
        depart: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    ) -> io::Result<()> {
        let mut bytes = vec![0; CHUNK];
        loop {
            self.until_open().await?;
            let count = from.read(&mut bytes).await?;
            if count == 0 {
                return Ok(());
            }
            let arrival = Instant::now() + self.delay();
            let sent = depart.send((arrival, bytes[..count].to_vec()));
            sent.map_err(io::Error::other)?;
        }
    }

    async fn deliver(
        mut self,
        mut under_way: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
        mut to: OwnedWriteHalf,
    ) -> io::Result<()> {
        while let Some((at, bytes)) = under_way.recv().await {
            sleep_until(at).await;
            self.until_open().await?;
            if self.is_cut() {
                to.write_all(&bytes[..bytes.len() / 2]).await?;
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            to.write_all(&bytes).await?;
        }
        Ok(())
    }

    fn is_cut(&self) -> bool {
        let state = self.state.borrow();
        let is_older = |before| before < state.cuts;
        state.cutting && self.cut_after.is_some_and(is_older)
    }

    async fn until_open(&mut self) -> io::Result<()> {
        let passage = self.passage;
        let is_open = |state: &State| passage(&state.way) != Passage::Held;
        let open = self.state.wait_for(is_open).await;
        open.map_err(io::Error::other)?;
        Ok(())
    }

    fn delay(&self) -> Duration {
        match (self.passage)(&self.state.borrow().way) {
            Passage::After(delay) => delay,
            Passage::Held => Duration::ZERO,
        }
    }
}
