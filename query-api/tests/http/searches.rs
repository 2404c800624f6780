//! A search finds exactly the records that contain its text, whichever part of it is looked up.
//! However long searches take, other organizations read meanwhile.

use std::time::Duration;

use futures::future::{join, join_all};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use schemas::OrgId;
use sqlx::AssertSqlSafe;
use url::form_urlencoded;
use uuid::Uuid;

use crate::support::TestApi;

const ORDERS: usize = 2_000;
/// The number of searched texts.
const TEXTS: u32 = 60;

/// The number, the client and the address of an order, with both common and rare parts.
fn order(nth: usize) -> (String, String, String) {
    let client = match nth % 50 {
        0 => format!("50%_{} Ömer & Söhne", nth / 50),
        _ => format!("Client {}", nth % 97),
    };
    (
        format!("O-{nth}"),
        client,
        format!("Person{nth}@example.com"),
    )
}

async fn api_with_orders() -> TestApi {
    let api = TestApi::open().await;
    let (mut numbers, mut clients, mut addresses) = (Vec::new(), Vec::new(), Vec::new());
    for (number, client, address) in (0..ORDERS).map(order) {
        numbers.push(number);
        clients.push(client);
        addresses.push(address);
    }
    let insert = "INSERT INTO orders (org_id, id, order_number, client_name, client_email, status,
                                      amount, created_at, updated_at)
                  SELECT $1, number, number, client, address, 'ACTIVE', 1, now(), now()
                  FROM UNNEST($2::text[], $3::text[], $4::text[]) AS new (number, client, address)";
    let insert = sqlx::query(insert).bind(api.org.as_str());
    let insert = insert.bind(numbers).bind(clients).bind(addresses);
    insert.execute(&api.pool).await.unwrap();
    api
}

/// Returns how many orders contain a text in one of the three.
fn expected(text: &str) -> usize {
    let text = text.to_lowercase();
    let has = |held: &String| held.to_lowercase().contains(&text);
    let all = (0..ORDERS).map(order);
    all.filter(|(number, client, address)| [number, client, address].into_iter().any(has))
        .count()
}

/// A part of some order's text, sometimes followed by a part of another's.
fn texts() -> impl Strategy<Value = String> {
    let piece =
        (0..ORDERS, 0..3_usize, 0..16_usize, 1..16_usize).prop_map(|(nth, of, from, length)| {
            let (number, client, address) = order(nth);
            let text = [number, client, address][of].clone();
            let from = from % text.chars().count();
            text.chars().skip(from).take(length).collect::<String>()
        });
    prop_oneof![
        4 => piece.clone(),
        1 => (piece.clone(), piece).prop_map(|(one, other)| one + &other),
    ]
}

async fn is_found(api: &TestApi, text: String) -> Result<(), TestCaseError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    let sought: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    for limit in [1, 100] {
        let path = format!("/api/v1/orders?limit={limit}&q={sought}");
        let list = api.get(&path).await.json();
        let (of, on_page) = (expected(text), list["data"].as_array().unwrap().len());
        prop_assert_eq!(&list["total"], of, "{}", text);
        prop_assert_eq!(on_page, of.min(limit), "{}", text);
    }
    Ok(())
}

#[test]
fn a_text_is_found_in_what_has_it_and_in_nothing_else() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let api = runtime.block_on(api_with_orders());
    let check = |text: String| runtime.block_on(is_found(&api, text));
    let config = Config {
        cases: TEXTS,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config.clone())
        .run(&texts(), check)
        .unwrap();
    // From here on there are statistics, by which the rarest part of a text is looked up.
    let analyze = sqlx::query("ANALYZE orders").execute(&api.pool);
    runtime.block_on(analyze).unwrap();
    for text in [
        "Client 77",
        "client 7",
        "Person1999@",
        "50%_1 öm",
        "Client person",
    ] {
        check(text.to_owned()).unwrap();
    }
    TestRunner::new(config).run(&texts(), check).unwrap();
    runtime.block_on(api.close());
}

/// Three amounts, one name, and two times.
const EQUALS: &str = "INSERT INTO orders
        (org_id, id, order_number, client_name, status, amount, created_at, updated_at)
    SELECT $1, md5(n::text), 'O-' || n, 'Ada', 'ACTIVE', n % 3,
           timestamptz '2026-11-21' + make_interval(days => n % 2), now()
    FROM generate_series(0, 299) AS n";

#[tokio::test]
async fn records_of_equal_keys_are_listed_by_their_ids() {
    let api = TestApi::open().await;
    api.execute(EQUALS).await;
    for (sort, order) in [
        ("amount", "amount, id"),
        ("-amount", "amount DESC, id"),
        ("name", "id"),
        ("-name", "id"),
        ("createdAt", "created_at, id"),
        (
            "number",
            "lower(order_number) COLLATE \"C\", created_at DESC, id",
        ),
    ] {
        let statement = format!("SELECT id FROM orders WHERE org_id = $1 ORDER BY {order}");
        let sorted = sqlx::query_scalar(AssertSqlSafe(statement)).bind(api.org.as_str());
        let sorted: Vec<String> = sorted.fetch_all(&api.pool).await.unwrap();
        for limit in [7, 100] {
            let path = format!("/api/v1/orders?sort={sort}&limit={limit}");
            assert_eq!(api.walk(path.clone()).await, sorted, "{path}");
            let second = api.get(&format!("{path}&page=2")).await;
            let expected: Vec<_> = sorted.iter().skip(limit).take(limit).cloned().collect();
            assert_eq!(second.all("id"), expected, "{path}");
        }
    }
    api.close().await;
}

/// Returns how many statements wait for a lock.
async fn waiting(api: &TestApi) -> i64 {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let waiting = sqlx::query_scalar(waiting).fetch_one(&api.pool);
    waiting.await.unwrap()
}

#[tokio::test]
async fn slow_searches_of_one_organization_hold_up_no_other() {
    let api = TestApi::open().await;
    let other = OrgId::from(Uuid::new_v4());
    let key = format!("Bearer {}", api.key_for(&other, &["admin"]).await);
    // More than there are connections, and none of them ends until the table is free.
    let mut held = api.pool.begin().await.unwrap();
    let lock = sqlx::query("LOCK TABLE orders").execute(&mut *held);
    lock.await.unwrap();
    let searches = join_all((0..24).map(|_| api.get("/api/v1/orders?q=client")));
    let theirs = async {
        while waiting(&api).await == 0 {}
        // Lets the others come as far as they get.
        for _ in 0..100 {
            waiting(&api).await;
        }
        let headers = [("authorization", key.as_str())];
        let path = "/api/v1/records/contacts/c1";
        let answer = api.get_with(path, &headers).await;
        held.rollback().await.unwrap();
        answer.status
    };
    let both = tokio::time::timeout(Duration::from_secs(25), join(searches, theirs));
    let (found, status) = both.await.unwrap();
    assert_eq!(status, 404);
    assert!(found.iter().all(|answer| answer.status == 200));
    api.close().await;
}
