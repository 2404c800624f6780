//! The System page for operators of the installation.

use harness::{Answer, Owner, System, eventually, heal};
use reqwest::Method;
use reqwest::header::COOKIE;
use serde_json::{Value, json};
use sqlx::{Executor as _, PgConnection};

use crate::SHAPE;

const PAGE: &str = "/dashboard/system";
const OPERATIONS: &str = "/dashboard/system/operations";

async fn ask(operator: &Owner, body: &Value) -> Answer {
    operator.send(Method::POST, OPERATIONS, Some(body)).await
}

/// The outcome of a requested operation, with its messages.
async fn ended(database: &mut PgConnection, id: &Value) -> (String, Vec<String>) {
    let id = id.as_str().unwrap();
    eventually("the operation to end", async || {
        sqlx::query_as(
            "SELECT outcome, told FROM projection_operations
             WHERE operation_id = $1::uuid AND ended_at IS NOT NULL",
        )
        .bind(id)
        .fetch_optional(&mut *database)
        .await
        .unwrap()
    })
    .await
}

/// The contacts in the dead letters.
async fn left(database: &mut PgConnection) -> Vec<String> {
    sqlx::query_scalar("SELECT aggregate_id FROM dead_letters ORDER BY sequence")
        .fetch_all(database)
        .await
        .unwrap()
}

