//! Ending a membership: removal, leaving, being forgotten; and who may remove whom.

use std::time::Duration;

use harness::{Answer, PASSWORD, eventually_within};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::json;

use super::{ACCEPT, Browser, LOOK, PEOPLE, emails, new_email, owned};
use crate::system;

const A_SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_removed_person_is_out_everywhere_within_a_second() {
    let system = system().await;
    let (org, _, owner) = owned(system).await;
    let ada = system.person("Ada").await;
    let code = owner.invites(&ada.email).await;
    let mut as_ada = Browser::new(system);
    let accepted = json!({"code": code, "password": PASSWORD});
    as_ada.post(ACCEPT, &accepted).await.ok(204);
    as_ada.signs_in(&ada.email, PASSWORD).await;
    let remove = format!("{PEOPLE}/{}", ada.id);
    owner.delete(&remove).await.ok(204);
    eventually_within(A_SECOND, "the session to end", async || {
        let terms = json!({"name": "x", "scopes": ["admin"]});
        let command = as_ada.post("/dashboard/keys", &terms).await.status;
        let page = as_ada.page("/dashboard").await.status;
        (command == 403 && page == 403).then_some(())
    })
    .await;
    as_ada
        .tries_to_sign_in(&ada.email, PASSWORD)
        .await
        .error(403);
    owner.delete(&remove).await.error(404);
    assert!(!emails(system, &org, "people").await.contains(&ada.email));
}

#[tokio::test]
async fn the_last_owner_neither_leaves_nor_is_removed() {
    let system = system().await;
    let (org, owner_email, owner) = owned(system).await;
    let all = system.waypost(&["org", "people", "--org", &org]).await;
    let own = all["people"][0]["accountId"].as_u64().unwrap();
    let refused = owner.delete(&format!("{PEOPLE}/{own}")).await.error(409);
    assert!(refused.contains("last owner"), "{refused}");
    let remove = ["org", "remove", "--org", &org, &owner_email];
    let output = system.waypost_output(&remove, b"").await;
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("last owner"));

    // Of two who remove each other at once, one stays.
    let ada = system.person("Ada").await;
    let code = owner.invites(&ada.email).await;
    let mut as_ada = Browser::new(system);
    let accepted = json!({"code": code, "password": PASSWORD});
    as_ada.post(ACCEPT, &accepted).await.ok(204);
    as_ada.signs_in(&ada.email, PASSWORD).await;
    let (path_of_ada, path_of_owner) = (format!("{PEOPLE}/{}", ada.id), format!("{PEOPLE}/{own}"));
    let (one, other) = tokio::join!(owner.delete(&path_of_ada), as_ada.delete(&path_of_owner));
    let removed = [one.status, other.status];
    assert_eq!(
        removed.iter().filter(|status| **status == 204).count(),
        1,
        "{removed:?}"
    );
    assert_eq!(emails(system, &org, "people").await.len(), 1);
}

#[tokio::test]
async fn one_of_several_owners_leaves() {
    let system = system().await;
    let (org, _, owner) = owned(system).await;
    let ada = system.person("Ada").await;
    let code = owner.invites(&ada.email).await;
    let mut as_ada = Browser::new(system);
    let accepted = json!({"code": code, "password": PASSWORD});
    as_ada.post(ACCEPT, &accepted).await.ok(204);
    as_ada.signs_in(&ada.email, PASSWORD).await;
    as_ada.delete(&format!("{PEOPLE}/{}", ada.id)).await.ok(204);
    assert_eq!(emails(system, &org, "people").await.len(), 1);
    eventually_within(A_SECOND, "the session to end", async || {
        (as_ada.page(PEOPLE).await.status == 403).then_some(())
    })
    .await;
}

#[tokio::test]
async fn other_sites_and_other_organizations_change_nothing() {
    let system = system().await;
    let (org, _, owner) = owned(system).await;
    let (_, _, other) = owned(system).await;
    let email = new_email();
    let code = owner.invites(&email).await;
    let all = system.waypost(&["org", "people", "--org", &org]).await;
    let id = all["invites"][0]["inviteId"].as_str().unwrap().to_owned();
    let own = all["people"][0]["accountId"].as_u64().unwrap();
    let (person, invite) = (format!("{PEOPLE}/{own}"), format!("{PEOPLE}/invites/{id}"));
    for (method, path) in [
        (Method::POST, PEOPLE),
        (Method::POST, LOOK),
        (Method::POST, ACCEPT),
        (Method::DELETE, person.as_str()),
        (Method::DELETE, invite.as_str()),
    ] {
        for origin in [Some("https://evil.example"), Some("null"), None] {
            let request = owner.client.request(method.clone(), path);
            let request = request
                .header(COOKIE, &owner.cookie)
                .header(CONTENT_TYPE, "application/json")
                .body(json!({"email": email, "code": code}).to_string());
            let request = match origin {
                Some(origin) => request.header(ORIGIN, origin),
                None => request,
            };
            Answer::to(request).await.error(403);
        }
    }
    other.delete(&person).await.error(404);
    other.delete(&invite).await.error(404);
    assert!(!other.page(PEOPLE).await.text().contains(&email));
    let nobody = Browser::new(system);
    nobody
        .post(PEOPLE, &json!({"email": email}))
        .await
        .error(401);
    nobody.delete(&person).await.error(401);
    nobody.post(LOOK, &json!({"code": code})).await.ok(200);
}

#[tokio::test]
async fn forgetting_a_person_takes_them_out_of_organizations_and_invites() {
    let system = system().await;
    let (org, _, owner) = owned(system).await;
    let (ada, bob) = (system.person("Ada").await, system.person("Bob").await);
    let code = owner.invites(&ada.email).await;
    let accepted = json!({"code": code, "password": PASSWORD});
    owner.post(ACCEPT, &accepted).await.ok(204);
    let of_bob = owner.invites(&bob.email).await;
    let nobody = new_email();
    let of_nobody = owner.invites(&nobody).await;
    for email in [&ada.email, &bob.email, &nobody] {
        let forgotten = system.waypost(&["forget", email]).await;
        assert!(!forgotten["forgotten"].is_null(), "{forgotten}");
        let again = system.waypost_output(&["forget", &new_email()], b"").await;
        assert!(!again.status.success());
    }
    assert_eq!(emails(system, &org, "people").await.len(), 1);
    assert!(emails(system, &org, "invites").await.is_empty());
    for code in [of_bob, of_nobody] {
        owner.post(LOOK, &json!({"code": code})).await.error(404);
    }
    // The address is free again, and can be invited.
    owner.invites(&bob.email).await;
    assert_eq!(emails(system, &org, "invites").await, [bob.email]);
}

#[tokio::test]
async fn the_pages_of_people_are_for_owners_and_take_nothing_from_elsewhere() {
    let system = system().await;
    let (_, email, owner) = owned(system).await;
    let nobody = Browser::new(system);
    assert_eq!(nobody.page(PEOPLE).await.status, 303);
    for page in [
        owner.page(PEOPLE).await,
        nobody.page("/dashboard/invite").await,
    ] {
        assert_eq!(page.status, 200);
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(!page.text().contains("<script>") && !page.text().contains("onclick"));
    }
    assert!(owner.page(PEOPLE).await.text().contains(&email));
}
