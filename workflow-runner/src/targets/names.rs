//! Lookups of names that users choose.
//!
//! The system's resolver keeps a thread busy until the name's own servers have answered or all of
//! its attempts have timed out, and nothing can cancel it. The runtime's threads for blocking work
//! also hash passwords and read files, so lookups have threads of their own. Organizations share
//! these: one whose names are slow to find delays only its own calls.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::thread;

use schemas::OrgId;
use service::Shares;
use tokio::sync::oneshot;

/// Lookups at a time, each on a thread; one organization alone gets half of them.
pub(super) const LOOKUPS: usize = 256;

tokio::task_local! {
    /// The organization whose request is being sent: the HTTP client's resolver learns only the
    /// name.
    pub(super) static CALLER: OrgId;
}

/// Finds the addresses of names.
pub(super) trait Names: Clone + Send + Sync + 'static {
    /// Blocks the thread until the addresses are known.
    fn find(&self, name: &str) -> io::Result<Vec<SocketAddr>>;
}

/// Uses the system's resolver.
#[derive(Clone)]
pub(super) struct SystemNames;

impl Names for SystemNames {
    fn find(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        Ok((name, 0_u16).to_socket_addrs()?.collect())
    }
}

/// Looks names up for all organizations. Clones share the same threads.
#[derive(Clone)]
pub(super) struct Lookups<N> {
    names: N,
    /// A call whose organization is unknown shares one part with others of its kind.
    threads: Shares<Option<OrgId>>,
}

impl<N: Names> Lookups<N> {
    pub(super) fn new(names: N) -> Self {
        Self {
            names,
            threads: Shares::new(LOOKUPS),
        }
    }

    /// Finds the addresses of a name. Waits while the caller has its share of lookups in progress;
    /// the time to connect bounds this wait too.
    pub(super) async fn find(
        &self,
        caller: Option<OrgId>,
        name: String,
    ) -> io::Result<Vec<SocketAddr>> {
        let share = self.threads.enter(caller).await;
        let names = self.names.clone();
        let (found, finding) = oneshot::channel();
        let look_up = move || {
            // Given back when the lookup has ended, not when the caller stops waiting for it.
            let _share = share;
            metrics::gauge!("waypost_target_lookups").increment(1);
            let addresses = names.find(&name);
            metrics::gauge!("waypost_target_lookups").decrement(1);
            let _ = found.send(addresses);
        };
        thread::Builder::new()
            .name("lookup".to_owned())
            .spawn(look_up)?;
        finding
            .await
            .unwrap_or_else(|_| Err(io::Error::other("the lookup ended unexpectedly")))
    }
}
