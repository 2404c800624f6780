//! The connection to NATS.

use std::sync::LazyLock;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::Error;

/// Reads and writes connections. The client library reads all that has arrived, for tens of
/// milliseconds at a time, before it writes or lets anything else run. It would delay other tasks
/// on the same threads. Between threads the system shares the processors.
static CONNECTIONS: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut threads = Builder::new_multi_thread();
    threads
        .worker_threads(2)
        .thread_name("nats")
        .enable_all()
        .build()
        .inspect_err(|error| tracing::warn!(%error, "connections have no threads of their own"))
        .ok()
});

/// Connects to one of the servers of a comma-separated list and keeps the connection for ever.
pub(crate) async fn open(urls: &str) -> Result<Client, Error> {
    let threads = CONNECTIONS.as_ref().map(Runtime::handle);
    open_on(threads.unwrap_or(&Handle::current()), urls).await
}

/// As [`open`], for work that must yield to everything else.
pub(crate) async fn open_in_background(urls: &str) -> Result<Client, Error> {
    open_on(&background::handle(), urls).await
}

async fn open_on(threads: &Handle, urls: &str) -> Result<Client, Error> {
    let servers: Result<Vec<ServerAddr>, _> = addresses(urls).collect();
    let servers = servers.map_err(|error| Error::Address(error.to_string()))?;
    let options = match servers.iter().find(|server| server.has_user_pass()) {
        Some(server) => ConnectOptions::with_user_and_password(
            decoded(server.username()),
            decoded(server.password()),
        ),
        None => ConnectOptions::new(),
    };
    let options = options
        .name("waypost")
        // A server that is back is found within a moment, so that everything recovers unaided.
        .reconnect_delay_callback(|attempts| {
            Duration::from_millis(if attempts < 3 { 20 } else { 250 })
        })
        .connection_timeout(Duration::from_secs(3))
        // A server that hangs is given up after three of them.
        .ping_interval(Duration::from_secs(2))
        // Each request has its own timeout.
        .request_timeout(None)
        .subscription_capacity(64 * 1024)
        .client_capacity(4096)
        // Subjects are built from checked tokens in one place.
        .skip_subject_validation(true);
    let connecting = options.connect(servers);
    let connected = threads.spawn(connecting).await;
    let connected = connected.map_err(|error| Error::Address(error.to_string()))?;
    connected.map_err(Error::Connect)
}

/// The ports of a comma-separated list of servers.
pub(crate) fn ports(urls: &str) -> Vec<u16> {
    let servers = addresses(urls).filter_map(Result::ok);
    servers.map(|server| server.port()).collect()
}

fn addresses(urls: &str) -> impl Iterator<Item = Result<ServerAddr, std::io::Error>> {
    urls.split(',').map(|url| url.trim().parse())
}

fn decoded(part: Option<&str>) -> String {
    percent_decode_str(part.unwrap_or_default())
        .decode_utf8_lossy()
        .into_owned()
}

/// Fails at once if the server is known to be gone: an error now is better than a wait.
pub(crate) fn check(client: &Client) -> Result<(), String> {
    match client.connection_state() {
        State::Connected => Ok(()),
        State::Pending | State::Disconnected => Err("not connected".to_owned()),
    }
}
