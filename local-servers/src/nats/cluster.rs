//! Several NATS servers on one machine that keep their data together.

use std::path::Path;

use super::{LocalNats, NatsOptions, PASSWORD};
use crate::{Error, home, ports};

/// The user by which servers of a cluster know each other.
const ROUTE_USER: &str = "route";

/// A server's place among others.
#[derive(Clone, Debug)]
pub(super) struct Member {
    name: String,
    /// Where the others reach it.
    port: u16,
    others: Vec<u16>,
}

impl Member {
    /// Its part of the configuration. Clients know all servers from their own addresses; by others
    /// they would go past whatever stands before them.
    pub(super) fn setting(&self, password: &str) -> String {
        let routes = self
            .others
            .iter()
            .map(|port| format!("    \"nats-route://{ROUTE_USER}:{password}@127.0.0.1:{port}\"\n"));
        format!(
            "server_name: {}\n\
             cluster {{\n  \
               name: waypost\n  \
               listen: \"127.0.0.1:{}\"\n  \
               authorization {{ user: {ROUTE_USER}, password: \"{password}\" }}\n  \
               no_advertise: true\n  \
               routes: [\n{}  ]\n\
             }}\n",
            self.name,
            self.port,
            routes.collect::<String>()
        )
    }
}

impl LocalNats {
    /// Starts one server as [`LocalNats::start`] does, or several that form a cluster.
    pub async fn start_several(home: &Path, size: usize) -> Result<Vec<Self>, Error> {
        match size {
            1 => Ok(vec![Self::start(home, NatsOptions::default()).await?]),
            several => Self::start_cluster(home, several).await,
        }
    }

    /// Where to connect to all of these, separated by commas.
    pub fn urls(servers: &[Self]) -> String {
        let urls: Vec<_> = servers.iter().map(Self::url).collect();
        urls.join(",")
    }

    /// Starts so many servers that form a cluster, each in a folder of its own below the home, all
    /// behind one password. Streams can be made once they have chosen a leader, moments later.
    pub async fn start_cluster(home: &Path, size: usize) -> Result<Vec<Self>, Error> {
        let home = home::open(home)?;
        let password = home::secret(&home, PASSWORD)?.value;
        let mut route_ports = Vec::with_capacity(size);
        for nth in 1..=size {
            route_ports.push(ports::claim(&home, &format!("nats-route-{nth}"))?);
        }
        let mut servers = Vec::with_capacity(size);
        for (nth, port) in route_ports.iter().enumerate() {
            let name = format!("waypost-{}", nth + 1);
            let folder = home::open(&home.join(&name))?;
            home::share_secret(&folder, PASSWORD, &password)?;
            let others = route_ports.iter().filter(|other| *other != port);
            let member = Member {
                name,
                port: *port,
                others: others.copied().collect(),
            };
            let options = NatsOptions::default();
            servers.push(Self::start_as(&folder, options, Some(member)).await?);
        }
        Ok(servers)
    }
}
