//! The shapes of responses.

use crate::support::TestApi;
use serde_json::json;

#[tokio::test]
async fn a_contact_has_all_its_fields() {
    let api = TestApi::open().await;
    api.execute(
        "INSERT INTO contacts VALUES ($1, 'a/b ü', 'Ada', NULL, 'ada@example.com', NULL, NULL,
             NULL, NULL, NULL, NULL, NULL, '2026-11-21T14:09:33Z', '2026-11-21T14:09:33.125Z')",
    )
    .await;
    let answer = api.get("/api/v1/records/contacts/a%2Fb%20%C3%BC").await;
    assert_eq!(
        answer.json(),
        json!({
            "id": "a/b ü", "firstName": "Ada", "lastName": null, "email": "ada@example.com",
            "phone": null, "jobTitle": null, "companyId": null, "companyName": null,
            "city": null, "country": null, "owner": null,
            "createdAt": "2026-11-21T14:09:33Z", "updatedAt": "2026-11-21T14:09:33.125Z",
        })
    );
    for path in ["/api/v1/records/contacts/b", "/api/v1/records/contacts/%00"] {
        let answer = api.get(path).await;
        assert_eq!((answer.status, answer.error().is_empty()), (404, false));
    }
    api.close().await;
}

#[tokio::test]
async fn what_is_within_a_record_reads_as_an_object() {
    let api = TestApi::open().await;
    api.execute(
        "INSERT INTO orders VALUES ($1, 'o', '7', 'ACTIVE', -5, NULL, 'Ada', NULL, NULL,
             '2026-11-21T14:09:33Z', '2026-11-21T14:09:33.125Z')",
    )
    .await;
    assert_eq!(
        api.get("/api/v1/records/orders/o").await.json(),
        json!({
            "id": "o", "orderNumber": "7", "status": "ACTIVE", "amount": -5, "plan": null,
            "client": {"name": "Ada", "email": null}, "product": {"name": null},
            "createdAt": "2026-11-21T14:09:33Z", "updatedAt": "2026-11-21T14:09:33.125Z",
        })
    );
    api.close().await;
}

#[tokio::test]
async fn a_probability_reads_as_it_was_written() {
    let api = TestApi::open().await;
    api.execute(
        "INSERT INTO deals (org_id, id, title, probability, expected_close_date, created_at,
                 updated_at)
             SELECT $1, id, 'T', id::double precision, '2026-02-28', now(), now()
             FROM UNNEST('{50,62.5,0,100}'::text[]) AS written (id)",
    )
    .await;
    for written in ["50", "62.5", "0", "100"] {
        let path = format!("/api/v1/records/deals/{written}");
        let deal = api.get(&path).await;
        let text = deal.text();
        assert!(
            text.contains(&format!("\"probability\":{written},")),
            "{text}"
        );
        assert_eq!(deal.json()["expectedCloseDate"], "2026-02-28");
    }
    api.close().await;
}

#[tokio::test]
async fn a_run_is_shown_as_it_was_recorded() {
    let api = TestApi::open().await;
    api.execute(
        r#"INSERT INTO runs VALUES ($1, 'r1', 'w1', 3, 'FAILED',
               '{"z": 1, "a": 12345678901234567890.5, "n": "\u0000"}', '2026-11-21T14:00:00Z',
               '2026-11-21T14:00:01Z', '2026-11-21T14:00:02Z', 'no',
               '[{"id": "start", "type": "TRIGGER", "state": "SUCCEEDED", "attempts": []}]')"#,
    )
    .await;
    let answer = api.get("/api/v1/runs/r1").await;
    let text = answer.text();
    // Numbers and the order of keys are preserved as the caller wrote them.
    assert!(
        text.contains(r#"{"z": 1, "a": 12345678901234567890.5, "n": "\u0000"}"#),
        "{text}"
    );
    let run = answer.json();
    assert_eq!(run["runId"], "r1");
    assert_eq!(run["workflowId"], "w1");
    assert_eq!(run["workflowVersion"], 3);
    assert_eq!(run["state"], "FAILED");
    assert_eq!(run["createdAt"], "2026-11-21T14:00:00Z");
    assert_eq!(run["startedAt"], "2026-11-21T14:00:01Z");
    assert_eq!(run["endedAt"], "2026-11-21T14:00:02Z");
    assert_eq!(run["error"], "no");
    assert_eq!(run["steps"][0]["id"], "start");
    assert_eq!(api.get("/api/v1/runs/r2").await.status, 404);
    api.close().await;
}

