//! How the edge changes responses, seen from a client.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{DefaultBodyLimit, Query};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bytes::Bytes;
use schemas::Traceparent;
use serde::Deserialize;
use serde_json::{Value, json};
use service::health::Readiness;
use service::{HttpError, RequestContext, body, edge, health};
use tower::ServiceExt;

#[derive(Deserialize)]
struct Page {
    page: u32,
}

#[derive(Deserialize)]
struct Outer {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    url: String,
}

async fn read_urls(request: Request<Body>) -> Result<String, HttpError> {
    let bytes = body::read(request, body::MAX_JSON_BYTES).await?;
    let outer: Outer = body::parse(&bytes)?;
    Ok(outer.steps.into_iter().map(|step| step.url).collect())
}

async fn panic_always() -> StatusCode {
    panic!("the reason stays inside")
}

fn router() -> Router {
    edge(
        Router::new()
            .route("/page", get(|Query(page): Query<Page>| async move { page.page.to_string() }))
            .route("/bytes", post(|body: Bytes| async move { body.len().to_string() }))
            .route(
                "/json",
                post(read_urls),
            )
            .route("/panic", get(panic_always))
            .route("/fault", get(|| async { HttpError::internal("password=hunter2").into_response() }))
            .route(
                "/trace",
                get(|context: RequestContext| async move {
                    context.traceparent().as_str().to_owned()
                }),
            )
            .layer(DefaultBodyLimit::max(10)),
    )
}

