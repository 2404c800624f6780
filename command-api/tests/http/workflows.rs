use serde_json::json;

use crate::support::TestApi;

const PATH: &str = "/api/v1/workflows/w1";

fn definition(name: &str) -> String {
    json!({"name": name, "status": "DRAFT", "steps": []}).to_string()
}

#[tokio::test]
async fn saving_counts_versions() {
    let api = TestApi::open().await;
    for (name, version) in [("A", 1), ("B", 2), ("B", 2), ("A", 3)] {
        let answer = api.send("PUT", PATH, definition(name)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(
            answer.json(),
            json!({"workflowId": "w1", "version": version})
        );
        assert!(answer.position().is_some());
    }
}

#[tokio::test]
async fn what_is_wrong_is_named_by_its_place() {
    let api = TestApi::open().await;
    let body = json!({"name": "W", "status": "ACTIVE", "steps": [
        {"id": "a", "type": "TRIGGER", "next": ["b"]}, {"id": "b", "type": "HTTP", "url": "nowhere"}
    ]});
    let answer = api.send("PUT", PATH, body.to_string()).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.error().starts_with("steps[1].url: "),
        "{}",
        answer.body
    );
    for body in ["", "[]", "{", "null"] {
        assert_eq!(api.send("PUT", PATH, body).await.status, 400, "{body}");
    }
    assert_eq!(api.send("PUT", PATH, "x".repeat(300_000)).await.status, 413);
    let plain = [("content-type", "text/plain")];
    assert_eq!(
        api.send_with("PUT", PATH, &plain, definition("A"))
            .await
            .status,
        415
    );
    let answer = api
        .send("PUT", "/api/v1/workflows/%0A", definition("A"))
        .await;
    assert_eq!(answer.status, 400, "{}", answer.body);
}

#[tokio::test]
async fn an_id_may_be_any_text() {
    let api = TestApi::open().await;
    let answer = api
        .send("PUT", "/api/v1/workflows/a%2Fb%20%C3%A4", definition("A"))
        .await;
    assert_eq!(answer.text("workflowId"), "a/b ä");
}
