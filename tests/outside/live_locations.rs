//! `/ws` for persons: who sees whom, from when and until when.

use chrono::{DateTime, TimeDelta, Utc};
use harness::{Client, Socket, System};
use serde_json::{Value, json};

use crate::system;

/// A person with an account, and a client that uses its token.
pub(super) struct Person {
    pub(super) client: Client,
    token: String,
    pub(super) id: u64,
    email: String,
}

const PASSWORD: &str = "a long password";

impl Person {
    pub(super) async fn register(system: &System, name: &str) -> Self {
        let email = format!("{}@example.org", uuid::Uuid::new_v4().simple());
        let request = json!({"name": name, "email": email, "password": PASSWORD});
        let answer = system.client().post("/auth/register", &request).await;
        Self::signed_in(system, email, &answer.ok(201))
    }

    fn signed_in(system: &System, email: String, answer: &Value) -> Self {
        let token = answer["access_token"].as_str().unwrap().to_owned();
        Self {
            client: system.client().with_key(&token),
            token,
            id: answer["user"]["id"].as_u64().unwrap(),
            email,
        }
    }

    /// The same person with a token of its own.
    async fn again(&self, system: &System) -> Self {
        let request = json!({"email": self.email, "password": PASSWORD});
        let answer = system.client().post("/auth/login", &request).await;
        Self::signed_in(system, self.email.clone(), &answer.ok(200))
    }

    /// Registers a person who may send as many positions as a test needs.
    pub(super) async fn without_limits(system: &System, name: &str) -> Self {
        let person = Self::register(system, name).await;
        let limits = ["--requests", "1000000", "--locations", "1000000"];
        let tier = ["account", "tier", &person.email, "enterprise"];
        system.waypost(&[&tier[..], &limits].concat()).await;
        person
    }

