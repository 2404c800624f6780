//! `/api/v1/workflows`: saved, read and listed.

use serde_json::{Value, json};

use super::{active, only_begins};
use crate::system;

/// One step of each current type, with every possible field.
fn whole() -> Value {
    json!({
        "name": "Welcome a lead ☀", "status": "DRAFT", "timeoutSeconds": 3600,
        "steps": [
            {"id": "start", "type": "TRIGGER", "next": ["call", "note"]},
            {"id": "call", "type": "HTTP", "method": "POST",
             "url": "https://crm.example/leads/{{ trigger.id }}",
             "headers": {"Authorization": "Bearer {{ secrets.CRM_TOKEN }}"},
             "body": {"email": "{{ trigger.email }}", "fixed": [1, null, true]},
             "timeoutSeconds": 5,
             "retry": {"maxAttempts": 5, "initialSeconds": 1, "maxSeconds": 60},
             "acceptStatus": [200, 201], "next": ["tell"]},
            {"id": "note", "type": "NOTIFY", "event": "noted", "data": {}, "next": ["tell"]},
            {"id": "tell", "type": "NOTIFY", "event": "lead_welcomed",
             "data": {"status": "{{ steps.call.output.status }}"}, "join": "all"},
        ],
    })
}

fn path(id: &str) -> String {
    format!("/api/v1/workflows/{id}")
}

/// Asserts that `found` has at least the fields of `wanted`, recursively.
#[track_caller]
fn assert_has(found: &Value, wanted: &Value) {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            for (name, wanted) in wanted {
                let found = found.get(name).unwrap_or_else(|| panic!("no {name}"));
                assert_has(found, wanted);
            }
        }
        (Value::Array(found), Value::Array(wanted)) if found.len() == wanted.len() => {
            for (found, wanted) in found.iter().zip(wanted) {
                assert_has(found, wanted);
            }
        }
        (Value::Number(found), Value::Number(wanted)) => {
            assert_eq!(found.as_f64(), wanted.as_f64());
        }
        _ => assert_eq!(found, wanted),
    }
}

#[tokio::test]
async fn a_workflow_is_saved_in_versions_and_read_back() {
    let org = system().await.organization().await;
    let first = org.admin.put(&path("w1"), &whole()).await;
    assert_eq!(first.ok(200), json!({"workflowId": "w1", "version": 1}));
    let read = org.admin.get_at(&path("w1"), &first.position()).await;
    let read = read.ok(200);
    assert_has(&read, &json!({"workflowId": "w1", "version": 1}));
    let mut wanted = whole();
    wanted.as_object_mut().unwrap().remove("timeoutSeconds");
    assert_has(&read, &wanted);
    chrono::DateTime::parse_from_rfc3339(read["updatedAt"].as_str().unwrap()).unwrap();

    let mut paused = whole();
    paused["status"] = json!("PAUSED");
    let second = org.admin.put(&path("w1"), &paused).await;
    assert_eq!(second.ok(200), json!({"workflowId": "w1", "version": 2}));
    let read = org.admin.get_at(&path("w1"), &second.position()).await;
    assert_has(&read.ok(200), &json!({"version": 2, "status": "PAUSED"}));
}

#[tokio::test]
async fn what_is_read_can_be_saved_again() {
    let org = system().await.organization().await;
    let saved = org.admin.put(&path("w"), &whole()).await;
    let read = org
        .admin
        .get_at(&path("w"), &saved.position())
        .await
        .ok(200);
    let mut again = json!({});
    for field in ["name", "status", "steps"] {
        again[field] = read[field].clone();
    }
    org.admin.put(&path("copy"), &again).await.ok(200);
}

#[tokio::test]
async fn workflows_are_listed_newest_first() {
    let org = system().await.organization().await;
    let none = org.admin.get("/api/v1/workflows").await.ok(200);
    assert_eq!(
        none,
        json!({"data": [], "total": 0, "page": 1, "limit": 20})
    );
    for id in ["a", "b", "c"] {
        org.admin.put(&path(id), &only_begins()).await.ok(200);
    }
    let changed = org.admin.put(&path("a"), &whole()).await;
    let list = org
        .admin
        .get_at("/api/v1/workflows", &changed.position())
        .await
        .ok(200);
    assert_eq!((&list["total"], &list["page"]), (&json!(3), &json!(1)));
    let items = list["data"].as_array().unwrap();
    let ids: Vec<_> = items.iter().map(|item| &item["workflowId"]).collect();
    assert_eq!(ids, ["c", "b", "a"], "saving again makes nothing newer");
    let mut fields: Vec<_> = items[2].as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(
        fields,
        ["name", "status", "updatedAt", "version", "workflowId"]
    );
    assert_has(
        &items[2],
        &json!({"version": 2, "status": "DRAFT", "name": "Welcome a lead ☀"}),
    );
}

#[tokio::test]
async fn an_unknown_workflow_is_not_found() {
    let org = system().await.organization().await;
    org.admin.get(&path("nothing")).await.error(404);
    org.admin.get(&path("nothing/runs")).await.error(404);
    org.admin.get("/api/v1/runs/nothing").await.error(404);
    org.admin
        .post_nothing("/api/v1/runs/nothing/cancel")
        .await
        .error(404);
}

