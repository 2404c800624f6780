//! Lists, page by page and walked as a whole.

use axum::body::HttpBody as _;
use futures::StreamExt as _;
use serde_json::Value;

use crate::support::TestApi;

/// 250 runs, ten at each time, of which every fifth failed.
const RUNS: &str = "INSERT INTO runs
    SELECT $1, 'r' || lpad(i::text, 3, '0'), 'w1', 1,
           CASE WHEN i % 5 = 0 THEN 'FAILED' ELSE 'QUEUED' END, '{}',
           '2026-11-21T00:00:00Z'::timestamptz + make_interval(secs => i / 10), NULL, NULL, NULL, '[]'
    FROM generate_series(0, 249) AS i";
const WORKFLOWS: &str = "INSERT INTO workflows
    SELECT $1, 'w' || i, 'One', 'ACTIVE', 1, 60, true, '[]', now() - make_interval(secs => i), now()
    FROM generate_series(1, 45) AS i";

async fn api_with_runs() -> TestApi {
    let api = TestApi::open().await;
    for rows in [RUNS, WORKFLOWS] {
        api.execute(rows).await;
    }
    api.count_lists().await;
    api
}

/// Newest first, then by id.
fn expected(failed_only: bool) -> Vec<String> {
    let moments = (0..25).rev();
    let runs = moments.flat_map(|moment| (0..10).map(move |i| moment * 10 + i));
    runs.filter(|i| !failed_only || i % 5 == 0)
        .map(|i| format!("r{i:03}"))
        .collect()
}

#[tokio::test]
async fn pages_by_number_make_up_the_list() {
    let api = api_with_runs().await;
    for (filter, failed_only, total) in [("", false, 250), ("&state=FAILED", true, 50)] {
        for limit in [7, 20, 100] {
            let mut found = Vec::new();
            for page in 1..=total / limit + 1 {
                let path = format!("/api/v1/workflows/w1/runs?limit={limit}&page={page}{filter}");
                let answer = api.get(&path).await;
                let list = answer.json();
                assert_eq!(list["total"], total, "{path}");
                assert_eq!(list["page"], page, "{path}");
                assert_eq!(list["limit"], limit, "{path}");
                assert_eq!(answer.next().is_some(), page * limit < total, "{path}");
                found.extend(answer.all("runId"));
            }
            assert_eq!(found, expected(failed_only), "limit {limit}{filter}");
        }
    }
    api.close().await;
}

#[tokio::test]
async fn a_list_is_walked_by_its_links_while_it_grows() {
    let api = api_with_runs().await;
    let mut next = Some("/api/v1/workflows/w1/runs?limit=13".to_owned());
    let (mut found, mut pages) = (Vec::new(), 0);
    while let Some(path) = next {
        let answer = api.get(&path).await;
        pages += 1;
        assert_eq!(answer.json()["page"], pages);
        found.extend(answer.all("runId"));
        next = answer.next();
        if pages == 2 {
            let newer = "INSERT INTO runs
                SELECT $1, 'x' || i, 'w1', 1, 'QUEUED', '{}', now() + '1 day', NULL, NULL, NULL, '[]'
                FROM generate_series(1, 20) AS i";
            api.execute(newer).await;
        }
    }
    assert_eq!(found, expected(false));
    api.close().await;
}

#[tokio::test]
async fn a_page_past_the_end_is_empty() {
    let api = api_with_runs().await;
    for path in [
        "/api/v1/workflows/w1/runs?page=14",
        "/api/v1/workflows/w1/runs?page=9223372036854775807&limit=100",
        "/api/v1/workflows/w1/runs?page=99999999999999999999",
    ] {
        let answer = api.get(path).await;
        let list = answer.json();
        assert_eq!(
            (answer.status, &list["total"]),
            (200, &250.into()),
            "{path}"
        );
        assert!(list["data"].as_array().unwrap().is_empty(), "{path}");
        assert_eq!(answer.next(), None, "{path}");
    }
    let answer = api.get("/api/v1/workflows/w2/runs").await;
    assert_eq!(answer.json()["total"], 0);
    assert_eq!(api.get("/api/v1/workflows/w46/runs").await.status, 404);
    api.close().await;
}

