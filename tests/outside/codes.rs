//! One-time codes: sent to a phone number, tried, and what they allow.

use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use futures::future::join_all;
use harness::{Answer, Client, Receiver, System, eventually};
use serde_json::{Value, json};

use super::accounts::{PASSWORD, email, phone};
use crate::{SHAPE, system};

pub(super) async fn register(client: &Client, phone: Option<&str>) -> Value {
    let body = json!({"name": "Ada", "email": email(), "password": PASSWORD, "phone": phone});
    client.post("/auth/register", &body).await.ok(201)
}

pub(super) fn with_token(client: &Client, session: &Value) -> Client {
    client.with_key(session["access_token"].as_str().unwrap())
}

pub(super) async fn send(client: &Client, phone: &str) -> Answer {
    client
        .post("/auth/otp/send", &json!({"phone": phone}))
        .await
}

pub(super) async fn verify(client: &Client, phone: &str, code: &str) -> Answer {
    let body = json!({"phone": phone, "code": code});
    client.post("/auth/otp/verify", &body).await
}

/// Requests a code and reads it where it was sent.
pub(super) async fn code(system: &System, phone: &str) -> String {
    let answer = send(&system.client(), phone).await;
    assert_eq!(answer.ok(202), json!({"expires_in": 300}));
    let sent = system.outbox(phone);
    sent.last().unwrap()["code"].as_str().unwrap().to_owned()
}

/// Creates a person with a verified number.
pub(super) async fn holder(system: &System, phone: &str) -> Value {
    let client = system.client();
    let session = register(&client, Some(phone)).await;
    let code = code(system, phone).await;
    let held = verify(&with_token(&client, &session), phone, &code).await;
    assert_eq!(held.ok(200)["user"], session["user"]);
    session
}

/// A code other than the right one.
pub(super) fn wrong(code: &str, nth: u32) -> String {
    let code: u32 = code.parse().unwrap();
    format!("{:06}", (code + nth) % 1_000_000)
}

