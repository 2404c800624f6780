//! API keys: made on the page, used by a program, revoked.

use harness::Owner;

use crate::driver::{browse, eventually};
use crate::sound::is_sound;
use crate::system;

#[tokio::test]
async fn a_key_that_a_person_makes_works_until_they_revoke_it() {
    browse(async |browser| {
        let system = system().await;
        let owner = Owner::sign_in(system).await;
        let page = browser.page().await;
        page.is_of(&owner).await;
        page.go("/dashboard/settings/api-manager").await;
        page.button("New key").click().await;
        page.field("Name").write("Our web shop").await;
        page.field("events:read").click().await;
        page.field("Requests an hour").write("90").await;
        is_sound(&page).await;
        page.button("Create key").click().await;
        let key = page.at("#key-made[open] #key-text").text().await;
        assert!(key.starts_with("wp_"), "{key}");
        is_sound(&page).await;

        let client = system.client().with_key(&key);
        let used = eventually("the key to be known", async || {
            let answer = client.get("/api/v1/events?limit=1").await;
            (answer.status == 200).then_some(answer)
        });
        assert_eq!(
            used.await.header("ratelimit-policy"),
            Some("\"hourly\";q=90;w=3600")
        );
        client.get("/api/v1/keys").await.error(403);

        page.button("Done").follow().await;
        page.sees("Our web shop").await;
        page.sees("of 90").await;
        page.button("Revoke Our web shop").click().await;
        page.sees("It stops working within a second").await;
        page.at("#revoke-key").follow().await;
        page.sees("No keys yet").await;
        eventually("the key to work no more", async || {
            let answer = client.get("/api/v1/events?limit=1").await;
            (answer.status == 401).then_some(())
        })
        .await;
    })
    .await;
}
