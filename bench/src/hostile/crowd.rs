//! The crowd as a separate process, so that its own cost is not mistaken for its effect. It has the
//! lowest priority, because in reality it would have machines of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use hostile::{Attack, Crowd, Ground};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::system::System;

/// The task of the process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    pub(super) ground: Ground,
    pub(super) attacks: Vec<Attack>,
}

impl Spec {
    /// Writes it for the process, and returns the file's path.
    pub(super) fn write(&self, system: &System) -> String {
        let spec = serde_json::to_string(self).expect("JSON");
        system.write("crowd.json", &spec)
    }
}

/// Runs the crowd that a file describes until the process ends; serves its tally over HTTP.
pub(crate) async fn serve(addr: SocketAddr, spec: &Path) {
    let spec = std::fs::read(spec).expect("a file");
    let spec: Spec = serde_json::from_slice(&spec).expect("JSON");
    let crowd = Arc::new(Crowd::gather(spec.ground, &spec.attacks));
    let told = |State(crowd): State<Arc<Crowd>>| async move { crowd.tally().to_string() };
    let router = Router::new().route("/", get(told)).with_state(crowd);
    let listener = TcpListener::bind(addr).await.expect("a port");
    axum::serve(listener, router).await.expect("serving");
}

/// The crowd's results so far.
pub(super) async fn tally(addr: SocketAddr) -> String {
    let told = async { reqwest::get(format!("http://{addr}/")).await?.text().await };
    told.await.unwrap_or_default()
}
