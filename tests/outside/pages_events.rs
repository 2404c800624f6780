//! `/dashboard/events` and `/dashboard/webhooks`: what happened, what led to what, what was sent.

use harness::{Answer, eventually};
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::dashboard::Owner;
use super::{active, only_begins};
use crate::system;

/// A page's text as it is displayed.
fn read(page: &Answer) -> String {
    assert_eq!(page.status, 200, "{}", page.text());
    let text = page.text().replace("&#x2f;", "/");
    text.replace("&quot;", "\"").replace("&amp;", "&")
}

fn parsed(line: &str) -> Json {
    serde_json::from_str(line).unwrap()
}

async fn add_contact(owner: &Owner, id: &str) -> String {
    let path = format!("/dashboard/api/v1/records/contacts/{id}");
    let contact = json!({"email": format!("{id}@example.org"), "lastName": "<b>Ada</b>"});
    owner
        .send(Method::PUT, &path, Some(&contact))
        .await
        .position()
}

#[tokio::test]
async fn what_happened_is_shown_newest_first_and_filtered_by_type_and_subject() {
    let owner = Owner::sign_in(system().await).await;
    let first = add_contact(&owner, "first").await;
    add_contact(&owner, "second").await;
    let page = read(&owner.page("/dashboard/events").await);
    let (second, first_at) = (page.find("contact/second"), page.find("contact/first"));
    assert!(second.is_some() && second < first_at, "{page}");
    assert!(!page.contains("Nothing has happened") && !page.contains("<b>Ada"));
    let found = read(&owner.page("/dashboard/events?subject=contact/first").await);
    assert!(found.contains("contact/first") && !found.contains("contact/second"));
    let none = read(&owner.page("/dashboard/events?types=order.*").await);
    assert!(!none.contains("contact/first") && none.contains("Nothing of this kind"));
    let wrong = read(&owner.page("/dashboard/events?types=%3Cx%3E").await);
    assert!(
        wrong.contains("run.failed") && wrong.contains("aria-invalid"),
        "{wrong}"
    );
    let older = format!("/dashboard/events?before={first}");
    assert!(!read(&owner.page(&older).await).contains("contact/second"));
    let event = read(&owner.page(&format!("/dashboard/events/{first}")).await);
    assert!(
        event.contains("first@example.org") && event.contains("/api/v1/events"),
        "{event}"
    );
}

/// The path that an event's page shows for reading the feed from there.
fn replay_of(page: &str) -> String {
    let (_, shown) = page.split_once("id=\"replay\">").unwrap();
    let (command, _) = shown.split_once("</pre>").unwrap();
    let path = command.strip_prefix("curl -N \"$WAYPOST");
    let path = path.and_then(|rest| rest.strip_suffix("\" -H \"Authorization: Bearer $KEY\""));
    path.unwrap_or_else(|| panic!("{command}")).to_owned()
}

#[tokio::test]
async fn the_request_that_an_event_shows_replays_from_that_event_on() {
    let owner = Owner::sign_in(system().await).await;
    let mut positions = Vec::new();
    for id in ["before", "here", "after"] {
        positions.push(add_contact(&owner, id).await);
    }
    let page = read(
        &owner
            .page(&format!("/dashboard/events/{}", positions[1]))
            .await,
    );
    let path = replay_of(&page);
    let key = json!({"name": "replay", "scopes": ["events:read"]});
    let key = owner.key(&key).await;
    let client = owner.client.with_key(key["key"].as_str().unwrap());
    let answer = eventually("the key to be known", async || {
        let answer = client.get(&path).await;
        (answer.status == 200).then_some(answer)
    })
    .await;
    let events: Vec<Json> = answer.text().lines().map(parsed).collect();
    let subjects: Vec<_> = events.iter().map(|event| &event["subject"]).collect();
    assert_eq!(subjects[..2], ["contact/here", "contact/after"]);
    assert_eq!(events[0]["position"], positions[1].as_str());
    assert!(subjects.iter().all(|subject| *subject != "contact/before"));
}

