//! The private NATS server, for real.
#![allow(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::{self, stream};
use local_servers::{Error, LocalNats, NatsOptions, SyncInterval, TemporaryHome, Urls};
use tokio::time::timeout;

async fn start(home: &Path) -> LocalNats {
    LocalNats::start(home, NatsOptions::default())
        .await
        .unwrap()
}

/// The client does not take a user and password from an address.
async fn connect(nats: &LocalNats) -> async_nats::Client {
    let address: async_nats::ServerAddr = nats.url().parse().unwrap();
    let user = address.username().unwrap().to_owned();
    let password = address.password().unwrap().to_owned();
    async_nats::ConnectOptions::with_user_and_password(user, password)
        .connect(address)
        .await
        .unwrap()
}

async fn jetstream(nats: &LocalNats) -> jetstream::Context {
    jetstream::new(connect(nats).await)
}

async fn publish(nats: &LocalNats, text: &'static str) {
    let jetstream = jetstream(nats).await;
    let config = stream::Config {
        name: "KEPT".to_owned(),
        subjects: vec!["kept".to_owned()],
        ..Default::default()
    };
    jetstream.get_or_create_stream(config).await.unwrap();
    jetstream
        .publish("kept", text.into())
        .await
        .unwrap()
        .await
        .unwrap();
}

async fn messages(nats: &LocalNats) -> u64 {
    let mut stream = jetstream(nats).await.get_stream("KEPT").await.unwrap();
    stream.info().await.unwrap().state.messages
}

fn port(url: &str) -> u16 {
    url.rsplit_once(':').unwrap().1.parse().unwrap()
}

#[tokio::test]
async fn data_outlives_a_stop() {
    let home = TemporaryHome::new().unwrap();
    let mut nats = start(home.path()).await;
    let url = nats.url();
    publish(&nats, "before").await;
    nats.stop().await.unwrap();
    assert_eq!(nats.pid(), None);
    drop(nats);

    let nats = start(home.path()).await;
    assert_eq!(nats.url(), url, "port and password are remembered");
    assert_eq!(messages(&nats).await, 1);
}

#[tokio::test]
async fn what_was_acknowledged_outlives_a_kill() {
    let home = TemporaryHome::new().unwrap();
    let mut nats = start(home.path()).await;
    let url = nats.url();
    publish(&nats, "acknowledged").await;
    nats.kill();
    nats.restart().await.unwrap();
    assert_eq!(nats.url(), url);
    assert_eq!(messages(&nats).await, 1);
}

#[tokio::test]
async fn two_homes_live_side_by_side() {
    let (one, other) = (TemporaryHome::new().unwrap(), TemporaryHome::new().unwrap());
    let (first, second) = tokio::join!(start(one.path()), start(other.path()));
    publish(&first, "only here").await;
    assert_ne!(first.url(), second.url());
    assert_eq!(messages(&first).await, 1);
    assert!(jetstream(&second).await.get_stream("KEPT").await.is_err());
}

#[tokio::test]
async fn a_second_start_on_the_same_home_is_refused_and_harmless() {
    let home = TemporaryHome::new().unwrap();
    let nats = start(home.path()).await;
    let second = LocalNats::start(home.path(), NatsOptions::default()).await;
    assert!(matches!(second, Err(Error::InUse { .. })));
    publish(&nats, "still here").await;
}

#[tokio::test]
async fn a_port_that_someone_took_is_left_to_them() {
    let home = TemporaryHome::new().unwrap();
    let nats = start(home.path()).await;
    let before = port(&nats.url());
    publish(&nats, "kept").await;
    drop(nats);

    let _someone = TcpListener::bind(("127.0.0.1", before)).unwrap();
    let nats = start(home.path()).await;
    assert_ne!(port(&nats.url()), before);
    assert_eq!(Urls::of(home.path()).nats, Some(nats.url()));
    assert_eq!(messages(&nats).await, 1);
}

#[tokio::test]
async fn a_stranger_without_the_password_is_turned_away() {
    let home = TemporaryHome::new().unwrap();
    let nats = start(home.path()).await;
    let address = format!("nats://127.0.0.1:{}", port(&nats.url()));
    assert!(async_nats::connect(address).await.is_err());
}

