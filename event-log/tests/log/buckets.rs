//! Values of buckets, large ones above all.

use std::time::Duration;

use bytes::Bytes;
use event_log::{Bucket, Mark};
use schemas::EventId;
use uuid::Uuid;

use crate::support::{OwnServer, TestLog};

const KIB: usize = 1024;

/// Bytes of which no two parts are the same.
fn value(seed: usize, bytes: usize) -> Bytes {
    let numbers = (0..bytes.div_ceil(8)).map(|nth| (nth * 31 + seed * 1_000_003) as u64);
    let mut value: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    value.truncate(bytes);
    value.into()
}

fn mark(sequence: u64) -> Mark {
    Mark {
        sequence,
        event: Some(EventId(Uuid::new_v4())),
    }
}

async fn put(bucket: &Bucket, seed: usize, bytes: usize) -> (Bytes, Mark) {
    let (value, mark) = (value(seed, bytes), mark(seed as u64));
    let put = bucket.put_marked("k", value.clone(), mark);
    put.await.unwrap();
    (value, mark)
}

/// A server creates nothing while its disk does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_is_waited_for_while_the_server_is_slow() {
    let own = OwnServer::start().await;
    own.nats.pause();
    let resumed = async {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        own.nats.resume();
    };
    let (bucket, ()) = futures::join!(own.log.bucket("values", None), resumed);
    bucket.unwrap();
}

#[tokio::test]
async fn a_value_of_any_size_is_read_as_it_was_put_last() {
    let log = TestLog::new().await;
    let bucket = log.bucket("values", None).await.unwrap();
    assert_eq!(bucket.get_marked("k").await, Ok(None));
    let sizes = [0, 900, 901, 2_700, 2_000, 4_000, 900, 1_801, 3];
    for (nth, kib) in sizes.into_iter().enumerate() {
        let put = put(&bucket, nth, kib * KIB).await;
        assert!(bucket.get_marked("k").await == Ok(Some(put)), "{kib} KiB");
    }
}

#[tokio::test]
async fn a_large_value_stays_until_the_next_is_there_whole() {
    let log = TestLog::new().await;
    let bucket = log.bucket("values", None).await.unwrap();
    put(&bucket, 1, 2_500 * KIB).await;
    let second = put(&bucket, 2, 2_500 * KIB).await;
    // The next one is in the other set, and its key's message never comes.
    bucket.put("k.a.1", "third".into()).await.unwrap();
    assert!(bucket.get_marked("k").await == Ok(Some(second)));
    let third = put(&bucket, 3, 2_500 * KIB).await;
    assert!(bucket.get_marked("k").await == Ok(Some(third)));
}

#[tokio::test]
async fn pieces_of_different_values_are_no_value() {
    let log = TestLog::new().await;
    let bucket = log.bucket("values", None).await.unwrap();
    put(&bucket, 1, 2_500 * KIB).await;
    bucket.put("k.a.2", "another's".into()).await.unwrap();
    assert_eq!(bucket.get_marked("k").await, Ok(None));
    bucket.delete("k.a.2").await.unwrap();
    assert_eq!(bucket.get_marked("k").await, Ok(None));
    let whole = put(&bucket, 2, 2_500 * KIB).await;
    assert!(bucket.get_marked("k").await == Ok(Some(whole)));
}
