//! The dashboard's home, workflows and runs.

use harness::{Client, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::dashboard::Owner;
use super::{active, only_begins};
use crate::system;

async fn admin(owner: &Owner) -> Client {
    let key = owner
        .key(&json!({"name": "setup", "scopes": ["admin"]}))
        .await;
    let client = system().await.client();
    client.with_key(key["key"].as_str().unwrap())
}

/// Waits until a page contains this text.
async fn page_with(owner: &Owner, path: &str, text: &str) -> String {
    eventually(text, async || {
        let page = owner.page(path).await;
        let html = page.text().replace("&#x2f;", "/");
        (page.status == 200 && html.contains(text)).then_some(html)
    })
    .await
}

async fn trigger(admin: &Client, workflow: &str, payload: &Value) -> String {
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    let answer = admin.post(&path, payload).await;
    answer.ok(202)["runId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_home_page_shows_the_business_in_charts_and_as_files() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let empty = owner.page("/dashboard").await.text();
    assert!(empty.contains("No orders or leads yet"), "{empty}");
    let admin = admin(&owner).await;
    let order = json!({"id": "o-1", "orderNumber": "1", "status": "ACTIVE", "amount": 1_234_567});
    admin.post("/api/v1/records/orders", &order).await.ok(201);
    for (id, source, status) in [
        ("l-1", "=HYPERLINK(1)", "QUALIFIED"),
        ("l-2", "=HYPERLINK(1)", "NEW"),
        ("l-3", "<b>fair</b>", "LOST"),
    ] {
        let lead = json!({"id": id, "name": id, "source": source, "status": status});
        admin.post("/api/v1/records/leads", &lead).await.ok(201);
    }
    let page = page_with(&owner, "/dashboard", "12,345.67").await;
    for word in ["Revenue by month", "<figure", "<figcaption", "role=\"img\""] {
        assert!(page.contains(word), "{word}");
    }
    // Other tests write meanwhile.
    assert!(page.contains("up to date") || page.contains("still being read in"));
    assert!(!page.contains("<b>fair"));
    assert!(page.len() < 150_000, "{}", page.len());
    for (name, line) in [
        ("revenue", "12345.67\r\n"),
        ("orders", "Active,1\r\n"),
        ("leads", "'=HYPERLINK(1),2,1,50.0\r\n"),
        ("runs", "hour,runs,failed\r\n"),
        ("deliveries", "hour,deliveries,failed\r\n"),
    ] {
        let path = format!("/dashboard/charts/{name}.csv");
        let file = eventually(name, async || {
            let file = owner.page(&path).await;
            file.text().contains(line).then_some(file)
        })
        .await;
        assert_eq!(file.header("content-type"), Some("text/csv; charset=utf-8"));
        assert!(file.header("content-disposition").unwrap().contains(name));
    }
    assert_eq!(owner.page("/dashboard/charts/none.csv").await.status, 404);
}

#[tokio::test]
async fn a_workflow_is_shown_as_a_graph_and_its_definition_can_be_saved_again() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let workflow = active(&json!([
        {"id": "start", "type": "TRIGGER", "on": {"event": "lead.created", "filter": "data.score >= 50"}, "next": ["hot"]},
        {"id": "hot", "type": "CONDITION", "if": "trigger.score >= 80", "then": ["tell"], "else": ["wait"]},
        {"id": "wait", "type": "WAIT_FOR_EVENT", "event": "contact.*", "timeoutSeconds": 60, "onTimeout": ["tell"]},
        {"id": "tell", "type": "NOTIFY", "event": "welcome"},
    ]));
    let path = "/dashboard/api/v1/workflows/graph";
    let saved = owner.send(Method::PUT, path, Some(&workflow)).await;
    assert_eq!(saved.ok(200)["version"], 1);
    let shown = format!("/dashboard/workflows/graph?position={}", saved.position());
    let page = owner.page(&shown).await.text().replace("&#x2f;", "/");
    for word in [
        "<svg",
        "#step-hot",
        ">then<",
        ">else<",
        ">timeout<",
        "<code>lead.created</code>",
        "data-status=\"PAUSED\"",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
    let document = page.split_once("<textarea id=\"document\"").unwrap().1;
    let document = document
        .split_once('>')
        .unwrap()
        .1
        .split_once("</textarea>")
        .unwrap()
        .0;
    let document = document
        .replace("&quot;", "\"")
        .replace("&gt;", ">")
        .replace("&#x27;", "'");
    let document: Value = serde_json::from_str(&document).unwrap();
    let again = owner.send(Method::PUT, path, Some(&document)).await;
    assert_eq!(again.ok(200)["version"], 1, "nothing has changed");
    let mut paused = document;
    paused["status"] = json!("PAUSED");
    let paused = owner.send(Method::PUT, path, Some(&paused)).await;
    assert_eq!(paused.ok(200)["version"], 2);
    let older = format!(
        "/dashboard/workflows/graph?version=1&position={}",
        paused.position()
    );
    let page = owner.page(&older).await.text();
    assert!(page.contains("of version 1") && page.contains("data-status=\"ACTIVE\""));
    assert_eq!(
        owner
            .page("/dashboard/workflows/graph?version=9")
            .await
            .status,
        404
    );
    assert_eq!(owner.page("/dashboard/workflows/none").await.status, 404);
}

#[tokio::test]
async fn runs_are_found_by_workflow_state_time_id_and_payload() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let admin = admin(&owner).await;
    admin
        .put("/api/v1/workflows/one", &only_begins())
        .await
        .ok(200);
    let waits = active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["wait"]},
        {"id": "wait", "type": "DELAY", "seconds": 3_600},
    ]));
    admin.put("/api/v1/workflows/two", &waits).await.ok(200);
    let one = trigger(&admin, "one", &json!({"customer": "Märta \"Q\""})).await;
    let two = trigger(&admin, "two", &json!({"customer": "Bo"})).await;
    page_with(&owner, "/dashboard/runs?state=SUCCEEDED", &one).await;
    page_with(&owner, "/dashboard/runs?state=WAITING", &two).await;
    for (query, finds_one, finds_two) in [
        ("", true, true),
        ("workflow=one&state=&from=&to=&q=", true, false),
        ("state=WAITING", false, true),
        ("from=2020-01-01&to=2021-01-01T00:00", false, false),
        ("from=2020-01-01", true, true),
        ("q=m%C3%A4rta+%22q%22", true, false),
        ("q=nobody", false, false),
    ] {
        let page = owner.page(&format!("/dashboard/runs?{query}")).await.text();
        assert_eq!(page.contains(&one), finds_one, "{query}");
        assert_eq!(page.contains(&two), finds_two, "{query}");
    }
    let page = owner.page(&format!("/dashboard/runs?q={two}")).await.text();
    assert!(page.contains(&format!("/runs/{two}\"")) && !page.contains(&one));
    for wrong in ["state=DONE", "from=soon", "cursor=x"] {
        let page = owner.page(&format!("/dashboard/runs?{wrong}")).await;
        assert_eq!(page.status, 400, "{wrong}");
    }
    let first = owner
        .page("/dashboard/runs?limit=1")
        .await
        .text()
        .replace("&#x2f;", "/");
    assert!(first.contains(&two) && !first.contains(&one));
    let older = first
        .split("<a href=\"")
        .find(|link| link.contains("cursor="))
        .unwrap();
    let older = older.split('"').next().unwrap().replace("&amp;", "&");
    let second = owner.page(&older).await.text();
    assert!(second.contains(&one) && !second.contains(&two));
}

