//! Positions: what is accepted, what is counted, what is shown, and to whom.

use chrono::{DateTime, TimeDelta, Utc};
use harness::{Answer, Person, System};
use serde_json::{Value, json};

use crate::{SHAPE, system};

const UPDATE: &str = "/location/update";

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

async fn history(person: &Person, position: &str, query: &str) -> Vec<Value> {
    let path = format!("/location/history?{query}");
    let answer = person.client.get_at(&path, position).await.ok(200);
    answer["data"].as_array().unwrap().clone()
}

async fn two_in_a_circle() -> (Person, Person) {
    let system = system().await;
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let circle = ada.makes_circle().await;
    bob.joins(&circle, &ada).await;
    (ada, bob)
}

#[tokio::test]
async fn a_fix_is_taken_whole_and_shown() {
    let ada = system().await.person("Ada Ünal").await;
    let at = "2026-01-02T03:04:05.678901Z";
    let sent = json!({"lat": 52.520_008, "lng": -13.404_954, "accuracy": 4.5, "speed": 0,
                      "place_name": "Café „Übersee“", "battery": 81, "recorded_at": at,
                      "altitude": 34.0});
    let answer = ada.client.post(UPDATE, &sent).await;
    let position = answer.position();
    let taken = answer.ok(202);
    let mut fields: Vec<_> = taken.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["id", "recorded_at"]);
    assert!(uuid::Uuid::parse_str(taken["id"].as_str().unwrap()).is_ok());
    assert_eq!(time(&taken["recorded_at"]), time(&sent["recorded_at"]));
    let seen = history(&ada, &position, "").await;
    assert_eq!(seen.len(), 1);
    for field in ["lat", "lng", "accuracy", "place_name"] {
        assert_eq!(seen[0][field], sent[field], "{field}");
    }
    assert_eq!(seen[0]["speed"], 0.0);
    assert_eq!(
        (&seen[0]["user_id"], &seen[0]["name"]),
        (&json!(ada.id), &json!("Ada Ünal"))
    );
    assert_eq!(time(&seen[0]["recorded_at"]), time(&sent["recorded_at"]));
}

#[tokio::test]
async fn only_coordinates_are_needed_and_now_is_the_time() {
    let ada = system().await.person("Ada").await;
    let before = Utc::now() - TimeDelta::seconds(5);
    let answer = ada.client.post(UPDATE, &json!({"lat": 1, "lng": 2})).await;
    let position = answer.position();
    assert!(time(&answer.ok(202)["recorded_at"]) > before);
    let seen = &history(&ada, &position, "").await[0];
    for field in ["accuracy", "speed", "place_name"] {
        assert_eq!(seen[field], Value::Null, "{field}");
    }
}

