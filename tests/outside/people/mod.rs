//! An organization's people: invited by a link that works once, removed at once.

mod invites;
mod leaving;

use harness::{Answer, Client, System, eventually};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::{Value, json};

const LOOK: &str = "/dashboard/invite/look";
const ACCEPT: &str = "/dashboard/invite/accept";
const PEOPLE: &str = "/dashboard/people";

/// A person's browser on the pages of the dashboard.
#[derive(Clone)]
struct Browser {
    client: Client,
    cookie: String,
}

impl Browser {
    fn new(system: &System) -> Self {
        Self {
            client: system.client(),
            cookie: String::new(),
        }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = self.client.request(method, path);
        let request = request
            .header(COOKIE, &self.cookie)
            .header(ORIGIN, self.client.base())
            .header(CONTENT_TYPE, "application/json");
        Answer::to(request.body(body.to_string())).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, body).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &json!({})).await
    }

    async fn page(&self, path: &str) -> Answer {
        let request = self.client.request(Method::GET, path);
        Answer::to(request.header(COOKIE, &self.cookie)).await
    }

    async fn tries_to_sign_in(&self, email: &str, password: &str) -> Answer {
        let body = json!({"email": email, "password": password});
        self.post("/dashboard/sign-in", &body).await
    }

    /// Signs in, and waits until the pages know the membership.
    async fn signs_in(&mut self, email: &str, password: &str) {
        let answer = eventually("the membership to be known", async || {
            let answer = self.tries_to_sign_in(email, password).await;
            (answer.status == 204).then_some(answer)
        })
        .await;
        let cookie = answer.header("set-cookie").unwrap();
        cookie
            .split(';')
            .next()
            .unwrap()
            .clone_into(&mut self.cookie);
        eventually("the pages to know them", async || {
            (self.page("/dashboard").await.status == 200).then_some(())
        })
        .await;
    }

    /// Invites a person and returns the code of the link.
    async fn invites(&self, email: &str) -> String {
        let made = self.post(PEOPLE, &json!({"email": email})).await;
        assert_eq!(made.header("cache-control"), Some("no-store"));
        let made = made.ok(201);
        let link = made["link"].as_str().unwrap();
        let start = format!("{}/dashboard/invite#", self.client.base());
        assert!(link.starts_with(&start), "{link}");
        code_of(link)
    }
}

fn new_email() -> String {
    format!("{}@corp.example", uuid::Uuid::new_v4().simple())
}

/// The part after the `#`, which no log sees.
fn code_of(link: &str) -> String {
    let (address, code) = link.split_once('#').expect("a fragment");
    assert!(address.ends_with("/dashboard/invite"), "{link}");
    assert_eq!(code.len(), 43, "256 bits to the base 62");
    code.to_owned()
}

/// An organization with an owner who has signed in.
async fn owned(system: &System) -> (String, String, Browser) {
    let email = new_email();
    let create = ["org", "create", "--name", "Corp & Co", "--owner", &email];
    let made = system.waypost(&create).await;
    let mut owner = Browser::new(system);
    let password = made["ownerPassword"].as_str().unwrap();
    owner.signs_in(&email, password).await;
    (made["orgId"].as_str().unwrap().to_owned(), email, owner)
}

async fn invited_by_operator(system: &System, org: &str, email: &str) -> String {
    let invite = ["org", "invite", "--org", org, email];
    let made = system.waypost(&invite).await;
    let expires = made["expiresAt"].as_str().unwrap();
    let expires = chrono::DateTime::parse_from_rfc3339(expires).unwrap();
    let days = (expires.to_utc() - chrono::Utc::now()).num_hours() / 24;
    assert!((6..=7).contains(&days), "{days} days");
    code_of(made["link"].as_str().unwrap())
}

async fn emails(system: &System, org: &str, list: &str) -> Vec<String> {
    let all = system.waypost(&["org", "people", "--org", org]).await;
    let all = all[list].as_array().unwrap().iter();
    all.map(|one| one["email"].as_str().unwrap().to_owned())
        .collect()
}
