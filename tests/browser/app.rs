//! A person's own page: signing in by password and by code, sharing and hiding.

use harness::{PASSWORD, Person};
use serde_json::json;

use crate::driver::{Page, browse};
use crate::sound::is_sound;
use crate::system;

/// Signs in on the person's page.
pub(crate) async fn enter(page: &Page, email: &str) {
    page.is_wide(360).await;
    page.go("/app").await;
    page.field("E-mail address").write(email).await;
    page.field("Password").write(PASSWORD).await;
    page.button("Sign in").click().await;
    page.sees("Signed in as").await;
}

#[tokio::test]
async fn a_person_shares_where_they_are_and_hides() {
    browse(async |browser| {
        let system = system().await;
        let (ada, grace) = (system.person("Ada").await, system.person("Grace").await);
        let circle = ada.makes_circle().await;
        grace.joins(&circle, &ada).await;
        let page = browser.page().await;
        page.stands_at(48.1374, 11.5755).await;
        enter(&page, &ada.email).await;
        page.sees("Family").await;
        page.button("Share my position").click().await;
        page.button("Sharing: tap to stop").is_there().await;
        page.sees("48.1374, 11.5755").await;
        let sees = async |count: usize| {
            let is_seen = |seen: &serde_json::Value| {
                let seen = seen["data"].as_array().unwrap().iter();
                seen.filter(|one| one["user_id"] == ada.id).count() == count
            };
            grace.until("/location/latest", is_seen).await;
        };
        sees(1).await;
        is_sound(&page).await;
        page.field("Hide me for").choose("8 hours").await;
        page.button("Hide").click().await;
        page.sees("You are hidden until").await;
        page.button("Share my position").is_there().await;
        sees(0).await;
        page.button("Show again").click().await;
        page.sees("Your circle sees you again").await;
        page.button("Share my position").click().await;
        sees(1).await;
        page.button("Sign out").follow().await;
        page.field("Password").is_there().await;
    })
    .await;
}

/// Creates a person with a verified phone number.
async fn holder() -> (Person, String) {
    let system = system().await;
    let phone = format!(
        "+49{:012}",
        uuid::Uuid::new_v4().as_u128() % 1_000_000_000_000
    );
    let email = format!("{}@example.org", uuid::Uuid::new_v4().simple());
    let body = json!({"name": "Ada", "email": email, "password": PASSWORD, "phone": phone});
    let session = system.client().post("/auth/register", &body).await.ok(201);
    let token = session["access_token"].as_str().unwrap().to_owned();
    let person = Person {
        id: session["user"]["id"].as_u64().unwrap(),
        name: "Ada".to_owned(),
        email,
        client: system.client().with_key(&token),
        token,
    };
    let asked = person
        .client
        .post("/auth/otp/send", &json!({"phone": phone}))
        .await;
    asked.ok(202);
    let verified = json!({"phone": phone, "code": code(&phone).await});
    person
        .client
        .post("/auth/otp/verify", &verified)
        .await
        .ok(200);
    (person, phone)
}

/// The newest code that was sent to a number.
async fn code(phone: &str) -> String {
    let sent = system().await.outbox(phone);
    sent.last().unwrap()["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_person_signs_in_by_a_code_on_their_phone() {
    browse(async |browser| {
        let (_, phone) = holder().await;
        let page = browser.page().await;
        page.is_wide(360).await;
        page.go("/app").await;
        let sent = system().await.outbox(&phone).len();
        page.summary("Sign in by a text message").click().await;
        page.field("Phone number").write(&phone).await;
        page.button("Send a code").click().await;
        page.sees("a code is on its way").await;
        is_sound(&page).await;
        assert_eq!(system().await.outbox(&phone).len(), sent + 1);
        page.field("Six-digit code")
            .write(&code(&phone).await)
            .await;
        page.at("#app-code [type=submit]").click().await;
        page.sees("Signed in as Ada").await;
        page.sees("Live.").await;
    })
    .await;
}
