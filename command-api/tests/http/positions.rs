//! Positions that one person sends to two command APIs.

use schemas::{AccountId, StreamId, TokenId};
use serde_json::Value;
use uuid::Uuid;

use crate::support::{Answer, TestApi};
use crate::wiretap::Wiretap;

const BODY: &str = r#"{"lat": 1.5, "lng": 2.5}"#;

fn new_account() -> AccountId {
    AccountId(Uuid::new_v4().as_u64_pair().0 >> 12)
}

/// Sends a position of this person with an `Idempotency-Key`.
async fn send(api: &TestApi, person: AccountId, key: &str, body: &'static str) -> Answer {
    let id = TokenId::from(Uuid::new_v4());
    let token = api.access.make_token(person, &id, 0).access_token;
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("idempotency-key", key),
    ];
    api.send_with("POST", "/location/update", &headers, body)
        .await
}

/// How often this person's track was searched by time since the last call.
async fn searches(reads: &mut Wiretap, api: &TestApi, person: AccountId) -> usize {
    let track = api.commands.log().subject_of(&StreamId::of_track(person));
    let is_search = |request: &&async_nats::Message| {
        let query: Value = serde_json::from_slice(&request.payload).unwrap_or_default();
        query["next_by_subj"] == track.as_str() && !query["start_time"].is_null()
    };
    let requests = reads.until_now().await;
    requests.iter().filter(is_search).count()
}

#[tokio::test]
async fn positions_sent_to_two_servers_in_turn_are_not_searched_for_at_every_turn() {
    let (one, other) = (TestApi::open().await, TestApi::open().await);
    let person = new_account();
    let mut reads = Wiretap::on("LOCATIONS").await;
    for turn in 0..5 {
        for (api, name) in [(&one, "one"), (&other, "other")] {
            let sent = send(api, person, &format!("{name}-{turn}"), BODY).await;
            assert_eq!(sent.status, 202, "{}", sent.body);
        }
    }
    // The first had nothing to search; the other one did it once.
    assert_eq!(searches(&mut reads, &one, person).await, 1);
    let track = StreamId::of_track(person);
    assert_eq!(one.commands.log().load(&track).await.unwrap().len(), 10);
}

#[tokio::test]
async fn a_repeat_to_another_server_than_the_first_time_gets_the_first_answer() {
    let (one, other) = (TestApi::open().await, TestApi::open().await);
    let person = new_account();
    assert_eq!(send(&one, person, "a", BODY).await.status, 202);
    assert_eq!(send(&other, person, "b", BODY).await.status, 202);
    // This one learns of the other's by a conflict, and the other of this one's likewise.
    let first = send(&one, person, "c", BODY).await;
    assert_eq!(first.status, 202, "{}", first.body);
    assert_eq!(send(&other, person, "d", BODY).await.status, 202);
    for key in ["c", "a"] {
        let again = send(&other, person, key, BODY).await;
        assert_eq!(again.status, 202, "{}", again.body);
        if key == "c" {
            assert_eq!(again.body, first.body);
        }
        let refused = send(&other, person, key, r#"{"lat": 3, "lng": 4}"#).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
    }
    let track = StreamId::of_track(person);
    assert_eq!(one.commands.log().load(&track).await.unwrap().len(), 4);
}
