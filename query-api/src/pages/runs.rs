//! `GET /dashboard/runs/{runId}`: a run with its steps.

use axum::response::Response;
use minijinja::context;
use serde_json::Value as Json;
use service::HttpError;

use super::frame::shown;
use super::visit::{Instead, Visit};
use crate::progress::Projection;
use crate::reading::ResourceId;
use crate::runs::{find_run, no_run};

pub(super) async fn show_run(
    visit: Visit,
    ResourceId(run_id): ResourceId,
) -> Result<Response, Instead> {
    let models = visit.models(&[Projection::Runs]).await?;
    let run = find_run(visit.org(), &run_id, models).await?;
    let run = run.ok_or_else(no_run)?;
    // Steps are kept as JSON text, which only a JSON reader understands.
    let mut run = serde_json::to_value(&run).map_err(HttpError::internal)?;
    write_out(&mut run["triggerPayload"]);
    for step in run["steps"].as_array_mut().into_iter().flatten() {
        write_out(&mut step["input"]);
        write_out(&mut step["output"]);
    }
    let page = visit.page("run.html", "Run", "runs").await?;
    Ok(page.show(context! { run => shown(&run) })?)
}

/// JSON of any shape as the text that a person reads.
fn write_out(value: &mut Json) {
    if !value.is_null() {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        *value = Json::String(text);
    }
}
