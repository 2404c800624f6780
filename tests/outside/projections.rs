//! Operating read models: rebuilt and checked while the system is in use.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use harness::{Organization, Person, Receiver, Shape, System, eventually};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor as _};

use super::{active, only_begins};
use crate::{SHAPE, system};

/// Writes something for every projection, as clients would.
async fn use_everything(org: &Organization<'_>, receiver: &Receiver) -> Person {
    let kinds = [
        ("companies", json!({"id": "r-1", "name": "Acme"})),
        ("deals", json!({"id": "r-1", "title": "Roof"})),
        ("contacts", json!({"id": "r-1", "email": "a@b.c"})),
        ("leads", json!({"id": "r-1", "name": "Ada", "score": 7})),
        ("clients", json!({"id": "r-1", "name": "Grace"})),
        (
            "orders",
            json!({"id": "r-1", "orderNumber": "1", "status": "ACTIVE", "amount": 500,
                   "client": {}, "product": {}}),
        ),
    ];
    for (kind, record) in kinds {
        let path = format!("/api/v1/records/{kind}");
        org.admin.post(&path, &record).await.ok(201);
    }
    let hook = json!({"url": receiver.url("/"), "events": ["run.*"]});
    org.admin.post("/api/v1/webhooks", &hook).await.ok(201);
    let workflow = org.workflow(&only_begins()).await;
    let run = org.trigger(&workflow, &json!({"n": 1})).await;
    org.ended(&run).await;
    let person = org.system.person("Ada").await;
    let tier = ["account", "tier", &person.email, "enterprise"];
    org.system.waypost(&tier).await;
    person.makes_circle().await;
    person.is_at(1.5, 2.5).await;
    person.client.post_nothing("/sos/trigger").await.ok(202);
    eventually("a delivery", async || {
        (!receiver.received().is_empty()).then_some(())
    })
    .await;
    caught_up(org.system).await;
    person
}

/// Waits until every projection has read its whole log.
async fn caught_up(system: &System) {
    eventually("projections without lag", async || {
        let listed = system.waypost(&["projection", "list"]).await;
        let projections = listed["projections"].as_array().unwrap().iter();
        let lag: u64 = projections.map(|one| one["lag"].as_u64().unwrap()).sum();
        (lag == 0).then_some(())
    })
    .await;
}

/// The responses that clients get, list by list.
async fn answers(org: &Organization<'_>, person: &Person) -> Vec<Value> {
    let mut answers = Vec::new();
    for path in [
        "/api/v1/orders",
        "/api/v1/leads",
        "/api/v1/clients",
        "/api/v1/analytics",
        "/api/v1/workflows",
        "/api/v1/keys",
        "/api/v1/records/companies/r-1",
        "/api/v1/records/deals/r-1",
        "/api/v1/records/contacts/r-1",
    ] {
        let mut answer = org.admin.get(path).await.ok(200);
        forget_uses(&mut answer);
        answers.push(answer);
    }
    for path in ["/location/latest", "/location/history", "/circles"] {
        answers.push(person.client.get(path).await.ok(200));
    }
    answers
}

/// When a key was last used is not in a read model.
fn forget_uses(answer: &mut Value) {
    for row in answer["data"].as_array_mut().into_iter().flatten() {
        if let Some(row) = row.as_object_mut() {
            row.remove("lastUsedAt");
        }
    }
}

