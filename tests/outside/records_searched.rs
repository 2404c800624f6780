//! Lists of orders, leads and clients, searched and sorted by key.

use harness::Answer;
use serde_json::{Value, json};

use super::pages_records::Shop;
use crate::system;

fn order(id: &str, number: &str, client: &str, amount: i64, day: u32) -> Value {
    json!({
        "id": id, "orderNumber": number, "status": "ACTIVE", "amount": amount,
        "client": {"name": client, "email": format!("{id}@example.org")},
        "product": {"name": "Plan"}, "createdAt": format!("2026-01-{day:02}T00:00:00Z"),
    })
}

fn ids(answer: &Answer) -> (Vec<String>, i64) {
    let body = answer.ok(200);
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    let ids = body["data"].as_array().unwrap().iter().map(id).collect();
    (ids, body["total"].as_i64().unwrap())
}

async fn orders(shop: &Shop) -> String {
    shop.write(
        "orders",
        [
            order("a", "WP-1", "Zoë 100%", 300, 1),
            order("b", "WP-2", "ada Lovelace", 100, 2),
            order("c", "WP-13", "Bob_Smith", 200, 3),
            order("d", "WP-4", "Ada Byron", 100, 4),
        ],
    )
    .await
}

#[tokio::test]
async fn a_list_holds_what_has_a_part_of_a_name_an_address_or_a_number() {
    let shop = Shop::open(system().await).await;
    let position = orders(&shop).await;
    for (query, expected) in [
        ("q=ada", vec!["d", "b"]),
        ("q=ADA%20l", vec!["b"]),
        ("q=WP-1", vec!["c", "a"]),
        ("q=b@example", vec!["b"]),
        ("q=zoË", vec!["a"]),
        ("q=0%25", vec!["a"]),
        ("q=_", vec!["c"]),
        ("q=BOB_smith", vec!["c"]),
        ("q=bob-smith", vec![]),
        ("q=ZoË%20100%25", vec!["a"]),
        ("q=ada%20smith", vec![]),
        ("q=example.org", vec!["d", "c", "b", "a"]),
        ("q=nobody", vec![]),
        ("q=ACTIVE", vec![]),
        ("q=", vec!["d", "c", "b", "a"]),
        ("q=ada&status=CANCELLED", vec![]),
        ("q=ada&limit=1", vec!["d"]),
        ("q=ada&limit=1&page=2", vec!["b"]),
        ("q=ada&page=9", vec![]),
    ] {
        let found = shop
            .read(&format!("/api/v1/orders?{query}"), &position)
            .await;
        let (ids, total) = ids(&found);
        assert_eq!(ids, expected, "{query}");
        if !query.contains("limit") && !query.contains("page") {
            assert_eq!(total, i64::try_from(expected.len()).unwrap(), "{query}");
        } else {
            assert_eq!(total, 2, "{query}");
        }
    }
    let other = Shop::open(system().await).await;
    let found = other.read("/api/v1/orders?q=ada", &position).await;
    assert_eq!(ids(&found), (Vec::new(), 0));
}

#[tokio::test]
async fn a_list_is_sorted_as_asked_and_walked_in_that_order() {
    let shop = Shop::open(system().await).await;
    let position = orders(&shop).await;
    for (sort, expected) in [
        ("createdAt", "abcd"),
        ("-createdAt", "dcba"),
        ("name", "dbca"),
        ("-name", "acbd"),
        ("amount", "bdca"),
        ("-amount", "acbd"),
        ("amount&q=ada", "bd"),
    ] {
        let mut path = format!("/api/v1/orders?sort={sort}&limit=1");
        let mut walked = String::new();
        loop {
            let page = shop.read(&path, &position).await;
            let (ids, total) = ids(&page);
            assert_eq!(total, i64::try_from(expected.len()).unwrap(), "{sort}");
            walked.push_str(&ids.concat());
            let Some(next) = page.next() else {
                break;
            };
            path = next;
        }
        assert_eq!(walked, expected, "{sort}");
    }
}

#[tokio::test]
async fn what_cannot_be_searched_or_sorted_by_is_named() {
    let shop = Shop::open(system().await).await;
    let position = orders(&shop).await;
    let long = format!("orders?q={}", "x".repeat(201));
    for (path, field) in [
        (long.as_str(), "q: "),
        ("orders?q=a%00", "q: "),
        ("orders?sort=plan", "sort: "),
        ("orders?sort=", "sort: "),
        ("leads?sort=amount", "sort: "),
        ("clients?sort=-amount", "sort: "),
    ] {
        let refused = shop.admin.get(&format!("/api/v1/{path}")).await.error(400);
        assert!(refused.starts_with(field), "{path}: {refused}");
    }
    // A cursor for one order is not valid for another.
    let page = shop
        .read("/api/v1/orders?sort=name&limit=1", &position)
        .await;
    let link = page.header("link").unwrap();
    let cursor = link
        .split("cursor=")
        .nth(1)
        .unwrap()
        .split('>')
        .next()
        .unwrap();
    let other = format!("/api/v1/orders?sort=amount&cursor={cursor}");
    assert!(
        shop.admin
            .get(&other)
            .await
            .error(400)
            .starts_with("cursor")
    );
}

#[tokio::test]
async fn leads_and_clients_are_searched_and_sorted_too() {
    let shop = Shop::open(system().await).await;
    let lead = json!({"id": "l", "name": "Grace Hopper", "phone": "+4930123456"});
    shop.write("leads", [lead, json!({"id": "m", "name": "alan"})])
        .await;
    let client = json!({"id": "c", "name": "Söhne", "company": "Initech"});
    let position = shop.write("clients", [client]).await;
    for (path, expected) in [
        ("leads?q=3012", vec!["l"]),
        ("leads?sort=name", vec!["m", "l"]),
        ("leads?sort=-name", vec!["l", "m"]),
        ("clients?q=initech", vec!["c"]),
        ("clients?q=3012", vec![]),
    ] {
        let found = shop.read(&format!("/api/v1/{path}"), &position).await;
        assert_eq!(ids(&found).0, expected, "{path}");
    }
}