#[tokio::test]
async fn other_lists_have_pages_too() {
    let api = api_with_runs().await;
    let first = api.get("/api/v1/workflows").await;
    assert_eq!(first.all("workflowId")[0], "w1");
    assert_eq!(first.json()["total"], 45);
    let second = api.get(&first.next().unwrap()).await;
    let by_number = api.get("/api/v1/workflows?page=2").await;
    assert_eq!(second.json(), by_number.json());
    let last = api.get(&second.next().unwrap()).await;
    assert_eq!((last.all("workflowId").len(), last.next()), (5, None));
    api.close().await;
}

#[tokio::test]
async fn wrong_parameters_are_refused_before_anything_is_looked_for() {
    let api = api_with_runs().await;
    for (parameters, word) in [
        ("limit=101", "limit"),
        ("limit=0", "limit"),
        ("page=0", "page"),
        ("page=1.5", "page"),
        ("state=DONE", "state"),
        ("state=failed", "state"),
        ("state=", "state"),
        ("cursor=nothing", "cursor"),
    ] {
        let answer = api
            .get(&format!("/api/v1/workflows/nowhere/runs?{parameters}"))
            .await;
        assert_eq!(answer.status, 400, "{parameters}");
        let error = answer.error();
        assert!(error.starts_with(word), "{parameters}: {error}");
    }
    api.close().await;
}

/// Thirty runs with half a megabyte of steps each.
const LARGE_RUNS: &str = "INSERT INTO runs
    SELECT $1, 'r' || lpad(i::text, 2, '0'), 'w1', 1, 'FAILED', '{}',
           '2026-11-21T00:00:00Z'::timestamptz - make_interval(secs => i), NULL, NULL, NULL,
           json_build_array(json_build_object('id', 'a', 'output', repeat('x', 500000)))
    FROM generate_series(0, 29) AS i";

#[tokio::test]
async fn a_page_of_large_runs_is_sent_run_by_run() {
    let api = TestApi::open().await;
    for rows in [LARGE_RUNS, WORKFLOWS] {
        api.execute(rows).await;
    }
    api.count_lists().await;
    for (query, numbers, total) in [
        ("limit=100", 0..30, 30),
        ("limit=20", 0..20, 30),
        ("limit=20&page=2&state=FAILED", 20..30, 30),
    ] {
        let path = format!("/api/v1/workflows/w1/runs?{query}");
        let answer = api.open_answer("GET", &path, &[]).await;
        assert!(answer.body().size_hint().exact().is_none(), "{path}");
        let goes_on = answer.headers().contains_key("link");
        assert_eq!(goes_on, numbers.end < 30, "{path}");
        let mut pieces = answer.into_body().into_data_stream();
        let mut whole = Vec::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece.unwrap();
            assert!(piece.len() < 1_000_000, "more than one run at a time");
            whole.extend_from_slice(&piece);
        }
        let list: Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(list["total"], total, "{path}");
        let runs = list["data"].as_array().unwrap().iter();
        let ids: Vec<_> = runs.map(|run| run["runId"].as_str().unwrap()).collect();
        let expected: Vec<_> = numbers.map(|number| format!("r{number:02}")).collect();
        assert_eq!(ids, expected, "{path}");
        let steps = &list["data"][0]["steps"][0]["output"];
        assert_eq!(steps.as_str().unwrap().len(), 500_000);
    }
    // The next page is found as always.
    let mut next = Some("/api/v1/workflows/w1/runs?limit=13".to_owned());
    let mut walked = Vec::new();
    while let Some(path) = next {
        let answer = api.get(&path).await;
        walked.extend(answer.all("runId"));
        next = answer.next();
    }
    let all: Vec<_> = (0..30).map(|number| format!("r{number:02}")).collect();
    assert_eq!(walked, all);
    api.close().await;
}
