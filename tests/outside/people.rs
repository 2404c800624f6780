//! An organization's people: invited by a link that works once, removed at once.

use std::time::Duration;

use harness::{Answer, Client, PASSWORD, Person, System, eventually, eventually_within};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::{Value, json};

use crate::{SHAPE, system};

const A_SECOND: Duration = Duration::from_secs(1);
const LOOK: &str = "/dashboard/invite/look";
const ACCEPT: &str = "/dashboard/invite/accept";
const PEOPLE: &str = "/dashboard/people";

/// Somebody's browser on the pages of the dashboard.
#[derive(Clone)]
struct Browser {
    client: Client,
    cookie: String,
}

impl Browser {
    fn new(system: &System) -> Self {
        Self {
            client: system.client(),
            cookie: String::new(),
        }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = self.client.request(method, path);
        let request = request
            .header(COOKIE, &self.cookie)
            .header(ORIGIN, self.client.base())
            .header(CONTENT_TYPE, "application/json");
        Answer::to(request.body(body.to_string())).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, body).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &json!({})).await
    }

    async fn page(&self, path: &str) -> Answer {
        let request = self.client.request(Method::GET, path);
        Answer::to(request.header(COOKIE, &self.cookie)).await
    }

    async fn tries_to_sign_in(&self, email: &str, password: &str) -> Answer {
        let body = json!({"email": email, "password": password});
        self.post("/dashboard/sign-in", &body).await
    }

    /// Signs in, and waits until the pages know of the membership.
    async fn signs_in(&mut self, email: &str, password: &str) {
        let answer = eventually("the membership to be known", async || {
            let answer = self.tries_to_sign_in(email, password).await;
            (answer.status == 204).then_some(answer)
        })
        .await;
        let cookie = answer.header("set-cookie").unwrap();
        cookie
            .split(';')
            .next()
            .unwrap()
            .clone_into(&mut self.cookie);
        eventually("the pages to know them", async || {
            (self.page("/dashboard").await.status == 200).then_some(())
        })
        .await;
    }

    /// Invites somebody and gives the code of the link.
    async fn invites(&self, email: &str) -> String {
        let made = self.post(PEOPLE, &json!({"email": email})).await;
        assert_eq!(made.header("cache-control"), Some("no-store"));
        let made = made.ok(201);
        let link = made["link"].as_str().unwrap();
        let start = format!("{}/dashboard/invite#", self.client.base());
        assert!(link.starts_with(&start), "{link}");
        code_of(link)
    }
}

fn new_email() -> String {
    format!("{}@corp.example", uuid::Uuid::new_v4().simple())
}

/// What stands behind the `#`, where no log sees it.
fn code_of(link: &str) -> String {
    let (address, code) = link.split_once('#').expect("a fragment");
    assert!(address.ends_with("/dashboard/invite"), "{link}");
    assert_eq!(code.len(), 43, "256 bits to the base 62");
    code.to_owned()
}

/// An organization with an owner who has signed in.
async fn owned(system: &System) -> (String, String, Browser) {
    let email = new_email();
    let create = ["org", "create", "--name", "Corp & Co", "--owner", &email];
    let made = system.waypost(&create).await;
    let mut owner = Browser::new(system);
    let password = made["ownerPassword"].as_str().unwrap();
    owner.signs_in(&email, password).await;
    (made["orgId"].as_str().unwrap().to_owned(), email, owner)
}

async fn invited_by_operator(system: &System, org: &str, email: &str) -> String {
    let invite = ["org", "invite", "--org", org, email];
    let made = system.waypost(&invite).await;
    let expires = made["expiresAt"].as_str().unwrap();
    let expires = chrono::DateTime::parse_from_rfc3339(expires).unwrap();
    let days = (expires.to_utc() - chrono::Utc::now()).num_hours() / 24;
    assert!((6..=7).contains(&days), "{days} days");
    code_of(made["link"].as_str().unwrap())
}

async fn emails(system: &System, org: &str, list: &str) -> Vec<String> {
    let all = system.waypost(&["org", "people", "--org", org]).await;
    let all = all[list].as_array().unwrap().iter();
    all.map(|one| one["email"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn whoever_took_an_owners_address_beforehand_gets_nothing() {
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
    // The link alone opens nothing either: an account is never taken over by it.
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
    assert_eq!(emails(system, org, "invites").await, [ada.email.clone()]);

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
async fn whoever_has_no_account_opens_one_with_a_password_of_their_own() {
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
    // The owner's own session is as good as none.
    owner.post(ACCEPT, &json!({"code": code})).await.error(409);
    // Whoever is signed in to the account that has the address needs no password.
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
    assert_eq!(emails(system, &org, "invites").await, [email.clone()]);
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
async fn whoever_is_removed_is_out_within_a_second_everywhere() {
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
