//! `GET /dashboard/runs/{runId}`: a run with its steps, on the graph of its workflow.

use axum::response::Response;
use minijinja::{Value, context};
use schemas::{OrgId, nesting};
use serde_json::Value as Json;
use service::HttpError;
use sqlx::PgPool;

use crate::pages::frame::shown;
use crate::pages::graph::{Graph, draw};
use crate::pages::visit::{Instead, Visit};
use crate::progress::Projection;
use crate::reading::ResourceId;
use crate::runs::{find_run, no_run};
use crate::workflows::find_outline;

/// Maximum length of one text, and of all texts of a page. The API returns the rest.
const MOST_OF_ONE: usize = 4_000;
const MOST_OF_ALL: usize = 60_000;

pub(in crate::pages) async fn show_run(
    visit: Visit,
    ResourceId(run_id): ResourceId,
) -> Result<Response, Instead> {
    let read_from = [Projection::Workflows, Projection::Runs];
    let models = visit.models(&read_from).await?;
    let run = find_run(visit.org(), &run_id, models).await?;
    let run = run.ok_or_else(no_run)?;
    let outline = find_outline(visit.org(), &run.workflow_id, run.workflow_version, models).await?;
    // Steps are stored as JSON text, which only a JSON parser understands.
    let run = serde_json::to_vec(&run).map_err(HttpError::internal)?;
    let mut run: Json = nesting::read(&run).map_err(HttpError::internal)?;
    let graph = draw(&graph_of(outline.as_deref(), &run));
    let name = find_name(visit.org(), &run["workflowId"], models).await?;
    let mut left = MOST_OF_ALL;
    write_out(&mut run["triggerPayload"], &mut left);
    for step in run["steps"].as_array_mut().into_iter().flatten() {
        time(step);
        write_out(&mut step["input"], &mut left);
        write_out(&mut step["output"], &mut left);
    }
    let page = visit.page("run.html", "Run", "runs").await?;
    let page = page
        .with_script("runs.js")
        .with_script("watch.js")
        .with_style("flow.css");
    let is_over = matches!(
        run["state"].as_str(),
        Some("SUCCEEDED" | "FAILED" | "CANCELLED")
    );
    Ok(page.show(context! {
        run => shown(&run),
        name => name,
        graph => Value::from_safe_string(graph),
        is_over => is_over,
        can_retry => is_over && run["state"] != "SUCCEEDED",
    })?)
}

fn graph_of(outline: Option<&str>, run: &Json) -> Graph {
    let steps = run["steps"].as_array().map_or(&[][..], Vec::as_slice);
    Graph::of_outline(outline.unwrap_or_default()).with_states(steps)
}

/// Adds the duration of each attempt.
fn time(step: &mut Json) {
    for attempt in step["attempts"].as_array_mut().into_iter().flatten() {
        let moment = |name: &str| {
            let text = attempt[name].as_str()?;
            text.parse::<chrono::DateTime<chrono::Utc>>().ok()
        };
        if let (Some(start), Some(end)) = (moment("startedAt"), moment("endedAt")) {
            attempt["seconds"] = (end - start).as_seconds_f64().max(0.0).into();
        }
    }
}

/// Formats JSON of any shape as text for people, as far as there is room.
fn write_out(value: &mut Json, left: &mut usize) {
    if value.is_null() {
        return;
    }
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    let most = MOST_OF_ONE.min(*left);
    if text.len() > most {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(most));
        text = format!("{text}…\n({whole} bytes in all: open the run as JSON to see them)");
    }
    *left = left.saturating_sub(text.len());
    *value = Json::String(text);
}

async fn find_name(org: &OrgId, id: &Json, models: &PgPool) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT name FROM workflows WHERE org_id = $1 AND workflow_id = $2",
        org.as_str(),
        id.as_str(),
    )
    .fetch_optional(models)
    .await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_cut_where_a_page_has_no_more_room() {
        let mut left = 5_000;
        let (mut first, mut second) = (json!("é".repeat(3_000)), json!("é".repeat(3_000)));
        write_out(&mut first, &mut left);
        assert!(first.as_str().unwrap().contains("6002 bytes in all"));
        write_out(&mut second, &mut left);
        assert!(second.as_str().unwrap().len() < 1_200);
        let mut none = Json::Null;
        write_out(&mut none, &mut left);
        assert!(none.is_null());
    }
}