async fn names(system: &System) -> Vec<String> {
    let listed = system.waypost(&["projection", "list"]).await;
    let projections = listed["projections"].as_array().unwrap().iter();
    projections
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn every_projection_is_rebuilt_under_load_and_found_equal_to_the_log() {
    let system = System::start(SHAPE, &[("WAYPOST_LIMIT_MINUTE_REQUESTS", "1000000")]).await;
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    let person = use_everything(&org, &receiver).await;
    let names = names(&system).await;
    assert_eq!(names.len(), 17, "{names:?}");
    let before = answers(&org, &person).await;
    let (done, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    let writing = async {
        while !done.load(Ordering::Relaxed) {
            let nth = written.fetch_add(1, Ordering::Relaxed);
            let path = format!("/api/v1/records/contacts/load-{nth}");
            let put = org.admin.put(&path, &json!({"email": "a@b.c"})).await;
            let position = put.position();
            // What was just written can be read, regardless of rebuilds.
            org.admin.get_at(&path, &position).await.ok(200);
        }
    };
    let reading = async {
        while !done.load(Ordering::Relaxed) {
            assert_eq!(answers(&org, &person).await, before);
        }
    };
    let rebuilding = async {
        for name in &names {
            let rebuilt = system.waypost(&["projection", "rebuild", name]).await;
            assert_eq!(rebuilt["name"], *name);
            assert!(rebuilt["position"].is_string(), "{rebuilt}");
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(writing, reading, rebuilding);
    assert!(written.load(Ordering::Relaxed) > 5, "hardly any load");
    assert_eq!(answers(&org, &person).await, before);
    for name in &names {
        let verified = system.waypost(&["projection", "verify", name]).await;
        assert_eq!(verified, json!({"name": name, "differences": 0}));
    }
    for (name, client) in system.clients() {
        let ready = client.get("/readyz").await;
        assert_eq!(ready.status, 200, "{name}: {}", ready.text());
    }
}

#[tokio::test]
async fn differences_are_reported_without_personal_data_and_a_rebuild_repairs_them() {
    let system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    let contact = json!({"id": "c-1", "firstName": "Zoë", "email": "zoe@example.com"});
    let path = "/api/v1/records/contacts";
    org.admin.post(path, &contact).await.ok(201);
    let one = "/api/v1/records/contacts/c-1";
    let right = org.until(one, |_| true).await;
    let mut database = system.database().await;
    database
        .execute("UPDATE contacts SET first_name = 'Mallory'")
        .await
        .unwrap();
    let verify = ["projection", "verify", "contacts"];
    let output = system.waypost_output(&verify, b"").await;
    assert!(!output.status.success(), "a difference is a failure");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed, json!({"name": "contacts", "differences": 1}));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("id=c-1") && told.contains("first_name"),
        "{told}"
    );
    for personal in ["Zoë", "Mallory", "zoe@example.com"] {
        assert!(!told.contains(personal), "{told}");
    }
    system.waypost(&["projection", "rebuild", "contacts"]).await;
    assert_eq!(org.admin.get(one).await.ok(200), right);
    system.waypost(&verify).await;
    let unknown = ["projection", "rebuild", "gossip"];
    let output = system.waypost_output(&unknown, b"").await;
    assert!(!output.status.success() && output.stdout.is_empty());
}

#[tokio::test]
async fn a_forgotten_record_does_not_come_back_by_a_copy_that_was_begun_before() {
    let system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    let contact = json!({"id": "c-1", "email": "zoe@example.com"});
    let made = org.admin.post("/api/v1/records/contacts", &contact).await;
    let one = "/api/v1/records/contacts/c-1";
    org.admin.get_at(one, &made.position()).await.ok(200);
    // Left over from a stopped rebuild: a copy that includes the contact.
    let mut database = system.database().await;
    for sql in [
        "CREATE SCHEMA rebuild_contacts",
        "CREATE TABLE rebuild_contacts.contacts AS SELECT * FROM contacts",
    ] {
        database.execute(sql).await.unwrap();
    }
    let forget = ["forget", "--org", &org.id, "contacts", "c-1"];
    system.waypost(&forget).await;
    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM pg_namespace WHERE nspname = 'rebuild_contacts'")
            .fetch_one(&mut database)
            .await
            .unwrap();
    assert_eq!(left, 0);
    system.waypost(&["projection", "rebuild", "contacts"]).await;
    org.admin.get(one).await.error(404);
}

#[tokio::test]
async fn a_rebuild_that_was_killed_goes_on_where_it_was() {
    let system = System::start(SHAPE, &[]).await;
    let org = system.organization().await;
    let record = |n: usize| {
        let (id, email) = (format!("c-{n}"), format!("c-{n}@example.org"));
        format!("{}\n", json!({"id": id, "email": email, "city": "Hamburg"}))
    };
    let records: String = (0..12_000).map(record).collect();
    let import = ["import", "--org", &org.id, "contacts", "-"];
    let imported = system.waypost_reading(&import, records.as_bytes()).await;
    assert_eq!(imported["imported"], 12_000, "{imported}");
    caught_up(&system).await;
    let mut database = system.database().await;
    let spoil = "UPDATE contacts SET city = 'wrong'";
    database.execute(spoil).await.unwrap();
    let rebuild = ["projection", "rebuild", "contacts"];
    let rows = "SELECT count(*) FROM rebuild_contacts.contacts";
    let begun = eventually("a part of it is built", async || {
        let rows = sqlx::query_scalar::<_, i64>(rows).fetch_one(&mut database);
        rows.await.ok().filter(|rows| *rows > 0)
    });
    tokio::select! {
        // Dropping it kills it.
        ended = system.waypost_output(&rebuild, b"") => panic!("it was too fast: {ended:?}"),
        _ = begun => {}
    }
    let (served, copied, counted): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM contacts WHERE city = 'wrong'),
                (SELECT count(*) FROM rebuild_contacts.contacts),
                (SELECT count FROM rebuild_contacts.totals)",
    )
    .fetch_one(&mut database)
    .await
    .unwrap();
    assert_eq!(served, 12_000, "what is read is untouched");
    assert!(copied == counted && copied < 12_000, "{copied}, {counted}");

    // Starting over would lose this.
    let mark = "UPDATE rebuild_contacts.contacts SET city = 'kept' WHERE id = 'c-0'";
    database.execute(mark).await.unwrap();
    eventually("the killed one's lock is free", async || {
        let output = system.waypost_output(&rebuild, b"").await;
        output.status.success().then_some(())
    })
    .await;
    let cities: Vec<(String, i64)> =
        sqlx::query_as("SELECT city, count(*) FROM contacts GROUP BY city ORDER BY city")
            .fetch_all(&mut database)
            .await
            .unwrap();
    let expected = [("Hamburg".to_owned(), 11_999), ("kept".to_owned(), 1)];
    assert_eq!(cities, expected);
}

