//! Operations: health, metrics, the command line, starting and stopping.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use harness::{Shape, Socket, System, eventually};
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};

use super::only_begins;
use crate::{SHAPE, system};

#[tokio::test]
async fn every_process_reports_its_health() {
    let system = system().await;
    for (name, client) in system.clients() {
        client.get("/healthz").await.ok(200);
        let ready = client.get("/readyz").await.ok(200);
        assert!(ready.is_object(), "{name}: {ready}");
        let metrics = client.get("/metrics").await;
        assert_eq!(metrics.status, 200);
        let kind = metrics.header("content-type").unwrap();
        assert!(kind.starts_with("text/plain"), "{name}: {kind}");
        assert!(metrics.text().contains("waypost_"), "{name}");
    }
}

/// The readiness checks of each service. In one process, services share those that do not begin
/// with a service's name.
const CHECKS: &[(&str, &[&str])] = &[
    ("command-api", &["keys", "log"]),
    ("query-api", &["keys", "query-api/read_models"]),
    (
        "projector",
        &["log", "projector/dead_letters", "projector/projections"],
    ),
    (
        "workflow-runner",
        &[
            "keys",
            "log",
            "workflow-runner/runs",
            "workflow-runner/triggers",
            "workflow-runner/webhooks",
        ],
    ),
];

#[tokio::test]
async fn one_process_makes_the_checks_of_all_services() {
    let system = system().await;
    for (name, client) in system.clients() {
        let ready = client.get("/readyz").await.json();
        let checks = ready["checks"].as_object().unwrap();
        let made: BTreeSet<&str> = checks.keys().map(String::as_str).collect();
        let of_it = CHECKS
            .iter()
            .filter(|(service, _)| SHAPE == Shape::One || *service == name);
        let expected = of_it.flat_map(|(_, checks)| checks.iter().copied());
        assert_eq!(made, expected.collect::<BTreeSet<_>>(), "{name}");
    }
}

#[tokio::test]
async fn requests_are_counted_by_their_route_and_not_by_their_ids() {
    let system = system().await;
    let org = system.organization().await;
    let workflow = org.workflow(&only_begins()).await;
    org.trigger(&workflow, &json!({})).await;
    let mut all = String::new();
    for (_, client) in system.clients() {
        all.push_str(&client.get("/metrics").await.text());
    }
    assert!(all.contains("/api/v1/workflows/{"), "routes are named");
    assert!(!all.contains(&workflow) && !all.contains(&org.id));
}

