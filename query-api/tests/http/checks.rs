//! Checks before a response: the key, its limit, its scopes, and the owner of the data.

use crate::support::TestApi;
use schemas::OrgId;

/// Every read, with the scope that it requires.
const READS: &[(&str, &str)] = &[
    ("/api/export/companies", "export:companies:read"),
    ("/api/export/deals", "export:deals:read"),
    ("/api/export/contacts", "export:contacts:read"),
    ("/api/v1/orders", "read:orders"),
    ("/api/v1/leads", "read:leads"),
    ("/api/v1/clients", "read:clients"),
    ("/api/v1/analytics", "read:analytics"),
    ("/api/v1/records/contacts/c1", "records:write"),
    ("/api/v1/workflows", "workflows:read"),
    ("/api/v1/workflows/w1", "workflows:read"),
    ("/api/v1/workflows/w1/runs", "workflows:read"),
    ("/api/v1/runs/r1", "workflows:read"),
    ("/api/v1/keys", "keys:manage"),
    ("/api/v1/webhooks", "webhooks:manage"),
    ("/api/v1/webhooks/h1", "webhooks:manage"),
    ("/api/v1/webhooks/h1/deliveries", "webhooks:manage"),
];

#[tokio::test]
async fn no_read_is_without_its_key_and_scope() {
    let api = TestApi::open().await;
    let without = api.key_for(&api.org, &["events:read"]).await;
    let without = format!("Bearer {without}");
    for (path, scope) in READS {
        let answer = api
            .get_with(path, &[("authorization", "Bearer wp_x")])
            .await;
        assert_eq!(answer.status, 401, "{path}");
        // A missing scope is reported before an unreadable position.
        let headers = [
            ("authorization", without.as_str()),
            ("waypost-min-position", "x"),
        ];
        let answer = api.get_with(path, &headers).await;
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.error().contains(scope), "{path}: {}", answer.error());
        assert!(answer.headers.contains_key("ratelimit"), "{path}");

        let with = api.key_for(&api.org, &[scope]).await;
        let with = format!("Bearer {with}");
        let answer = api.get_with(path, &[("authorization", &with)]).await;
        assert!(matches!(answer.status, 200 | 404), "{path}: {answer:?}");
    }
    api.close().await;
}

#[tokio::test]
async fn a_used_up_limit_comes_before_a_missing_scope() {
    let api = TestApi::open().await;
    let key = api.key_with_limit(&api.org, &["events:read"], 1).await;
    let key = format!("Bearer {key}");
    for (status, path) in [(403, "/api/v1/keys"), (429, "/api/export/contacts")] {
        let answer = api.get_with(path, &[("authorization", &key)]).await;
        assert_eq!(answer.status, status, "{path}");
    }
    api.close().await;
}

#[tokio::test]
async fn nobody_sees_what_belongs_to_another_organization() {
    let api = TestApi::open().await;
    for row in [
        "INSERT INTO contacts (org_id, id, first_name, created_at, updated_at)
         VALUES ($1, 'c1', 'Ada', now(), now())",
        "INSERT INTO companies (org_id, id, name, created_at, updated_at)
         VALUES ($1, 'c1', 'Acme', now(), now())",
        "INSERT INTO deals (org_id, id, title, created_at, updated_at)
         VALUES ($1, 'd1', 'Deal', now(), now())",
        "INSERT INTO orders (org_id, id, order_number, status, amount, created_at, updated_at)
         VALUES ($1, 'o1', '1', 'ACTIVE', 5, now(), now())",
        "INSERT INTO leads (org_id, id, name, score, created_at, updated_at)
         VALUES ($1, 'l1', 'Ada', 1, now(), now())",
        "INSERT INTO clients (org_id, id, name, is_active, created_at, updated_at)
         VALUES ($1, 'c1', 'Ada', true, now(), now())",
        "INSERT INTO totals (org_id, kind, count)
         VALUES ($1, 'orders', 1), ($1, 'leads', 1), ($1, 'clients', 1)",
        "INSERT INTO revenue_months VALUES ($1, date_trunc('month', now()), 5)",
        "INSERT INTO workflows VALUES
         ($1, 'w1', 'One', 'ACTIVE', 1, 60, true, '[]', now(), now())",
        "INSERT INTO runs VALUES
         ($1, 'r1', 'w1', 1, 'QUEUED', '{}', now(), NULL, NULL, NULL, '[]')",
        "INSERT INTO api_keys VALUES ($1, 'k1', 'Key', '{}', 5, NULL, now())",
        "INSERT INTO webhooks VALUES
         ($1, 'h1', 'https://a.example', '{}', NULL, 'ENABLED', NULL, now(), now())",
        "INSERT INTO deliveries VALUES
         ($1, 'd1', 'h1', gen_random_uuid(), 1, 'run.started', 'PENDING', NULL, '[]', now(), now())",
    ] {
        api.execute(row).await;
    }
    let other = OrgId::from("another");
    let stranger = api.key_for(&other, &["admin"]).await;
    let stranger = format!("Bearer {stranger}");
    for (path, _) in READS {
        let own = api.get(path).await;
        assert_eq!(own.status, 200, "{path}: {own:?}");
        let answer = api.get_with(path, &[("authorization", &stranger)]).await;
        let (status, text) = (answer.status, answer.text());
        let only_header = !text.starts_with('{') && text.lines().count() == 1;
        let nothing = text.contains("\"data\":[]")
            || text.starts_with("{\"totalRevenue\":0,\"totalOrders\":0,\"totalLeads\":0,");
        let empty = status == 200 && (only_header || nothing);
        assert!(status == 404 || empty, "{path}: {status} {text}");
    }
    api.close().await;
}
