//! Workflows triggered by events and the clock.

use std::time::Duration;

use harness::{Organization, Receiver, System, eventually_within};
use serde_json::{Value, json};

use super::active;
use crate::{SHAPE, system};

async fn runs(org: &Organization<'_>, workflow: &str, count: usize) -> Vec<Value> {
    let path = format!("/api/v1/workflows/{workflow}/runs?limit=100");
    let found = |list: &Value| list["data"].as_array().map_or(0, Vec::len);
    let list = org.until(&path, |list| found(list) >= count).await;
    list["data"].as_array().expect("runs").clone()
}

fn listening(on: &Value) -> Value {
    active(&json!([
        {"id": "start", "type": "TRIGGER", "on": on, "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "heard", "data": {"id": "{{ trigger.id }}"}},
    ]))
}

#[tokio::test]
async fn an_event_sets_a_workflow_off_once() {
    let org = system().await.organization().await;
    let on = json!({"event": "lead.*", "filter": "data.score >= 50"});
    let workflow = org.workflow(&listening(&on)).await;
    let mut paused = listening(&on);
    paused["status"] = json!("PAUSED");
    let silent = org.workflow(&paused).await;
    for (id, score) in [("cold", 49), ("hot", 50)] {
        let lead = json!({"id": id, "name": "Ada", "score": score});
        org.admin.post("/api/v1/records/leads", &lead).await.ok(201);
    }
    let found = runs(&org, &workflow, 1).await;
    let payload = &found[0]["triggerPayload"];
    assert_eq!(
        (&payload["id"], &payload["score"]),
        (&json!("hot"), &json!(50))
    );
    assert_eq!(payload["triggeredBy"], "event");
    assert!(payload["triggeredAt"].is_string());
    let run_id = found[0]["runId"].as_str().expect("runId");
    assert_eq!(org.ended(run_id).await["state"], "SUCCEEDED");
    let change = json!({"name": "Ada", "score": 70});
    let changed = org.admin.put("/api/v1/records/leads/cold", &change).await;
    changed.ok(200);
    let found = runs(&org, &workflow, 2).await;
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["triggerPayload"]["id"], "cold");
    let path = format!("/api/v1/workflows/{silent}/runs");
    assert_eq!(org.admin.get(&path).await.ok(200)["total"], 0);
}

/// The contract's example, with an address and times that a test can use.
fn welcoming(receiver: &Receiver, timeout: u32) -> Value {
    let url = receiver.url("/leads/{{ trigger.id }}");
    json!({"name": "Welcome a lead", "status": "ACTIVE", "timeoutSeconds": 86_400, "steps": [
        {"id": "start", "type": "TRIGGER",
         "on": {"event": "lead.created", "filter": "data.score >= 50"}, "next": ["hot"]},
        {"id": "hot", "type": "CONDITION", "if": "trigger.score >= 80",
         "then": ["call"], "else": ["later"]},
        {"id": "call", "type": "HTTP", "method": "POST", "url": url,
         "headers": {"Authorization": "Bearer {{ secrets.CRM_TOKEN }}"},
         "body": {"email": "{{ trigger.email }}"}, "timeoutSeconds": 15,
         "retry": {"maxAttempts": 5, "initialSeconds": 1, "maxSeconds": 60},
         "acceptStatus": [200, 201], "next": ["save"]},
        {"id": "later", "type": "DELAY", "seconds": 1, "next": ["reply"]},
        {"id": "reply", "type": "WAIT_FOR_EVENT", "event": "contact.updated",
         "match": "data.email == trigger.email", "timeoutSeconds": timeout,
         "next": ["save"], "onTimeout": ["tell"]},
        {"id": "save", "type": "RECORD", "kind": "contacts", "recordId": "{{ trigger.id }}",
         "data": {"email": "{{ trigger.email }}"}, "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "lead_welcomed",
         "data": {"status": "{{ steps.call.output.status }}"}, "join": "any"},
    ]})
}

