//! Every page, total and walk of a list equals the sorted rows, after any changes to them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use url::form_urlencoded;

use crate::support::TestApi;

/// The number of statuses tested per kind.
const STATUSES: usize = 6;

/// A record by its number, with its status and time, or `None` if it is deleted.
type Change = (usize, Option<(usize, i64)>);

/// A record's status and time, by its id.
type Records = BTreeMap<String, (String, DateTime<Utc>)>;

/// Rows that are listed by status.
struct Kind {
    list: &'static str,
    clear: &'static str,
    insert: &'static str,
    /// The statuses of records; empty for none.
    statuses: [String; STATUSES],
    /// The parameter that filters the list.
    filter: &'static str,
    /// The values to filter the list by; empty for all.
    asked: Vec<String>,
    /// Whether a status matches a filter, both in lower case.
    fits: fn(&str, &str) -> bool,
}

impl Kind {
    fn orders() -> Self {
        let statuses = [
            "ACTIVE",
            "COMPLETED",
            "ACTIVE",
            "COMPLETED",
            "ACTIVE",
            "ACTIVE",
        ];
        Self {
            list: "/api/v1/orders",
            clear: "DELETE FROM orders WHERE org_id = $1",
            insert:
                "INSERT INTO orders
                         (org_id, id, order_number, status, amount, created_at, updated_at)
                     SELECT $1, id, id, status, 1, at, at
                     FROM UNNEST($2::text[], $3::text[], $4::timestamptz[]) AS new (id, status, at)",
            statuses: statuses.map(str::to_owned),
            filter: "status",
            asked: ["", "ACTIVE", "COMPLETED"].map(str::to_owned).into(),
            fits: |status, asked| status == asked,
        }
    }

    /// Texts that differ only in case are the same, including those of which more than the
    /// beginning must be compared.
    fn leads() -> Self {
        let beginning = "Ü".repeat(100);
        let statuses = [
            "",
            "New",
            "NEW",
            "Łódź",
            &format!("{beginning}a"),
            &format!("{beginning}b"),
        ];
        let asked = ["", "neW", "łódŹ", &"ü".repeat(99), &format!("{beginning}A")];
        Self {
            list: "/api/v1/leads",
            clear: "DELETE FROM leads WHERE org_id = $1",
            insert:
                "INSERT INTO leads (org_id, id, name, status, score, created_at, updated_at)
                     SELECT $1, id, id, nullif(status, ''), 1, at, at
                     FROM UNNEST($2::text[], $3::text[], $4::timestamptz[]) AS new (id, status, at)",
            statuses: statuses.map(str::to_owned),
            filter: "status",
            asked: asked.map(str::to_owned).into(),
            fits: |status, asked| status == asked,
        }
    }

