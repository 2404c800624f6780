//! `/docs` and `/dashboard`: pages for persons.

pub(super) use harness::Owner;
use harness::{Answer, eventually, sign_in};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::json;

use super::only_begins;
use crate::system;

/// A page's text, with the slashes unescaped that come from data.
fn html(page: &Answer) -> String {
    page.text().replace("&#x2f;", "/")
}

/// Asserts that every address in a page is of this system.
fn is_of_this_house(page: &Answer) {
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    for word in ["unsafe", "http", "*", "data:"] {
        assert!(!policy.contains(word), "{policy}");
    }
    let html = html(page);
    for attribute in ["src=\"", "href=\"", "action=\""] {
        for rest in html.split(attribute).skip(1) {
            assert!(
                rest.starts_with(['/', '#']) && !rest.starts_with("//"),
                "{rest:.60}"
            );
        }
    }
    for inline in ["<script>", "<style", " style=", " onclick=", "javascript:"] {
        assert!(!html.contains(inline), "{inline}");
    }
}

#[tokio::test]
async fn pages_and_what_they_are_made_of_come_from_here_alone() {
    let client = system().await.client();
    let docs = client.get("/docs").await;
    assert_eq!(docs.status, 200);
    is_of_this_house(&docs);
    let html = html(&docs);
    for word in [
        "triggerWorkflow",
        "/api/v1/orders",
        "curl",
        "wp_",
        "lang=\"en\"",
    ] {
        assert!(html.contains(word), "{word}");
    }
    let page = client.get("/dashboard/sign-in").await;
    assert_eq!(page.status, 200);
    is_of_this_house(&page);
    for (name, kind) in [
        ("style.css", "text/css"),
        ("dashboard.js", "text/javascript"),
        ("docs.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let asset = client.get(&format!("/dashboard/assets/{name}")).await;
        assert_eq!(asset.status, 200);
        assert!(asset.header("content-type").unwrap().starts_with(kind));
        assert_eq!(asset.header("x-content-type-options"), Some("nosniff"));
        assert!(!asset.text().contains("https://"), "{name}");
    }
    client.get("/dashboard/assets/none.js").await.error(404);
    client.get("/dashboard/none").await.error(404);
}

#[tokio::test]
async fn a_person_who_is_not_signed_in_is_redirected_to_sign_in() {
    let client = system().await.client();
    for path in [
        "/dashboard",
        "/dashboard/settings/api-manager",
        "/dashboard/webhooks",
        "/dashboard/webhooks/x",
        "/dashboard/runs/x",
    ] {
        for cookie in ["", "waypost_session=nonsense"] {
            let request = client.request(Method::GET, path).header(COOKIE, cookie);
            let answer = Answer::to(request).await;
            assert_eq!(answer.status, 303, "{path}");
            let to = answer.header("location").unwrap();
            assert!(to.starts_with("/dashboard/sign-in?next="), "{to}");
        }
    }
    for next in [
        "https://evil.example",
        "//evil.example",
        "/dashboards",
        "/docs",
    ] {
        let page = client.get(&format!("/dashboard/sign-in?next={next}")).await;
        assert!(html(&page).contains("data-next=\"/dashboard\""), "{next}");
    }
    let page = client
        .get("/dashboard/sign-in?next=/dashboard/webhooks")
        .await;
    assert!(html(&page).contains("data-next=\"/dashboard/webhooks\""));
}

#[tokio::test]
async fn only_an_owner_with_the_right_password_is_signed_in() {
    let system = system().await;
    let client = system.client();
    let owner = Owner::sign_in(system).await;
    let page = eventually("the organization's name", async || {
        let page = owner.page("/dashboard").await;
        let name = "&lt;Test&gt; &amp; Söhne";
        page.text().contains(name).then_some(page)
    })
    .await;
    is_of_this_house(&page);
    assert_eq!(page.header("cache-control"), Some("no-store"));

    let nobody = sign_in(&client, "nobody@example.org", "a long password").await;
    let person = system.person("Ada").await;
    let wrong = sign_in(&client, &person.email, "a wrong password").await;
    assert_eq!(nobody.error(401), wrong.error(401));
    assert!(wrong.header("set-cookie").is_none());
    let no_staff = sign_in(&client, &person.email, harness::PASSWORD).await;
    no_staff.error(403);
    assert!(no_staff.header("set-cookie").is_none());
    let request = client.request(Method::GET, "/dashboard");
    let request = request.header(COOKIE, format!("waypost_session={}", person.token));
    assert_eq!(Answer::to(request).await.status, 403);

    let out = owner.send(Method::POST, "/dashboard/sign-out", None).await;
    out.ok(204);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    eventually("the session to have ended", async || {
        (owner.page("/dashboard").await.status == 303).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_other_sites_send_is_refused() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let key = owner
        .key(&json!({"name": "mine", "scopes": ["admin"]}))
        .await;
    let revoke = format!("/dashboard/keys/{}", key["keyId"].as_str().unwrap());
    let run = "/dashboard/workflows/x/run".to_owned();
    for (method, path) in [
        (Method::POST, "/dashboard/sign-in".to_owned()),
        (Method::POST, "/dashboard/sign-out".to_owned()),
        (Method::POST, "/dashboard/keys".to_owned()),
        (Method::DELETE, revoke),
        (Method::POST, run),
    ] {
        for origin in [Some("https://evil.example"), Some("null"), None] {
            let request = owner.client.request(method.clone(), &path);
            let request = request
                .header(COOKIE, &owner.cookie)
                .header(CONTENT_TYPE, "application/json")
                .body("{}");
            let request = match origin {
                Some(origin) => request.header(ORIGIN, origin),
                None => request,
            };
            Answer::to(request).await.error(403);
        }
    }
    // A form of another site cannot send JSON, so only JSON is accepted.
    let request = owner.client.request(Method::POST, "/dashboard/keys");
    let request = request
        .header(COOKIE, &owner.cookie)
        .header(ORIGIN, owner.client.base())
        .header(CONTENT_TYPE, "text/plain")
        .body(json!({"name": "x", "scopes": ["admin"]}).to_string());
    Answer::to(request).await.error(415);
    let client = system.client().with_key(key["key"].as_str().unwrap());
    client.get("/api/v1/keys").await.ok(200);
}

#[tokio::test]
async fn a_key_that_is_made_works_and_one_that_is_revoked_does_not() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let terms = json!({"name": "<b>shop</b>", "scopes": ["keys:manage"], "rateLimit": 7});
    let made = owner.key(&terms).await;
    let key = made["key"].as_str().unwrap();
    let client = system.client().with_key(key);
    let listed = eventually("the key to be known", async || {
        let answer = client.get("/api/v1/keys").await;
        (answer.status != 401).then_some(answer)
    })
    .await;
    assert_eq!(
        listed.header("ratelimit-policy"),
        Some("\"hourly\";q=7;w=3600")
    );
    let id = made["keyId"].as_str().unwrap();
    eventually("the page to show it", async || {
        let page = owner.page("/dashboard/settings/api-manager").await.text();
        assert!(!page.contains(key) && !page.contains("<b>shop"));
        page.contains(id).then_some(())
    })
    .await;
    let revoke = format!("/dashboard/keys/{id}");
    let revoked = owner.send(Method::DELETE, &revoke, None).await;
    revoked.ok(204);
    let one_second = std::time::Duration::from_secs(1);
    harness::eventually_within(one_second, "the key to work no more", async || {
        (client.get("/api/v1/keys").await.status == 401).then_some(())
    })
    .await;
    let page = "/dashboard/settings/api-manager?position=";
    let page = owner.page(&format!("{page}{}", revoked.position())).await;
    assert!(!page.text().contains(id));
    let wrong = json!({"name": "", "scopes": []});
    let wrong = owner
        .send(Method::POST, "/dashboard/keys", Some(&wrong))
        .await;
    assert!(wrong.error(400).contains("name"));
}

#[tokio::test]
async fn a_person_runs_a_workflow_by_hand_and_sees_the_run_and_the_delivery() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let key = owner
        .key(&json!({"name": "setup", "scopes": ["admin"]}))
        .await;
    let admin = system.client().with_key(key["key"].as_str().unwrap());
    let saved = admin.put("/api/v1/workflows/by-hand", &only_begins()).await;
    saved.ok(200);
    let hook = json!({"url": "http://127.0.0.1:1/hook", "events": ["run.succeeded"]});
    let hook = admin.post("/api/v1/webhooks", &hook).await;
    let hook_id = hook.ok(201)["id"].as_str().unwrap().to_owned();
    let path = format!("/dashboard/workflows?position={}", hook.position());
    assert!(
        owner
            .page(&path)
            .await
            .text()
            .contains("data-run=\"by-hand\"")
    );

    let run = "/dashboard/workflows/by-hand/run";
    let wrong = owner.send(Method::POST, run, Some(&json!([1]))).await;
    assert!(wrong.error(400).contains("object"));
    let given = json!({"name": "Ada"});
    let started = owner.send(Method::POST, run, Some(&given)).await;
    let run_id = started.ok(202)["runId"].as_str().unwrap().to_owned();
    let page = format!("/dashboard/runs/{run_id}");
    let shown = eventually("the run to have ended", async || {
        let shown = owner.page(&page).await;
        let text = shown.text();
        (shown.status == 200 && text.contains("succeeded")).then_some(text)
    })
    .await;
    assert!(
        shown.contains("&quot;triggeredBy&quot;: &quot;user&quot;"),
        "{shown}"
    );
    let overview = owner.page("/dashboard").await.text();
    assert!(overview.contains(&page) && overview.contains("a person"));
    let page = format!("/dashboard/webhooks/{hook_id}");
    eventually("an attempt to be shown", async || {
        let text = owner.page(&page).await.text();
        (text.contains("run.succeeded") && text.contains("127.0.0.1:1")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn nobody_sees_or_changes_anything_of_another_organization() {
    let system = system().await;
    let (owner, other) = (Owner::sign_in(system).await, Owner::sign_in(system).await);
    let key = owner
        .key(&json!({"name": "theirs", "scopes": ["admin"]}))
        .await;
    let id = key["keyId"].as_str().unwrap();
    let admin = system.client().with_key(key["key"].as_str().unwrap());
    let saved = admin.put("/api/v1/workflows/theirs", &only_begins()).await;
    saved.ok(200);
    let run = "/api/v1/workflows/theirs/trigger";
    let run = admin.post_nothing(run).await;
    let run_id = run.ok(202)["runId"].as_str().unwrap().to_owned();
    let hook = json!({"url": "http://127.0.0.1:1/"});
    let hook = admin.post("/api/v1/webhooks", &hook).await;
    let hook_id = hook.ok(201)["id"].as_str().unwrap().to_owned();
    let position = format!("?position={}", hook.position());
    let run_page = format!("/dashboard/runs/{run_id}{position}");
    let hook_page = format!("/dashboard/webhooks/{hook_id}{position}");
    for page in [&run_page, &hook_page] {
        assert_eq!(owner.page(page).await.status, 200);
        assert_eq!(other.page(page).await.status, 404);
    }
    for page in [
        "/dashboard",
        "/dashboard/settings/api-manager",
        "/dashboard/webhooks",
    ] {
        let text = other.page(&format!("{page}{position}")).await.text();
        assert!(
            !text.contains("theirs") && !text.contains(&hook_id),
            "{page}"
        );
    }
    let revoke = format!("/dashboard/keys/{id}");
    other.send(Method::DELETE, &revoke, None).await.error(404);
    let run = "/dashboard/workflows/theirs/run";
    other.send(Method::POST, run, None).await.error(404);
    // Choosing an organization grants no access to it.
    let chosen = Owner {
        cookie: format!("{}; waypost_organization={}", other.cookie, owner.org),
        ..other
    };
    assert_eq!(chosen.page(&run_page).await.status, 404);
    admin.get("/api/v1/keys").await.ok(200);
}
