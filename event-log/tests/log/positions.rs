//! Positions: one place, one text, and only in the log it was made in.

use event_log::{EventLog, PositionError};
use schemas::Log;

use crate::support::{TestLog, fresh, keyring, remove_streams};

#[tokio::test]
async fn a_position_is_read_back_by_every_process() {
    let log = TestLog::new().await;
    let position = log.commit(fresh(3)).await.unwrap();
    let another = log.another().await;
    let text = position.to_string();
    assert_eq!(another.parse_position(&text), Ok(position));
    assert_eq!((position.log(), position.sequence()), (Log::Events, 3));
    let start = log.position(Log::Locations, 0);
    assert_eq!(log.parse_position(&start.to_string()), Ok(start));
    assert_ne!(start.to_string(), log.position(Log::Events, 0).to_string());
}

#[tokio::test]
async fn what_is_no_position_is_refused() {
    let log = TestLog::new().await;
    let text = log.position(Log::Events, 7).to_string();
    let other_feed = text.replacen('e', "l", 1);
    for wrong in [
        "",
        "7",
        "e",
        "x-7",
        &text[1..],
        &format!("{text} "),
        &format!("{text}a"),
    ] {
        let outcome = log.parse_position(wrong);
        assert_eq!(outcome, Err(PositionError::Malformed), "{wrong:?}");
    }
    assert_eq!(
        log.parse_position(&other_feed),
        Err(PositionError::OldEpoch)
    );
}

#[tokio::test]
async fn a_position_from_before_a_restore_is_noticed() {
    let log = TestLog::new().await;
    let old = log.commit(fresh(1)).await.unwrap();
    remove_streams(&log.settings).await;
    let restored = EventLog::connect(&log.settings, keyring()).await.unwrap();
    let outcome = restored.parse_position(&old.to_string());
    assert_eq!(outcome, Err(PositionError::OldEpoch));
    let new = restored.commit(fresh(1)).await.unwrap();
    assert_eq!(new.sequence(), old.sequence());
    assert_ne!(new, old);
}
