//! `q` on the lists of keys, endpoints and deliveries, in the API and on the pages.

use harness::{Organization, Owner, Receiver, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::deliveries::{path, run, webhook};
use crate::system;

/// The names of a list's items, in its order, and its total.
async fn found(org: &Organization<'_>, list: &str, name: &str) -> (Vec<String>, Value) {
    let list = org.admin.get(list).await.ok(200);
    let items = list["data"].as_array().unwrap().iter();
    let names = items.map(|item| item[name].as_str().unwrap().to_owned());
    (names.collect(), list["total"].clone())
}

#[tokio::test]
async fn keys_are_found_by_a_part_of_their_name() {
    let org = system().await.organization().await;
    let mut ids = Vec::new();
    for name in ["Web shop", "Old WEBSITE", "100% of Grace's_phone"] {
        let terms = json!({"name": name, "scopes": ["read:leads"]});
        let key = org.admin.post("/api/v1/keys", &terms).await.ok(201);
        ids.push(key["keyId"].as_str().unwrap().to_owned());
    }
    org.until("/api/v1/keys", |list| list["total"] == 4).await;
    for (q, names) in [
        ("web", &["Old WEBSITE", "Web shop"][..]),
        ("b%20s", &["Web shop"]),
        ("0%25%20of", &["100% of Grace's_phone"]),
        ("s_p", &["100% of Grace's_phone"]),
        ("b_s", &[]),
        (ids[1].as_str(), &["Old WEBSITE"]),
    ] {
        let (shown, total) = found(&org, &format!("/api/v1/keys?q={q}"), "name").await;
        assert_eq!(shown, names, "{q}");
        assert_eq!(total, names.len(), "{q}");
    }
    let (first, total) = found(&org, "/api/v1/keys?q=web&limit=1", "name").await;
    assert_eq!(
        (first.len(), total),
        (1, json!(2)),
        "a page of what was found"
    );
    let long = format!("/api/v1/keys?q={}", "x".repeat(201));
    assert!(org.admin.get(&long).await.error(400).starts_with("q: "));
}

#[tokio::test]
async fn endpoints_are_found_by_address_and_description() {
    let org = system().await.organization().await;
    for (url, description) in [
        ("https://shop.example.org/hooks", None),
        ("https://crm.example.org/in", Some("For the Shop's crew")),
        ("https://crm.example.org/out", None),
    ] {
        let given = json!({"url": url, "description": description});
        org.admin.post("/api/v1/webhooks", &given).await.ok(201);
    }
    org.until("/api/v1/webhooks", |list| list["total"] == 3)
        .await;
    for (q, count) in [("shop", 2), ("CRM.example", 2), ("crew", 1), ("nowhere", 0)] {
        let (shown, total) = found(&org, &format!("/api/v1/webhooks?q={q}"), "url").await;
        assert_eq!((shown.len(), total), (count, json!(count)), "{q}");
    }
}

#[tokio::test]
async fn deliveries_are_found_by_event_type_and_by_id() {
    let org = system().await.organization().await;
    let receiver = Receiver::start().await;
    let hook = webhook(&org, &receiver.url("/"), &["run.*", "workflow.*"]).await;
    let other = webhook(&org, &receiver.url("/other"), &["run.*"]).await;
    for _ in 0..3 {
        run(&org).await;
    }
    let all = format!("{}/deliveries", path(&hook));
    let ended = format!("{all}?q=run.succeeded");
    let list = org.until(&ended, |list| list["total"] == 3).await;
    let one = &list["data"][1];
    let (delivery, event) = (
        one["id"].as_str().unwrap(),
        one["eventId"].as_str().unwrap(),
    );
    for (q, types) in [
        ("RUN.SUCC", &["run.succeeded"][..]),
        ("run.s", &["run.started", "run.succeeded"]),
        ("workflow.*", &["workflow.saved", "workflow.triggered"]),
        ("succeeded_", &[]),
        ("%25", &[]),
    ] {
        let (shown, total) = found(&org, &format!("{all}?limit=100&q={q}"), "type").await;
        assert_eq!(total, shown.len(), "{q}");
        let only = shown
            .iter()
            .all(|kind| types.contains(&kind.as_str()) || kind.contains("step"));
        assert!(only, "{q}: {shown:?}");
        assert!(
            types.iter().all(|kind| shown.iter().any(|one| one == kind)),
            "{q}: {shown:?}"
        );
    }
    for q in [delivery, event] {
        let (shown, total) = found(&org, &format!("{all}?q={q}"), "id").await;
        assert_eq!((shown, total), (vec![delivery.to_owned()], json!(1)), "{q}");
        let (past, total) = found(&org, &format!("{all}?page=2&q={q}"), "id").await;
        assert_eq!((past.len(), total), (0, json!(1)), "{q}");
    }
    // Another endpoint got the same event in its own delivery.
    let theirs = format!("{}/deliveries?q={event}", path(&other));
    let (theirs, _) = found(&org, &theirs, "id").await;
    assert!(theirs.len() == 1 && theirs[0] != delivery, "{theirs:?}");

    // Paged by cursor, newest first, in the order of the whole list.
    let (whole, _) = found(&org, &format!("{all}?limit=100"), "id").await;
    let (mut walked, mut next) = (Vec::new(), Some(format!("{all}?limit=2&q=r")));
    while let Some(page) = next {
        let answer = org.admin.get(&page).await;
        let list = answer.ok(200);
        let ids = list["data"].as_array().unwrap().iter();
        walked.extend(ids.map(|one| one["id"].as_str().unwrap().to_owned()));
        next = answer.next();
    }
    let (sought, total) = found(&org, &format!("{all}?limit=100&q=r"), "id").await;
    assert_eq!((&walked, total), (&sought, json!(sought.len())));
    assert!(sought.iter().all(|id| whole.contains(id)));

    let stranger = system().await.organization().await;
    let theirs = stranger.admin.get(&format!("{all}?q=run")).await;
    theirs.error(404);
}

#[tokio::test]
async fn the_pages_find_them_too() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    for name in ["Web shop", "Telephone"] {
        owner
            .key(&json!({"name": name, "scopes": ["read:leads"]}))
            .await;
    }
    for url in ["https://shop.example.org/", "https://crm.example.org/"] {
        let made = "/dashboard/api/v1/webhooks";
        let given = json!({"url": url});
        owner.send(Method::POST, made, Some(&given)).await.ok(201);
    }
    for (place, there, not_there) in [
        ("settings/api-manager?q=shop", "Web shop", "Telephone"),
        (
            "webhooks?q=SHOP",
            "https://shop.example.org/",
            "https://crm.example.org/",
        ),
    ] {
        let page = eventually("what was found", async || {
            let page = owner.page(&format!("/dashboard/{place}")).await.text();
            let page = page.replace("&#x2f;", "/");
            page.contains(there).then_some(page)
        })
        .await;
        assert!(!page.contains(not_there), "{place}");
    }
    let none = owner
        .page("/dashboard/settings/api-manager?q=%3Cb%3E")
        .await;
    let none = none.text();
    assert!(none.contains("value=\"&lt;b&gt;\"") && none.contains("No key has this"));
}