#[tokio::test]
async fn the_sizes_of_log_and_tables_are_in_the_metrics() {
    let system = system().await;
    let (_, projector) = system
        .clients()
        .into_iter()
        .find(|(name, _)| matches!(*name, "projector" | "waypost"))
        .unwrap();
    eventually("sizes in the metrics", async || {
        let metrics = projector.get("/metrics").await.text();
        let told = |series: &str| {
            let line = metrics.lines().find(|line| line.starts_with(series))?;
            line.rsplit(' ').next()?.parse::<f64>().ok()
        };
        // Reported at the start and then once a minute: a new log was still empty.
        told("waypost_log_bytes{log=\"events\"}")?;
        let table = told("waypost_table_bytes{table=\"projection_checkpoints\"}")?;
        (table > 0.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn every_command_explains_itself_by_examples() {
    let system = system().await;
    for command in [
        &[][..],
        &["up"],
        &["org", "create"],
        &["org", "people"],
        &["org", "invite"],
        &["org", "remove"],
        &["key", "create"],
        &["key", "revoke"],
        &["workflow", "put"],
        &["secret", "set"],
        &["import"],
        &["projection"],
        &["listen"],
        &["demo"],
    ] {
        let arguments = [command, &["--help"]].concat();
        let output = system.waypost_output(&arguments, b"").await;
        assert!(output.status.success(), "{command:?}");
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Example"), "{command:?}: {help}");
        assert!(help.contains("waypost"), "{command:?}: {help}");
    }
}

#[tokio::test]
async fn a_command_that_fails_says_so_and_prints_nothing_else() {
    let system = system().await;
    for arguments in [
        &["dance"][..],
        &["org", "create"],
        &["org", "create", "--name", " "],
        &[
            "key", "create", "--org", "nobody", "--name", "n", "--scope", "admin",
        ],
        &[
            "key", "create", "--org", "nobody", "--name", "n", "--scope", "gossip",
        ],
        &["workflow", "put", "--org", "nobody", "/no/such/file.json"],
        &["org", "people", "--org", "nobody"],
        &["org", "invite", "--org", "nobody", "ada@example.org"],
        &["org", "invite", "--org", "nobody", "no address"],
        &["org", "remove", "--org", "nobody", "ada@example.org"],
        &["secret", "set", "--org", "nobody", "NAME"],
        &["secret", "set", "--org", "nobody", "not a name"],
    ] {
        let output = system.waypost_output(arguments, b"value").await;
        assert!(!output.status.success(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[tokio::test]
async fn an_owner_gets_a_password_and_nobody_else_does() {
    let system = system().await;
    let plain = system.waypost(&["org", "create", "--name", "Plain"]).await;
    assert_eq!(plain.as_object().unwrap().len(), 1, "{plain}");
    let email = format!("{}@owner.example", uuid::Uuid::new_v4().simple());
    let owner = ["org", "create", "--name", "Owned", "--owner", &email];
    let made = system.waypost(&owner).await;
    assert!(made["ownerPassword"].as_str().unwrap().len() >= 8);
    assert_ne!(made["orgId"], plain["orgId"]);
}

#[tokio::test]
async fn projections_are_listed_and_catch_up() {
    let system = system().await;
    eventually("projections without lag", async || {
        let listed = system.waypost(&["projection", "list"]).await;
        let projections = listed["projections"].as_array().expect("a list");
        assert!(projections.len() >= 5, "{listed}");
        for projection in projections {
            let name = projection["name"].as_str().expect("a name");
            assert!(projection["position"].is_string(), "{name}: {listed}");
            assert!(projection["lag"].is_u64(), "{name}: {listed}");
        }
        let caught_up = projections.iter().all(|projection| projection["lag"] == 0);
        caught_up.then_some(())
    })
    .await;
    let letters = system.waypost(&["projection", "dead-letters"]).await;
    assert_eq!(letters, json!({"deadLetters": [], "skipped": []}));
}

/// Checks that no process complained while it was stopped.
fn assert_ended_well(system: &mut System) {
    for program in system.programs() {
        let status = program.stop();
        assert!(
            status.success(),
            "{} ended with {status}: {}",
            program.name(),
            program.said()
        );
        assert!(!program.said().contains("panicked"), "{}", program.said());
    }
}

#[tokio::test]
async fn all_ends_when_asked_and_finds_its_data_at_the_next_start() {
    let mut system = System::start(SHAPE, &[]).await;
    let (admin, run, key, stop_took) = {
        let org = system.organization().await;
        let workflow = org.workflow(&only_begins()).await;
        let run = org.trigger(&workflow, &json!({"kept": true})).await;
        org.ended(&run).await;
        let (admin, key) = (org.admin.clone(), org.key.clone());
        // A connected client does not delay the shutdown.
        let mut socket = Socket::open(&system, &key).await;
        socket.subscribe("s", "runs", None).await;
        let began = Instant::now();
        assert_ended_well(&mut system);
        let code = socket.close_code().await;
        assert!((3000..3500).contains(&code), "closed with {code}");
        (admin, run, key, began.elapsed())
    };
    assert!(stop_took < Duration::from_secs(10), "after {stop_took:?}");
    for program in system.programs() {
        program.restart();
    }
    system.until_ready().await;
    let read = admin.get(&format!("/api/v1/runs/{run}")).await.ok(200);
    assert_eq!(read["triggerPayload"]["kept"], true);
    drop(Socket::open(&system, &key).await);
}

#[tokio::test]
async fn a_read_that_cannot_catch_up_gets_a_503_in_time() {
    let settings = [("WAYPOST_POSITION_WAIT_SECONDS", "1")];
    let system = System::start(SHAPE, &settings).await;
    let org = system.organization().await;
    let path = "/api/v1/records/contacts/late";
    let mut database = system.database().await;
    let mut held = database.begin().await.unwrap();
    // Reads continue; the projection waits.
    held.execute("LOCK TABLE contacts IN EXCLUSIVE MODE")
        .await
        .unwrap();
    let written = org.admin.put(path, &json!({"email": "a@b.c"})).await;
    let position = written.position();
    let asked = Instant::now();
    org.admin.get_at(path, &position).await.error(503);
    let waited = asked.elapsed();
    assert!(
        (Duration::from_millis(900)..Duration::from_secs(3)).contains(&waited),
        "after {waited:?}"
    );
    org.admin.get(path).await.error(404);
    held.rollback().await.unwrap();
    org.until(path, |_| true).await;
    org.admin.get_at(path, &position).await.ok(200);
}

#[tokio::test]
async fn a_position_of_another_log_begins_a_subscription_anew() {
    let other = System::start(SHAPE, &[]).await;
    let position = {
        let org = other.organization().await;
        let contact = json!({"email": "a@b.c"});
        org.admin
            .post("/api/v1/records/contacts", &contact)
            .await
            .position()
    };
    let org = system().await.organization().await;
    let mut socket = Socket::open(org.system, &org.key).await;
    let frame = json!({"type": "subscribe", "id": "s", "channel": "runs", "after": position});
    socket.send(&frame).await;
    assert_eq!(socket.next().await["type"], "subscribed");
    assert_eq!(socket.next().await, json!({"type": "reset", "id": "s"}));
    let snapshot = socket.next().await;
    assert_eq!(
        (&snapshot["type"], &snapshot["id"]),
        (&json!("snapshot"), &json!("s"))
    );
}

#[tokio::test]
async fn the_demo_is_made_once_and_can_be_used() {
    if SHAPE == Shape::Four {
        return; // The demo belongs to `waypost up`.
    }
    let mut system = System::start(SHAPE, &[("WAYPOST_DEMO", "true")]).await;
    let demo = eventually("the demo", async || {
        let said = system.said();
        if !said.contains("Waypost is ready: http://") {
            return None;
        }
        let demo = system.waypost(&["demo"]).await;
        assert!(said.contains(demo["apiKey"].as_str().unwrap()));
        Some(demo)
    })
    .await;
    let client = system.client().with_key(demo["apiKey"].as_str().unwrap());
    let contacts = async || {
        client
            .get("/api/export/contacts")
            .await
            .text()
            .lines()
            .count()
    };
    eventually("the demo's contacts", async || {
        (contacts().await > 100).then_some(())
    })
    .await;
    let before = contacts().await;
    for workflow in demo["workflows"].as_array().unwrap() {
        let path = format!("/api/v1/workflows/{}/trigger", workflow.as_str().unwrap());
        client.post(&path, &json!({"name": "Ada"})).await.ok(202);
    }
    system.programs()[0].stop();
    system.programs()[0].restart();
    system.until_ready().await;
    let again: Value = system.waypost(&["demo"]).await;
    assert_eq!(again, demo);
    assert_eq!(contacts().await, before);
}

#[tokio::test]
async fn a_demo_that_cannot_be_made_keeps_nobody_from_waypost() {
    if SHAPE == Shape::Four {
        return; // The demo belongs to `waypost up`.
    }
    // The demo's circle watches more places than that.
    let settings = [("WAYPOST_DEMO", "true"), ("WAYPOST_PLACES_PER_CIRCLE", "2")];
    let system = System::start(SHAPE, &settings).await;
    let said = eventually("the start's last word", async || {
        let said = system.said();
        said.contains("Waypost is ready: http://").then_some(said)
    })
    .await;
    assert!(
        said.contains("The demo data could not be created"),
        "{said}"
    );
    assert!(said.contains("/places answered"), "{said}");
    let org = system.organization().await;
    org.admin.get("/api/v1/workflows").await.ok(200);
}
