//! A port to listen at, or not.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// A port that stays ours while nobody listens at it.
pub(super) struct Port {
    pub(super) address: SocketAddr,
    _bound: TcpSocket,
}

impl Port {
    pub(super) fn take() -> io::Result<Self> {
        let bound = bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self {
            address: bound.local_addr()?,
            _bound: bound,
        })
    }

    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        bind(self.address)?.listen(BACKLOG)
    }
}

/// Two sockets of ours may have the same port; clients reach only one that listens.
fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}
