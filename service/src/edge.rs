//! The HTTP edge: what every request and response passes through.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use traces::Traced as _;
use tracing::Instrument;

use crate::error::{Cause, INTERNAL};
use crate::telemetry::REQUEST_DURATION;
use crate::{HttpError, RequestContext, health};

/// Error texts longer than this do not come from the extractors and are kept as they are.
const MAX_ERROR_TEXT: usize = 64 * 1024;

/// Wraps the whole router of a process, once: the request's trace in and out, its log line and its
/// metrics, a panic as 500, and every error as `{"error": "<message>"}`, including those for
/// unknown paths, wrong methods and the framework's extractors.
pub fn edge(router: Router) -> Router {
    router.layer(from_fn(observe))
}

async fn observe(mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let (context, recorded) = if route.as_ref().is_some_and(is_watching) {
        let context = RequestContext::from_headers(request.headers());
        (context, traces::Span::default())
    } else {
        RequestContext::traced(request.headers())
    };
    request.extensions_mut().insert(context.clone());

    // Off unless debugging: a span for each request would cost the trigger more than its parsing.
    let span = tracing::debug_span!("request", trace_id = context.traceparent().trace_id());
    let answered = AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .within(&recorded)
        .instrument(span);
    let answer = answered.await.unwrap_or_else(|_| panicked());
    let mut response = in_one_shape(answer, &method, route.is_some()).await;
    context.put_answer_headers(response.headers_mut());
    if let Ok(traceparent) = HeaderValue::from_str(context.traceparent().as_str()) {
        response.headers_mut().insert("traceparent", traceparent);
    }

    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    report(&method, route, &response, &context, started.elapsed());
    note(&recorded, &method, route, &response, &context);
    response
}

/// Whether a route is only for monitoring: those would be most of all traces.
fn is_watching(route: &MatchedPath) -> bool {
    [health::READY, health::ALIVE, health::METRICS].contains(&route.as_str())
}

/// Sets a request's attributes on its span: nothing that the client wrote.
fn note(
    span: &traces::Span,
    method: &Method,
    route: &str,
    response: &Response,
    context: &RequestContext,
) {
    if !span.is_recorded() {
        return;
    }
    let (method, status) = (method_label(method), response.status());
    span.rename(|| format!("{method} {route}"));
    span.note("http.request.method", || method);
    span.note("http.route", || route.to_owned());
    span.note("http.response.status_code", || i64::from(status.as_u16()));
    if let Some(org) = context.org() {
        span.note("waypost.org.id", || org.to_string());
    }
    if status.is_server_error() {
        span.failed();
    }
}

/// The panic itself is logged by the process's panic hook, which knows its location.
fn panicked() -> Response {
    HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL)
        .with_cause("the handler panicked")
        .into_response()
}

/// Turns errors that are bare text or empty into the common error format.
async fn in_one_shape(response: Response, method: &Method, route_known: bool) -> Response {
    let status = response.status();
    let an_error = status.is_client_error() || status.is_server_error();
    if !an_error || !is_bare(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_ERROR_TEXT).await.unwrap_or_default();
    let message = match std::str::from_utf8(&text) {
        Ok(text) if !text.is_empty() => text.to_owned(),
        _ => default_message(status, method, route_known),
    };
    let shaped = HttpError::new(status, message).into_response();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(shaped.headers().clone());
    let body: Body = shaped.into_body();
    Response::from_parts(parts, body)
}

fn is_bare(response: &Response) -> bool {
    response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_none_or(|value| value.as_bytes().starts_with(b"text/plain"))
}

fn default_message(status: StatusCode, method: &Method, route_known: bool) -> String {
    match status {
        StatusCode::NOT_FOUND if !route_known => "unknown path".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => format!("{method} is not allowed for this path"),
        _ => status
            .canonical_reason()
            .unwrap_or("the request failed")
            .to_lowercase(),
    }
}

fn report(
    method: &Method,
    route: &str,
    response: &Response,
    context: &RequestContext,
    duration: Duration,
) {
    let status = response.status();
    metrics::histogram!(
        REQUEST_DURATION,
        "method" => method_label(method),
        "route" => route.to_owned(),
        "status" => status.as_str().to_owned(),
    )
    .record(duration.as_secs_f64());

    let duration_ms = duration.as_secs_f64() * 1_000.0;
    let trace_id = context.traceparent().trace_id();
    let org = context.org().map(tracing::field::display);
    let cause = response
        .extensions()
        .get::<Cause>()
        .map(tracing::field::display);
    // `/readyz` answers 503 while the system is not ready; that is not a failure.
    if status.is_server_error() && route != health::READY {
        tracing::error!(
            %method, route, status = status.as_u16(), duration_ms, trace_id, org, cause,
            "A request failed"
        );
    } else {
        tracing::debug!(
            %method, route, status = status.as_u16(), duration_ms, trace_id, org, cause,
            "Answered a request"
        );
    }
}

/// Clients choose methods freely; the number of metrics must stay bounded.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