/// Deletes all read models, so that the projector starts over.
async fn empty(system: &System) {
    let mut database = system.database().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'
         AND tablename <> '_sqlx_migrations' AND tablename NOT LIKE 'limit%'",
    )
    .fetch_all(&mut database)
    .await
    .unwrap();
    let truncate = format!("TRUNCATE {}", tables.join(", "));
    database.execute(AssertSqlSafe(truncate)).await.unwrap();
}

#[tokio::test]
async fn a_gap_in_the_log_is_reported_and_not_skipped() {
    let mut system = System::start_alone(SHAPE, &[]).await;
    {
        let org = system.organization().await;
        let workflow = org.workflow(&only_begins()).await;
        let large = json!({"text": "x".repeat(200_000)});
        for _ in 0..12 {
            let run = org.trigger(&workflow, &large).await;
            org.ended(&run).await;
        }
    }
    for program in system.programs() {
        program.stop();
    }
    let nats = system.nats.as_mut().unwrap();
    nats.stop().await.unwrap();
    damage(&system);
    system.nats.as_mut().unwrap().restart().await.unwrap();
    empty(&system).await;
    for program in system.programs() {
        program.restart();
    }
    let clients = system.clients();
    let (_, projector) = &clients[0];
    eventually("it says that it is not ready, and why", async || {
        let request = projector.request(reqwest::Method::GET, "/readyz");
        let ready = harness::Answer::or_error(request).await.ok()?;
        (ready.status == 503 && ready.text().contains("gap")).then_some(())
    })
    .await;
    let metrics = projector.get("/metrics").await.text();
    let mut lines = metrics.lines();
    let gap = "waypost_projector_gaps_total{log=\"events\"}";
    assert!(
        lines.any(|line| line.starts_with(gap) && !line.ends_with(" 0")),
        "{metrics}"
    );
    assert!(system.said().contains("the log has a gap"));
    let rebuild = ["projection", "rebuild", "runs"];
    let output = system.waypost_output(&rebuild, b"").await;
    assert!(!output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("gap"), "{told}");
}

/// Corrupts one event in the server's file, as a disk may.
fn damage(system: &System) {
    let accounts = system.home().join("nats/data/jetstream");
    let account = fs::read_dir(accounts).unwrap().next().unwrap().unwrap();
    let block = account.path().join("streams/EVENTS/msgs/1.blk");
    let mut bytes = fs::read(&block).unwrap();
    let text = bytes.windows(100).position(|part| part == [b'x'; 100]);
    bytes[text.unwrap() + 50_000] ^= 0xff;
    fs::write(&block, bytes).unwrap();
}

#[tokio::test]
async fn another_projector_goes_on_when_the_leader_is_killed_under_load() {
    if SHAPE == Shape::One {
        return; // There the projector cannot be killed alone.
    }
    let mut system = System::start(SHAPE, &[]).await;
    let (_client, _second) = system.another("projector").await;
    let id = {
        let org = system.organization().await;
        let workflow = org
            .workflow(&active(&json!([{"id": "s", "type": "TRIGGER"}])))
            .await;
        for n in 0..50 {
            org.trigger(&workflow, &json!({"n": n})).await;
        }
        org.id.clone()
    };
    let leader = system
        .programs()
        .iter_mut()
        .find(|program| program.name() == "projector")
        .unwrap();
    leader.kill();
    caught_up(&system).await;
    let mut database = system.database().await;
    let runs: i64 = sqlx::query_scalar("SELECT count(*) FROM runs WHERE org_id = $1")
        .bind(id)
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert_eq!(runs, 50);
    for name in ["runs", "workflows", "organizations"] {
        let verified = system.waypost(&["projection", "verify", name]).await;
        assert_eq!(verified["differences"], 0, "{name}");
    }
}

#[tokio::test]
async fn dead_letters_that_do_not_exist_are_said_not_to() {
    let system = system().await;
    for arguments in [["--retry", "contacts:9999999"], ["--skip", "nonsense"]] {
        let command = [&["projection", "dead-letters"][..], &arguments].concat();
        let output = system.waypost_output(&command, b"").await;
        assert!(!output.status.success() && output.stdout.is_empty());
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("is not a dead letter"), "{told}");
    }
}
