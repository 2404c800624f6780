//! Text with U+0000 or half a surrogate pair, wherever a client can send text: refused with the
//! field's name, or returned as it was sent, and never a reason for a later read to fail.

use harness::{Answer, Client, Organization, Person};
use reqwest::Method;
use serde_json::{Value, json};

use super::active;
use super::dashboard::Owner;
use crate::system;

/// The text's place in the requests below.
const HERE: &str = "<here>";
const NUL: &str = "a\\u0000b";
const HALF: &str = "a\\ud800b";

const PERSONAL: &[(&str, &str, &str)] = &[
    ("/circles", "name", r#"{"name": "<here>"}"#),
    (
        "/circles/{circle}/places",
        "name",
        r#"{"name": "<here>", "lat": 1, "lng": 1, "radius_m": 100}"#,
    ),
    (
        "/location/update",
        "place_name",
        r#"{"lat": 1, "lng": 1, "place_name": "<here>"}"#,
    ),
    (
        "/location/update",
        "[0].place_name",
        r#"[{"lat": 1, "lng": 1, "place_name": "<here>"}]"#,
    ),
    ("/location/pause", "until", r#"{"until": "<here>"}"#),
    ("/sos/trigger", "message", r#"{"message": "<here>"}"#),
    (
        "/auth/register",
        "name",
        r#"{"name": "<here>", "email": "a@example.org", "password": "long enough"}"#,
    ),
    (
        "/auth/register",
        "email",
        r#"{"name": "A", "email": "<here>@example.org", "password": "long enough"}"#,
    ),
    (
        "/auth/register",
        "phone",
        r#"{"name": "A", "email": "b@example.org", "password": "long enough", "phone": "<here>"}"#,
    ),
    ("/auth/otp/send", "phone", r#"{"phone": "<here>"}"#),
    (
        "/auth/otp/verify",
        "phone",
        r#"{"phone": "<here>", "code": "123456"}"#,
    ),
];

const BUSINESS: &[(&str, &str, &str)] = &[
    (
        "/api/v1/keys",
        "name",
        r#"{"name": "<here>", "scopes": ["admin"]}"#,
    ),
    (
        "/api/v1/keys",
        "scopes",
        r#"{"name": "A", "scopes": ["<here>"]}"#,
    ),
    (
        "/api/v1/webhooks",
        "url",
        r#"{"url": "https://example.org/<here>"}"#,
    ),
    (
        "/api/v1/webhooks",
        "events",
        r#"{"url": "https://example.org/", "events": ["custom.<here>"]}"#,
    ),
    (
        "/api/v1/webhooks",
        "description",
        r#"{"url": "https://example.org/", "description": "<here>"}"#,
    ),
    ("/api/v1/circles", "name", r#"{"name": "<here>"}"#),
    (
        "/api/v1/records/companies",
        "id",
        r#"{"id": "<here>", "name": "A"}"#,
    ),
    (
        "/api/v1/records/companies",
        "domain",
        r#"{"name": "A", "domain": "<here>"}"#,
    ),
    (
        "/api/v1/records/deals",
        "stage",
        r#"{"title": "A", "stage": "<here>"}"#,
    ),
    (
        "/api/v1/records/contacts",
        "firstName",
        r#"{"firstName": "<here>"}"#,
    ),
    (
        "/api/v1/records/orders",
        "client.name",
        r#"{"orderNumber": "1", "status": "ACTIVE", "amount": 1, "client": {"name": "<here>"}}"#,
    ),
    (
        "/api/v1/records/leads",
        "source",
        r#"{"name": "A", "source": "<here>"}"#,
    ),
    (
        "/api/v1/records/clients",
        "city",
        r#"{"name": "A", "city": "<here>"}"#,
    ),
];

async fn post(client: &Client, path: &str, body: &str, text: &str) -> Answer {
    let body = body.replace(HERE, text);
    client.post_bytes(path, "application/json", body).await
}

/// A guess gets the same response as any other: it was not this.
const GUESSES: &[(&str, u16, &str)] = &[
    ("/circles/join", 404, r#"{"code": "<here>"}"#),
    (
        "/auth/login",
        401,
        r#"{"email": "a@example.org", "password": "<here>"}"#,
    ),
    (
        "/auth/login",
        401,
        r#"{"email": "<here>@example.org", "password": "A"}"#,
    ),
    (
        "/auth/otp/verify",
        401,
        r#"{"phone": "+4930000000", "code": "<here>"}"#,
    ),
    (
        "/auth/password",
        401,
        r#"{"old": "<here>", "new": "long enough"}"#,
    ),
];

#[tokio::test]
async fn text_that_cannot_be_kept_is_refused_by_its_fields_name() {
    let org = Organization::create(system().await).await;
    let person = org.system.person("Ada").await;
    let circle = person.makes_circle().await;
    let personal = PERSONAL.iter().map(|one| (&person.client, one));
    let business = BUSINESS.iter().map(|one| (&org.admin, one));
    for (client, (path, field, body)) in personal.chain(business) {
        let path = path.replace("{circle}", &circle);
        let refused = post(client, &path, body, NUL).await;
        let message = refused.error(400);
        assert!(message.contains(field), "{path} {body}: {message}");
        post(client, &path, body, HALF).await.error(400);
    }
    for (path, status, body) in GUESSES {
        let answer = post(&person.client, path, body, NUL).await;
        let status = [*status, 400];
        assert!(
            status.contains(&answer.status.as_u16()),
            "{path}: {answer:?}"
        );
        post(&person.client, path, body, HALF).await.error(400);
    }
    let lines = format!("{{\"name\": \"{NUL}\"}}\n{{\"name\": \"{HALF}\"}}\n{{\"name\": \"A\"}}\n");
    let path = "/api/v1/records/leads";
    let answer = org
        .admin
        .post_bytes(path, "application/x-ndjson", lines)
        .await;
    let text = answer.text();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines[0]["error"].as_str().unwrap().contains("name"));
    assert!(lines[1]["error"].is_string() && lines[2]["status"] == "created");
}

/// A workflow with U+0000 in everything that is not a name.
fn odd_workflow() -> Value {
    active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["tell"],
            "on": {"event": "custom.none", "filter": "data.x == 'a\u{0}b'"}},
        {"id": "tell", "type": "NOTIFY", "event": "told",
            "data": {"as it is": "a\u{0}b", "a\u{0}b": "{{ trigger['a\u{0}b'] }}"}},
    ]))
}

/// All pages and lists that an organization's key can read without an id.
const READS: &[&str] = &[
    "/api/v1/workflows",
    "/api/v1/workflows/odd",
    "/api/v1/workflows/odd/runs",
    "/api/v1/keys",
    "/api/v1/webhooks",
    "/api/v1/orders",
    "/api/v1/leads",
    "/api/v1/clients",
    "/api/v1/analytics",
    "/api/v1/events",
    "/api/v1/locations",
    "/api/export/companies",
    "/api/export/deals?format=excel",
    "/api/export/contacts?format=pdf",
];

#[tokio::test]
async fn json_of_a_clients_own_is_given_back_as_it_was_sent_by_every_read() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let key = owner
        .key(&json!({"name": "setup", "scopes": ["admin"]}))
        .await;
    let admin = system.client().with_key(key["key"].as_str().unwrap());
    let saved = admin.put("/api/v1/workflows/odd", &odd_workflow()).await;
    saved.ok(200);
    let page_at = async |path: &str, position: &str| {
        let page = owner.page(&format!("{path}?position={position}")).await;
        assert_eq!(page.status, 200, "{}", page.text());
        page.text()
    };
    let shown = page_at("/dashboard/workflows", &saved.position()).await;
    assert!(shown.contains("data-run=\"odd\""), "it can be run: {shown}");

    let sent = json!({"text": "a\u{0}b", "a\u{0}b": ["\u{0}", {"\u{0}": 1}]});
    let started = admin.post("/api/v1/workflows/odd/trigger", &sent).await;
    let run_id = started.ok(202)["runId"].as_str().unwrap().to_owned();
    let run = harness::eventually("the end of the run", async || {
        let run = admin.get(&format!("/api/v1/runs/{run_id}")).await;
        let run = run.status.is_success().then(|| run.json())?;
        (!run["endedAt"].is_null()).then_some(run)
    })
    .await;
    assert_eq!(run["state"], "SUCCEEDED", "{run}");
    for (name, value) in sent.as_object().unwrap() {
        assert_eq!(run["triggerPayload"][name], *value);
    }
    let told = json!({"as it is": "a\u{0}b", "a\u{0}b": ["\u{0}", {"\u{0}": 1}]});
    let facts = admin.get("/api/v1/events?types=custom.told").await.text();
    let fact: Value = serde_json::from_str(facts.lines().next().unwrap()).unwrap();
    assert_eq!(fact["data"], told, "{fact}");
    for path in READS {
        let answer = admin.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {:?}", answer.text());
    }
    for path in ["/dashboard", "/dashboard/runs"] {
        let shown = page_at(path, &started.position()).await;
        assert!(
            shown.contains(&run_id) && shown.contains("API key"),
            "{path}: {shown}"
        );
    }
    let page = owner.page(&format!("/dashboard/runs/{run_id}")).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("a\\u0000b"), "{}", page.text());

    let half = format!("{{\"text\": \"{HALF}\"}}");
    let refused = admin
        .post_bytes("/api/v1/workflows/odd/trigger", "application/json", half)
        .await;
    refused.error(400);
}

