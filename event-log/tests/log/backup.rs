//! Backups: whole, and restored at the same places.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use event_log::backup::{self, BackupError, Progress};
use event_log::{Binding, CheckpointBucket, EventLog, Expected, Keyring, LogSettings, Mark};
use event_log::{Error, PositionError, VaultError};
use local_servers::TemporaryHome;
use schemas::{AccountId, Event, EventId, Log, OrgId, Recorded, StreamId, account};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{
    TestLog, everything, fresh, fresh_run, keyring, new_event, now, remove_streams, settings, write,
};

pub(crate) fn silent(_: Progress) {}

/// A place for a log that is restored; removed when dropped.
pub(crate) struct Fresh(LogSettings);

impl Fresh {
    pub(crate) fn new() -> Self {
        Self(settings())
    }

    pub(crate) async fn restore(&self, folder: &Path) -> Result<backup::Restored, BackupError> {
        backup::restore(folder, &self.0, &keyring(), &silent).await
    }

    async fn open(&self) -> EventLog {
        EventLog::connect(&self.0, keyring()).await.unwrap()
    }

    pub(crate) async fn end(self) {
        remove_streams(&self.0).await;
    }
}

/// A log with gaps at its start, in the middle and at its end, and its backup.
pub(crate) async fn backed_up() -> (TestLog, TemporaryHome) {
    let log = TestLog::new().await;
    let mut gone = Vec::new();
    for count in [2, 3, 1, 4, 2] {
        let commit = fresh(count);
        gone.push(commit.writes[0].stream.clone());
        log.commit(commit).await.unwrap();
    }
    for place in [0, 2, 4] {
        log.erase(&gone[place]).await.unwrap();
    }
    let home = TemporaryHome::new().unwrap();
    let manifest = log.back_up(&folder(&home), now(), &silent).await.unwrap();
    assert_eq!(manifest.messages(Log::Events), 7);
    assert_eq!(manifest.position(Log::Events).sequence(), 12);
    (log, home)
}

pub(crate) fn folder(home: &TemporaryHome) -> PathBuf {
    home.path().join("backup")
}

/// All but the context, which no event here has.
fn facts(events: &[Recorded]) -> Vec<(u64, StreamId, Uuid, String)> {
    let fact = |event: &Recorded| {
        let said = format!("{:?} {:?} {:?}", event.event, event.time, event.receipt);
        (event.sequence, event.stream.clone(), event.id.0, said)
    };
    events.iter().map(fact).collect()
}

#[tokio::test]
async fn a_restored_log_has_every_event_at_its_place_and_another_epoch() {
    let (log, home) = backed_up().await;
    let fresh = Fresh::new();
    let restored = fresh.restore(&folder(&home)).await.unwrap();
    let again = fresh.open().await;
    let (before, after) = (
        everything(&log, Log::Events).await,
        everything(&again, Log::Events).await,
    );
    assert_eq!(facts(&before), facts(&after));
    assert_eq!(again.end(Log::Events).await.unwrap(), restored.position);
    assert_eq!(restored.position.sequence(), 12);
    let old = log.position(Log::Events, 5).to_string();
    assert_eq!(again.parse_position(&old), Err(PositionError::OldEpoch));

    // It continues where it was.
    let last = before.last().unwrap();
    let next = write(&last.stream, Expected::At(last.sequence), 1);
    assert_eq!(again.commit(next.into()).await.unwrap().sequence(), 13);
    assert_eq!(everything(&again, Log::Events).await.len(), 8);
    fresh.end().await;
}

#[tokio::test]
async fn checkpoints_come_back_with_the_log_and_hold_for_it() {
    let (log, home) = backed_up().await;
    let large: Bytes = (0..2_500_000)
        .map(|byte: u32| byte.to_be_bytes()[3])
        .collect();
    let marks = [(12, Some(EventId(Uuid::new_v4()))), (0, None)];
    let marks = marks.map(|(sequence, event)| Mark { sequence, event });
    let name = CheckpointBucket::Runner.name();
    let notes = log.bucket(name, None).await.unwrap();
    for (key, value, mark) in [
        ("runs.1", Bytes::from_static(b"one"), marks[0]),
        ("webhooks.31", large.clone(), marks[1]),
    ] {
        notes.put_marked(key, value, mark).await.unwrap();
    }
    let with_notes = home.path().join("with-notes");
    log.back_up(&with_notes, now(), &silent).await.unwrap();
    notes
        .put_marked("runs.1", Bytes::from_static(b"later"), marks[1])
        .await
        .unwrap();

    let fresh = Fresh::new();
    fresh.restore(&with_notes).await.unwrap();
    let again = fresh.open().await;
    let restored = again.bucket(name, None).await.unwrap();
    let one = (Bytes::from_static(b"one"), marks[0]);
    assert_eq!(restored.get_marked("runs.1").await, Ok(Some(one)));
    let two = (large, marks[1]);
    assert_eq!(restored.get_marked("webhooks.31").await, Ok(Some(two)));
    let epoch = |log: &EventLog| log.position(Log::Locations, 0).epoch();
    assert_ne!(epoch(&log), epoch(&again));
    assert!(again.carries_on(Log::Locations, epoch(&again)));
    assert!(again.carries_on(Log::Locations, epoch(&log)));
    assert!(!log.carries_on(Log::Locations, epoch(&again)));
    fresh.end().await;
}