#[tokio::test]
async fn only_operators_see_and_touch_what_is_of_everybody() {
    let (system, operator) = System::operated(SHAPE).await;
    let stranger = Owner::sign_in(&system).await;
    let mut database = system.database().await;
    let another = system.organization().await;
    let sequences = another.has_dead_letters(&mut database, &["theirs_1"]).await;
    let page = operator.is_shown(PAGE, "theirs_1").await;
    for word in [&another.id, "contact.created.v1", "fails_theirs_1"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    let page = stranger.page(PAGE).await.text();
    assert!(page.contains("None: everything was taken in."), "{page}");
    for word in ["theirs_1", &another.id, "data-ask", "Rebuild"] {
        assert!(!page.contains(word), "{word}");
    }
    let retry = json!({"kind": "retry", "projection": "contacts", "letter": sequences[0]});
    let error = ask(&stranger, &retry).await.error(403);
    assert!(error.contains("WAYPOST_OPERATOR_ORG"), "{error}");
    let verify = json!({"kind": "verify", "projection": "contacts"});
    ask(&stranger, &verify).await.error(403);
    let nobody = system.client().request(Method::POST, OPERATIONS);
    let nobody = Answer::to(nobody.header("Origin", system.client().base())).await;
    nobody.error(401);
    // A page of another site cannot act in an operator's name.
    let request = operator.client.request(Method::POST, OPERATIONS);
    let request = request.header(COOKIE, &operator.cookie);
    let request = request.header("Origin", "https://evil.example");
    Answer::to(
        request
            .header("Content-Type", "application/json")
            .body(verify.to_string()),
    )
    .await
    .error(403);
    let asked: i64 = sqlx::query_scalar("SELECT count(*) FROM projection_operations")
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert_eq!(asked, 0, "nothing was asked for");
    // Others cannot cancel what operators have requested.
    let made = ask(&operator, &verify).await.ok(202);
    let one = format!("{OPERATIONS}/{}", made["id"].as_str().unwrap());
    stranger.send(Method::DELETE, &one, None).await.error(403);
    let (outcome, told) = ended(&mut database, &made["id"]).await;
    assert_eq!(outcome, "SUCCEEDED", "{told:?}");
    assert_eq!(left(&mut database).await, ["theirs_1"]);
}

#[tokio::test]
async fn dead_letters_are_retried_and_skipped_singly_or_as_many_as_were_shown() {
    let (system, operator) = System::operated(SHAPE).await;
    let mut database = system.database().await;
    let org = system.organization().await;
    let sequences = org
        .has_dead_letters(&mut database, &["a", "b", "c", "d"])
        .await;
    let page = operator.is_shown(PAGE, "Retry all 4").await;
    assert!(page.contains("Skip all 4"), "{page}");
    let one = json!({"kind": "retry", "projection": "contacts", "letter": sequences[0]});
    heal(&mut database, "a").await;
    let made = ask(&operator, &one).await.ok(202);
    let (outcome, told) = ended(&mut database, &made["id"]).await;
    assert_eq!(
        (outcome.as_str(), &told[..]),
        ("SUCCEEDED", &["1 event applied".to_owned()][..])
    );
    assert_eq!(left(&mut database).await, ["b", "c", "d"]);
    ask(&operator, &one).await.error(404);

    let skip = json!({"kind": "skip", "projection": "contacts", "letter": sequences[1]});
    let made = ask(&operator, &skip).await.ok(202);
    let (outcome, told) = ended(&mut database, &made["id"]).await;
    assert_eq!(outcome, "SUCCEEDED", "{told:?}");
    assert_eq!(left(&mut database).await, ["c", "d"]);
    let still = json!({"kind": "retry", "projection": "contacts", "letter": sequences[2]});
    let made = ask(&operator, &still).await.ok(202);
    let (outcome, told) = ended(&mut database, &made["id"]).await;
    assert_eq!(outcome, "FAILED", "the cause is still there: {told:?}");
    assert_eq!(left(&mut database).await, ["c", "d"]);
    let known = system.waypost(&["projection", "dead-letters"]).await;
    assert_eq!(known["skipped"][0]["sequence"], sequences[1], "{known}");

    // "All" means those that the page has shown.
    let all = |count: u32| json!({"kind": "skip", "projection": "contacts", "upTo": sequences[3], "count": count});
    let error = ask(&operator, &all(4)).await.error(409);
    assert!(error.contains('2'), "{error}");
    let made = ask(&operator, &all(2)).await.ok(202);
    assert_eq!(made["letters"], 2);
    let (outcome, told) = ended(&mut database, &made["id"]).await;
    assert_eq!(outcome, "SUCCEEDED", "{told:?}");
    assert!(
        told.contains(&"2 dead letters skipped".to_owned()),
        "{told:?}"
    );
    assert!(left(&mut database).await.is_empty());
    operator
        .is_shown(PAGE, "None: everything of everybody was taken in.")
        .await;
    for (body, status) in [
        (json!({"kind": "empty", "projection": "contacts"}), 400),
        (json!({"kind": "retry", "projection": "contacts"}), 400),
        (
            json!({"kind": "verify", "projection": "contacts", "letter": 1}),
            400,
        ),
        (json!({"kind": "verify", "projection": "gossip"}), 404),
    ] {
        ask(&operator, &body).await.error(status);
    }
}

#[tokio::test]
async fn a_verify_reports_what_differs_and_a_rebuild_repairs_it() {
    let (system, operator) = System::operated(SHAPE).await;
    let org = system.organization().await;
    let contact = json!({"id": "c-1", "firstName": "Zoë", "email": "zoe@example.com"});
    org.admin
        .post("/api/v1/records/contacts", &contact)
        .await
        .ok(201);
    let one = "/api/v1/records/contacts/c-1";
    let right = org.until(one, |_| true).await;
    let mut database = system.database().await;
    let spoil = "UPDATE contacts SET first_name = 'Mallory'";
    database.execute(spoil).await.unwrap();
    let verify = json!({"kind": "verify", "projection": "contacts"});
    let made = ask(&operator, &verify).await.ok(202);
    let (outcome, told) = ended(&mut database, &made["id"]).await;
    assert_eq!(outcome, "DIFFERS", "{told:?}");
    assert_eq!(told[0], "1 difference");
    assert!(told[1].contains("id=c-1"), "{told:?}");
    let page = operator.is_shown(PAGE, "1 difference").await;
    assert!(!page.contains("Mallory") && !page.contains("Zoë"), "{page}");
    let rebuild = json!({"kind": "rebuild", "projection": "contacts"});
    let made = ask(&operator, &rebuild).await.ok(202);
    let (outcome, told) = ended(&mut database, &made["id"]).await;
    assert_eq!(outcome, "SUCCEEDED", "{told:?}");
    assert_eq!(org.admin.get(one).await.ok(200), right);
    let made = ask(&operator, &verify).await.ok(202);
    let (outcome, told) = ended(&mut database, &made["id"]).await;
    assert_eq!(
        (outcome.as_str(), &told[0][..]),
        ("SUCCEEDED", "0 differences")
    );
    let mut counted = String::new();
    for (_, client) in system.clients() {
        counted += &client.get("/metrics").await.text();
    }
    assert!(
        counted.contains("waypost_projection_operations_total{"),
        "{counted}"
    );
}

#[tokio::test]
async fn an_operation_is_asked_for_once_and_can_be_cancelled() {
    let (system, operator) = System::operated(SHAPE).await;
    let mut database = system.database().await;
    // Held as by a verification from the command line.
    let hold = "SELECT pg_advisory_lock(x'77617971'::int, hashtext('verify_orders'))";
    database.execute(hold).await.unwrap();
    let verify = json!({"kind": "verify", "projection": "orders"});
    let made = ask(&operator, &verify).await.ok(202);
    operator.is_shown(PAGE, "waiting for another process").await;
    let error = ask(&operator, &verify).await.error(409);
    assert!(error.contains("already under way"), "{error}");
    let one = format!("{OPERATIONS}/{}", made["id"].as_str().unwrap());
    let cancelled = operator.send(Method::DELETE, &one, None).await;
    assert_eq!(cancelled.status, 204);
    let (outcome, _) = ended(&mut database, &made["id"]).await;
    assert_eq!(outcome, "CANCELLED");
    operator.send(Method::DELETE, &one, None).await.error(404);
    // Once the lock is free, the same verification succeeds.
    database
        .execute("SELECT pg_advisory_unlock_all()")
        .await
        .unwrap();
    let made = ask(&operator, &verify).await.ok(202);
    let (outcome, _) = ended(&mut database, &made["id"]).await;
    assert_eq!(outcome, "SUCCEEDED");
}

#[tokio::test]
async fn a_rebuild_whose_projector_is_killed_is_gone_on_with() {
    let (mut system, operator) = System::operated(SHAPE).await;
    let mut database = system.database().await;
    {
        let org = system.organization().await;
        let record = |n: usize| {
            let (id, email) = (format!("c-{n}"), format!("c-{n}@example.org"));
            format!("{}\n", json!({"id": id, "email": email, "city": "Hamburg"}))
        };
        let records: String = (0..12_000).map(record).collect();
        let import = ["import", "--org", &org.id, "contacts", "-"];
        system.waypost_reading(&import, records.as_bytes()).await;
    }
    let count = "SELECT count(*) FROM contacts";
    eventually("all to be read", async || {
        let rows = sqlx::query_scalar::<_, i64>(count).fetch_one(&mut database);
        (rows.await.unwrap() == 12_000).then_some(())
    })
    .await;
    let spoil = "UPDATE contacts SET city = 'wrong'";
    database.execute(spoil).await.unwrap();
    let rebuild = json!({"kind": "rebuild", "projection": "contacts"});
    let made = ask(&operator, &rebuild).await.ok(202);
    let rows = "SELECT count(*) FROM rebuild_contacts.contacts";
    eventually("a part of it is built", async || {
        let rows = sqlx::query_scalar::<_, i64>(rows).fetch_one(&mut database);
        rows.await.ok().filter(|rows| *rows > 0)
    })
    .await;
    for program in system.programs() {
        program.kill();
    }
    let wrong = "SELECT count(*) FROM contacts WHERE city = 'wrong'";
    let served: i64 = sqlx::query_scalar(wrong)
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert_eq!(served, 12_000, "what is read is untouched");
    for program in system.programs() {
        program.restart();
    }
    let (outcome, told) = ended(&mut database, &made["id"]).await;
    assert_eq!(outcome, "SUCCEEDED", "{told:?}");
    let served: i64 = sqlx::query_scalar(wrong)
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert_eq!(served, 0);
    operator.is_shown(PAGE, "succeeded").await;
}
