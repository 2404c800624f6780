//! Rotating the master key.

use std::sync::atomic::{AtomicU64, Ordering};

use event_log::backup::{self, BackupError, Progress};
use event_log::{
    Binding, Error, EventLog, Keyring, LogSettings, MasterKeyFiles, RotationError, Stage,
    VaultError,
};
use futures::StreamExt as _;
use futures::future::join_all;
use local_servers::TemporaryHome;
use schemas::{AccountId, OrgId, Sealed};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use crate::support::{OwnServer, TestLog, holds, keyring, now, remove_streams, settings};

const OWNERS: u64 = 30;

fn new_key() -> Keyring {
    Keyring::from_master(&[42; 32])
}

fn name(number: u64) -> Binding {
    Binding::Name(AccountId(number))
}

/// Ids that are hashed show whether names stay as they were.
fn secret(number: u64) -> Binding {
    Binding::Secret(OrgId::from(format!("an org, no. {number}")), "T".to_owned())
}

type All = Vec<(Binding, Sealed)>;

async fn sealed(log: &EventLog, numbers: std::ops::Range<u64>) -> All {
    let bindings = numbers.flat_map(|number| [name(number), secret(number)]);
    let seal = bindings.map(|binding| async move {
        let sealed = log.vault().seal(&binding, "a secret").await.unwrap();
        (binding, sealed)
    });
    join_all(seal).await
}

async fn all_open(log: &EventLog, all: &All) {
    for (binding, sealed) in all {
        let opened = log.vault().unseal(binding, sealed).await;
        assert_eq!(opened.unwrap(), "a secret", "{binding:?}");
    }
}

/// A log on which no process holds an owner's key in memory for long.
async fn log() -> TestLog {
    TestLog::with(LogSettings {
        vault_cache_ms: 0,
        ..settings()
    })
    .await
}

async fn with(log: &TestLog, keyring: Keyring) -> Result<EventLog, Error> {
    EventLog::connect(&log.settings, keyring).await
}

const SILENT: &(dyn Fn(u64, u64) + Sync) = &|_, _| {};

/// From the first step to the last.
async fn rotate(log: &TestLog, old: &EventLog, new: &Keyring) -> (EventLog, u64) {
    old.rotation().begin(new).await.unwrap();
    old.rotation().wrap_all(SILENT).await.unwrap();
    let after = with(log, new.clone()).await.unwrap();
    let rotated = after.rotation().end(SILENT).await.unwrap();
    (after, rotated)
}

#[tokio::test]
async fn everybody_goes_on_while_the_master_key_is_rotated_and_afterwards() {
    let log = log().await;
    let mut all = sealed(&log, 0..OWNERS).await;
    let (running, rotation) = (log.another().await, log.rotation());
    assert_eq!(rotation.stage().await.unwrap(), Stage::None);

    rotation.begin(&new_key()).await.unwrap();
    assert_eq!(rotation.stage().await.unwrap(), Stage::Begun);
    all.extend(sealed(&running, OWNERS..OWNERS + 5).await);
    let begun = with(&log, new_key()).await.unwrap();
    all_open(&begun, &all).await;

    let wrapped = rotation.wrap_all(SILENT).await.unwrap();
    assert_eq!(wrapped, 2 * (OWNERS + 5));
    for process in [&*log, &running, &begun, &log.another().await] {
        all_open(process, &all).await;
    }
    all.extend(sealed(&running, OWNERS + 5..OWNERS + 7).await);
    all.extend(sealed(&begun, OWNERS + 7..OWNERS + 9).await);
    assert_eq!(begun.rotation().stage().await.unwrap(), Stage::Ending);

    let rotated = begun.rotation().end(SILENT).await.unwrap();
    assert_eq!(rotated, 2 * (OWNERS + 9));
    assert_eq!(begun.rotation().stage().await.unwrap(), Stage::None);
    all.extend(sealed(&running, OWNERS + 9..OWNERS + 11).await);
    let after = with(&log, new_key()).await.unwrap();
    for process in [&*log, &running, &begun, &after] {
        all_open(process, &all).await;
    }
}

#[tokio::test]
async fn the_old_master_key_opens_nothing_afterwards() {
    let log = log().await;
    sealed(&log, 0..3).await;
    rotate(&log, &log, &new_key()).await;
    let outcome = with(&log, keyring()).await;
    assert!(matches!(outcome.err(), Some(Error::OtherMasterKey)));
    let strange = with(&log, Keyring::from_master(&[8; 32])).await;
    assert!(matches!(strange.err(), Some(Error::OtherMasterKey)));
}