    pub(super) async fn circle(&self) -> String {
        let name = json!({"name": "Family"});
        let made = self.client.post("/circles", &name).await.ok(201);
        made["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn invite(&self, circle: &str) -> String {
        let path = format!("/circles/{circle}/invites");
        let invited = self.client.post_nothing(&path).await.ok(201);
        invited["code"].as_str().unwrap().to_owned()
    }

    pub(super) async fn join(&self, code: &str) {
        let code = json!({"code": code});
        self.client.post("/circles/join", &code).await.ok(200);
    }

    pub(super) async fn leave(&self, circle: &str) {
        let path = format!("/circles/{circle}/members/me");
        self.client.delete(&path).await.ok(204);
    }

    pub(super) async fn place(&self, circle: &str, lat: f64) {
        let path = format!("/circles/{circle}/places");
        let place = json!({"name": "School", "lat": lat, "lng": 13.4, "radius_m": 100});
        self.client.post(&path, &place).await.ok(201);
    }

    /// Sends a current position; returns the fix's id.
    pub(super) async fn is_at(&self, lat: f64, place_name: &str) -> Value {
        self.sends(&json!({"lat": lat, "lng": 13.4, "place_name": place_name}))
            .await
    }

    pub(super) async fn sends(&self, update: &Value) -> Value {
        self.client.post("/location/update", update).await.ok(202)
    }

    pub(super) async fn socket(&self, system: &System) -> Socket {
        Socket::open(system, &self.token).await
    }
}

/// Two persons in one circle.
pub(super) async fn couple(system: &System) -> (Person, Person, String) {
    let (anna, ben) = tokio::join!(
        Person::register(system, "Anna"),
        Person::register(system, "Ben")
    );
    let circle = anna.circle().await;
    ben.join(&anna.invite(&circle).await).await;
    (anna, ben, circle)
}

/// Subscribes to positions and returns the snapshot.
pub(super) async fn snapshot(socket: &mut Socket) -> Vec<Value> {
    let subscribe = json!({"type": "subscribe", "id": "l", "channel": "locations"});
    socket.send(&subscribe).await;
    assert_eq!(socket.next().await["type"], "subscribed");
    let snapshot = socket.next().await;
    assert_eq!(snapshot["type"], "snapshot", "{snapshot}");
    snapshot["data"].as_array().unwrap().clone()
}

/// The next event: its type, the person it is about and its data.
pub(super) async fn event(socket: &mut Socket) -> (String, u64, Value) {
    let frame = socket.next().await;
    assert_eq!(frame["type"], "event", "{frame}");
    let (kind, data) = (&frame["event"]["type"], &frame["event"]["data"]);
    let of = data["user_id"].as_u64().unwrap();
    (kind.as_str().unwrap().to_owned(), of, data.clone())
}

fn fields(value: &Value) -> Vec<&str> {
    let fields = value.as_object().unwrap().keys();
    let mut fields: Vec<&str> = fields.map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

#[tokio::test]
async fn members_of_a_circle_see_each_other() {
    let system = system().await;
    let (anna, ben, _) = couple(system).await;
    let stranger = Person::register(system, "Carl").await;
    let update =
        json!({"lat": 52.5, "lng": 13.4, "accuracy": 8, "speed": 1.5, "place_name": "home"});
    anna.sends(&update).await;
    let mut bens = ben.socket(system).await;
    let mut strangers = stranger.socket(system).await;
    assert!(snapshot(&mut strangers).await.is_empty());
    let shown = snapshot(&mut bens).await;
    let latest = &shown[0];
    assert_eq!(shown.len(), 1);
    let expected = [
        "accuracy",
        "lat",
        "lng",
        "name",
        "place_name",
        "recorded_at",
        "speed",
        "user_id",
    ];
    assert_eq!(fields(latest), expected);
    assert_eq!(
        (&latest["name"], &latest["user_id"]),
        (&json!("Anna"), &json!(anna.id))
    );
    assert_eq!(
        (&latest["lat"], &latest["speed"]),
        (&json!(52.5), &json!(1.5))
    );
    DateTime::parse_from_rfc3339(latest["recorded_at"].as_str().unwrap()).unwrap();

    let mut annas = anna.socket(system).await;
    snapshot(&mut annas).await;
    ben.sends(&json!({"lat": 1, "lng": 2, "battery": 50})).await;
    for socket in [&mut annas, &mut bens] {
        let (kind, of, data) = event(socket).await;
        assert_eq!((kind.as_str(), of), ("location.updated", ben.id));
        let expected = [
            "accuracy",
            "battery",
            "lat",
            "lng",
            "place_name",
            "recorded_at",
            "speed",
            "user_id",
        ];
        assert_eq!(fields(&data), expected);
        assert_eq!(data["battery"], 50.0);
        assert!(data["place_name"].is_null());
    }
    stranger.is_at(3.0, "elsewhere").await;
    assert_eq!(event(&mut strangers).await.1, stranger.id);
}

#[tokio::test]
async fn a_person_who_leaves_is_not_seen_one_instant_later() {
    let system = system().await;
    let (anna, ben, circle) = couple(system).await;
    let code = ben.invite(&circle).await;
    let mut bens = ben.socket(system).await;
    snapshot(&mut bens).await;
    for _ in 0..12 {
        anna.leave(&circle).await;
        anna.is_at(1.0, "not for Ben").await;
        ben.is_at(2.0, "own").await;
        let (_, of, data) = event(&mut bens).await;
        assert_eq!(of, ben.id, "{data}");
        anna.join(&code).await;
        anna.is_at(3.0, "for Ben").await;
        let (_, of, data) = event(&mut bens).await;
        assert_eq!((of, &data["place_name"]), (anna.id, &json!("for Ben")));
    }
}

#[tokio::test]
async fn a_person_who_hides_is_not_seen_one_instant_later() {
    let system = system().await;
    let (anna, ben, _) = couple(system).await;
    let mut bens = ben.socket(system).await;
    anna.is_at(0.0, "shown").await;
    snapshot(&mut bens).await;
    for _ in 0..12 {
        let until = json!({"until": Utc::now() + TimeDelta::hours(1)});
        anna.client.post("/location/pause", &until).await.ok(204);
        anna.is_at(1.0, "hidden").await;
        ben.is_at(2.0, "own").await;
        let (_, of, data) = event(&mut bens).await;
        assert_eq!(of, ben.id, "{data}");
        anna.client.post_nothing("/location/resume").await.ok(204);
    }
    let shown = snapshot(&mut ben.socket(system).await).await;
    let annas = shown.iter().find(|shown| shown["user_id"] == anna.id);
    assert_eq!(annas.unwrap()["place_name"], "shown");
}

#[tokio::test]
async fn a_token_that_was_signed_out_shows_nothing_one_instant_later() {
    let system = system().await;
    let (anna, ben, _) = couple(system).await;
    for _ in 0..8 {
        let ben = ben.again(system).await;
        let mut bens = ben.socket(system).await;
        snapshot(&mut bens).await;
        ben.client.post_nothing("/auth/logout").await.ok(204);
        anna.is_at(1.0, "not for Ben").await;
        // Nothing comes before the end.
        let error = bens.next().await;
        assert_eq!(error["type"], "error", "{error}");
        let code = bens.close_code().await;
        assert!((3500..4000).contains(&code), "closed with {code}");
        let mut again = Socket::connect(system).await;
        again
            .send(&json!({"type": "auth", "token": ben.token}))
            .await;
        assert!(again.close_code().await >= 3500);
    }
}

#[tokio::test]
async fn another_password_ends_sockets_and_a_new_token_goes_on() {
    let system = system().await;
    let (anna, ben, _) = couple(system).await;
    let mut bens = ben.socket(system).await;
    let mut renewed = ben.socket(system).await;
    let token = ben.again(system).await.token;
    renewed.send(&json!({"type": "auth", "token": token})).await;
    assert_eq!(renewed.next().await["type"], "ready");
    let change = json!({"old": PASSWORD, "new": "another password"});
    let answer = ben.client.post("/auth/password", &change).await.ok(200);
    assert!(bens.close_code().await >= 3500);
    assert!(renewed.close_code().await >= 3500);
    let token = answer["access_token"].as_str().unwrap();
    let mut bens = Socket::open(system, token).await;
    snapshot(&mut bens).await;
    anna.is_at(1.0, "for Ben").await;
    assert_eq!(event(&mut bens).await.1, anna.id);
}

#[tokio::test]
async fn resuming_loses_and_doubles_nothing() {
    let system = system().await;
    let (anna, ben, _) = couple(system).await;
    let mut socket = ben.socket(system).await;
    let mut after = socket.subscribe("l", "locations", None).await;
    let walking = async {
        for step in 0..28 {
            anna.is_at(f64::from(step), "walk").await;
        }
    };
    let following = async {
        let mut steps = Vec::new();
        while steps.len() < 28 {
            // Cut off in the middle of the stream.
            socket = ben.socket(system).await;
            socket.subscribe("l", "locations", Some(&after)).await;
            for _ in 0..4.min(28 - steps.len()) {
                let frame = socket.next_of("event").await;
                frame["position"].as_str().unwrap().clone_into(&mut after);
                steps.push(frame["event"]["data"]["lat"].as_f64().unwrap());
            }
        }
        steps
    };
    let ((), steps) = tokio::join!(walking, following);
    let expected: Vec<f64> = (0..28).map(f64::from).collect();
    assert_eq!(steps, expected);
}

#[tokio::test]
async fn a_position_that_means_nothing_starts_afresh() {
    let system = system().await;
    let (anna, ben, _) = couple(system).await;
    anna.is_at(1.0, "home").await;
    let mut bens = ben.socket(system).await;
    let here = bens.subscribe("here", "locations", None).await;
    let (_, sequence) = here.split_once('-').unwrap();
    let subscribe = json!({
        "type": "subscribe", "id": "l", "channel": "locations",
        "after": format!("l00000000-{sequence}"),
    });
    bens.send(&subscribe).await;
    assert_eq!(bens.next().await["type"], "subscribed");
    assert_eq!(bens.next().await, json!({"type": "reset", "id": "l"}));
    let snapshot = bens.next().await;
    assert_eq!(snapshot["data"][0]["user_id"], anna.id);
    let places = json!({"type": "subscribe", "id": "p", "channel": "places", "after": here});
    bens.send(&places).await;
    assert_eq!(bens.next().await["type"], "error");
    let runs = json!({"type": "subscribe", "id": "r", "channel": "runs"});
    bens.send(&runs).await;
    assert_eq!(bens.next().await["type"], "error");
}
