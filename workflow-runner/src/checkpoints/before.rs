//! Checkpoints of versions before the common bucket, each kind in its own bucket and format: an
//! installation that is upgraded has no others.

use std::collections::BTreeMap;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use event_log::checkpoint::encode;
use event_log::{CheckpointBucket, EventLog, Mark, Position};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Kind;

/// The format of all bodies created here. Readers of later formats also read this one.
const FORM: u8 = 1;

/// Returns a partition's checkpoint from the bucket of its kind, in the current format.
pub(super) async fn find(
    log: &EventLog,
    kind: Kind,
    partition: u16,
    epoch: u32,
) -> Result<Option<(Bytes, Mark)>, String> {
    let (bucket, prefix) = place(kind);
    let bucket = log.existing_bucket(bucket.name()).await;
    let Some(bucket) = bucket.map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let found = bucket.get_marked(&format!("{prefix}{partition}")).await?;
    // Empty bytes are not usable either.
    let renewed = |stored: &[u8]| renewed(kind, stored, epoch).unwrap_or_default();
    Ok(found.map(|(stored, mark)| (renewed(&stored).into(), mark)))
}

/// The bucket, and the key prefix before a partition's number: the same partitions as now.
fn place(kind: Kind) -> (CheckpointBucket, &'static str) {
    match kind {
        Kind::Runs => (CheckpointBucket::OldRuns, "p-"),
        Kind::Triggers => (CheckpointBucket::OldTriggers, "p-"),
        Kind::Webhooks => (CheckpointBucket::OldWebhooks, "partition."),
        Kind::LocationWebhooks => (CheckpointBucket::OldWebhooks, "locations."),
        Kind::Geofence => (CheckpointBucket::OldGeofence, "partition."),
    }
}

/// Converts a stored checkpoint to the current format; `epoch` is the log's current one.
pub(super) fn renewed(kind: Kind, stored: &[u8], epoch: u32) -> Option<Vec<u8>> {
    match kind {
        Kind::Runs => runs(stored),
        Kind::Triggers => triggers(stored),
        Kind::Webhooks | Kind::LocationWebhooks => webhooks(stored, epoch),
        Kind::Geofence => geofence(kind, stored),
    }
}

/// Numbers as `postcard` writes them, followed by exactly the bytes of the current body.
fn runs(stored: &[u8]) -> Option<Vec<u8>> {
    let (head, body) = postcard::take_from_bytes(stored).ok()?;
    let (1_u64, epoch, through) = head else {
        return None;
    };
    let head = encode(epoch, through, FORM, ()).ok()?;
    Some([&head, body].concat())
}

#[derive(Deserialize, Serialize)]
struct Triggers {
    #[serde(skip_serializing)]
    epoch: u32,
    #[serde(skip_serializing)]
    through: u64,
    waits: Vec<u64>,
    #[serde(default)]
    causes: Vec<OrgCounts>,
}

#[derive(Deserialize, Serialize)]
struct OrgCounts {
    org: String,
    through: u64,
    causes: Vec<(Uuid, u32, u8, u8)>,
}

