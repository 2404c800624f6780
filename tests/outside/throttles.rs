//! What strangers may cost those who sign in: attempts are counted by all processes together, and
//! no crowd locks persons out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures::future::join_all;
use harness::{Answer, Client, System, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::accounts::{PASSWORD, email, login, phone, register, registration};
use super::codes::{code, holder, send, verify, with_token};
use crate::SHAPE;

pub(super) const PROXIED: (&str, &str) = ("WAYPOST_TRUSTED_PROXIES", "127.0.0.1");

async fn from(client: &Client, address: &str, path: &str, body: &Value) -> Answer {
    let request = client.request(Method::POST, path);
    let request = request
        .header("x-forwarded-for", address)
        .header("content-type", "application/json");
    Answer::to(request.body(body.to_string())).await
}

pub(super) async fn sign_in(client: &Client, address: &str, email: &str, password: &str) -> Answer {
    let body = json!({"email": email, "password": password});
    from(client, address, "/auth/login", &body).await
}

fn retry_after(answer: &Answer) -> u64 {
    answer.header("retry-after").unwrap().parse().unwrap()
}

#[tokio::test]
async fn registrations_of_an_address_add_up_over_processes() {
    let strict = [PROXIED, ("WAYPOST_REGISTRATIONS_PER_ADDRESS", "6")];
    let system = System::start(SHAPE, &strict).await;
    let (second, _program) = system.another("command-api").await;
    let clients = [system.client(), second];
    let open = async |nth: usize, address: &str| {
        let body = registration(&email());
        from(&clients[nth % 2], address, "/auth/register", &body).await
    };
    let answers = join_all((0..12).map(|nth| open(nth, "192.0.2.1"))).await;
    let opened = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.status == 429).count();
    assert_eq!((opened, refused), (6, 6));
    let slowed = open(0, "192.0.2.1").await;
    assert!(slowed.error(429).contains("try again"));
    assert!((1..=151).contains(&retry_after(&slowed)));
    open(1, "192.0.2.2").await.ok(201);
}

#[tokio::test]
async fn registrations_for_an_address_are_slowed_wherever_they_come_from() {
    let strict = [PROXIED, ("WAYPOST_SIGN_IN_PER_ACCOUNT", "3")];
    let system = System::start(SHAPE, &strict).await;
    let (client, body) = (system.client(), registration(&email()));
    let open = async |nth: u32| {
        let address = format!("192.0.2.{nth}");
        from(&client, &address, "/auth/register", &body).await
    };
    open(1).await.ok(201);
    for nth in 2..5 {
        open(nth).await.error(409);
    }
    open(5).await.error(429);
}

#[tokio::test]
async fn failures_add_up_over_processes() {
    let strict = [
        PROXIED,
        ("WAYPOST_SIGN_IN_PER_ACCOUNT", "4"),
        ("WAYPOST_SIGN_IN_PER_ADDRESS", "6"),
    ];
    let system = System::start(SHAPE, &strict).await;
    let (second, _program) = system.another("command-api").await;
    let clients = [system.client(), second];
    let wanted = email();
    for nth in 0..4 {
        sign_in(&clients[nth % 2], "192.0.2.1", &wanted, "wrong password")
            .await
            .error(401);
    }
    for client in &clients {
        sign_in(client, "192.0.2.2", &wanted, "wrong password")
            .await
            .error(429);
        sign_in(client, "192.0.2.1", &email(), "wrong password")
            .await
            .error(401);
    }
    for client in &clients {
        sign_in(client, "192.0.2.1", &email(), "wrong password")
            .await
            .error(429);
    }
}

#[tokio::test]
async fn sign_ins_that_succeed_are_counted_too() {
    let strict = [PROXIED, ("WAYPOST_SIGN_INS_PER_ADDRESS", "5")];
    let system = System::start(SHAPE, &strict).await;
    let (client, email) = (system.client(), email());
    register(&client, &registration(&email)).await.ok(201);
    for _ in 0..5 {
        sign_in(&client, "192.0.2.1", &email, PASSWORD)
            .await
            .ok(200);
    }
    sign_in(&client, "192.0.2.1", &email, PASSWORD)
        .await
        .error(429);
    sign_in(&client, "192.0.2.2", &email, PASSWORD)
        .await
        .ok(200);
}