#[tokio::test]
async fn all_matching_runs_are_listed_beforehand_and_can_be_cancelled() {
    let system = system().await;
    let owner = Owner::sign_in(system).await;
    let admin = admin(&owner).await;
    let waits = active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["wait"]},
        {"id": "wait", "type": "DELAY", "seconds": 3_600},
    ]));
    admin.put("/api/v1/workflows/waits", &waits).await.ok(200);
    admin.put("/api/v1/workflows/other", &waits).await.ok(200);
    for _ in 0..3 {
        trigger(&admin, "waits", &json!({})).await;
    }
    let kept = trigger(&admin, "other", &json!({})).await;
    let matching = "/dashboard/runs/matching?action=cancel&workflow=waits&limit=2";
    let found = eventually("all runs to be counted", async || {
        let found = owner.page(matching).await.ok(200);
        (found["count"] == 3).then_some(found)
    })
    .await;
    let rest = owner.page(found["next"].as_str().unwrap()).await.ok(200);
    assert!(rest["next"].is_null());
    let runs = [&found["runs"], &rest["runs"]];
    let ids: Vec<&str> = runs
        .iter()
        .flat_map(|runs| runs.as_array().unwrap())
        .map(|run| run["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 3);
    for id in ids {
        let cancel = format!("/dashboard/api/v1/runs/{id}/cancel");
        owner.send(Method::POST, &cancel, None).await.ok(202);
    }
    eventually("no run to be left", async || {
        (owner.page(matching).await.ok(200)["count"] == 0).then_some(())
    })
    .await;
    let retry = "/dashboard/runs/matching?action=retry";
    assert_eq!(
        owner.page(retry).await.ok(200)["count"],
        0,
        "nobody asked for the cancelled ones"
    );
    let retry = "/dashboard/runs/matching?action=retry&state=CANCELLED";
    assert_eq!(owner.page(retry).await.ok(200)["count"], 3);
    let page = owner.page(&format!("/dashboard/runs/{kept}")).await.text();
    assert!(
        page.contains("data-do=\"cancel\"") && page.contains("node "),
        "{page}"
    );
    for wrong in ["action=delete", "action=cancel&q=x", ""] {
        let answer = owner
            .page(&format!("/dashboard/runs/matching?{wrong}"))
            .await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn another_organization_sees_none_of_it() {
    let system = system().await;
    let (owner, other) = (Owner::sign_in(system).await, Owner::sign_in(system).await);
    let admin = admin(&owner).await;
    admin
        .put("/api/v1/workflows/theirs", &only_begins())
        .await
        .ok(200);
    let run = trigger(&admin, "theirs", &json!({"customer": "theirs"})).await;
    page_with(&owner, "/dashboard/runs?state=SUCCEEDED", &run).await;
    for path in [
        "/dashboard".to_owned(),
        "/dashboard/workflows".to_owned(),
        "/dashboard/runs".to_owned(),
        "/dashboard/runs?workflow=theirs".to_owned(),
        format!("/dashboard/runs?q={run}"),
    ] {
        let page = other.page(&path).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(!page.text().contains("/runs/01") && !page.text().contains("workflows/theirs"));
    }
    let none = "/dashboard/runs/matching?action=cancel&workflow=theirs";
    assert_eq!(other.page(none).await.ok(200)["count"], 0);
    let workflow = "/dashboard/workflows/theirs";
    assert_eq!(other.page(workflow).await.status, 404);
    for path in [
        "/dashboard/runs/matching",
        workflow,
        "/dashboard/charts/revenue.csv",
    ] {
        let nobody = system.client().get(path).await;
        assert_eq!(nobody.status, 303, "{path}");
    }
}
