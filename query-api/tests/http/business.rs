//! Orders, leads, clients and the analytics summary.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::support::TestApi;

const ORDERS: &str = "INSERT INTO orders
    SELECT $1, 'o' || lpad(i::text, 3, '0'), 'No. ' || i,
           (ARRAY['PAYMENT_PENDING', 'ACTIVE', 'COMPLETED', 'CANCELLED'])[i % 4 + 1], i, NULL, NULL,
           NULL, NULL, '2026-11-21T00:00:00Z'::timestamptz + make_interval(secs => i / 10), now()
    FROM generate_series(0, 249) AS i";
const STATUSES: [&str; 4] = ["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"];

async fn api_with_orders() -> TestApi {
    let api = TestApi::open().await;
    api.execute(ORDERS).await;
    api.count_lists().await;
    api
}

/// Newest first, then by id; all, or those of one status.
fn expected(status: Option<usize>) -> Vec<String> {
    let moments = (0..25).rev();
    let orders = moments.flat_map(|moment| (0..10).map(move |i| moment * 10 + i));
    orders
        .filter(|i| status.is_none_or(|status| i % 4 == status))
        .map(|i| format!("o{i:03}"))
        .collect()
}

#[tokio::test]
async fn pages_by_number_and_by_link_make_up_the_list() {
    let api = api_with_orders().await;
    let filters = (0..4).map(Some).chain([None]);
    for status in filters {
        let filter = status.map_or(String::new(), |nth| format!("&status={}", STATUSES[nth]));
        let expected = expected(status);
        for limit in [7, 20, 100] {
            let mut next = Some(format!("/api/v1/orders?limit={limit}{filter}"));
            let (mut by_number, mut by_link) = (Vec::new(), Vec::new());
            for page in 1..=expected.len() / limit + 1 {
                let path = format!("/api/v1/orders?limit={limit}&page={page}{filter}");
                let answer = api.get(&path).await;
                let list = answer.json();
                assert_eq!(list["total"], expected.len(), "{path}");
                assert_eq!(
                    (&list["page"], &list["limit"]),
                    (&json!(page), &json!(limit))
                );
                assert_eq!(
                    answer.next().is_some(),
                    page * limit < expected.len(),
                    "{path}"
                );
                by_number.extend(answer.all("id"));
            }
            while let Some(path) = next {
                let answer = api.get(&path).await;
                assert_eq!(answer.json()["total"], expected.len(), "{path}");
                by_link.extend(answer.all("id"));
                next = answer.next();
            }
            assert_eq!(by_number, expected, "limit {limit}{filter}");
            assert_eq!(by_link, expected, "limit {limit}{filter}");
        }
    }
    api.close().await;
}

#[tokio::test]
async fn a_page_past_the_end_is_empty() {
    let api = api_with_orders().await;
    for (query, total) in [
        ("page=14", 250),
        ("page=99999999999999999999&limit=100", 250),
        ("page=5&status=ACTIVE", 63),
    ] {
        let answer = api.get(&format!("/api/v1/orders?{query}")).await;
        let list = answer.json();
        assert_eq!(
            (answer.status, &list["total"]),
            (200, &json!(total)),
            "{query}"
        );
        assert_eq!(list["data"], json!([]), "{query}");
        assert_eq!(answer.next(), None, "{query}");
    }
    for path in ["/api/v1/leads", "/api/v1/clients"] {
        let empty = json!({"data": [], "total": 0, "page": 1, "limit": 20});
        assert_eq!(api.get(path).await.json(), empty, "{path}");
    }
    api.close().await;
}

#[tokio::test]
async fn records_have_their_fields_and_no_others() {
    let api = TestApi::open().await;
    for row in [
        "INSERT INTO orders VALUES ($1, 'o1', 'A-1', 'COMPLETED', -9223372036854775808, 'gold', 'Ada',
         'ada@example.com', 'Bicycle', '2026-11-21T14:09:33.125Z', now())",
        "INSERT INTO orders (org_id, id, order_number, status, amount, created_at, updated_at)
         VALUES ($1, 'o0', 'A-0', 'ACTIVE', 0, '2026-01-01', now())",
        "INSERT INTO leads VALUES ($1, 'l1', 'Zoë', '+49301', 'z@example.com', 'repair', 'web', 'NEW',
         87, '2026-11-21T14:09:33Z', now())",
        "INSERT INTO leads (org_id, id, name, score, created_at, updated_at)
         VALUES ($1, 'l0', 'Nobody', 0, '2026-01-01', now())",
        "INSERT INTO clients VALUES ($1, 'c1', 'Ада', 'a@example.com', '+49302', 'Acme', 'Αθήνα', false,
         '2026-11-21T14:09:33Z', now())",
        "INSERT INTO clients (org_id, id, name, is_active, created_at, updated_at)
         VALUES ($1, 'c0', 'Nobody', true, '2026-01-01', now())",
        "INSERT INTO totals (org_id, kind, count)
         VALUES ($1, 'orders', 2), ($1, 'leads', 2), ($1, 'clients', 2)",
    ] {
        api.execute(row).await;
    }
    let (at, newyear) = ("2026-11-21T14:09:33Z", "2026-01-01T00:00:00Z");
    let data = async |path: &str| api.get(path).await.json()["data"].clone();
    assert_eq!(
        data("/api/v1/orders").await,
        json!([
            {"id": "o1", "orderNumber": "A-1", "status": "COMPLETED", "amount": i64::MIN,
             "plan": "gold", "createdAt": "2026-11-21T14:09:33.125Z",
             "client": {"name": "Ada", "email": "ada@example.com"}, "product": {"name": "Bicycle"}},
            {"id": "o0", "orderNumber": "A-0", "status": "ACTIVE", "amount": 0, "plan": null,
             "createdAt": newyear, "client": {"name": null, "email": null},
             "product": {"name": null}},
        ])
    );
    assert_eq!(
        data("/api/v1/leads").await,
        json!([
            {"id": "l1", "name": "Zoë", "phone": "+49301", "email": "z@example.com",
             "service": "repair", "source": "web", "status": "NEW", "score": 87, "createdAt": at},
            {"id": "l0", "name": "Nobody", "phone": null, "email": null, "service": null,
             "source": null, "status": null, "score": 0, "createdAt": newyear},
        ])
    );
    assert_eq!(
        data("/api/v1/clients").await,
        json!([
            {"id": "c1", "name": "Ада", "email": "a@example.com", "phone": "+49302",
             "company": "Acme", "city": "Αθήνα", "isActive": false, "createdAt": at},
            {"id": "c0", "name": "Nobody", "email": null, "phone": null, "company": null,
             "city": null, "isActive": true, "createdAt": newyear},
        ])
    );
    api.close().await;
}