#[tokio::test]
async fn strangers_cannot_lock_out_who_is_known() {
    let strict = [
        PROXIED,
        ("WAYPOST_SIGN_IN_PER_ACCOUNT", "3"),
        ("WAYPOST_SIGN_IN_PER_ADDRESS", "8"),
    ];
    let system = System::start(SHAPE, &strict).await;
    let (client, known) = (system.client(), email());
    let body = registration(&known);
    from(&client, "192.0.2.1", "/auth/register", &body)
        .await
        .ok(201);
    for nth in 10..13 {
        sign_in(&client, &format!("192.0.2.{nth}"), &known, "wrong password")
            .await
            .error(401);
    }
    sign_in(&client, "192.0.2.13", &known, PASSWORD)
        .await
        .error(429);
    // From the address where the person registered, only failures from there count,
    sign_in(&client, "192.0.2.1", &known, PASSWORD)
        .await
        .ok(200);
    // and others at the same address use up the allowance of others.
    for _ in 0..8 {
        sign_in(&client, "192.0.2.1", &email(), "wrong password")
            .await
            .error(401);
    }
    sign_in(&client, "192.0.2.1", &email(), "wrong password")
        .await
        .error(429);
    for _ in 0..3 {
        sign_in(&client, "192.0.2.1", &known, PASSWORD)
            .await
            .ok(200);
        sign_in(&client, "192.0.2.1", &known, "wrong password")
            .await
            .error(401);
    }
    sign_in(&client, "192.0.2.1", &known, PASSWORD)
        .await
        .error(429);
}

#[tokio::test]
async fn own_sign_ins_buy_no_guesses_at_an_address_that_has_used_them_up() {
    let strict = [PROXIED, ("WAYPOST_SIGN_IN_PER_ADDRESS", "4")];
    let system = System::start(SHAPE, &strict).await;
    let (client, own) = (system.client(), email());
    let body = registration(&own);
    from(&client, "192.0.2.1", "/auth/register", &body)
        .await
        .ok(201);
    let guess = async || sign_in(&client, "192.0.2.1", &email(), "wrong password").await;
    for _ in 0..4 {
        guess().await.error(401);
    }
    for _ in 0..3 {
        guess().await.error(429);
        sign_in(&client, "192.0.2.1", &own, PASSWORD).await.ok(200);
    }
    guess().await.error(429);
}

#[tokio::test]
async fn a_crowd_that_registers_and_guesses_keeps_nobody_from_signing_in() {
    const SIGN_INS: u32 = 20;
    let narrow = [PROXIED, ("WAYPOST_PASSWORD_HASHES", "1")];
    let system = System::start(SHAPE, &narrow).await;
    let (client, known) = (system.client(), email());
    let body = registration(&known);
    from(&client, "198.51.100.1", "/auth/register", &body)
        .await
        .ok(201);
    let over = AtomicBool::new(false);
    let crowd = async |nth: usize| {
        let (mut served, mut refused) = (0, 0);
        while !over.load(Ordering::Relaxed) {
            let address = format!("203.0.113.{}", nth % 200);
            let answer = if nth.is_multiple_of(2) {
                let body = registration(&email());
                from(&client, &address, "/auth/register", &body).await
            } else {
                sign_in(&client, &address, &email(), "wrong password").await
            };
            match answer.status.as_u16() {
                201 | 401 => served += 1,
                429 | 503 => refused += 1,
                other => panic!("{other}: {}", answer.text()),
            }
        }
        (served, refused)
    };
    let person = async || {
        let mut times = Vec::new();
        for _ in 0..SIGN_INS {
            let begun = Instant::now();
            sign_in(&client, "198.51.100.1", &known, PASSWORD)
                .await
                .ok(200);
            times.push(begun.elapsed());
        }
        over.store(true, Ordering::Relaxed);
        times.sort_unstable();
        times[times.len() / 2]
    };
    let begun = Instant::now();
    let (median, crowd) = tokio::join!(person(), join_all((0..400).map(crowd)));
    let served: u32 = crowd.iter().map(|(served, _)| served).sum();
    assert!(served > 0, "strangers come in too");
    // Behind the whole queue it would take some 300 hashes, however long one takes here.
    let hash = begun.elapsed() / (served + SIGN_INS);
    assert!(median < hash * 50, "{median:?}, a hash in {hash:?}");
}

#[tokio::test]
async fn one_address_cannot_fill_the_queue() {
    let narrow = [
        PROXIED,
        ("WAYPOST_PASSWORD_HASHES", "1"),
        ("WAYPOST_PASSWORD_WAITING_PER_ADDRESS", "5"),
        // However slow the machine is.
        ("WAYPOST_PASSWORD_PATIENCE_SECONDS", "100"),
    ];
    let system = System::start(SHAPE, &narrow).await;
    let client = system.client();
    let (one, other) = tokio::join!(
        join_all((0..60).map(|_| async {
            let body = registration(&email());
            from(&client, "192.0.2.1", "/auth/register", &body).await
        })),
        join_all((0..4).map(|_| async {
            let body = registration(&email());
            from(&client, "192.0.2.2", "/auth/register", &body).await
        })),
    );
    let refused: Vec<_> = one.iter().filter(|answer| answer.status == 429).collect();
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|answer| retry_after(answer) >= 1));
    assert!(one.iter().all(|answer| answer.status != 503));
    assert!(other.iter().all(|answer| answer.status == 201));
}

