//! Concurrent changes: a client that says what it has seen overwrites nobody else's.

use futures::future::join_all;
use harness::{Answer, Client, Owner};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderName, IF_MATCH, IF_NONE_MATCH, ORIGIN};
use serde_json::{Value, json};

use super::only_begins;
use crate::system;

const LEAD: &str = "/api/v1/records/leads/ada";

async fn organization() -> Client {
    system().await.organization().await.client(&["admin"]).await
}

/// Changes something with a key, with one more header.
async fn change(
    by: &Client,
    method: Method,
    path: &str,
    body: &Value,
    header: (&HeaderName, &str),
) -> Answer {
    let request = by.request(method, path).header(header.0, header.1);
    let request = request.header(CONTENT_TYPE, "application/json");
    Answer::to(request.body(body.to_string())).await
}

fn lead(name: &str) -> Value {
    json!({"name": name, "status": "new"})
}

fn etag(answer: &Answer) -> String {
    answer.header("etag").expect("an ETag").to_owned()
}

async fn read(by: &Client, path: &str, position: &str) -> Answer {
    let request = by.request(Method::GET, path);
    let read = Answer::to(request.header("Waypost-Min-Position", position)).await;
    read.ok(200);
    read
}

#[tokio::test]
async fn of_two_editors_of_a_record_the_slower_one_is_refused() {
    let shop = organization().await;
    let made = shop.put(LEAD, &lead("Ada")).await;
    made.ok(201);
    let seen = read(&shop, LEAD, &made.position()).await;
    let updated = seen.ok(200)["updatedAt"].clone();
    assert_eq!(etag(&seen), updated.to_string());
    assert_eq!(etag(&made), etag(&seen));

    let quicker = change(
        &shop,
        Method::PUT,
        LEAD,
        &lead("Grace"),
        (&IF_MATCH, &etag(&seen)),
    )
    .await;
    quicker.ok(200);
    let slower = change(
        &shop,
        Method::PUT,
        LEAD,
        &lead("Eve"),
        (&IF_MATCH, &etag(&seen)),
    )
    .await;
    assert!(
        slower.error(412).starts_with("If-Match: "),
        "{}",
        slower.text()
    );
    let deleted = change(
        &shop,
        Method::DELETE,
        LEAD,
        &json!({}),
        (&IF_MATCH, &etag(&seen)),
    )
    .await;
    deleted.error(412);

    // Repeated after a lost response, a change already made is not an error.
    let again = change(
        &shop,
        Method::PUT,
        LEAD,
        &lead("Grace"),
        (&IF_MATCH, &etag(&seen)),
    )
    .await;
    again.ok(200);
    assert_eq!(etag(&again), etag(&quicker));

    let now = read(&shop, LEAD, &quicker.position()).await;
    assert_eq!(now.ok(200)["name"], "Grace");
    assert_eq!(etag(&now), etag(&quicker));
    let merged = change(
        &shop,
        Method::PUT,
        LEAD,
        &lead("Eve"),
        (&IF_MATCH, &etag(&now)),
    )
    .await;
    merged.ok(200);
    // Without a precondition, the last one wins as ever.
    shop.put(LEAD, &lead("Last")).await.ok(200);
}

#[tokio::test]
async fn preconditions_distinguish_what_is_gone_from_what_is_not_there_yet() {
    let shop = organization().await;
    let new = change(&shop, Method::PUT, LEAD, &lead("Ada"), (&IF_MATCH, "*")).await;
    assert!(new.error(412).contains("does not exist"));
    let new = change(
        &shop,
        Method::PUT,
        LEAD,
        &lead("Ada"),
        (&IF_NONE_MATCH, "*"),
    )
    .await;
    new.ok(201);
    let taken = change(
        &shop,
        Method::PUT,
        LEAD,
        &lead("Eve"),
        (&IF_NONE_MATCH, "*"),
    )
    .await;
    assert!(taken.error(412).starts_with("If-None-Match: "));
    let gone = change(
        &shop,
        Method::DELETE,
        LEAD,
        &json!({}),
        (&IF_MATCH, &etag(&new)),
    )
    .await;
    gone.ok(204);
    let late = change(
        &shop,
        Method::PUT,
        LEAD,
        &lead("Eve"),
        (&IF_MATCH, &etag(&new)),
    )
    .await;
    late.error(412);
    let late = change(
        &shop,
        Method::DELETE,
        LEAD,
        &json!({}),
        (&IF_MATCH, &etag(&new)),
    )
    .await;
    late.error(404);
    for (header, value) in [(&IF_MATCH, "3"), (&IF_MATCH, ""), (&IF_NONE_MATCH, "\"3\"")] {
        let wrong = change(&shop, Method::PUT, LEAD, &lead("Eve"), (header, value)).await;
        let name = if header == IF_MATCH {
            "If-Match: "
        } else {
            "If-None-Match: "
        };
        assert!(wrong.error(400).starts_with(name), "{}", wrong.text());
    }
}