/// Waits until a run waits for its event, and writes a contact that is one.
async fn answer(org: &Organization<'_>, run_id: &str) {
    let path = "/api/v1/records/contacts/c-1";
    let contact = |name: &str| json!({"firstName": name, "email": "ada@example.org"});
    org.admin.put(path, &contact("Ada")).await.ok(201);
    let waits = |run: &Value| {
        let mut steps = run["steps"].as_array().into_iter().flatten();
        steps.any(|step| step["id"] == "reply" && step["state"] == "WAITING")
    };
    org.until(&format!("/api/v1/runs/{run_id}"), waits).await;
    org.admin.put(path, &contact("Ada L.")).await.ok(200);
}

#[tokio::test]
async fn the_contracts_workflow_succeeds_on_every_way() {
    let (system, receiver) = (system().await, Receiver::start().await);
    for (score, timeout, answered, saved, status) in [
        (90, 600, false, "SUCCEEDED", json!(200)),
        (60, 600, true, "SUCCEEDED", json!(null)),
        (60, 2, false, "SKIPPED", json!(null)),
    ] {
        let org = system.organization().await;
        let set = ["secret", "set", "--org", &org.id, "CRM_TOKEN"];
        org.system.waypost_reading(&set, b"t0ken").await;
        let workflow = org.workflow(&welcoming(&receiver, timeout)).await;
        let lead = json!({"id": "l-1", "name": "Ada", "email": "ada@example.org", "score": score});
        org.admin.post("/api/v1/records/leads", &lead).await.ok(201);
        let found = runs(&org, &workflow, 1).await;
        let run_id = found[0]["runId"].as_str().expect("runId");
        if answered {
            answer(&org, run_id).await;
        }
        let run = org.ended(run_id).await;
        assert_eq!(run["state"], "SUCCEEDED", "{run}");
        let mut steps = run["steps"].as_array().expect("steps").iter();
        let save = steps.find(|step| step["id"] == "save");
        assert_eq!(save.expect("the step")["state"], saved, "{run}");
        let path = "/api/v1/events?types=custom.lead_welcomed";
        let facts = org.admin.get(path).await.text();
        let fact: Value = serde_json::from_str(facts.trim()).expect("one event");
        assert_eq!(fact["data"], json!({ "status": status }), "{run}");
    }
    let calls = receiver.received();
    assert_eq!((calls.len(), calls[0].path.as_str()), (1, "/leads/l-1"));
    assert_eq!(calls[0].header("authorization"), "Bearer t0ken");
}

#[tokio::test]
async fn a_call_for_help_sets_off_with_what_the_organization_may_see() {
    let system = system().await;
    let (org, person) = (system.organization().await, system.person("Ada").await);
    let circle = json!({"name": "Field"});
    let circle = org.admin.post("/api/v1/circles", &circle).await.ok(201);
    let id = circle["id"].as_str().expect("id");
    let invites = format!("/api/v1/circles/{id}/invites");
    let invite = org.admin.post(&invites, &json!({})).await.ok(201);
    person
        .joins_by(invite["code"].as_str().expect("a code"))
        .await;
    let on = json!({"event": "sos.triggered", "filter": "data.message == 'Help'"});
    let workflow = org
        .workflow(&active(
            &json!([{"id": "start", "type": "TRIGGER", "on": on}]),
        ))
        .await;
    let call = json!({"lat": 52.5, "lng": 13.4, "message": "Help"});
    let answer = person.client.post("/sos/trigger", &call).await.ok(202);
    let found = runs(&org, &workflow, 1).await;
    let payload = &found[0]["triggerPayload"];
    assert_eq!(payload["sos_id"], answer["sos_id"]);
    assert_eq!(
        (&payload["lat"], &payload["message"]),
        (&json!(52.5), &json!("Help"))
    );
    assert!(payload.get("sealed").is_none() && payload.get("audience").is_none());
}

