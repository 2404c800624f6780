//! Responses that hold a token, requested again under their `Idempotency-Key`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Here;
use crate::wire::{is_success, learn};

/// How long an ended token may still work.
const SOON: Duration = Duration::from_millis(1_500);
/// How often one code is tried under one key.
const TRIES: usize = 8;
const PASSWORD: &str = "a long password";

pub(crate) async fn repeat(mut here: Here) {
    loop {
        here.chance.pause(here.pause() * 4).await;
        let from = here.chance.below(4_000);
        if here.chance.chance(60) {
            open_again(&mut here, from).await;
        } else {
            guess_again(&mut here, from).await;
        }
    }
}

/// Sends a command under a key of its own.
async fn send(
    here: &Here,
    from: usize,
    (path, token): (&str, &str),
    key: &str,
    body: &Value,
) -> (String, Value) {
    let key = format!("idempotency-key: {key}\r\n");
    let asked = here
        .ground
        .json_with("POST", path, token, &key, &body.to_string());
    learn(from, &asked).await
}

/// Registers, ends the token, and registers once more as if the response had been lost.
async fn open_again(here: &mut Here, from: usize) {
    let throw = here.chance.throw();
    let (key, register) = (format!("again-{throw:x}"), ("/auth/register", ""));
    let email = format!("crowd{throw}@crowd.example");
    let body = json!({"name": "Crowd", "email": email, "password": PASSWORD});
    let (told, session) = send(here, from, register, &key, &body).await;
    let Some(first) = session["access_token"].as_str() else {
        return here.got(format!("register {told}"));
    };
    let (path, ending) = if here.chance.chance(50) {
        let body = json!({"old": PASSWORD, "new": format!("a newer password {throw}")});
        ("/auth/password", body)
    } else {
        ("/auth/logout", json!({}))
    };
    let (ended, _) = send(here, from, (path, first), &format!("{key}-ends"), &ending).await;
    if !is_success(&ended) {
        // It is unknown whether it has ended.
        return here.got(format!("end {ended}"));
    }
    let (told, again) = send(here, from, register, &key, &body).await;
    here.got(format!("again {told}"));
    tokio::time::sleep(SOON).await;
    try_token(here, from, first, "its first token still works").await;
    if let Some(second) = again["access_token"].as_str() {
        try_token(here, from, second, "a token that works").await;
    }
}

/// Checks whether a token still works.
async fn try_token(here: &Here, from: usize, token: &str, gain: &str) {
    let asked = here.ground.head("GET", "/circles", token, "");
    let (told, _) = learn(from, &asked).await;
    here.got(if is_success(&told) {
        gain.to_owned()
    } else {
        format!("token {told}")
    });
}

/// Tries one code repeatedly, each as a retry of the first try.
async fn guess_again(here: &mut Here, from: usize) {
    let throw = here.chance.throw();
    let phone = format!("+4917{:09}", throw % 10_000);
    let (key, code) = (
        format!("code-{throw:x}"),
        format!("{:06}", throw % 1_000_000),
    );
    let sent = json!({"phone": phone});
    let send_one = ("/auth/otp/send", "");
    let (told, _) = send(here, from, send_one, &format!("{key}-send"), &sent).await;
    here.got(format!("send {told}"));
    let body = json!({"phone": phone, "code": code});
    for _ in 0..TRIES {
        let (told, session) = send(here, from, ("/auth/otp/verify", ""), &key, &body).await;
        here.got(if session["access_token"].is_string() {
            "a token by a guessed code".to_owned()
        } else {
            format!("verify {told}")
        });
    }
}
