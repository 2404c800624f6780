use std::net::Ipv4Addr;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

const LIMIT: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    jetstream: bool,
}

/// Whether the server on this port accepts our password and has JetStream.
pub(super) async fn answers(port: u16, user: &str, password: &str) -> bool {
    let talk = talk(port, user, password);
    matches!(tokio::time::timeout(LIMIT, talk).await, Ok(Some(())))
}

async fn talk(port: u16, user: &str, password: &str) -> Option<()> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
    let (input, mut output) = stream.into_split();
    let mut lines = BufReader::new(input).lines();
    let info = lines.next_line().await.ok()??;
    let info: Info = serde_json::from_str(info.strip_prefix("INFO ")?).ok()?;
    if !info.jetstream {
        return None;
    }
    let options =
        serde_json::json!({ "user": user, "pass": password, "verbose": false, "pedantic": false });
    let greeting = format!("CONNECT {options}\r\nPING\r\n");
    output.write_all(greeting.as_bytes()).await.ok()?;
    until_pong(&mut lines).await
}

/// The server may send further INFO lines before its answer.
async fn until_pong(lines: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<()> {
    loop {
        let line = lines.next_line().await.ok()??;
        match line.trim_end() {
            "PONG" => return Some(()),
            refusal if refusal.starts_with("-ERR") => return None,
            _ => {}
        }
    }
}
