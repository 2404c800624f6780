//! Joining: by a link that works once, for the holder of the address.

use harness::{PASSWORD, Person, Shape, System, eventually};
use serde_json::json;

use super::{
    ACCEPT, Browser, LOOK, PEOPLE, code_of, emails, invited_by_operator, new_email, owned,
};
use crate::{SHAPE, system};

#[tokio::test]
async fn registering_an_owners_address_beforehand_gains_nothing() {
    let system = system().await;
    let stranger = system.person("Stranger").await;
    let create = [
        "org",
        "create",
        "--name",
        "Corp",
        "--owner",
        &stranger.email,
    ];
    let made = system.waypost(&create).await;
    assert_eq!(made.get("ownerPassword"), None, "{made}");
    let org = made["orgId"].as_str().unwrap();
    let code = code_of(made["ownerInvite"].as_str().unwrap());
    assert!(emails(system, org, "people").await.is_empty());

    let mut browser = Browser::new(system);
    let signed_in = browser.tries_to_sign_in(&stranger.email, PASSWORD).await;
    signed_in.error(403);
    browser.cookie = format!("waypost_session={}", stranger.token);
    assert_eq!(browser.page("/dashboard").await.status, 403);
    let terms = json!({"name": "x", "scopes": ["admin"]});
    browser.post("/dashboard/keys", &terms).await.error(403);
    // The link alone opens nothing either: it never takes over an account.
    let nobody = Browser::new(system);
    let shown = nobody.post(LOOK, &json!({"code": code})).await.ok(200);
    assert_eq!(
        (&shown["account"], &shown["signedIn"]),
        (&json!(true), &json!(false))
    );
    let taken = json!({"code": code, "name": "Boss", "password": "a new password"});
    nobody.post(ACCEPT, &taken).await.error(401);
    nobody.post(ACCEPT, &json!({"code": code})).await.error(409);
    assert!(emails(system, org, "people").await.is_empty());
}

#[tokio::test]
async fn an_owner_with_an_account_comes_in_by_link_and_password() {
    let system = system().await;
    let ada = system.person("Ada").await;
    let public = ["--public-url", "https://waypost.example/"];
    let create = ["org", "create", "--name", "Corp <1>", "--owner", &ada.email];
    let made = system.waypost(&[&create[..], &public].concat()).await;
    let link = made["ownerInvite"].as_str().unwrap();
    assert!(
        link.starts_with("https://waypost.example/dashboard/invite#"),
        "{link}"
    );
    let (org, code) = (made["orgId"].as_str().unwrap(), code_of(link));
    assert_eq!(
        emails(system, org, "invites").await,
        std::slice::from_ref(&ada.email)
    );

    let mut browser = Browser::new(system);
    let page = browser.page("/dashboard/invite").await;
    assert_eq!(page.status, 200);
    assert!(!page.text().contains(&code));
    let shown = browser.post(LOOK, &json!({"code": code})).await.ok(200);
    assert_eq!(shown["organization"], "Corp <1>");
    assert_eq!(shown["email"], ada.email.as_str());
    let right = json!({"code": code, "password": PASSWORD});
    browser.post(ACCEPT, &right).await.ok(204);
    browser.signs_in(&ada.email, PASSWORD).await;
    assert_eq!(emails(system, org, "people").await, [ada.email]);
    assert!(emails(system, org, "invites").await.is_empty());
    // Once.
    browser.post(LOOK, &json!({"code": code})).await.error(404);
    browser.post(ACCEPT, &right).await.error(404);
}

