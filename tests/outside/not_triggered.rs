//! What did not trigger a workflow, or could not, is reported with the reason.

use std::time::Duration;

use harness::{Organization, System, eventually, eventually_within};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{active, only_begins};
use crate::{SHAPE, system};

/// Number of runs that an organization may have open here.
const OPEN: usize = 5;

async fn narrow() -> &'static System {
    static SYSTEM: OnceCell<System> = OnceCell::const_new();
    let settings = [("WAYPOST_OPEN_RUNS_PER_ORGANIZATION", "5")];
    SYSTEM
        .get_or_init(async || System::start(SHAPE, &settings).await)
        .await
}

fn listens(event: &str, filter: &str) -> Value {
    let on = json!({"event": event, "filter": filter});
    active(&json!([{"id": "start", "type": "TRIGGER", "on": on}]))
}

fn waits(on: &Value) -> Value {
    active(&json!([
        {"id": "start", "type": "TRIGGER", "on": on, "next": ["later"]},
        {"id": "later", "type": "DELAY", "seconds": 3_600},
    ]))
}

async fn lead(org: &Organization<'_>, id: &str) {
    let lead = json!({"id": id, "name": "Ada", "score": 80});
    org.admin.post("/api/v1/records/leads", &lead).await.ok(201);
}

/// The feed's events about a workflow.
async fn told(org: &Organization<'_>, workflow: &str) -> Vec<Value> {
    let feed = "/api/v1/events?types=workflow.not_triggered";
    let feed = org.admin.get(feed).await.text();
    let lines = feed.lines().map(|line| {
        let event: Value = serde_json::from_str(line).expect("an event");
        event["data"].clone()
    });
    lines
        .filter(|told| told["workflowId"] == workflow)
        .collect()
}

async fn first_told(org: &Organization<'_>, workflow: &str) -> Value {
    eventually("it to be told", async || {
        told(org, workflow).await.into_iter().next()
    })
    .await
}

/// Number of a workflow's runs in the read model.
async fn runs(org: &Organization<'_>, workflow: &str) -> u64 {
    let path = format!("/api/v1/workflows/{workflow}/runs");
    let list = org.admin.get(&path).await.ok(200);
    list["total"].as_u64().expect("a total")
}

/// Waits until a workflow has at least the given number of runs that match the query.
async fn until_runs(org: &Organization<'_>, workflow: &str, query: &str, least: usize) {
    let path = format!("/api/v1/workflows/{workflow}/runs{query}");
    let has = |list: &Value| list["total"].as_u64() >= Some(least as u64);
    org.until(&path, has).await;
}

#[tokio::test]
async fn a_filter_that_fails_is_reported_with_the_reason_but_not_for_every_event() {
    let org = system().await.organization().await;
    let wrong = listens("lead.created", "data.name - 1 > 0");
    let wrong = org.workflow(&wrong).await;
    let fine = org
        .workflow(&listens("lead.created", "data.score > 50"))
        .await;
    for nth in 0..5 {
        lead(&org, &format!("l-{nth}")).await;
    }
    let why = first_told(&org, &wrong).await;
    assert_eq!(why["reason"], "filter");
    assert_eq!(why["eventType"], "lead.created");
    assert!(why.get("limit").is_none(), "{why}");
    let error = why["error"].as_str().expect("an error");
    assert!(error.contains("data.name"), "{error}");
    until_runs(&org, &fine, "?state=SUCCEEDED", 5).await;
    // Once an hour, and the hour may just have passed.
    let all = told(&org, &wrong).await;
    assert!((1..=2).contains(&all.len()), "{all:?}");
    assert_eq!(runs(&org, &wrong).await, 0);
    // A version that was fixed, and broke in another way, is reported again.
    let path = format!("/api/v1/workflows/{wrong}");
    let again = listens("lead.created", "data.name - 2 > 0");
    org.admin.put(&path, &again).await.ok(200);
    lead(&org, "l-5").await;
    eventually("the new version to be told of", async || {
        (told(&org, &wrong).await.len() > all.len()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_filter_that_is_too_expensive_is_reported_with_what_to_do() {
    let org = system().await.organization().await;
    let filter = "data.l|select('in', data.l)|length > 0";
    let costly = org.workflow(&listens("custom.much", filter)).await;
    let tells = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["tell"]},
            {"id": "tell", "type": "NOTIFY", "event": "much", "data": {"l": "{{ trigger.l }}"}},
        ])))
        .await;
    let numbers: Vec<u32> = (0..33_000).collect();
    let run = org.trigger(&tells, &json!({"l": numbers})).await;
    let why = first_told(&org, &costly).await;
    assert_eq!(
        (&why["reason"], &why["causeId"]),
        (&json!("filter"), &json!(run))
    );
    let error = why["error"].as_str().expect("an error");
    assert!(error.contains("too expensive"), "{error}");
    assert!(error.contains("use shorter lists"), "{error}");
}

