//! Templates: too much work is refused and blocks nobody, values stay in their places, secrets go
//! only where they may.

use std::time::Duration;

use futures::future::join_all;
use harness::{Organization, Receiver};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{active, only_begins};
use crate::system;

/// Numbers that need a thousand million comparisons to compare with each other.
fn numbers() -> Value {
    json!({ "l": (0..33_000).collect::<Vec<_>>() })
}

/// Ordinary use by an organization, while others do what they like.
async fn goes_on(org: &Organization<'_>, workflow: &str) {
    let run = org.trigger(workflow, &json!({ "id": "1" })).await;
    assert_eq!(org.ended(&run).await["state"], "SUCCEEDED");
    org.system.person("Grace").await;
    org.admin.get("/api/v1/workflows").await.ok(200);
}

fn steps(step: &Value) -> Value {
    let start = json!({"id": "start", "type": "TRIGGER", "next": [step["id"]]});
    active(&json!([start, step]))
}

#[tokio::test]
async fn an_expression_that_is_too_much_work_is_refused_and_holds_up_nobody() {
    let system = system().await;
    let (hostile, ordinary) = (system.organization().await, system.organization().await);
    let receiver = Receiver::start().await;
    let expression = "trigger.l|reject('in', trigger.l)|length > 0";
    let template = "{{ trigger.l|select('in', trigger.l)|length }}";
    let definitions = [
        steps(&json!({"id": "x", "type": "CONDITION", "if": expression, "then": [], "else": []})),
        steps(&json!({"id": "x", "type": "NOTIFY", "event": "never", "data": {"n": template}})),
        steps(
            &json!({"id": "x", "type": "HTTP", "method": "POST", "url": receiver.url("/"),
            "body": template, "retry": {"maxAttempts": 1}}),
        ),
        steps(&json!({"id": "x", "type": "RECORD", "kind": "contacts",
            "data": {"email": "a@b.c", "owner": template}})),
    ];
    let mut workflows = Vec::new();
    for definition in &definitions {
        workflows.push(hostile.workflow(definition).await);
    }
    // An event that a filter and a wait's match evaluate as well.
    let filter = "data.l|select('in', data.l)|length > 0";
    let on = json!({ "event": "custom.much", "filter": filter });
    let listens = active(&json!([{"id": "start", "type": "TRIGGER", "on": on}]));
    hostile.workflow(&listens).await;
    let wait = json!({"id": "x", "type": "WAIT_FOR_EVENT", "event": "custom.much",
        "match": filter, "timeoutSeconds": 86_400});
    let waits = hostile.workflow(&steps(&wait)).await;
    let tells =
        json!({"id": "x", "type": "NOTIFY", "event": "much", "data": {"l": "{{ trigger.l }}"}});
    let tells = hostile.workflow(&steps(&tells)).await;
    let usual = ordinary.workflow(&only_begins()).await;
    let waiting = hostile.trigger(&waits, &json!({})).await;
    hostile
        .until(&format!("/api/v1/runs/{waiting}"), |run| {
            run["state"] == "WAITING"
        })
        .await;

    let payload = numbers();
    let begun = workflows.iter().chain([&tells]).cycle().take(10);
    let runs = join_all(begun.map(|workflow| hostile.trigger(workflow, &payload))).await;
    for _ in 0..3 {
        let going_on = timeout(Duration::from_secs(10), goes_on(&ordinary, &usual));
        going_on.await.expect("others go on meanwhile");
    }
    for run in runs {
        let run = hostile.ended(&run).await;
        if run["workflowId"] == json!(tells) {
            assert_eq!(run["state"], "SUCCEEDED", "{run}");
            continue;
        }
        let error = run["error"].as_str().expect("an error");
        assert_eq!(run["state"], "FAILED");
        assert!(error.contains("is too expensive"), "{error}");
        assert!(error.contains("use shorter lists"), "{error}");
    }
    assert!(receiver.received().is_empty());
    let mut counted = false;
    for (_, client) in system.clients() {
        let metrics = client.get("/metrics").await.text();
        counted |= metrics.contains("waypost_templates_refused_total{reason=\"work\"}");
    }
    assert!(counted, "what was refused is counted");
    let waiting = format!("/api/v1/runs/{waiting}");
    assert_eq!(
        hostile.admin.get(&waiting).await.ok(200)["state"],
        "WAITING"
    );
}

