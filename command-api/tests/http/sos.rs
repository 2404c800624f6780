//! Calls for help, and answers to them.

use schemas::{AccountId, TokenId};
use uuid::Uuid;

use crate::support::{Answer, TestApi};

/// Requests of a free account in an hour.
const REQUESTS: usize = 100;

/// A person with an access token.
struct Person<'h> {
    api: &'h TestApi,
    authorization: String,
}

impl<'h> Person<'h> {
    fn of(api: &'h TestApi) -> Self {
        let account = AccountId(Uuid::new_v4().as_u64_pair().0 >> 11);
        let id = TokenId::from(Uuid::new_v4());
        let token = api.access.make_token(account, &id, 0).access_token;
        Self {
            api,
            authorization: format!("Bearer {token}"),
        }
    }

    async fn send(&self, method: &str, path: &str, key: Option<&str>) -> Answer {
        let mut headers = vec![("authorization", self.authorization.as_str())];
        headers.extend(key.map(|key| ("idempotency-key", key)));
        self.api.send_with(method, path, &headers, "").await
    }

    /// Calls for help. Returns the path that ends the call.
    async fn calls(&self) -> String {
        let called = self.send("POST", "/sos/trigger", None).await;
        assert_eq!(called.status, 202, "{}", called.body);
        format!("/sos/{}/resolve", called.text("sos_id"))
    }
}

#[tokio::test]
async fn answering_a_call_for_help_has_no_limit_and_counts_as_nothing() {
    let api = TestApi::open().await;
    let ada = Person::of(&api);
    let resolve = ada.calls().await;
    for _ in 0..=REQUESTS {
        let resolved = ada.send("POST", &resolve, None).await;
        assert_eq!(resolved.status, 200, "{}", resolved.body);
        assert_eq!(resolved.header("ratelimit"), None);
    }
    let unknown = ada.send("POST", "/sos/none/acknowledge", None).await;
    assert_eq!(unknown.status, 404, "{}", unknown.body);
    assert_eq!(unknown.header("ratelimit"), None);
    let counted = ada.send("DELETE", "/circles/none/members/me", None).await;
    assert_eq!(counted.status, 404, "{}", counted.body);
    let left = counted.header("ratelimit").unwrap();
    assert!(left.starts_with("\"requests\";r=99;"), "{left}");
}

#[tokio::test]
async fn an_answer_that_was_given_before_writes_nothing_whatever_its_key() {
    let api = TestApi::open().await;
    let ada = Person::of(&api);
    let resolve = ada.calls().await;
    let first = ada.send("POST", &resolve, None).await;
    assert_eq!(first.status, 200, "{}", first.body);
    for key in ["k1", "k2", "k1"] {
        let again = ada.send("POST", &resolve, Some(key)).await;
        assert_eq!(again.body, first.body);
        assert_eq!(again.position(), first.position());
    }
}

#[tokio::test]
async fn a_repeat_of_an_answer_is_answered_as_the_first_time() {
    let api = TestApi::open().await;
    let ada = Person::of(&api);
    let resolve = ada.calls().await;
    let first = ada.send("POST", &resolve, Some("k")).await;
    assert_eq!(first.status, 200, "{}", first.body);
    let again = ada.send("POST", &resolve, Some("k")).await;
    assert_eq!(again.status, 200, "{}", again.body);
    assert_eq!(again.body, first.body);
    assert_eq!(again.position(), first.position());
    let other = ada.calls().await;
    let refused = ada.send("POST", &other, Some("k")).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
}
