//! Three servers keep the log, and the nearest has not received all that the others have: what it
//! lacks is never taken for something that does not exist.

use std::time::Duration;

use event_log::{Binding, Commit, EventLog, Expected, LogSettings, Whose};
use local_servers::{Answers, LaggingCopy};
use schemas::{AccountId, AggregateType, Log, StreamId};
use tokio::time::timeout;

use crate::support::{OwnServer, fresh_run, keyring, org, stream, write};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A log with three events of one run, and a process whose copy receives no more.
struct Lagging {
    own: OwnServer,
    copy: LaggingCopy,
    log: EventLog,
    run: StreamId,
}

impl Lagging {
    async fn start() -> Self {
        let own = OwnServer::start().await;
        let mut copy = LaggingCopy::before(&own.nats).await.unwrap();
        let settings = LogSettings {
            log_replicas: 3,
            ..LogSettings::at(copy.url())
        };
        let log = EventLog::connect(&settings, keyring()).await.unwrap();
        let run = fresh_run();
        own.append(&run, Expected::Empty, 3).await;
        copy.hold_back(Answers::ReadsAndConsumers).await.unwrap();
        Self {
            own,
            copy,
            log,
            run,
        }
    }
}

impl OwnServer {
    async fn append(&self, stream: &StreamId, expected: Expected, count: usize) -> u64 {
        let commit = Commit::from(write(stream, expected, count));
        self.log.commit(commit).await.unwrap().sequence()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_the_copy_lacks_is_found() {
    let lagging = Lagging::start().await;
    let other = fresh_run();
    let sequence = lagging.own.append(&other, Expected::Empty, 2).await;
    let log = &lagging.log;
    for at in [sequence - 1, sequence] {
        assert!(log.get(Log::Events, at).await.unwrap().is_some(), "{at}");
    }
    let first = log.first(&other).await.unwrap();
    assert_eq!(first.unwrap().sequence, sequence - 1);
    let none = log.get(Log::Events, sequence + 1).await.unwrap();
    assert!(none.is_none());
    assert!(log.first(&fresh_run()).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aggregate_is_read_whole_whatever_of_it_the_copy_lacks() {
    let lagging = Lagging::start().await;
    let (log, run) = (&lagging.log, &lagging.run);
    lagging.own.append(run, Expected::At(3), 4).await;
    let other = fresh_run();
    lagging.own.append(&other, Expected::Empty, 2).await;
    assert_eq!(log.load(run).await.unwrap().len(), 7);
    assert_eq!(log.load(&other).await.unwrap().len(), 2);
    let page = log.page(Log::Events, &org(), None, 0, 100).await.unwrap();
    assert!(page.through < 9 && !page.complete);
    let mut after = 0;
    loop {
        let page = log.page(Log::Events, &org(), None, after, 100).await;
        let page = page.unwrap();
        after = page.through;
        if page.complete {
            break;
        }
    }
    assert_eq!(after, 9);
    let mut after = 0;
    loop {
        let page = log.page_of(run, after, 100).await.unwrap();
        after = page.through;
        if page.complete {
            break;
        }
    }
    assert_eq!(after, 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_of_each_is_the_last_and_not_the_copys() {
    let lagging = Lagging::start().await;
    let other = fresh_run();
    lagging.own.append(&lagging.run, Expected::At(3), 1).await;
    lagging.own.append(&other, Expected::Empty, 1).await;
    let wanted = [lagging.run.clone(), other, fresh_run()];
    let log = &lagging.log;
    for found in [
        log.last_of_each(&wanted).await.unwrap(),
        log.last_of_each_for_reader(&wanted).await.unwrap(),
    ] {
        let found = found
            .iter()
            .map(|last| last.as_ref().map(|last| last.sequence));
        assert_eq!(found.collect::<Vec<_>>(), [Some(4), Some(5), None]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_copys_end_is_not_taken_for_the_end() {
    let mut lagging = Lagging::start().await;
    let last = lagging.own.append(&lagging.run, Expected::At(3), 2).await;
    let log = &lagging.log;
    let only = [AggregateType::Run];
    let several = [AggregateType::Contact, AggregateType::Run];
    let mut tails = vec![
        log.tail(Log::Events, 0, &[]).await.unwrap(),
        log.tail(Log::Events, 0, &only).await.unwrap(),
        log.tail(Log::Events, 0, &several).await.unwrap(),
        log.read_for(Log::Events, Whose::All, 0).await.unwrap(),
    ];
    for tail in &mut tails {
        while tail.last_sequence() < 3 {
            let batch = timeout(TIMEOUT, tail.next(100)).await.unwrap();
            assert!(!batch.unwrap().caught_up);
        }
    }
    for after in [3, 4] {
        let tail = log.tail(Log::Events, after, &[]).await.unwrap();
        assert!(!tail.caught_up());
    }
    let follower = log.follow(Log::Events, 3, &[]).await.unwrap();
    assert!(!follower.caught_up());
    for kinds in [&only[..], &several] {
        let at_the_end = log.tail(Log::Events, last, kinds).await.unwrap();
        assert!(at_the_end.caught_up());
    }
    let of_none = log.tail(Log::Events, 0, &[AggregateType::Key]).await;
    assert!(of_none.unwrap().caught_up());
    lagging.copy.catch_up();
    for tail in &mut tails {
        while !tail.caught_up() {
            timeout(TIMEOUT, tail.next(100)).await.unwrap().unwrap();
        }
        assert_eq!(tail.last_sequence(), last);
    }
}

/// A copy that has lost touch with the leader for good must not hold up its followers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_hears_of_nothing_more_is_left() {
    let lagging = Lagging::start().await;
    let log = &lagging.log;
    let at_the_end = log.tail(Log::Events, 3, &[]).await.unwrap();
    assert!(at_the_end.caught_up());
    let last = lagging.own.append(&lagging.run, Expected::At(3), 2).await;
    let behind = log.tail(Log::Events, 3, &[]).await.unwrap();
    assert!(!behind.caught_up());
    lagging.copy.answer_only(Answers::Reads);
    for mut tail in [behind, at_the_end] {
        while tail.last_sequence() < last {
            timeout(TIMEOUT, tail.next(100)).await.unwrap().unwrap();
        }
    }
}

/// An expected event may be erased before the copy receives it: then nothing more comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_waiting_for_an_event_erased_meanwhile_learns_that_none_is_left() {
    let lagging = Lagging::start().await;
    let contact = stream(AggregateType::Contact, "c1");
    lagging.own.append(&contact, Expected::Empty, 1).await;
    let only = [AggregateType::Contact];
    let mut tail = lagging.log.tail(Log::Events, 3, &only).await.unwrap();
    assert!(!tail.caught_up());
    let mut follower = lagging.log.follow(Log::Events, 3, &[]).await.unwrap();
    lagging.own.log.erase(&contact).await.unwrap();
    let batch = timeout(TIMEOUT, tail.next(100)).await.unwrap().unwrap();
    assert!(batch.caught_up && batch.items.is_empty() && tail.caught_up());
    let batch = timeout(TIMEOUT, follower.next(100)).await.unwrap();
    assert!(batch.unwrap().caught_up && follower.caught_up());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_the_copy_lacks_is_not_forgotten() {
    let lagging = Lagging::start().await;
    let binding = Binding::Name(AccountId(7));
    let sealed = lagging.own.log.vault().seal(&binding, "Ada").await;
    let unsealed = lagging.log.vault().unseal(&binding, &sealed.unwrap()).await;
    assert_eq!(unsealed.unwrap(), "Ada");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_the_copy_lacks_is_there() {
    let mut lagging = Lagging::start().await;
    let bucket = lagging.own.log.bucket("notes", None).await.unwrap();
    let seen = lagging.log.bucket("notes", None).await.unwrap();
    lagging
        .copy
        .hold_back(Answers::ReadsAndConsumers)
        .await
        .unwrap();
    bucket.put("a", "1".into()).await.unwrap();
    assert_eq!(seen.get("a").await.unwrap().as_deref(), Some(&b"1"[..]));
    bucket.delete("a").await.unwrap();
    assert_eq!(seen.get("a").await.unwrap(), None);
    assert_eq!(seen.get("b").await.unwrap(), None);
}

/// A batch is refused as a whole. No innocent commit in it gets a conflict because the copy does
/// not know the event that it follows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_commit_gets_a_conflict_that_only_the_copy_sees() {
    let lagging = Lagging::start().await;
    let mut commits = Vec::new();
    for _ in 0..30 {
        let run = fresh_run();
        let last = lagging.own.append(&run, Expected::Empty, 1).await;
        commits.push(Commit::from(write(&run, Expected::At(last), 1)));
    }
    commits.push(write(&lagging.run, Expected::At(2), 1).into());
    let mut fates = lagging.log.commit_each(commits).await;
    assert!(fates.pop().unwrap().is_err());
    for fate in fates {
        fate.unwrap();
    }
}