    /// By their event's type, filtered by a part of it: several lists are shown as one.
    fn deliveries() -> Self {
        let types = [
            "run.started",
            "run.succeeded",
            "run.failed",
            "order.created",
            "order.updated",
            "custom.run_%",
        ];
        let asked = ["run.f", "RUN.S", "order", "run", "run_%", "."];
        Self {
            list: "/api/v1/webhooks/hook/deliveries",
            clear: "DELETE FROM deliveries WHERE org_id = $1",
            insert: "WITH endpoint AS (
                     INSERT INTO webhooks (org_id, webhook_id, url, events, status, created_at,
                         updated_at)
                     VALUES ($1, 'hook', 'https://example.com/', '{}', 'ENABLED', now(), now())
                     ON CONFLICT DO NOTHING)
                 INSERT INTO deliveries (org_id, delivery_id, webhook_id, event_id, event_sequence,
                     event_type, status, attempts, created_at, changed_at)
                 SELECT $1, id, 'hook', gen_random_uuid(), 1, type, 'SUCCEEDED', '[]', at, at
                 FROM UNNEST($2::text[], $3::text[], $4::timestamptz[]) AS new (id, type, at)",
            statuses: types.map(str::to_owned),
            filter: "q",
            asked: asked.map(str::to_owned).into(),
            fits: |kind, asked| kind.contains(asked),
        }
    }

    async fn write(
        &self,
        api: &TestApi,
        changes: &[Change],
        ids: &[String],
        records: &mut Records,
    ) {
        let since: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        for (number, put) in changes {
            let id = ids[*number].clone();
            match put {
                None => records.remove(&id),
                Some((status, moment)) => {
                    let at = since + TimeDelta::microseconds(*moment);
                    records.insert(id, (self.statuses[*status].clone(), at))
                }
            };
        }
        api.execute(self.clear).await;
        sqlx::query(self.insert)
            .bind(api.org.as_str())
            .bind(records.keys().collect::<Vec<_>>())
            .bind(records.values().map(|one| &one.0).collect::<Vec<_>>())
            .bind(records.values().map(|one| one.1).collect::<Vec<_>>())
            .execute(&api.pool)
            .await
            .unwrap();
        api.count_lists().await;
    }

    /// Compares a list with the records: every page by its number, and the walk by its links.
    async fn compare(
        &self,
        api: &TestApi,
        records: &Records,
        asked: &str,
        limit: usize,
    ) -> Result<(), TestCaseError> {
        let is_listed = |status: &str| {
            asked.is_empty() || (self.fits)(&status.to_lowercase(), &asked.to_lowercase())
        };
        let mut list: Vec<_> = records
            .iter()
            .filter(|(_, (status, _))| is_listed(status))
            .map(|(id, (_, at))| (Reverse(*at), id.clone()))
            .collect();
        list.sort_unstable();
        let list: Vec<_> = list.into_iter().map(|(_, id)| id).collect();
        let given: String = form_urlencoded::byte_serialize(asked.as_bytes()).collect();
        let filter = match given.as_str() {
            "" => String::new(),
            given => format!("&{}={given}", self.filter),
        };
        let first = format!("{}?limit={limit}{filter}", self.list);
        for page in 1..=list.len() / limit + 2 {
            let answer = api.get(&format!("{first}&page={page}")).await;
            let expected = list.iter().skip((page - 1) * limit).take(limit);
            let expected: Vec<_> = expected.cloned().collect();
            prop_assert_eq!(answer.all("id"), expected, "{} page {}", first, page);
            let total = answer.json()["total"].clone();
            prop_assert_eq!(total, list.len(), "{} page {}", first, page);
            prop_assert_eq!(answer.next().is_some(), page * limit < list.len());
        }
        prop_assert_eq!(api.walk(first).await, list);
        Ok(())
    }
}

/// Rounds of changes: in each, most records share a few times, and some are written again.
fn rounds() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let put = prop::option::weighted(0.9, (0..STATUSES, 0..4_i64));
    let changes = prop::collection::vec((0..150_usize, put), 1..250);
    prop::collection::vec(changes, 1..4)
}

/// Returns ids of which every third begins a block, and every ninth one of the second level.
async fn ids(api: &TestApi) -> Vec<String> {
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
    .fetch_all(&api.pool)
    .await
    .unwrap()
}

#[test]
fn every_page_and_every_walk_is_what_sorting_the_rows_gives() {
    check_histories(&Kind::orders());
}

#[test]
fn pages_and_walks_of_free_text_are_what_sorting_the_rows_gives() {
    check_histories(&Kind::leads());
}

#[test]
fn pages_and_walks_of_a_part_of_a_type_are_what_sorting_the_rows_gives() {
    check_histories(&Kind::deliveries());
}

fn check_histories(kind: &Kind) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let api = runtime.block_on(TestApi::open());
    let ids = runtime.block_on(ids(&api));
    let mut runner = TestRunner::new(Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&(rounds(), 1..30_usize), |(rounds, limit)| {
        runtime.block_on(async {
            let mut records = Records::new();
            for changes in rounds {
                kind.write(&api, &changes, &ids, &mut records).await;
                for asked in &kind.asked {
                    kind.compare(&api, &records, asked, limit).await?;
                }
            }
            Ok(())
        })
    });
    runtime.block_on(api.close());
    outcome.unwrap();
}
