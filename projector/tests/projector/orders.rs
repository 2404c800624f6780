//! However events are batched and redelivered: rows, totals and revenue of orders are a fold of the
//! log.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _, DurationRound as _, NaiveDate, TimeDelta, Utc};
use event_log::{Commit, Expected, Write};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use schemas::record::{Deleted, Order, OrderClient, OrderProduct, OrderStatus};
use schemas::{AggregateType, Event, Log, OrgId, StreamId};
use uuid::Uuid;

use crate::support::{World, eventually, new_event, start};

const STATUSES: [(OrderStatus, &str); 4] = [
    (OrderStatus::PaymentPending, "PAYMENT_PENDING"),
    (OrderStatus::Active, "ACTIVE"),
    (OrderStatus::Completed, "COMPLETED"),
    (OrderStatus::Cancelled, "CANCELLED"),
];

/// Times around the borders of months and of a year.
const TIMES: [&str; 6] = [
    "2025-12-31T23:59:59.999999Z",
    "2026-01-01T00:00:00Z",
    "2026-01-31T23:59:59.999999Z",
    "2026-02-01T00:00:00Z",
    "2026-02-28T23:59:59Z",
    "2026-03-01T00:00:00Z",
];

const AMOUNTS: [i64; 6] = [0, 1, -1, 4_999, i64::MAX, i64::MIN];

/// What happens to one of a few orders of two organizations.
#[derive(Clone, Debug)]
struct Change {
    org: usize,
    id: u8,
    /// Status, amount and time as indexes into the above; `None` deletes.
    put: Option<(usize, usize, usize)>,
}

fn change() -> impl Strategy<Value = Change> {
    let put = (0..STATUSES.len(), 0..AMOUNTS.len(), 0..TIMES.len());
    (0..2_usize, 0..4_u8, prop::option::weighted(0.8, put)).prop_map(|(org, id, put)| Change {
        org,
        id,
        put,
    })
}

/// Changes, the maximum number of events in a transaction, and after how many it is restarted.
fn history() -> impl Strategy<Value = (Vec<Change>, usize, usize)> {
    let changes = prop::collection::vec(change(), 1..50);
    (changes, 1..20_usize, 0..50_usize)
}

fn time(nth: usize) -> DateTime<Utc> {
    TIMES[nth].parse().unwrap()
}

fn event(id: &str, put: Option<(usize, usize, usize)>) -> Event {
    let Some((status, amount, at)) = put else {
        return Event::OrderDeleted(Deleted { id: id.into() });
    };
    let client = OrderClient {
        name: Some("Ada".to_owned()),
        email: None,
    };
    Event::OrderUpdated(Order {
        id: id.into(),
        order_number: format!("number {id}"),
        status: STATUSES[status].0,
        amount: AMOUNTS[amount],
        plan: None,
        client,
        product: OrderProduct { name: None },
        created_at: time(at),
    })
}

struct Writer<'a> {
    world: &'a World,
    orgs: [OrgId; 2],
    seen: BTreeMap<(usize, u8), u64>,
}

impl Writer<'_> {
    async fn append(&mut self, changes: &[Change]) {
        for Change { org, id, put } in changes {
            let name = id.to_string();
            let stream = StreamId::new(&self.orgs[*org], AggregateType::Order, &name);
            let before = self.seen.get(&(*org, *id)).copied().unwrap_or_default();
            let end = self.world.append(stream, before, vec![event(&name, *put)]);
            self.seen.insert((*org, *id), end.await);
        }
    }

    fn end(&self) -> u64 {
        self.seen.values().copied().max().unwrap_or_default()
    }
}

/// The data that can be read of one organization's orders.
#[derive(Debug, Default, PartialEq)]
struct Known {
    orders: BTreeMap<String, (String, i64, DateTime<Utc>)>,
    totals: BTreeMap<String, i64>,
    revenue: BTreeMap<NaiveDate, i128>,
    /// How many orders, and their revenue, in each quarter of an hour and each day.
    by_time: BTreeMap<(i16, DateTime<Utc>), (i64, i128)>,
}

/// The orders after all changes, counted one by one.
fn fold(changes: &[Change], org: usize) -> Known {
    let mut known = Known::default();
    for change in changes.iter().filter(|change| change.org == org) {
        let id = change.id.to_string();
        match change.put {
            None => known.orders.remove(&id),
            Some((status, amount, at)) => {
                let status = STATUSES[status].1.to_owned();
                known.orders.insert(id, (status, AMOUNTS[amount], time(at)))
            }
        };
    }
    for (status, amount, at) in known.orders.values() {
        *known.totals.entry(String::new()).or_default() += 1;
        *known.totals.entry(status.clone()).or_default() += 1;
        let brings_in = match status.as_str() {
            "ACTIVE" | "COMPLETED" => i128::from(*amount),
            _ => 0,
        };
        let month = NaiveDate::from_ymd_opt(at.year(), at.month(), 1).unwrap();
        *known.revenue.entry(month).or_default() += brings_in;
        for (minutes, length) in [(15, TimeDelta::minutes(15)), (1_440, TimeDelta::days(1))] {
            let begins = at.duration_trunc(length).unwrap();
            let (count, revenue) = known.by_time.entry((minutes, begins)).or_default();
            *count += 1;
            *revenue += brings_in;
        }
    }
    known.revenue.retain(|_, revenue| *revenue != 0);
    known
}

