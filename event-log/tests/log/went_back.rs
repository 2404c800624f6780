//! A log whose servers' data was put back, or that lost its end: it is reported, and not followed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use event_log::{EventLog, Expected, Instead, Mark, MarkError, Tail, TailError};
use schemas::{Log, StreamId};
use tokio::time::timeout;

use crate::support::{OwnServer, fresh_run, keyring, write};

const TIMEOUT: Duration = Duration::from_secs(20);

fn data(own: &OwnServer) -> PathBuf {
    own.home.path().join("nats/data")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.unwrap().path(), to.to_owned());
        let to = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &to);
        } else {
            fs::copy(&entry, to).unwrap();
        }
    }
}

async fn append(log: &EventLog, run: &StreamId, expected: Expected, count: usize) {
    let commit = write(run, expected, count);
    log.commit(commit.into()).await.unwrap();
}

/// A log with five events of a run, whose server's data is put back to when there were three.
struct PutBack {
    own: OwnServer,
    run: StreamId,
    saved: PathBuf,
}

impl PutBack {
    async fn begin() -> Self {
        let mut own = OwnServer::start().await;
        let run = fresh_run();
        append(&own.log, &run, Expected::Empty, 3).await;
        own.nats.stop().await.unwrap();
        let saved = own.home.path().join("saved");
        copy(&data(&own), &saved);
        own.nats.restart().await.unwrap();
        own.reopen().await;
        append(&own.log, &run, Expected::At(3), 2).await;
        Self { own, run, saved }
    }

    async fn put_back(&mut self) {
        self.own.nats.stop().await.unwrap();
        fs::remove_dir_all(data(&self.own)).unwrap();
        copy(&self.saved, &data(&self.own));
        self.own.nats.restart().await.unwrap();
    }
}

impl OwnServer {
    async fn reopen(&mut self) {
        self.log = EventLog::connect(&self.settings, keyring()).await.unwrap();
    }
}

async fn until(tail: &mut Tail, last: u64) -> Mark {
    loop {
        let batch = timeout(TIMEOUT, tail.next(100)).await.unwrap().unwrap();
        if batch.last_sequence == last {
            return batch.mark();
        }
    }
}

fn went_back(error: TailError) -> (u64, Instead) {
    match error {
        TailError::WentBack(went_back) => (went_back.sequence, went_back.now),
        other @ TailError::Hole { .. } => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_of_a_log_that_went_back_reports_it_and_stops() {
    let mut log = PutBack::begin().await;
    let mut tail = log.own.log.tail(Log::Events, 0, &[]).await.unwrap();
    until(&mut tail, 5).await;
    log.put_back().await;
    let next = timeout(TIMEOUT, tail.next(100)).await.unwrap();
    assert_eq!(went_back(next.unwrap_err()), (5, Instead::End(3)));
    // Other events take the numbers of those that are gone.
    log.own.reopen().await;
    append(&log.own.log, &log.run, Expected::At(3), 4).await;
    for _ in 0..2 {
        let next = timeout(TIMEOUT, tail.next(100)).await.unwrap();
        assert_eq!(went_back(next.unwrap_err()), (5, Instead::Another));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_that_share_a_reader_all_learn_that_the_log_went_back() {
    let mut log = PutBack::begin().await;
    let mut followers = Vec::new();
    for _ in 0..2 {
        let mut follower = log.own.log.follow(Log::Events, 0, &[]).await.unwrap();
        while follower.last_sequence() < 5 {
            timeout(TIMEOUT, follower.next(100)).await.unwrap().unwrap();
        }
        // At the end they share what the process reads.
        assert!(
            timeout(Duration::from_millis(50), follower.next(1))
                .await
                .is_err()
        );
        followers.push(follower);
    }
    log.put_back().await;
    for follower in &mut followers {
        let next = timeout(TIMEOUT, follower.next(100)).await.unwrap();
        assert_eq!(went_back(next.unwrap_err()).0, 5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saved_mark_shows_whether_the_log_is_still_the_same() {
    let mut log = PutBack::begin().await;
    let mut tail = log.own.log.tail(Log::Events, 0, &[]).await.unwrap();
    let mark = until(&mut tail, 5).await;
    let of_three = async |own: &OwnServer| {
        let third = own.log.get(Log::Events, 3).await.unwrap().unwrap();
        Mark {
            sequence: 3,
            event: Some(third.id),
        }
    };
    let earlier = of_three(&log.own).await;
    log.own.log.check(Log::Events, mark).await.unwrap();
    log.put_back().await;
    log.own.reopen().await;
    let checked = async |log: &EventLog, mark| match log.check(Log::Events, mark).await {
        Ok(()) => None,
        Err(MarkError::WentBack(went_back)) => Some(went_back.now),
        Err(error) => panic!("{error}"),
    };
    let now = &log.own.log;
    assert_eq!(checked(now, mark).await, Some(Instead::End(3)));
    let unnamed = Mark {
        event: None,
        ..mark
    };
    assert_eq!(checked(now, unnamed).await, Some(Instead::End(3)));
    assert_eq!(checked(now, earlier).await, None);
    append(now, &log.run, Expected::At(3), 4).await;
    assert_eq!(checked(now, mark).await, Some(Instead::Another));
    assert_eq!(checked(now, earlier).await, None);
    // What was erased since shows nothing.
    now.erase(&log.run).await.unwrap();
    assert_eq!(checked(now, earlier).await, None);
    assert_eq!(checked(now, Mark::default()).await, None);
}
