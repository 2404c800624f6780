use event_log::{Keyring, LogSettings};
use schemas::EventId;
use uuid::Uuid;

use super::*;

/// A sequence, and any other data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text(pub(super) u8, pub(super) String);

impl Checkpoint for Text {
    const FORM: u8 = 1;

    type Body = String;
    type Mark = u8;

    fn new(through: u64, body: String) -> Option<Self> {
        Some(Self(through.try_into().ok()?, body))
    }

    fn mark(&self) -> u8 {
        self.0
    }

    fn through(&self) -> u64 {
        self.0.into()
    }

    fn body(&self) -> impl Serialize {
        &self.1
    }
}

pub(super) async fn checkpoints() -> Checkpoints<Text> {
    let url = std::env::var("NATS_URL").unwrap_or_else(|_| "nats://127.0.0.1:4222".to_owned());
    let settings = LogSettings {
        log_prefix: format!("checkpoints-{}-", Uuid::new_v4().simple()),
        ..LogSettings::at(url)
    };
    let keyring = Keyring::from_master(&[7; 32]);
    let log = EventLog::connect(&settings, keyring).await.unwrap();
    Checkpoints::open(&log, Kind::Runs).await.unwrap()
}

/// The mark of an event that the log does not have.
fn mark_of_nothing() -> Mark {
    Mark {
        sequence: 7,
        event: Some(EventId(Uuid::new_v4())),
    }
}

#[tokio::test]
async fn nobody_goes_on_from_a_checkpoint_of_a_log_that_has_gone_back() {
    let checkpoints = checkpoints().await;
    let stored = checkpoints.encode(&Text(1, "a".to_owned())).unwrap();
    let mark = mark_of_nothing();
    let put = checkpoints.bucket.put_marked("runs.1", stored.into(), mark);
    put.await.unwrap();
    let read = timeout(Duration::from_millis(300), checkpoints.read(1)).await;
    assert!(read.is_err(), "{read:?}");
    // Without a mark it is accepted as it is.
    let stored = checkpoints.encode(&Text(2, "b".to_owned())).unwrap();
    let put = checkpoints.bucket.put("runs.1", stored.into());
    put.await.unwrap();
    let read = checkpoints.read(1).await;
    assert_eq!(read, Some(Text(2, "b".to_owned())));
}

#[tokio::test]
async fn what_cannot_be_read_is_no_checkpoint() {
    let checkpoints = checkpoints().await;
    checkpoints.put(1, vec![1, 0xff]).await.unwrap();
    assert_eq!(checkpoints.read(1).await, None);
    assert_eq!(checkpoints.read(2).await, None);
}

/// The bucket of an older version, with a checkpoint of partition 1.
async fn old_bucket(checkpoints: &Checkpoints<Text>, mark: Mark) {
    let name = CheckpointBucket::OldRuns.name();
    let bucket = checkpoints.log.bucket(name, None).await.unwrap();
    let stored =
        postcard::to_extend(&(1_u64, checkpoints.epoch(), 5_u64, "old"), Vec::new()).unwrap();
    bucket.put_marked("p-1", stored.into(), mark).await.unwrap();
}

#[tokio::test]
async fn one_of_an_older_version_is_taken_where_there_is_no_other() {
    let checkpoints = checkpoints().await;
    assert_eq!(checkpoints.read(1).await, None);
    let name = CheckpointBucket::OldRuns.name();
    let made = checkpoints.log.existing_bucket(name).await.unwrap();
    assert!(made.is_none(), "to look for it makes nothing");
    old_bucket(&checkpoints, Mark::default()).await;
    let old = Text(5, "old".to_owned());
    assert_eq!(checkpoints.read(1).await, Some(old));
    assert_eq!(checkpoints.read(2).await, None);
}

#[tokio::test]
async fn one_of_an_older_version_is_not_taken_where_there_is_another() {
    let checkpoints = checkpoints().await;
    old_bucket(&checkpoints, Mark::default()).await;
    let mut saving = Saving::new(checkpoints.clone(), Duration::ZERO);
    saving.begin([(1, Text(4, "new".to_owned()))]);
    saving.ended().await;
    let new = Text(4, "new".to_owned());
    assert_eq!(checkpoints.read(1).await, Some(new));
    // A newer version wrote this.
    checkpoints.put(1, vec![2, 0]).await.unwrap();
    assert_eq!(checkpoints.read(1).await, None);
}

#[tokio::test]
async fn nobody_goes_on_from_an_older_versions_where_the_log_has_gone_back() {
    let checkpoints = checkpoints().await;
    old_bucket(&checkpoints, mark_of_nothing()).await;
    let read = timeout(Duration::from_millis(300), checkpoints.read(1)).await;
    assert!(read.is_err(), "{read:?}");
}
