//! Editors: of two who change the same thing the slower one is informed, and no input is lost.

use harness::Owner;
use serde_json::json;

use crate::demo::key_of;
use crate::driver::browse;
use crate::sound::is_sound;
use crate::system;

#[tokio::test]
async fn the_slower_of_two_editors_of_a_record_sees_that_it_was_changed() {
    browse(async |browser| {
        let owner = Owner::sign_in(system().await).await;
        let admin = key_of(&owner, &["admin"]).await;
        // Any input is shown as it was typed.
        let name = "<img src=x onerror=alert(1)> & \"Söhne\" </script>";
        let ada = json!({"id": "ada", "firstName": name, "email": "ada@example.org"});
        let contacts = "/api/v1/records/contacts";
        admin.post(contacts, &ada).await.ok(201);
        let (quick, slow) = (browser.page().await, browser.page().await);
        for page in [&quick, &slow] {
            page.is_of(&owner).await;
            page.wait("the contact", async || {
                page.go("/dashboard/contacts").await;
                page.text().await.contains(name).then_some(())
            })
            .await;
            page.link(name).follow().await;
            page.summary("Edit").click().await;
        }
        assert_eq!(quick.field("First name").text().await, name);
        quick.field("City").write("Arlington").await;
        quick.button("Save").follow().await;
        quick.sees("Arlington").await;
        slow.may_say("412");
        slow.field("City").write("Boston").await;
        slow.button("Save").click().await;
        slow.sees("Somebody else has changed this record").await;
        assert_eq!(slow.field("City").text().await, "Boston");
        is_sound(&slow).await;
        slow.button("Delete").click().await;
        slow.at("#delete-now").click().await;
        let told = slow.at("#record-delete .fault:not([hidden])").text().await;
        assert!(told.contains("Somebody else has changed"), "{told}");
        let path = slow.path().await;
        slow.go(&path).await;
        slow.sees("Arlington").await;
        slow.sees_no("Boston").await;
    })
    .await;
}

#[tokio::test]
async fn the_slower_of_two_editors_of_a_workflow_sees_that_it_was_changed() {
    browse(async |browser| {
        let owner = Owner::sign_in(system().await).await;
        let admin = key_of(&owner, &["admin"]).await;
        let named = |name: &str| {
            json!({"name": name, "status": "DRAFT", "steps": [
                {"id": "start", "type": "TRIGGER", "next": ["tell"]},
                {"id": "tell", "type": "NOTIFY", "event": "told"},
            ]})
        };
        let path = "/api/v1/workflows/greet";
        admin.put(path, &named("<b>First</b>")).await.ok(200);
        let page = browser.page().await;
        page.is_of(&owner).await;
        page.wait("the workflow", async || {
            page.go("/dashboard/workflows").await;
            page.text().await.contains("<b>First</b>").then_some(())
        })
        .await;
        page.link("<b>First</b>").follow().await;
        admin.put(path, &named("Second")).await.ok(200);
        page.may_say("412");
        let mine = named("Third").to_string();
        page.at("#document").write(&mine).await;
        page.button("Save as a new version").click().await;
        page.sees("Somebody else has saved a version").await;
        assert_eq!(page.at("#document").text().await, mine);
        is_sound(&page).await;
        let standing = admin.get(path).await.ok(200);
        assert_eq!(standing["name"], "Second");
    })
    .await;
}
