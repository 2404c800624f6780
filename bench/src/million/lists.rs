//! Lists that are searched, filtered and sorted: how long the first response takes, which has to
//! count the rows, and the slowest of the following ones. For a text search, the median of the
//! first responses for several similar texts is reported.

use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::{Client, StatusCode};

use crate::report::Report;
use crate::system::System;

/// Responses after the first.
const AGAIN: usize = 50;
const AIM: &str = "100 ms";
/// Concurrent requests that make the service open its connections to Postgres before the
/// measurement.
const SIDE_BY_SIDE: usize = 8;

/// The requested lists. `{}` stands for a digit of a text, which is searched with each except 0.
const ASKED: [&str; 14] = [
    "orders?sort=-amount",
    "orders?sort=number",
    "orders?status=ACTIVE&sort=email",
    "orders?createdFrom=2010-01-01&createdBefore=2012-01-01",
    "orders?q=Client 7{}",
    "leads?status=NEW",
    "leads?sort=-name",
    "leads?q=person99{}",
    "clients?city=Berlin",
    "clients?city=%C5%82%C3%B3d%C5%BA&sort=name",
    "clients?isActive=true",
    "clients?sort=city",
    "clients?city=Oslo&createdFrom=2010-01-01",
    "clients?q=Client 7{}&city=Oslo",
];

/// Requests the first page of each, for the organization of the key.
pub(super) async fn measure(system: &System, key: &str, report: &mut Report) {
    let client = Client::new();
    let plain = format!("http://{}/api/v1/orders?sort=email&limit=1", system.addr());
    join_all((0..SIDE_BY_SIDE).map(|_| timed(&client, &plain, key))).await;
    for asked in ASKED {
        let urls = urls(system, asked);
        let mut first = Vec::new();
        for url in &urls {
            first.push(timed(&client, url, key).await);
        }
        first.sort_unstable();
        let middle = first[first.len() / 2];
        report.time(&format!("{asked}, first answer"), middle, AIM);
        let mut slowest = Duration::ZERO;
        for url in urls.iter().cycle().take(AGAIN) {
            slowest = slowest.max(timed(&client, url, key).await);
        }
        report.time(&format!("{asked}, slowest of {AGAIN} more"), slowest, AIM);
    }
}

/// One URL for each text.
fn urls(system: &System, asked: &str) -> Vec<String> {
    let of = |asked: &str| format!("http://{}/api/v1/{asked}&limit=100", system.addr());
    if asked.contains("{}") {
        let digits = 1..=9;
        digits
            .map(|digit| of(&asked.replace("{}", &digit.to_string())))
            .collect()
    } else {
        vec![of(asked)]
    }
}

async fn timed(client: &Client, url: &str, key: &str) -> Duration {
    let started = Instant::now();
    let answer = client.get(url).bearer_auth(key).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK, "{url}");
    answer.bytes().await.expect("all of it");
    started.elapsed()
}