#[tokio::test]
async fn coordinates_are_kept_to_seven_decimals() {
    let ada = system().await.person("Ada").await;
    let sent = json!({"lat": 52.123_456_789_012, "lng": -0.000_000_01});
    let position = ada.client.post(UPDATE, &sent).await.position();
    let seen = &history(&ada, &position, "").await[0];
    assert_eq!(
        (&seen["lat"], &seen["lng"]),
        (&json!(52.123_456_8), &json!(0.0))
    );
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let ada = system().await.person("Ada").await;
    let ahead = (Utc::now() + TimeDelta::minutes(6)).to_rfc3339();
    let good = json!({"lat": 1, "lng": 2});
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body.to_string()
    };
    let cases = [
        (json!({"lng": 2}).to_string(), "lat"),
        (json!({"lat": 2}).to_string(), "lng"),
        (with("lat", json!(90.01)), "lat"),
        (with("lng", json!(-180.01)), "lng"),
        (with("lat", json!("1")), "lat"),
        (r#"{"lat":1e999,"lng":2}"#.to_owned(), "lat"),
        (r#"{"lat":1,"lng":NaN}"#.to_owned(), "lng: "),
        (
            r#"[{"lat":1,"lng":2},{"lat":-Infinity,"lng":2}]"#.to_owned(),
            "[1].lat: ",
        ),
        (with("accuracy", json!(-1)), "accuracy"),
        (with("speed", json!(-0.5)), "speed"),
        (with("battery", json!(100.5)), "battery"),
        (with("place_name", json!("x".repeat(201))), "place_name"),
        (with("recorded_at", json!(ahead)), "recorded_at"),
        (with("recorded_at", json!("today")), "recorded_at"),
        ("[]".to_owned(), "body"),
        ("7".to_owned(), "body"),
        ("  \n".to_owned(), "lat"),
        (json!([good, {"lat": 91, "lng": 2}]).to_string(), "[1].lat"),
        (json!([good, good, 7]).to_string(), "[2]"),
    ];
    for (body, field) in cases {
        let answer = ada
            .client
            .post_bytes(UPDATE, "application/json", body.clone())
            .await;
        let message = answer.error(400);
        assert!(message.contains(field), "{body}: {message}");
    }
    ada.client
        .post_bytes(UPDATE, "application/json", "{")
        .await
        .error(400);
    let message = ada.client.post_nothing(UPDATE).await.error(400);
    assert!(message.contains("lat"), "{message}");
    ada.client
        .post_bytes(UPDATE, "text/plain", good.to_string())
        .await
        .error(415);
    assert_eq!(
        ada.client.get("/location/history").await.ok(200)["data"],
        json!([])
    );
}

#[tokio::test]
async fn how_far_ahead_a_fix_may_be_is_a_setting() {
    let less = [("WAYPOST_FIX_AHEAD_SECONDS", "60")];
    let system = System::start(SHAPE, &less).await;
    let ada = system.person("Ada").await;
    let made = |seconds| {
        let at = Utc::now() + TimeDelta::seconds(seconds);
        json!({"lat": 1, "lng": 2, "recorded_at": at.to_rfc3339()})
    };
    ada.client.post(UPDATE, &made(30)).await.ok(202);
    let message = ada.client.post(UPDATE, &made(120)).await.error(400);
    assert!(message.contains("60 seconds"), "{message}");
}

#[tokio::test]
async fn an_array_is_taken_all_or_none() {
    let ada = system().await.person("Ada").await;
    let fixes: Vec<_> = (0..5)
        .map(|minute| json!({"lat": minute, "lng": 0, "recorded_at": format!("2026-01-01T00:0{minute}:00Z")}))
        .collect();
    let answer = ada.client.post(UPDATE, &json!(fixes)).await;
    let position = answer.position();
    let taken = answer.ok(202);
    assert_eq!(taken.as_object().unwrap().len(), 1);
    let accepted = taken["accepted"].as_array().unwrap();
    assert_eq!(accepted.len(), 5);
    for (fix, taken) in fixes.iter().zip(accepted) {
        assert_eq!(time(&fix["recorded_at"]), time(&taken["recorded_at"]));
    }
    let seen = history(&ada, &position, "").await;
    let lats: Vec<_> = seen
        .iter()
        .map(|fix| fix["lat"].as_f64().unwrap())
        .collect();
    assert_eq!(lats, [4.0, 3.0, 2.0, 1.0, 0.0]);
    // A single one in an array is answered with an array.
    let alone = json!([{"lat": 9, "lng": 0}]);
    let alone = ada.client.post(UPDATE, &alone).await.ok(202);
    assert_eq!(alone["accepted"].as_array().unwrap().len(), 1);
    // Without times they are still several fixes.
    let many = json!([{"lat": 9, "lng": 0}, {"lat": 9, "lng": 0}, {"lat": 9, "lng": 0}]);
    let answer = ada.client.post(UPDATE, &many).await;
    let seen = history(&ada, &answer.position(), "").await;
    assert_eq!(seen.len(), 9);
}

#[tokio::test]
async fn a_fix_is_one_however_often_it_is_sent() {
    let ada = system().await.person("Ada").await;
    let fix = json!({"lat": 1, "lng": 2, "recorded_at": "2026-01-01T00:00:00Z"});
    let first = ada.client.post(UPDATE, &fix).await;
    let position = first.position();
    let first = first.ok(202);
    let again = ada.client.post(UPDATE, &fix).await;
    assert_eq!(again.ok(202), first);
    // The same time in another form, other coordinates, and within an array.
    let other = json!({"lat": 7, "lng": 2, "recorded_at": "2026-01-01T01:00:00.000+01:00"});
    assert_eq!(
        ada.client.post(UPDATE, &other).await.ok(202)["id"],
        first["id"]
    );
    let new = json!({"lat": 3, "lng": 2, "recorded_at": "2026-01-01T00:00:01Z"});
    let both = ada.client.post(UPDATE, &json!([fix, new, new])).await;
    let last = both.position();
    let both = both.ok(202);
    assert_eq!(both["accepted"][0], first);
    assert_eq!(both["accepted"][1], both["accepted"][2]);
    assert_ne!(position, last);
    let seen = history(&ada, &last, "").await;
    let lats: Vec<_> = seen
        .iter()
        .map(|fix| fix["lat"].as_f64().unwrap())
        .collect();
    assert_eq!(lats, [3.0, 1.0]);
    // Many at once.
    let fix = json!({"lat": 4, "lng": 2, "recorded_at": "2026-01-01T00:00:02Z"});
    let sent = (0..8).map(|_| ada.client.post(UPDATE, &fix));
    let answers: Vec<Value> = futures::future::join_all(sent)
        .await
        .iter()
        .map(|a| a.ok(202))
        .collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

/// A process that knows nothing of a person reads the log, and of two at once one is first.
#[tokio::test]
async fn a_fix_is_one_over_all_processes() {
    let system = system().await;
    let ada = system.person("Ada").await;
    let (second, _program) = system.another("command-api").await;
    let second = ada.client.at(&second);
    let old = json!({"lat": 1, "lng": 2, "recorded_at": "2020-01-01T00:00:00Z"});
    let first = ada.client.post(UPDATE, &old).await.ok(202);
    assert_eq!(second.post(UPDATE, &old).await.ok(202), first);
    let keyed = json!({"lat": 1, "lng": 2});
    let first = ada.client.post_once(UPDATE, "k", &keyed).await.ok(202);
    assert_eq!(second.post_once(UPDATE, "k", &keyed).await.ok(202), first);
    let mut last = String::new();
    for minute in 0..6 {
        let time = format!("2026-01-01T00:0{minute}:00Z");
        let fix = json!({"lat": minute, "lng": 2, "recorded_at": time});
        let here = ada.client.post(UPDATE, &fix);
        let there = second.post(UPDATE, &fix);
        let (here, there) = tokio::join!(here, there);
        last = here.position();
        assert_eq!(here.ok(202), there.ok(202));
    }
    assert_eq!(history(&ada, &last, "").await.len(), 8);
}

#[tokio::test]
async fn an_idempotency_key_holds_for_fixes_without_a_time() {
    let ada = system().await.person("Ada").await;
    let body = json!([{"lat": 1, "lng": 2}, {"lat": 3, "lng": 4}]);
    let first = ada.client.post_once(UPDATE, "k", &body).await.ok(202);
    assert_eq!(
        ada.client.post_once(UPDATE, "k", &body).await.ok(202),
        first
    );
    let other = json!({"lat": 1, "lng": 2});
    ada.client.post_once(UPDATE, "k", &other).await.error(409);
    let later = ada.client.post_once(UPDATE, "k2", &body).await;
    let position = later.position();
    assert_ne!(later.ok(202), first);
    let again = ada.client.post_once(UPDATE, "k", &body).await;
    assert_eq!(again.ok(202), first);
    assert_eq!(history(&ada, &position, "").await.len(), 4);
}

#[tokio::test]
async fn a_late_fix_joins_the_history_and_does_not_move_the_latest_back() {
    let (ada, bob) = two_in_a_circle().await;
    bob.is_at(10.0, 0.0).await;
    let late = (Utc::now() - TimeDelta::days(1)).to_rfc3339();
    let late = json!({"lat": 5, "lng": 0, "recorded_at": late});
    let position = bob.client.post(UPDATE, &late).await.position();
    assert_eq!(bob.sees_at(&position).await, [(bob.id, 10.0)]);
    assert_eq!(ada.sees_at(&position).await, [(bob.id, 10.0)]);
    let own = history(&bob, &position, "").await;
    assert_eq!(own.len(), 2);
    assert_eq!(own[1]["lat"], 5.0);
    // It was made before they shared a circle.
    let seen = history(&ada, &position, &format!("user_id={}", bob.id)).await;
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn history_is_cut_by_time_and_number() {
    let ada = system().await.person("Ada").await;
    let fixes: Vec<_> = (0..9)
        .map(|minute| json!({"lat": minute, "lng": 0, "recorded_at": format!("2026-01-01T00:0{minute}:00Z")}))
        .collect();
    let position = ada.client.post(UPDATE, &json!(fixes)).await.position();
    let lats = async |query: &str| {
        let seen = history(&ada, &position, query).await;
        seen.iter()
            .map(|fix| fix["lat"].as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    let own = format!("user_id={}&limit=2", ada.id);
    assert_eq!(lats(&own).await, [8.0, 7.0]);
    let between = "from=2026-01-01T00:02:00Z&to=2026-01-01T00:04:00Z";
    assert_eq!(lats(between).await, [4.0, 3.0, 2.0]);
    assert_eq!(lats("from=2026-01-01T01:08:00%2B01:00").await, [8.0]);
    assert!(lats("to=2025-01-01T00:00:00Z").await.is_empty());
    for (query, name) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("from=monday", "from"),
        ("to=1", "to"),
        ("user_id=me", "user_id"),
        ("user_id=0", "user_id"),
    ] {
        let path = format!("/location/history?{query}");
        let message = ada.client.get(&path).await.error(400);
        assert!(message.starts_with(name), "{message}");
    }
}

#[tokio::test]
async fn nobody_sees_who_hides() {
    let (ada, bob) = two_in_a_circle().await;
    bob.is_at(10.0, 0.0).await;
    let until = (Utc::now() + TimeDelta::hours(1)).to_rfc3339();
    let paused = bob
        .client
        .post("/location/pause", &json!({"until": until}))
        .await;
    paused.ok(204);
    assert_eq!(ada.sees_at(&paused.position()).await, []);
    let hidden = bob.is_at(11.0, 0.0).await;
    assert_eq!(ada.sees_at(&hidden).await, []);
    assert!(
        history(&ada, &hidden, &format!("user_id={}", bob.id))
            .await
            .is_empty()
    );
    assert_eq!(bob.sees_at(&hidden).await, [(bob.id, 11.0)]);

    let resumed = bob.client.post_nothing("/location/resume").await;
    resumed.ok(204);
    // What was hidden stays hidden.
    assert_eq!(ada.sees_at(&resumed.position()).await, [(bob.id, 10.0)]);
    let shown = bob.is_at(12.0, 0.0).await;
    assert_eq!(ada.sees_at(&shown).await, [(bob.id, 12.0)]);
    let seen = history(&ada, &shown, &format!("user_id={}", bob.id)).await;
    let lats: Vec<_> = seen
        .iter()
        .map(|fix| fix["lat"].as_f64().unwrap())
        .collect();
    assert_eq!(lats, [12.0, 10.0]);
    bob.client.post_nothing("/location/resume").await.ok(204);
    for body in [
        json!({}),
        json!({"until": "2020-01-01T00:00:00Z"}),
        json!({"until": 5}),
    ] {
        let message = bob.client.post("/location/pause", &body).await.error(400);
        assert!(message.starts_with("until"), "{message}");
    }
}

fn remaining(answer: &Answer) -> (String, u64) {
    let policy = answer.header("ratelimit-policy").unwrap().to_owned();
    let limit = answer.header("ratelimit").unwrap();
    let left = limit.split(';').find_map(|part| part.strip_prefix("r="));
    (policy, left.unwrap().parse().unwrap())
}

#[tokio::test]
async fn positions_count_one_by_one_and_are_taken_or_refused_as_a_whole() {
    let ada = system().await.person("Ada").await;
    let fixes = |count: usize| json!(vec![json!({"lat": 1, "lng": 2}); count]);
    let sent = ada.client.post(UPDATE, &fixes(20)).await;
    sent.ok(202);
    let (policy, left) = remaining(&sent);
    assert_eq!(policy, "\"locations\";q=30;w=3600");
    assert_eq!(left, 10);
    let wrong = ada.client.post(UPDATE, &json!({"lat": 91, "lng": 0})).await;
    wrong.error(400);
    assert_eq!(remaining(&wrong).1, 9, "a mistake counts too");
    let unusable = ada.client.post_once(UPDATE, "", &fixes(1)).await;
    unusable.error(400);
    assert_eq!(
        remaining(&unusable).1,
        8,
        "an unusable key is a mistake too"
    );
    // More than are left: nothing is accepted, and nothing counted.
    let refused = ada.client.post(UPDATE, &fixes(10)).await;
    refused.error(429);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3_601).contains(&wait), "{wait}");
    let whole = ada.client.post(UPDATE, &fixes(8)).await;
    whole.ok(202);
    assert_eq!(remaining(&whole).1, 0);
    assert_eq!(history(&ada, &whole.position(), "").await.len(), 28);
    ada.client.post(UPDATE, &fixes(1)).await.error(429);
    ada.client.post_once(UPDATE, "", &fixes(1)).await.error(429);
    // Other calls have a separate limit.
    let other = ada.client.get("/location/latest").await;
    other.ok(200);
    assert!(remaining(&other).0.starts_with("\"requests\";q=100"));
    let eve = system().await.person("Eve").await;
    let message = eve.client.post(UPDATE, &fixes(31)).await.error(400);
    assert!(message.contains("30"), "{message}");
    eve.client.post(UPDATE, &fixes(101)).await.error(400);
}