#[tokio::test]
async fn of_many_who_have_seen_the_same_one_is_let_through() {
    let shop = organization().await;
    let made = shop.put(LEAD, &lead("Ada")).await;
    let (shop, seen) = (&shop, &etag(&made));
    let changes = (0..8).map(|nth| async move {
        let lead = lead(&format!("Editor {nth}"));
        let answer = change(shop, Method::PUT, LEAD, &lead, (&IF_MATCH, seen)).await;
        answer.status.as_u16()
    });
    let mut statuses = join_all(changes).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
}

#[tokio::test]
async fn of_two_editors_of_a_workflow_the_slower_one_is_refused() {
    let shop = organization().await;
    let path = "/api/v1/workflows/shared";
    let first = change(
        &shop,
        Method::PUT,
        path,
        &only_begins(),
        (&IF_NONE_MATCH, "*"),
    )
    .await;
    first.ok(200);
    assert_eq!(etag(&first), "\"1\"");
    let seen = read(&shop, path, &first.position()).await;
    assert_eq!(etag(&seen), "\"1\"");
    let named = |name: &str| {
        let mut definition = only_begins();
        definition["name"] = name.into();
        definition
    };
    let quicker = change(
        &shop,
        Method::PUT,
        path,
        &named("Quick"),
        (&IF_MATCH, "\"1\""),
    )
    .await;
    assert_eq!(quicker.ok(200)["version"], 2);
    assert_eq!(etag(&quicker), "\"2\"");
    let slower = change(
        &shop,
        Method::PUT,
        path,
        &named("Slow"),
        (&IF_MATCH, "\"1\""),
    )
    .await;
    assert!(slower.error(412).starts_with("If-Match: "));
    let taken = change(
        &shop,
        Method::PUT,
        path,
        &named("New"),
        (&IF_NONE_MATCH, "*"),
    )
    .await;
    taken.error(412);
    let now = read(&shop, path, &quicker.position()).await;
    assert_eq!(now.ok(200)["name"], "Quick");
}

#[tokio::test]
async fn the_pages_send_what_they_show() {
    let owner = Owner::sign_in(system().await).await;
    let path = format!("/dashboard{LEAD}");
    let made = owner.send(Method::PUT, &path, Some(&lead("Ada"))).await;
    made.ok(201);
    let page = format!("/dashboard/leads/ada?position={}", made.position());
    let page = owner.page(&page).await.text();
    let shown = page.split("data-etag=\"").nth(1).unwrap();
    let shown = shown.split("\" ").next().unwrap().replace("&quot;", "\"");
    assert_eq!(shown, etag(&made));
    owner
        .send(Method::PUT, &path, Some(&lead("Grace")))
        .await
        .ok(200);
    let request = owner.client.request(Method::PUT, &path);
    let request = request
        .header(COOKIE, &owner.cookie)
        .header(ORIGIN, owner.client.base())
        .header(CONTENT_TYPE, "application/json")
        .header(IF_MATCH, shown);
    let slower = request.body(lead("Eve").to_string());
    Answer::to(slower).await.error(412);

    let path = "/dashboard/api/v1/workflows/w";
    let saved = owner.send(Method::PUT, path, Some(&only_begins())).await;
    let page = format!("/dashboard/workflows/w?position={}", saved.position());
    let page = owner.page(&page).await.text();
    assert!(page.contains("data-etag=\"&quot;1&quot;\""), "{page}");
}
