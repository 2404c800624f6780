//! Every filter and every order of a list, combined, equals filtering and sorting its rows.

use std::cmp::Ordering;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::support::TestApi;

const CITIES: [Option<&str>; 5] = [
    None,
    Some("Paris"),
    Some("PARIS"),
    Some("Łódź"),
    Some("b_%"),
];
const EMAILS: [Option<&str>; 4] = [None, Some("ada@x.org"), Some("Ada@X.org"), Some("b@x.org")];
const MOMENTS: i64 = 5;

#[derive(Clone, Debug)]
struct Client {
    id: String,
    city: Option<&'static str>,
    email: Option<&'static str>,
    is_active: bool,
    at: DateTime<Utc>,
}

#[derive(Clone, Debug)]
struct Asked {
    city: Option<&'static str>,
    is_active: Option<bool>,
    from: Option<i64>,
    length: Option<i64>,
    named: bool,
    sort: &'static str,
    descending: bool,
    limit: usize,
}

fn moment(nth: i64) -> DateTime<Utc> {
    let since: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
    since + TimeDelta::microseconds(nth)
}

fn clients() -> impl Strategy<Value = Vec<Client>> {
    let one = (
        prop::sample::select(&CITIES),
        prop::sample::select(&EMAILS),
        any::<bool>(),
        0..MOMENTS,
    );
    prop::collection::vec(one, 0..80).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        numbered
            .map(|(nth, (city, email, is_active, at))| Client {
                id: format!("c{}", nth * 7 % 80),
                city,
                email,
                is_active,
                at: moment(at),
            })
            .collect()
    })
}

fn asked() -> impl Strategy<Value = Asked> {
    const SORTS: [&str; 5] = ["createdAt", "name", "email", "city", "isActive"];
    (
        prop::option::of(prop::sample::select(&["paris", "łÓdź", "B_%", "x"][..])),
        prop::option::of(any::<bool>()),
        prop::option::of(-1..MOMENTS + 1),
        prop::option::of(0..MOMENTS + 1),
        prop::bool::weighted(0.3),
        (prop::sample::select(&SORTS), any::<bool>()),
        1..12_usize,
    )
        .prop_map(
            |(city, is_active, from, length, named, (sort, descending), limit)| Asked {
                city,
                is_active,
                from,
                length,
                named,
                sort,
                descending,
                limit,
            },
        )
}

impl Asked {
    fn path(&self) -> String {
        let sign = if self.descending { "-" } else { "" };
        let mut path = format!(
            "/api/v1/clients?sort={sign}{}&limit={}",
            self.sort, self.limit
        );
        let mut add = |name: &str, value: String| {
            let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
            path.extend(["&", name, "=", &value]);
        };
        if let Some(city) = self.city {
            add("city", city.to_owned());
        }
        if let Some(is_active) = self.is_active {
            add("isActive", is_active.to_string());
        }
        if let Some(from) = self.from {
            add("createdFrom", moment(from).to_rfc3339());
        }
        if let Some(before) = self.before() {
            add("createdBefore", moment(before).to_rfc3339());
        }
        if self.named {
            add("q", "ada@".to_owned());
        }
        path
    }

    fn before(&self) -> Option<i64> {
        Some(self.from.unwrap_or_default() + self.length?)
    }

    fn holds(&self, client: &Client) -> bool {
        let is_in =
            |city: &str| client.city.unwrap_or_default().to_lowercase() == city.to_lowercase();
        self.city.is_none_or(is_in)
            && self
                .is_active
                .is_none_or(|is_active| client.is_active == is_active)
            && self.from.is_none_or(|from| client.at >= moment(from))
            && self
                .before()
                .is_none_or(|before| client.at < moment(before))
            && (!self.named
                || client
                    .email
                    .unwrap_or_default()
                    .to_lowercase()
                    .contains("ada@"))
    }

    fn order(&self, a: &Client, b: &Client) -> Ordering {
        let lower = |text: Option<&str>| text.unwrap_or_default().to_lowercase();
        let newest = b.at.cmp(&a.at).then_with(|| a.id.cmp(&b.id));
        let grouped = match self.sort {
            "email" => Some(lower(a.email).cmp(&lower(b.email))),
            "city" => Some(lower(a.city).cmp(&lower(b.city))),
            "isActive" => Some(a.is_active.cmp(&b.is_active)),
            _ => None,
        };
        let by_id = a.id.cmp(&b.id);
        match grouped {
            Some(grouped) if self.descending => grouped.then(newest).reverse(),
            Some(grouped) => grouped.then(newest),
            None => {
                // Names are the ids, reversed.
                let key = match self.sort {
                    "name" => name(a).cmp(&name(b)),
                    _ => a.at.cmp(&b.at),
                };
                let key = if self.descending { key.reverse() } else { key };
                key.then(by_id)
            }
        }
    }
}