#[tokio::test]
async fn a_value_cannot_lead_a_call_to_another_place() {
    let (org, receiver) = (system().await.organization().await, Receiver::start().await);
    let url = receiver.url("/leads/{{ trigger.id }}/notes?q={{ trigger.q }}");
    let call = json!({"id": "call", "type": "HTTP", "url": url, "retry": {"maxAttempts": 1}});
    let workflow = org.workflow(&steps(&call)).await;
    let hostile = json!({"id": "../admin?x=1#y", "q": "a&admin=true#"});
    let run = org.trigger(&workflow, &hostile).await;
    assert_eq!(org.ended(&run).await["state"], "SUCCEEDED");
    let received = receiver.received();
    assert_eq!(
        received[0].path,
        "/leads/..%2Fadmin%3Fx%3D1%23y/notes?q=a%26admin%3Dtrue%23"
    );
    let run = org.trigger(&workflow, &json!({"id": "..", "q": ""})).await;
    let run = org.ended(&run).await;
    let error = run["error"].as_str().expect("an error");
    assert!(
        error.contains("url: ") && error.contains("leads elsewhere"),
        "{error}"
    );
    // The host is chosen by the author as well.
    let url = receiver.url("/").replace("127.0.0.1", "{{ trigger.host }}");
    let call = json!({"id": "call", "type": "HTTP", "url": url, "retry": {"maxAttempts": 1}});
    let workflow = org.workflow(&steps(&call)).await;
    let run = org
        .trigger(&workflow, &json!({"host": "127.0.0.1/x?"}))
        .await;
    let run = org.ended(&run).await;
    let error = run["error"].as_str().expect("an error");
    assert!(error.contains("is the host"), "{error}");
    let run = org.trigger(&workflow, &json!({"host": "127.0.0.1"})).await;
    assert_eq!(org.ended(&run).await["state"], "SUCCEEDED");
    assert_eq!(receiver.received().len(), 2);
}

#[tokio::test]
async fn a_secret_goes_only_to_the_hosts_that_it_names() {
    let (org, receiver) = (system().await.organization().await, Receiver::start().await);
    let secret = "s3cr3t-of-the-house";
    for (name, hosts) in [
        ("HERE", &["--hosts", "crm.example,127.0.0.1"][..]),
        ("THERE", &["--hosts", "crm.example,*.example.org"]),
        // A secret's permissions outlive its value.
        ("THERE", &[]),
        ("ANYWHERE", &["--hosts", "crm.example"]),
        ("ANYWHERE", &["--any-host"]),
    ] {
        let set = [&["secret", "set", "--org", &org.id, name], hosts].concat();
        let printed = org.system.waypost_reading(&set, secret.as_bytes()).await;
        assert_eq!(printed, json!({ "name": name }));
    }
    for (name, goes) in [("HERE", true), ("THERE", false), ("ANYWHERE", true)] {
        for (place, call) in [
            (
                "headers",
                json!({"headers": {"Authorization": format!("Bearer {{{{ secrets.{name} }}}}")}}),
            ),
            (
                "body",
                json!({"method": "POST", "body": {"token": [format!("{{{{ secrets.{name} }}}}")]}}),
            ),
            (
                "url",
                json!({"url": receiver.url(&format!("/?key={{{{ secrets.{name} }}}}"))}),
            ),
        ] {
            let mut step = json!({"id": "call", "type": "HTTP", "url": receiver.url("/"), "retry": {"maxAttempts": 1}});
            let Value::Object(fields) = call else {
                panic!("fields")
            };
            step.as_object_mut().unwrap().extend(fields);
            let workflow = org.workflow(&steps(&step)).await;
            let before = receiver.received().len();
            let run = org.trigger(&workflow, &json!({})).await;
            let run = org.ended(&run).await;
            let state = if goes { "SUCCEEDED" } else { "FAILED" };
            assert_eq!(run["state"], state, "{name} in {place}: {run}");
            assert_eq!(receiver.received().len() - before, usize::from(goes));
            assert!(!run.to_string().contains(secret), "{run}");
            if !goes {
                let error = run["error"].as_str().expect("an error");
                let expected = "may be sent only to crm.example, *.example.org, not to 127.0.0.1";
                assert!(error.contains(expected), "{error}");
            }
        }
    }
    let wrong = [
        "secret",
        "set",
        "--org",
        &org.id,
        "HERE",
        "--hosts",
        "https://crm.example/",
    ];
    let refused = org.system.waypost_output(&wrong, secret.as_bytes()).await;
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && said.contains("is not a host"),
        "{said}"
    );
}
