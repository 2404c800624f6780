//! An organization of a test's own.

use serde_json::Value;

use crate::{Client, System};

/// An organization, made by the operator's command line as an operator would.
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
    /// Makes one with a key of scope `admin` and a limit that no test reaches.
    pub async fn create(system: &'a System) -> Self {
        let created = system
            .waypost(&["org", "create", "--name", "Test & Söhne"])
            .await;
        let id = created["orgId"].as_str().expect("orgId").to_owned();
        let key = new_key(system, &id, &["admin"], &["--rate-limit", "1000000"]).await;
        let admin = system.client().with_key(&key);
        Self {
            system,
            id,
            admin,
            key,
        }
    }

    /// A client with a new key of these scopes.
    pub async fn client(&self, scopes: &[&str]) -> Client {
        let key = new_key(self.system, &self.id, scopes, &["--rate-limit", "1000000"]).await;
        self.system.client().with_key(&key)
    }

    /// A new key of these scopes, made with further arguments.
    pub async fn key(&self, scopes: &[&str], more: &[&str]) -> String {
        new_key(self.system, &self.id, scopes, more).await
    }

    /// Saves a workflow and gives its id.
    pub async fn workflow(&self, definition: &Value) -> String {
        let id = format!("w-{}", uuid::Uuid::new_v4().simple());
        let answer = self
            .admin
            .put(&format!("/api/v1/workflows/{id}"), definition)
            .await;
        answer.ok(200);
        id
    }
}

async fn new_key(system: &System, org: &str, scopes: &[&str], more: &[&str]) -> String {
    let mut arguments = vec!["key", "create", "--org", org, "--name", "test"];
    for scope in scopes {
        arguments.extend(["--scope", scope]);
    }
    arguments.extend(more);
    let created = system.waypost(&arguments).await;
    created["key"].as_str().expect("key").to_owned()
}