fn with(change: impl Fn(&mut Value)) -> Value {
    let mut definition = whole();
    change(&mut definition);
    definition
}

#[tokio::test]
async fn each_error_in_a_definition_is_reported_with_its_place() {
    let org = system().await.organization().await;
    let step = |nth: usize, field: &str, value: Value| {
        with(|definition| definition["steps"][nth][field] = value.clone())
    };
    for (definition, place) in [
        (with(|d| d["name"] = json!("")), "name"),
        (with(|d| d["name"] = json!(7)), "name"),
        (with(|d| d["status"] = json!("LIVE")), "status"),
        (with(|d| d["status"] = Value::Null), "status"),
        (with(|d| d["steps"] = Value::Null), "steps"),
        (with(|d| d["steps"] = json!({})), "steps"),
        (with(|d| d["timeoutSeconds"] = json!(0)), "timeoutSeconds"),
        (with(|d| d["timeoutSeconds"] = json!("1")), "timeoutSeconds"),
        (with(|d| d["colour"] = json!("red")), "colour"),
        (step(1, "id", json!("")), "steps[1].id"),
        (step(1, "id", json!("start")), "steps[1].id"),
        (step(1, "type", json!("DANCE")), "steps[1].type"),
        (step(1, "type", Value::Null), "steps[1].type"),
        (step(2, "type", json!("TRIGGER")), "steps[2]"),
        (step(1, "url", Value::Null), "steps[1].url"),
        (step(1, "url", json!("ftp://example.com")), "steps[1].url"),
        (
            step(1, "url", json!("https://x.y/{{ trigger.")),
            "steps[1].url",
        ),
        (
            step(1, "url", json!("https://x.y/{{ nobody.x }}")),
            "steps[1].url",
        ),
        (step(1, "method", json!("DANCE")), "steps[1].method"),
        (
            step(1, "timeoutSeconds", json!(-1)),
            "steps[1].timeoutSeconds",
        ),
        (
            step(1, "acceptStatus", json!([99])),
            "steps[1].acceptStatus",
        ),
        (step(1, "headers", json!({"Host": "x"})), "steps[1].headers"),
        (
            step(1, "headers", json!({"A": "x\r\nB: y"})),
            "steps[1].headers",
        ),
        (
            step(1, "retry", json!({"maxAttempts": 0})),
            "steps[1].retry.maxAttempts",
        ),
        (step(1, "next", json!(["nobody"])), "steps[1].next"),
        (step(3, "next", json!(["call"])), "steps[1].next"),
        (step(3, "event", Value::Null), "steps[3].event"),
        (step(3, "join", json!("some")), "steps[3].join"),
        (step(3, "colour", json!("red")), "steps[3].colour"),
        (
            step(3, "data", json!({"a": "{{ 1 + }}"})),
            "steps[3].data.a",
        ),
        (
            step(3, "data", json!({"a": "{{ secrets.KEY }}"})),
            "steps[3].data.a",
        ),
    ] {
        let answer = org.admin.put(&path("w"), &definition).await;
        assert_eq!(answer.status, 400, "{place}: {}", answer.text());
        let message = answer.error(400);
        assert!(message.contains(place), "{place}: {message}");
    }
    for body in ["", "[]", "null", "{", "7"] {
        let request = org
            .admin
            .request(reqwest::Method::PUT, &path("w"))
            .header("content-type", "application/json")
            .body(body);
        harness::Answer::to(request).await.error(400);
    }
    let long = path(&"x".repeat(129));
    org.admin.put(&long, &whole()).await.error(400);
    org.admin.get(&path("w")).await.error(404);
}

#[tokio::test]
async fn data_that_is_nested_too_deep_is_refused_by_its_place() {
    let org = system().await.organization().await;
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
    let mut definition = whole();
    definition["steps"][2]["data"] = nested(101);
    let message = org.admin.put(&path("w"), &definition).await.error(400);
    assert!(message.starts_with("steps[2].data: "), "{message}");
    definition["steps"][2]["data"] = nested(100);
    org.admin.put(&path("w"), &definition).await.ok(200);
    let data = nested(100);
    org.until(&path("w"), |read| read["steps"][2]["data"] == data)
        .await;
}

#[tokio::test]
async fn an_operator_saves_a_workflow_from_a_file() {
    let system = system().await;
    let org = system.organization().await;
    let file = system.home().join(format!("{}.json", org.id));
    std::fs::write(&file, whole().to_string()).unwrap();
    let file = file.to_str().unwrap();
    let put = ["workflow", "put", "--org", &org.id];
    let named = [&put[..], &["--id", "w", file]].concat();
    let named = system.waypost(&named).await;
    assert_eq!(named, json!({"workflowId": "w", "version": 1}));
    let unnamed = system.waypost(&[&put[..], &[file]].concat()).await;
    assert_eq!(unnamed["version"], 1);
    let id = unnamed["workflowId"].as_str().unwrap();
    org.until(&path(id), |read| read["version"] == 1).await;

    std::fs::write(
        file,
        active(&json!([{"id": "a", "type": "DANCE"}])).to_string(),
    )
    .unwrap();
    let arguments = [&put[..], &[file]].concat();
    let output = system.waypost_output(&arguments, b"").await;
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("steps[0].type"), "{said}");
}
