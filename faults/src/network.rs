//! The network paths between services and servers, each through a proxy that can disturb it.

use std::io;

use local_servers::{LocalPostgres, Proxy, Way};

use crate::servers::Servers;

/// The servers at the other end of a service's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// One of the NATS servers.
    OneOfNats(usize),
    Nats,
    Postgres,
    Both,
}

/// One service's paths.
struct Ways {
    nats: Vec<Proxy>,
    postgres: Proxy,
}

/// The paths of all services. Other users of the servers connect to them directly.
pub(crate) struct Network {
    of_services: Vec<Ways>,
}

impl Network {
    /// Creates paths for the given number of services, all open.
    pub(crate) fn before(servers: &Servers, services: usize) -> io::Result<Self> {
        let mut of_services = Vec::with_capacity(services);
        for _ in 0..services {
            let mut nats = Vec::with_capacity(servers.nats.len());
            for server in &servers.nats {
                nats.push(Proxy::before(&server.url())?);
            }
            let postgres = Proxy::before(&servers.postgres.url())?;
            of_services.push(Ways { nats, postgres });
        }
        Ok(Self { of_services })
    }

    /// Settings that make a service use its own paths.
    pub(crate) fn settings(&self, nth: usize, servers: &Servers) -> [(&'static str, String); 3] {
        let Ways { nats, postgres } = &self.of_services[nth];
        let nats: Vec<_> = nats
            .iter()
            .zip(&servers.nats)
            .map(|(proxy, server)| proxy.instead_of(&server.url()))
            .collect();
        let database = postgres.instead_of(&servers.postgres.url());
        let reader = postgres.instead_of(&servers.postgres.reader_url());
        [
            ("NATS_URL", nats.join(",")),
            ("DATABASE_URL", database),
            ("WAYPOST_READ_DATABASE_URL", reader),
        ]
    }

    /// Sets the paths from these services to a side.
    pub(crate) fn set(&self, services: &[usize], side: Side, way: Way) {
        for proxy in self.on(services, side) {
            proxy.set(way);
        }
    }

    /// Cuts their connections in the middle of the next response on each.
    pub(crate) fn cut(&self, services: &[usize], side: Side) {
        for proxy in self.on(services, side) {
            proxy.cut();
        }
    }

    /// Sends new connections to Postgres to this one from now on.
    pub(crate) fn lead_to(&self, postgres: &LocalPostgres) -> io::Result<()> {
        let mut ways = self.of_services.iter();
        ways.try_for_each(|ways| ways.postgres.lead_to(&postgres.url()))
    }

    /// Opens all paths.
    pub(crate) fn open(&self) {
        for nth in 0..self.of_services.len() {
            self.set(&[nth], Side::Both, Way::default());
        }
    }

    fn on<'a>(&'a self, services: &'a [usize], side: Side) -> impl Iterator<Item = &'a Proxy> {
        let ways = services.iter().map(|nth| &self.of_services[*nth]);
        ways.flat_map(move |Ways { nats, postgres }| {
            let nats = match side {
                Side::OneOfNats(nth) => &nats[nth..=nth],
                Side::Nats | Side::Both => &nats[..],
                Side::Postgres => &[],
            };
            let postgres = matches!(side, Side::Postgres | Side::Both).then_some(postgres);
            nats.iter().chain(postgres)
        })
    }
}
