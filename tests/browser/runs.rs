//! Workflows and runs: started by hand, watched as they go, cancelled and retried together.

use harness::{Client, Owner};
use serde_json::{Value, json};

use crate::demo::key_of;
use crate::driver::{Page, browse, eventually};
use crate::sound::is_sound;
use crate::system;

/// Waits for a contact, then sends a notification about it.
fn waiting() -> Value {
    json!({"name": "Wait for a customer", "status": "ACTIVE", "steps": [
        {"id": "start", "type": "TRIGGER", "next": ["reply"]},
        {"id": "reply", "type": "WAIT_FOR_EVENT", "event": "contact.created",
         "match": "data.email == trigger.email", "timeoutSeconds": 3600, "next": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "customer_came"},
    ]})
}

async fn saved(owner: &Owner) -> Client {
    let admin = key_of(owner, &["admin"]).await;
    let path = "/api/v1/workflows/wait-for-a-customer";
    admin.put(path, &waiting()).await.ok(200);
    admin
}

async fn step_is(page: &Page, step: &str, state: &str) {
    let node = format!("[data-live=\"node-{step}\"].{state}");
    page.at(&node).is_there().await;
}

#[tokio::test]
async fn a_run_that_is_started_by_hand_is_watched_on_its_graph() {
    browse(async |browser| {
        let owner = Owner::sign_in(system().await).await;
        let admin = saved(&owner).await;
        let page = browser.page().await;
        page.is_of(&owner).await;
        page.go("/dashboard/workflows").await;
        page.link("Wait for a customer").follow().await;
        page.button("Run now").click().await;
        is_sound(&page).await;
        page.field("Payload")
            .write(r#"{"email": "ada@example.org"}"#)
            .await;
        page.button("Run now").follow().await;
        page.sees("Live: this page follows the run").await;
        step_is(&page, "reply", "waiting").await;
        page.run("window.notLoadedAgain = true").await;
        let contact = json!({"email": "ada@example.org", "firstName": "Ada"});
        admin
            .post("/api/v1/records/contacts", &contact)
            .await
            .ok(201);
        step_is(&page, "reply", "succeeded").await;
        step_is(&page, "tell", "succeeded").await;
        page.at("h1 .badge.succeeded").is_there().await;
        assert_eq!(page.run("window.notLoadedAgain").await, true);
        page.summary("Output of reply").click().await;
        page.sees("\"firstName\": \"Ada\"").await;
        is_sound(&page).await;
    })
    .await;
}

#[tokio::test]
async fn all_runs_that_match_are_cancelled_and_retried_together() {
    browse(async |browser| {
        let owner = Owner::sign_in(system().await).await;
        let admin = saved(&owner).await;
        let run = "/api/v1/workflows/wait-for-a-customer/trigger";
        for number in 0..5 {
            let payload = json!({"email": format!("{number}@example.org")});
            admin.post(run, &payload).await.ok(202);
        }
        let state = async |state: &str, count: usize| {
            let what = format!("{count} runs {state}");
            eventually(&what, async || {
                let page = owner.page("/dashboard/runs").await.text();
                let badge = format!("<span class=\"badge {state}\">");
                (page.matches(&badge).count() == count).then_some(())
            })
            .await;
        };
        state("waiting", 5).await;
        let page = browser.page().await;
        page.is_of(&owner).await;
        page.go("/dashboard/runs").await;
        page.field("State").choose("waiting").await;
        page.button("Show").follow().await;
        page.button("Cancel all that match").click().await;
        page.sees("Cancel 5 runs?").await;
        is_sound(&page).await;
        page.button("Cancel 5 runs").click().await;
        page.sees("5 of 5 cancelled. Done.").await;
        page.button("Close").follow().await;
        page.sees("No run matches").await;
        state("cancelled", 5).await;
        page.go("/dashboard/runs?state=CANCELLED").await;
        page.button("Retry all that match").click().await;
        page.button("Retry 5 runs").click().await;
        page.sees("5 of 5 retried. Done.").await;
        state("waiting", 5).await;
    })
    .await;
}