#[tokio::test]
async fn an_end_of_its_own_is_noticed_and_healed() {
    let home = TemporaryHome::new().unwrap();
    let mut nats = start(home.path()).await;
    publish(&nats, "kept").await;
    let pid = rustix::process::Pid::from_raw(nats.pid().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    nats.exited().await;
    nats.restart().await.unwrap();
    assert_eq!(messages(&nats).await, 1);
}

#[tokio::test]
async fn a_paused_server_stops_cleanly() {
    let home = TemporaryHome::new().unwrap();
    let mut nats = start(home.path()).await;
    publish(&nats, "kept").await;
    nats.pause();
    nats.resume();
    assert_eq!(messages(&nats).await, 1);
    nats.pause();
    nats.stop().await.unwrap();
    nats.restart().await.unwrap();
    assert_eq!(messages(&nats).await, 1);
}

#[tokio::test]
async fn options_reach_the_server() {
    let home = TemporaryHome::new().unwrap();
    let options = NatsOptions {
        sync_interval: SyncInterval::Every(std::time::Duration::from_secs(10)),
        monitor: true,
    };
    let nats = LocalNats::start(home.path(), options).await.unwrap();
    let monitor = nats.monitor_url().unwrap();
    let address = monitor.strip_prefix("http://").unwrap();
    let told = get(address, "/jsz?config=true").await;
    assert!(told.contains("\"sync_interval\": 10000000000"), "{told}");
}

async fn get(address: &str, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn three_servers_keep_a_stream_together_while_one_is_away() {
    let home = TemporaryHome::new().unwrap();
    let mut servers = LocalNats::start_cluster(home.path(), 3).await.unwrap();
    let config = stream::Config {
        name: "KEPT".to_owned(),
        subjects: vec!["kept".to_owned()],
        num_replicas: 3,
        ..Default::default()
    };
    let first = jetstream(&servers[0]).await;
    // They elect a leader first.
    while first.get_or_create_stream(config.clone()).await.is_err() {
        tokio::task::yield_now().await;
    }
    first
        .publish("kept", "one".into())
        .await
        .unwrap()
        .await
        .unwrap();
    servers[2].kill();
    let second = jetstream(&servers[1]).await;
    let published = async || second.publish("kept", "two".into()).await.ok()?.await.ok();
    while published().await.is_none() {
        tokio::task::yield_now().await;
    }
    servers[2].restart().await.unwrap();
    let third = jetstream(&servers[2]).await;
    let known = async || {
        let mut stream = third.get_stream("KEPT").await.ok()?;
        Some(stream.info().await.ok()?.state.messages)
    };
    while known().await.is_none_or(|messages| messages < 2) {
        tokio::task::yield_now().await;
    }
}

/// Sends a batch of two messages and returns whether it was stored.
async fn send_batch(nats: &LocalNats, name: &str) -> bool {
    let client = connect(nats).await;
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Batch-Id", name);
    headers.insert("Nats-Batch-Sequence", "1");
    let first = client.publish_with_headers("evt.one", headers.clone(), "1".into());
    first.await.unwrap();
    headers.insert("Nats-Batch-Sequence", "2");
    headers.insert("Nats-Batch-Commit", "1");
    let last = client.request_with_headers("evt.two", headers, "2".into());
    let answer = last.await.unwrap();
    !String::from_utf8_lossy(&answer.payload).contains("error")
}

async fn takes_batches(nats: &LocalNats) {
    let config = stream::Config {
        name: "EVENTS".to_owned(),
        subjects: vec!["evt.>".to_owned()],
        allow_atomic_publish: true,
        ..Default::default()
    };
    let jetstream = jetstream(nats).await;
    jetstream.get_or_create_stream(config).await.unwrap();
}

fn staged_in(home: &Path) -> Option<PathBuf> {
    let streams = home.join("nats/data/jetstream/WAYPOST/streams");
    fs::read_link(streams.join("EVENTS/batches")).ok()
}

#[tokio::test]
async fn batches_are_staged_in_memory_after_each_start() {
    let home = TemporaryHome::new().unwrap();
    let mut nats = start(home.path()).await;
    takes_batches(&nats).await;
    let memory = staged_in(home.path()).unwrap();
    assert!(memory.starts_with("/dev/shm"), "{}", memory.display());
    assert!(send_batch(&nats, "a").await);

    nats.restart().await.unwrap();
    assert_eq!(staged_in(home.path()).as_ref(), Some(&memory));
    assert!(send_batch(&nats, "b").await);

    nats.kill();
    nats.restart().await.unwrap();
    assert_eq!(staged_in(home.path()).as_ref(), Some(&memory));
    assert!(send_batch(&nats, "c").await);

    drop(nats);
    assert!(!memory.exists(), "nothing stays in memory");
}

#[tokio::test]
async fn a_lost_folder_in_memory_is_made_again() {
    let home = TemporaryHome::new().unwrap();
    let mut nats = start(home.path()).await;
    takes_batches(&nats).await;
    let memory = staged_in(home.path()).unwrap();
    fs::remove_dir_all(memory.parent().unwrap()).unwrap();
    assert!(
        !send_batch(&nats, "a").await,
        "the server has nowhere to stage"
    );
    let end = Instant::now() + Duration::from_secs(20);
    while !memory.is_dir() {
        assert!(Instant::now() < end, "it was not made again");
        let watched = timeout(Duration::from_secs(2), nats.exited());
        assert!(watched.await.is_err(), "the server goes on");
    }
    assert!(send_batch(&nats, "b").await);
}