#[tokio::test]
async fn the_trend_has_the_twelve_months_up_to_now() {
    let now: DateTime<Utc> = "2026-02-28T23:59:59.999Z".parse().unwrap();
    let api = TestApi::open_at(now).await;
    for row in [
        "INSERT INTO revenue_months VALUES
         ($1, '2025-02-01', 1), ($1, '2025-03-01', 20), ($1, '2025-12-01', 9223372036854775807),
         ($1, '2026-02-01', 300), ($1, '2026-03-01', 4000)",
        "INSERT INTO totals (org_id, kind, state, count) VALUES
         ($1, 'orders', '', 2), ($1, 'orders', 'ACTIVE', 2), ($1, 'leads', '', 3)",
    ] {
        api.execute(row).await;
    }
    let answer = api.get("/api/v1/analytics?limit=x").await;
    assert_eq!(answer.status, 200);
    let months = [
        "2025-03", "2025-04", "2025-05", "2025-06", "2025-07", "2025-08", "2025-09", "2025-10",
        "2025-11", "2025-12", "2026-01", "2026-02",
    ];
    let revenue = |month: &str| match month {
        "2025-03" => 20,
        "2025-12" => i64::MAX,
        "2026-02" => 300,
        _ => 0,
    };
    let trend: Vec<Value> = months
        .iter()
        .map(|month| json!({"month": month, "revenue": revenue(month)}))
        .collect();
    assert_eq!(
        answer.json(),
        json!({"totalRevenue": i128::from(i64::MAX) + 4_321, "totalOrders": 2, "totalLeads": 3,
               "conversionRate": 66.67, "monthlyRevenue": trend})
    );
    api.close().await;
}

#[tokio::test]
async fn wrong_parameters_are_refused_by_name() {
    let api = TestApi::open().await;
    for (query, word, why) in [
        ("limit=101", "limit", "100"),
        ("limit=0", "limit", "1 or more"),
        ("limit=-1", "limit", "1 or more"),
        ("limit=ten", "limit", "integer"),
        ("limit=1.5", "limit", "integer"),
        ("limit=", "limit", "integer"),
        ("page=0", "page", "1 or more"),
        ("page=x", "page", "integer"),
        ("cursor=x", "cursor", "list"),
    ] {
        for list in ["orders", "leads", "clients"] {
            let answer = api.get(&format!("/api/v1/{list}?{query}")).await;
            assert_eq!(answer.status, 400, "{list}?{query}");
            let error = answer.error();
            assert!(
                error.starts_with(word) && error.contains(why),
                "{query}: {error}"
            );
        }
    }
    for status in ["DONE", "active", "", "ACTIVE,COMPLETED", "%00"] {
        let answer = api.get(&format!("/api/v1/orders?status={status}")).await;
        assert_eq!(answer.status, 400, "{status}");
        let error = answer.error();
        assert!(
            error.starts_with("status") && error.contains("PAYMENT_PENDING"),
            "{error}"
        );
    }
    // A status of leads may be any text.
    assert_eq!(api.get("/api/v1/leads?status=DONE").await.status, 200);
    api.close().await;
}

#[tokio::test]
async fn a_key_comes_in_either_header_and_is_counted_by_the_minute() {
    let api = TestApi::open().await;
    let scopes = [
        "read:orders",
        "read:leads",
        "read:clients",
        "read:analytics",
    ];
    let key = api.key_with_limit(&api.org, &scopes, 1).await;
    let bearer = format!("Bearer {key}");
    for path in [
        "/api/v1/orders",
        "/api/v1/leads",
        "/api/v1/clients",
        "/api/v1/analytics",
    ] {
        for header in [
            ("x-api-key", key.as_str()),
            ("authorization", bearer.as_str()),
        ] {
            let answer = api.get_as(path, &[header]).await;
            assert_eq!(answer.status, 200, "{path}");
            assert_eq!(
                answer.header("ratelimit-policy"),
                Some("\"minute\";q=100000;w=60")
            );
        }
        assert_eq!(api.get_as(path, &[]).await.status, 401, "{path}");
        assert_eq!(api.get_as(path, &[("x-api-key", "wp_x")]).await.status, 401);
    }
    // The hourly window of that key is another one, and other paths do not accept X-Api-Key.
    let answer = api
        .get_as("/api/export/deals", &[("x-api-key", &key)])
        .await;
    assert_eq!(answer.status, 401);
    let answer = api
        .get_as("/api/export/deals", &[("authorization", &bearer)])
        .await;
    assert_eq!(answer.status, 403);
    api.close().await;
}
