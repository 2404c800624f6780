//! An address of a server, behind which bytes can be delayed, held and cut on their way.

mod connection;
mod port;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use self::connection::Connection;
use self::port::Port;

/// What happens to bytes in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// They arrive this much later, in order.
    After(Duration),
    /// They arrive once there is a passage again. Connections stay open.
    Held,
}

impl Default for Passage {
    fn default() -> Self {
        Self::After(Duration::ZERO)
    }
}

/// The way between clients and a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// What clients send.
    pub there: Passage,
    /// What the server answers.
    pub back: Passage,
    /// Whether new connections are refused, as if nobody listened.
    pub refuses: bool,
}

impl Way {
    /// Everything takes this much longer in each direction.
    pub fn far(by: Duration) -> Self {
        Self {
            there: Passage::After(by),
            back: Passage::After(by),
            refuses: false,
        }
    }
}

/// The current way, how many times connections were to be cut, and whether they still are.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    way: Way,
    cuts: u64,
    cutting: bool,
}

/// A server's other address, served as long as the runtime that it was created in. The way behind
/// it is open until it is [set](Self::set) otherwise.
#[derive(Clone, Debug)]
pub struct Proxy {
    here: SocketAddr,
    there: Arc<RwLock<String>>,
    state: Arc<watch::Sender<State>>,
}

impl Proxy {
    /// In front of the server of an address such as `nats://user:password@host:port`.
    ///
    /// # Errors
    /// If the address has no user, or no port is free.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn before(url: &str) -> io::Result<Self> {
        let there = server_in(url)?.to_owned();
        let port = Port::take()?;
        let proxy = Self {
            here: port.address,
            there: Arc::new(RwLock::new(there)),
            state: Arc::default(),
        };
        // From now on clients that connect are served.
        let listener = port.listen()?;
        tokio::spawn(serve(port, listener, proxy.clone()));
        Ok(proxy)
    }

    /// Returns the address with this proxy in the server's place.
    pub fn instead_of(&self, url: &str) -> String {
        let there = self.there();
        url.replacen(&there, &self.here.to_string(), 1)
    }

    /// From now on new connections reach the server of this address. Open connections remain.
    ///
    /// # Errors
    /// If the address has no user.
    pub fn lead_to(&self, url: &str) -> io::Result<()> {
        let mut there = self.there.write().unwrap_or_else(PoisonError::into_inner);
        server_in(url)?.clone_into(&mut there);
        Ok(())
    }

    fn there(&self) -> String {
        let there = self.there.read().unwrap_or_else(PoisonError::into_inner);
        there.clone()
    }

    /// Sets the way from now on, also for bytes in transit. Connections that were to be cut and
    /// were silent so far remain.
    pub fn set(&self, way: Way) {
        self.state.send_modify(|state| {
            state.way = way;
            state.cutting = false;
        });
    }

    /// Cuts every connection that is open now in the middle of the next bytes that the server sends
    /// on it: half of them arrive.
    pub fn cut(&self) {
        self.state.send_modify(|state| {
            state.cuts += 1;
            state.cutting = true;
        });
    }
}

/// Another address of the server at `url`: everything to and from it takes `way` longer. Served as
/// long as the runtime it was created in.
///
/// # Errors
/// If `url` has no user, or no port is free.
///
/// # Panics
/// Outside a runtime.
pub fn far_away(url: &str, way: Duration) -> io::Result<String> {
    let proxy = Proxy::before(url)?;
    proxy.set(Way::far(way));
    Ok(proxy.instead_of(url))
}

/// The host and port in an address.
pub(crate) fn server_in(url: &str) -> io::Result<&str> {
    let (_, server) = url.split_once('@').ok_or(io::ErrorKind::InvalidInput)?;
    Ok(server.split_once('/').map_or(server, |(server, _)| server))
}

async fn serve(port: Port, mut listener: TcpListener, proxy: Proxy) -> io::Result<()> {
    let mut state = proxy.state.subscribe();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                let there = proxy.there();
                let connection = Connection {
                    client,
                    cuts: proxy.state.borrow().cuts,
                    state: proxy.state.subscribe(),
                };
                tokio::spawn(connection.carry(there));
            }
            () = until_it_refuses(&mut state, true) => {
                drop(listener);
                until_it_refuses(&mut state, false).await;
                listener = port.listen()?;
            }
        }
    }
}

