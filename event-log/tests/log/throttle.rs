//! Organizations that write much leave a slow log to others.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use event_log::{AppendError, Commit, EventLog, LogSettings};
use futures::future::join_all;
use schemas::{AggregateType, EventId, Log, OrgId, StreamId};
use tokio::time::sleep;
use uuid::Uuid;

use crate::support::{OwnServer, everything, fresh, ids, ids_of, keyring, write};

const LEAST: u64 = 50;
/// More than may wait.
const AT_ONCE: usize = 300;
const SOON: Duration = Duration::from_secs(30);

fn commit_of(org: &str) -> Commit {
    let id = Uuid::new_v4().to_string();
    let stream = StreamId::new(&OrgId::from(org), AggregateType::Run, &id);
    write(&stream, event_log::Expected::Empty, 1).into()
}

/// The outcomes of a flood.
#[derive(Default)]
struct Flood {
    written: AtomicU64,
    held_back: Mutex<Vec<EventId>>,
}

impl Flood {
    async fn go_on(&self, log: &EventLog, ended: &AtomicBool) {
        while !ended.load(Ordering::Relaxed) {
            let commit = commit_of("much");
            match log.commit(commit.clone()).await {
                Ok(_) => {
                    self.written.fetch_add(1, Ordering::Relaxed);
                }
                Err(AppendError::HeldBack) => {
                    self.held_back.lock().unwrap().extend(ids(&commit));
                    sleep(Duration::from_millis(20)).await;
                }
                Err(error) => assert!(error.passes(), "{error}"),
            }
        }
    }

    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < SOON, "{what}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A server that answers only now and then.
async fn hesitate(own: &OwnServer, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        own.nats.pause();
        sleep(Duration::from_millis(40)).await;
        own.nats.resume();
        sleep(Duration::from_millis(10)).await;
    }
}

/// A caller that writes now and then, and is never refused.
async fn write_little(log: &EventLog, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        log.commit(commit_of("little")).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heavy_writer_leaves_a_slow_log_to_others_and_has_all_of_it_alone() {
    let own = OwnServer::start().await;
    let settings = LogSettings {
        log_least_messages: LEAST,
        ..own.settings.clone()
    };
    let log = EventLog::connect(&settings, keyring()).await.unwrap();
    for _ in 0..20 {
        log.commit(fresh(1)).await.unwrap();
    }
    let flood = Flood::default();
    let (no_flood, no_little) = (AtomicBool::default(), AtomicBool::default());
    let watched = async {
        let refused = |flood: &Flood| !flood.held_back.lock().unwrap().is_empty();
        flood.until("nobody is held back", refused).await;
        // As slowly as can be, once the pace has fallen so far.
        let begun = Instant::now();
        loop {
            let before = flood.written();
            sleep(Duration::from_secs(2)).await;
            if flood.written() - before <= LEAST * 2 * 3 / 2 {
                break;
            }
            assert!(begun.elapsed() < SOON, "the flood is not held back");
        }
        no_little.store(true, Ordering::Relaxed);
        let before = flood.written();
        let much = |flood: &Flood| flood.written() > before + LEAST * 40;
        flood.until("one that is alone is held back", much).await;
        no_flood.store(true, Ordering::Relaxed);
    };
    let floods = (0..AT_ONCE).map(|_| flood.go_on(&log, &no_flood));
    futures::join!(
        watched,
        join_all(floods),
        write_little(&log, &no_little),
        hesitate(&own, &no_flood),
    );
    own.nats.resume();
    let stored: HashSet<_> = ids_of(&everything(&log, Log::Events).await)
        .into_iter()
        .collect();
    let refused = flood.held_back.lock().unwrap();
    assert!(refused.iter().all(|id| !stored.contains(id)));
}
