//! A client that requests a response and reads it when the test wants to.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::System;

/// Bytes that the system buffers unread for it. The default would be many megabytes, and a server
/// would never notice that the client does not read.
const UNREAD: u32 = 8 * 1024;
const TIMEOUT: Duration = Duration::from_mins(1);

/// A response that has begun.
#[derive(Debug)]
pub struct SlowReader {
    /// Its status.
    pub status: u16,
    head: String,
    read: Vec<u8>,
    stream: TcpStream,
}

impl SlowReader {
    /// Sends a GET and reads the head of the response, perhaps with the first bytes after it.
    pub async fn get(system: &System, key: &str, path: &str) -> Self {
        Self::get_as(system, key, path, "*/*").await
    }

    /// The same with an `Accept`.
    pub async fn get_as(system: &System, key: &str, path: &str, accept: &str) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(UNREAD).expect("a small buffer");
        let addr = system.addr();
        let mut stream = socket.connect(addr).await.expect("a connection");
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {key}\r\naccept: {accept}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut read = Vec::new();
        let head = loop {
            let mut some = [0; 256];
            let taken = timeout(TIMEOUT, stream.read(&mut some)).await;
            let taken = taken.expect("an answer in time").expect("an answer");
            assert_ne!(taken, 0, "no answer");
            read.extend_from_slice(&some[..taken]);
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = read.drain(..end + 4).collect();
                break String::from_utf8(head).expect("UTF-8").to_lowercase();
            }
        };
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Self {
            status: status.expect("a status"),
            head,
            read,
            stream,
        }
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let start = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&start))
    }

    /// Reads the rest; `None` if it broke off before its end.
    pub async fn rest(mut self) -> Option<Vec<u8>> {
        let read = timeout(TIMEOUT, self.stream_to_end()).await;
        read.expect("the end in time")
    }

    async fn stream_to_end(&mut self) -> Option<Vec<u8>> {
        let length = self.header("content-length").map(str::parse::<usize>);
        let length = length.map(|length| length.expect("a length"));
        let mut some = vec![0; 64 * 1024];
        loop {
            let whole = match length {
                Some(length) => (self.read.len() == length).then(|| self.read.clone()),
                None => dechunked(&self.read),
            };
            if whole.is_some() {
                return whole;
            }
            match self.stream.read(&mut some).await {
                Ok(0) | Err(_) => return None,
                Ok(taken) => self.read.extend_from_slice(&some[..taken]),
            }
        }
    }
}

/// Joins the chunks of a body, once the last of them has arrived.
fn dechunked(read: &[u8]) -> Option<Vec<u8>> {
    if !read.ends_with(b"0\r\n\r\n") {
        return None;
    }
    let (mut body, mut rest) = (Vec::new(), read);
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        rest = &rest[line + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}
