//! The demo's organization, whose pages are full, and one that is still empty.

use harness::{Client, Owner, Receiver, sign_in};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::driver::eventually;
use crate::system;

/// Access to the demo.
pub(crate) struct Demo {
    /// Its owner, signed in.
    pub(crate) owner: Owner,
    /// A run for each outcome: succeeded, failed.
    pub(crate) runs: Vec<String>,
    /// An endpoint with deliveries.
    pub(crate) webhook: String,
    /// Persons who share their location: e-mail address and password.
    pub(crate) family: Vec<(String, String)>,
}

/// The demo, with runs and deliveries in addition to its business data.
pub(crate) async fn demo() -> &'static Demo {
    static DEMO: OnceCell<Demo> = OnceCell::const_new();
    DEMO.get_or_init(fill).await
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn fill() -> Demo {
    let system = system().await;
    let told = eventually("the demo to be loaded", async || {
        let told = system.waypost_output(&["demo"], b"").await;
        serde_json::from_slice::<Value>(&told.stdout).ok()
    })
    .await;
    let (email, password) = (text(&told["email"]), text(&told["password"]));
    let client = system.client();
    let answer = sign_in(&client, &email, &password).await;
    let cookie = answer.header("set-cookie").unwrap();
    let owner = Owner {
        client: client.clone(),
        org: text(&told["orgId"]),
        email,
        password,
        cookie: cookie.split(';').next().unwrap().to_owned(),
    };
    let admin = client.with_key(told["apiKey"].as_str().unwrap());
    is_known(&admin).await;
    let (receiver, webhook) = endpoint(&admin).await;
    let family = told["family"].as_array().unwrap().iter();
    let family = family.map(|one| (text(&one["email"]), text(&one["password"])));
    let runs = run(&admin).await;
    receiver.wait_for(runs.len(), |_| true).await;
    eventually("the pages to show the demo", async || {
        let page = owner.page("/dashboard").await.text();
        page.contains("Everything is up to date").then_some(())
    })
    .await;
    Demo {
        runs,
        webhook,
        family: family.collect(),
        owner,
    }
}

/// A client with a new key of an owner's organization.
pub(crate) async fn key_of(owner: &Owner, scopes: &[&str]) -> Client {
    let made = owner.key(&json!({"name": "test", "scopes": scopes})).await;
    let client = owner.client.with_key(made["key"].as_str().unwrap());
    is_known(&client).await;
    client
}

/// Waits until every service knows a client's key.
async fn is_known(client: &Client) {
    eventually("the key to be known", async || {
        let command = client.post_nothing("/api/v1/workflows/none/trigger").await;
        let query = client.get("/api/v1/runs/none").await;
        (command.status != 401 && query.status != 401).then_some(())
    })
    .await;
}

/// An endpoint that refuses some deliveries, so that there are both kinds.
async fn endpoint(admin: &Client) -> (Receiver, String) {
    let receiver = Receiver::start().await;
    receiver.reply(|request| {
        let is_failure = request.json()["type"] == "run.failed";
        let status = if is_failure { 503 } else { 200 };
        let body = "{\"received\":true}".to_owned();
        (
            status.try_into().unwrap(),
            axum::http::HeaderMap::new(),
            body,
        )
    });
    let terms = json!({"url": receiver.url("/hooks/waypost"), "events": ["run.*"]});
    let made = admin.post("/api/v1/webhooks", &terms).await.ok(201);
    (receiver, text(&made["id"]))
}

/// Starts runs of the demo's workflows, and of one that fails.
async fn run(admin: &Client) -> Vec<String> {
    let failing = json!({"name": "Call a crew", "status": "ACTIVE", "steps": [
        {"id": "start", "type": "TRIGGER", "next": ["call"]},
        {"id": "call", "type": "HTTP", "method": "POST", "url": "http://127.0.0.1:1/crews",
         "retry": {"maxAttempts": 1}, "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "crew.called"},
    ]});
    let saved = admin.put("/api/v1/workflows/call-a-crew", &failing).await;
    saved.ok(200);
    let mut runs = Vec::new();
    for (workflow, name) in [
        ("say-hello", "Grace"),
        ("say-hello", "Edsger"),
        ("call-a-crew", "Roof of 12 Elm Street"),
        ("say-hello", "Barbara"),
    ] {
        let path = format!("/api/v1/workflows/{workflow}/trigger");
        let begun = admin.post(&path, &json!({"name": name})).await.ok(202);
        let run = text(&begun["runId"]);
        eventually("the run to end", async || {
            let run = admin.get(&format!("/api/v1/runs/{run}")).await;
            (run.status == 200 && !run.json()["endedAt"].is_null()).then_some(())
        })
        .await;
        runs.push(run);
    }
    runs
}
