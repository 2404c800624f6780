//! `GET /dashboard/workflows/{id}`: one workflow, or one of its versions.

use axum::extract::State as AppState;
use axum::http::Uri;
use axum::response::Response;
use minijinja::{Value, context};
use schemas::OrgId;
use serde_json::{Map, Value as Json, json};
use service::HttpError;
use sqlx::PgPool;

use crate::pages::frame::{piece, shown};
use crate::pages::graph::{Graph, draw, in_words, trigger_in_words};
use crate::pages::runs::find_newest;
use crate::pages::visit::{Instead, Visit};
use crate::paging::Parameters;
use crate::progress::Projection;
use crate::reading::ResourceId;
use crate::state::State;
use crate::workflows::{find_outline, find_workflow, no_workflow};

/// The number of newest versions that are listed.
const VERSIONS: i64 = 50;

pub(in crate::pages) async fn show_workflow(
    visit: Visit,
    ResourceId(id): ResourceId,
    uri: Uri,
    AppState(state): AppState<State>,
) -> Result<Response, Instead> {
    let parameters = Parameters::of(&uri)?;
    let asked = parameters
        .one("version")?
        .map(|_| parameters.count("version", 1));
    let asked = asked.transpose()?;
    let read_from = [Projection::Workflows, Projection::Runs];
    let models = visit.models(&read_from).await?;
    let workflow = find_workflow(visit.org(), &id, models).await?;
    let workflow = workflow.ok_or_else(no_workflow)?;
    let etag = workflow.etag();
    let workflow = serde_json::to_value(&workflow).map_err(HttpError::internal)?;
    let versions = find_versions(visit.org(), &id, models).await?;
    let older = asked.filter(|asked| workflow["version"] != *asked);
    let steps = tidied(&workflow["steps"]);
    let graph = match older {
        Some(version) => {
            let outline = find_outline(visit.org(), &id, version, models).await?;
            let no_version = || HttpError::not_found("this workflow has no such version");
            Graph::of_outline(&outline.ok_or_else(no_version)?)
        }
        None => Graph::of_steps(&steps),
    };
    let told = steps.iter().map(|step| {
        context! {
            id => step["id"].as_str(),
            kind => step["type"].as_str().unwrap_or_default().to_lowercase().replace('_', " "),
            words => in_words(step),
        }
    });
    let has_trigger = steps.iter().any(|step| step["type"] == "TRIGGER");
    let runs = find_newest(visit.org(), Some(&id), models).await?;
    let page = visit.page("workflow.html", "Workflow", "workflows").await?;
    let page = page.with_script("workflows.js").with_style("flow.css");
    Ok(page.show(context! {
        workflow => shown(&workflow),
        older => older,
        versions => versions,
        graph => Value::from_safe_string(draw(&graph)),
        is_large => !graph.nodes.is_empty() && !graph.is_drawable(),
        steps => told.collect::<Vec<_>>(),
        trigger => trigger_in_words(&steps, state.clock.now()),
        can_run => workflow["status"] == "ACTIVE" && has_trigger,
        editor => piece(
            "workflow_editor.html",
            context! {
                workflow => shown(&workflow),
                etag => etag,
                document => document(&workflow, &steps),
            },
        )?,
        rows => piece("run_rows.html", context! { runs => shown(&runs) })?,
        runs => runs.len(),
        run_form => piece("run_form.html", context! {})?,
    })?)
}

/// Returns the definition in a form that can be sent again.
fn document(workflow: &Json, steps: &[Json]) -> String {
    let document = json!({
        "name": workflow["name"],
        "status": workflow["status"],
        "timeoutSeconds": workflow["timeoutSeconds"],
        "steps": steps,
    });
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

/// Returns the steps as a person would write them, without what is implied.
fn tidied(steps: &Json) -> Vec<Json> {
    let steps = steps.as_array().into_iter().flatten();
    steps
        .map(|step| step.as_object().map_or_else(|| step.clone(), tidy))
        .collect()
}

fn tidy(step: &Map<String, Json>) -> Json {
    let mut step = step.clone();
    let goes_without_saying = |name: &str, value: &Json| match name {
        "next" | "then" | "else" | "onTimeout" | "acceptStatus" => {
            value.as_array().is_some_and(Vec::is_empty)
        }
        "headers" => value.as_object().is_some_and(Map::is_empty),
        "join" => value == "any",
        "on" | "body" | "retry" => value.is_null(),
        _ => false,
    };
    step.retain(|name, value| !goes_without_saying(name, value));
    // The steps that it leads to come last, as in the documentation.
    for name in ["then", "else", "next", "onTimeout", "join"] {
        if let Some(value) = step.shift_remove(name) {
            step.insert(name.to_owned(), value);
        }
    }
    Json::Object(step)
}

async fn find_versions(org: &OrgId, id: &str, models: &PgPool) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT version FROM workflow_outlines
         WHERE org_id = $1 AND workflow_id = $2 ORDER BY version DESC LIMIT $3",
        org.as_str(),
        id,
        VERSIONS,
    )
    .fetch_all(models)
    .await
}

#[cfg(test)]
mod tests {
    use schemas::WorkflowId;

    use super::*;

    #[test]
    fn a_definition_that_is_shown_can_be_saved_again_unchanged() {
        let given = json!({"name": "All", "status": "ACTIVE", "timeoutSeconds": 60, "steps": [
            {"id": "s", "type": "TRIGGER", "on": {"event": "lead.created"}, "next": ["c"]},
            {"id": "c", "type": "CONDITION", "if": "trigger.x == 1", "then": ["h"], "else": ["w"]},
            {"id": "h", "type": "HTTP", "method": "GET", "url": "https://a.example/", "next": ["n"]},
            {"id": "w", "type": "WAIT_FOR_EVENT", "event": "lead.*", "timeoutSeconds": 9, "next": ["n"], "onTimeout": ["d"]},
            {"id": "d", "type": "DELAY", "seconds": 1},
            {"id": "n", "type": "NOTIFY", "event": "done", "join": "all", "next": ["r"]},
            {"id": "r", "type": "RECORD", "kind": "leads", "data": {"name": "x"}},
        ]});
        let id = WorkflowId::new("w");
        let saved = domain::workflow::parse(&id, given).unwrap();
        let kept = serde_json::to_value(&saved).unwrap();
        let shown = document(&kept, &tidied(&kept["steps"]));
        let again = domain::workflow::parse(&id, serde_json::from_str(&shown).unwrap());
        assert_eq!(again.unwrap(), saved, "{shown}");
        assert!(!shown.contains("[]"), "{shown}");
    }
}
