//! Lists that are searched, filtered and sorted: how long the first answer takes, which counts what
//! it has to, and the slowest of those that follow.

use std::time::{Duration, Instant};

use reqwest::StatusCode;

use crate::report::Report;
use crate::system::System;

/// Answers after the first.
const AGAIN: usize = 50;
const AIM: &str = "100 ms";

/// What is asked of a list.
const ASKED: [&str; 14] = [
    "orders?sort=-amount",
    "orders?sort=number",
    "orders?status=ACTIVE&sort=email",
    "orders?createdFrom=2010-01-01&createdBefore=2012-01-01",
    "orders?q=Client 77",
    "leads?status=NEW",
    "leads?sort=-name",
    "leads?q=person999",
    "clients?city=Berlin",
    "clients?city=%C5%82%C3%B3d%C5%BA&sort=name",
    "clients?isActive=true",
    "clients?sort=city",
    "clients?city=Oslo&createdFrom=2010-01-01",
    "clients?q=Client 77&city=Oslo",
];

/// Asks for the first page of each, of the organization of a key.
pub(super) async fn measure(system: &System, key: &str, report: &mut Report) {
    let client = reqwest::Client::new();
    for asked in ASKED {
        let url = format!("http://{}/api/v1/{asked}&limit=100", system.addr());
        let first = timed(&client, &url, key).await;
        report.time(&format!("{asked}, first answer"), first, AIM);
        let mut slowest = Duration::ZERO;
        for _ in 0..AGAIN {
            slowest = slowest.max(timed(&client, &url, key).await);
        }
        report.time(&format!("{asked}, slowest of {AGAIN} more"), slowest, AIM);
    }
}

async fn timed(client: &reqwest::Client, url: &str, key: &str) -> Duration {
    let started = Instant::now();
    let answer = client.get(url).bearer_auth(key).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK, "{url}");
    answer.bytes().await.expect("all of it");
    started.elapsed()
}
