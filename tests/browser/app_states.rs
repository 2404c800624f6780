//! A person's own page in all its states, from empty to the end of the account.

use harness::{PASSWORD, System};
use serde_json::{Value, json};

use crate::app::enter;
use crate::driver::{Page, Scheme, browse};
use crate::sound::is_sound;
use crate::system;

/// Asserts that the page in its current state is sound at all widths and in all schemes.
async fn is_sound_for_all(page: &Page) {
    for (width, schemes) in [
        (1280, [Scheme::Light, Scheme::Dark]),
        (360, [Scheme::Dark, Scheme::Light]),
    ] {
        page.is_wide(width).await;
        for scheme in schemes {
            page.prefers(scheme).await;
            is_sound(page).await;
        }
    }
}

fn unused_email() -> String {
    format!("{}@example.org", uuid::Uuid::new_v4().simple())
}

#[tokio::test]
async fn a_new_person_starts_with_nothing_and_is_shown_what_to_do() {
    browse(async |browser| {
        let page = browser.page().await;
        page.is_wide(360).await;
        page.go("/app").await;
        page.summary("Sign in by a text message").click().await;
        page.summary("Create an account").click().await;
        page.field("Your name, as your circle sees it")
            .is_there()
            .await;
        is_sound_for_all(&page).await;
        page.may_say("401");
        page.field("E-mail address").write(&unused_email()).await;
        page.field("Password").write("not my password").await;
        page.button("Sign in").click().await;
        page.at("#app-password .fault:not([hidden])")
            .is_there()
            .await;
        is_sound_for_all(&page).await;
        page.field("Your name, as your circle sees it")
            .write("Ada")
            .await;
        page.at("#app-new-email").write(&unused_email()).await;
        page.field("Password, at least 8 characters")
            .write(PASSWORD)
            .await;
        page.button("Create account").click().await;
        page.sees("Signed in as Ada").await;
        page.sees("You are in no circle yet").await;
        page.sees("Nobody has shared a position yet").await;
        page.sees("Live.").await;
        is_sound_for_all(&page).await;
    })
    .await;
}

#[tokio::test]
async fn a_person_makes_a_circle_with_a_place_and_joins_one_by_a_code() {
    browse(async |browser| {
        let system = system().await;
        let (ada, grace) = (system.person("Ada").await, system.person("Grace").await);
        let (page, other) = (browser.page().await, browser.page().await);
        page.stands_at(48.1374, 11.5755).await;
        enter(&page, &ada.email).await;
        page.field("New circle").write("Climbers").await;
        page.button("Create").click().await;
        page.sees("Climbers").await;
        page.button("Add a place where I am").click().await;
        page.sees("Place: write what it is called").await;
        is_sound_for_all(&page).await;
        page.field("A new place is called").write("Hut").await;
        page.button("Add a place where I am").click().await;
        page.sees("Hut (150 m)").await;
        page.button("Invite").click().await;
        page.sees("Code: ").await;
        is_sound_for_all(&page).await;
        let code = "document.body.innerText.match(/Code: (\\S+)/)[1]";
        let code = page.run(code).await;
        enter(&other, &grace.email).await;
        other.may_say("404");
        other
            .field("Code of an invitation")
            .write("wrong-code")
            .await;
        other.button("Join").click().await;
        other.at("#app-join .fault:not([hidden])").is_there().await;
        is_sound_for_all(&other).await;
        other
            .field("Code of an invitation")
            .write(code.as_str().unwrap())
            .await;
        other.button("Join").click().await;
        other.sees("Climbers").await;
        other.sees("Hut (150 m)").await;
        other.button("Remove Hut").click().await;
        other.sees_no("Hut (150 m)").await;
        other.button("Leave").click().await;
        other.sees("You are in no circle yet").await;
    })
    .await;
}

/// A person's calls for help, from their exported data.
async fn calls_of(system: &System, token: &str) -> Value {
    let client = system.client().with_key(token);
    client.get("/auth/export").await.ok(200)["sos"].clone()
}

