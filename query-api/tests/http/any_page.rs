//! Every page, total and walk of a list is what sorting its rows gives, however they came and went.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::support::House;

const STATUSES: [&str; 2] = ["ACTIVE", "COMPLETED"];

/// An order by its number; its status and its moment, or `None` where it is deleted.
type Change = (usize, Option<(usize, i64)>);

/// An order's status and time, by its id.
type Orders = BTreeMap<String, (&'static str, DateTime<Utc>)>;

/// Rounds of changes: in each most orders share few moments, and some are written again.
fn rounds() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let put = prop::option::weighted(0.9, (0..STATUSES.len(), 0..4_i64));
    let changes = prop::collection::vec((0..150_usize, put), 1..250);
    prop::collection::vec(changes, 1..4)
}

/// Ids of which every third begins a block, and every ninth one of the second level.
async fn ids(house: &House) -> Vec<String> {
    sqlx::query_scalar(
        "WITH tried AS (
             SELECT 'id' || n AS id, sha256(convert_to('id' || n, 'UTF8')) AS hash
             FROM generate_series(1, 400000) AS n
         ), found AS (
             (SELECT id FROM tried WHERE hash < '\\x0004' LIMIT 16)
             UNION ALL (SELECT id FROM tried WHERE hash < '\\x01' AND hash >= '\\x0004' LIMIT 34)
             UNION ALL (SELECT id FROM tried WHERE hash >= '\\x01' LIMIT 100))
         SELECT id FROM found ORDER BY md5(id)",
    )
    .fetch_all(&house.pool)
    .await
    .unwrap()
}

async fn write(house: &House, changes: &[Change], ids: &[String], orders: &mut Orders) {
    let since: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
    for (number, put) in changes {
        let id = ids[*number].clone();
        match put {
            None => orders.remove(&id),
            Some((status, moment)) => {
                let at = since + TimeDelta::microseconds(*moment);
                orders.insert(id, (STATUSES[*status], at))
            }
        };
    }
    house.execute("DELETE FROM orders WHERE org_id = $1").await;
    sqlx::query(
        "INSERT INTO orders (org_id, id, order_number, status, amount, created_at, updated_at)
         SELECT $1, id, id, status, 1, at, at
         FROM UNNEST($2::text[], $3::text[], $4::timestamptz[]) AS new (id, status, at)",
    )
    .bind(house.org.as_str())
    .bind(orders.keys().collect::<Vec<_>>())
    .bind(orders.values().map(|order| order.0).collect::<Vec<_>>())
    .bind(orders.values().map(|order| order.1).collect::<Vec<_>>())
    .execute(&house.pool)
    .await
    .unwrap();
    house.count_lists().await;
}

/// Holds a list against the orders: every page by its number, and the walk by its links.
async fn compare(
    house: &House,
    orders: &Orders,
    status: &str,
    limit: usize,
) -> Result<(), TestCaseError> {
    let mut list: Vec<_> = orders
        .iter()
        .filter(|(_, (its, _))| status.is_empty() || *its == status)
        .map(|(id, (_, at))| (Reverse(*at), id.clone()))
        .collect();
    list.sort_unstable();
    let list: Vec<_> = list.into_iter().map(|(_, id)| id).collect();
    let filter = match status {
        "" => String::new(),
        status => format!("&status={status}"),
    };
    let first = format!("/api/v1/orders?limit={limit}{filter}");
    for page in 1..=list.len() / limit + 2 {
        let answer = house.get(&format!("{first}&page={page}")).await;
        let expected = list.iter().skip((page - 1) * limit).take(limit);
        let expected: Vec<_> = expected.cloned().collect();
        prop_assert_eq!(answer.all("id"), expected, "page {}", page);
        let total = answer.json()["total"].clone();
        prop_assert_eq!(total, list.len());
        prop_assert_eq!(answer.next().is_some(), page * limit < list.len());
    }
    prop_assert_eq!(house.walk(first).await, list);
    Ok(())
}

#[test]
fn every_page_and_every_walk_is_what_sorting_the_rows_gives() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let house = runtime.block_on(House::open());
    let ids = runtime.block_on(ids(&house));
    let mut runner = TestRunner::new(Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&(rounds(), 1..30_usize), |(rounds, limit)| {
        runtime.block_on(async {
            let mut orders = Orders::new();
            for changes in rounds {
                write(&house, &changes, &ids, &mut orders).await;
                for status in ["", STATUSES[0], STATUSES[1]] {
                    compare(&house, &orders, status, limit).await?;
                }
            }
            Ok(())
        })
    });
    runtime.block_on(house.close());
    outcome.unwrap();
}