/// A documented path with U+0000 for each parameter in it, and for one in the query.
fn with_nul(path: &str, parameter: Option<&str>) -> String {
    let mut filled = String::new();
    for part in path.split('/').skip(1) {
        filled.push('/');
        filled.push_str(if part.starts_with('{') { "a%00b" } else { part });
    }
    if let Some(name) = parameter {
        filled.extend(["?", name, "=a%00b"]);
    }
    filled
}

/// An operation's query parameters.
fn in_query<'a>(document: &'a Value, operation: &'a Value) -> Vec<&'a str> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let resolved = parameters.map(|one| match one["$ref"].as_str() {
        Some(place) => document.pointer(&place[1..]).unwrap(),
        None => one,
    });
    resolved
        .filter(|one| one["in"] == "query")
        .map(|one| one["name"].as_str().unwrap())
        .collect()
}

async fn answers_of(client: &Client, method: &str, address: &str) {
    let asked = method.to_uppercase().parse::<Method>().unwrap();
    let request = client.request(asked, address);
    let request = request
        .header("content-type", "application/json")
        .body("{}");
    let answer = Answer::to(request).await;
    assert!(
        answer.status.as_u16() < 500,
        "{method} {address}: {} {}",
        answer.status,
        answer.text()
    );
}

#[tokio::test]
async fn no_address_with_u0000_in_it_fails() {
    let org = Organization::create(system().await).await;
    let person: Person = org.system.person("Ada").await;
    let document = org.system.client().get("/openapi.json").await.ok(200);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let by_person = operation["security"][0].get("accessToken").is_some();
            // Signing out would end all that follows.
            let ends = path == "/auth/logout";
            let client = match (by_person, ends) {
                (_, true) => &system().await.client(),
                (true, _) => &person.client,
                (false, _) => &org.admin,
            };
            answers_of(client, method, &with_nul(path, None)).await;
            for name in in_query(&document, operation) {
                answers_of(client, method, &with_nul(path, Some(name))).await;
            }
        }
    }
}

/// Postgres functions that parse JSON: one U+0000 in it makes them reject all of it.
const LOOKS_INTO_JSON: &[&str] = &["->>", "#>>", "::jsonb", "jsonb_", "json_array", "json_each"];

#[test]
fn no_read_has_postgres_look_into_a_clients_own_json() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../query-api/src");
    let mut folders = vec![folder];
    let mut sources = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                let found = LOOKS_INTO_JSON.iter().find(|name| source.contains(**name));
                assert_eq!(found, None, "{}", path.display());
                sources += 1;
            }
        }
    }
    assert!(sources > 50, "the sources were not found: {sources}");
}
