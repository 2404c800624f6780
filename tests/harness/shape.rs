//! The process layouts in which the same system runs.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use crate::reaper::Group;
use crate::{Program, proxy};

/// The layout of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All services in one process.
    One,
    /// Four processes behind a proxy.
    Four,
}

/// Where and with which settings programs are started.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) environment: &'a [(String, String)],
    pub(crate) home: &'a Path,
    pub(crate) group: Group,
}

impl Shape {
    /// Starts the programs; returns the one address and the processes behind it.
    pub(crate) fn start(self, place: Place<'_>) -> (SocketAddr, Vec<Program>) {
        match self {
            Self::One => one_process(place),
            Self::Four => four_processes(place),
        }
    }
}

fn one_process(place: Place<'_>) -> (SocketAddr, Vec<Program>) {
    let (addr, program) = start("waypost", "waypost", &["up"], place);
    (addr, vec![program])
}

fn four_processes(place: Place<'_>) -> (SocketAddr, Vec<Program>) {
    let service = |name| start(name, name, &[], place);
    let (_, projector) = service("projector");
    let (commands, command_api) = service("command-api");
    let (queries, query_api) = service("query-api");
    let (sockets, runner) = service("workflow-runner");
    let addr = proxy::start(proxy::Routes {
        commands,
        queries,
        sockets,
    });
    (addr, vec![projector, command_api, query_api, runner])
}

/// Starts a program at its own address; its output goes to `<log>.log`.
pub(crate) fn start(
    name: &str,
    log: &str,
    arguments: &[&str],
    place: Place<'_>,
) -> (SocketAddr, Program) {
    let addr = free_addr();
    let mut environment = place.environment.to_vec();
    environment.push(("WAYPOST_ADDR".to_owned(), addr.to_string()));
    let log = place.home.join(format!("{log}.log"));
    let program = Program::start(name, arguments, &environment, &log, place.group);
    (addr, program)
}

/// Ports are counted up from a start that is specific to this process, so that no other process is
/// given the same port before its program has bound it.
fn free_addr() -> SocketAddr {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 20_000;
    const COUNT: u32 = 12_000;
    loop {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id() * 64;
        let port = u16::try_from(FIRST + nth % COUNT).expect("a port");
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener.local_addr().expect("an address");
        }
    }
}