async fn send(request: Request<Body>) -> (StatusCode, HeaderMap, String) {
    let response = router().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (
        parts.status,
        parts.headers,
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

fn request(method: Method, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path)
}

fn error_in(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        body.as_object().unwrap().len(),
        1,
        "nothing but the error: {body}"
    );
    body["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn unknown_path_is_a_json_404() {
    let (status, headers, body) =
        send(request(Method::GET, "/no").body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(error_in(&body), "unknown path");
}

#[tokio::test]
async fn wrong_method_is_a_json_405_that_names_the_right_ones() {
    let request = request(Method::DELETE, "/bytes")
        .body(Body::empty())
        .unwrap();
    let (status, headers, body) = send(request).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(headers["allow"], "POST");
    assert_eq!(error_in(&body), "DELETE is not allowed for this path");
}

#[tokio::test]
async fn a_panic_is_a_500_without_details() {
    let (status, headers, body) =
        send(request(Method::GET, "/panic").body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(headers.contains_key("traceparent"));
    assert!(!error_in(&body).contains("reason"));
}

#[tokio::test]
async fn an_internal_error_keeps_its_source_inside() {
    let (status, _, body) = send(request(Method::GET, "/fault").body(Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!error_in(&body).contains("hunter2"));
}

#[tokio::test]
async fn extractor_errors_take_the_one_shape() {
    let (status, _, body) = send(
        request(Method::GET, "/page?page=x")
            .body(Body::empty())
            .unwrap(),
    )
    .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(error_in(&body).contains("page"), "{body}");

    let large = request(Method::POST, "/bytes")
        .body(Body::from("12345678901"))
        .unwrap();
    let (status, _, body) = send(large).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    error_in(&body);
}

#[tokio::test]
async fn a_json_error_names_the_place() {
    let with = |body: &'static str| {
        let request = request(Method::POST, "/json");
        request.body(Body::from(body)).unwrap()
    };
    let (status, _, body) = send(with(r#"{"steps":[{"url":"a"},{"url":1}]}"#)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        error_in(&body).starts_with("steps[1].url: invalid type"),
        "{body}"
    );

    let (status, _, body) = send(with(r#"{"steps":["#)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        error_in(&body).starts_with("the body is not valid JSON"),
        "{body}"
    );

    let (status, _, body) = send(with(r#"{"steps":[{"url":"a"}]}"#)).await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "a"));
}

#[test]
fn json_is_recognised_by_its_content_type() {
    let is_json = |content_type| {
        let content_type = HeaderValue::from_static(content_type);
        body::is_json(&HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            content_type,
        )]))
    };
    assert!(is_json("application/json; charset=utf-8"));
    assert!(is_json("Application/Problem+JSON"));
    assert!(!is_json("text/plain"));
    assert!(!body::is_json(&HeaderMap::new()));
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_announced_or_not() {
    let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 600_000]));
    let chunks = [chunk(), chunk(), chunk()];
    let unannounced = request(Method::POST, "/json")
        .header("content-type", "application/json")
        .body(Body::from_stream(futures::stream::iter(chunks)))
        .unwrap();
    let (status, _, body) = send(unannounced).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    error_in(&body);
}

#[tokio::test]
async fn the_trace_goes_on_under_a_span_of_its_own() {
    let incoming = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let with_trace = request(Method::GET, "/trace")
        .header("traceparent", incoming)
        .body(Body::empty())
        .unwrap();
    let (_, headers, body) = send(with_trace).await;
    assert_eq!(headers["traceparent"], body.as_str());
    let answered = Traceparent::parse(&body).unwrap();
    assert_eq!(answered.trace_id(), "0af7651916cd43dd8448eb211c80319c");
    assert_ne!(body, incoming);

    let broken = request(Method::GET, "/trace")
        .header("traceparent", "00-zz-zz-01")
        .body(Body::empty())
        .unwrap();
    let (_, _, body) = send(broken).await;
    assert!(Traceparent::parse(&body).is_some());
}

#[tokio::test]
async fn a_header_for_the_answer_is_on_it_whatever_it_is() {
    let promise = |context: RequestContext| async move {
        context.answer_with(
            HeaderName::from_static("ratelimit"),
            HeaderValue::from_static("r=1"),
        );
        HttpError::not_found("no such thing")
    };
    let router = edge(Router::new().route("/promise", get(promise)));
    let ask = request(Method::GET, "/promise")
        .body(Body::empty())
        .unwrap();
    let response = router.oneshot(ask).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(response.headers()["ratelimit"], "r=1");
}

#[tokio::test]
async fn readiness_names_what_is_missing() {
    let readiness = Readiness::default();
    // Two services of one process add it, each when it starts.
    readiness.add_log(|| false);
    readiness.add_log(|| true);
    let ask = async |readiness: &Readiness| {
        let router = edge(health::router(readiness.clone()));
        let ask = request(Method::GET, "/readyz").body(Body::empty()).unwrap();
        let response = router.oneshot(ask).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let (status, body) = ask(&readiness).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        body,
        json!({"ready": true, "checks": {"log": {"ok": true}}})
    );

    readiness.add("postgres", || async {
        Err("refuses connections".to_owned())
    });
    let (status, body) = ask(&readiness).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body["error"], "not ready: postgres: refuses connections");
    assert_eq!(body["checks"]["log"]["ok"], true);
}

#[tokio::test]
async fn metrics_count_requests_by_route() {
    let router = edge(Router::new().route("/counted/{id}", get(|| async { "ok" })))
        .merge(health::router(Readiness::default()));
    let get = |path: &str| request(Method::GET, path).body(Body::empty()).unwrap();
    // The recorder starts at the first request for it.
    router.clone().oneshot(get("/metrics")).await.unwrap();
    router
        .clone()
        .oneshot(get("/counted/7?secret=1"))
        .await
        .unwrap();
    let response = router.oneshot(get("/metrics")).await.unwrap();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let line = body
        .lines()
        .find(|line| {
            line.contains("waypost_http_request_duration_seconds_count")
                && line.contains("/counted/{id}")
        })
        .unwrap_or_else(|| unreachable!("no such line in {body}"));
    assert!(
        line.contains(r#"method="GET""#) && line.contains(r#"status="200""#),
        "{line}"
    );
    assert!(!body.contains("secret"));
}
