//! `/ws` for persons, and for organizations with circles: who sees whom, from when and until when.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use harness::{Client, Organization, Receiver, Socket, System};
use serde_json::{Value, json};

use crate::system;

/// Somebody with an account, and a client that speaks with its token.
struct Person {
    client: Client,
    token: String,
    id: u64,
    email: String,
}

const PASSWORD: &str = "a long password";

impl Person {
    async fn register(system: &System, name: &str) -> Self {
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

    /// May send as many positions as a test needs.
    async fn without_limits(system: &System, name: &str) -> Self {
        let person = Self::register(system, name).await;
        let limits = ["--requests", "1000000", "--locations", "1000000"];
        let tier = ["account", "tier", &person.email, "enterprise"];
        system.waypost(&[&tier[..], &limits].concat()).await;
        person
    }

    async fn circle(&self) -> String {
        let name = json!({"name": "Family"});
        let made = self.client.post("/circles", &name).await.ok(201);
        made["id"].as_str().unwrap().to_owned()
    }

    async fn invite(&self, circle: &str) -> String {
        let path = format!("/circles/{circle}/invites");
        let invited = self.client.post_nothing(&path).await.ok(201);
        invited["code"].as_str().unwrap().to_owned()
    }

    async fn join(&self, code: &str) {
        let code = json!({"code": code});
        self.client.post("/circles/join", &code).await.ok(200);
    }

    async fn leave(&self, circle: &str) {
        let path = format!("/circles/{circle}/members/me");
        self.client.delete(&path).await.ok(204);
    }

    async fn place(&self, circle: &str, lat: f64) {
        let path = format!("/circles/{circle}/places");
        let place = json!({"name": "School", "lat": lat, "lng": 13.4, "radius_m": 100});
        self.client.post(&path, &place).await.ok(201);
    }

    /// Is somewhere now; gives the fix's id.
    async fn is_at(&self, lat: f64, place_name: &str) -> Value {
        self.sends(&json!({"lat": lat, "lng": 13.4, "place_name": place_name}))
            .await
    }

    async fn sends(&self, update: &Value) -> Value {
        self.client.post("/location/update", update).await.ok(202)
    }

    async fn socket(&self, system: &System) -> Socket {
        Socket::open(system, &self.token).await
    }
}

/// Two persons in one circle.
async fn couple(system: &System) -> (Person, Person, String) {
    let (anna, ben) = tokio::join!(
        Person::register(system, "Anna"),
        Person::register(system, "Ben")
    );
    let circle = anna.circle().await;
    ben.join(&anna.invite(&circle).await).await;
    (anna, ben, circle)
}

/// Subscribes to positions and gives the snapshot.
async fn snapshot(socket: &mut Socket) -> Vec<Value> {
    let subscribe = json!({"type": "subscribe", "id": "l", "channel": "locations"});
    socket.send(&subscribe).await;
    assert_eq!(socket.next().await["type"], "subscribed");
    let snapshot = socket.next().await;
    assert_eq!(snapshot["type"], "snapshot", "{snapshot}");
    snapshot["data"].as_array().unwrap().clone()
}

/// The next event: its type, whom it is of and its data.
async fn event(socket: &mut Socket) -> (String, u64, Value) {
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
async fn whoever_leaves_is_not_seen_one_instant_later() {
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
async fn whoever_hides_is_not_seen_one_instant_later() {
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
            // Cut off in the middle of whatever goes on.
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

/// An organization's circle, and somebody in it.
async fn member_of(org: &Organization<'_>, person: &Person) -> String {
    let name = json!({"name": "Drivers"});
    let made = org.admin.post("/api/v1/circles", &name).await.ok(201);
    let circle = made["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/circles/{circle}/invites");
    let invited = org.admin.post_nothing(&path).await.ok(201);
    person.join(invited["code"].as_str().unwrap()).await;
    circle
}

#[tokio::test]
async fn an_organization_gets_what_members_of_its_circles_do() {
    let org = system().await.organization().await;
    let (anna, other) = tokio::join!(
        Person::register(org.system, "Anna"),
        Person::register(org.system, "Ben")
    );
    let receiver = Receiver::start().await;
    let webhook = json!({
        "url": receiver.url("/"),
        "events": ["location.*", "place.*", "sos.*", "circle.*"],
    });
    org.admin.post("/api/v1/webhooks", &webhook).await.ok(201);
    let circle = member_of(&org, &anna).await;
    anna.place(&circle, 10.0).await;
    let mut socket = Socket::open(org.system, &org.key).await;
    assert!(snapshot(&mut socket).await.is_empty());
    for channel in ["places", "sos"] {
        socket.subscribe(channel, channel, None).await;
    }
    other.is_at(10.0, "no member").await;
    anna.is_at(10.0, "school").await;
    let help = json!({"lat": 10, "lng": 13.4, "message": "help"});
    anna.client.post("/sos/trigger", &help).await.ok(202);
    let mut heard = BTreeMap::new();
    for _ in 0..3 {
        let (kind, of, data) = event(&mut socket).await;
        assert_eq!(of, anna.id);
        heard.insert(kind, data);
    }
    assert_eq!(heard["location.updated"]["place_name"], "school");
    assert_eq!(heard["place.entered"]["name"], "School");
    assert_eq!(heard["place.entered"]["circle_id"], circle);
    assert_eq!(heard["sos.triggered"]["message"], "help");
    let received = receiver.wait_for(4, |_| true).await;
    let mut posted = BTreeMap::new();
    for received in &received {
        let body = received.json();
        posted.insert(
            body["type"].as_str().unwrap().to_owned(),
            body["data"].clone(),
        );
    }
    assert_eq!(
        posted.remove("circle.member_joined").unwrap()["user_id"],
        anna.id
    );
    assert_eq!(posted, heard);

    anna.leave(&circle).await;
    anna.is_at(20.0, "not for them").await;
    let left = |received: &harness::Received| received.json()["type"] == "circle.member_left";
    receiver.wait_for(1, left).await;
    member_of(&org, &anna).await;
    anna.is_at(30.0, "again for them").await;
    assert_eq!(event(&mut socket).await.2["place_name"], "again for them");
    let again = |received: &harness::Received| received.json()["data"]["lat"] == 30.0;
    receiver.wait_for(1, again).await;
    let all = receiver.received();
    assert!(
        all.iter()
            .all(|received| received.json()["data"]["lat"] != 20.0)
    );
}

#[tokio::test]
async fn each_crossing_is_told_once() {
    let system = system().await;
    let (anna, ben, circle) = couple(system).await;
    anna.place(&circle, 10.0).await;
    let mut bens = ben.socket(system).await;
    let start = bens.subscribe("p", "places", None).await;
    let metre = 1.0 / 111_195.0;
    // Outside, in, jitter at the edge, a fix too inexact to tell, out.
    for (metres, accuracy) in [(500, 5), (20, 5), (110, 5), (90, 5), (300, 250), (400, 5)] {
        let lat = 10.0 + f64::from(metres) * metre;
        anna.sends(&json!({"lat": lat, "lng": 13.4, "accuracy": accuracy}))
            .await;
    }
    let mut told = Vec::new();
    for _ in 0..2 {
        let (kind, of, data) = event(&mut bens).await;
        assert_eq!((of, &data["name"]), (anna.id, &json!("School")));
        assert!(data["place_id"].is_string() && data["recorded_at"].is_string());
        told.push(kind);
    }
    assert_eq!(told, ["place.entered", "place.left"]);
    // Read again from the log, there is nothing else between these and what follows.
    ben.is_at(10.0, "school").await;
    assert_eq!(event(&mut bens).await.1, ben.id);
    bens.subscribe("again", "places", Some(&start)).await;
    for of in [anna.id, anna.id, ben.id] {
        assert_eq!(event(&mut bens).await.1, of);
    }
}

#[tokio::test]
async fn a_call_for_help_reaches_all_who_share_a_circle() {
    let system = system().await;
    let (anna, ben, _) = couple(system).await;
    let carl = Person::register(system, "Carl").await;
    let circle = carl.circle().await;
    anna.join(&carl.invite(&circle).await).await;
    let stranger = Person::register(system, "Dora").await;
    let mut sockets = Vec::new();
    for person in [&anna, &ben, &carl, &stranger] {
        let mut socket = person.socket(system).await;
        socket.subscribe("s", "sos", None).await;
        sockets.push(socket);
    }
    let long_ago = Utc::now() - TimeDelta::hours(2);
    let help = json!({"lat": 1.5, "lng": 2.5, "message": "help", "recorded_at": long_ago});
    let called = anna.client.post("/sos/trigger", &help).await.ok(202);
    let sos_id = called["sos_id"].as_str().unwrap();
    for action in ["acknowledge", "resolve"] {
        let path = format!("/sos/{sos_id}/{action}");
        ben.client.post_nothing(&path).await.ok(200);
    }
    for socket in &mut sockets[..3] {
        for expected in ["sos.triggered", "sos.acknowledged", "sos.resolved"] {
            let (kind, of, data) = event(socket).await;
            assert_eq!((kind.as_str(), of), (expected, anna.id));
            assert_eq!(data["sos_id"], sos_id);
            assert_eq!(
                (&data["message"], &data["late"]),
                (&json!("help"), &json!(true))
            );
            assert!(data.get("audience").is_none());
        }
    }
    stranger
        .client
        .post("/sos/trigger", &json!({}))
        .await
        .ok(202);
    assert_eq!(event(&mut sockets[3]).await.1, stranger.id);
}

#[tokio::test]
async fn a_slow_reader_gets_the_newest_of_each_person() {
    const WALKERS: usize = 8;
    const ARRAYS: i64 = 20;
    let system = system().await;
    let ben = Person::register(system, "Ben").await;
    let circle = ben.circle().await;
    let code = ben.invite(&circle).await;
    let mut bens = ben.socket(system).await;
    snapshot(&mut bens).await;
    bens.subscribe("s", "sos", None).await;
    let walk = async || {
        let walker = Person::without_limits(system, "Walker").await;
        walker.join(&code).await;
        let start = Utc::now();
        for some in 0..ARRAYS {
            let fixes = (some * 100..some * 100 + 100).map(|nth| {
                let at = start + TimeDelta::milliseconds(nth);
                let place_name = "ä".repeat(200);
                json!({"lat": 1, "lng": 1, "place_name": place_name, "recorded_at": at})
            });
            walker.sends(&fixes.collect()).await;
        }
        walker
    };
    let walkers = join_all((0..WALKERS).map(|_| walk())).await;
    walkers[0].is_at(9.0, "the end").await;
    let help = walkers[0].client.post("/sos/trigger", &json!({})).await;
    help.ok(202);
    let (mut conflated, mut seen, mut helped, mut ended) = (0, 0, false, false);
    while !(helped && ended) {
        let frame = bens.next().await;
        match frame["type"].as_str().unwrap() {
            "conflated" => {
                assert_eq!(frame["id"], "l");
                assert!(frame["from"].is_string() && frame["to"].is_string());
                conflated += 1;
            }
            "event" if frame["id"] == "s" => helped = true,
            "event" => {
                seen += 1;
                ended |= frame["event"]["data"]["place_name"] == "the end";
            }
            other => panic!("{other}: {frame}"),
        }
    }
    assert!(conflated > 0, "all {seen} were taken");
    assert!(seen < WALKERS * 2_000, "{seen} were taken");
}