#[tokio::test]
async fn an_organization_may_have_so_many_open_runs_and_is_notified_at_the_bound() {
    let system = narrow().await;
    let (many, few) = (system.organization().await, system.organization().await);
    let workflow = many
        .workflow(&waits(&json!({"event": "lead.created"})))
        .await;
    for nth in 0..OPEN {
        lead(&many, &format!("l-{nth}")).await;
    }
    until_runs(&many, &workflow, "?state=WAITING", OPEN).await;
    // An event triggers nothing any more, and that is reported.
    lead(&many, "one-more").await;
    let why = first_told(&many, &workflow).await;
    assert_eq!(
        (&why["reason"], &why["limit"]),
        (&json!("openRuns"), &json!(OPEN))
    );
    assert_eq!(runs(&many, &workflow).await, OPEN as u64);
    // Nor does a request, which gets instructions.
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    let refused = eventually("a request to be refused", async || {
        let answer = many.admin.post(&path, &json!({})).await;
        (answer.status != 202).then_some(answer)
    })
    .await;
    let error = refused.error(409);
    assert!(
        error.contains("5 open runs") && error.contains("cancel some"),
        "{error}"
    );
    let mut counted = false;
    for (_, client) in system.clients() {
        let metrics = client.get("/metrics").await.text();
        counted |= metrics.contains("waypost_triggers_refused_total{reason=\"open_runs\"}");
    }
    assert!(counted, "what was refused is counted");
    // Others are not affected.
    let other = few.workflow(&only_begins()).await;
    let run = few.trigger(&other, &json!({})).await;
    assert_eq!(few.ended(&run).await["state"], "SUCCEEDED");
    // Once some have ended, there is room again.
    let list = format!("/api/v1/workflows/{workflow}/runs?limit=100");
    let list = many.admin.get(&list).await.ok(200);
    for run in list["data"].as_array().expect("runs") {
        let cancel = format!(
            "/api/v1/runs/{}/cancel",
            run["runId"].as_str().expect("an id")
        );
        many.admin.post(&cancel, &json!({})).await.ok(202);
    }
    eventually("a request to be taken again", async || {
        let answer = many.admin.post(&path, &json!({})).await;
        (answer.status == 202).then_some(())
    })
    .await;
    let before = told(&many, &workflow).await.len();
    lead(&many, "again").await;
    until_runs(&many, &workflow, "?state=WAITING", 2).await;
    assert_eq!(told(&many, &workflow).await.len(), before);
}

/// Fills the organization with waiting runs of a workflow, all started by requests.
async fn filled(org: &Organization<'_>) -> String {
    let workflow = org
        .workflow(&waits(&json!({"event": "custom.never"})))
        .await;
    for _ in 0..OPEN {
        org.trigger(&workflow, &json!({})).await;
    }
    until_runs(org, &workflow, "?state=WAITING", OPEN).await;
    workflow
}

#[tokio::test]
async fn a_repeated_retry_gets_its_first_answer_at_the_bound_too() {
    let org = narrow().await.organization().await;
    let waits = waits(&json!({"event": "custom.never"}));
    let workflow = org.workflow(&waits).await;
    let run = org.trigger(&workflow, &json!({})).await;
    let path = |what: &str| format!("/api/v1/runs/{run}/{what}");
    org.admin.post_nothing(&path("cancel")).await.ok(202);
    assert_eq!(org.ended(&run).await["state"], "CANCELLED");
    let retry = async || {
        org.admin
            .post_once(&path("retry"), "again", &json!({}))
            .await
    };
    let first = retry().await.ok(202);
    let trigger = format!("/api/v1/workflows/{workflow}/trigger");
    eventually("the bound to be met", async || {
        let answer = org.admin.post(&trigger, &json!({})).await;
        (answer.status == 409).then_some(())
    })
    .await;
    assert_eq!(retry().await.ok(202), first);
}

#[tokio::test]
async fn a_schedule_triggers_nothing_past_the_bound_and_that_is_reported() {
    let org = narrow().await.organization().await;
    filled(&org).await;
    let clock = json!({"schedule": "* * * * *"});
    let workflow = org.workflow(&waits(&clock)).await;
    let two_minutes = Duration::from_mins(2);
    let why = eventually_within(two_minutes, "a minute to pass and be told", async || {
        told(&org, &workflow).await.into_iter().next()
    })
    .await;
    assert_eq!(
        (&why["reason"], &why["limit"], &why["eventType"]),
        (&json!("openRuns"), &json!(OPEN), &json!("schedule"))
    );
    assert_eq!(runs(&org, &workflow).await, 0);
}

#[tokio::test]
async fn a_match_that_fails_is_reported_with_the_run_but_not_for_every_event() {
    let org = system().await.organization().await;
    let workflow = org
        .workflow(&active(&json!([
            {"id": "start", "type": "TRIGGER", "next": ["reply"]},
            {"id": "reply", "type": "WAIT_FOR_EVENT", "event": "lead.created",
             "match": "data.name - 1 > 0", "timeoutSeconds": 3_600},
        ])))
        .await;
    let run = org.trigger(&workflow, &json!({})).await;
    until_runs(&org, &workflow, "?state=WAITING", 1).await;
    for nth in 0..5 {
        lead(&org, &format!("l-{nth}")).await;
    }
    let why = first_told(&org, &workflow).await;
    assert_eq!(
        (
            &why["reason"],
            &why["runId"],
            &why["stepId"],
            &why["eventType"]
        ),
        (
            &json!("match"),
            &json!(run),
            &json!("reply"),
            &json!("lead.created")
        )
    );
    let error = why["error"].as_str().expect("an error");
    assert!(error.contains("data.name"), "{error}");
    // All have been judged once a run has started that the last one triggers.
    let marks = org
        .workflow(&listens("lead.created", "data.id == 'last'"))
        .await;
    lead(&org, "last").await;
    until_runs(&org, &marks, "", 1).await;
    // Once an hour, and the hour may just have passed.
    let all = told(&org, &workflow).await;
    assert!((1..=2).contains(&all.len()), "{all:?}");
}