/// A rotation that ends before another process looks for one.
#[tokio::test]
async fn a_process_that_missed_a_rotation_reads_the_master_key_again() {
    let (log, home) = (log().await, TemporaryHome::new().unwrap());
    let secrets = home.path().join("secrets");
    std::fs::create_dir(&secrets).unwrap();
    // The key that the log was made with.
    let key = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    std::fs::write(secrets.join("master.key"), key).unwrap();
    let loaded = || Keyring::load(home.path()).unwrap();
    let missing = with(&log, loaded()).await.unwrap();
    let mut all = sealed(&missing, 0..3).await;
    let files = MasterKeyFiles::of(home.path()).unwrap();
    let old = with(&log, loaded()).await.unwrap();
    let begun = old.rotation();
    begun.begin(&files.next_or_make().unwrap()).await.unwrap();
    begun.wrap_all(SILENT).await.unwrap();
    files.replace().unwrap();
    let after = with(&log, loaded()).await.unwrap();
    after.rotation().end(SILENT).await.unwrap();

    all_open(&missing, &all).await;
    all.extend(sealed(&missing, 3..5).await);
    all_open(&after, &all).await;
}

#[tokio::test]
async fn after_a_missed_rotation_without_a_key_file_nothing_is_taken_for_broken() {
    let log = log().await;
    let all = sealed(&log, 0..3).await;
    let missing = log.another().await;
    rotate(&log, &log, &new_key()).await;
    for (binding, sealed) in &all {
        let opened = missing.vault().unseal(binding, sealed).await;
        let passes = matches!(opened, Err(VaultError::Unavailable(_)));
        assert!(passes, "{binding:?}: {opened:?}");
    }
}

#[tokio::test]
async fn names_stay_over_many_rotations() {
    let log = log().await;
    let mut all = sealed(&log, 0..5).await;
    let claim = log.claim("email", "ada@example.org");
    let mut holder = log.another().await;
    for round in 1..=3_u8 {
        let next = Keyring::from_master(&[100 + round; 32]);
        let (after, rotated) = rotate(&log, &holder, &next).await;
        assert_eq!(rotated, all.len() as u64);
        assert_eq!(after.claim("email", "ada@example.org"), claim);
        all_open(&after, &all).await;
        let more = 10 * u64::from(round);
        all.extend(sealed(&after, more..more + 2).await);
        holder = after;
    }
    // A process that began with the first key and learned of each continues.
    all_open(&holder, &all).await;
}

/// Interrupts a rotation after this many steps.
async fn broken_off(log: &EventLog, steps: u64) -> bool {
    let (stop, told) = (CancellationToken::new(), AtomicU64::new(0));
    let tell = |_, _| {
        if told.fetch_add(1, Ordering::Relaxed) == steps {
            stop.cancel();
        }
    };
    let rotation = log.rotation();
    let rotating = async {
        rotation.begin(&new_key()).await.unwrap();
        rotation.wrap_all(&tell).await.unwrap();
    };
    stop.run_until_cancelled(rotating).await.is_none()
}

#[tokio::test]
async fn a_rotation_that_broke_off_anywhere_goes_on_where_it_was() {
    for steps in [0, 1, 7, 20, 43] {
        let log = log().await;
        let all = sealed(&log, 0..20).await;
        assert!(
            Box::pin(broken_off(&log, steps)).await,
            "it had ended by {steps}"
        );
        for key in [keyring(), new_key()] {
            all_open(&with(&log, key).await.unwrap(), &all).await;
        }
        // It cannot be continued with another key.
        let other = Keyring::from_master(&[8; 32]);
        let outcome = log.rotation().begin(&other).await;
        assert!(matches!(outcome, Err(RotationError::UnderWay)));
        // A process that was started with the old key cannot lock it out.
        let outcome = log.rotation().end(SILENT).await;
        assert!(matches!(outcome, Err(RotationError::NotHeld)));
        let (after, rotated) = rotate(&log, &log.another().await, &new_key()).await;
        assert_eq!(rotated, 40);
        all_open(&after, &all).await;
    }
}

#[tokio::test]
async fn who_is_forgotten_during_a_rotation_stays_forgotten() {
    let log = log().await;
    let all = sealed(&log, 0..40).await;
    log.rotation().begin(&new_key()).await.unwrap();
    let forgotten: Vec<_> = all.iter().step_by(3).collect();
    let forget = join_all(forgotten.iter().map(|(binding, _)| async {
        log.vault().forget(&binding.owner()).await.unwrap();
    }));
    let another = log.another().await;
    let rotation = another.rotation();
    let (wrapped, _) = tokio::join!(rotation.wrap_all(SILENT), forget);
    wrapped.unwrap();
    let after = with(&log, new_key()).await.unwrap();
    after.rotation().end(SILENT).await.unwrap();
    for (nth, (binding, sealed)) in all.iter().enumerate() {
        let opened = after.vault().unseal(binding, sealed).await;
        let gone = matches!(opened, Err(VaultError::Forgotten));
        assert_eq!(gone, nth % 3 == 0, "{binding:?}: {opened:?}");
    }
}

/// Everything in the bucket of keys.
async fn wraps(settings: &LogSettings) -> Vec<Vec<u8>> {
    let context = crate::support::raw(settings.nats_url()).await;
    let bucket = context.get_key_value(format!("{}KEYS", settings.log_prefix));
    let bucket = bucket.await.unwrap();
    let mut names = bucket.keys().await.unwrap();
    let mut wraps = Vec::new();
    while let Some(name) = names.next().await {
        wraps.push(bucket.get(name.unwrap()).await.unwrap().unwrap().to_vec());
    }
    wraps
}

