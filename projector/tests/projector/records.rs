//! Records of every kind: rows and totals.

use schemas::{AggregateType, Event, Log};
use serde_json::{Value, json};

use crate::support::World;

/// A kind's singular and table, a full record and a minimal one.
fn kinds() -> Vec<(AggregateType, &'static str, Value, Value)> {
    vec![
        (
            AggregateType::Company,
            "companies",
            json!({"name": "a", "domain": "b", "industry": "c", "phone": "d", "email": "e",
                "address": "f", "city": "g", "country": "h", "employees": 1,
                "annual_revenue": -2, "owner": "i"}),
            json!({"name": "z"}),
        ),
        (
            AggregateType::Deal,
            "deals",
            json!({"title": "a", "stage": "b", "amount": -1, "currency": "c", "probability": 12.5,
                "company_id": "d", "company_name": "e", "contact_id": "f", "contact_name": "g",
                "owner": "h", "expected_close_date": "2026-02-28"}),
            json!({"title": "z"}),
        ),
        (
            AggregateType::Contact,
            "contacts",
            json!({"first_name": "a", "last_name": "b", "email": "c", "phone": "d",
                "job_title": "e", "company_id": "f", "company_name": "g", "city": "h",
                "country": "i", "owner": "j"}),
            json!({"email": "z"}),
        ),
        (
            AggregateType::Order,
            "orders",
            json!({"order_number": "a", "status": "ACTIVE", "amount": 1, "plan": "b",
                "client_name": "c", "client_email": "d", "product_name": "e"}),
            json!({"order_number": "z", "status": "CANCELLED", "amount": 2}),
        ),
        (
            AggregateType::Lead,
            "leads",
            json!({"name": "a", "phone": "b", "email": "c", "service": "d", "source": "e",
                "status": "f", "score": 80}),
            json!({"name": "z", "score": 0}),
        ),
        (
            AggregateType::Client,
            "clients",
            json!({"name": "a", "email": "b", "phone": "c", "company": "d", "city": "e",
                "is_active": false}),
            json!({"name": "z", "is_active": true}),
        ),
    ]
}

/// The event that results in such a row.
fn event(aggregate: AggregateType, what: &str, row: &Value) -> Event {
    let mut data = json!({"id": "r", "createdAt": "2026-01-01T00:00:00Z"});
    if aggregate == AggregateType::Order {
        data["client"] = json!({});
        data["product"] = json!({});
    }
    for (column, value) in row.as_object().unwrap() {
        match column.split_once('_') {
            Some((part @ ("client" | "product"), name)) => data[part][name] = value.clone(),
            _ => data[camel_case(column)] = value.clone(),
        }
    }
    let recorded_type = format!("{}.{what}.v1", aggregate.token());
    Event::decode(&recorded_type, data.to_string().as_bytes()).unwrap()
}

fn camel_case(column: &str) -> String {
    let mut words = column.split('_');
    let first = words.next().unwrap().to_owned();
    words.fold(first, |name, word| {
        name + &word[..1].to_uppercase() + &word[1..]
    })
}

/// The row without the columns common to all; nulls left out.
async fn row(world: &World, table: &str) -> Option<Value> {
    let sql = format!(
        "SELECT to_jsonb(t) - '{{org_id,id,created_at,updated_at}}'::text[]
                            - ARRAY(SELECT attname::text FROM pg_attribute
                                    WHERE attrelid = '{table}'::regclass AND attgenerated <> '')
         FROM {table} t
         WHERE id = 'r' AND created_at = '2026-01-01T00:00:00Z' AND updated_at > created_at"
    );
    let row: Option<Value> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_optional(&world.pool)
        .await
        .unwrap();
    let mut row = row?;
    row.as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    Some(row)
}

async fn total(world: &World, table: &str) -> i64 {
    sqlx::query_scalar("SELECT count FROM totals WHERE kind = $1 AND parent = '' AND state = ''")
        .bind(table)
        .fetch_one(&world.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_record_of_every_kind_is_a_row_until_it_is_deleted() {
    let world = World::new().await;
    let projector = world.start();
    for (aggregate, table, whole, least) in kinds() {
        let stream = world.stream(aggregate, "r");
        let mut at = 0;
        for (what, fields, left) in [
            ("created", &whole, Some(&whole)),
            ("updated", &least, Some(&least)),
            ("updated", &whole, Some(&whole)),
            ("deleted", &json!({}), None),
            ("created", &least, Some(&least)),
        ] {
            let event = event(aggregate, what, fields);
            at = world.append(stream.clone(), at, vec![event]).await;
            world.caught_up(Log::Events, at).await;
            assert_eq!(row(&world, table).await.as_ref(), left, "{table} {what}");
            assert_eq!(total(&world, table).await, i64::from(left.is_some()));
        }
    }
    projector.stop().await;
    world.end().await;
}

/// The values of companies' cities, and the number of companies with each.
async fn cities(world: &World) -> Vec<(String, i64)> {
    let counted = "SELECT value, count FROM field_totals
                   WHERE kind = 'companies' AND field = 'city' ORDER BY value";
    sqlx::query_as(counted)
        .fetch_all(&world.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn values_are_counted_whatever_their_case_until_nothing_has_them() {
    let world = World::new().await;
    let projector = world.start();
    let long = format!("{}X", "Ü".repeat(100));
    let beginning = "ü".repeat(100);
    let company = |city: &str| {
        let row = json!({"name": "a", "city": city});
        event(AggregateType::Company, "created", &row)
    };
    let mut ends = Vec::new();
    for (id, city) in [
        ("a", "Paris"),
        ("b", "PARIS"),
        ("c", "Oslo"),
        ("d", ""),
        ("e", &long),
        ("f", "a\0b"),
    ] {
        let stream = world.stream(AggregateType::Company, id);
        let end = world.append(stream.clone(), 0, vec![company(city)]).await;
        ends.push((stream, end));
    }
    world.caught_up(Log::Events, ends[5].1).await;
    let expected = [
        ("a\u{fffd}b", 1),
        ("oslo", 1),
        ("paris", 2),
        (&beginning, 1),
    ];
    let expected = expected.map(|(value, count)| (value.to_owned(), count));
    assert_eq!(cities(&world).await, expected);

    // One stays within its value, one leaves it, one takes it up, the others are deleted.
    for (place, city) in [(0, Some("pARIS")), (1, Some("Oslo")), (3, Some("Bern"))] {
        let row = json!({"name": "a", "city": city});
        let moved = event(AggregateType::Company, "updated", &row);
        let (stream, end) = ends[place].clone();
        ends[place].1 = world.append(stream, end, vec![moved]).await;
    }
    let mut last = 0;
    for place in [2, 4, 5] {
        let gone = event(AggregateType::Company, "deleted", &json!({}));
        let (stream, end) = ends[place].clone();
        last = world.append(stream, end, vec![gone]).await;
    }
    world.caught_up(Log::Events, last).await;
    let expected = [("bern", 1), ("oslo", 1), ("paris", 1)];
    let expected = expected.map(|(value, count)| (value.to_owned(), count));
    assert_eq!(cities(&world).await, expected);
    projector.stop().await;
    world.end().await;
}
