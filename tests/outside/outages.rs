//! NATS and Postgres become unavailable, and come back.

use std::process::Output;
use std::time::{Duration, Instant};

use harness::{Answer, Client, Organization, PASSWORD, Receiver, System, eventually};
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::active;
use crate::SHAPE;

/// Settings for which the tests' shared values are more patient.
const DEFAULTS: &[(&str, &str)] = &[
    ("WAYPOST_LOG_TIMEOUT_MS", "1500"),
    ("WAYPOST_LIMIT_PATIENCE_SECONDS", "0.25"),
    ("WAYPOST_DATABASE_ACQUIRE_SECONDS", "2"),
    ("WAYPOST_POSITION_WAIT_SECONDS", "5"),
    // Postgres is killed here, and earlier counts are checked afterwards.
    ("WAYPOST_LIMIT_FLUSH", "true"),
];
/// A response must not take longer while the log is unavailable.
const AT_ONCE: Duration = Duration::from_secs(2);

fn calling(receiver: &Receiver) -> Value {
    active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["call"]},
        {"id": "call", "type": "HTTP", "url": receiver.url("/"), "next": ["tell"],
         "retry": {"maxAttempts": 20, "initialSeconds": 0.2, "maxSeconds": 1}},
        {"id": "tell", "type": "NOTIFY", "event": "told"},
    ]))
}

/// Triggers some runs, and returns their ids.
async fn trigger_some(org: &Organization<'_>, workflow: &str) -> Vec<String> {
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(org.trigger(workflow, &json!({})).await);
    }
    runs
}

async fn assert_all_end(org: &Organization<'_>, runs: &[String]) {
    for run_id in runs {
        assert_eq!(org.ended(run_id).await["state"], "SUCCEEDED");
    }
}

async fn answered_at_once(client: &Client, path: &str) -> Answer {
    let sent = Instant::now();
    let answer = client.post_nothing(path).await;
    assert!(sent.elapsed() < AT_ONCE, "after {:?}", sent.elapsed());
    answer
}

/// Waits until a workflow can be triggered again.
async fn until_triggered(org: &Organization<'_>, path: &str) -> String {
    eventually("triggers to go on", async || {
        let answer = org.admin.post_nothing(path).await;
        let started = (answer.status == 202).then(|| answer.json())?;
        started["runId"].as_str().map(str::to_owned)
    })
    .await
}

async fn put_contact(org: &Organization<'_>, id: &str) -> Answer {
    let path = format!("/api/v1/records/contacts/{id}");
    org.admin.put(&path, &json!({"email": "a@b.c"})).await
}

#[tokio::test]
async fn services_that_start_while_the_log_is_away_wait_for_it() {
    let mut system = System::start_alone(SHAPE, DEFAULTS).await;
    let mut nats = system.nats.take().unwrap();
    nats.stop().await.unwrap();
    for program in system.programs() {
        program.restart();
    }
    let programs = system.programs().len();
    eventually("each to say that it waits", async || {
        let said = system.said();
        let waiting = said.matches("Waiting for what this service needs");
        (waiting.count() >= programs).then_some(())
    })
    .await;
    nats.restart().await.unwrap();
    system.until_ready().await;
    assert!(
        system
            .programs()
            .iter_mut()
            .all(|program| !program.has_ended())
    );
    let org = system.organization().await;
    assert_eq!(put_contact(&org, "c1").await.status, 201);
}

