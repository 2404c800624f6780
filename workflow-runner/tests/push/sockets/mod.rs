//! `/ws`, seen by a third-party client.

mod calls;
mod closing;
mod flow;
mod frames;
mod persons;

use std::net::SocketAddr;
use std::time::Duration;

use access::Access;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use workflow_runner::live::{self, Live, SocketSettings};

use crate::support::{Key, TIMEOUT, World, eventually};

/// Serves sockets until the test's end.
struct Server {
    world: World,
    access: Access,
    addr: SocketAddr,
}

impl Server {
    async fn start() -> Self {
        Self::with(SocketSettings::default()).await
    }

    async fn with(settings: SocketSettings) -> Self {
        Self::of(World::new().await, settings).await
    }

    async fn of(world: World, settings: SocketSettings) -> Self {
        let access = world.access().await;
        let (log, clock) = (world.log.clone(), world.clock.clone());
        let (live, tails) = Live::start(log, access.clone(), clock, settings)
            .await
            .unwrap();
        let listener = service::listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let router = service::edge(live::router(live.clone()));
        let shutdown = world.shutdown.clone();
        tokio::spawn(service::serve(
            listener,
            router,
            shutdown.clone(),
            Duration::from_secs(1),
            service::settings::EdgeSettings::default(),
        ));
        tokio::spawn(async move { live.run(tails, shutdown).await });
        Self {
            world,
            access,
            addr,
        }
    }

    /// A key for events that this server knows, and whose event it has sent: later subscribers do
    /// not see its creation.
    async fn key(&self) -> Key {
        let key = self.world.key(&["events:read"], None).await;
        let key = self.known(key).await;
        eventually("the key to be told of", async || {
            let position = self.open_with(&key).await.subscribe("s", "events").await;
            let position = self.world.log.parse_position(&position).unwrap();
            position.sequence() >= key.sequence
        })
        .await;
        key
    }

    /// Waits until the server knows a key.
    async fn known(&self, key: Key) -> Key {
        eventually("the key to be known", async || {
            let mut socket = Socket::connect(self.addr).await;
            socket.auth(&key.secret).await;
            match socket.next().await {
                Message::Text(text) => !text.contains("invalid token"),
                _ => true,
            }
        })
        .await;
        key
    }

    /// A socket that may subscribe.
    async fn open(&self) -> Socket {
        let key = self.key().await;
        self.open_with(&key).await
    }

    async fn open_with(&self, key: &Key) -> Socket {
        let mut socket = Socket::connect(self.addr).await;
        socket.auth(&key.secret).await;
        assert_eq!(socket.frame().await, json!({"type": "ready"}));
        socket
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.world.shutdown.cancel();
    }
}

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    async fn connect(addr: SocketAddr) -> Self {
        Self::handshake(addr, "/ws", &[]).await.0
    }

    async fn handshake(
        addr: SocketAddr,
        path: &str,
        headers: &[(&'static str, String)],
    ) -> (Self, Response) {
        let mut request = format!("ws://{addr}{path}").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (stream, response) = connect_async(request).await.unwrap();
        (Self(stream), response)
    }

    async fn send(&mut self, frame: Value) {
        self.send_text(frame.to_string()).await;
    }

    async fn send_text(&mut self, text: String) {
        self.0.send(Message::Text(text.into())).await.unwrap();
    }

    async fn auth(&mut self, token: &str) {
        self.send(json!({"type": "auth", "token": token})).await;
    }

    /// Subscribes without `after`; returns the position.
    async fn subscribe(&mut self, id: &str, channel: &str) -> String {
        self.send(json!({"type": "subscribe", "id": id, "channel": channel}))
            .await;
        let subscribed = self.frame().await;
        assert_eq!(subscribed["type"], "subscribed", "{subscribed}");
        let snapshot = json!({"type": "snapshot", "id": id, "data": []});
        assert_eq!(self.frame().await, snapshot);
        subscribed["position"].as_str().unwrap().to_owned()
    }

    async fn resume(&mut self, id: &str, channel: &str, after: &str) {
        let frame = json!({"type": "subscribe", "id": id, "channel": channel, "after": after});
        self.send(frame).await;
        let expected = json!({"type": "subscribed", "id": id, "position": after});
        assert_eq!(self.frame().await, expected);
    }

    async fn next(&mut self) -> Message {
        let next = timeout(TIMEOUT, self.0.next());
        let next = next.await.expect("something to arrive in time");
        next.expect("the connection is open")
            .expect("a readable frame")
    }

    /// The next frame of the protocol.
    async fn frame(&mut self) -> Value {
        loop {
            match self.next().await {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("no frame but {other:?}"),
            }
        }
    }

    /// The close code; skips every frame before it.
    async fn close_code(&mut self) -> u16 {
        loop {
            match self.next().await {
                Message::Close(Some(frame)) => return frame.code.into(),
                Message::Close(None) => panic!("closed without a code"),
                _ => {}
            }
        }
    }

    /// The ids of the next contacts in order.
    async fn contacts(&mut self, count: usize) -> Vec<String> {
        let mut ids = Vec::with_capacity(count);
        while ids.len() < count {
            let frame = self.frame().await;
            assert_eq!(frame["event"]["type"], "contact.created", "{frame}");
            ids.push(frame["event"]["data"]["id"].as_str().unwrap().to_owned());
        }
        ids
    }
}
