//! The owner of an organization of a test's own, signed in on its pages.

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::{Value, json};

use crate::{Answer, Client, System, eventually};

/// An owner with a session.
#[derive(Clone, Debug)]
pub struct Owner {
    /// A client without a key.
    pub client: Client,
    /// Their organization.
    pub org: String,
    /// The address they sign in with.
    pub email: String,
    /// Their password.
    pub password: String,
    /// Their session, as a browser sends it.
    pub cookie: String,
}

impl Owner {
    /// Creates an organization with an owner and signs them in; returns once the pages know them.
    pub async fn sign_in(system: &System) -> Self {
        let email = format!("{}@example.org", uuid::Uuid::new_v4().simple());
        let name = "<Test> & Söhne";
        let arguments = ["org", "create", "--name", name, "--owner", &email];
        let made = system.waypost(&arguments).await;
        let text = |field: &str| made[field].as_str().expect(field).to_owned();
        let (org, password) = (text("orgId"), text("ownerPassword"));
        let client = system.client();
        let answer = eventually("the membership to be known", async || {
            let answer = sign_in(&client, &email, &password).await;
            (answer.status == 204).then_some(answer)
        })
        .await;
        let cookie = session_of(&answer);
        let owner = Self {
            client,
            org,
            email,
            password,
            cookie,
        };
        eventually("the pages to know them", async || {
            let page = owner.page("/dashboard").await;
            (page.status == 200).then_some(())
        })
        .await;
        owner
    }

    /// Reads a page.
    pub async fn page(&self, path: &str) -> Answer {
        let request = self.client.request(Method::GET, path);
        Answer::to(request.header(COOKIE, &self.cookie)).await
    }

    /// Sends a request as a page of the dashboard does.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let request = self.client.request(method, path);
        let request = request
            .header(COOKIE, &self.cookie)
            .header(ORIGIN, self.client.base());
        Answer::to(match body {
            Some(body) => request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string()),
            None => request,
        })
        .await
    }

    /// Creates a key with these terms.
    pub async fn key(&self, terms: &Value) -> Value {
        let made = self
            .send(Method::POST, "/dashboard/keys", Some(terms))
            .await;
        assert_eq!(made.header("cache-control"), Some("no-store"));
        made.ok(201)
    }
}

/// Sends a sign-in as the sign-in page does.
pub async fn sign_in(client: &Client, email: &str, password: &str) -> Answer {
    let body = json!({"email": email, "password": password});
    let request = client.request(Method::POST, "/dashboard/sign-in");
    let request = request
        .header(ORIGIN, client.base())
        .header(CONTENT_TYPE, "application/json");
    Answer::to(request.body(body.to_string())).await
}

fn session_of(answer: &Answer) -> String {
    let cookie = answer.header("set-cookie").expect("a session");
    for word in ["HttpOnly", "SameSite=Strict", "Path=/dashboard", "Max-Age="] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let (session, _) = cookie.split_once(';').expect("attributes");
    session.to_owned()
}
