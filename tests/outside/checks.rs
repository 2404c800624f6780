//! Authorization, and the order of a request's checks.

use harness::{Answer, Client};
use reqwest::Method;
use serde_json::json;

use super::only_begins;
use crate::system;

const NOTHING: &str = "/api/v1/workflows/nothing/trigger";

fn assert_asks_for_a_key(answer: &Answer, case: &str) {
    assert!(!answer.error(401).is_empty(), "{case}");
    let challenge = answer.header("www-authenticate").expect(case);
    assert!(challenge.starts_with("Bearer"), "{case}: {challenge}");
    assert_eq!(answer.header("ratelimit"), None, "{case}");
}

async fn with_header(client: &Client, name: &str, value: &str) -> Answer {
    let request = client.request(Method::POST, NOTHING).header(name, value);
    Answer::to(request).await
}

#[tokio::test]
async fn a_request_without_a_valid_key_is_asked_for_one() {
    let org = system().await.organization().await;
    let nobody = org.system.client();
    let key = org.key.as_str();
    assert_asks_for_a_key(&nobody.post_nothing(NOTHING).await, "no key");
    let swapped = format!("{}{}", &key[..key.len() - 1], '!');
    let flipped = key.replace(|c: char| c.is_ascii_digit(), "x");
    let unknown = "wp_0000000000000000000000000000000000000000000000000";
    for value in [
        "Bearer",
        "Bearer ",
        "Bearer x",
        &format!("Bearer {swapped}"),
        &format!("Bearer {flipped}"),
        &format!("Bearer {key}x"),
        &format!("Bearer {unknown}"),
        &format!("Bearer {} {key}", "x"),
        &format!("Basic {key}"),
        key,
    ] {
        let answer = with_header(&nobody, "authorization", value).await;
        assert_asks_for_a_key(&answer, value);
    }
    let answer = with_header(&nobody, "x-api-key", key).await;
    assert_asks_for_a_key(&answer, "X-Api-Key is the business data API's alone");
    let in_url = nobody
        .post_nothing(&format!("{NOTHING}?access_token={key}&key={key}"))
        .await;
    assert_asks_for_a_key(&in_url, "in the address");

    let lower = with_header(&nobody, "authorization", &format!("bearer {key}")).await;
    lower.error(404);
}

#[tokio::test]
async fn every_kind_of_request_asks_for_a_key() {
    let nobody = system().await.client();
    for (method, path) in [
        (Method::POST, "/api/v1/workflows/w/trigger"),
        (Method::PUT, "/api/v1/workflows/w"),
        (Method::GET, "/api/v1/workflows"),
        (Method::GET, "/api/v1/workflows/w"),
        (Method::GET, "/api/v1/workflows/w/runs"),
        (Method::GET, "/api/v1/runs/r"),
        (Method::POST, "/api/v1/runs/r/cancel"),
        (Method::GET, "/api/export/companies"),
        (Method::GET, "/api/export/deals"),
        (Method::GET, "/api/v1/orders"),
        (Method::GET, "/api/v1/leads"),
        (Method::GET, "/api/v1/analytics"),
        (Method::GET, "/api/v1/clients"),
        (Method::POST, "/api/v1/records/contacts"),
        (Method::PUT, "/api/v1/records/contacts/c"),
        (Method::GET, "/api/v1/records/contacts/c"),
        (Method::DELETE, "/api/v1/records/contacts/c"),
        (Method::GET, "/api/export/contacts"),
        (Method::POST, "/api/v1/keys"),
        (Method::GET, "/api/v1/keys"),
        (Method::DELETE, "/api/v1/keys/k"),
        (Method::POST, "/api/v1/webhooks"),
        (Method::GET, "/api/v1/webhooks"),
        (Method::GET, "/api/v1/webhooks/h"),
        (Method::PATCH, "/api/v1/webhooks/h"),
        (Method::DELETE, "/api/v1/webhooks/h"),
        (Method::GET, "/api/v1/webhooks/h/deliveries"),
    ] {
        let case = format!("{method} {path}");
        let answer = Answer::to(nobody.request(method, path)).await;
        assert_asks_for_a_key(&answer, &case);
    }
}

#[tokio::test]
async fn every_kind_of_request_names_the_scope_that_is_missing() {
    let org = system().await.organization().await;
    // A key with every scope except the required one.
    for (method, path, scope) in [
        (Method::POST, NOTHING, "workflows:trigger"),
        (Method::PUT, "/api/v1/workflows/w", "workflows:write"),
        (Method::GET, "/api/v1/workflows", "workflows:read"),
        (Method::GET, "/api/v1/workflows/w", "workflows:read"),
        (Method::GET, "/api/v1/workflows/w/runs", "workflows:read"),
        (Method::GET, "/api/v1/runs/r", "workflows:read"),
        (Method::POST, "/api/v1/runs/r/cancel", "workflows:write"),
        (Method::POST, "/api/v1/records/contacts", "records:write"),
        (Method::PUT, "/api/v1/records/contacts/c", "records:write"),
        (Method::GET, "/api/v1/records/contacts/c", "records:write"),
        (
            Method::DELETE,
            "/api/v1/records/contacts/c",
            "records:write",
        ),
        (
            Method::GET,
            "/api/export/companies",
            "export:companies:read",
        ),
        (Method::GET, "/api/export/deals", "export:deals:read"),
        (Method::GET, "/api/export/contacts", "export:contacts:read"),
        (Method::GET, "/api/v1/orders", "read:orders"),
        (Method::GET, "/api/v1/leads", "read:leads"),
        (Method::GET, "/api/v1/analytics", "read:analytics"),
        (Method::GET, "/api/v1/clients", "read:clients"),
        (Method::POST, "/api/v1/keys", "keys:manage"),
        (Method::GET, "/api/v1/keys", "keys:manage"),
        (Method::DELETE, "/api/v1/keys/k", "keys:manage"),
        (Method::POST, "/api/v1/webhooks", "webhooks:manage"),
        (Method::GET, "/api/v1/webhooks", "webhooks:manage"),
        (
            Method::GET,
            "/api/v1/webhooks/h/deliveries",
            "webhooks:manage",
        ),
    ] {
        let others: Vec<_> = SCOPES.iter().copied().filter(|s| *s != scope).collect();
        let client = org.client(&others).await;
        let answer = Answer::to(client.request(method.clone(), path)).await;
        let message = answer.error(403);
        assert!(message.contains(scope), "{method} {path}: {message}");
    }
}

