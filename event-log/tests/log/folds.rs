//! Checkpoints of folds: the next process begins with what another saved.

use std::sync::Arc;

use chrono::DateTime;
use event_log::checkpoint::encode;
use event_log::{Batch, CheckpointBucket, EventLog, Fold, FoldCheckpoint, Item, LogSettings, Mark};
use schemas::account::Forgotten;
use schemas::{AccountId, Context, Event, EventId, Log, Recorded, StreamId};
use uuid::Uuid;

use crate::support::{TestLog, settings};

const FORM: u8 = 3;

async fn open(log: &EventLog) -> FoldCheckpoint {
    let checkpoint = FoldCheckpoint::open(log, Fold::Accounts, FORM).await;
    checkpoint.unwrap()
}

async fn write(checkpoint: &FoldCheckpoint, through: u64, text: &'static str) {
    let write = checkpoint.write(move |encoder| encoder.encode(through, &text));
    write.await;
}

async fn read(log: &EventLog) -> Option<(u64, String)> {
    open(log).await.read().await
}

fn noted(through: u64, text: &str) -> (u64, String) {
    (through, text.to_owned())
}

#[tokio::test]
async fn what_one_process_noted_another_begins_with() {
    let log = TestLog::new().await;
    let checkpoint = open(&log).await;
    assert_eq!(checkpoint.read::<String>().await, None);
    write(&checkpoint, 7, "folded").await;
    assert_eq!(read(&log.another().await).await, Some(noted(7, "folded")));
}

#[tokio::test]
async fn a_checkpoint_that_another_process_wrote_meanwhile_is_not_overwritten() {
    let log = TestLog::new().await;
    let (one, other) = (open(&log).await, open(&log).await);
    for checkpoint in [&one, &other] {
        assert_eq!(checkpoint.read::<String>().await, None);
    }
    write(&one, 7, "one").await;
    write(&other, 5, "other").await;
    assert_eq!(read(&log).await, Some(noted(7, "one")));
    write(&other, 9, "other").await;
    assert_eq!(read(&log).await, Some(noted(9, "other")));
}

#[tokio::test]
async fn what_another_version_noted_is_folded_anew() {
    let log = TestLog::new().await;
    write(&open(&log).await, 7, "old").await;
    let newer = FoldCheckpoint::open(&log, Fold::Accounts, FORM + 1).await;
    let newer = newer.unwrap();
    assert_eq!(newer.read::<String>().await, None);
    write(&newer, 8, "new").await;
    assert_eq!(newer.read().await, Some(noted(8, "new")));
    assert_eq!(read(&log).await, None);
}

#[tokio::test]
async fn what_was_noted_of_a_log_that_has_gone_back_is_folded_anew() {
    let log = TestLog::new().await;
    let bucket = log.bucket(CheckpointBucket::Folds.name(), None).await;
    let epoch = log.position(Log::Events, 0).epoch();
    let stored = encode(epoch, 7, FORM, "folded").unwrap();
    let mark = Mark {
        sequence: 7,
        event: Some(EventId(Uuid::new_v4())),
    };
    let put = bucket.unwrap();
    let put = put.put_marked("accounts", stored.into(), mark);
    put.await.unwrap();
    assert_eq!(read(&log).await, None);
}

/// Events of an account, some of which cannot be read.
fn batch(events: usize, unreadable: usize) -> Batch {
    let item = |nth| {
        if nth < unreadable {
            Item::Undecodable {
                sequence: 1,
                subject: "evt._.account.7".to_owned(),
                reason: "of a newer version".to_owned(),
            }
        } else {
            Item::Event(Arc::new(recorded()))
        }
    };
    Batch {
        items: (0..events).map(item).collect(),
        caught_up: true,
        last_sequence: 1,
        last_event: None,
        bytes: 0,
    }
}

fn recorded() -> Recorded {
    let account = AccountId(7);
    Recorded {
        sequence: 1,
        stream: StreamId::of_account(account),
        id: EventId(Uuid::new_v4()),
        time: DateTime::UNIX_EPOCH,
        event: Event::AccountForgotten(Forgotten {
            account_id: account,
        }),
        context: Context::default(),
        receipt: None,
    }
}

async fn due_after_ten() -> (TestLog, FoldCheckpoint) {
    let settings = LogSettings {
        fold_events: 10,
        ..settings()
    };
    let log = TestLog::with(settings).await;
    let checkpoint = open(&log).await;
    (log, checkpoint)
}

#[tokio::test]
async fn one_is_due_after_so_many_events_and_once() {
    let (_log, checkpoint) = due_after_ten().await;
    checkpoint.count(&batch(9, 0));
    assert!(!checkpoint.is_due());
    checkpoint.count(&batch(1, 0));
    assert!(checkpoint.is_due());
    checkpoint.count(&batch(10, 0));
    assert!(!checkpoint.is_due(), "it is being written");
    write(&checkpoint, 20, "folded").await;
    checkpoint.count(&batch(9, 0));
    assert!(!checkpoint.is_due());
    checkpoint.count(&batch(1, 0));
    assert!(checkpoint.is_due());
}

#[tokio::test]
async fn a_process_that_cannot_read_an_event_saves_no_checkpoint() {
    let (_log, checkpoint) = due_after_ten().await;
    checkpoint.count(&batch(10, 1));
    assert!(!checkpoint.is_due());
    checkpoint.count(&batch(10, 0));
    assert!(!checkpoint.is_due());
}