#[tokio::test]
async fn a_workflow_has_its_steps_and_the_list_has_not() {
    let api = TestApi::open().await;
    api.execute(
        r#"INSERT INTO workflows VALUES ($1, 'w1', 'Welcome', 'ACTIVE', 2, 60, true,
               '[{"id": "start", "type": "TRIGGER"}]', '2026-11-21T14:00:00Z',
               '2026-11-21T15:00:00Z')"#,
    )
    .await;
    let workflow = api.get("/api/v1/workflows/w1").await.json();
    assert_eq!(workflow["workflowId"], "w1");
    assert_eq!(workflow["steps"][0]["type"], "TRIGGER");
    let list = api.get("/api/v1/workflows").await.json();
    assert_eq!(
        list,
        json!({
            "data": [{"workflowId": "w1", "name": "Welcome", "status": "ACTIVE", "version": 2,
                      "updatedAt": "2026-11-21T15:00:00Z"}],
            "total": 1, "page": 1, "limit": 20,
        })
    );
    api.close().await;
}

#[tokio::test]
async fn a_key_says_when_it_was_last_used() {
    let api = TestApi::open().await;
    api.execute(
        "INSERT INTO api_keys VALUES
             ($1, 'k1', 'One', '{admin}', 1000, '2027-01-01', '2026-11-21T14:00:00Z'),
             ($1, 'k2', 'Two', '{}', 5, NULL, '2026-11-20T14:00:00Z')",
    )
    .await;
    let used = "INSERT INTO limit_windows (counter, second, used, ends)
                VALUES ('hourly/k1', 1763733600, 1, 0), ('minute/k1', 60, 1, 0)";
    sqlx::query(used).execute(&api.pool).await.unwrap();
    let last_used = async || api.get("/api/v1/keys").await.json()["data"].clone();
    let keys = last_used().await;
    assert_eq!(
        keys[0],
        json!({"keyId": "k1", "name": "One", "scopes": ["admin"], "rateLimit": 1000,
               "expiresAt": "2027-01-01T00:00:00Z", "createdAt": "2026-11-21T14:00:00Z",
               "lastUsedAt": "2025-11-21T14:00:00Z", "createdBy": "operator"})
    );
    assert_eq!(keys[1]["lastUsedAt"], json!(null));
    // The counters of an idle key are swept away, but its last use is kept.
    sqlx::query("SELECT sweep_limits(100)")
        .execute(&api.pool)
        .await
        .unwrap();
    assert_eq!(last_used().await[0]["lastUsedAt"], "2025-11-21T14:00:00Z");
    api.close().await;
}

#[tokio::test]
async fn a_webhook_has_no_secret_and_its_deliveries_have_their_attempts() {
    let api = TestApi::open().await;
    api.execute(
        "INSERT INTO webhooks VALUES ($1, 'h1', 'https://a.example/x', '{run.*}', 'Ours',
             'ENABLED', NULL, '2026-11-21T14:00:00Z', '2026-11-21T14:00:00Z')",
    )
    .await;
    api.execute(
        r#"INSERT INTO deliveries VALUES
               ($1, 'd1', 'h1', '0197f3a0-0000-7000-8000-000000000001', 7, 'run.started',
                'SUCCEEDED', NULL, '[{"at": "2026-11-21T14:00:00Z", "status": 200,
                "durationMs": 5, "error": null, "response": "ok"}]', now(),
                now())"#,
    )
    .await;
    api.execute("INSERT INTO totals VALUES ($1, 'deliveries', 'h1', 'SUCCEEDED', 1)")
        .await;
    let one = api.get("/api/v1/webhooks/h1").await;
    assert!(!one.text().contains("secret"));
    assert_eq!(one.json()["events"], json!(["run.*"]));
    assert_eq!(
        api.get("/api/v1/webhooks").await.json()["data"][0],
        one.json()
    );
    let deliveries = api.get("/api/v1/webhooks/h1/deliveries").await.json();
    assert_eq!(deliveries["total"], 1);
    let delivery = &deliveries["data"][0];
    assert_eq!(delivery["id"], "d1");
    assert_eq!(delivery["eventId"], "0197f3a0-0000-7000-8000-000000000001");
    assert_eq!(delivery["type"], "run.started");
    assert_eq!(delivery["status"], "SUCCEEDED");
    assert_eq!(delivery["attempts"][0]["durationMs"], 5);
    api.close().await;
}
