//! A receiver that accepts calls and never answers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// How often one more byte of an endless response is sent to a call: a timeout that waits for
/// silence would never fire.
const DRIP: Duration = Duration::from_secs(5);

/// A receiver of webhooks and HTTP steps that holds every connection as long as it may.
#[derive(Debug)]
pub struct Sink {
    addr: SocketAddr,
    held: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Sink {
    /// Listens on loopback.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let held = Arc::<AtomicUsize>::default();
        let count = held.clone();
        let task = tokio::spawn(async move {
            let mut calls = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let count = count.clone();
                while calls.try_join_next().is_some() {}
                calls.spawn(async move {
                    count.fetch_add(1, Ordering::Relaxed);
                    let _ended = hold(stream).await;
                    count.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(Self { addr, held, task })
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Accepts no more, and closes the connections it holds.
    pub fn close(&self) {
        self.task.abort();
    }

    /// Number of calls that currently wait for it.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.close();
    }
}

/// Reads everything; every other call gets a dripping response, the rest get none.
async fn hold(mut stream: TcpStream) -> io::Result<()> {
    let drips = stream.peer_addr()?.port().is_multiple_of(2);
    let mut taken = [0; 4096];
    let mut ticks = tokio::time::interval(DRIP);
    let mut begun = false;
    loop {
        tokio::select! {
            read = stream.read(&mut taken) => if read? == 0 {
                return Ok(());
            },
            _ = ticks.tick(), if drips => {
                let part: &[u8] = if begun { b" " } else {
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n"
                };
                stream.write_all(part).await?;
                begun = true;
            }
        }
    }
}
