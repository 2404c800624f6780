//! `/healthz`, `/readyz` and `/metrics`.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures::future::{BoxFuture, join_all};
use serde::Serialize;

use crate::settings::Secret;
use crate::{HttpError, telemetry};

/// Path of the readiness check.
pub(crate) const READY: &str = "/readyz";
/// Path of the liveness check.
pub(crate) const ALIVE: &str = "/healthz";
/// Path of the metrics.
pub(crate) const METRICS: &str = "/metrics";
/// Timeout of one check, after which it counts as failed.
const TIMEOUT: Duration = Duration::from_secs(1);

type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The conditions under which this process can do its work, each under its own name.
///
/// A check of one service is named `<service>/<check>`. One of something that services share, such
/// as the connection to the log, has a name of its own: a process that runs several of them makes
/// it once.
#[derive(Clone, Default)]
pub struct Readiness(Arc<RwLock<BTreeMap<&'static str, Entry>>>);

#[derive(Clone)]
struct Entry {
    check: Check,
    /// Whether the process is not ready if the check fails.
    needed: bool,
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(checks.keys()).finish()
    }
}

impl Readiness {
    /// Adds a check, or replaces an earlier one of that name. A failed check gives the reason, in
    /// words that anyone may read.
    pub fn add<F, R>(&self, name: &'static str, check: F)
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.insert(name, check, true);
    }

    /// Adds the check of the connection to the log, or replaces it.
    pub fn add_log<F>(&self, is_connected: F)
    where
        F: Fn() -> bool + Send + Sync + 'static,
    {
        self.add("log", move || {
            let connected = is_connected();
            async move {
                connected
                    .then_some(())
                    .ok_or_else(|| "not connected".to_owned())
            }
        });
    }

    /// Adds a check whose failure is reported but takes nothing out of service: what it watches
    /// needs a person's attention while everything else continues.
    pub fn add_warning<F, R>(&self, name: &'static str, check: F)
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.insert(name, check, false);
    }

    fn insert<F, R>(&self, name: &'static str, check: F, needed: bool)
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || Box::pin(check()));
        let mut checks = self.0.write().unwrap_or_else(PoisonError::into_inner);
        checks.insert(name, Entry { check, needed });
    }

    async fn report(&self) -> Report {
        let checks: Vec<_> = {
            let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
            checks
                .iter()
                .map(|(name, entry)| (*name, entry.needed, (entry.check)()))
                .collect()
        };
        let results = join_all(checks.into_iter().map(|(name, needed, check)| async move {
            let result = tokio::time::timeout(TIMEOUT, check).await;
            let result = result.unwrap_or_else(|_| Err("no answer".to_owned()));
            (name, needed, result)
        }));
        Report::from(results.await)
    }
}

#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    ready: bool,
    checks: BTreeMap<&'static str, CheckReport>,
}

#[derive(Serialize)]
struct CheckReport {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A check's name, whether the process needs it, and its result.
type Checked = (&'static str, bool, Result<(), String>);

impl From<Vec<Checked>> for Report {
    fn from(results: Vec<Checked>) -> Self {
        let failed: Vec<String> = results
            .iter()
            .filter(|(_, needed, _)| *needed)
            .filter_map(|(name, _, result)| Some(format!("{name}: {}", result.as_ref().err()?)))
            .collect();
        let checks = results.into_iter().map(|(name, _, result)| {
            let ok = result.is_ok();
            let reason = result.err();
            (name, CheckReport { ok, reason })
        });
        Self {
            ready: failed.is_empty(),
            error: (!failed.is_empty()).then(|| format!("not ready: {}", failed.join("; "))),
            checks: checks.collect(),
        }
    }
}

/// The routes for operators and their monitoring. A process has them once, however many services it
/// runs.
pub fn router(readiness: Readiness) -> Router {
    Router::new()
        .route(ALIVE, get(show_health))
        .route(READY, get(show_readiness))
        .route(METRICS, get(show_metrics))
        .with_state(readiness)
}

/// Requires the token for the metrics, if one is set.
pub(crate) fn guard_metrics(router: Router, token: Option<&Secret<String>>) -> Router {
    let Some(token) = token.filter(|token| !token.expose().is_empty()) else {
        return router;
    };
    let expected: Arc<str> = format!("Bearer {}", token.expose()).into();
    router.layer(from_fn(move |request: Request, next: Next| {
        let given = request.headers().get(header::AUTHORIZATION);
        let knows = given.is_some_and(|given| is_same(given.as_bytes(), expected.as_bytes()));
        let refused = request.uri().path() == METRICS && !knows;
        async move {
            if refused {
                return HttpError::new(StatusCode::UNAUTHORIZED, NO_TOKEN).into_response();
            }
            next.run(request).await
        }
    }))
}

const NO_TOKEN: &str =
    "metrics are for operators: send WAYPOST_METRICS_TOKEN as Authorization: Bearer";

/// Compares in a time that does not reveal where the two differ.
fn is_same(given: &[u8], expected: &[u8]) -> bool {
    let pairs = given.iter().zip(expected);
    let differing = pairs.fold(0, |differing, (given, expected)| {
        differing | (given ^ expected)
    });
    given.len() == expected.len() && differing == 0
}

async fn show_health() -> Json<serde_json::Value> {
    Json(serde_json::json!({ "alive": true }))
}

async fn show_readiness(State(readiness): State<Readiness>) -> Response {
    let report = readiness.report().await;
    let status = if report.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(report)).into_response()
}

async fn show_metrics() -> Response {
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    (
        [(header::CONTENT_TYPE, content_type)],
        telemetry::render_metrics(),
    )
        .into_response()
}
