//! Routes between servers of a cluster.

use std::collections::BTreeMap;

use crate::{Passage, Proxy, Way};

/// The routes between the servers of a cluster, by their numbers, each through a proxy. All are
/// open until they are set otherwise.
#[derive(Debug, Default)]
pub struct Routes(
    /// By the connecting server, and the one that it connects to.
    BTreeMap<(usize, usize), Proxy>,
);

impl Routes {
    pub(super) fn add(&mut self, from: usize, to: usize, proxy: Proxy) {
        self.0.insert((from, to), proxy);
    }

    /// Sets the passage of what one server sends to another, and of what it receives from it,
    /// whichever of the two has connected.
    pub fn set(&self, (one, other): (usize, usize), sent: Passage, received: Passage) {
        for (from, to, there, back) in [(one, other, sent, received), (other, one, received, sent)]
        {
            if let Some(proxy) = self.0.get(&(from, to)) {
                proxy.set(Way {
                    there,
                    back,
                    refuses: false,
                });
            }
        }
    }

    /// Cuts the connections between two servers in the middle of what is sent next on each.
    pub fn cut(&self, (one, other): (usize, usize)) {
        let both = [(one, other), (other, one)];
        let proxies = both.iter().filter_map(|way| self.0.get(way));
        proxies.for_each(Proxy::cut);
    }

    /// Opens all routes.
    pub fn open(&self) {
        self.0.values().for_each(|proxy| proxy.set(Way::default()));
    }
}
