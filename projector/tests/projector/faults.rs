//! The database or the log is unavailable, or not the one that it was.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use event_log::{EventLog, Keyring};
use schemas::Log;
use service::health::Readiness;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::support::{World, eventually, log_settings, nats_url, readiness, start};

/// A connection to a server that can be cut.
struct Cable {
    port: u16,
    plugged: Arc<watch::Sender<bool>>,
}

impl Cable {
    async fn to(host: String, port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap().port();
        let plugged = Arc::new(watch::Sender::new(true));
        let sender = plugged.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut plugged = sender.subscribe();
                let host = host.clone();
                tokio::spawn(async move {
                    if !*plugged.borrow_and_update() {
                        return;
                    }
                    let mut far = TcpStream::connect((host, port)).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => (),
                        _ = plugged.changed() => (),
                    }
                });
            }
        });
        Self {
            port: here,
            plugged,
        }
    }

    fn plug(&self, plugged: bool) {
        self.plugged.send_replace(plugged);
    }
}

async fn becomes(check: &Readiness, expected: StatusCode) {
    eventually("readiness says so", async || {
        readiness(check).await.0 == expected
    })
    .await;
}

#[tokio::test]
async fn a_database_that_was_away_is_caught_up_with() {
    let world = World::new().await;
    let options = world.pool.connect_options();
    let cable = Cable::to(options.get_host().to_owned(), options.get_port()).await;
    let options = PgConnectOptions::clone(&options)
        .host("127.0.0.1")
        .port(cable.port);
    let mut deps = world.deps();
    deps.pool = PgPoolOptions::new().connect_lazy_with(options);
    let ready = deps.readiness.clone();
    let projector = start(deps);
    let end = world
        .append_contacts((0..10).map(|i| format!("a{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    becomes(&ready, StatusCode::OK).await;
    for round in 0..3 {
        cable.plug(false);
        becomes(&ready, StatusCode::SERVICE_UNAVAILABLE).await;
        let ids = (0..10).map(|i| format!("b{round}{i}"));
        let end = world.append_contacts(ids).await;
        cable.plug(true);
        world.caught_up(Log::Events, end.sequence()).await;
        becomes(&ready, StatusCode::OK).await;
    }
    assert_eq!(world.count("SELECT count(*) FROM contacts").await, 40);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn a_log_that_was_away_is_caught_up_with() {
    let world = World::new().await;
    let address: async_nats::ServerAddr = nats_url().parse().unwrap();
    let cable = Cable::to(address.host().to_owned(), address.port()).await;
    let mut settings = log_settings(&world.prefix);
    let cabled = nats_url().replace(&address.port().to_string(), &cable.port.to_string());
    settings.nats_url = Some(cabled);
    let keyring = Keyring::load(world.home.path()).unwrap();
    let mut deps = world.deps();
    deps.log = EventLog::connect(&settings, keyring).await.unwrap();
    let log = deps.log.clone();
    let projector = start(deps);
    let end = world
        .append_contacts((0..10).map(|i| format!("a{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    for round in 0..3 {
        cable.plug(false);
        eventually("the connection is gone", async || !log.is_connected()).await;
        let ids = (0..10).map(|i| format!("b{round}{i}"));
        let end = world.append_contacts(ids).await;
        cable.plug(true);
        world.caught_up(Log::Events, end.sequence()).await;
    }
    assert_eq!(world.count("SELECT count(*) FROM contacts").await, 40);
    projector.stop().await;
    world.end().await;
}

#[tokio::test]
async fn rows_from_another_epoch_of_the_log_are_refused_aloud() {
    let world = World::new().await;
    let projector = world.start();
    let end = world
        .append_contacts((0..10).map(|i| format!("a{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    projector.stop().await;
    sqlx::query("UPDATE projection_checkpoints SET epoch = epoch + 1 WHERE name = 'contacts'")
        .execute(&world.pool)
        .await
        .unwrap();
    let deps = world.deps();
    let ready = deps.readiness.clone();
    let projector = start(deps);
    eventually("it says why", async || {
        readiness(&ready).await.1.contains("another epoch")
    })
    .await;
    world
        .append_contacts((0..10).map(|i| format!("b{i}")))
        .await;
    tokio::time::timeout(Duration::from_millis(500), async {
        world.caught_up(Log::Events, end.sequence() + 1).await;
    })
    .await
    .expect_err("it went on");
    assert_eq!(world.count("SELECT count(*) FROM contacts").await, 10);
    projector.stop().await;
    world.end().await;
}

/// The events that rows were made of are gone, and others have their sequences.
#[tokio::test]
async fn rows_from_a_log_that_has_gone_back_are_refused_aloud_and_healed_by_a_rebuild() {
    let world = World::new().await;
    let projector = world.start();
    let ids = (0..10).map(|i| format!("a{i}"));
    let end = world.append_contacts(ids).await.sequence();
    world.caught_up(Log::Events, end).await;
    projector.stop().await;
    let mut more = (0..).map(|i| format!("b{i}"));
    let known = "SELECT count(*) FROM projection_checkpoints
                 WHERE log = 'events' AND event_id IS NULL";
    assert_eq!(world.count(known).await, 0, "the event is noted");
    for gone_back in [
        "UPDATE projection_checkpoints SET event_id = gen_random_uuid() WHERE name = 'contacts'",
        "UPDATE projection_checkpoints SET sequence = sequence + 100 WHERE name = 'contacts'",
    ] {
        sqlx::query(gone_back).execute(&world.pool).await.unwrap();
        let deps = world.deps();
        let ready = deps.readiness.clone();
        let projector = start(deps);
        eventually("it says why", async || {
            readiness(&ready).await.1.contains("has gone back")
        })
        .await;
        let stop = CancellationToken::new();
        let small = projector::Pace {
            batch: 100,
            ..projector::Pace::default()
        };
        let rebuilt = projector::rebuild(
            &world.log,
            &world.pool,
            &["contacts"],
            small,
            &|_| (),
            &stop,
        );
        rebuilt.await.unwrap();
        let end = world.append_contacts(more.by_ref().take(1)).await;
        world.caught_up(Log::Events, end.sequence()).await;
        eventually("it works", async || {
            readiness(&ready).await.0 == StatusCode::OK
        })
        .await;
        projector.stop().await;
    }
    world.end().await;
}

#[tokio::test]
async fn a_projection_that_is_behind_catches_up_while_the_others_go_on() {
    let world = World::new().await;
    let projector = world.start();
    let end = world
        .append_contacts((0..12_000).map(|i| format!("a{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    projector.stop().await;
    world.make_new(&["contacts"]).await;
    let projector = world.start();
    let end = world
        .append_contacts((0..10).map(|i| format!("b{i}")))
        .await;
    world.caught_up(Log::Events, end.sequence()).await;
    assert_eq!(world.count("SELECT count(*) FROM contacts").await, 12_010);
    let total = "SELECT count FROM totals WHERE kind = 'contacts'";
    assert_eq!(world.count(total).await, 12_010);
    let positions =
        "SELECT count(DISTINCT sequence) FROM projection_checkpoints WHERE log = 'events'";
    eventually("all move together", async || {
        world.count(positions).await == 1
    })
    .await;
    let listed = projector::list(&world.log, &world.pool).await.unwrap();
    assert!(listed.iter().any(|one| one.name == "contacts"));
    assert!(listed.iter().all(|one| one.lag == 0), "{listed:?}");
    projector.stop().await;
    world.end().await;
}
