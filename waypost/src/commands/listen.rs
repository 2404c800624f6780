//! `waypost listen`: a receiver on this machine, to see webhooks and workflow calls arrive.

use std::net::SocketAddr;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::{Value, json};
use service::{Clock as _, SystemClock};
use standardwebhooks::Webhook;
use tokio_util::sync::CancellationToken;

use super::print;
use crate::Failure;

/// Receive webhooks and workflow calls on this machine and print them, one JSON object a line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  waypost listen --addr 127.0.0.1:8099 --secret whsec_…")]
pub(crate) struct Listen {
    /// Address to listen on.
    #[arg(long, default_value = super::demo::RECEIVER)]
    addr: SocketAddr,
    /// The endpoint's secret: verify every signature, and answer 401 to a wrong one.
    #[arg(long, env = "WAYPOST_LISTEN_SECRET", hide_env_values = true)]
    secret: Option<String>,
}

impl Listen {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let webhook = self.secret.as_deref().map(Webhook::new).transpose()?;
        let webhook = webhook.map(std::sync::Arc::new);
        let router = axum::Router::new().fallback(receive).with_state(webhook);
        let listener = service::listen(self.addr).await?;
        eprintln!("Listening at http://{}", listener.local_addr()?);
        let shutdown: CancellationToken = service::until_signalled()?;
        service::serve(
            listener,
            router,
            shutdown,
            std::time::Duration::from_secs(1),
            service::settings::EdgeSettings::default(),
        )
        .await?;
        Ok(())
    }
}

async fn receive(
    State(webhook): State<Option<std::sync::Arc<Webhook>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Json<Value>) {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let signed = header("webhook-signature").is_some();
    let verified = webhook
        .filter(|_| signed)
        .map(|w| w.verify(&body, &headers).is_ok());
    let parsed = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    let line = json!({
        "at": SystemClock.now(),
        "method": method.as_str(),
        "path": uri.path(),
        "webhookId": header("webhook-id"),
        "traceparent": header("traceparent"),
        "verified": verified,
        "body": parsed,
    });
    if print(&line).is_err() || verified == Some(false) {
        return (
            StatusCode::UNAUTHORIZED,
            Json(json!({ "error": "the signature is wrong" })),
        );
    }
    (StatusCode::OK, Json(json!({ "received": true })))
}
