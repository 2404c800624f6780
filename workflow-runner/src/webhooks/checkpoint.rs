//! Progress of each partition, so that a restart or another process continues from there.
//!
//! A checkpoint may be older than the actual state, never newer: what it leaves open is looked up
//! in the deliveries' log before anything is sent.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemas::WebhookId;
use serde::{Deserialize, Serialize};

use super::open_records::OpenRecords;
use super::requests::RequestCursor;

/// Progress of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// Every event up to here has had its first attempt recorded, for every endpoint without an
    /// entry of its own below.
    #[serde(skip)]
    pub(super) through: u64,
    /// The last attempts of the deliveries that wait for a retry.
    pub(super) retries: OpenRecords,
    /// Every owner's request up to here in the stream of all facts is done, for every endpoint
    /// without an entry of its own below.
    pub(super) requests_through: u64,
    /// Endpoints that lag behind, or fail.
    pub(super) queues: BTreeMap<WebhookId, EndpointCheckpoint>,
}

/// Progress of one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EndpointCheckpoint {
    /// Like `through`, for this endpoint.
    pub(super) through: Option<u64>,
    /// When the failures began, if no success has followed.
    pub(super) failing_since: Option<DateTime<Utc>>,
    /// Progress of its owner's requests.
    pub(super) requests: Option<RequestCursor>,
}

impl crate::checkpoints::Checkpoint for Checkpoint {
    const FORM: u8 = 1;

    type Body = Self;
    type Mark = Self;

    fn new(through: u64, body: Self) -> Option<Self> {
        Some(Self { through, ..body })
    }

    fn mark(&self) -> Self {
        self.clone()
    }

    fn through(&self) -> u64 {
        self.through
    }

    fn body(&self) -> impl Serialize {
        self
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;
    use crate::checkpoints::Kind;
    use crate::checkpoints::testing::{read, read_old, recorded, stored};

    fn endpoints() -> impl Strategy<Value = EndpointCheckpoint> {
        let failing = (0..4_000_000_000_i64, 0..1_000_000_000_u32);
        let failing =
            failing.prop_map(|(seconds, nanos)| Utc.timestamp_opt(seconds, nanos).unwrap());
        let requests = any::<(u64, u64)>();
        let requests = requests.prop_map(|(done, cursor)| RequestCursor { done, cursor });
        let parts = (
            option::of(any::<u64>()),
            option::of(failing),
            option::of(requests),
        );
        parts.prop_map(|(through, failing_since, requests)| EndpointCheckpoint {
            through,
            failing_since,
            requests,
        })
    }

    fn checkpoints() -> impl Strategy<Value = Checkpoint> {
        let records = prop::collection::vec(1..50_000_u64, 0..40);
        let retries = (records, 1..60_000_u64);
        let retries = retries.prop_map(|(records, through)| OpenRecords::new(records, through));
        let id = "\\PC{1,40}".prop_map(WebhookId::from);
        let queues = prop::collection::btree_map(id, endpoints(), 0..5);
        (any::<u64>(), retries, any::<u64>(), queues).prop_map(
            |(through, retries, requests_through, queues)| Checkpoint {
                through,
                retries,
                requests_through,
                queues,
            },
        )
    }

    proptest! {
        #[test]
        fn a_checkpoint_survives_being_stored(checkpoint in checkpoints()) {
            prop_assert_eq!(read(&stored(&checkpoint)), Some(checkpoint));
        }

        #[test]
        fn damaged_bytes_give_nothing_and_never_panic(
            checkpoint in checkpoints(),
            at: prop::sample::Index,
            byte: u8,
        ) {
            let mut stored = stored(&checkpoint);
            let at = at.index(stored.len());
            prop_assert_eq!(read::<Checkpoint>(&stored[..at]), None);
            stored[at] = byte;
            let _ = read::<Checkpoint>(&stored);
        }
    }

    #[test]
    fn what_older_versions_stored_is_read() {
        for kind in [Kind::Webhooks, Kind::LocationWebhooks] {
            let read = |stored: &str| read_old::<Checkpoint>(kind, stored.as_bytes());
            let h1 = EndpointCheckpoint {
                through: Some(7),
                failing_since: Some("2026-11-27T10:00:00.123456789Z".parse().unwrap()),
                requests: Some(RequestCursor { done: 4, cursor: 2 }),
            };
            let h2 = EndpointCheckpoint {
                requests: Some(RequestCursor { done: 6, cursor: 0 }),
                ..EndpointCheckpoint::default()
            };
            let expected = Checkpoint {
                through: 9,
                retries: OpenRecords::new(vec![5, 7], 20_000),
                requests_through: 8,
                queues: BTreeMap::from([("h1".into(), h1), ("h2".into(), h2)]),
            };
            assert_eq!(read(recorded::WEBHOOKS), Some(expected));
            let first = read(recorded::FIRST_WEBHOOKS).unwrap();
            assert_eq!((first.through, first.requests_through), (9, 0));
            assert_eq!((first.retries.after(), first.retries.named()), (3, &[][..]));
            assert_eq!(first.queues[&"h1".into()].through, Some(7));
        }
    }
}
