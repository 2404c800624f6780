//! Lists of records filtered and sorted by their fields, in the API and on the pages.

use harness::{Answer, Client, Owner};
use reqwest::Method;
use serde_json::{Value, json};

use super::exports::write_of;
use crate::system;

fn ids(answer: &Answer) -> (String, i64) {
    let body = answer.ok(200);
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    let ids: Vec<_> = body["data"].as_array().unwrap().iter().map(id).collect();
    (ids.join(" "), body["total"].as_i64().unwrap())
}

fn clients() -> Vec<Value> {
    [
        (
            "a",
            "Ada",
            Some("Paris"),
            "z@x.org",
            true,
            "2026-01-31T23:59:59Z",
        ),
        (
            "b",
            "bob",
            Some("paris"),
            "a@x.org",
            false,
            "2026-02-01T00:00:00Z",
        ),
        (
            "c",
            "Cleo",
            Some("Łódź"),
            "c@x.org",
            true,
            "2026-02-28T12:00:00Z",
        ),
        ("d", "Dan", None, "B@x.org", false, "2026-03-01T00:00:00Z"),
    ]
    .map(|(id, name, city, email, is_active, at)| {
        json!({"id": id, "name": name, "city": city, "email": email, "isActive": is_active,
               "createdAt": at})
    })
    .to_vec()
}

#[tokio::test]
async fn lists_are_filtered_by_time_and_field_and_sorted_by_each() {
    let org = system().await.organization().await;
    write_of("clients", &org, &clients()).await;
    let orders = [
        json!({"id": "o", "orderNumber": "7", "status": "COMPLETED", "amount": 1,
               "client": {"email": "b@x.org"}, "createdAt": "2026-01-01T00:00:00Z"}),
        json!({"id": "p", "orderNumber": "10", "status": "ACTIVE", "amount": 2,
               "createdAt": "2026-01-02T00:00:00Z"}),
    ];
    write_of("orders", &org, &orders).await;
    // A status that is too long for an index entry.
    let long: String = ('\u{4e00}'..).take(1_000).collect();
    let leads = [
        json!({"id": "l", "name": "L", "status": "won", "createdAt": "2026-01-01T00:00:00Z"}),
        json!({"id": "m", "name": "M", "status": long, "createdAt": "2026-01-02T00:00:00Z"}),
        json!({"id": "n", "name": "N", "email": "n@x.org", "createdAt": "2026-01-03T00:00:00Z"}),
    ];
    let position = write_of("leads", &org, &leads).await;
    // Each with its own window.
    let readers = [
        ("orders", org.client(&["read:orders"]).await),
        ("leads", org.client(&["read:leads"]).await),
        ("clients", org.client(&["read:clients"]).await),
    ];
    for (query, expected) in [
        ("clients?city=PARIS", "b a"),
        ("clients?city=Par", ""),
        ("clients?city=%C5%82%C3%B3d%C5%BA", "c"),
        ("clients?city=&isActive=", "d c b a"),
        (
            "clients?createdFrom=2026-02-01&createdBefore=2026-03-01",
            "c b",
        ),
        (
            "clients?createdFrom=2026-02-01T01:00:00%2B01:00&sort=createdAt",
            "b c d",
        ),
        ("clients?createdBefore=2026-02-01", "a"),
        (
            "clients?createdFrom=2026-02-01&createdBefore=2026-02-01",
            "",
        ),
        ("clients?isActive=false", "d b"),
        ("clients?isActive=true&city=paris&q=z@", "a"),
        ("clients?city=paris&sort=name&createdFrom=2026-01-01", "a b"),
        ("clients?sort=email", "b d c a"),
        ("clients?sort=-email", "a c d b"),
        ("clients?sort=city", "d b a c"),
        ("clients?sort=-city", "c a b d"),
        ("clients?sort=isActive", "d b c a"),
        ("orders?sort=number", "p o"),
        ("orders?sort=-status", "o p"),
        ("orders?sort=email", "p o"),
        ("orders?status=ACTIVE&createdFrom=2026-01-02", "p"),
        ("orders?status=ACTIVE&createdBefore=2026-01-02", ""),
        ("orders?city=Paris", "p o"),
        ("leads?status=WON", "l"),
        ("leads?status=lost", ""),
        ("leads?sort=status", "n l m"),
        ("leads?createdFrom=2026-01-02&sort=-email", "n m"),
    ] {
        let (_, client) = readers
            .iter()
            .find(|(list, _)| query.starts_with(list))
            .unwrap();
        finds(client, query, &position, expected).await;
    }
    let stranger = system().await.organization().await;
    for query in [
        "clients?city=paris",
        "clients?sort=city",
        "orders?createdFrom=2026-01-01",
    ] {
        let path = format!("/api/v1/{query}");
        let found = stranger.admin.get_at(&path, &position).await;
        assert_eq!(ids(&found), (String::new(), 0), "{query}");
    }
}

