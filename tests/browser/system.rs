//! The System page: what operators of an installation see and do there, and what others see.

use harness::{Organization, Owner, Shape, System, heal};
use serde_json::json;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::demo::key_of;
use crate::driver::{Page, browse};
use crate::every_page::look_at_all;
use crate::sound::is_sound;

const PAGE: &str = "/dashboard/system";

/// Opens the page as an operator, in a system of its own.
async fn opened(page: &Page, operator: &Owner) {
    page.is_of(operator).await;
    page.go(PAGE).await;
    page.sees("You operate this installation").await;
}

/// Waits until a row of one of the page's tables contains all of this, and returns its text.
async fn row_says(page: &Page, part: &str, row: &str, words: &[&str]) {
    let script = format!(
        "[...document.querySelectorAll('[data-live={part}] tbody tr')]
           .find((one) => one.cells[0].innerText.trim() === '{row}')?.innerText ?? ''"
    );
    page.wait(&format!("{row}: {}", words.join(", ")), async || {
        let said = page.try_run(&script).await.ok()?;
        let said = said.as_str()?;
        words.iter().all(|word| said.contains(word)).then_some(())
    })
    .await;
}

/// Redraws as the page does when an operation has progressed.
const DRAWN_ANEW: &str = "(() => {
  const letters = document.querySelector('[data-live=letters]');
  letters.replaceWith(letters.cloneNode(true));
})()";

#[tokio::test]
async fn operators_retry_one_dead_letter_and_skip_another() {
    browse(async |browser| {
        let (system, operator) = System::operated(Shape::One).await;
        let mut database = system.database().await;
        let org = system.organization().await;
        let sequences = org
            .has_dead_letters(&mut database, &["ada", "grace", "alan"])
            .await;
        let letter = |nth: usize| format!("contacts:{}", sequences[nth]);
        let page = browser.page_of(&system).await;
        opened(&page, &operator).await;
        look_at_all(&page, &[PAGE.to_owned()]).await;
        let late = browser.page_of(&system).await;
        opened(&late, &operator).await;
        page.run("window.notLoadedAgain = true").await;
        row_says(
            &page,
            "projections",
            "contacts",
            &["Retry all 3", "Skip all 3"],
        )
        .await;
        row_says(
            &page,
            "letters",
            &letter(0),
            &[&org.id, "fails_ada", "contact.created"],
        )
        .await;
        is_sound(&page).await;

        heal(&mut database, "ada").await;
        page.button(&format!("Retry {}", letter(0))).click().await;
        page.sees_no("fails_ada").await;
        row_says(&page, "projections", "contacts", &["Retry all 2"]).await;
        row_says(
            &page,
            "operations",
            "Retry contacts: 1 dead letter",
            &["succeeded", "1 event applied"],
        )
        .await;

        page.button(&format!("Skip {}", letter(1))).click().await;
        page.sees("This cannot be undone.").await;
        is_sound(&page).await;
        page.run(DRAWN_ANEW).await;
        page.at("#operation-sure [data-close]").click().await;
        page.sees_no("This cannot be undone.").await;
        let focused = "document.activeElement.dataset.ask === 'skip'";
        page.until("focus to come back from the dialog", focused)
            .await;
        page.sees("fails_grace").await;
        page.button(&format!("Skip {}", letter(1))).click().await;
        page.at("#operation-do").click().await;
        page.sees_no("fails_grace").await;
        let focused = "document.activeElement.id === 'letters'";
        page.until("focus to stay with the dead letters", focused)
            .await;
        row_says(
            &page,
            "operations",
            "Skip contacts: 1 dead letter",
            &["succeeded", "1 dead letter skipped"],
        )
        .await;
        row_says(
            &page,
            "projections",
            "contacts",
            &["Retry all 1", "Skip all 1"],
        )
        .await;

        // An operator who comes too late is informed, and sees the current state.
        late.may_say("404");
        late.button(&format!("Retry {}", letter(1))).click().await;
        late.sees("dead letter not found").await;
        late.sees_no("fails_grace").await;
        // A dead letter whose cause remains stays.
        page.button(&format!("Retry {}", letter(2))).click().await;
        row_says(
            &page,
            "operations",
            "Retry contacts: 1 dead letter",
            &["failed"],
        )
        .await;
        page.sees("fails_alan").await;
        assert_eq!(page.run("window.notLoadedAgain").await, true);
        system
    })
    .await;
}