#[tokio::test]
async fn an_operators_link_leads_to_the_running_system() {
    let system = system().await;
    let (org, email) = (system.organization().await, new_email());
    let begins = async |given: &[&str], address: &str| {
        let invite = ["org", "invite", "--org", &org.id, &email];
        let made = system.waypost(&[&invite[..], given].concat()).await;
        let link = made["link"].as_str().unwrap();
        let start = format!("http://{address}/dashboard/invite#");
        assert!(link.starts_with(&start), "{link}");
    };
    let running = match SHAPE {
        Shape::One => system.addr().to_string(),
        // None of these processes knows the address of the proxy before them.
        Shape::Four => "127.0.0.1:8080".to_owned(),
    };
    begins(&[], &running).await;
    begins(&["--addr", "127.0.0.1:9191"], "127.0.0.1:9191").await;
}

#[tokio::test]
async fn an_invited_person_without_an_account_opens_one_with_their_own_password() {
    let system = system().await;
    let (org, owner_email, owner) = owned(system).await;
    let email = new_email();
    let code = owner.invites(&email).await;
    let page = owner.page(PEOPLE).await;
    assert!(page.text().contains(&owner_email) && page.text().contains(&email));
    assert!(!page.text().contains(&code));

    let mut browser = Browser::new(system);
    let shown = browser.post(LOOK, &json!({"code": code})).await.ok(200);
    assert_eq!(
        (&shown["account"], &shown["email"]),
        (&json!(false), &json!(email))
    );
    for (wrong, field) in [
        (json!({"code": code}), "name"),
        (
            json!({"code": code, "name": "Bea", "password": "short"}),
            "password",
        ),
        (
            json!({"code": code, "name": "", "password": "long enough"}),
            "name",
        ),
    ] {
        let refused = browser.post(ACCEPT, &wrong).await.error(400);
        assert!(refused.contains(field), "{refused}");
    }
    let right = json!({"code": code, "name": "Bea", "password": "long enough"});
    browser.post(ACCEPT, &right).await.ok(204);
    browser.signs_in(&email, "long enough").await;
    assert_eq!(
        emails(system, &org, "people").await,
        [owner_email, email.clone()]
    );
    let all = system.waypost(&["org", "people", "--org", &org]).await;
    let bea = &all["people"][1];
    assert_eq!(
        (&bea["name"], &bea["role"]),
        (&json!("Bea"), &json!("OWNER"))
    );
    assert!(bea["accountId"].is_u64() && bea["joinedAt"].is_string());
    let again = owner.post(PEOPLE, &json!({"email": email})).await;
    assert!(again.error(409).contains("already"));
}