#[tokio::test]
async fn a_number_named_at_registration_is_held_once_verified() {
    let system = system().await;
    let (client, phone) = (system.client(), phone());
    let session = register(&client, Some(&phone)).await;
    let code = code(system, &phone).await;
    assert_eq!(code.len(), 6);
    assert!(code.bytes().all(|digit| digit.is_ascii_digit()));
    let sent = system.outbox(&phone);
    let keys: Vec<_> = sent[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["phone", "code", "at"]);
    let person = with_token(&client, &session);
    verify(&person, &phone, &wrong(&code, 1)).await.error(401);
    // Holding the phone does not prove being the one who registered its number.
    verify(&client, &phone, &code).await.error(401);
    let verified = verify(&person, &phone, &code).await;
    assert_eq!(verified.ok(200)["user"], session["user"]);
    assert_eq!(verified.json()["token_type"], "bearer");
    let token = with_token(&client, &verified.json());
    assert_eq!(token.get("/circles").await.status, 200);
    // A code can be used once.
    verify(&client, &phone, &code).await.error(401);
    let next = self::code(system, &phone).await;
    let again = verify(&client, &phone, &next).await.ok(200);
    assert_eq!(again["user"], session["user"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let path = system.home().join("outbox/sms.ndjson");
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn answers_do_not_reveal_whether_a_number_is_known() {
    let system = system().await;
    let (client, held, unknown) = (system.client(), phone(), phone());
    holder(system, &held).await;
    let held = send(&client, &held).await;
    let code = code(system, &unknown).await;
    assert_eq!(held.ok(202), json!({"expires_in": 300}));
    let nobody = verify(&client, &unknown, &code).await.error(401);
    let wrong = verify(&client, &unknown, &wrong(&code, 1)).await.error(401);
    assert_eq!(nobody, wrong);
    for body in [
        json!({}),
        json!({"phone": "0151"}),
        json!({"phone": 1}),
        json!([]),
    ] {
        client.post("/auth/otp/send", &body).await.error(400);
        client.post("/auth/otp/verify", &body).await.error(400);
    }
    let no_code = json!({"phone": phone()});
    let message = client.post("/auth/otp/verify", &no_code).await.error(400);
    assert!(message.contains("code"), "{message}");
}

#[tokio::test]
async fn five_wrong_tries_end_a_code_and_a_new_one_replaces_it() {
    let system = system().await;
    let (client, phone) = (system.client(), phone());
    holder(system, &phone).await;
    let first = code(system, &phone).await;
    for nth in 1..=5 {
        verify(&client, &phone, &wrong(&first, nth))
            .await
            .error(401);
    }
    verify(&client, &phone, &first).await.error(401);
    let second = code(system, &phone).await;
    for nth in 1..=4 {
        verify(&client, &phone, &wrong(&second, nth))
            .await
            .error(401);
    }
    let third = code(system, &phone).await;
    if second != third {
        verify(&client, &phone, &second).await.error(401);
    }
    for odd in ["", "12345", "１２３４５６"] {
        verify(&client, &phone, odd).await.error(401);
    }
    verify(&client, &phone, &third).await.ok(200);
}

#[tokio::test]
async fn twenty_tries_at_once_over_two_processes_use_a_code_once() {
    let system = system().await;
    let (client, phone) = (system.client(), phone());
    let (second, _program) = system.another("command-api").await;
    holder(system, &phone).await;
    let right = code(system, &phone).await;
    let clients = [&client, &second];
    let tries = (0..20).map(|nth| verify(clients[nth % 2], &phone, &right));
    let answers = join_all(tries).await;
    let signed_in = answers.iter().filter(|answer| answer.status == 200);
    assert_eq!(signed_in.count(), 1);
    // No more than five wrong ones ever count, so that a sixth guess is hopeless.
    let next = code(system, &phone).await;
    let guesses: Vec<String> = (1..=20).map(|nth| wrong(&next, nth)).collect();
    let tries = guesses.iter().zip(0..);
    let tries = tries.map(|(guess, nth)| verify(clients[nth % 2], &phone, guess));
    join_all(tries).await;
    verify(&client, &phone, &next).await.error(401);
}

#[tokio::test]
async fn five_codes_an_hour_go_to_a_number() {
    let system = system().await;
    let (client, phone) = (system.client(), phone());
    let answers = join_all((0..8).map(|_| send(&client, &phone))).await;
    let sent = answers.iter().filter(|answer| answer.status == 202).count();
    assert_eq!(sent, 5);
    let over = send(&client, &phone).await;
    over.error(429);
    let wait: u64 = over.header("retry-after").unwrap().parse().unwrap();
    assert!((3_500..=3_600).contains(&wait), "{wait}");
    assert_eq!(system.outbox(&phone).len(), 5);
    send(&client, &self::phone()).await.ok(202);
}

#[tokio::test]
async fn the_same_request_again_sends_and_signs_in_once() {
    let system = system().await;
    let (client, phone) = (system.client(), phone());
    let session = holder(system, &phone).await;
    let key = uuid::Uuid::new_v4().to_string();
    let body = json!({"phone": phone});
    let send = || client.post_once("/auth/otp/send", &key, &body);
    for answer in join_all((0..4).map(|_| send())).await {
        answer.ok(202);
    }
    let sent = system.outbox(&phone);
    assert_eq!(sent.len(), 2, "{sent:?}");
    let other = json!({"phone": self::phone()});
    client
        .post_once("/auth/otp/send", &key, &other)
        .await
        .error(409);
    let body = json!({"phone": phone, "code": sent[1]["code"]});
    for _ in 0..2 {
        let answer = client.post_once("/auth/otp/verify", &key, &body).await;
        assert_eq!(answer.ok(200)["user"], session["user"]);
    }
    client.post("/auth/otp/verify", &body).await.error(401);
}

#[tokio::test]
async fn with_a_token_a_number_is_attached_to_its_account() {
    let system = system().await;
    let (client, phone) = (system.client(), phone());
    let ada = register(&client, None).await;
    let code = code(system, &phone).await;
    let bad = client.with_key("x");
    verify(&bad, &phone, &code).await.error(401);
    // A code that signs nobody in stays valid with a token.
    verify(&client, &phone, &code).await.error(401);
    let attached = verify(&with_token(&client, &ada), &phone, &code).await;
    assert_eq!(attached.ok(200)["user"], ada["user"]);
    let code = self::code(system, &phone).await;
    let signed_in = verify(&client, &phone, &code).await.ok(200);
    assert_eq!(signed_in["user"], ada["user"]);

    // The first to verify holds it.
    let bob = register(&client, Some(&phone)).await;
    let code = self::code(system, &phone).await;
    verify(&with_token(&client, &bob), &phone, &code)
        .await
        .error(409);
    let code = self::code(system, &phone).await;
    let signed_in = verify(&client, &phone, &code).await.ok(200);
    assert_eq!(signed_in["user"], ada["user"]);

    // Taking another number releases the first one.
    let other = self::phone();
    let code = self::code(system, &other).await;
    verify(&with_token(&client, &ada), &other, &code)
        .await
        .ok(200);
    let code = self::code(system, &phone).await;
    let taken = verify(&with_token(&client, &bob), &phone, &code).await;
    assert_eq!(taken.ok(200)["user"], bob["user"]);
}

#[tokio::test]
async fn a_squatted_number_gives_nobody_access() {
    let system = system().await;
    let (client, phone) = (system.client(), phone());
    let squatter = register(&client, Some(&phone)).await;
    let owner = register(&client, Some(&phone)).await;
    let code = code(system, &phone).await;
    // Without a token nobody is signed in to an account that a stranger may have opened.
    verify(&client, &phone, &code).await.error(401);
    let held = verify(&with_token(&client, &owner), &phone, &code).await;
    assert_eq!(held.ok(200)["user"], owner["user"]);
    let code = self::code(system, &phone).await;
    let signed_in = verify(&client, &phone, &code).await.ok(200);
    assert_eq!(signed_in["user"], owner["user"]);
    let code = self::code(system, &phone).await;
    verify(&with_token(&client, &squatter), &phone, &code)
        .await
        .error(409);
}

#[tokio::test]
async fn the_only_one_who_has_named_a_number_does_not_get_its_owner() {
    let system = system().await;
    let (client, phone) = (system.client(), phone());
    register(&client, Some(&phone)).await;
    let code = code(system, &phone).await;
    verify(&client, &phone, &code).await.error(401);
    // The owner opens an account of their own, and no other claim is in the way.
    let owner = register(&client, None).await;
    let held = verify(&with_token(&client, &owner), &phone, &code).await;
    assert_eq!(held.ok(200)["user"], owner["user"]);
}

/// Waits for this long.
async fn passed(time: Duration) {
    let start = Instant::now();
    eventually("time has passed", async || {
        (start.elapsed() > time).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_code_ends_with_its_time() {
    let system = System::start(SHAPE, &[("WAYPOST_CODE_SECONDS", "0.5")]).await;
    let (client, phone) = (system.client(), phone());
    let session = register(&client, Some(&phone)).await;
    let answer = send(&client, &phone).await;
    assert_eq!(answer.ok(202), json!({"expires_in": 1}));
    let code = system.outbox(&phone)[0]["code"]
        .as_str()
        .unwrap()
        .to_owned();
    passed(Duration::from_millis(600)).await;
    let person = with_token(&client, &session);
    verify(&person, &phone, &code).await.error(401);
}

#[tokio::test]
async fn without_postgres_codes_are_503_and_all_else_goes_on() {
    let mut system = System::start_alone(SHAPE, &[]).await;
    let (client, phone) = (system.client(), phone());
    let session = register(&client, Some(&phone)).await;
    system
        .postgres
        .as_mut()
        .expect("Postgres of its own")
        .kill();
    send(&client, &phone).await.error(503);
    verify(&client, &phone, "123456").await.error(503);
    let email = session["user"]["email"].as_str().unwrap();
    let body = json!({"email": email, "password": PASSWORD});
    let again = client.post("/auth/login", &body).await.ok(200);
    let person = with_token(&client, &again);
    person
        .post("/circles", &json!({"name": "Home"}))
        .await
        .ok(201);
    register(&client, None).await;
    let left = person.post_nothing("/auth/logout").await;
    assert_eq!(left.status, 204);
}

#[tokio::test]
async fn codes_leave_by_a_service_that_speaks_as_twilio_does() {
    let service = Receiver::start().await;
    let url = service.url("/base/");
    let settings = [
        ("WAYPOST_SMS_URL", url.as_str()),
        ("WAYPOST_SMS_ACCOUNT", "AC0123"),
        ("WAYPOST_SMS_TOKEN", "sms-token"),
        ("WAYPOST_SMS_FROM", "+15005550006"),
    ];
    let system = System::start(SHAPE, &settings).await;
    let (client, phone) = (system.client(), phone());
    let session = register(&client, Some(&phone)).await;
    let tries = std::sync::atomic::AtomicU32::new(0);
    service.reply(move |_| {
        let nth = tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let status = [503, 429, 201][nth.min(2) as usize];
        let status = StatusCode::from_u16(status).unwrap();
        (status, HeaderMap::new(), "{}".to_owned())
    });
    send(&client, &phone).await.ok(202);
    let calls = service.wait_for(3, |_| true).await;
    let sent = calls.last().unwrap();
    assert_eq!(sent.path, "/base/2010-04-01/Accounts/AC0123/Messages.json");
    assert_eq!(
        sent.header("authorization"),
        "Basic QUMwMTIzOnNtcy10b2tlbg=="
    );
    assert_eq!(
        sent.header("content-type"),
        "application/x-www-form-urlencoded"
    );
    let body = String::from_utf8(sent.body.to_vec()).unwrap();
    let fields: std::collections::HashMap<_, _> = url::form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    assert_eq!(fields["To"], phone);
    assert_eq!(fields["From"], "+15005550006");
    let code = fields["Body"].strip_prefix("Your code is ").unwrap();
    let person = with_token(&client, &session);
    let verified = verify(&person, &phone, code).await.ok(200);
    assert_eq!(verified["user"], session["user"]);

    service.reply(|_| (StatusCode::BAD_REQUEST, HeaderMap::new(), "{}".to_owned()));
    send(&client, &self::phone()).await.error(503);
    assert!(!system.said().contains(&phone));
    assert!(!system.said().contains("sms-token"));
}