#[tokio::test]
async fn nothing_that_the_old_key_opens_stays_on_the_disk() {
    let mut own = OwnServer::start().await;
    let all = sealed(&own.log, 0..5).await;
    let mut old = wraps(&own.settings).await;
    own.log.rotation().begin(&new_key()).await.unwrap();
    // The records too: the old key's leads to the new key.
    let begun = wraps(&own.settings).await;
    assert_eq!((old.len(), begun.len()), (10, 12));
    old = begun;
    own.log.rotation().wrap_all(SILENT).await.unwrap();
    let after = EventLog::connect(&own.settings, new_key()).await.unwrap();
    after.rotation().end(SILENT).await.unwrap();
    let kept = wraps(&own.settings).await;
    assert_eq!(kept.len(), 11);
    old.retain(|wrap| !kept.contains(wrap));
    assert_eq!(old.len(), 11, "all but the new key's record");
    own.crash().await;
    for wrap in &old {
        assert!(!holds(own.home.path(), wrap), "an old wrap is on the disk");
    }
    for wrap in &kept {
        assert!(holds(own.home.path(), wrap), "the search finds nothing");
    }
    let again = EventLog::connect(&own.settings, new_key()).await.unwrap();
    all_open(&again, &all).await;
}

#[tokio::test]
async fn backups_of_before_within_and_after_open_with_the_keys_of_their_time() {
    let log = log().await;
    let all = sealed(&log, 0..10).await;
    let home = TemporaryHome::new().unwrap();
    let folder = |name: &str| home.path().join(name);
    let silent = |_| {};
    let back_up = async |log: &EventLog, name: &str| {
        let taken = log.back_up(&folder(name), now(), &silent).await.unwrap();
        assert_eq!(taken.keys(), 20, "{name}");
    };
    back_up(&log, "before").await;
    Box::pin(broken_off(&log, 9)).await;
    let within = log
        .back_up(&folder("within"), now(), &silent)
        .await
        .unwrap();
    assert!(within.keys() >= 20);
    let (after, _) = rotate(&log, &log.another().await, &new_key()).await;
    back_up(&after, "after").await;
    // A process that was started with the old key takes one for the new key as well.
    back_up(&log, "by another").await;

    for (name, key, opens) in [
        ("before", keyring(), true),
        ("before", new_key(), false),
        ("within", keyring(), true),
        ("within", new_key(), true),
        ("after", keyring(), false),
        ("after", new_key(), true),
        ("by another", new_key(), true),
        ("by another", keyring(), false),
    ] {
        let empty = settings();
        let restored = backup::restore(&folder(name), &empty, &key, &silent).await;
        if opens {
            restored.unwrap();
            let again = EventLog::connect(&empty, key).await.unwrap();
            all_open(&again, &all).await;
        } else {
            assert!(matches!(restored, Err(BackupError::OtherKey)), "{name}");
        }
        remove_streams(&empty).await;
    }
}

#[tokio::test]
async fn a_backup_that_is_taken_while_keys_are_wrapped_misses_none() {
    let log = log().await;
    let all = sealed(&log, 0..150).await;
    let home = TemporaryHome::new().unwrap();
    let folder = home.path().join("backup");
    log.rotation().begin(&new_key()).await.unwrap();
    let another = log.another().await;
    let rotation = another.rotation();
    let (wrapped, taken) = tokio::join!(
        rotation.wrap_all(SILENT),
        log.back_up(&folder, now(), &|_| {})
    );
    wrapped.unwrap();
    taken.unwrap();
    let empty = settings();
    backup::restore(&folder, &empty, &new_key(), &|_| {})
        .await
        .unwrap();
    all_open(&EventLog::connect(&empty, new_key()).await.unwrap(), &all).await;
    remove_streams(&empty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_at_whose_end_a_rotation_begins_is_restored_with_the_old_key_alone() {
    let log = log().await;
    let all = sealed(&log, 0..3).await;
    let home = TemporaryHome::new().unwrap();
    let folder = home.path().join("backup");
    let tell = |progress: Progress| {
        // Reported last, once the keys are copied.
        if progress.stream == "CHECKPOINTS" {
            let begin = async { log.rotation().begin(&new_key()).await };
            block_in_place(|| Handle::current().block_on(begin)).unwrap();
        }
    };
    log.back_up(&folder, now(), &tell).await.unwrap();
    assert_eq!(log.rotation().stage().await.unwrap(), Stage::Begun);
    let empty = settings();
    let restored = backup::restore(&folder, &empty, &new_key(), &|_| {}).await;
    assert!(
        matches!(restored, Err(BackupError::OtherKey)),
        "{restored:?}"
    );
    backup::restore(&folder, &empty, &keyring(), &|_| {})
        .await
        .unwrap();
    all_open(&EventLog::connect(&empty, keyring()).await.unwrap(), &all).await;
    remove_streams(&empty).await;
}
