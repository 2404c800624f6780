//! The business data API: orders, leads, clients; its keys and its window.

use std::time::Duration;

use futures::future::join_all;
use harness::{Answer, Client, Organization, System};
use reqwest::Method;
use serde_json::{Value, json};

use super::exports::write_of;
use crate::{SHAPE, system};

const LISTS: [&str; 3] = ["orders", "leads", "clients"];
const PATHS: [(&str, &str); 4] = [
    ("/api/v1/orders", "read:orders"),
    ("/api/v1/leads", "read:leads"),
    ("/api/v1/analytics", "read:analytics"),
    ("/api/v1/clients", "read:clients"),
];

async fn reader(org: &Organization<'_>) -> Client {
    org.client(&[
        "read:orders",
        "read:leads",
        "read:clients",
        "read:analytics",
    ])
    .await
}

fn order(id: &str, status: &str, created_at: &str) -> Value {
    json!({"id": id, "orderNumber": id, "status": status, "amount": 1, "createdAt": created_at})
}

#[tokio::test]
async fn records_have_the_fields_of_the_specification() {
    let org = system().await.organization().await;
    let client = reader(&org).await;
    let at = "2026-01-02T03:04:05Z";
    let whole = [
        (
            "orders",
            json!({"id": "o-1", "orderNumber": "A 17", "status": "PAYMENT_PENDING",
                "amount": 9_007_199_254_740_991_i64, "plan": "gold", "createdAt": at,
                "client": {"name": "Zoë", "email": "zoe@example.org"},
                "product": {"name": "Bicycle \"fast\""}}),
        ),
        (
            "leads",
            json!({"id": "l-1", "name": "Ада", "phone": "+4930123456", "email": "a@example.org",
                "service": "repair", "source": "web", "status": "NEW", "score": 87,
                "createdAt": at}),
        ),
        (
            "clients",
            json!({"id": "c-1", "name": "Αθηνά", "email": "a@example.org", "phone": "+4930123456",
                "company": "Acme", "city": "Köln", "isActive": false, "createdAt": at}),
        ),
    ];
    let early = "2025-01-01T00:00:00Z";
    let bare = [
        (
            json!({"id": "bare", "orderNumber": "1", "status": "ACTIVE", "amount": 0,
                "createdAt": early}),
            json!({"id": "bare", "orderNumber": "1", "status": "ACTIVE", "amount": 0, "plan": null,
                "client": {"name": null, "email": null}, "product": {"name": null},
                "createdAt": early}),
        ),
        (
            json!({"id": "bare", "name": "n", "createdAt": early}),
            json!({"id": "bare", "name": "n", "phone": null, "email": null, "service": null,
                "source": null, "status": null, "score": 0, "createdAt": early}),
        ),
        (
            json!({"id": "bare", "name": "n", "createdAt": early}),
            json!({"id": "bare", "name": "n", "email": null, "phone": null, "company": null,
                "city": null, "isActive": true, "createdAt": early}),
        ),
    ];
    for ((list, record), (least, filled)) in whole.into_iter().zip(bare) {
        let position = write_of(list, &org, &[least, record.clone()]).await;
        let answer = client.get_at(&format!("/api/v1/{list}"), &position).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let expected = json!({"data": [record, filled], "total": 2, "page": 1, "limit": 20});
        assert_eq!(answer.ok(200), expected, "{list}");
        assert_eq!(answer.header("link"), None, "{list}");
    }
}

/// Writes 45 records, three per time; returns the ids in the order of the list.
async fn fill(org: &Organization<'_>, list: &str) -> (String, Vec<String>) {
    let record = |nth: usize| {
        let at = format!("2026-03-01T00:{:02}:00Z", nth / 3);
        let mut record = order(&format!("r{nth:02}"), "ACTIVE", &at);
        if list != "orders" {
            record = json!({"id": record["id"], "name": "n", "createdAt": at});
        }
        record
    };
    let records: Vec<_> = (0..45).map(record).collect();
    let position = write_of(list, org, &records).await;
    let moments = (0..15).rev();
    let ids = moments.flat_map(|moment| (0..3).map(move |nth| format!("r{:02}", moment * 3 + nth)));
    (position, ids.collect())
}

