//! Nobody waits for ever: a server that is gone or hangs is reported within the configured time.

use std::time::{Duration, Instant};

use event_log::{AppendError, Binding, EventLog, LogSettings, ReadError, VaultError};
use futures::future::join_all;
use local_servers::{Proxy, Way};
use schemas::{AccountId, Log};

use crate::load::{Told, assert_told_the_truth};
use crate::support::{OwnServer, fresh, fresh_run, keyring, org};

/// The configured time and what a busy machine adds.
const APPEND_LIMIT: Duration = Duration::from_secs(4);
const READ_LIMIT: Duration = Duration::from_secs(6);
/// Longer than a command waits for what it reads.
const SLOW: Duration = Duration::from_millis(2_500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_reported_in_time_and_found_again() {
    let own = OwnServer::start().await;
    own.nats.pause();
    let commits: Vec<_> = (0..200).map(|n| fresh(1 + n % 3)).collect();
    let timed = commits.iter().map(async |commit| {
        let started = Instant::now();
        let outcome = own.log.commit(commit.clone()).await;
        (Told::new(commit, outcome), started.elapsed())
    });
    let mut told = Vec::new();
    for (one, took) in join_all(timed).await {
        assert!(matches!(one.outcome, Err(AppendError::Unavailable(_))));
        assert!(took < APPEND_LIMIT, "{took:?}");
        told.push(one);
    }
    own.nats.resume();
    let back = async {
        loop {
            let commit = fresh(1);
            let outcome = own.log.commit(commit.clone()).await;
            told.push(Told::new(&commit, outcome.clone()));
            if outcome.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), back)
        .await
        .unwrap();
    assert_told_the_truth(&own.log, &told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_and_secrets_do_not_wait_for_a_server_that_hangs() {
    let own = OwnServer::start().await;
    let run = fresh_run();
    own.nats.pause();
    let log = &own.log;
    let name = Binding::Name(AccountId(1));
    let unavailable = |error| matches!(error, ReadError::Unavailable(_));
    let asked = async {
        futures::join!(
            async { log.load(&run).await.map(drop).is_err_and(unavailable) },
            async { log.last(&run).await.map(drop).is_err_and(unavailable) },
            async {
                log.last_of_each(std::slice::from_ref(&run))
                    .await
                    .map(drop)
                    .is_err_and(unavailable)
            },
            async {
                log.get(Log::Events, 1)
                    .await
                    .map(drop)
                    .is_err_and(unavailable)
            },
            async { log.end(Log::Events).await.map(drop).is_err_and(unavailable) },
            async { log.vault().seal(&name, "x").await.is_err() },
            async { log.vault().forget(&name.owner()).await.is_err() },
        )
    };
    let told = tokio::time::timeout(READ_LIMIT, Box::pin(asked)).await;
    assert_eq!(told, Ok((true, true, true, true, true, true, true)));
}

/// Asking again instead would leave a server that is too busy no time for anything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_the_log_waits_for_a_slow_server_but_not_for_a_restarted_one() {
    let mut own = OwnServer::start().await;
    let commit = fresh(3);
    own.log.commit(commit).await.unwrap();
    let (log, org) = (own.log.clone(), org());
    let page = async || log.page(Log::Events, &org, None, 0, 10).await;
    own.nats.pause();
    let resumed = async {
        tokio::time::sleep(SLOW).await;
        own.nats.resume();
    };
    let (page_of_slow, ()) = futures::join!(page(), resumed);
    assert_eq!(page_of_slow.unwrap().items.len(), 3);
    own.nats.pause();
    let restarted = async {
        tokio::time::sleep(SLOW).await;
        own.nats.kill();
        own.nats.restart().await.unwrap();
    };
    let asked = async { futures::join!(page(), restarted) };
    let (page_of_old, ()) = tokio::time::timeout(READ_LIMIT, asked).await.unwrap();
    assert!(matches!(page_of_old, Err(ReadError::Unavailable(_))));
}

/// Sending everything again as early as ever would get no answer in the configured time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_to_a_server_that_has_become_slow_are_waited_for() {
    let own = OwnServer::start().await;
    let url = own.nats.url();
    let way = Proxy::before(&url).unwrap();
    let settings = LogSettings {
        nats_url: Some(way.instead_of(&url)),
        log_timeout_ms: 10_000,
        ..own.settings.clone()
    };
    let log = EventLog::connect(&settings, keyring()).await.unwrap();
    way.set(Way::far(Duration::from_millis(500)));
    let outcome = log.commit(fresh(1)).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    let outcomes = log.commit_each((0..200).map(|n| fresh(1 + n % 3)).collect());
    for outcome in outcomes.await {
        assert!(outcome.is_ok(), "{outcome:?}");
    }
}

/// Giving up as early as ever, it would never begin.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_whose_answers_come_late_is_followed_after_some_attempts() {
    let own = OwnServer::start().await;
    own.log.commit(fresh(3)).await.unwrap();
    let url = own.nats.url();
    let way = Proxy::before(&url).unwrap();
    let settings = LogSettings {
        nats_url: Some(way.instead_of(&url)),
        ..own.settings.clone()
    };
    let log = EventLog::connect(&settings, keyring()).await.unwrap();
    // The round trip takes longer than the first attempt waits.
    way.set(Way::far(Duration::from_millis(1_100)));
    let begun = async {
        loop {
            match log.follow(Log::Events, 0, &[]).await {
                Ok(follower) => return follower,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let limit = Duration::from_secs(30);
    let follower = tokio::time::timeout(limit, begun).await.unwrap();
    assert_eq!(follower.pending(), 3);
}

/// The time is a setting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_takes_no_longer_than_was_set() {
    let own = OwnServer::start().await;
    let settings = LogSettings {
        log_timeout_ms: 300,
        ..own.settings.clone()
    };
    let log = EventLog::connect(&settings, keyring()).await.unwrap();
    own.nats.pause();
    let started = Instant::now();
    let outcomes = log.commit_each((0..50).map(|n| fresh(1 + n % 2)).collect());
    assert!(outcomes.await.iter().all(Result::is_err));
    let took = started.elapsed();
    assert!(took > Duration::from_millis(250), "{took:?}");
    assert!(took < Duration::from_millis(1_500), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_gone_is_reported_at_once() {
    let mut own = OwnServer::start().await;
    assert!(own.log.is_connected());
    own.nats.kill();
    let until = async |wanted: bool| {
        while own.log.is_connected() != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, until(false)).await.unwrap();
    let started = Instant::now();
    let outcome = own.log.commit(fresh(1)).await;
    assert!(matches!(outcome, Err(AppendError::Unavailable(_))));
    assert!(own.log.load(&fresh_run()).await.is_err());
    assert!(own.log.end(Log::Events).await.is_err());
    assert!(own.log.tail(Log::Events, 0, &[]).await.is_err());
    let sealed = own
        .log
        .vault()
        .seal(&Binding::Name(AccountId(1)), "x")
        .await;
    assert!(matches!(sealed, Err(VaultError::Unavailable(_))));
    assert!(started.elapsed() < Duration::from_millis(500));
    own.nats.restart().await.unwrap();
    tokio::time::timeout(limit, until(true)).await.unwrap();
    let position = own.log.commit(fresh(1)).await.unwrap();
    assert_eq!(
        position.sequence(),
        1,
        "what was refused was not kept for later"
    );
}
