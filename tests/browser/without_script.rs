//! Pages without scripts: they can still be read, searched and navigated.

use crate::demo::demo;
use crate::driver::browse;
use crate::sound::first_link;

#[tokio::test]
async fn lists_are_searched_and_read_without_scripts() {
    browse(async |browser| {
        let page = browser.page().await;
        page.is_of(&demo().await.owner).await;
        page.without_scripts().await;
        page.go("/dashboard").await;
        page.sees("Revenue by month").await;
        page.link("Customers").follow().await;
        page.link("Orders").follow().await;
        let order = first_link(&page, "tbody th a").await;
        let name = page.at("tbody th a").text().await;
        page.field("Search").write(&name).await;
        page.button("Search").follow().await;
        page.sees("1 order found").await;
        page.link(&name).follow().await;
        assert_eq!(page.path().await, order);
        page.sees("order.created").await;
        page.summary("Edit").click().await;
        page.sees("Saving needs JavaScript").await;
    })
    .await;
}

#[tokio::test]
async fn runs_events_and_webhooks_are_read_without_scripts() {
    browse(async |browser| {
        let page = browser.page().await;
        page.is_of(&demo().await.owner).await;
        page.without_scripts().await;
        page.go("/dashboard/runs").await;
        page.field("State").choose("failed").await;
        page.button("Show").follow().await;
        page.sees("Call a crew").await;
        page.sees_no("Cancel all that match").await;
        page.link("Details").follow().await;
        page.at("[data-live=\"node-call\"].failed").is_there().await;
        page.link("Events").follow().await;
        page.go("/dashboard/events").await;
        page.field("Type").write("run.failed").await;
        page.button("Filter").follow().await;
        page.link("run.failed").follow().await;
        page.sees("Cause and effect").await;
        page.link("Webhooks").follow().await;
        page.sees("/hooks/waypost").await;
        page.link("API keys").follow().await;
        page.sees("the operator").await;
    })
    .await;
}

#[tokio::test]
async fn the_documentation_is_searched_and_what_needs_a_script_says_so() {
    browse(async |browser| {
        let page = browser.page().await;
        page.without_scripts().await;
        page.go("/docs").await;
        page.at("[name=q]").write("dead letter").await;
        page.button("Search").follow().await;
        page.sees("dead letter").await;
        page.go("/dashboard/sign-in").await;
        page.sees("Signing in needs JavaScript").await;
        page.go("/app").await;
        page.sees("needs JavaScript").await;
    })
    .await;
}
