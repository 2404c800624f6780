//! Limiters as processes use them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use access::limit::{Limiter, Policy};
use futures::future::join_all;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::support::{Database, checks, hourly, window};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_at_once_share_the_quota_exactly() {
    let database = Database::create().await;
    let limiter = database.limiter(&window(3_600));
    let counter = hourly(&limiter, "one");
    let decisions = join_all((0..250).map(|_| limiter.check(&counter, 100, 1))).await;
    let admitted: HashSet<u64> = decisions
        .iter()
        .filter(|decision| decision.admitted())
        .map(|decision| decision.remaining)
        .collect();
    assert_eq!(
        admitted,
        (0..100).collect(),
        "each admitted check saw its own remainder"
    );
    for refused in decisions.iter().filter(|decision| !decision.admitted()) {
        assert_eq!(refused.remaining, 0);
        assert!(
            matches!(refused.retry_after, Some(3_590..=3_601)),
            "{refused:?}"
        );
    }
    database.drop().await;
}

#[tokio::test]
async fn a_decision_states_the_limit_what_remains_of_it_and_when_it_resets() {
    let database = Database::create().await;
    let limiter = database.limiter(&window(3_600));
    let counter = hourly(&limiter, "one");
    let first = limiter.check(&counter, 1_000, 1).await;
    assert_eq!(
        (first.policy, first.quota, first.window),
        (Policy::Hourly, 1_000, 3_600)
    );
    assert_eq!(
        (first.remaining, first.reset, first.retry_after),
        (999, 3_600, None)
    );
    database.drop().await;
}

#[tokio::test]
async fn a_cost_is_taken_whole_or_not_at_all() {
    let database = Database::create().await;
    let limiter = database.limiter(&window(3_600));
    let counter = Arc::new(limiter.counter(Policy::Locations, "7"));
    assert_eq!(limiter.check(&counter, 10, 6).await.remaining, 4);
    let too_much = limiter.check(&counter, 10, 5).await;
    assert!(!too_much.admitted());
    assert_eq!(too_much.remaining, 4);
    let fits = limiter.check(&counter, 10, 4).await;
    assert_eq!((fits.admitted(), fits.remaining), (true, 0));
    database.drop().await;
}

#[tokio::test]
async fn retry_after_is_true() {
    let database = Database::create().await;
    let limiter = database.limiter(&window(1));
    let counter = hourly(&limiter, "one");
    for _ in 0..3 {
        let refused = loop {
            let decision = limiter.check(&counter, 2, 1).await;
            if !decision.admitted() {
                break decision;
            }
        };
        // Refused again without a round trip, with the same promise.
        let again = limiter.check(&counter, 2, 1).await;
        assert!(
            again.retry_after <= refused.retry_after,
            "{again:?} {refused:?}"
        );
        sleep(Duration::from_secs(again.retry_after.unwrap())).await;
        assert!(limiter.check(&counter, 2, 1).await.admitted());
    }
    database.drop().await;
}

#[tokio::test]
async fn a_fixed_window_ends_for_all_at_once() {
    let database = Database::create().await;
    let mut settings = window(3_600);
    settings.minute = 2;
    let limiter = database.limiter(&settings);
    let counter = Arc::new(limiter.counter(Policy::Minute, "one"));
    let refused = loop {
        let last = checks(&limiter, &counter, 5, 6).await.pop().unwrap();
        if let Some(seconds) = last.retry_after {
            break seconds;
        }
    };
    assert!(refused <= 2);
    sleep(Duration::from_secs(refused)).await;
    let decisions = checks(&limiter, &counter, 5, 1).await;
    assert!(decisions[0].admitted());
    database.drop().await;
}

/// When a request was sent and when it was answered: it was counted in between.
type Admitted = (Instant, Instant);

/// Sends requests, keeping those that were admitted, until `enough` were, over all senders.
async fn send(
    limiter: Limiter,
    quota: u32,
    enough: usize,
    total: Arc<AtomicUsize>,
) -> Vec<Admitted> {
    let counter = hourly(&limiter, "shared");
    let mut admitted = Vec::new();
    while total.load(Ordering::Relaxed) < enough {
        let sent = Instant::now();
        if limiter.check(&counter, quota, 1).await.admitted() {
            admitted.push((sent, Instant::now()));
            total.fetch_add(1, Ordering::Relaxed);
        } else {
            sleep(Duration::from_millis(3)).await;
        }
    }
    admitted
}