#[tokio::test]
async fn a_backup_from_before_there_were_checkpoints_is_restored() {
    let (log, home) = backed_up().await;
    let manifest = folder(&home).join("manifest.json");
    let mut said: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let none = said["streams"].as_array_mut().unwrap().pop().unwrap();
    assert_eq!(
        (&none["name"], &none["messages"]),
        (&json!("CHECKPOINTS"), &json!(0))
    );
    fs::write(&manifest, said.to_string()).unwrap();
    backup::verify(&folder(&home), &silent).unwrap();
    let fresh = Fresh::new();
    fresh.restore(&folder(&home)).await.unwrap();
    let all = everything(&log, Log::Events).await;
    assert_eq!(
        facts(&everything(&fresh.open().await, Log::Events).await),
        facts(&all)
    );
    fresh.end().await;
}

#[tokio::test]
async fn an_event_s_own_headers_survive() {
    let log = TestLog::new().await;
    let stream = fresh_run();
    let mut commit = write(&stream, Expected::Empty, 1);
    commit.events[0].context.correlation_id = Some("request \"7\"\n ä".to_owned());
    commit.events[0].receipt = Some(schemas::Receipt {
        key: "key".to_owned(),
        fingerprint: "print".to_owned(),
    });
    log.commit(commit.into()).await.unwrap();
    let home = TemporaryHome::new().unwrap();
    log.back_up(&folder(&home), now(), &silent).await.unwrap();
    let fresh = Fresh::new();
    fresh.restore(&folder(&home)).await.unwrap();
    let (before, after) = (
        log.last(&stream).await,
        fresh.open().await.last(&stream).await,
    );
    assert_eq!(
        format!("{:?}", before.unwrap()),
        format!("{:?}", after.unwrap())
    );
    fresh.end().await;
}

#[tokio::test]
async fn a_log_of_several_batches_and_nothing_but_gaps_is_restored() {
    let log = TestLog::new().await;
    for _ in 0..3 {
        log.commit(fresh(600)).await.unwrap();
    }
    let gone = fresh_run();
    log.commit(write(&gone, Expected::Empty, 100).into())
        .await
        .unwrap();
    log.erase(&gone).await.unwrap();
    let home = TemporaryHome::new().unwrap();
    log.back_up(&folder(&home), now(), &silent).await.unwrap();
    let place = Fresh::new();
    place.restore(&folder(&home)).await.unwrap();
    let again = place.open().await;
    assert_eq!(again.end(Log::Events).await.unwrap().sequence(), 1_900);
    let (before, after) = (
        everything(&log, Log::Events).await,
        everything(&again, Log::Events).await,
    );
    assert_eq!(facts(&before), facts(&after));
    again.commit(fresh(1)).await.unwrap();
    assert_eq!(everything(&again, Log::Events).await.len(), 1_801);
    place.end().await;
}

#[tokio::test]
async fn what_is_written_meanwhile_is_not_in_the_backup() {
    let log = TestLog::new().await;
    log.commit(fresh(10)).await.unwrap();
    let home = TemporaryHome::new().unwrap();
    let (from, tell) = (folder(&home), silent);
    let backup = log.back_up(&from, now(), &tell);
    let writes = async {
        for _ in 0..50 {
            log.commit(fresh(10)).await.unwrap();
        }
    };
    let (manifest, ()) = tokio::join!(backup, writes);
    let manifest = manifest.unwrap();
    let last = manifest.position(Log::Events).sequence();
    assert!((10..=510).contains(&last), "{last}");
    assert_eq!(manifest.messages(Log::Events), last);
    backup::verify(&folder(&home), &silent).unwrap();
}

