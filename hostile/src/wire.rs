//! Requests as bytes, from many addresses.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::Ground;

/// Timeout for a response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Size of the receive buffer of a client that reads nothing, in bytes.
const UNREAD: u32 = 4 * 1024;
const HEAD_BYTES: usize = 16 * 1024;

/// Connects from the n-th of the crowd's addresses, all of them on loopback.
pub(crate) async fn connect(nth: usize, to: SocketAddr) -> io::Result<TcpStream> {
    let part = |number: usize| u8::try_from(number % 250 + 1).unwrap_or(1);
    let from = Ipv4Addr::new(127, 66, part(nth / 250), part(nth));
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(UNREAD)?;
    socket.bind(SocketAddr::from((from, 0)))?;
    let stream = tokio::time::timeout(TIMEOUT, socket.connect(to)).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A request as bytes, and its address.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

impl Ground {
    /// A request's head; `more` are further lines, each with its line end.
    pub(crate) fn head(&self, method: &str, path: &str, key: &str, more: &str) -> Request {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let key = if key.is_empty() {
            String::new()
        } else {
            format!("authorization: Bearer {key}\r\n")
        };
        let (root, next) = (self.trace(), NEXT.fetch_add(1, Ordering::Relaxed));
        let trace = format!("traceparent: 00-{root:016x}{next:016x}-{next:016x}-01\r\n");
        let head = format!("{method} {path} HTTP/1.1\r\nhost: waypost\r\n{trace}{key}{more}\r\n");
        let to = if method == "GET" {
            self.queries
        } else {
            self.commands
        };
        Request {
            to,
            bytes: head.into_bytes(),
        }
    }

    /// A whole request with a JSON body.
    pub(crate) fn json(&self, method: &str, path: &str, key: &str, body: &str) -> Request {
        self.json_with(method, path, key, "", body)
    }

    /// The same with further lines of its head, each with its line end.
    pub(crate) fn json_with(
        &self,
        method: &str,
        path: &str,
        key: &str,
        more: &str,
        body: &str,
    ) -> Request {
        let length = body.len();
        let more = format!("{more}content-type: application/json\r\ncontent-length: {length}\r\n");
        let mut request = self.head(method, path, key, &more);
        request.bytes.extend_from_slice(body.as_bytes());
        request
    }
}

/// A response's head, from its status on.
pub(crate) async fn answer(stream: &mut TcpStream) -> io::Result<String> {
    Ok(head_and_rest(stream).await?.0)
}

/// A response's head, and the part of its body received so far.
async fn head_and_rest(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let read = async {
        let mut got = Vec::new();
        loop {
            if stream.read_buf(&mut got).await? == 0 || got.len() > HEAD_BYTES {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(end) = got.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&got[..end]).into_owned();
                let head = head.strip_prefix("HTTP/1.1 ").unwrap_or(&head).to_owned();
                return Ok((head, got.split_off(end + 4)));
            }
        }
    };
    tokio::time::timeout(TIMEOUT, read).await?
}

/// The rest of a body, whose length is in the head.
async fn body(stream: &mut TcpStream, head: &str, mut got: Vec<u8>) -> io::Result<Vec<u8>> {
    let length = content_length(head);
    let read = async {
        while got.len() < length {
            if stream.read_buf(&mut got).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(got)
    };
    tokio::time::timeout(TIMEOUT, read).await?
}

/// Sends a request, or its beginning, on a connection of its own.
pub(crate) async fn send(nth: usize, request: &Request) -> io::Result<TcpStream> {
    let mut stream = connect(nth, request.to).await?;
    tokio::time::timeout(TIMEOUT, stream.write_all(&request.bytes)).await??;
    Ok(stream)
}

/// Sends one request on a connection of its own; returns the response's head.
pub(crate) async fn ask(nth: usize, request: &Request) -> io::Result<String> {
    answer(&mut send(nth, request).await?).await
}

/// Sends one request; returns its outcome in a word, and the JSON of the response if it has any.
pub(crate) async fn learn(nth: usize, request: &Request) -> (String, Value) {
    let learned = async {
        let mut stream = send(nth, request).await?;
        let (head, begun) = head_and_rest(&mut stream).await?;
        let body = body(&mut stream, &head, begun).await?;
        Ok((head, serde_json::from_slice(&body).unwrap_or_default()))
    };
    match learned.await {
        Ok((head, told)) => (outcome(&Ok(head)), told),
        Err(error) => (outcome(&Err(error)), Value::Null),
    }
}

/// The length of a body according to its head; 0 if it has none.
pub(crate) fn content_length(head: &str) -> usize {
    let head = head.to_ascii_lowercase();
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.unwrap_or_default()
}

/// Whether an outcome is a success.
pub(crate) fn is_success(outcome: &str) -> bool {
    outcome.len() == 3 && outcome.starts_with('2')
}

/// The outcome of a request, in a word.
pub(crate) fn outcome(answered: &io::Result<String>) -> String {
    match answered {
        Ok(head) => head.get(..3).unwrap_or("odd").to_owned(),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => "no answer".to_owned(),
        Err(_) => "cut off".to_owned(),
    }
}