fn triggers(stored: &[u8]) -> Option<Vec<u8>> {
    let old: Triggers = serde_json::from_slice(stored).ok()?;
    encode(old.epoch, old.through, FORM, old).ok()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhooks {
    through: u64,
    /// If nothing is named, everything that waits is after this sequence.
    attempts_after: u64,
    older_attempts: Option<OlderAttempts>,
    #[serde(default)]
    requests_through: u64,
    #[serde(default)]
    lanes: BTreeMap<String, Lane>,
}

#[derive(Deserialize)]
struct OlderAttempts {
    through: u64,
    named: Vec<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Lane {
    through: Option<u64>,
    failing_since: Option<DateTime<Utc>>,
    requests: Option<Requests>,
}

#[derive(Deserialize, Serialize)]
struct Requests {
    done: u64,
    #[serde(default)]
    cursor: u64,
}

/// These were saved without an epoch.
fn webhooks(stored: &[u8], epoch: u32) -> Option<Vec<u8>> {
    let old: Webhooks = serde_json::from_slice(stored).ok()?;
    let named = old.older_attempts.filter(OlderAttempts::makes_sense);
    let retries = match named {
        Some(older) => (older.through, older.named),
        None => (old.attempts_after, Vec::new()),
    };
    let body = (retries, old.requests_through, old.lanes);
    encode(epoch, old.through, FORM, body).ok()
}

impl OlderAttempts {
    /// Whether all named sequences, each stored as the difference from the one before, are valid.
    fn makes_sense(&self) -> bool {
        let mut named = self.named.iter();
        let last = named.try_fold(0_u64, |before, further| before.checked_add(*further));
        last.is_some_and(|last| last <= self.through)
    }
}

/// The text of a position.
fn geofence(kind: Kind, stored: &[u8]) -> Option<Vec<u8>> {
    let position: Position = std::str::from_utf8(stored).ok()?.parse().ok()?;
    let is_of_kind = position.log() == kind.log();
    let renewed = || encode(position.epoch(), position.sequence(), FORM, ()).ok();
    is_of_kind.then(renewed)?
}

/// Stored data of older versions in epoch 7, which must stay readable forever.
#[cfg(test)]
pub(crate) mod recorded {
    /// Up to 1,000: a run that is ready, and one that waits.
    pub(crate) const RUNS: &[u8] = b"\x01\x07\xe8\x07\x02\
        \x05\x01\x98\xf3\xa2\x00\x00\x70\x00\x80\x00\x00\x00\x00\x00\x00\x01\x12\x34\x56\x78\x00\
        \xc8\x01\x01\x98\xf3\xa2\x00\x00\x70\x00\x80\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x03\
        \x80\xd0\x95\xff\xbc\x31";

    pub(crate) const TRIGGERS: &str = r#"{"epoch":7,"through":900,"waits":[12,3],"causes":[{"org":"acme","through":880,"causes":[["0198f3a2-0000-7000-8000-000000000001",3,1,0]]}]}"#;

    /// From before causes were counted.
    pub(crate) const FIRST_TRIGGERS: &str = r#"{"epoch":7,"through":900,"waits":[]}"#;

    pub(crate) const WEBHOOKS: &str = r#"{"through":9,"attemptsAfter":4,"olderAttempts":{"through":20000,"named":[5,2]},"requestsThrough":8,"lanes":{"h1":{"through":7,"failingSince":"2026-11-27T10:00:00.123456789Z","requests":{"done":4,"cursor":2}},"h2":{"requests":{"done":6}}}}"#;

    /// From before deliveries were named, and before owners could ask for any.
    pub(crate) const FIRST_WEBHOOKS: &str =
        r#"{"through":9,"attemptsAfter":3,"lanes":{"h1":{"through":7}}}"#;

    pub(crate) const GEOFENCE: &str = "l00000007-41";
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [Kind; 5] = [
        Kind::Runs,
        Kind::Triggers,
        Kind::Webhooks,
        Kind::LocationWebhooks,
        Kind::Geofence,
    ];

    #[test]
    fn names_that_make_no_sense_are_not_followed() {
        for named in ["[70,30]", "[18446744073709551615,1]"] {
            let old = format!(
                r#"{{"through":9,"attemptsAfter":41,"olderAttempts":{{"through":99,"named":{named}}}}}"#
            );
            let without = renewed(Kind::Webhooks, br#"{"through":9,"attemptsAfter":41}"#, 7);
            assert_eq!(
                renewed(Kind::Webhooks, old.as_bytes(), 7),
                without,
                "{named}"
            );
        }
    }

    #[test]
    fn a_position_of_another_stream_is_none_of_positions() {
        assert_eq!(renewed(Kind::Geofence, b"e00000007-41", 7), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            for kind in KINDS {
                let _ = renewed(kind, &bytes, 7);
            }
        }
    }
}
