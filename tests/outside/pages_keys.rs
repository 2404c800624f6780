//! The page of API keys: how much each has used of its limit.

use harness::{Client, Owner, eventually};
use serde_json::json;

use crate::system;

/// Sends requests until `left` of the key's ten are left.
async fn use_until(client: &Client, left: u32) {
    let left = format!("r={left};");
    eventually("the key to be used", async || {
        let answer = client.get("/api/v1/keys").await;
        let limit = answer.header("ratelimit").unwrap_or_default();
        limit.contains(&left).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_key_is_shown_with_its_use_of_the_window_and_of_the_day() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let terms = json!({"name": "shop", "scopes": ["keys:manage"], "rateLimit": 10});
    let made = owner.key(&terms).await;
    owner
        .key(&json!({"name": "idle", "scopes": ["keys:manage"], "rateLimit": 5000}))
        .await;
    let client = system.client().with_key(made["key"].as_str().unwrap());
    use_until(&client, 3).await;
    let page = eventually("the page to show it", async || {
        let page = owner.page("/dashboard/settings/api-manager").await.text();
        page.contains(">7 of 10<").then_some(page)
    })
    .await;
    for word in [
        "Last hour",
        "Last 24 hours",
        ">7 of 240<",
        ">0 of 5,000<",
        ">0 of 120,000<",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
}