#[tokio::test]
async fn owners_read_what_was_sealed_before_and_the_forgotten_stay_forgotten() {
    let log = TestLog::new().await;
    let org = OrgId::from("an org, with a comma");
    let org = Binding::Secret(org, "TOKEN".to_owned());
    let (kept, forgotten) = (AccountId(7), AccountId(8));
    let (kept, gone) = (Binding::Name(kept), Binding::Name(forgotten));
    let mut sealed = Vec::new();
    for owner in [&org, &kept, &gone] {
        sealed.push(log.vault().seal(owner, "a secret").await.unwrap());
    }
    // The backup falls between the event and the key's destruction.
    let account = StreamId::of_account(forgotten);
    let mut commit = write(&account, Expected::Empty, 1);
    commit.events = vec![new_event(Event::AccountForgotten(account::Forgotten {
        account_id: forgotten,
    }))];
    log.commit(commit.into()).await.unwrap();
    let home = TemporaryHome::new().unwrap();
    let manifest = log.back_up(&folder(&home), now(), &silent).await.unwrap();
    assert_eq!(manifest.keys(), 3);

    let fresh = Fresh::new();
    let restored = fresh.restore(&folder(&home)).await.unwrap();
    assert_eq!(restored.keys_left_out, 1);
    let again = fresh.open().await;
    for (owner, sealed) in [(&org, &sealed[0]), (&kept, &sealed[1])] {
        let plain = again.vault().unseal(owner, sealed).await.unwrap();
        assert_eq!(plain, "a secret");
    }
    let unsealed = again.vault().unseal(&gone, &sealed[2]).await;
    assert!(
        matches!(unsealed, Err(VaultError::Forgotten)),
        "{unsealed:?}"
    );
    fresh.end().await;
}

#[tokio::test]
async fn another_master_key_is_refused_before_anything_is_made() {
    let (_log, home) = backed_up().await;
    let fresh = Fresh::new();
    let other = Keyring::from_master(&[8; 32]);
    let restored = backup::restore(&folder(&home), &fresh.0, &other, &silent).await;
    assert!(
        matches!(restored, Err(BackupError::OtherKey)),
        "{restored:?}"
    );
    fresh.restore(&folder(&home)).await.unwrap();
    fresh.end().await;
}

#[tokio::test]
async fn a_restored_log_is_opened_only_with_the_master_key_of_its_backup() {
    let (_log, home) = backed_up().await;
    let fresh = Fresh::new();
    fresh.restore(&folder(&home)).await.unwrap();
    let other = Keyring::from_master(&[8; 32]);
    let opened = EventLog::connect(&fresh.0, other).await;
    assert!(matches!(opened, Err(Error::OtherMasterKey)));
    let again = fresh.open().await;
    assert_eq!(everything(&again, Log::Events).await.len(), 7);
    fresh.end().await;
}

#[tokio::test]
async fn a_system_that_holds_anything_or_runs_is_left_as_it_is() {
    let (_log, home) = backed_up().await;
    let occupied = TestLog::new().await;
    occupied.commit(fresh(1)).await.unwrap();
    let restore = async |settings: &LogSettings| {
        backup::restore(&folder(&home), settings, &keyring(), &silent).await
    };
    let refused = restore(&occupied.settings).await;
    assert!(
        matches!(refused, Err(BackupError::Occupied { .. })),
        "{refused:?}"
    );
    assert_eq!(everything(&occupied, Log::Events).await.len(), 1);

    let running = TestLog::new().await;
    let tail = running.tail(Log::Locations, 0, &[]).await.unwrap();
    let refused = restore(&running.settings).await;
    assert!(
        matches!(refused, Err(BackupError::InUse { .. })),
        "{refused:?}"
    );
    drop(tail);
}

#[tokio::test]
async fn an_empty_log_gives_way_with_its_epoch_and_its_checkpoints() {
    let (_log, home) = backed_up().await;
    let empty = TestLog::new().await;
    let own = empty.position(Log::Events, 0);
    for name in CheckpointBucket::ALL.map(CheckpointBucket::name) {
        let notes = empty.bucket(name, None).await.unwrap();
        notes.put("far", "7".into()).await.unwrap();
    }
    let (from, keyring) = (folder(&home), keyring());
    let restored = backup::restore(&from, &empty.settings, &keyring, &silent);
    let restored = restored.await.unwrap();
    assert_ne!(restored.position.epoch(), own.epoch());
    let again = empty.another().await;
    assert_eq!(everything(&again, Log::Events).await.len(), 7);
    for name in CheckpointBucket::ALL.map(CheckpointBucket::name) {
        let notes = again.bucket(name, None).await.unwrap();
        assert_eq!(notes.get("far").await, Ok(None), "{name}");
    }
}

#[tokio::test]
async fn a_restore_that_broke_off_is_noticed_and_can_be_repeated() {
    let (log, home) = backed_up().await;
    let fresh = Fresh::new();
    fresh.restore(&folder(&home)).await.unwrap();
    let raw = log.raw().await;
    let name = format!("{}EVENTS", fresh.0.log_prefix);
    let mut config = raw
        .get_stream(&name)
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    let mark = ("waypost-restoring".to_owned(), "unfinished".to_owned());
    config.metadata.extend([mark]);
    raw.update_stream(&config).await.unwrap();
    let opened = EventLog::connect(&fresh.0, keyring()).await.err().unwrap();
    assert!(opened.to_string().contains("waypost restore"), "{opened}");

    fresh.restore(&folder(&home)).await.unwrap();
    let again = fresh.open().await;
    assert_eq!(everything(&again, Log::Events).await.len(), 7);
    fresh.end().await;
}