#[tokio::test]
async fn without_the_log_commands_are_refused_at_once_and_reads_go_on() {
    let mut system = System::start_alone(SHAPE, DEFAULTS).await;
    let mut nats = system.nats.take().unwrap();
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    receiver.delay(Duration::from_millis(300));
    let hook = json!({"url": receiver.url("/hook"), "events": ["run.succeeded"]});
    org.admin.post("/api/v1/webhooks", &hook).await.ok(201);
    let workflow = org.workflow(&calling(&receiver)).await;
    let trigger = format!("/api/v1/workflows/{workflow}/trigger");
    let ended = org.trigger(&workflow, &json!({})).await;
    org.ended(&ended).await;

    for held in [false, true] {
        put_contact(&org, "before").await;
        let under_way = trigger_some(&org, &workflow).await;
        if held {
            nats.pause();
        } else {
            nats.kill();
        }
        for _ in 0..3 {
            answered_at_once(&org.admin, &trigger).await.error(500);
        }
        let sent = Instant::now();
        put_contact(&org, "meanwhile").await.error(503);
        assert!(
            sent.elapsed() < AT_ONCE,
            "held: {held}, after {:?}",
            sent.elapsed()
        );
        let run = format!("/api/v1/runs/{ended}");
        assert_eq!(org.admin.get(&run).await.ok(200)["state"], "SUCCEEDED");
        org.admin.get("/api/v1/workflows").await.ok(200);
        assert_eq!(org.admin.get("/api/export/contacts").await.status, 200);
        system.client().get("/healthz").await.ok(200);

        if held {
            nats.resume();
        } else {
            nats.restart().await.expect("NATS again");
        }
        let after = until_triggered(&org, &trigger).await;
        assert_all_end(&org, &under_way).await;
        assert_all_end(&org, &[after]).await;
        eventually("records to go on", async || {
            let answer = put_contact(&org, "after").await;
            answer.status.is_success().then_some(())
        })
        .await;
    }
    // Each run that ended is reported, once.
    let list = format!("/api/v1/workflows/{workflow}/runs?state=SUCCEEDED");
    let all = format!("/api/v1/workflows/{workflow}/runs");
    let total = org.until(&all, |_| true).await["total"].clone();
    org.until(&list, |list| list["total"] == total).await;
    let hooks = usize::try_from(total.as_u64().unwrap()).unwrap();
    let told = receiver.wait_for(hooks, |call| call.path == "/hook").await;
    let mut runs: Vec<_> = told
        .iter()
        .map(|r| r.json()["data"]["runId"].to_string())
        .collect();
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), hooks);
}

#[tokio::test]
async fn without_the_read_models_triggers_go_on_and_all_is_caught_up_later() {
    let mut system = System::start_alone(SHAPE, DEFAULTS).await;
    let mut postgres = system.postgres.take().unwrap();
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    let workflow = org.workflow(&calling(&receiver)).await;
    let trigger = format!("/api/v1/workflows/{workflow}/trigger");
    let ended = org.trigger(&workflow, &json!({})).await;
    org.ended(&ended).await;
    let terms = json!({"name": "limited", "scopes": ["workflows:trigger"], "rateLimit": 10});
    let (limited, _) = org.unused_key(&terms).await;
    for _ in 0..4 {
        limited.post_nothing(&trigger).await.ok(202);
    }

    postgres.kill();
    for _ in 0..6 {
        limited.post_nothing(&trigger).await.ok(202);
    }
    let refused = limited.post_nothing(&trigger).await;
    refused.error(429);
    assert!(refused.header("retry-after").is_some());
    let meanwhile = trigger_some(&org, &workflow).await;
    // Runs do not need read models either.
    receiver.wait_for(21, |_| true).await;
    put_contact(&org, "meanwhile").await.ok(201);
    let run = format!("/api/v1/runs/{ended}");
    for path in [
        run.as_str(),
        "/api/v1/workflows",
        "/api/v1/keys",
        "/api/v1/webhooks",
    ] {
        org.admin.get(path).await.error(503);
    }
    for format in ["csv", "excel", "pdf"] {
        let path = format!("/api/export/contacts?format={format}");
        org.admin.get(&path).await.error(500);
    }
    system.client().get("/healthz").await.ok(200);

    postgres.restart().await.expect("Postgres again");
    assert_all_end(&org, &meanwhile).await;
    org.until("/api/v1/records/contacts/meanwhile", |_| true)
        .await;
    let csv = org.admin.get("/api/export/contacts").await.text();
    assert!(csv.contains("meanwhile"), "{csv}");
    // Requests counted while Postgres was unavailable still count.
    limited.post_nothing(&trigger).await.error(429);
    let all = format!("/api/v1/workflows/{workflow}/runs?state=SUCCEEDED");
    org.until(&all, |list| list["total"] == 21).await;
}

