//! Every page, at a phone's width and a desktop's, in light and in dark.

use std::collections::BTreeSet;
use std::path::Path;

use harness::Owner;

use crate::demo::demo;
use crate::driver::{Page, Scheme, browse, tell};
use crate::sound::{Measured, first_link, fits, measure, shuts_nobody_out};
use crate::system;

/// Lists, whose rows each lead to a page.
const LISTS: [&str; 8] = [
    "/dashboard/contacts",
    "/dashboard/companies",
    "/dashboard/deals",
    "/dashboard/orders",
    "/dashboard/leads",
    "/dashboard/clients",
    "/dashboard/workflows",
    "/dashboard/events",
];

/// Pages for signed-in users, besides lists and what they lead to.
const OTHERS: [&str; 9] = [
    "/dashboard",
    "/dashboard/runs",
    "/dashboard/map",
    "/dashboard/webhooks",
    "/dashboard/settings/api-manager",
    "/dashboard/people",
    "/dashboard/system",
    "/dashboard/new/deals",
    "/dashboard/import/contacts",
];

/// Public pages.
const OPEN: [&str; 8] = [
    "/app",
    "/dashboard/sign-in",
    "/dashboard/invite",
    "/docs",
    "/docs/tutorial",
    "/docs/how-to/build-a-phone-tracker",
    "/docs/reference/settings",
    "/docs/search?q=position",
];

/// Views a page in each width and scheme: returns what was measured when it was opened, and adds
/// what is wrong with it to `faults`.
async fn look(page: &Page, path: &str, faults: &mut Vec<String>) -> Measured {
    let mut slowest = Measured::default();
    for (width, first, second) in [
        (360, Scheme::Light, Scheme::Dark),
        (1280, Scheme::Dark, Scheme::Light),
    ] {
        let found = &mut Vec::new();
        page.is_wide(width).await;
        page.prefers(first).await;
        page.go(path).await;
        settles(page).await;
        let measured = measure(page, found).await;
        if measured.first_content_ms >= slowest.first_content_ms {
            slowest = measured;
        }
        fits(page, found).await;
        shuts_nobody_out(page, found).await;
        page.prefers(second).await;
        shuts_nobody_out(page, found).await;
        found.extend(page.has_said());
        let told = found
            .drain(..)
            .map(|fault| format!("{path} at {width} px: {fault}"));
        faults.extend(told);
    }
    slowest
}

/// Waits until a page's live updates have started.
async fn settles(page: &Page) {
    let live = "!/Connecting…/.test(document.body.innerText) && document.fonts.status === 'loaded'";
    page.until("the page to be live", live).await;
}

/// Views some pages, and reports which took longest and weighed most.
pub(crate) async fn look_at_all(page: &Page, paths: &[String]) {
    let (mut told, mut faults) = (Vec::new(), Vec::new());
    for path in paths {
        told.push((path, look(page, path, &mut faults).await));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let slowest = told
        .iter()
        .max_by(|(_, one), (_, other)| one.first_content_ms.total_cmp(&other.first_content_ms));
    let heaviest = told
        .iter()
        .max_by(|(_, one), (_, other)| one.bytes.total_cmp(&other.bytes));
    if let (Some((slow, of)), Some((heavy, by))) = (slowest, heaviest) {
        tell(&format!(
            "{} pages: first content after {:.0} ms at most ({slow}), {:.0} KB at most ({heavy})",
            told.len(),
            of.first_content_ms,
            by.bytes / 1000.0,
        ));
    }
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[tokio::test]
async fn lists_and_what_they_lead_to_are_sound() {
    browse(async |browser| {
        let page = browser.page().await;
        page.is_of(&demo().await.owner).await;
        let mut paths = Vec::new();
        for list in LISTS {
            page.go(list).await;
            paths.push(list.to_owned());
            paths.push(first_link(&page, "tbody th a").await);
        }
        look_at_all(&page, &paths).await;
    })
    .await;
}

#[tokio::test]
async fn the_other_pages_of_the_dashboard_are_sound() {
    browse(async |browser| {
        let demo = demo().await;
        let page = browser.page().await;
        page.is_of(&demo.owner).await;
        let mut paths = owned(&OTHERS);
        paths.extend(
            demo.runs[1..3]
                .iter()
                .map(|run| format!("/dashboard/runs/{run}")),
        );
        paths.push(format!("/dashboard/webhooks/{}", demo.webhook));
        look_at_all(&page, &paths).await;
    })
    .await;
}

#[tokio::test]
async fn pages_of_an_organization_that_has_nothing_yet_are_sound() {
    browse(async |browser| {
        let owner = Owner::sign_in(system().await).await;
        let page = browser.page().await;
        page.is_of(&owner).await;
        let paths: Vec<_> = LISTS.iter().chain(&OTHERS[..7]).copied().collect();
        look_at_all(&page, &owned(&paths)).await;
    })
    .await;
}

#[tokio::test]
async fn pages_for_all_are_sound() {
    browse(async |browser| {
        let page = browser.page().await;
        look_at_all(&page, &owned(&OPEN)).await;
    })
    .await;
}

#[tokio::test]
async fn the_description_of_the_api_is_sound() {
    browse(async |browser| {
        let page = browser.page().await;
        let parts = [
            "/docs/reference/api",
            "/docs/reference/api/workflows",
            "/docs/reference/api/records",
        ];
        look_at_all(&page, &owned(&parts)).await;
    })
    .await;
}

/// Pages reached from lists, and parts of documents, with an example address of each.
const LED_TO: [&str; 6] = [
    "/dashboard/contacts/x",
    "/dashboard/workflows/x",
    "/dashboard/events/x",
    "/dashboard/runs/x",
    "/dashboard/webhooks/x",
    "/docs/reference/api/records",
];

/// Routes that respond with something other than a page.
const NO_PAGES: [&str; 6] = [
    "/dashboard/assets/{name}",
    "/dashboard/charts/{name}",
    "/dashboard/map/now",
    "/dashboard/runs/matching",
    "/docs/pictures/{name}",
    "/docs/tutorial.md",
];

/// All routes in the sources of the pages.
fn routes(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            routes(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let source = std::fs::read_to_string(path).unwrap();
            let written = source.split(".route(").skip(1);
            let written = written.filter_map(|rest| rest.split('"').nth(1));
            found.extend(written.map(|route| route.replace("{{", "{").replace("}}", "}")));
        }
    }
}

fn is_of(route: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (route, path) = (route.split('/'), path.split('/'));
    let same = |(part, given): (&str, &str)| part == given || part.starts_with('{');
    route.clone().count() == path.clone().count() && route.zip(path).all(same)
}

#[test]
fn no_page_is_left_out() {
    let mut found = BTreeSet::new();
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../query-api/src/pages");
    routes(Path::new(pages), &mut found);
    assert!(found.len() > 20, "the routes were not found: {found:?}");
    let looked_at = LISTS.iter().chain(&OTHERS).chain(&OPEN).chain(&LED_TO);
    let looked_at: Vec<_> = looked_at.copied().collect();
    for route in found
        .iter()
        .filter(|route| !NO_PAGES.contains(&route.as_str()))
    {
        // A route without parameters must be viewed at its own address.
        let is_looked_at = looked_at.iter().any(|path| is_of(route, path));
        assert!(is_looked_at, "{route} is not looked at");
    }
}