/// A reader of what a rebuild is to replace.
async fn reads(database: &mut PgConnection) -> sqlx::Transaction<'_, sqlx::Postgres> {
    let mut reading = database.begin().await.unwrap();
    reading.execute("SELECT FROM contacts").await.unwrap();
    reading
}

#[tokio::test]
async fn operators_verify_and_rebuild_and_see_how_far_it_has_come() {
    browse(async |browser| {
        let (system, operator) = System::operated(Shape::One).await;
        let org = system.organization().await;
        let contact = json!({"id": "c-1", "email": "zoe@example.com"});
        let contacts = "/api/v1/records/contacts";
        org.admin.post(contacts, &contact).await.ok(201);
        org.until("/api/v1/records/contacts/c-1", |_| true).await;
        let mut database = system.database().await;
        let spoil = "UPDATE contacts SET city = 'wrong'";
        database.execute(spoil).await.unwrap();

        let page = browser.page_of(&system).await;
        opened(&page, &operator).await;
        page.run("window.notLoadedAgain = true").await;
        page.sees("Nothing was asked for yet").await;
        page.button("Verify contacts").click().await;
        row_says(
            &page,
            "operations",
            "Verify contacts",
            &["differs", "1 difference"],
        )
        .await;
        page.summary("1 difference").click().await;
        page.sees("id=c-1").await;
        is_sound(&page).await;

        let reading = reads(&mut database).await;
        page.button("Rebuild contacts").click().await;
        page.sees("Rebuild contacts?").await;
        is_sound(&page).await;
        page.at("#operation-do").click().await;
        let waits = ["waiting for reads that hold the old rows"];
        row_says(&page, "operations", "Rebuild contacts", &waits).await;
        page.sees("id=c-1").await;
        page.at("progress[aria-label='Rebuild contacts']")
            .is_there()
            .await;
        assert_eq!(page.run("window.notLoadedAgain").await, true);
        look_at_all(&page, &[PAGE.to_owned()]).await;
        reading.rollback().await.unwrap();
        row_says(&page, "operations", "Rebuild contacts", &["succeeded"]).await;
        page.button("Verify contacts").click().await;
        row_says(
            &page,
            "operations",
            "Verify contacts",
            &["succeeded", "0 differences"],
        )
        .await;
        system
    })
    .await;
}

async fn sees_nothing_of_operators(page: &Page) {
    let text = page.at("main").text().await;
    for word in ["theirs", "Rebuild", "Verify", "Retry", "Skip", "Operations"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}

#[tokio::test]
async fn people_who_are_not_operators_see_their_own_dead_letters_alone() {
    browse(async |browser| {
        let (system, operator) = System::operated(Shape::One).await;
        let mut database = system.database().await;
        let org = system.organization().await;
        org.has_dead_letters(&mut database, &["theirs"]).await;
        let stranger = Owner::sign_in(&system).await;
        let page = browser.page_of(&system).await;
        page.is_of(&stranger).await;
        page.go(PAGE).await;
        page.sees("None: everything was taken in.").await;
        sees_nothing_of_operators(&page).await;
        let admin = key_of(&stranger, &["admin"]).await;
        let own = Organization {
            system: &system,
            id: stranger.org.clone(),
            key: String::new(),
            admin,
        };
        own.has_dead_letters(&mut database, &["ours"]).await;
        page.go(PAGE).await;
        page.sees("fails_ours").await;
        sees_nothing_of_operators(&page).await;
        is_sound(&page).await;
        let asked = "fetch('/dashboard/system/operations', {
            method: 'POST', headers: {'Content-Type': 'application/json'},
            body: JSON.stringify({kind: 'rebuild', projection: 'contacts'}),
          }).then(({ status }) => status)";
        page.may_say("403");
        assert_eq!(page.run(asked).await, 403);
        let page = browser.page_of(&system).await;
        opened(&page, &operator).await;
        page.sees("Nothing was asked for yet").await;
        system
    })
    .await;
}
