//! Three servers keep the log, and the one that a process reads from lags.

use std::time::Duration;

use event_log::{EventLog, Keyring, LogSettings};
use local_servers::{Answers, LaggingCopy, LocalNats, NatsOptions, TemporaryHome};
use projector::{Pace, rebuild};
use schemas::Log;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::equality::assert_equal;
use crate::support::World;

#[tokio::test]
async fn a_rebuild_waits_for_what_the_nearest_copy_lacks() {
    let home = TemporaryHome::new().unwrap();
    let nats = LocalNats::start(home.path(), NatsOptions::default()).await;
    let nats = nats.unwrap();
    let mut copy = LaggingCopy::before(&nats).await.unwrap();
    let mut world = World::new().await;
    let keyring = || Keyring::load(world.home.path()).unwrap();
    let seen = LogSettings {
        log_replicas: 3,
        ..LogSettings::at(copy.url())
    };
    let seen = EventLog::connect(&seen, keyring()).await.unwrap();
    let log = EventLog::connect(&LogSettings::at(nats.url()), keyring()).await;
    world.log = log.unwrap();
    world.append_contacts((0..5).map(|i| format!("a{i}"))).await;
    copy.hold_back(Answers::ReadsAndConsumers).await.unwrap();
    let end = world
        .append_contacts((0..10).map(|i| format!("b{i}")))
        .await;
    let projector = world.start();
    world.caught_up(Log::Events, end.sequence()).await;
    let stop = CancellationToken::new();
    let small = Pace {
        batch: 100,
        ..Pace::default()
    };
    let rebuilding = rebuild(&seen, &world.pool, &["contacts"], small, &|_| (), &stop);
    let mut rebuilding = Box::pin(rebuilding);
    let early = timeout(Duration::from_millis(700), &mut rebuilding).await;
    assert!(early.is_err(), "it did without what the copy lacks");
    copy.catch_up();
    rebuilding.as_mut().await.unwrap();
    drop(rebuilding);
    assert_eq!(world.count("SELECT count(*) FROM contacts").await, 15);
    assert_equal(&world, "contacts").await;
    projector.stop().await;
    world.end().await;
}
