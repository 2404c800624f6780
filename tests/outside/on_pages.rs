//! The key APIs under `/dashboard`: a person on the pages may do what a key may do.

use harness::{Answer, Socket, eventually};
use reqwest::Method;
use reqwest::header::{COOKIE, ORIGIN};
use serde_json::{Value, json};

use super::dashboard::Owner;
use super::only_begins;
use crate::system;

const CONTACT: &str = "/dashboard/api/v1/records/contacts/ada";

async fn put_contact(owner: &Owner) -> Answer {
    let contact = json!({"email": "ada@example.org", "firstName": "Ada"});
    let put = owner.send(Method::PUT, CONTACT, Some(&contact)).await;
    put.ok(201);
    put
}

/// A read at the position of an earlier command.
async fn read_after(owner: &Owner, path: &str, done: &Answer) -> Answer {
    let request = owner.client.request(Method::GET, path);
    let request = request
        .header(COOKIE, &owner.cookie)
        .header("waypost-min-position", done.position());
    Answer::to(request).await
}

#[tokio::test]
async fn what_a_key_may_do_a_person_does_on_the_pages() {
    let owner = Owner::sign_in(system().await).await;
    let put = put_contact(&owner).await;
    let read = read_after(&owner, CONTACT, &put).await;
    assert_eq!(read.ok(200)["email"], "ada@example.org");
    let csv = "/dashboard/api/export/contacts?format=csv";
    let csv = read_after(&owner, csv, &put).await.text();
    assert!(csv.contains("ada@example.org"), "{csv}");
    let workflow = "/dashboard/api/v1/workflows/hello";
    let saved = owner
        .send(Method::PUT, workflow, Some(&only_begins()))
        .await;
    saved.ok(200);
    let run = format!("{workflow}/trigger");
    let run = owner.send(Method::POST, &run, Some(&json!({}))).await;
    run.ok(202);
    let events = read_after(&owner, "/dashboard/api/v1/events?limit=50", &run).await;
    let events = events.text();
    for kind in ["contact.created", "workflow.saved", "workflow.triggered"] {
        assert!(events.contains(kind), "{kind} in {events}");
    }
    let wrong = owner
        .send(Method::PUT, CONTACT, Some(&json!({"email": 7})))
        .await;
    assert!(wrong.error(400).contains("email"));
    let nowhere = owner
        .send(Method::POST, "/dashboard/api/v1/nothing", None)
        .await;
    nowhere.error(404);
    owner.send(Method::POST, CONTACT, None).await.error(405);
}

#[tokio::test]
async fn only_our_own_pages_and_only_the_organizations_people_use_it() {
    let system = system().await;
    let (owner, other) = (Owner::sign_in(system).await, Owner::sign_in(system).await);
    let put = put_contact(&owner).await;
    read_after(&other, CONTACT, &put).await.error(404);
    let contact = json!({"email": "eve@example.org"}).to_string();
    for origin in [None, Some("https://evil.example"), Some("null")] {
        let mut request = owner.client.request(Method::PUT, CONTACT);
        request = request
            .header(COOKIE, &owner.cookie)
            .header("content-type", "application/json")
            .body(contact.clone());
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        Answer::to(request).await.error(403);
    }
    // A key is not accepted here, nor a session where keys are.
    let key = owner.key(&json!({"name": "k", "scopes": ["admin"]})).await;
    let by_key = system.client().with_key(key["key"].as_str().unwrap());
    by_key.get(CONTACT).await.error(401);
    let outside = CONTACT.strip_prefix("/dashboard").unwrap();
    read_after(&owner, outside, &put).await.error(401);
    // Keys cannot be created with this path.
    let keys = "/dashboard/api/v1/keys";
    let made = json!({"name": "k", "scopes": ["admin"]});
    let made = owner.send(Method::POST, keys, Some(&made)).await;
    assert!(made.status == 404 || made.status == 405, "{}", made.status);
    owner.send(Method::POST, "/dashboard/sign-out", None).await;
    eventually("the session to end everywhere", async || {
        let read = read_after(&owner, CONTACT, &put).await;
        (read.status == 401).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_page_follows_its_organization_over_a_socket_until_the_session_ends() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let own = owner.client.base().to_owned();
    let connect = async |origin: &str| {
        let headers = [("cookie", owner.cookie.as_str()), ("origin", origin)];
        Socket::with_headers(system, "/dashboard/ws", &headers).await
    };
    for origin in ["https://evil.example", "null"] {
        assert!(connect(origin).await.is_err(), "{origin}");
    }
    let (mut socket, _) = connect(&own).await.unwrap();
    assert_eq!(socket.next().await, json!({"type": "ready"}));
    socket.subscribe("s", "events", None).await;
    put_contact(&owner).await;
    let event = socket.next().await;
    assert_eq!(event["event"]["type"], "contact.created", "{event}");
    owner.send(Method::POST, "/dashboard/sign-out", None).await;
    let closed = socket.close_code().await;
    assert!(closed >= 3_500, "{closed}");
}

#[tokio::test]
async fn a_feed_ends_with_the_session() {
    let owner = Owner::sign_in(system().await).await;
    put_contact(&owner).await;
    let feed = owner
        .client
        .request(Method::GET, "/dashboard/api/v1/events");
    let feed = feed
        .header(COOKIE, &owner.cookie)
        .header("accept", "text/event-stream");
    let mut feed = feed.send().await.unwrap();
    assert_eq!(feed.status(), 200);
    let reading = async { while let Ok(Some(_)) = feed.chunk().await {} };
    let (signed_out, ()) = tokio::join!(
        owner.send(Method::POST, "/dashboard/sign-out", None),
        reading
    );
    assert_eq!(signed_out.status, 204);
}

#[tokio::test]
async fn limits_of_the_pages_are_stated_like_those_of_keys() {
    let owner = Owner::sign_in(system().await).await;
    let answer = owner.page("/dashboard/api/v1/workflows").await;
    let list: Value = answer.ok(200);
    assert_eq!(list["data"], json!([]));
    assert!(answer.header("ratelimit").is_some());
}