/// Two processes, asked by many senders for three quotas, admit no more than one in any window and
/// no less than the quota allows, except for a second.
async fn two_processes_share(quota: u32) {
    let span = Duration::from_secs(2);
    let one = usize::try_from(quota).unwrap();
    let database = Database::create().await;
    let processes = [database.limiter(&window(2)), database.limiter(&window(2))];
    let total = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let senders = processes
        .iter()
        .cycle()
        .take(24)
        .map(|limiter| tokio::spawn(send(limiter.clone(), quota, 3 * one, total.clone())));
    let mut admitted: Vec<Admitted> = Vec::new();
    for sender in join_all(senders).await {
        admitted.extend(sender.unwrap());
    }

    admitted.sort_by_key(|(sent, _)| *sent);
    for over in admitted.windows(one + 1) {
        let first_sent = over[0].0;
        let last_answered = over.iter().map(|(_, answered)| *answered).max().unwrap();
        let apart = last_answered - first_sent;
        assert!(
            apart >= span,
            "{} were admitted within {apart:?}",
            over.len()
        );
    }
    // Strict by a second at most: three quotas fit into two windows, each a second longer.
    assert!(began.elapsed() < 2 * (span + Duration::from_secs(1)) + Duration::from_secs(5));
    assert!(processes.iter().all(|limiter| limiter.outage().is_none()));
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_never_admit_more_than_the_quota_in_any_window() {
    two_processes_share(40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_pay_ahead_never_do_either() {
    two_processes_share(4_000).await;
}

async fn counted(database: &Database) -> usize {
    let counted: i64 =
        sqlx::query_scalar("SELECT coalesce(sum(earlier + used), 0)::bigint FROM limit_windows")
            .fetch_one(&database.pool)
            .await
            .unwrap();
    usize::try_from(counted).unwrap()
}

#[tokio::test]
async fn what_is_paid_for_ahead_and_not_used_is_given_back() {
    let database = Database::create().await;
    let limiter = database.limiter(&window(3_600));
    let counter = hourly(&limiter, "busy");
    let mut admitted = 0;
    crate::support::until("checks paid for ahead", async || {
        let decision = limiter.check(&counter, 100_000, 1).await;
        admitted += 1;
        assert_eq!(decision.remaining, 100_000 - admitted as u64);
        counted(&database).await > admitted
    })
    .await;
    crate::support::until("the rest given back", async || {
        counted(&database).await == admitted
    })
    .await;
    let next = limiter.check(&counter, 100_000, 1).await;
    assert_eq!(next.remaining, 100_000 - admitted as u64 - 1);
    database.drop().await;
}

#[tokio::test]
async fn a_limiter_that_ends_gives_back_what_it_paid_for() {
    let database = Database::create().await;
    let end = CancellationToken::new();
    let limiter = Limiter::start(&database.pool, &window(3_600), end.clone());
    let counter = hourly(&limiter, "busy");
    let mut admitted = 0;
    crate::support::until("checks paid for ahead", async || {
        limiter.check(&counter, 100_000, 1).await;
        admitted += 1;
        let paid = counted(&database).await > admitted;
        if paid {
            end.cancel();
        }
        paid
    })
    .await;
    crate::support::until("the rest given back", async || {
        counted(&database).await == admitted
    })
    .await;
    database.drop().await;
}

/// The sum that the key pages show: the quarters, and the second that is in none yet.
async fn kept(database: &Database) -> (i64, i64) {
    sqlx::query_as(
        "SELECT coalesce((SELECT sum(used) FROM limit_quarters), 0)::bigint,
                coalesce((SELECT sum(used) FROM limit_windows WHERE counter LIKE 'hourly/%'), 0)::bigint",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn what_a_key_has_used_is_known_when_its_window_has_ended() {
    let database = Database::create().await;
    let limiter = database.limiter(&window(1));
    let counter = hourly(&limiter, "shop");
    let person = Arc::new(limiter.counter(Policy::Requests, "person"));
    let mut admitted = 0;
    crate::support::until("several seconds of use", async || {
        admitted += i64::from(limiter.check(&counter, 100_000, 1).await.admitted());
        limiter.check(&person, 100_000, 1).await;
        let seconds: i64 = sqlx::query_scalar("SELECT count(*) FROM limit_seconds")
            .fetch_one(&database.pool)
            .await
            .unwrap();
        kept(&database).await.0 > 0 && seconds > 1
    })
    .await;
    crate::support::until("what was paid for ahead to be given back", async || {
        let (quarters, present) = kept(&database).await;
        quarters + present == admitted
    })
    .await;
    crate::support::until("the idle counter to be swept away", async || {
        sqlx::query("SELECT sweep_limits(100)")
            .execute(&database.pool)
            .await
            .unwrap();
        kept(&database).await == (admitted, 0)
    })
    .await;
    sqlx::query("UPDATE limit_quarters SET quarter = quarter - 91000")
        .execute(&database.pool)
        .await
        .unwrap();
    sqlx::query("SELECT sweep_limits(100)")
        .execute(&database.pool)
        .await
        .unwrap();
    assert_eq!(kept(&database).await, (0, 0), "a day later nothing is kept");
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_with_many_keys_do_not_lock_each_other_out() {
    let database = Database::create().await;
    let processes = [database.limiter(&window(1)), database.limiter(&window(1))];
    let callers = (0..60).map(|nth| {
        let limiter = processes[nth % 2].clone();
        async move {
            for round in 0..60 {
                // Different processes meet the same keys in different order.
                let caller = format!("key{}", (round * (nth % 7 + 1) + nth) % 40);
                limiter.check(&hourly(&limiter, &caller), 100_000, 1).await;
            }
        }
    });
    join_all(callers.map(tokio::spawn)).await;
    assert!(processes.iter().all(|limiter| limiter.outage().is_none()));
    let sums: (i64, i64) = sqlx::query_as(
        "SELECT sum(earlier)::bigint, coalesce((SELECT sum(used) FROM limit_seconds), 0)::bigint
           FROM limit_windows",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(
        sums.0, sums.1,
        "the running totals are the sums of their seconds"
    );
    database.drop().await;
}

#[tokio::test]
async fn counters_that_nobody_uses_are_swept_away() {
    let database = Database::create().await;
    let limiter = database.limiter(&window(1));
    checks(&limiter, &hourly(&limiter, "gone"), 5, 3).await;
    let sweep = async || {
        let swept: i64 = sqlx::query_scalar("SELECT sweep_limits(10)")
            .fetch_one(&database.pool)
            .await
            .unwrap();
        swept == 1
    };
    assert!(!sweep().await, "what still counts stays");
    crate::support::until("the counter swept away", sweep).await;
    database.drop().await;
}
