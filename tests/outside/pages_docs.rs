//! `/docs`: every document for users, with links that work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use harness::{Answer, Client};
use reqwest::Method;

use crate::system;

/// The address of a document in the folder `docs`.
fn address(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", "tutorial") => "/docs/tutorial".to_owned(),
        ("", name) => format!("/docs/explanation/{name}"),
        (folder, name) => format!("/docs/{folder}/{name}"),
    }
}

fn documents() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut addresses = BTreeSet::new();
    for folder in ["", "how-to", "reference", "explanation"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            match name.strip_suffix(".md") {
                Some("README") | None => {}
                Some(name) => {
                    addresses.insert(address(folder, name));
                }
            }
        }
    }
    assert!(addresses.len() > 20, "{addresses:?}");
    addresses
}

/// The values of an attribute throughout a page.
fn values<'p>(html: &'p str, attribute: &str) -> Vec<&'p str> {
    let begin = format!(" {attribute}=\"");
    let rest = html.split(begin.as_str()).skip(1);
    rest.filter_map(|rest| Some(rest.split_once('"')?.0))
        .collect()
}

async fn page(client: &Client, address: &str) -> String {
    let answer = client.get(address).await;
    assert_eq!(answer.status, 200, "{address}");
    assert!(
        answer.body.len() <= 150_000,
        "{address}: {} bytes",
        answer.body.len()
    );
    answer.text().replace("&#x2f;", "/").replace("&amp;", "&")
}

#[tokio::test]
async fn every_document_is_shown_and_every_link_leads_somewhere() {
    let client = system().await.client();
    let mut pages = BTreeMap::new();
    let mut to_read: Vec<String> = vec!["/docs".to_owned()];
    to_read.extend(documents());
    let index = page(&client, "/docs").await;
    for address in documents() {
        assert!(
            index.contains(&format!("href=\"{address}\"")),
            "{address} is not on the index"
        );
    }
    while let Some(address) = to_read.pop() {
        if pages.contains_key(&address) {
            continue;
        }
        let html = page(&client, &address).await;
        for link in values(&html, "href") {
            let to = link.split('#').next().unwrap();
            if to.starts_with("/docs") && !to.contains('?') {
                to_read.push(to.to_owned());
            }
        }
        pages.insert(address, html);
    }
    for (address, html) in pages
        .iter()
        .filter(|(_, html)| html.starts_with("<!doctype"))
    {
        for link in values(html, "href") {
            let (to, anchor) = link.split_once('#').unwrap_or((link, ""));
            let to = if to.is_empty() { address } else { to };
            if let Some(target) = pages.get(to).filter(|_| !anchor.is_empty()) {
                assert!(values(target, "id").contains(&anchor), "{address}: {link}");
            }
            assert!(
                to.starts_with('/') || to.starts_with("https://"),
                "{address}: {link}"
            );
            if to.starts_with('/') && !to.starts_with("/docs") && !to.starts_with("/dashboard") {
                assert_eq!(client.get(to).await.status, 200, "{address}: {link}");
            }
        }
    }
}

#[tokio::test]
async fn documents_are_read_without_what_is_for_those_who_check_them() {
    let client = system().await.client();
    for address in documents() {
        let html = page(&client, &address).await;
        assert!(!html.contains("check:"), "{address}");
        assert_eq!(html.matches("<h1>").count(), 1, "{address}");
    }
    let tutorial = page(&client, "/docs/tutorial").await;
    assert!(
        tutorial.contains("<div class=\"code\"><pre tabindex=\"0\"><code data-language=\"bash\">")
    );
    let settings = page(&client, "/docs/reference/settings").await;
    assert!(settings.contains("WAYPOST_HOME") && settings.contains("<th scope=\"col\">"));
    for none in [
        "/docs/reference/none",
        "/docs/decisions/0001-idempotency-keys",
    ] {
        assert_eq!(client.get(none).await.status, 404, "{none}");
    }
}

#[tokio::test]
async fn programs_read_documents_and_the_schema_as_they_were_written() {
    let client = system().await.client();
    let source = client.get("/docs/how-to/rotate-keys.md").await;
    assert!(
        source
            .header("content-type")
            .unwrap()
            .starts_with("text/markdown")
    );
    assert!(source.text().starts_with("# Rotate keys\n"));
    let schema = client.get("/docs/reference/workflow.schema.json").await;
    let schema = schema.ok(200);
    assert!(schema["properties"]["steps"].is_object() || schema["$defs"].is_object());
}

#[tokio::test]
async fn what_is_looked_up_is_found_by_heading_text_and_path() {
    let client = system().await.client();
    for (asked, address) in [
        ("master+key", "/docs/how-to/rotate-keys#the-master-key"),
        ("WAYPOST_HOME", "/docs/reference/settings"),
        ("%2Fapi%2Fv1%2Forders", "/docs/reference/api/business-data#"),
    ] {
        let html = page(&client, &format!("/docs/search?q={asked}")).await;
        assert!(
            html.contains(&format!("<li><a href=\"{address}")),
            "{asked}"
        );
    }
    let nothing = page(&client, "/docs/search?q=%3Cscript%3Ealert").await;
    assert!(nothing.contains("&lt;script&gt;alert") && !nothing.contains("<script>alert"));
}

#[tokio::test]
async fn pictures_have_their_place_kept_and_are_fetched_once() {
    let client = system().await.client();
    let html = page(&client, "/docs/how-to/build-a-phone-tracker").await;
    assert!(html.contains("width=\"360\" height=\"740\" loading=\"lazy\""));
    let address = values(&html, "src");
    let address = address.iter().find(|to| to.contains("app.png")).unwrap();
    let picture = client.get(address).await;
    assert_eq!(picture.status, 200);
    assert_eq!(picture.header("content-type"), Some("image/png"));
    let kept = picture.header("cache-control").unwrap();
    assert!(kept.contains("immutable"), "{kept}");
    assert!(picture.body.starts_with(b"\x89PNG"));

    // At a fixed address, clients revalidate their copy.
    let bare = address.split('?').next().unwrap();
    let again = client.get(bare).await;
    assert_eq!(again.header("cache-control"), Some("no-cache"));
    let tag = again.header("etag").unwrap();
    let request = client.request(Method::GET, bare);
    let unchanged = Answer::to(request.header("if-none-match", tag)).await;
    assert_eq!(unchanged.status, 304);
    assert!(unchanged.body.is_empty());
    client.get("/docs/pictures/none.png").await.error(404);
}