/// Every scope except `admin`, which passes every check.
const SCOPES: &[&str] = &[
    "workflows:trigger",
    "workflows:read",
    "workflows:write",
    "export:companies:read",
    "export:deals:read",
    "export:contacts:read",
    "read:orders",
    "read:leads",
    "read:analytics",
    "read:clients",
    "records:write",
    "webhooks:manage",
    "events:read",
    "circles:manage",
    "keys:manage",
];

#[tokio::test]
async fn a_trigger_is_judged_in_one_order() {
    let org = system().await.organization().await;
    let mut paused = only_begins();
    paused["status"] = json!("PAUSED");
    let paused = org.workflow(&paused).await;
    let paused = format!("/api/v1/workflows/{paused}/trigger");
    let bad = "[]";
    let json = "application/json";

    // 401 before all else, then 429, 403, 400, 404 and 409.
    let nobody = org.system.client();
    nobody.post_bytes(NOTHING, json, bad).await.error(401);
    let terms = json!({"name": "spent", "scopes": ["workflows:read"], "rateLimit": 1});
    let (spent, _) = org.unused_key(&terms).await;
    spent.post_bytes(NOTHING, json, bad).await.error(403);
    spent.post_bytes(NOTHING, json, bad).await.error(429);
    let reader = org.client(&["workflows:read"]).await;
    reader.post_bytes(NOTHING, json, bad).await.error(403);
    reader
        .post_nothing("/api/v1/workflows//trigger")
        .await
        .error(403);
    let caller = org.client(&["workflows:trigger"]).await;
    caller.post_bytes(NOTHING, json, bad).await.error(400);
    caller.post_bytes(&paused, json, bad).await.error(400);
    caller.post_nothing(NOTHING).await.error(404);
    caller.post_nothing(&paused).await.error(409);
}

#[tokio::test]
async fn a_body_that_is_too_large_gets_a_413_and_one_of_another_type_a_415() {
    let org = system().await.organization().await;
    let url = json!({"url": "https://example.com/"});
    let made = org.admin.post("/api/v1/webhooks", &url).await.ok(201);
    let webhook = format!("/api/v1/webhooks/{}", made["id"].as_str().unwrap());
    let large = json!({"name": "x".repeat(4 * 1024 * 1024)}).to_string();
    for (method, path) in [
        (Method::PUT, "/api/v1/workflows/w"),
        (Method::POST, "/api/v1/records/contacts"),
        (Method::PUT, "/api/v1/records/contacts/c"),
        (Method::POST, "/api/v1/keys"),
        (Method::POST, "/api/v1/webhooks"),
        (Method::PATCH, webhook.as_str()),
    ] {
        let send = async |kind: &str, body: &str| {
            let request = org.admin.request(method.clone(), path);
            let request = request.header("content-type", kind).body(body.to_owned());
            Answer::to(request).await
        };
        let answer = send("application/json", &large).await;
        assert_eq!(answer.status, 413, "{method} {path}");
        answer.error(413);
        let answer = send("text/plain", "{}").await;
        assert_eq!(answer.status, 415, "{method} {path}");
        answer.error(415);
    }
}

#[tokio::test]
async fn a_path_that_takes_another_method_says_so() {
    let nobody = system().await.client();
    for (method, path) in [
        (Method::GET, "/api/v1/workflows/w/trigger"),
        (Method::PUT, "/api/v1/workflows/w/trigger"),
        (Method::DELETE, "/api/v1/workflows/w/trigger"),
        (Method::PATCH, "/api/v1/workflows/w/trigger"),
        (Method::POST, "/api/export/contacts"),
        (Method::POST, "/api/export/companies"),
        (Method::DELETE, "/api/export/deals"),
        (Method::POST, "/api/v1/orders"),
        (Method::PUT, "/api/v1/leads"),
        (Method::DELETE, "/api/v1/clients"),
        (Method::PATCH, "/api/v1/analytics"),
        (Method::DELETE, "/api/v1/workflows"),
        (Method::POST, "/api/v1/runs/r"),
        (Method::GET, "/api/v1/runs/r/cancel"),
        (Method::GET, "/api/v1/records/contacts"),
        (Method::PUT, "/api/v1/keys"),
        (Method::PATCH, "/api/v1/keys/k"),
    ] {
        let case = format!("{method} {path}");
        let answer = Answer::to(nobody.request(method, path)).await;
        assert_eq!(answer.status, 405, "{case}");
        answer.error(405);
    }
}

#[tokio::test]
async fn an_unknown_path_is_not_found_without_a_key() {
    let nobody = system().await.client();
    for method in [Method::GET, Method::POST, Method::DELETE] {
        for path in [
            "/nothing",
            "/api",
            "/api/v2/workflows",
            "/api/v1/workflows/w/nothing",
            "/api/export/people",
            "/API/v1/keys",
        ] {
            let answer = Answer::to(nobody.request(method.clone(), path)).await;
            assert_eq!(answer.status, 404, "{method} {path}");
            answer.error(404);
        }
    }
}