#[tokio::test]
async fn a_person_calls_for_help_and_ends_the_call() {
    browse(async |browser| {
        let system = system().await;
        let ada = system.person("Ada").await;
        let page = browser.page().await;
        enter(&page, &ada.email).await;
        page.sees("Live.").await;
        // A short press asks first.
        page.button("SOS: hold for 2 seconds").click().await;
        page.sees("Everybody in your circles is alerted at once.")
            .await;
        is_sound_for_all(&page).await;
        page.at("#app-sos-ask [data-close]").click().await;
        page.sees_no("Everybody in your circles").await;
        assert_eq!(calls_of(system, &ada.token).await, json!([]));
        page.button("SOS: hold for 2 seconds").click().await;
        page.field("Message").write("Flat tyre").await;
        page.button("Send SOS").click().await;
        page.sees("nobody is in your circles yet").await;
        page.sees("SOS: You").await;
        is_sound_for_all(&page).await;
        page.button("Resolved").click().await;
        page.sees_no("SOS: You").await;
        let calls = calls_of(system, &ada.token).await.to_string();
        assert!(calls.contains("Flat tyre"), "{calls}");
    })
    .await;
}

/// A socket that never opens and never fails, as behind some proxies, and timers that wait for at
/// most a second.
const DEAD_SOCKET: &str = "
  window.WebSocket = class extends EventTarget { send() {} close() {} };
  const later = window.setTimeout.bind(window);
  window.setTimeout = (what, ms, ...rest) => later(what, Math.min(ms ?? 0, 1000), ...rest);";

#[tokio::test]
async fn calls_for_help_show_although_the_live_connection_is_dead() {
    browse(async |browser| {
        let system = system().await;
        let (ada, grace) = (system.person("Ada").await, system.person("Grace").await);
        let circle = ada.makes_circle().await;
        grace.joins(&circle, &ada).await;
        let page = browser.page().await;
        page.begins_with(DEAD_SOCKET).await;
        enter(&page, &grace.email).await;
        page.sees("Family").await;
        let call = json!({"message": "Flat tyre", "lat": 53.5, "lng": 9.9});
        let call = ada.client.post("/sos/trigger", &call).await.ok(202);
        page.sees("Flat tyre").await;
        let resolve = format!("/sos/{}/resolve", call["sos_id"].as_str().unwrap());
        ada.client.post(&resolve, &json!({})).await.ok(200);
        page.sees_no("Flat tyre").await;
    })
    .await;
}

#[tokio::test]
async fn a_person_takes_their_data_along_and_ends_the_account() {
    browse(async |browser| {
        let system = system().await;
        let ada = system.person("Ada").await;
        let page = browser.page().await;
        let folder = system.home().join(uuid::Uuid::new_v4().to_string());
        std::fs::create_dir(&folder).unwrap();
        page.downloads_to(&folder).await;
        enter(&page, &ada.email).await;
        page.button("Download my data").click().await;
        let file = folder.join("waypost-account.json");
        let kept: Value = page
            .wait("the file", async || {
                serde_json::from_slice(&std::fs::read(&file).ok()?).ok()
            })
            .await;
        assert!(kept.to_string().contains(&ada.email), "{kept}");
        page.button("Delete my account").click().await;
        page.sees("are erased for good").await;
        is_sound_for_all(&page).await;
        page.may_say("401");
        page.at("#app-end-password").write("not my password").await;
        page.button("Delete for good").click().await;
        page.at("#app-end .fault:not([hidden])").is_there().await;
        is_sound_for_all(&page).await;
        page.at("#app-end-password").write(PASSWORD).await;
        page.button("Delete for good").click().await;
        page.sees("Your account is deleted.").await;
        is_sound_for_all(&page).await;
        page.field("E-mail address").write(&ada.email).await;
        page.field("Password").write(PASSWORD).await;
        page.button("Sign in").click().await;
        page.at("#app-password .fault:not([hidden])")
            .is_there()
            .await;
    })
    .await;
}
