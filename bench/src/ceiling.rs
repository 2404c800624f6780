//! Rates of a bare client of the log's server.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::{self, stream};
use async_nats::{ConnectOptions, HeaderMap, ServerAddr};
use futures::StreamExt as _;
use futures::future::join_all;
use uuid::Uuid;

use crate::system::System;

/// Size of a small event, in bytes.
pub(crate) const PAYLOAD: usize = 200;

pub(crate) async fn connect(nats_url: &str) -> jetstream::Context {
    let first = nats_url.split(',').next().unwrap_or_default();
    let server: ServerAddr = first.parse().expect("an address");
    let user = server.username().unwrap_or_default().to_owned();
    let password = server.password().unwrap_or_default().to_owned();
    let client = ConnectOptions::with_user_and_password(user, password)
        .connect(server)
        .await;
    jetstream::new(client.expect("NATS"))
}

/// Messages per second that an ordered consumer receives from a whole stream.
pub(crate) async fn consumed(nats_url: &str, stream: &str) -> f64 {
    let context = connect(nats_url).await;
    let mut stream = context.get_stream(stream).await.expect("the stream");
    let count = stream.info().await.expect("its state").state.messages;
    let started = Instant::now();
    let consumer = stream.create_consumer(OrderedConfig::default()).await;
    let messages = consumer.expect("a consumer").messages().await;
    let mut messages = messages
        .expect("messages")
        .take(usize::try_from(count).expect("a count"));
    let mut consumed = 0_u32;
    while let Some(message) = messages.next().await {
        std::hint::black_box(message.expect("a message"));
        consumed += 1;
    }
    f64::from(consumed) / started.elapsed().as_secs_f64()
}

/// Acknowledged publishes per second to a stream of its own on the same server.
pub(crate) async fn publishes(system: &System, connections: usize, time: Duration) -> f64 {
    let publish = |context: jetstream::Context, end| async move {
        let payload = vec![b'x'; PAYLOAD];
        let mut published = 0;
        while Instant::now() < end {
            let subject = format!("bare.run.{}", Uuid::now_v7());
            let ack = context.publish(subject, payload.clone().into()).await;
            ack.expect("a publish").await.expect("an acknowledgement");
            published += 1;
        }
        published
    };
    rate(system, connections, time, publish).await
}

/// The rate of concurrent workers that write to a stream of their own on the same server, each
/// until the given instant.
pub(crate) async fn rate<F>(
    system: &System,
    workers: usize,
    time: Duration,
    work: impl Fn(jetstream::Context, Instant) -> F,
) -> f64
where
    F: Future<Output = u32> + Send + 'static,
{
    let context = connect(system.servers.nats_url()).await;
    let config = stream::Config {
        name: "BARE".to_owned(),
        num_replicas: system.replicas(),
        subjects: vec!["bare.>".to_owned()],
        allow_atomic_publish: true,
        ..stream::Config::default()
    };
    let made = context.get_or_create_stream(config).await;
    made.expect("a stream");
    let started = Instant::now();
    let workers = (0..workers).map(|_| tokio::spawn(work(context.clone(), started + time)));
    let done = join_all(workers).await.into_iter();
    let done: u32 = done.map(|done| done.expect("a worker")).sum();
    let rate = f64::from(done) / started.elapsed().as_secs_f64();
    let gone = context.delete_stream("BARE").await;
    gone.expect("the stream goes");
    rate
}

/// Concurrent batches of a bare client.
const BATCHES: usize = 4;
/// Messages per batch.
const BATCH_MESSAGES: usize = 1_000;

/// Messages per second of the given size that a bare client publishes in atomic batches, to a
/// stream of its own on the same server.
pub(crate) async fn batches(system: &System, bytes: usize, time: Duration) -> f64 {
    let publish = |context: jetstream::Context, end| async move {
        let mut published = 0;
        while Instant::now() < end {
            batch(&context, bytes).await;
            published += u32::try_from(BATCH_MESSAGES).expect("a thousand");
        }
        published
    };
    rate(system, BATCHES, time, publish).await
}

async fn batch(context: &jetstream::Context, bytes: usize) {
    let client = context.client();
    let payload = bytes::Bytes::from(vec![b'x'; bytes]);
    let id = Uuid::now_v7().simple().to_string();
    for place in 1..=BATCH_MESSAGES {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Batch-Id", id.as_str());
        headers.insert("Nats-Batch-Sequence", place.to_string());
        headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
        let subject = format!("bare.run.{}", Uuid::now_v7());
        if place < BATCH_MESSAGES {
            let sent = client.publish_with_headers(subject, headers, payload.clone());
            sent.await.expect("a publish");
        } else {
            headers.insert("Nats-Batch-Commit", "1");
            let answer = client.request_with_headers(subject, headers, payload.clone());
            let answer = answer.await.expect("an acknowledgement").payload;
            assert!(
                !answer.windows(7).any(|part| part == b"\"error\""),
                "{answer:?}"
            );
        }
    }
}
