//! Customers: imported from a file, found and changed.

use harness::Owner;

use crate::driver::{Page, browse, eventually};
use crate::sound::is_sound;
use crate::system;

/// A file of another system: one unknown column, and one row that cannot be imported.
const FILE: &str = "Record ID,Rufname,Last Name,Email,Create Date\n\
    c-1,Ada,Lovelace,ada@example.org,2024-05-02\n\
    c-2,Grace,Hopper,grace@example.org,2024-05-03 08:15\n\
    c-3,Alan,Turing,alan@example.org,long ago\n\
    c-4,Edsger,Dijkstra,edsger@example.org,2024-05-04\n";

async fn counts(page: &Page, wanted: &str) {
    let told = "[...document.querySelectorAll('#import-counts > div')].map((one) => one.innerText.replace(/\\s+/g, ' ')).join(', ')";
    page.until(wanted, &format!("({told}) === '{wanted}'"))
        .await;
}

#[tokio::test]
async fn a_file_is_matched_checked_and_imported_and_its_rejected_rows_are_shown() {
    browse(async |browser| {
        let system = system().await;
        let owner = Owner::sign_in(system).await;
        let folder = system.home().join(uuid::Uuid::new_v4().to_string());
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("people.csv");
        std::fs::write(&file, FILE).unwrap();
        let page = browser.page().await;
        page.is_of(&owner).await;
        page.downloads_to(&folder).await;

        page.go("/dashboard/contacts").await;
        page.link("Import").follow().await;
        page.at("#import-file").take_file(&file).await;
        page.sees("Match columns with fields").await;
        let unknown = page.field("Field for the column Rufname");
        assert_eq!(unknown.text().await, "");
        assert_eq!(
            page.field("Field for the column Last Name").text().await,
            "lastName"
        );
        unknown.choose("First name").await;
        is_sound(&page).await;

        page.button("Check without importing").click().await;
        page.sees("Checked 4 rows").await;
        counts(&page, "Can be imported 3, Have errors 1").await;
        page.sees("createdAt: must be a time").await;
        page.button("Import").click().await;
        page.sees("Imported 4 rows").await;
        counts(
            &page,
            "Created 3, Changed 0, The same already 0, Rejected 1",
        )
        .await;
        is_sound(&page).await;
        page.link("Download rejected rows").click().await;
        let rejected = folder.join("contacts-rejected.csv");
        let rejected = eventually("the rejected rows", async || {
            let text = std::fs::read_to_string(&rejected).ok()?;
            (!text.is_empty()).then_some(text)
        })
        .await;
        assert!(
            rejected.contains("c-3,Alan,Turing,alan@example.org,long ago,"),
            "{rejected}"
        );
        assert_eq!(rejected.lines().count(), 2, "{rejected}");

        page.link("Show contacts").follow().await;
        page.sees("3 contacts").await;
        page.sees("Grace Hopper").await;
        page.sees_no("Turing").await;
    })
    .await;
}

#[tokio::test]
async fn a_customer_is_found_by_name_and_changed() {
    browse(async |browser| {
        let owner = Owner::sign_in(system().await).await;
        let page = browser.page().await;
        page.is_of(&owner).await;
        for (first, last) in [("Grace", "Hopper"), ("Ada", "Lovelace")] {
            page.go("/dashboard/new/contacts").await;
            page.field("First name").write(first).await;
            page.field("Last name").write(last).await;
            page.button("Create").follow().await;
            page.sees(&format!("{first} {last}")).await;
        }

        page.link("Contacts").follow().await;
        page.field("Search").write("hop").await;
        page.button("Search").follow().await;
        page.sees("1 contact found").await;
        page.sees_no("Lovelace").await;
        page.link("Grace Hopper").follow().await;
        page.summary("Edit").click().await;
        page.field("City").write("Arlington").await;
        page.field("Last name").write("").await;
        is_sound(&page).await;
        page.field("Last name").write("Murray Hopper").await;
        page.button("Save").follow().await;
        page.sees("Grace Murray Hopper").await;
        let history = page.at(".history").text().await;
        for word in [
            "contact.updated",
            "Murray Hopper",
            "Arlington",
            "contact.created",
        ] {
            assert!(history.contains(word), "{word} in {history}");
        }
    })
    .await;
}