fn ids(list: &Value) -> Vec<String> {
    let data = list["data"].as_array().expect("data");
    data.iter()
        .map(|item| item["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[tokio::test]
async fn lists_are_read_by_page_and_by_link() {
    let org = system().await.organization().await;
    for list in LISTS {
        let (position, expected) = fill(&org, list).await;
        let client = reader(&org).await;
        let path = format!("/api/v1/{list}");
        let first = client.get_at(&path, &position).await;
        assert_eq!(first.ok(200)["total"], 45);
        assert_eq!(
            ids(&first.json()),
            expected[..20],
            "twenty unless said otherwise"
        );
        let mut walked = ids(&first.json());
        let mut after = first.next();
        while let Some(path) = after {
            let answer = client.get(&path).await;
            walked.extend(ids(&answer.ok(200)));
            after = answer.next();
        }
        assert_eq!(walked, expected, "{list} by links");
        let mut paged = Vec::new();
        for page in 1..=5 {
            let answer = client.get(&format!("{path}?limit=11&page={page}")).await;
            let body = answer.ok(200);
            let said = (&body["total"], &body["page"], &body["limit"]);
            assert_eq!(said, (&json!(45), &json!(page), &json!(11)));
            paged.extend(ids(&body));
        }
        assert_eq!(paged, expected, "{list} by pages");
        let past = client.get(&format!("{path}?page=4")).await;
        let empty = json!({"data": [], "total": 45, "page": 4, "limit": 20});
        assert_eq!(past.ok(200), empty);
        assert_eq!(past.next(), None);
        let all = client.get(&format!("{path}?limit=100&unknown=1")).await;
        assert_eq!(ids(&all.ok(200)), expected);
    }
}

#[tokio::test]
async fn orders_are_filtered_by_status() {
    let org = system().await.organization().await;
    let statuses = ["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"];
    let records: Vec<_> = (0..12)
        .map(|nth| {
            let at = format!("2026-03-01T00:00:{nth:02}Z");
            order(&format!("{nth:02}"), statuses[nth % 3], &at)
        })
        .collect();
    let position = write_of("orders", &org, &records).await;
    let client = reader(&org).await;
    for (nth, status) in statuses.iter().enumerate() {
        let path = format!("/api/v1/orders?status={status}&limit=3");
        let answer = client.get_at(&path, &position).await;
        let body = answer.ok(200);
        let expected: Vec<_> = (0..12)
            .rev()
            .filter(|order| order % 3 == nth)
            .map(|order| format!("{order:02}"))
            .collect();
        assert_eq!(body["total"], expected.len(), "{status}");
        assert_eq!(ids(&body), expected[..expected.len().min(3)], "{status}");
        if let Some(path) = answer.next() {
            assert_eq!(ids(&client.get(&path).await.ok(200)), expected[3..]);
        }
    }
    // An order that changes its status moves between lists.
    let paid = order("00", "COMPLETED", "2026-03-01T00:00:00Z");
    let changed = org.admin.put("/api/v1/records/orders/00", &paid).await;
    for (status, total) in [("PAYMENT_PENDING", 3), ("COMPLETED", 5)] {
        let path = format!("/api/v1/orders?status={status}");
        let answer = client.get_at(&path, &changed.position()).await;
        assert_eq!(answer.ok(200)["total"], total, "{status}");
    }
}

#[tokio::test]
async fn wrong_parameters_are_reported_by_name_and_reason() {
    let org = system().await.organization().await;
    for list in LISTS {
        let client = reader(&org).await;
        for (query, name, why) in [
            ("limit=101", "limit", "100"),
            ("limit=0", "limit", "1 or more"),
            ("limit=-5", "limit", "1 or more"),
            ("limit=ten", "limit", "integer"),
            ("limit=2.5", "limit", "integer"),
            ("limit=", "limit", "integer"),
            ("page=0", "page", "1 or more"),
            ("page=-1", "page", "1 or more"),
            ("page=two", "page", "integer"),
            ("limit=5&limit=6", "limit", "more than once"),
        ] {
            let message = client
                .get(&format!("/api/v1/{list}?{query}"))
                .await
                .error(400);
            let told = message.starts_with(name) && message.contains(why);
            assert!(told, "{list}?{query}: {message}");
        }
        let answer = client
            .get(&format!("/api/v1/{list}?page=99999999999999999999"))
            .await;
        assert_eq!(answer.ok(200)["data"], json!([]));
    }
    let client = reader(&org).await;
    for status in ["DONE", "active", "", "ACTIVE,COMPLETED"] {
        let answer = client.get(&format!("/api/v1/orders?status={status}")).await;
        let message = answer.error(400);
        assert!(message.starts_with("status"), "{message}");
        assert!(message.contains("PAYMENT_PENDING"), "{message}");
    }
}

#[tokio::test]
async fn a_key_is_sent_in_either_header() {
    let org = system().await.organization().await;
    let nobody = org.system.client();
    let with = async |path: &str, name: &str, value: &str| {
        Answer::to(nobody.request(Method::GET, path).header(name, value)).await
    };
    for (path, scope) in PATHS {
        let terms = json!({"name": "n", "scopes": [scope]});
        let (_, created) = org.unused_key(&terms).await;
        let key = created["key"].as_str().unwrap();
        with(path, "x-api-key", key).await.ok(200);
        with(path, "authorization", &format!("Bearer {key}"))
            .await
            .ok(200);
        nobody.get(path).await.error(401);
        with(path, "x-api-key", "").await.error(401);
        with(path, "x-api-key", &format!("{key}x")).await.error(401);
        with(path, "x-api-key", &format!("Bearer {key}"))
            .await
            .error(401);
        // The scope is checked before the parameters.
        let others: Vec<_> = PATHS
            .iter()
            .map(|(_, s)| *s)
            .filter(|s| *s != scope)
            .collect();
        let (other, _) = org
            .unused_key(&json!({"name": "n", "scopes": others}))
            .await;
        let message = other.get(&format!("{path}?limit=x")).await.error(403);
        assert!(message.contains(scope), "{message}");
    }
}

/// The remaining requests and the seconds until the next window.
#[track_caller]
fn minute(answer: &Answer) -> (u32, u64) {
    let policy = answer.header("ratelimit-policy");
    assert_eq!(policy, Some("\"minute\";q=100;w=60"));
    let limit = answer.header("ratelimit").expect("RateLimit");
    let rest = limit.strip_prefix("\"minute\";r=").expect(limit);
    let (left, seconds) = rest.split_once(";t=").expect(limit);
    (left.parse().unwrap(), seconds.parse().unwrap())
}

#[tokio::test]
async fn a_key_has_a_hundred_requests_in_a_clock_minute() {
    let org = system().await.organization().await;
    let scopes = ["read:orders", "read:leads", "workflows:read"];
    let terms = json!({"name": "n", "scopes": scopes, "rateLimit": 1_000});
    // With enough of the minute left that it cannot end meanwhile.
    let (client, created) = loop {
        let (client, created) = org.unused_key(&terms).await;
        let first = client.get("/api/v1/orders").await;
        first.ok(200);
        let (left, seconds) = minute(&first);
        assert_eq!(left, 99);
        if seconds > 20 {
            break (client, created);
        }
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    };
    let key = created["key"].as_str().unwrap();
    let by_header = || {
        let request = org.system.client().request(Method::GET, "/api/v1/leads");
        Answer::to(request.header("x-api-key", key))
    };
    // 400 and 403 count as well.
    client.get("/api/v1/orders?limit=0").await.error(400);
    client.get("/api/v1/clients").await.error(403);
    let rest = join_all((0..97).map(|_| by_header())).await;
    assert!(rest.iter().all(|answer| answer.status == 200));
    assert_eq!(rest.iter().map(|answer| minute(answer).0).min(), Some(0));
    for refused in [
        by_header().await,
        client.get("/api/v1/orders?limit=x").await,
        client.get("/api/v1/clients").await,
    ] {
        refused.error(429);
        let (left, seconds) = minute(&refused);
        let retry_after = refused.header("retry-after").expect("Retry-After");
        let retry_after: u64 = retry_after.parse().expect("whole seconds");
        assert_eq!(left, 0);
        assert!(
            (1..=60).contains(&retry_after) && retry_after >= seconds,
            "{retry_after}"
        );
    }
    // The hour is counted separately, and has not been used.
    let answer = client.get("/api/v1/workflows").await;
    answer.ok(200);
    let limit = answer.header("ratelimit").unwrap();
    assert!(limit.starts_with("\"hourly\";r=999;"), "{limit}");
}

#[tokio::test]
async fn the_next_minute_admits_again() {
    let settings = [
        ("WAYPOST_LIMIT_MINUTE_SECONDS", "2"),
        ("WAYPOST_LIMIT_MINUTE_REQUESTS", "3"),
    ];
    let system = System::start(SHAPE, &settings).await;
    let org = system.organization().await;
    let (client, _) = org
        .unused_key(&json!({"name": "n", "scopes": ["read:clients"]}))
        .await;
    for _ in 0..2 {
        let refused = loop {
            let answer = client.get("/api/v1/clients").await;
            if answer.status == 429 {
                break answer;
            }
            answer.ok(200);
        };
        let wait = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=2).contains(&wait));
        tokio::time::sleep(Duration::from_secs(wait)).await;
        client.get("/api/v1/clients").await.ok(200);
    }
}

#[tokio::test]
async fn what_belongs_to_another_organization_is_not_seen() {
    let system = system().await;
    let (org, other) = (system.organization().await, system.organization().await);
    let mut position = String::new();
    for list in LISTS {
        position = fill(&org, list).await.0;
    }
    for list in LISTS {
        let answer = other
            .admin
            .get_at(&format!("/api/v1/{list}"), &position)
            .await;
        let empty = json!({"data": [], "total": 0, "page": 1, "limit": 20});
        assert_eq!(answer.ok(200), empty);
    }
    let summary = other
        .admin
        .get_at("/api/v1/analytics", &position)
        .await
        .ok(200);
    assert_eq!(summary["totalRevenue"], 0);
    assert_eq!(
        (&summary["totalOrders"], &summary["totalLeads"]),
        (&json!(0), &json!(0))
    );
    let summary = org
        .admin
        .get_at("/api/v1/analytics", &position)
        .await
        .ok(200);
    assert_eq!(summary["totalRevenue"], 45);
}
