//! An organization for a single test.

use serde_json::{Value, json};

use crate::{Answer, Client, System, eventually};

/// A limit that no test reaches.
const NO_LIMIT: u32 = 1_000_000;

/// An organization, created by the operator's command line as an operator would.
pub struct Organization<'a> {
    /// The system it lives in.
    pub system: &'a System,
    /// Its id.
    pub id: String,
    /// A client with a key that may do everything.
    pub admin: Client,
    /// That key.
    pub key: String,
}

impl<'a> Organization<'a> {
    /// Creates one with a key of scope `admin` and a limit that no test reaches.
    pub async fn create(system: &'a System) -> Self {
        let created = system
            .waypost(&["org", "create", "--name", "Test & Söhne"])
            .await;
        let id = created["orgId"].as_str().expect("orgId").to_owned();
        let limit = NO_LIMIT.to_string();
        let arguments = ["--scope", "admin", "--rate-limit", limit.as_str()];
        let start = ["key", "create", "--org", &id, "--name", "test"];
        let created = system.waypost(&[&start[..], &arguments].concat()).await;
        let key = created["key"].as_str().expect("key").to_owned();
        let admin = system.client().with_key(&key);
        until_known(&admin).await;
        Self {
            system,
            id,
            admin,
            key,
        }
    }

    /// Returns a client with a new key of these scopes.
    pub async fn client(&self, scopes: &[&str]) -> Client {
        let terms = json!({"name": "test", "scopes": scopes, "rateLimit": NO_LIMIT});
        let created = self.admin.post("/api/v1/keys", &terms).await.ok(201);
        let client = self.client_of(&created);
        until_known(&client).await;
        client
    }

    /// Returns a client with a new key that has no requests counted yet, and its `{keyId, key}`.
    pub async fn unused_key(&self, terms: &Value) -> (Client, Value) {
        let created = self.admin.post("/api/v1/keys", terms).await.ok(201);
        // Keys become known in order: a later key that is known shows that this one is.
        self.client(&["admin"]).await;
        (self.client_of(&created), created)
    }

    /// Saves a workflow and returns its id.
    pub async fn workflow(&self, definition: &Value) -> String {
        let id = format!("w-{}", uuid::Uuid::new_v4().simple());
        let answer = self
            .admin
            .put(&format!("/api/v1/workflows/{id}"), definition)
            .await;
        answer.ok(200);
        id
    }

    /// Creates a circle of the organization and returns its id.
    pub async fn circle(&self, name: &str) -> String {
        let body = json!({"name": name});
        let made = self.admin.post("/api/v1/circles", &body).await.ok(201);
        made["id"].as_str().expect("id").to_owned()
    }

    /// Creates an invite to a circle and returns the code.
    pub async fn invite(&self, circle: &str) -> String {
        let path = format!("/api/v1/circles/{circle}/invites");
        let invite = self.admin.post_nothing(&path).await.ok(201);
        invite["code"].as_str().expect("code").to_owned()
    }

    /// Triggers a workflow and returns the run's id.
    pub async fn trigger(&self, workflow: &str, body: &Value) -> String {
        let path = format!("/api/v1/workflows/{workflow}/trigger");
        let started = self.admin.post(&path, body).await.ok(202);
        started["runId"].as_str().expect("runId").to_owned()
    }

    /// Waits until a run has ended and returns it.
    pub async fn ended(&self, run_id: &str) -> Value {
        eventually("the end of a run", async || {
            let answer = self.admin.get(&format!("/api/v1/runs/{run_id}")).await;
            let run = answer.status.is_success().then(|| answer.json())?;
            (!run["endedAt"].is_null()).then_some(run)
        })
        .await
    }

    /// Waits until a read's response satisfies `wanted`, and returns its body.
    pub async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(path, async || {
            let answer = self.admin.get(path).await;
            let body = answer.status.is_success().then(|| answer.json())?;
            wanted(&body).then_some(body)
        })
        .await
    }

    fn client_of(&self, created: &Value) -> Client {
        let key = created["key"].as_str().expect("key");
        self.system.client().with_key(key)
    }
}

/// Waits until the processes that handle commands and queries know a key.
async fn until_known(client: &Client) {
    let known = |answer: &Answer| (answer.status != 401).then_some(());
    eventually("the key to be known", async || {
        let command = client.post_nothing("/api/v1/workflows/none/trigger").await;
        let query = client.get("/api/v1/runs/none").await;
        known(&command).and(known(&query))
    })
    .await;
}
