//! Responses that contain a token, requested again under their `Idempotency-Key`: a repeat is never
//! worth more than a first call, nor cheaper in attempts.

use futures::future::join_all;
use harness::{Answer, Client, System, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::accounts::{PASSWORD, email, login, phone, registration, status_with, token};
use super::codes::{code, holder, wrong};
use crate::{SHAPE, system};

const REGISTER: &str = "/auth/register";
const LOGIN: &str = "/auth/login";
const VERIFY: &str = "/auth/otp/verify";
const CHANGE: &str = "/auth/password";

fn key() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// What signs in to an account that was registered like this.
fn credentials(registration: &Value) -> Value {
    json!({"email": registration["email"], "password": registration["password"]})
}

/// A request that was answered with a token once, and its response.
struct First {
    client: Client,
    path: &'static str,
    key: String,
    body: Value,
    session: Value,
}

impl First {
    async fn of(client: Client, path: &'static str, body: Value) -> Self {
        let key = key();
        let answer = client.post_once(path, &key, &body).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text());
        Self {
            client,
            path,
            key,
            body,
            session: answer.json(),
        }
    }

    async fn registration(client: &Client) -> Self {
        Self::of(client.clone(), REGISTER, registration(&email())).await
    }

    async fn sign_in(client: &Client) -> Self {
        let body = registration(&email());
        client.post(REGISTER, &body).await.ok(201);
        Self::of(client.clone(), LOGIN, credentials(&body)).await
    }

    async fn verification(system: &System) -> Self {
        let phone = phone();
        holder(system, &phone).await;
        let body = json!({"phone": phone, "code": code(system, &phone).await});
        Self::of(system.client(), VERIFY, body).await
    }

    async fn change(client: &Client) -> Self {
        let body = registration(&email());
        let session = client.post(REGISTER, &body).await.ok(201);
        let change = json!({"old": PASSWORD, "new": "a new password"});
        Self::of(client.with_key(&token(&session)), CHANGE, change).await
    }

    /// One of each kind.
    async fn all(system: &System) -> [Self; 4] {
        let client = system.client();
        [
            Self::registration(&client).await,
            Self::sign_in(&client).await,
            Self::verification(system).await,
            Self::change(&client).await,
        ]
    }

    async fn again(&self) -> Answer {
        self.with(&self.body).await
    }

    async fn with(&self, body: &Value) -> Answer {
        self.client.post_once(self.path, &self.key, body).await
    }

    async fn still_good(&self) {
        let again = self.again().await;
        assert!(again.status.is_success(), "{}: {}", self.path, again.text());
        let token = token(&again.json());
        assert_eq!(status_with(&self.client, &token).await, 200);
        assert_eq!(again.json()["user"], self.session["user"]);
    }

    async fn is_over(&self) {
        let message = self.again().await.error(409);
        assert!(message.contains("sign in"), "{}: {message}", self.path);
    }

    fn person(&self) -> Client {
        self.client.with_key(&token(&self.session))
    }

    fn email(&self) -> &str {
        self.session["user"]["email"].as_str().unwrap()
    }

    /// The account's password after the first call.
    fn password(&self) -> &str {
        self.body["new"].as_str().unwrap_or(PASSWORD)
    }
}

#[tokio::test]
async fn a_repeat_is_over_once_the_password_was_changed() {
    for first in First::all(system().await).await {
        first.still_good().await;
        let change = json!({"old": first.password(), "new": "the newest password"});
        first.person().post(CHANGE, &change).await.ok(200);
        first.is_over().await;
        let mut newest = first.body.clone();
        for field in ["password", "new"] {
            if newest.get(field).is_some() {
                newest[field] = json!("the newest password");
                // The current password does not open what the first one did either.
                first.with(&newest).await.error(409);
            }
        }
    }
}

#[tokio::test]
async fn a_repeat_is_over_once_a_token_was_signed_out() {
    for first in First::all(system().await).await {
        first.still_good().await;
        let left = first.person().post_nothing("/auth/logout").await;
        assert_eq!(left.status, 204, "{}", left.text());
        first.is_over().await;
        // Knowing the password allows signing in again.
        let email = first.email();
        login(&first.client, email, first.password()).await.ok(200);
        first.is_over().await;
    }
}

#[tokio::test]
async fn a_repeat_is_over_once_the_person_was_forgotten() {
    let system = system().await;
    for first in [
        First::registration(&system.client()).await,
        First::sign_in(&system.client()).await,
        First::verification(system).await,
    ] {
        system.waypost(&["forget", first.email()]).await;
        first.is_over().await;
    }
}

#[tokio::test]
async fn a_repeat_is_over_with_its_time() {
    let system = System::start(SHAPE, &[("WAYPOST_TOKEN_REPEAT_SECONDS", "2")]).await;
    for first in First::all(&system).await {
        eventually("the end of repeats", async || {
            (first.again().await.status == 409).then_some(())
        })
        .await;
        first.is_over().await;
    }
}