#[tokio::test]
async fn registering_while_an_invite_is_accepted_joins_nothing_unasked() {
    let system = system().await;
    let (org, _, owner) = owned(system).await;
    for _ in 0..8 {
        let email = new_email();
        let code = owner.invites(&email).await;
        let (browser, client) = (Browser::new(system), system.client());
        let theirs = json!({"name": "Bea", "email": email, "password": "their own password"});
        let other = json!({"code": code, "name": "Eve", "password": "another password"});
        let (registered, accepted) = tokio::join!(
            client.post("/auth/register", &theirs),
            browser.post(ACCEPT, &other)
        );
        // One of them is first; the other one finds the address taken and has no effect.
        let (registered, accepted) = (registered.status.as_u16(), accepted.status.as_u16());
        let joined = match (registered, accepted) {
            (201, 401 | 409) => false,
            (409, 204) => true,
            both => panic!("{both:?}"),
        };
        eventually("the people to be told right", async || {
            let people = emails(system, &org, "people").await;
            (people.contains(&email) == joined).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_link_is_for_its_address_alone() {
    let system = system().await;
    let (org, _, owner) = owned(system).await;
    let (ada, eve) = (system.person("Ada").await, system.person("Eve").await);
    let code = owner.invites(&ada.email).await;
    let signed_in_as = |person: &Person| Browser {
        cookie: format!("waypost_session={}", person.token),
        ..Browser::new(system)
    };
    let as_eve = signed_in_as(&eve);
    let shown = as_eve.post(LOOK, &json!({"code": code})).await.ok(200);
    assert_eq!(shown["signedIn"], false);
    as_eve.post(ACCEPT, &json!({"code": code})).await.error(409);
    let with_own_password = json!({"code": code, "password": "Eve's own password"});
    as_eve.post(ACCEPT, &with_own_password).await.error(401);
    // The owner's own session does not count.
    owner.post(ACCEPT, &json!({"code": code})).await.error(409);
    // A session of the account with the address needs no password.
    let as_ada = signed_in_as(&ada);
    let shown = as_ada.post(LOOK, &json!({"code": code})).await.ok(200);
    assert_eq!(shown["signedIn"], true);
    as_ada.post(ACCEPT, &json!({"code": code})).await.ok(204);
    assert!(emails(system, &org, "people").await.contains(&ada.email));
    assert!(!emails(system, &org, "people").await.contains(&eve.email));
}

#[tokio::test]
async fn links_end_by_another_by_being_taken_back_and_by_themselves() {
    let system = system().await;
    let (org, _, owner) = owned(system).await;
    let email = new_email();
    let first = owner.invites(&email).await;
    let second = invited_by_operator(system, &org, &email).await;
    let nobody = Browser::new(system);
    let look = async |code: &str| nobody.post(LOOK, &json!({"code": code})).await;
    look(&first).await.error(404);
    look(&second).await.ok(200);
    assert_eq!(
        emails(system, &org, "invites").await,
        std::slice::from_ref(&email)
    );
    let all = system.waypost(&["org", "people", "--org", &org]).await;
    let id = all["invites"][0]["inviteId"].as_str().unwrap();
    let back = format!("{PEOPLE}/invites/{id}");
    owner.delete(&back).await.ok(204);
    owner.delete(&back).await.error(404);
    look(&second).await.error(404);
    let third = owner.invites(&email).await;
    let removed = system
        .waypost(&["org", "remove", "--org", &org, &email])
        .await;
    assert_eq!(removed, json!({"removed": email}));
    look(&third).await.error(404);
    let guess = "x".repeat(43);
    look(&guess).await.error(404);
    look("").await.error(404);

    let short = [("WAYPOST_PEOPLE_INVITE_SECONDS", "0.2")];
    let system = System::start(SHAPE, &short).await;
    let (_, _, owner) = owned(&system).await;
    let code = owner.invites(&email).await;
    eventually("the link to end", async || {
        let code = json!({"code": code});
        let looked = owner.post(LOOK, &code).await.status;
        (looked == 410 && owner.post(ACCEPT, &code).await.status == 410).then_some(())
    })
    .await;
    assert!(!owner.page(PEOPLE).await.text().contains(&email));
}

#[tokio::test]
async fn guessing_codes_is_slowed() {
    let few = [("WAYPOST_SIGN_IN_PER_ADDRESS", "3")];
    let system = System::start(SHAPE, &few).await;
    let nobody = Browser::new(&system);
    let guess = async |path: &str| {
        let code = uuid::Uuid::new_v4().simple().to_string();
        let guess = json!({"code": code, "name": "Eve", "password": "long enough"});
        nobody.post(path, &guess).await
    };
    for path in [LOOK, ACCEPT, LOOK] {
        guess(path).await.error(404);
    }
    let refused = guess(ACCEPT).await;
    refused.error(429);
    assert!(refused.header("retry-after").is_some());
}

#[tokio::test]
async fn an_organization_has_so_many_people_and_invites() {
    let few = [("WAYPOST_PEOPLE_PER_ORGANIZATION", "2")];
    let system = System::start(SHAPE, &few).await;
    let (_, _, owner) = owned(&system).await;
    let email = new_email();
    owner.invites(&email).await;
    let body = json!({"email": new_email()});
    let refused = owner.post(PEOPLE, &body).await.error(409);
    assert!(refused.contains("remove some"), "{refused}");
    owner.invites(&email).await;
    let mut all = String::new();
    for (_, client) in system.clients() {
        all.push_str(&client.get("/metrics").await.text());
    }
    assert!(all.contains("waypost_people_refused_total 1"), "{all}");
}
