//! A person for a single test.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{Client, System, eventually};

/// A person with an account.
#[derive(Clone, Debug)]
pub struct Person {
    /// The id of the account.
    pub id: u64,
    /// Their name.
    pub name: String,
    /// The address they sign in with.
    pub email: String,
    /// Their access token.
    pub token: String,
    /// A client with that token.
    pub client: Client,
}

/// The password of every person.
pub const PASSWORD: &str = "correct horse";

/// The longest pause between two reads that wait for something.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl System {
    /// Registers a person.
    pub async fn person(&self, name: &str) -> Person {
        let email = format!("{}@example.org", uuid::Uuid::new_v4().simple());
        let body = json!({"name": name, "email": email, "password": PASSWORD});
        let answer = self.client().post("/auth/register", &body).await;
        let signed_in = answer.ok(201);
        let token = signed_in["access_token"].as_str().expect("a token");
        let person = Person {
            id: signed_in["user"]["id"].as_u64().expect("an id"),
            name: name.to_owned(),
            email,
            token: token.to_owned(),
            client: self.client().with_key(token),
        };
        let position = answer.position();
        person
            .client
            .get_at("/location/latest", &position)
            .await
            .ok(200);
        person
    }
}

impl Person {
    /// Creates a circle and returns its id.
    pub async fn makes_circle(&self) -> String {
        let made = self
            .client
            .post("/circles", &json!({"name": "Family"}))
            .await;
        text(&made.ok(201)["id"])
    }

    /// Joins a circle by the invite of one of its members.
    pub async fn joins(&self, circle: &str, member: &Self) {
        let invite = format!("/circles/{circle}/invites");
        let invite = member.client.post_nothing(&invite).await.ok(201);
        self.joins_by(&text(&invite["code"])).await;
    }

    /// Joins with a code; returns once reads show it.
    pub async fn joins_by(&self, code: &str) {
        let joined = self
            .client
            .post("/circles/join", &json!({"code": code}))
            .await;
        joined.ok(200);
        let position = joined.position();
        self.client.get_at("/circles", &position).await.ok(200);
    }

    /// Sends where they are; returns the position at which reads show it.
    pub async fn is_at(&self, lat: f64, lng: f64) -> String {
        let sent = json!({"lat": lat, "lng": lng});
        let sent = self.client.post("/location/update", &sent).await;
        sent.ok(202);
        sent.position()
    }

    /// Whom they see, and where: `(user_id, lat)` of each.
    pub async fn sees_at(&self, position: &str) -> Vec<(u64, f64)> {
        let seen = self
            .client
            .get_at("/location/latest", position)
            .await
            .ok(200);
        let seen = seen["data"].as_array().expect("data").iter();
        let pair = |one: &Value| Some((one["user_id"].as_u64()?, one["lat"].as_f64()?));
        let mut seen: Vec<_> = seen.map(|one| pair(one).expect("a position")).collect();
        seen.sort_by_key(|(id, _)| *id);
        seen
    }

    /// Waits until a read's response satisfies `wanted`, and returns its body. It reads less and
    /// less often: the smallest tier allows 100 requests an hour.
    pub async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut pause = Duration::from_millis(10);
        eventually(path, async || {
            let answer = self.client.get(path).await;
            assert_ne!(answer.status, 429, "{} has used up the tier", self.name);
            let body = answer.status.is_success().then(|| answer.json());
            let wanted = body.filter(|body| wanted(body));
            if wanted.is_none() {
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
            wanted
        })
        .await
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}
