//! A server that is far away, for those who must work with one.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// Another address of the server at `url`: whatever goes to it or comes from there takes `way`
/// longer. Served for as long as the runtime it was made in.
///
/// # Errors
/// Where `url` has no user, or no port is free.
pub async fn far_away(url: &str, way: Duration) -> io::Result<String> {
    let (user, there) = url.split_once('@').ok_or(io::ErrorKind::InvalidInput)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let here = listener.local_addr()?;
    tokio::spawn(serve(listener, there.to_owned(), way));
    Ok(format!("{user}@{here}"))
}

async fn serve(listener: TcpListener, there: String, way: Duration) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(&there).await else {
            continue;
        };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::spawn(carry(from_client, to_server, way));
        tokio::spawn(carry(from_server, to_client, way));
    }
}

/// Carries bytes, all of them for as long.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, way: Duration) {
    let (depart, mut under_way) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let arriving = async move {
        while let Some((at, bytes)) = under_way.recv().await {
            sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    let departing = async move {
        let mut bytes = vec![0; CHUNK];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            let sent = depart.send((Instant::now() + way, bytes[..count].to_vec()));
            if sent.is_err() {
                return;
            }
        }
    };
    tokio::join!(arriving, departing);
}