#[tokio::test]
async fn no_organization_hears_of_anothers_events() {
    let system = system().await;
    let (one, other) = (system.organization().await, system.organization().await);
    let on = json!({"event": "lead.created"});
    let mine = one.workflow(&listening(&on)).await;
    let theirs = other.workflow(&listening(&on)).await;
    let lead = json!({"id": "l-1", "name": "Ada"});
    one.admin.post("/api/v1/records/leads", &lead).await.ok(201);
    runs(&one, &mine, 1).await;
    let path = format!("/api/v1/workflows/{theirs}/runs");
    assert_eq!(other.admin.get(&path).await.ok(200)["total"], 0);
}

#[tokio::test]
async fn workflows_that_feed_each_other_end() {
    let org = system().await.organization().await;
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "on": {"event": "custom.again"}, "next": ["tell"]},
            {"id": "tell", "type": "NOTIFY", "event": "again",
             "data": {"n": "{{ trigger.n + 1 }}"}},
        ])))
        .await;
    let first = org.trigger(&workflow, &json!({"n": 0})).await;
    org.ended(&first).await;
    let found = runs(&org, &workflow, 9).await;
    let mut counted: Vec<i64> = found
        .iter()
        .map(|run| run["triggerPayload"]["n"].as_i64().expect("n"))
        .collect();
    counted.sort_unstable();
    assert_eq!(counted, (0..=8).collect::<Vec<_>>());
    for run in &found {
        let run_id = run["runId"].as_str().expect("runId");
        assert_eq!(org.ended(run_id).await["state"], "SUCCEEDED");
    }
    assert_eq!(runs(&org, &workflow, 9).await.len(), 9);
}

/// The only test here that has to wait for the clock: a minute has to begin.
#[tokio::test]
async fn a_schedule_sets_a_workflow_off_every_minute() {
    let org = system().await.organization().await;
    let on = json!({"schedule": "* * * * *", "timezone": "Asia/Kolkata"});
    let workflow = org
        .workflow(&active(
            &json!([{"id": "start", "type": "TRIGGER", "on": on}]),
        ))
        .await;
    let path = format!("/api/v1/workflows/{workflow}/runs");
    let limit = Duration::from_secs(90);
    let found = eventually_within(limit, "a minute to begin", async || {
        let answer = org.admin.get(&path).await;
        let list = answer.status.is_success().then(|| answer.json())?;
        (list["total"] != 0).then_some(list)
    });
    let payload = &found.await["data"][0]["triggerPayload"];
    assert_eq!(payload["triggeredBy"], "schedule");
    let due = payload["scheduledFor"].as_str().expect("a time");
    assert!(due.ends_with(":00+00:00") || due.ends_with(":00Z"), "{due}");
}

#[tokio::test]
async fn no_event_is_missed_over_a_kill() {
    let mut system = System::start_alone(SHAPE, &[]).await;
    let (id, admin, key, workflow) = {
        let org = system.organization().await;
        let definition = listening(&json!({"event": "lead.created"}));
        let workflow = org.workflow(&definition).await;
        (org.id.clone(), org.admin.clone(), org.key.clone(), workflow)
    };
    for round in 0..3 {
        for nth in 0..10 {
            let lead = json!({"id": format!("l-{round}-{nth}"), "name": "Ada"});
            admin.post("/api/v1/records/leads", &lead).await.ok(201);
        }
        system.crash();
        system.revive().await;
    }
    let org = Organization {
        system: &system,
        id,
        admin,
        key,
    };
    let path = format!("/api/v1/workflows/{workflow}/runs?limit=100");
    let list = org.until(&path, |list| list["total"] == 30).await;
    let mut ids: Vec<String> = list["data"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["triggerPayload"]["id"].to_string())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 30);
    for run in list["data"].as_array().expect("runs") {
        let run_id = run["runId"].as_str().expect("runId");
        assert_eq!(org.ended(run_id).await["state"], "SUCCEEDED");
    }
}
