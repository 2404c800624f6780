//! Several NATS servers on one machine that replicate their data.

use std::path::Path;

use super::{LocalNats, NatsOptions, PASSWORD, Routes};
use crate::{Error, Proxy, home, ports};

/// The user as which servers of a cluster connect to each other.
const ROUTE_USER: &str = "route";

/// A server's membership in a cluster.
#[derive(Clone, Debug)]
pub(super) struct Member {
    name: String,
    /// The port at which the others reach it.
    port: u16,
    /// The addresses at which it reaches the others.
    routes: Vec<String>,
    /// Whether the others reach it only at the addresses that they were given.
    is_apart: bool,
}

impl Member {
    /// Its part of the configuration. Clients know the addresses of all servers; advertised ones
    /// would bypass the proxies in front of the servers.
    pub(super) fn setting(&self, password: &str) -> String {
        let routes = self.routes.iter();
        let routes = routes.map(|route| format!("    \"{route}\"\n"));
        // Servers advertise each other: here an address at which nobody listens.
        let advertise = if self.is_apart {
            "  advertise: \"127.0.0.1:1\"\n"
        } else {
            ""
        };
        format!(
            "server_name: {}\n\
             cluster {{\n  \
               name: waypost\n  \
               listen: \"127.0.0.1:{}\"\n  \
               authorization {{ user: {ROUTE_USER}, password: \"{password}\" }}\n  \
               no_advertise: true\n\
             {advertise}  \
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

    /// The addresses of all of these, separated by commas.
    pub fn urls(servers: &[Self]) -> String {
        let urls: Vec<_> = servers.iter().map(Self::url).collect();
        urls.join(",")
    }

    /// Starts a cluster of `size` servers, each in a separate folder below the home, all with one
    /// password. Streams can be created once a leader is elected, moments later.
    pub async fn start_cluster(home: &Path, size: usize) -> Result<Vec<Self>, Error> {
        Self::start_members(home, size, None).await
    }

    /// The same with routes between them that can be disturbed. A single server has none.
    pub async fn start_apart(home: &Path, size: usize) -> Result<(Vec<Self>, Routes), Error> {
        if size == 1 {
            return Ok((Self::start_several(home, size).await?, Routes::default()));
        }
        let mut routes = Routes::default();
        let servers = Self::start_members(home, size, Some(&mut routes)).await?;
        Ok((servers, routes))
    }

    async fn start_members(
        home: &Path,
        size: usize,
        mut apart: Option<&mut Routes>,
    ) -> Result<Vec<Self>, Error> {
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
            let mut member = Member {
                name,
                port: *port,
                routes: Vec::new(),
                is_apart: apart.is_some(),
            };
            for (to, other) in route_ports.iter().enumerate() {
                if other == port {
                    continue;
                }
                let mut route = format!("nats-route://{ROUTE_USER}:{password}@127.0.0.1:{other}");
                if let Some(routes) = &mut apart {
                    let proxy = Proxy::before(&route);
                    let proxy = proxy.map_err(Error::file("take a port below", &home))?;
                    route = proxy.instead_of(&route);
                    routes.add(nth, to, proxy);
                }
                member.routes.push(route);
            }
            let options = NatsOptions::default();
            servers.push(Self::start_as(&folder, options, Some(member)).await?);
        }
        Ok(servers)
    }
}