#[tokio::test]
async fn while_postgres_is_away_each_process_counts() {
    let strict = [
        ("WAYPOST_SIGN_IN_PER_ACCOUNT", "3"),
        ("WAYPOST_LIMIT_PATIENCE_SECONDS", "0.5"),
    ];
    let mut system = System::start_alone(SHAPE, &strict).await;
    let (client, known) = (system.client(), email());
    register(&client, &registration(&known)).await.ok(201);
    system
        .postgres
        .as_mut()
        .expect("Postgres of its own")
        .kill();
    login(&client, &known, PASSWORD).await.ok(200);
    for _ in 0..3 {
        login(&client, &known, "wrong password").await.error(401);
    }
    let slowed = login(&client, &known, PASSWORD).await;
    slowed.error(429);
    assert!(retry_after(&slowed) >= 1);
    login(&client, &email(), "wrong password").await.error(401);
}

#[tokio::test]
async fn codes_asked_for_are_bounded_by_address_over_processes() {
    let strict = [PROXIED, ("WAYPOST_CODE_SENDS_PER_ADDRESS", "4")];
    let system = System::start(SHAPE, &strict).await;
    let (second, _program) = system.another("command-api").await;
    let clients = [system.client(), second];
    let ask = async |nth: usize, address: &str| {
        let body = json!({"phone": phone()});
        from(&clients[nth % 2], address, "/auth/otp/send", &body).await
    };
    let answers = join_all((0..8).map(|nth| ask(nth, "192.0.2.1"))).await;
    let sent = answers.iter().filter(|answer| answer.status == 202).count();
    assert_eq!(sent, 4);
    let slowed = ask(0, "192.0.2.1").await;
    slowed.error(429);
    assert!((1..=901).contains(&retry_after(&slowed)));
    ask(1, "192.0.2.2").await.ok(202);
}

#[tokio::test]
async fn codes_are_guessed_from_an_address_so_often_over_processes_whatever_the_number() {
    let strict = [PROXIED, ("WAYPOST_SIGN_IN_PER_ADDRESS", "4")];
    let system = System::start(SHAPE, &strict).await;
    let (second, _program) = system.another("command-api").await;
    let clients = [system.client(), second];
    let guess = async |nth: usize, address: &str| {
        let body = json!({"phone": phone(), "code": "000000"});
        from(&clients[nth % 2], address, "/auth/otp/verify", &body).await
    };
    for nth in 0..4 {
        guess(nth, "192.0.2.1").await.error(401);
    }
    for nth in 0..2 {
        let slowed = guess(nth, "192.0.2.1").await;
        slowed.error(429);
        assert!(retry_after(&slowed) >= 1);
    }
    guess(1, "192.0.2.2").await.error(401);
}

#[tokio::test]
async fn half_of_a_days_codes_are_kept_for_those_who_hold_a_number() {
    let system = System::start(SHAPE, &[("WAYPOST_CODE_SENDS_PER_DAY", "6")]).await;
    let (client, held) = (system.client(), phone());
    // The first of the six, while nobody holds the number yet.
    let ada = holder(&system, &held).await;
    for _ in 0..2 {
        code(&system, &phone()).await;
    }
    // The strangers' half is used up; that is not reported, since it would reveal held numbers.
    let unknown = phone();
    let unsent = send(&client, &unknown).await;
    assert_eq!(unsent.ok(202), send(&client, &held).await.ok(202));
    assert!(system.outbox(&unknown).is_empty());
    let wanted = json!({"phone": phone()});
    let person = with_token(&client, &ada);
    let told = person.post("/auth/otp/send", &wanted).await;
    assert!(told.error(503).contains("tomorrow"));
    assert!((1..=86_400).contains(&retry_after(&told)));

    for _ in 0..2 {
        let code = code(&system, &held).await;
        verify(&client, &held, &code).await.ok(200);
    }
    for number in [&held, &unknown] {
        send(&client, number).await.error(503);
    }
    assert_eq!(system.outbox(&held).len(), 4);
}

#[tokio::test]
async fn what_has_run_out_takes_no_room() {
    let brief = [
        ("WAYPOST_SIGN_IN_SECONDS", "1"),
        ("WAYPOST_FAMILIAR_SECONDS", "1"),
    ];
    let system = System::start(SHAPE, &brief).await;
    let (client, known) = (system.client(), email());
    register(&client, &registration(&known)).await.ok(201);
    login(&client, &email(), "wrong password").await.error(401);
    let mut database = system.database().await;
    let rows = "SELECT count(*) FROM throttles";
    let before: i64 = sqlx::query_scalar(rows)
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert!(before > 0, "{before}");
    eventually("rows that have run out are swept away", async || {
        sqlx::query("SELECT sweep_throttles(1000)")
            .execute(&mut database)
            .await
            .unwrap();
        let left: i64 = sqlx::query_scalar(rows)
            .fetch_one(&mut database)
            .await
            .unwrap();
        (left == 0).then_some(())
    })
    .await;
}
