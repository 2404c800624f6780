//! What processes ask of the log's server.

use std::time::Duration;

use async_nats::{Client, ConnectOptions, Message, ServerAddr, Subscriber};
use futures::StreamExt as _;
use tokio::time::timeout;
use uuid::Uuid;

use crate::support::PREFIX;

const LIMIT: Duration = Duration::from_secs(20);

/// Receives a copy of each request for messages of one stream.
pub(crate) struct Wiretap {
    client: Client,
    subject: String,
    requests: Subscriber,
}

impl Wiretap {
    /// Listens to reads of a stream, which is named without the tests' prefix.
    pub(crate) async fn on(stream: &str) -> Self {
        let url = std::env::var("NATS_URL").unwrap();
        let address: ServerAddr = url.parse().unwrap();
        let options = match (address.username(), address.password()) {
            (Some(user), Some(password)) => {
                ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned())
            }
            _ => ConnectOptions::new(),
        };
        let client = options.connect(address).await.unwrap();
        let subject = format!("$JS.API.DIRECT.GET.{PREFIX}{stream}");
        let requests = client.subscribe(subject.clone()).await.unwrap();
        let mut tap = Self {
            client,
            subject,
            requests,
        };
        // The server has the subscription once it delivers something.
        tap.until_now().await;
        tap
    }

    /// All requests since the last call that were answered before this one.
    pub(crate) async fn until_now(&mut self) -> Vec<Message> {
        // The server ignores a request that names no one to answer.
        let mark = Uuid::new_v4().to_string();
        let sent = self
            .client
            .publish(self.subject.clone(), mark.clone().into());
        sent.await.unwrap();
        let mut requests = Vec::new();
        loop {
            let request = timeout(LIMIT, self.requests.next()).await;
            let request = request.unwrap().unwrap();
            if request.payload == mark.as_bytes() {
                return requests;
            }
            requests.push(request);
        }
    }
}