fn name(client: &Client) -> String {
    client.id.chars().rev().collect()
}

async fn write(api: &TestApi, clients: &[Client]) {
    api.execute("DELETE FROM clients WHERE org_id = $1").await;
    sqlx::query(
        "INSERT INTO clients (org_id, id, name, email, city, is_active, created_at, updated_at)
         SELECT $1, id, reverse(id), email, city, is_active, at, at
         FROM UNNEST($2::text[], $3::text[], $4::text[], $5::boolean[], $6::timestamptz[])
              AS new (id, email, city, is_active, at)",
    )
    .bind(api.org.as_str())
    .bind(
        clients
            .iter()
            .map(|one| one.id.as_str())
            .collect::<Vec<_>>(),
    )
    .bind(clients.iter().map(|one| one.email).collect::<Vec<_>>())
    .bind(clients.iter().map(|one| one.city).collect::<Vec<_>>())
    .bind(clients.iter().map(|one| one.is_active).collect::<Vec<_>>())
    .bind(clients.iter().map(|one| one.at).collect::<Vec<_>>())
    .execute(&api.pool)
    .await
    .unwrap();
    api.count_lists().await;
    api.execute(
        "INSERT INTO totals (org_id, kind, count)
             SELECT $1, 'clients', count(*) FROM clients WHERE org_id = $1",
    )
    .await;
}

/// Compares a list with the clients: every page by its number, and the walk by its links.
async fn compare(api: &TestApi, clients: &[Client], asked: &Asked) -> Result<(), TestCaseError> {
    let mut list: Vec<_> = clients.iter().filter(|one| asked.holds(one)).collect();
    list.sort_by(|a, b| asked.order(a, b));
    let list: Vec<_> = list.into_iter().map(|one| one.id.clone()).collect();
    let first = asked.path();
    for page in 1..=list.len() / asked.limit + 2 {
        let answer = api.get(&format!("{first}&page={page}")).await;
        let expected = list.iter().skip((page - 1) * asked.limit).take(asked.limit);
        let expected: Vec<_> = expected.cloned().collect();
        prop_assert_eq!(answer.all("id"), expected, "{} page {}", first, page);
        let total = answer.json()["total"].clone();
        prop_assert_eq!(total, list.len(), "{} page {}", first, page);
    }
    prop_assert_eq!(api.walk(first).await, list);
    Ok(())
}

#[test]
fn pages_walks_and_totals_are_what_filtering_and_sorting_the_rows_gives() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let api = runtime.block_on(TestApi::open());
    let mut runner = TestRunner::new(Config {
        cases: 64,
        failure_persistence: None,
        ..Config::default()
    });
    let lists = (clients(), prop::collection::vec(asked(), 1..6));
    let outcome = runner.run(&lists, |(clients, lists)| {
        runtime.block_on(async {
            write(&api, &clients).await;
            for asked in &lists {
                compare(&api, &clients, asked).await?;
            }
            Ok(())
        })
    });
    runtime.block_on(api.close());
    outcome.unwrap();
}

/// Spans of a list of several blocks, many of whose rows share a time.
#[tokio::test]
async fn a_span_is_counted_by_blocks_as_by_its_rows() {
    let api = TestApi::open().await;
    api
        .execute(
            "INSERT INTO orders (org_id, id, order_number, status, amount, created_at, updated_at)
             SELECT $1, 'o' || i, 'o' || i, CASE WHEN i % 3 = 0 THEN 'ACTIVE' ELSE 'CANCELLED' END, 1,
                    '2026-01-01T00:00:00Z'::timestamptz + make_interval(secs => i * i % 40), now()
             FROM generate_series(1, 3000) AS i",
        )
        .await;
    api.count_lists().await;
    for (from, before) in [
        (0, 40),
        (0, 1),
        (3, 17),
        (10, 10),
        (16, 20),
        (39, 60),
        (-9, 0),
        (50, 60),
    ] {
        for status in ["", "ACTIVE"] {
            let expected: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM orders WHERE org_id = $1 AND ($2 = '' OR status = $2)
                 AND created_at >= '2026-01-01T00:00:00Z'::timestamptz + make_interval(secs => $3)
                 AND created_at < '2026-01-01T00:00:00Z'::timestamptz + make_interval(secs => $4)",
            )
            .bind(api.org.as_str())
            .bind(status)
            .bind(f64::from(from))
            .bind(f64::from(before))
            .fetch_one(&api.pool)
            .await
            .unwrap();
            let time = |second: i32| (moment(0) + TimeDelta::seconds(second.into())).to_rfc3339();
            let state = match status {
                "" => String::new(),
                status => format!("&status={status}"),
            };
            let path = format!(
                "/api/v1/orders?createdFrom={}&createdBefore={}{state}",
                time(from),
                time(before)
            );
            assert_eq!(api.get(&path).await.json()["total"], expected, "{path}");
        }
    }
    api.close().await;
}
