//! Lists, page by page and walked as a whole.

use axum::body::HttpBody as _;
use futures::StreamExt as _;
use schemas::AccountId;
use serde_json::Value;
use sqlx::AssertSqlSafe;

use crate::support::{Answer, TestApi};

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

/// The person whose circles are listed.
const MEMBER: AccountId = AccountId(1);

/// 45 rows of each list that is sorted for every request, with few names and few times.
const SHORT_LISTS: [&str; 5] = [
    "INSERT INTO workflows (org_id, workflow_id, name, status, version, timeout_seconds,
                            has_trigger, steps, created_at, updated_at)
     SELECT $1, 'i' || lpad((i * 7 % 45)::text, 2, '0'), ('{ada,Bob,Zoë}'::text[])[i % 3 + 1],
            'ACTIVE', 1, 60, true, '[]', '2026-11-21'::timestamptz + make_interval(secs => i % 4),
            now()
     FROM generate_series(0, 44) AS i",
    "INSERT INTO api_keys (org_id, key_id, name, scopes, rate_limit, expires_at, created_at)
     SELECT org_id, workflow_id, name, '{admin}', 5, NULL, created_at
     FROM workflows WHERE org_id = $1",
    "INSERT INTO webhooks (org_id, webhook_id, url, events, description, status, disabled_reason,
                           created_at, updated_at)
     SELECT org_id, workflow_id, 'https://a.example/' || name, '{}', NULL, 'ENABLED', NULL,
            created_at, now()
     FROM workflows WHERE org_id = $1",
    "INSERT INTO circles (circle_id, owner_account, owner_org, name, created_at)
     SELECT workflow_id, NULL, org_id, name, created_at FROM workflows WHERE org_id = $1",
    "INSERT INTO circle_members (circle_id, account_id, sequence, joined_at, left_at)
     SELECT workflow_id, 1, 1, now(), NULL FROM workflows WHERE org_id = $1",
];
/// The path of each of these lists, the field with its items' ids, and their column and table.
const WORKFLOW_LIST: [&str; 4] = [
    "/api/v1/workflows",
    "workflowId",
    "workflow_id",
    "workflows",
];
const KEY_LIST: [&str; 4] = ["/api/v1/keys", "keyId", "key_id", "api_keys"];
const WEBHOOK_LIST: [&str; 4] = ["/api/v1/webhooks", "id", "webhook_id", "webhooks"];
const CIRCLE_LIST: [&str; 4] = ["/circles", "id", "circle_id", "circles"];

async fn api_with_short_lists() -> TestApi {
    let api = TestApi::open().await;
    for rows in SHORT_LISTS {
        api.execute(rows).await;
    }
    api
}

/// Reads a list by its organization's key, or by a person's token.
async fn read(api: &TestApi, path: &str) -> Answer {
    if path.starts_with("/circles") {
        api.get_by(MEMBER, path).await
    } else {
        api.get(path).await
    }
}

/// Compares a list with what sorting its rows gives: its second page, and the walk by its links.
async fn compare(api: &TestApi, [path, field, id, table]: [&str; 4], (asked, found): (&str, &str)) {
    let sorted = AssertSqlSafe(format!("SELECT {id} FROM {table} {found}, {id}"));
    let sorted: Vec<String> = sqlx::query_scalar(sorted)
        .fetch_all(&api.pool)
        .await
        .unwrap();
    assert!(sorted.len() >= 15, "{path}?{asked}");
    let first = format!("{path}?limit=7&{asked}");
    let second = read(api, &format!("{first}&page=2")).await;
    assert_eq!(second.all(field), sorted[7..14], "{first}");
    let (mut walked, mut next) = (Vec::new(), Some(first.clone()));
    while let Some(page) = next {
        let answer = read(api, &page).await;
        assert_eq!(answer.json()["total"], sorted.len(), "{page}");
        walked.extend(answer.all(field));
        next = answer.next();
    }
    assert_eq!(walked, sorted, "{first}");
}

#[tokio::test]
async fn short_lists_are_sorted_and_walked_in_each_of_their_orders() {
    let api = api_with_short_lists().await;
    for list in [WORKFLOW_LIST, KEY_LIST, WEBHOOK_LIST, CIRCLE_LIST] {
        for order in [
            ("", "ORDER BY created_at DESC"),
            ("sort=-createdAt", "ORDER BY created_at DESC"),
            ("sort=createdAt", "ORDER BY created_at"),
        ] {
            compare(&api, list, order).await;
        }
    }
    for list in [WORKFLOW_LIST, KEY_LIST, CIRCLE_LIST] {
        for order in [
            ("sort=name", "ORDER BY lower(name) COLLATE \"C\""),
            ("sort=-name", "ORDER BY lower(name) COLLATE \"C\" DESC"),
            (
                "sort=createdAt&q=BO",
                "WHERE name = 'Bob' ORDER BY created_at",
            ),
            ("sort=-name&q=zo%C3%AB", "WHERE name = 'Zoë' ORDER BY name"),
        ] {
            compare(&api, list, order).await;
        }
    }
    api.close().await;
}

#[tokio::test]
async fn an_order_that_a_list_does_not_have_is_refused_with_those_that_it_has() {
    let api = api_with_short_lists().await;
    let named = "sort: must be createdAt or name, or one of these after a - to descend, not \"x\"";
    let timed = "sort: must be createdAt or -createdAt, not \"x\"";
    let newest = "sort: must be -createdAt, not \"x\"";
    for (path, error) in [
        ("/api/v1/workflows", named),
        ("/api/v1/keys", named),
        ("/circles", named),
        ("/api/v1/webhooks", timed),
        ("/api/v1/workflows/i01/runs", newest),
        ("/api/v1/webhooks/i01/deliveries", newest),
    ] {
        let answer = read(&api, &format!("{path}?sort=x")).await;
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(answer.error(), error, "{path}");
        let answer = read(&api, &format!("{path}?sort=-createdAt")).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    api.close().await;
}
