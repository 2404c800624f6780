//! Starting: what the log depends on, and what it refuses.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, StorageType};
use event_log::{Durability, Error, EventLog, Keyring, LogSettings};
use futures::future::join_all;
use local_servers::{LocalNats, NatsOptions, SyncInterval, TemporaryHome};
use schemas::Log;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use crate::support::{TestLog, fresh, keyring, raw, remove_streams, settings, stream_name};

#[tokio::test]
async fn processes_that_start_together_share_one_log() {
    let settings = settings();
    let connect = || EventLog::connect(&settings, keyring());
    let logs = join_all((0..6).map(|_| connect())).await;
    let logs: Vec<EventLog> = logs.into_iter().map(Result::unwrap).collect();
    for stream in [Log::Events, Log::Locations, Log::Deliveries] {
        let position = logs[0].position(stream, 1);
        assert!(logs.iter().all(|log| log.position(stream, 1) == position));
    }
    for (place, log) in (1..).zip(&logs) {
        let position = log.commit(fresh(1)).await.unwrap();
        assert_eq!(position.sequence(), place);
    }
    remove_streams(&settings).await;
}

#[tokio::test]
async fn a_log_is_opened_only_with_the_master_key_that_it_was_begun_with() {
    let log = TestLog::new().await;
    let other = Keyring::from_master(&[8; 32]);
    let opened = EventLog::connect(&log.settings, other).await;
    assert!(matches!(opened, Err(Error::OtherMasterKey)));
    EventLog::connect(&log.settings, keyring()).await.unwrap();
}

type Change = fn(&mut Config);

/// The log's error for a stream that somebody else created.
async fn refusal(change: impl FnOnce(&mut Config)) -> String {
    let settings = settings();
    let mut config = Config {
        name: stream_name(&settings, Log::Events),
        subjects: vec![format!("{}evt.>", settings.log_prefix)],
        allow_direct: true,
        allow_atomic_publish: true,
        ..Config::default()
    };
    config
        .metadata
        .insert("waypost-epoch".to_owned(), "00000001".to_owned());
    change(&mut config);
    let raw = raw(settings.nats_url()).await;
    raw.create_stream(config).await.unwrap();
    let outcome = EventLog::connect(&settings, keyring()).await;
    remove_streams(&settings).await;
    match outcome {
        Ok(_) => String::new(),
        Err(Error::Unfit(reason)) => reason,
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_stream_that_would_lose_events_or_cannot_carry_them_is_refused() {
    assert_eq!(refusal(|_| {}).await, "", "as it should be");
    let day = Duration::from_hours(24);
    let wrong: [(&str, Change); 9] = [
        ("allow_atomic", |c| c.allow_atomic_publish = false),
        ("allow_direct", |c| c.allow_direct = false),
        ("file storage", |c| c.storage = StorageType::Memory),
        ("erasing", |c| c.deny_delete = true),
        ("limits messages", |c| c.max_messages = 1_000_000),
        ("messages of a subject", |c| c.max_messages_per_subject = 5),
        ("limits bytes", |c| c.max_bytes = 1_000_000_000),
        ("message's size", |c| c.max_message_size = 1_000),
        ("epoch", |c| c.metadata.clear()),
    ];
    for (what, change) in wrong {
        let reason = refusal(change).await;
        assert!(reason.contains(what), "{what}: {reason:?}");
    }
    let reason = refusal(|config| config.max_age = day).await;
    assert!(reason.contains("age"), "{reason:?}");
    let reason = refusal(|config| config.subjects[0].push_str("x.>")).await;
    assert!(reason.contains("subjects"), "{reason:?}");
}

#[tokio::test]
async fn a_changed_setting_reaches_a_stream_that_exists() {
    let log = TestLog::new().await;
    let mut stream = log.raw_stream(Log::Deliveries).await;
    let days = |days: u64| Duration::from_hours(24 * days);
    assert_eq!(stream.info().await.unwrap().config.max_age, days(30));
    let settings = LogSettings {
        deliveries_days: 7,
        ..log.settings.clone()
    };
    let again = EventLog::connect(&settings, keyring()).await.unwrap();
    assert_eq!(stream.info().await.unwrap().config.max_age, days(7));
    let place = |log: &EventLog| log.position(Log::Deliveries, 1);
    assert_eq!(place(&log), place(&again), "the epoch stays");
}

#[tokio::test]
async fn a_prefix_that_fits_no_name_is_refused() {
    for prefix in ["a.b", "a b", "*", &"x".repeat(65)] {
        let settings = LogSettings {
            log_prefix: prefix.to_owned(),
            ..settings()
        };
        let outcome = EventLog::connect(&settings, keyring()).await;
        assert!(matches!(outcome, Err(Error::Unfit(_))), "{prefix}");
    }
}

#[tokio::test]
async fn an_invalid_or_unreachable_address_is_reported() {
    let connect = async |url: &str| {
        let settings = LogSettings::at(url);
        let outcome = EventLog::connect(&settings, keyring()).await;
        outcome.err().unwrap()
    };
    let nowhere = connect("nats://127.0.0.1:1").await;
    assert!(matches!(nowhere, Error::Connect(_)), "{nowhere}");
    let nonsense = connect("nats://[").await;
    assert!(matches!(nonsense, Error::Address(_)), "{nonsense}");
}

#[tokio::test]
async fn how_durable_the_log_is_can_be_read_from_the_system_account() {
    let minute = Duration::from_mins(1);
    for (sync_interval, expected) in [
        (SyncInterval::Always, Durability::Always),
        (SyncInterval::Every(minute), Durability::Within(minute)),
    ] {
        let home = TemporaryHome::new().unwrap();
        let options = NatsOptions {
            sync_interval,
            ..NatsOptions::default()
        };
        let nats = LocalNats::start(home.path(), options).await.unwrap();
        let durability = async |system_url| {
            let settings = LogSettings {
                nats_system_url: system_url,
                ..LogSettings::at(nats.url())
            };
            let log = EventLog::connect(&settings, keyring()).await.unwrap();
            log.durability()
        };
        assert_eq!(durability(Some(nats.system_url())).await, expected);
        assert_eq!(durability(None).await, Durability::Unknown);
        // What keeps it from being read does not keep the log from starting.
        let (no_system, nobody) = (nats.url(), "nats://127.0.0.1:1".to_owned());
        assert_eq!(durability(Some(no_system)).await, Durability::Unknown);
        assert_eq!(durability(Some(nobody)).await, Durability::Unknown);
    }
}

/// Greets as a server of this version would, and no more.
async fn greet_as(version: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let info = format!(
        r#"INFO {{"server_id":"x","version":"{version}","max_payload":1048576,"headers":true,"proto":1}}"#
    );
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (input, mut output) = stream.split();
        let greeting = format!("{info}\r\n");
        output.write_all(greeting.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if line == "PING" {
                output.write_all(b"PONG\r\n").await.unwrap();
            }
        }
    });
    url
}

#[tokio::test]
async fn a_server_from_before_atomic_batches_is_refused_by_its_version() {
    for version in ["2.10.26", "2.11.99", "2.9.0"] {
        let settings = LogSettings::at(greet_as(version).await);
        let outcome = EventLog::connect(&settings, keyring()).await;
        let Err(Error::Unfit(reason)) = outcome else {
            panic!("{:?}", outcome.err());
        };
        assert!(reason.contains(version), "{reason}");
        assert!(reason.contains("2.12"), "{reason}");
    }
}
