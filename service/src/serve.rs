//! Listening, answering, and ending without cutting anyone off.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::linger::LingeringListener;

/// Why a service could not listen or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The listener ended by itself.
    #[error("the listener ended: {0}")]
    Ended(#[from] io::Error),
}

/// Listens at an address; port 0 takes a free one.
pub async fn listen(addr: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(addr)
        .await
        .map_err(|source| ServeError::Listen { addr, source })
}

/// Answers until `shutdown`, then takes no new connections and gives the requests that are under
/// way `grace` to end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
    grace: Duration,
) -> Result<(), ServeError> {
    // Answers are small and whole: waiting to fill a packet would only delay them.
    let listener = LingeringListener(listener).tap_io(|connection| {
        if let Err(error) = connection.set_nodelay() {
            tracing::debug!(%error, "A connection stays without TCP_NODELAY");
        }
    });
    // Who slows down guessing has to know where a request comes from.
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, router)
        .with_graceful_shutdown(shutdown.clone().cancelled_owned())
        .into_future();
    let out_of_patience = async {
        shutdown.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        ended = server => Ok(ended?),
        () = out_of_patience => {
            tracing::warn!(grace_ms = grace.as_millis(), "Requests still under way were cut off");
            Ok(())
        }
    }
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