async fn read(world: &World, org: &OrgId) -> Known {
    let orders: Vec<(String, String, i64, DateTime<Utc>)> =
        sqlx::query_as("SELECT id, status, amount, created_at FROM orders WHERE org_id = $1")
            .bind(org.as_str())
            .fetch_all(&world.pool)
            .await
            .unwrap();
    let totals: Vec<(String, i64)> = sqlx::query_as(
        "SELECT state, count FROM totals WHERE org_id = $1 AND kind = 'orders' AND count <> 0",
    )
    .bind(org.as_str())
    .fetch_all(&world.pool)
    .await
    .unwrap();
    let revenue: Vec<(NaiveDate, String)> =
        sqlx::query_as("SELECT month, revenue::text FROM revenue_months WHERE org_id = $1")
            .bind(org.as_str())
            .fetch_all(&world.pool)
            .await
            .unwrap();
    let by_time: Vec<(i16, DateTime<Utc>, i64, String)> = sqlx::query_as(
        "SELECT minutes, begins, count, revenue::text FROM orders_by_time WHERE org_id = $1",
    )
    .bind(org.as_str())
    .fetch_all(&world.pool)
    .await
    .unwrap();
    let orders = orders.into_iter();
    let revenue = revenue.into_iter();
    let by_time = by_time.into_iter();
    Known {
        orders: orders
            .map(|(id, status, amount, at)| (id, (status, amount, at)))
            .collect(),
        totals: totals.into_iter().collect(),
        revenue: revenue
            .map(|(month, sum)| (month, sum.parse().unwrap()))
            .collect(),
        by_time: by_time
            .map(|(minutes, begins, count, sum)| ((minutes, begins), (count, sum.parse().unwrap())))
            .collect(),
    }
}

async fn check(
    world: &World,
    changes: &[Change],
    batch: usize,
    restart: usize,
) -> Result<(), TestCaseError> {
    let orgs = [(); 2].map(|()| OrgId::from(Uuid::new_v4()));
    let before = world.log.end(Log::Events).await.unwrap().sequence();
    let mut deps = world.deps();
    deps.settings.batch = batch;
    let (first, second) = changes.split_at(restart.min(changes.len()));
    let seen = BTreeMap::new();
    let mut writer = Writer { world, orgs, seen };
    writer.append(first).await;
    let projector = start(deps.clone());
    writer.append(second).await;
    projector.stop().await;
    let expected = [fold(changes, 0), fold(changes, 1)];
    for delivery in 0..2 {
        let projector = start(deps.clone());
        world.caught_up(Log::Events, writer.end()).await;
        projector.stop().await;
        for (org, expected) in writer.orgs.iter().zip(&expected) {
            prop_assert_eq!(&read(world, org).await, expected, "delivery {}", delivery);
        }
        // Everything is delivered once more, in other batches, onto the existing rows.
        deps.settings.batch = 21 - batch;
        world.project_again_from(before).await;
    }
    Ok(())
}

#[test]
fn orders_and_what_is_counted_of_them_are_a_fold_of_the_log() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::new());
    let mut runner = TestRunner::new(Config {
        cases: 32,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&history(), |(changes, batch, restart)| {
        runtime.block_on(check(&world, &changes, batch, restart))
    });
    runtime.block_on(world.end());
    outcome.unwrap();
}

#[tokio::test]
async fn orders_are_found_by_their_key_as_soon_as_there_are_many() {
    let world = World::new().await;
    let commit = |nth: usize| {
        let id = format!("o{nth}");
        Commit::from(Write {
            stream: world.stream(AggregateType::Order, &id),
            expected: Expected::Empty,
            events: vec![new_event(event(&id, Some((0, 0, 0))))],
        })
    };
    let mut end = 0;
    for first in (0..15_000).step_by(1_000) {
        let commits = (first..first + 1_000).map(commit);
        let written = world.log.commit_each(commits.collect()).await;
        let ends = written.into_iter().map(|end| end.unwrap().sequence());
        end = ends.max().unwrap();
    }
    let projector = world.start();
    world.caught_up(Log::Events, end).await;
    projector.stop().await;
    // Each order is searched before it is counted. An index by time has the key's columns too, and
    // would be scanned in full for each; in a table that is empty, or holds a small first batch,
    // any will do for a whole batch.
    let searched = "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes
                    WHERE relname = 'orders' AND indexrelname = 'orders_pkey'";
    eventually("the server has counted", async || {
        world.count(searched).await >= 15_000
    })
    .await;
    let searched = "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes
                    WHERE relname = 'orders' AND indexrelname <> 'orders_pkey'";
    let searched = world.count(searched).await;
    assert!(searched < 10_000, "{searched}");
    world.end().await;
}