/// Asserts that a list finds these, together and one by one, and counts no more.
async fn finds(client: &Client, query: &str, position: &str, expected: &str) {
    let count = i64::try_from(expected.split_whitespace().count()).unwrap();
    let found = client.get_at(&format!("/api/v1/{query}"), position).await;
    assert_eq!(ids(&found), (expected.to_owned(), count), "{query}");
    let (mut walked, mut path) = (Vec::new(), format!("/api/v1/{query}&limit=1"));
    loop {
        let page = client.get_at(&path, position).await;
        let (id, total) = ids(&page);
        assert_eq!(total, count, "{path}");
        walked.extend(Some(id).filter(|id| !id.is_empty()));
        let Some(next) = page.next() else {
            break;
        };
        path = next;
    }
    assert_eq!(walked.join(" "), expected, "{query}");
}

#[tokio::test]
async fn a_value_within_a_span_is_counted_whatever_the_span_holds() {
    let org = system().await.organization().await;
    let position = write_of("clients", &org, &clients()).await;
    let client = org.client(&["read:clients"]).await;
    for (query, expected) in [
        // First most of all clients are within, then few, then none.
        ("city=PARIS&createdFrom=2026-02-01", "b"),
        ("city=PARIS&createdBefore=2026-02-28", "b a"),
        (
            "city=paris&createdFrom=2026-02-01&createdBefore=2026-03-02",
            "b",
        ),
        ("city=paris&createdBefore=2026-02-01", "a"),
        ("city=paris&createdFrom=2026-03-01", ""),
        ("city=paris&createdFrom=2026-03-02", ""),
        ("city=Oslo&createdFrom=2026-01-01", ""),
        ("isActive=false&createdFrom=2026-02-01", "d b"),
        (
            "isActive=false&createdFrom=2026-01-01&createdBefore=2026-03-01",
            "b",
        ),
        ("isActive=true&city=paris&createdFrom=2026-01-01", "a"),
    ] {
        finds(&client, &format!("clients?{query}"), &position, expected).await;
    }
}

#[tokio::test]
async fn what_no_list_can_be_filtered_by_is_named() {
    let org = system().await.organization().await;
    for (query, named) in [
        ("clients?createdFrom=soon", "createdFrom: must be a date"),
        (
            "leads?createdBefore=2026-13-01",
            "createdBefore: must be a date",
        ),
        (
            "orders?createdFrom=2026-02-01&createdBefore=2026-01-01",
            "createdBefore: must not be earlier",
        ),
        ("clients?isActive=yes", "isActive: must be true or false"),
        ("clients?city=a%00", "city: must not contain"),
        ("clients?city=a&city=b", "city is given more than once"),
        (
            "clients?sort=owner",
            "sort: must be createdAt, name, email, city or isActive",
        ),
        ("leads?sort=number", "sort: must be"),
    ] {
        let refused = org.admin.get(&format!("/api/v1/{query}")).await.error(400);
        assert!(refused.starts_with(named), "{query}: {refused}");
    }
}

#[tokio::test]
async fn the_pages_filter_without_a_script_and_keep_it_from_page_to_page() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let mut position = String::new();
    for nth in 1..=52 {
        let company = json!({
            "name": format!("Company {nth:02}"), "city": if nth == 1 { "Łódź" } else { "Paris" },
            "owner": if nth % 2 == 0 { "Ada & Co" } else { "Bob" },
            "createdAt": format!("2026-01-01T00:00:{:02}Z", nth),
        });
        let path = format!("/dashboard/api/v1/records/companies/c{nth}");
        let written = owner.send(Method::PUT, &path, Some(&company)).await;
        written.ok(201);
        position = written.position();
    }
    let page = async |path: &str| {
        let between = if path.contains('?') { '&' } else { '?' };
        let page = format!("/dashboard/{path}{between}position={position}");
        let page = owner.page(&page).await;
        assert_eq!(page.status, 200, "{}", page.text());
        page.text().replace("&#x2f;", "/")
    };
    let first = page("companies?city=paris&sort=-owner").await;
    assert!(first.contains("51 companies found"), "{first}");
    for part in [
        "<label for=\"city\">City</label>",
        "<label for=\"owner\">Owner</label>",
        "<option value=\"Ada &amp; Co\">",
        "value=\"paris\"",
        "name=\"createdFrom\" type=\"date\"",
        "aria-sort=\"descending\"",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap();
    let next = next.split('"').next().unwrap().replace("&amp;", "&");
    assert!(next.contains("city=paris"), "{next}");
    let second = page(next.trim_start_matches("/dashboard/")).await;
    assert!(
        second.contains("Company 52") && second.contains("51 companies"),
        "{second}"
    );
    let span = "createdFrom=2026-01-01T00:00:50Z&createdBefore=2026-01-02";
    let some = page(&format!("companies?owner=ada+%26+co&{span}")).await;
    assert!(
        some.contains("2 companies found") && some.contains("Company 50"),
        "{some}"
    );
    assert!(some.contains("value=\"2026-01-01T00:00:50Z\""), "{some}");
    let none = page("companies?createdBefore=2020-01-01").await;
    assert!(none.contains("0 companies found") && none.contains("class=\"empty\""));
    let wrong = owner.page("/dashboard/companies?createdFrom=soon").await;
    assert_eq!(wrong.status, 400);
}