async fn until_it_refuses(state: &mut watch::Receiver<State>, refuses: bool) {
    // The serving task holds the sender.
    let _ = state.wait_for(|state| state.way.refuses == refuses).await;
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::time::{Instant, timeout};

    use super::*;

    const SOON: Duration = Duration::from_secs(20);
    const A_WHILE: Duration = Duration::from_millis(200);

    /// A client's end and a server's end, and the proxy between them.
    async fn ends() -> (Proxy, TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("test://user@{}/name", listener.local_addr().unwrap());
        let proxy = Proxy::before(&url).unwrap();
        let client = TcpStream::connect(proxy.here).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        (proxy, client, server)
    }

    async fn read(from: &mut TcpStream, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let reading = timeout(SOON, from.read_exact(&mut bytes)).await;
        reading.unwrap().unwrap();
        bytes
    }

    async fn nothing_comes(to: &mut TcpStream) {
        assert!(timeout(A_WHILE, to.read_u8()).await.is_err());
    }

    #[tokio::test]
    async fn delayed_bytes_arrive_later_and_in_order() {
        let (proxy, mut client, mut server) = ends().await;
        proxy.set(Way::far(A_WHILE));
        let begun = Instant::now();
        client.write_all(b"first ").await.unwrap();
        tokio::time::sleep(A_WHILE / 4).await;
        proxy.set(Way::default());
        client.write_all(b"second").await.unwrap();
        assert_eq!(read(&mut server, 12).await, b"first second");
        assert!(begun.elapsed() >= A_WHILE);
    }

    #[tokio::test]
    async fn what_is_held_in_one_direction_lets_the_other_through() {
        let (proxy, mut client, mut server) = ends().await;
        let held = Way {
            back: Passage::Held,
            ..Way::default()
        };
        proxy.set(held);
        client.write_all(b"asked").await.unwrap();
        assert_eq!(read(&mut server, 5).await, b"asked");
        server.write_all(b"answered").await.unwrap();
        nothing_comes(&mut client).await;
        proxy.set(Way::default());
        assert_eq!(read(&mut client, 8).await, b"answered");
    }

    #[tokio::test]
    async fn a_cut_ends_both_sides_in_the_midst_of_an_answer() {
        let (proxy, mut client, mut server) = ends().await;
        proxy.cut();
        client.write_all(b"asked").await.unwrap();
        assert_eq!(read(&mut server, 5).await, b"asked");
        server.write_all(b"answered").await.unwrap();
        let mut got = Vec::new();
        let ended = timeout(SOON, client.read_to_end(&mut got)).await.unwrap();
        assert!(ended.is_err() || got.len() < b"answered".len(), "{got:?}");
        let ended = timeout(SOON, server.read_u8()).await.unwrap();
        assert!(ended.is_err());
    }

    #[tokio::test]
    async fn one_that_refuses_keeps_its_port_and_what_is_connected() {
        let (proxy, mut client, mut server) = ends().await;
        let refusing = Way {
            refuses: true,
            ..Way::default()
        };
        proxy.set(refusing);
        let refused = async {
            while TcpStream::connect(proxy.here).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, refused).await.unwrap();
        client.write_all(b"asked").await.unwrap();
        assert_eq!(read(&mut server, 5).await, b"asked");
        proxy.set(Way::default());
        let accepted = async {
            while TcpStream::connect(proxy.here).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, accepted).await.unwrap();
    }

    #[tokio::test]
    async fn it_can_lead_to_another_server() {
        let (proxy, mut client, mut server) = ends().await;
        let another = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("test://user@{}/name", another.local_addr().unwrap());
        proxy.lead_to(&url).unwrap();
        let _connected = TcpStream::connect(proxy.here).await.unwrap();
        timeout(SOON, another.accept()).await.unwrap().unwrap();
        client.write_all(b"asked").await.unwrap();
        assert_eq!(read(&mut server, 5).await, b"asked");
    }

    #[tokio::test]
    async fn only_the_server_in_an_address_is_replaced() {
        let url = "postgres://role:word@127.0.0.1:1/waypost";
        let proxy = Proxy::before(url).unwrap();
        let here = format!("postgres://role:word@{}/waypost", proxy.here);
        assert_eq!(proxy.instead_of(url), here);
    }
}
