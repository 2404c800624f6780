//! Lists: pages, cursors, and invalid requests.

use harness::Organization;
use serde_json::{Value, json};

use super::only_begins;
use crate::system;

async fn runs_of_new_workflow(org: &Organization<'_>) -> (String, String) {
    let workflow = org.workflow(&only_begins()).await;
    let list = format!("/api/v1/workflows/{workflow}/runs");
    (workflow, list)
}

async fn run_ids(org: &Organization<'_>, path: &str) -> (Vec<String>, Value, Option<String>) {
    let answer = org.admin.get(path).await;
    let list = answer.ok(200);
    let items = list["data"].as_array().unwrap();
    let ids = items.iter().map(|run| run["runId"].as_str().unwrap());
    (
        ids.map(str::to_owned).collect(),
        list.clone(),
        answer.next(),
    )
}

#[tokio::test]
async fn runs_are_walked_page_by_page_and_by_cursor() {
    let org = system().await.organization().await;
    let (workflow, list) = runs_of_new_workflow(&org).await;
    let mut triggered = Vec::new();
    for _ in 0..25 {
        triggered.push(org.trigger(&workflow, &json!({})).await);
    }
    triggered.reverse();
    org.until(&format!("{list}?state=SUCCEEDED"), |l| l["total"] == 25)
        .await;

    let (first, envelope, _) = run_ids(&org, &list).await;
    assert_eq!(first, triggered[..20], "twenty, newest first");
    assert_eq!(
        (&envelope["total"], &envelope["page"], &envelope["limit"]),
        (&json!(25), &json!(1), &json!(20))
    );
    let (second, envelope, next) = run_ids(&org, &format!("{list}?page=2")).await;
    assert_eq!(second, triggered[20..]);
    assert_eq!((&envelope["page"], next), (&json!(2), None));
    let (third, envelope, next) = run_ids(&org, &format!("{list}?page=3&limit=100")).await;
    assert_eq!(
        (third.len(), &envelope["total"], next),
        (0, &json!(25), None)
    );

    let (mut walked, mut page) = (Vec::new(), format!("{list}?limit=7&state=SUCCEEDED"));
    loop {
        let (ids, envelope, next) = run_ids(&org, &page).await;
        assert_eq!(
            (&envelope["total"], &envelope["limit"]),
            (&json!(25), &json!(7))
        );
        walked.extend(ids);
        let Some(next) = next else { break };
        page = next;
        // Changes in the meantime do not affect the pagination.
        runs_of_new_workflow(&org).await;
    }
    assert_eq!(walked, triggered);
}

#[tokio::test]
async fn a_list_says_what_is_wrong_with_its_parameters() {
    let org = system().await.organization().await;
    let (_, runs) = runs_of_new_workflow(&org).await;
    org.until(&runs, |list| list["total"] == 0).await;
    for list in [
        "/api/v1/workflows",
        &runs,
        "/api/v1/keys",
        "/api/v1/webhooks",
    ] {
        for (query, named) in [
            ("limit=0", "limit"),
            ("limit=101", "limit"),
            ("limit=-1", "limit"),
            ("limit=ten", "limit"),
            ("limit=1.5", "limit"),
            ("limit=", "limit"),
            ("page=0", "page"),
            ("page=-1", "page"),
            ("page=x", "page"),
        ] {
            let answer = org.admin.get(&format!("{list}?{query}")).await;
            assert_eq!(answer.status, 400, "{list}?{query}");
            assert!(answer.error(400).contains(named));
        }
        let past = format!("{list}?page=1000000&limit=100");
        assert_eq!(org.admin.get(&past).await.ok(200)["data"], json!([]));
    }
    for state in ["DONE", "succeeded", ""] {
        let answer = org.admin.get(&format!("{runs}?state={state}")).await;
        assert!(answer.error(400).contains("state"), "{state}");
    }
    for state in [
        "QUEUED",
        "RUNNING",
        "WAITING",
        "SUCCEEDED",
        "FAILED",
        "CANCELLED",
    ] {
        let list = org.admin.get(&format!("{runs}?state={state}")).await;
        assert_eq!(list.ok(200)["total"], 0, "{state}");
    }
}