#[tokio::test]
async fn with_both_away_all_heals_by_itself() {
    let mut system = System::start_alone(SHAPE, DEFAULTS).await;
    let (mut nats, mut postgres) = (system.nats.take().unwrap(), system.postgres.take().unwrap());
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    let workflow = org.workflow(&calling(&receiver)).await;
    let trigger = format!("/api/v1/workflows/{workflow}/trigger");
    let mut runs = trigger_some(&org, &workflow).await;
    nats.kill();
    postgres.kill();
    answered_at_once(&org.admin, &trigger).await.error(500);
    org.admin.get("/api/v1/workflows").await.error(503);
    postgres.restart().await.expect("Postgres again");
    nats.restart().await.expect("NATS again");
    runs.push(until_triggered(&org, &trigger).await);
    assert_all_end(&org, &runs).await;
    system.until_ready().await;
}

/// Makes the program wait for a table of a projection, takes the log away until that is noticed,
/// and returns how it ended.
async fn without_the_log(system: &mut System, work: &str) -> Output {
    let nats = system.nats.take().unwrap();
    let (mut database, mut other) = (system.database().await, system.database().await);
    let mut held = database.begin().await.unwrap();
    held.execute("LOCK TABLE contacts").await.unwrap();
    let mut child = system.begin_waypost(&["projection", work, "contacts"]);
    eventually("it to wait for the table", async || {
        let waiting = sqlx::query_scalar::<_, i64>(
            "SELECT count(*) FROM pg_stat_activity
             WHERE application_name LIKE 'waypost %_contacts' AND wait_event_type = 'Lock'",
        );
        let waiting = waiting.fetch_one(&mut other).await.unwrap();
        (waiting > 0).then_some(())
    })
    .await;
    nats.pause();
    held.rollback().await.unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("Waiting for the log") {
            break;
        }
    }
    nats.resume();
    let output = child.wait_with_output().await.unwrap();
    system.nats = Some(nats);
    output
}

#[tokio::test]
async fn a_check_and_a_rebuild_go_on_once_the_log_answers_again() {
    let mut system = System::start_alone(SHAPE, DEFAULTS).await;
    {
        let org = system.organization().await;
        put_contact(&org, "kept").await.ok(201);
        org.until("/api/v1/records/contacts/kept", |_| true).await;
    }
    for work in ["verify", "rebuild"] {
        let output = without_the_log(&mut system, work).await;
        assert!(output.status.success(), "{work}");
    }
}

#[tokio::test]
async fn passwords_that_cannot_be_checked_without_the_log_are_no_wrong_guesses() {
    let most = 3;
    let most_guesses = most.to_string();
    let guesses = [
        ("WAYPOST_SIGN_IN_PER_ACCOUNT", &*most_guesses),
        ("WAYPOST_LIMIT_PATIENCE_SECONDS", "5"),
    ];
    let mut system = System::start_alone(SHAPE, &[DEFAULTS, &guesses].concat()).await;
    let mut nats = system.nats.take().unwrap();
    let person = system.person("Ada").await;
    let change = json!({"old": PASSWORD, "new": "battery staple"});
    let change = async |key: &str| {
        let person = &person.client;
        person.post_once("/auth/password", key, &change).await
    };

    nats.kill();
    for nth in 0..=most {
        change(&format!("key {nth}")).await.error(503);
    }
    nats.restart().await.expect("NATS again");
    let changed = eventually("the log to answer", async || {
        let answer = change("the same").await;
        (answer.status != 503).then_some(answer)
    });
    changed.await.ok(200);
}

#[tokio::test]
async fn registrations_that_fail_without_the_log_are_no_tries() {
    let most = 3;
    let most_tries = most.to_string();
    let tries = [
        ("WAYPOST_SIGN_IN_PER_ACCOUNT", &*most_tries),
        ("WAYPOST_LIMIT_PATIENCE_SECONDS", "5"),
    ];
    let mut system = System::start_alone(SHAPE, &[DEFAULTS, &tries].concat()).await;
    let mut nats = system.nats.take().unwrap();
    let client = system.client();
    let registration = json!({"name": "Ada", "email": "ada@persons.example", "password": PASSWORD});
    let register = async || {
        // With a key, so that one that was stored without an answer is answered again.
        let sent = client.post_once("/auth/register", "the same", &registration);
        sent.await
    };

    nats.kill();
    for _ in 0..=most {
        register().await.error(503);
    }
    nats.restart().await.expect("NATS again");
    let registered = eventually("the log to answer", async || {
        let answer = register().await;
        (answer.status != 503).then_some(answer)
    });
    registered.await.ok(201);
}
