//! Listening, serving, and shutting down without cutting anyone off, while no client can take more
//! of a process than is left to the others.

mod answers;
mod arriving;
mod front;
mod life;
mod linger;
mod places;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use arriving::TooSlow;

use crate::files;
use crate::health::guard_metrics;
use crate::memory::Memory;
use crate::settings::EdgeSettings;
use front::{Front, Shared};
use life::Life;
use linger::End;
use places::{ConnectionPlace, Places, Refused};
use wire::{ConnectionTimeouts, Wire};

/// Limit of bytes of one connection that are read ahead or buffered for writing.
const BUFFER_BYTES: usize = 64 * 1024;
/// Number of refused connections that may linger to receive the reason; further ones are just
/// closed.
const REFUSED_LINGER: usize = 64;
/// How long accepting pauses after the system could not provide another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// An error when starting to listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen at {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// Listens at an address; port 0 takes a free one. Raises the limit of open files of the process as
/// far as the system allows.
pub async fn listen(addr: SocketAddr) -> Result<TcpListener, ServeError> {
    files::raise_limit();
    TcpListener::bind(addr)
        .await
        .map_err(|source| ServeError::Listen { addr, source })
}

/// Serves until `shutdown`, then accepts no new connections and gives the requests in progress
/// `grace` to finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
    grace: Duration,
    settings: EdgeSettings,
) -> Result<(), ServeError> {
    let door = Door::new(router, settings, shutdown.clone());
    while let Some((stream, peer)) = shutdown.run_until_cancelled(accept(&listener)).await {
        door.open(stream, peer);
    }
    drop(listener);
    door.connections.close();
    let ended = tokio::time::timeout(grace, door.connections.wait()).await;
    if ended.is_err() {
        tracing::warn!(
            grace_ms = grace.as_millis(),
            "Requests in progress were cut off"
        );
    }
    Ok(())
}

/// Accepts the next connection, whatever happened to those before it.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_the_clients(&error) => (),
            Err(error) => {
                tracing::error!(%error, "Connections cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_the_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

/// Accepts or refuses connections.
struct Door {
    shared: Arc<Shared>,
    places: Arc<Places>,
    timeouts: ConnectionTimeouts,
    http: http1::Builder,
    refused: Arc<Semaphore>,
    connections: TaskTracker,
    shutdown: CancellationToken,
}

impl Door {
    fn new(router: Router, settings: EdgeSettings, shutdown: CancellationToken) -> Self {
        let mut http = http1::Builder::new();
        // The wire keeps the timeouts.
        http.header_read_timeout(None)
            .max_header_size(settings.head_bytes)
            .max_buf_size(BUFFER_BYTES.max(settings.head_bytes));
        let router = guard_metrics(router, settings.metrics_token.as_ref());
        let trusted = settings.trusted_proxies;
        let places = Places::new(
            files::connections_within_limit(settings.connections),
            settings.connections_per_address,
            trusted.clone(),
            settings.shed_idle,
        );
        Self {
            places: Arc::clone(&places),
            shared: Arc::new(Shared {
                // The router's preparation is done only once.
                router: router.with_state(()),
                trusted,
                places,
                memory: Memory::new(settings.body_memory_bytes),
                terms: arriving::Terms {
                    max_wait: settings.body,
                    bytes_per_second: settings.body_bytes_per_second,
                    drain_bytes: settings.drain_bytes,
                },
            }),
            timeouts: ConnectionTimeouts {
                head: settings.head,
                silent: settings.silent,
                idle: settings.idle,
                unread: settings.unread,
            },
            http,
            refused: Arc::new(Semaphore::new(REFUSED_LINGER)),
            connections: TaskTracker::new(),
            shutdown,
        }
    }

    /// Accepts a connection, or refuses it with the reason.
    fn open(&self, stream: TcpStream, peer: SocketAddr) {
        let life = Life::new();
        match self.places.take(peer.ip(), &life) {
            Ok(place) => {
                let serving = self.serve(stream, peer, life, place);
                self.connections.spawn(serving);
            }
            Err(refused) => self.refuse(stream, refused),
        }
    }

    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        life: Arc<Life>,
        place: ConnectionPlace,
    ) -> impl Future<Output = ()> + Send + use<> {
        if let Err(error) = prepare(&stream, self.timeouts.unread) {
            tracing::debug!(%error, "A connection's options could not be set");
        }
        let gives_way = place.ended();
        let wire = Wire::new(stream, Arc::clone(&life), self.timeouts, place);
        let front = Front {
            shared: Arc::clone(&self.shared),
            life: Arc::clone(&life),
            peer,
        };
        let connection = self.http.serve_connection(TokioIo::new(wire), front);
        let shutdown = self.shutdown.clone();
        async move {
            let mut connection = pin!(connection.with_upgrades());
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = gives_way.cancelled() => {
                    if !life.is_busy() {
                        return;
                    }
                    // A request began just now.
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
                () = shutdown.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::trace!(%error, "A connection was cut off");
            }
        }
    }

    /// Cheap: strangers may cause it as often as they like.
    fn refuse(&self, stream: TcpStream, refused: Refused) {
        note_refusal(refused);
        let Ok(permit) = Arc::clone(&self.refused).try_acquire_owned() else {
            return;
        };
        let answer = match refused {
            Refused::Full => answers::FULL,
            Refused::Share => answers::SHARE_TAKEN,
        };
        tokio::spawn(async move {
            say_last(stream, &answer.bytes()).await;
            drop(permit);
        });
    }
}

fn note_refusal(refused: Refused) {
    let reason = refused.label();
    metrics::counter!("waypost_http_connections_refused_total", "reason" => reason).increment(1);
}

/// Writes the response, and closes in a way that lets it arrive.
async fn say_last(mut stream: TcpStream, answer: &[u8]) {
    use tokio::io::AsyncWriteExt as _;
    let said = async {
        stream.write_all(answer).await?;
        stream.shutdown().await
    };
    if said.await.is_ok() {
        let mut end = End::new();
        std::future::poll_fn(|cx| end.poll(&mut stream, cx)).await;
    }
}

/// Bytes of a connection that the system buffers while it cannot send them yet. Its default is
/// megabytes, so that a client that reads nothing costs work and memory until these are full.
const UNSENT_BYTES: u32 = 128 * 1024;

/// Responses are small and whole: waiting to fill a packet would only delay them. The system drops
/// a client that reads nothing of what is pending or has vanished silently.
fn prepare(stream: &TcpStream, unread: Duration) -> io::Result<()> {
    const PROBE: Duration = Duration::from_secs(15);
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(Some(unread.max(Duration::from_millis(1))))?;
    let silent = unread.max(Duration::from_secs(1));
    let keepalive = TcpKeepalive::new().with_time(silent).with_interval(PROBE);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)
}

/// A token that Ctrl-C or SIGTERM cancels; a second signal ends the process at once.
pub fn until_signalled() -> io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupt.recv() => (),
                _ = terminate.recv() => (),
            }
        };
        next().await;
        tracing::info!("Shutting down");
        token.cancel();
        next().await;
        std::process::exit(130);
    });
    Ok(shutdown)
}