#[tokio::test]
async fn an_event_shows_what_it_led_to_down_to_the_webhook() {
    let owner = Owner::sign_in(system().await).await;
    let hook = json!({"url": "http://127.0.0.1:1/hook", "events": ["custom.told"]});
    let hook = owner
        .send(Method::POST, "/dashboard/api/v1/webhooks", Some(&hook))
        .await;
    let hook = hook.ok(201)["id"].as_str().unwrap().to_owned();
    let workflow = active(&json!([
        {"id": "start", "type": "TRIGGER", "on": {"event": "contact.created"}, "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "told", "data": {"who": "{{ trigger.id }}"}},
    ]));
    let path = "/dashboard/api/v1/workflows/tells";
    owner.send(Method::PUT, path, Some(&workflow)).await.ok(200);
    let position = add_contact(&owner, "cause").await;
    let page = eventually("the delivery to be shown below its cause", async || {
        let page = read(&owner.page(&format!("/dashboard/events/{position}")).await);
        page.contains("http://127.0.0.1:1/hook").then_some(page)
    })
    .await;
    let at = |word: &str| page.rfind(word).unwrap_or_else(|| panic!("{word}: {page}"));
    let tree = page.find("class=\"tree\"").unwrap();
    assert!(tree < at("custom.told") && at("run.started") < at("custom.told"));
    assert!(page.contains("class=\"t1\"") && page.contains(&format!("/dashboard/webhooks/{hook}")));
}

#[tokio::test]
async fn nobody_sees_the_events_or_deliveries_of_another_organization() {
    let system = system().await;
    let (owner, other) = (Owner::sign_in(system).await, Owner::sign_in(system).await);
    let position = add_contact(&owner, "theirs").await;
    assert!(read(&owner.page("/dashboard/events").await).contains("contact/theirs"));
    assert!(!read(&other.page("/dashboard/events").await).contains("contact/theirs"));
    let path = format!("/dashboard/events/{position}");
    assert_eq!(owner.page(&path).await.status, 200);
    assert_eq!(other.page(&path).await.status, 404);
    assert_eq!(owner.page("/dashboard/events/nonsense").await.status, 404);
}

#[tokio::test]
async fn an_endpoint_is_created_tested_filtered_and_deleted_on_its_page() {
    let owner = Owner::sign_in(system().await).await;
    let empty = read(&owner.page("/dashboard/webhooks").await);
    assert!(empty.contains("No endpoints yet") && empty.contains("id=\"new-webhook\""));
    let hooks = "/dashboard/api/v1/webhooks";
    let hook = json!({"url": "http://127.0.0.1:1/hook", "events": ["lead.created"]});
    let made = owner.send(Method::POST, hooks, Some(&hook)).await;
    let id = made.ok(201)["id"].as_str().unwrap().to_owned();
    let secret = made.ok(201)["secret"].as_str().unwrap().to_owned();
    let path = format!("/dashboard/webhooks/{id}");
    let shown = read(
        &owner
            .page(&format!("{path}?position={}", made.position()))
            .await,
    );
    assert!(shown.contains("lead.created") && !shown.contains(&secret));
    for button in [
        "test-webhook",
        "edit-webhook",
        "switch-webhook",
        "rotate-webhook",
        "delete-webhook",
        "replay-failed",
    ] {
        assert!(shown.contains(&format!("id=\"{button}\"")), "{button}");
    }
    let test = owner
        .send(Method::POST, &format!("{hooks}/{id}/test"), None)
        .await;
    let delivery = test.ok(202)["deliveryId"].as_str().unwrap().to_owned();
    eventually(
        "the test to be pending, and not among what succeeded",
        async || {
            let pending = read(&owner.page(&format!("{path}?status=PENDING")).await);
            let succeeded = read(&owner.page(&format!("{path}?status=SUCCEEDED")).await);
            assert!(!succeeded.contains(&delivery));
            (pending.contains(&delivery) && pending.contains("webhook-id: ")).then_some(())
        },
    )
    .await;
    let failed = read(&owner.page(&format!("{path}?status=FAILED")).await);
    assert!(failed.contains("No delivery is failed"));
    assert_eq!(owner.page(&format!("{path}?status=x")).await.status, 400);
    let gone = owner
        .send(Method::DELETE, &format!("{hooks}/{id}"), None)
        .await;
    let after = format!("{path}?position={}", gone.position());
    assert_eq!(owner.page(&after).await.status, 404);
}

#[tokio::test]
async fn a_key_shows_what_it_has_used_of_its_limit() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let terms = json!({"name": "counted", "scopes": ["admin"], "rateLimit": 50});
    let key = owner.key(&terms).await;
    let client = system.client().with_key(key["key"].as_str().unwrap());
    eventually("the key to be known", async || {
        (client.get("/api/v1/keys").await.status == 200).then_some(())
    })
    .await;
    let saved = client.put("/api/v1/workflows/x", &only_begins()).await;
    saved.ok(200);
    eventually("its use to be shown", async || {
        let page = read(&owner.page("/dashboard/settings/api-manager").await);
        let used = |count: u32| page.contains(&format!("{count} of 50"));
        (2..50).any(used).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_system_page_shows_the_lag_and_that_there_are_no_dead_letters() {
    let owner = Owner::sign_in(system().await).await;
    let page = read(&owner.page("/dashboard/system").await);
    for word in ["Webhook deliveries", "None: everything was taken in."] {
        assert!(page.contains(word), "{word}");
    }
}