#[tokio::test]
async fn a_repeat_counts_as_the_try_that_it_is() {
    let strict = [("WAYPOST_SIGN_IN_PER_ACCOUNT", "4")];
    let system = System::start(SHAPE, &strict).await;
    let client = system.client();
    for (first, field) in [
        (First::registration(&client).await, "password"),
        (First::sign_in(&client).await, "password"),
        (First::change(&client).await, "new"),
    ] {
        for _ in 0..6 {
            first.still_good().await;
        }
        let mut guess = first.body.clone();
        for nth in 0..4 {
            guess[field] = json!(format!("guessed password {nth}"));
            let message = first.with(&guess).await.error(409);
            assert!(message.contains("Idempotency-Key"), "{message}");
        }
        first.with(&guess).await.error(429);
        first.again().await.error(429);
    }
}

#[tokio::test]
async fn a_code_cannot_be_guessed_with_the_idempotency_key_that_it_was_used_with() {
    let system = system().await;
    let first = First::verification(system).await;
    first.still_good().await;
    let right = first.body["code"].as_str().unwrap().to_owned();
    let mut guess = first.body.clone();
    for nth in 1..=5 {
        guess["code"] = json!(wrong(&right, nth));
        first.with(&guess).await.error(409);
    }
    guess["code"] = json!(wrong(&right, 6));
    let slowed = first.with(&guess).await;
    slowed.error(429);
    assert!(slowed.header("retry-after").is_some());
    // The right one is no longer distinguished from the others.
    first.again().await.error(429);
}

#[tokio::test]
async fn a_verification_under_a_key_is_slowed_before_anything_is_compared() {
    let strict = [("WAYPOST_SIGN_IN_PER_ACCOUNT", "3")];
    let system = System::start(SHAPE, &strict).await;
    let first = First::verification(&system).await;
    let mut guess = first.body.clone();
    for nth in 1..=3 {
        guess["code"] = json!(wrong(first.body["code"].as_str().unwrap(), nth));
        first.with(&guess).await.error(409);
    }
    first.with(&guess).await.error(429);
    first.again().await.error(429);
}

#[tokio::test]
async fn nobody_elsewhere_finds_what_was_answered_here() {
    let proxied = [("WAYPOST_TRUSTED_PROXIES", "127.0.0.1")];
    let system = System::start(SHAPE, &proxied).await;
    let from = async |first: &First, address: &str| {
        let request = first.client.request(Method::POST, first.path);
        let request = request
            .header("x-forwarded-for", address)
            .header("idempotency-key", &first.key)
            .header("content-type", "application/json");
        Answer::to(request.body(first.body.to_string())).await
    };
    let registered = First::registration(&system.client()).await;
    let message = from(&registered, "192.0.2.1").await.error(409);
    assert!(message.contains("e-mail"), "{message}");
    registered.still_good().await;
    let verified = First::verification(&system).await;
    from(&verified, "192.0.2.1").await.error(401);
    verified.still_good().await;
}

#[tokio::test]
async fn the_same_at_once_is_answered_as_once() {
    let system = system().await;
    let (client, phone, key) = (system.client(), phone(), key());
    let held = holder(system, &phone).await;
    let registered = registration(&email());
    client.post(REGISTER, &registered).await.ok(201);
    let verification = json!({"phone": phone, "code": code(system, &phone).await});
    for (path, status, body) in [
        (REGISTER, 201, registration(&email())),
        (LOGIN, 200, credentials(&registered)),
        (VERIFY, 200, verification),
    ] {
        let key = format!("{key}{path}");
        let send = || client.post_once(path, &key, &body);
        let answers = join_all((0..4).map(|_| send())).await;
        for answer in &answers {
            assert_eq!(answer.ok(status)["user"], answers[0].json()["user"]);
        }
        if path == VERIFY {
            assert_eq!(answers[0].json()["user"], held["user"]);
        }
    }
}

#[tokio::test]
async fn another_sign_in_under_a_used_key_is_refused() {
    let client = system().await.client();
    let first = First::sign_in(&client).await;
    let other = registration(&email());
    client.post(REGISTER, &other).await.ok(201);
    let message = first.with(&credentials(&other)).await.error(409);
    assert!(message.contains("Idempotency-Key"), "{message}");
    first.still_good().await;
}

#[tokio::test]
async fn a_failed_sign_in_leaves_its_key_unused() {
    let client = system().await.client();
    let (registered, key) = (registration(&email()), key());
    client.post(REGISTER, &registered).await.ok(201);
    let right = credentials(&registered);
    let mut wrong = right.clone();
    wrong["password"] = json!("a wrong password");
    client.post_once(LOGIN, &key, &wrong).await.error(401);
    client.post_once(LOGIN, &key, &right).await.ok(200);
    // Now it is used.
    client.post_once(LOGIN, &key, &wrong).await.error(409);
}

#[tokio::test]
async fn a_sign_in_under_an_impossible_key_is_refused() {
    let client = system().await.client();
    let registered = registration(&email());
    client.post(REGISTER, &registered).await.ok(201);
    let too_long = "k".repeat(256);
    let login = credentials(&registered);
    let sent = client.post_once(LOGIN, &too_long, &login);
    let message = sent.await.error(400);
    assert!(message.contains("Idempotency-Key"), "{message}");
}
