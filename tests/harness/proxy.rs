//! One address in front of four processes, as a reverse proxy provides in production.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Bytes that the system buffers for a slow reader. The default would be many megabytes, and a
/// server would never notice a slow client.
const UNREAD: u32 = 64 * 1024;

/// The address for each kind of request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routes {
    pub(crate) commands: SocketAddr,
    pub(crate) queries: SocketAddr,
    pub(crate) sockets: SocketAddr,
}

/// Connects as a client that buffers little unread data; the tests' sockets do so as well.
pub(crate) async fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(UNREAD)?;
    socket.connect(addr).await
}

/// Starts a proxy on its own thread, since it outlives the test that started it.
pub(crate) fn start(routes: Routes) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener
        .set_nonblocking(true)
        .expect("a non-blocking listener");
    let addr = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, routes));
            }
        });
    });
    addr
}

/// Forwards one request: its head decides the target, and `Connection: close` keeps a second one
/// from being sent on the same connection.
async fn forward(mut client: TcpStream, routes: Routes) -> Option<()> {
    let mut head = Vec::new();
    let end = loop {
        if client.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
    };
    let text = std::str::from_utf8(&head[..end]).ok()?;
    let mut lines = text.split("\r\n");
    let request = lines.next()?;
    let upstream = route(request, routes);
    // Without an upgrade, the connection would carry later requests to the wrong process.
    let socket = text.to_ascii_lowercase().contains("\r\nupgrade:");
    let mut forwarded = format!("{request}\r\n");
    for line in lines {
        if socket || !line.to_ascii_lowercase().starts_with("connection:") {
            forwarded.push_str(line);
            forwarded.push_str("\r\n");
        }
    }
    forwarded.push_str(if socket {
        "\r\n"
    } else {
        "connection: close\r\n\r\n"
    });

    let mut server = connect(upstream).await.ok()?;
    server.write_all(forwarded.as_bytes()).await.ok()?;
    server.write_all(&head[end + 4..]).await.ok()?;
    copy_bidirectional(&mut client, &mut server).await.ok()?;
    Some(())
}

fn route(request: &str, routes: Routes) -> SocketAddr {
    let mut words = request.split(' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let path = target.split('?').next().unwrap_or_default();
    // Key APIs used by an organization's pages go to the same process as the APIs themselves.
    let path = path.strip_prefix("/dashboard").unwrap_or(path);
    if path == "/ws" {
        routes.sockets
    } else if path.starts_with("/api/export/") || matches!(method, "GET" | "HEAD") {
        routes.queries
    } else {
        routes.commands
    }
}
