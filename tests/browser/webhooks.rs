//! Webhooks: an endpoint, a test that fails, and its replay.

use harness::{Owner, Receiver};

use crate::driver::{Page, browse};
use crate::sound::is_sound;
use crate::system;

/// Reloads the page until it has this element.
async fn reload_until(page: &Page, selector: &str) {
    let path = page.path().await;
    let is_there = format!("document.querySelector('{selector}') !== null");
    page.wait(selector, async || {
        page.go(&path).await;
        (page.run(&is_there).await == true).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_delivery_that_failed_is_replayed_once_the_endpoint_answers() {
    browse(async |browser| {
        let owner = Owner::sign_in(system().await).await;
        let receiver = Receiver::start().await;
        receiver.status(503);
        let page = browser.page().await;
        page.is_of(&owner).await;
        page.go("/dashboard/webhooks").await;
        page.button("New endpoint").click().await;
        page.field("Address").write(&receiver.url("/hooks")).await;
        is_sound(&page).await;
        page.button("Create endpoint").click().await;
        let secret = page.at("#secret-made[open] #secret-text").text().await;
        assert!(secret.starts_with("whsec_"), "{secret}");
        page.button("Done").follow().await;
        page.sees("No deliveries yet").await;
        page.button("Send a test").follow().await;
        reload_until(&page, ".card .badge.failed").await;
        is_sound(&page).await;
        let failed = receiver.received().len();
        receiver.status(200);
        page.button("Replay webhook.test").follow().await;
        let received = receiver.wait_for(failed + 1, |_| true).await;
        let (first, last) = (&received[0], received.last().unwrap());
        assert_eq!(first.header("webhook-id"), last.header("webhook-id"));
        assert_eq!(first.body, last.body);
        reload_until(&page, ".card .badge.succeeded").await;
    })
    .await;
}
