//! `GET /docs/reference/api`: the API's description as a page to read and try.

use std::sync::LazyLock;

use axum::response::Response;
use minijinja::{Value, context};
use serde::Serialize;
use serde_json::Value as Json;
use service::HttpError;

use super::super::frame::{Page, shown};
use super::rows::{Row, Shapes};
use crate::documents::openapi;

#[derive(Serialize)]
struct Part {
    name: String,
    anchor: String,
    description: String,
    operations: Vec<Operation>,
}

#[derive(Serialize)]
struct Operation {
    id: String,
    method: String,
    path: String,
    summary: String,
    description: Option<String>,
    scope: Option<String>,
    caller: &'static str,
    parameters: Vec<Parameter>,
    body: Option<Body>,
    answers: Vec<Answer>,
    curl: String,
}

#[derive(Serialize)]
struct Parameter {
    name: String,
    place: String,
    required: bool,
    kind: String,
    description: String,
    choices: Vec<String>,
}

#[derive(Serialize)]
struct Body {
    required: bool,
    kinds: Vec<String>,
    rows: Vec<Row>,
    example: String,
}

#[derive(Serialize)]
struct Answer {
    status: String,
    description: String,
    headers: Vec<String>,
    kinds: Vec<String>,
    rows: Vec<Row>,
}

static DESCRIBED: LazyLock<Vec<Part>> = LazyLock::new(|| parts(&openapi::document()));
static PARTS: LazyLock<Value> = LazyLock::new(|| shown(&*DESCRIBED));
static OPERATIONS: LazyLock<Vec<(String, String, String)>> = LazyLock::new(|| {
    let all = DESCRIBED.iter().flat_map(|part| &part.operations);
    all.map(|one| {
        let line = format!("{} {}", one.method, one.path);
        (one.id.clone(), line, one.summary.clone())
    })
    .collect()
});

pub(super) async fn show_api() -> Result<Response, HttpError> {
    let page = Page::open("docs.html", "API").with_script("docs.js");
    page.show(context! { parts => PARTS.clone() })
}

/// All operations, each with where it stands.
pub(super) fn overview() -> Value {
    PARTS.clone()
}

/// All operations: id, method and path, what they do.
pub(super) fn operations() -> &'static [(String, String, String)] {
    &OPERATIONS
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn parts(document: &Json) -> Vec<Part> {
    let tags = document["tags"].as_array().into_iter().flatten();
    tags.map(|tag| {
        let name = text(&tag["name"]);
        Part {
            anchor: name.to_lowercase().replace(' ', "-"),
            description: text(&tag["description"]),
            operations: operations_of(document, &name),
            name,
        }
    })
    .collect()
}

fn operations_of(document: &Json, tag: &str) -> Vec<Operation> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (path, method, operation))
    });
    let own = all.filter(|(_, _, operation)| operation["tags"][0] == tag);
    let shapes = Shapes(document);
    own.map(|(path, method, operation)| written(&shapes, path, method, operation))
        .collect()
}

fn written(shapes: &Shapes<'_>, path: &str, method: &str, operation: &Json) -> Operation {
    let body = body(shapes, &operation["requestBody"]);
    let caller = caller(&operation["security"]);
    let method = method.to_uppercase();
    Operation {
        id: text(&operation["operationId"]),
        curl: curl(&method, path, caller, body.as_ref()),
        path: path.to_owned(),
        summary: text(&operation["summary"]),
        description: operation["description"].as_str().map(str::to_owned),
        scope: operation["x-scope"].as_str().map(str::to_owned),
        caller,
        parameters: parameters(shapes, &operation["parameters"]),
        answers: answers(shapes, &operation["responses"]),
        body,
        method,
    }
}

fn caller(security: &Json) -> &'static str {
    let one = &security[0];
    if one.get("apiKey").is_some() {
        "key"
    } else if one.get("accessToken").is_some() {
        "token"
    } else {
        "anybody"
    }
}

fn parameters(shapes: &Shapes<'_>, parameters: &Json) -> Vec<Parameter> {
    let parameters = parameters.as_array().into_iter().flatten();
    parameters
        .map(|parameter| {
            let parameter = shapes.resolve(parameter);
            let choices = parameter["schema"]["enum"].as_array().into_iter().flatten();
            Parameter {
                name: text(&parameter["name"]),
                place: text(&parameter["in"]),
                required: parameter["required"] == true,
                kind: shapes.kind(&parameter["schema"]),
                description: text(&parameter["description"]),
                choices: choices.map(text).collect(),
            }
        })
        .collect()
}

fn kinds(content: &Json) -> Vec<String> {
    let kinds = content
        .as_object()
        .into_iter()
        .flat_map(|kinds| kinds.keys());
    kinds.cloned().collect()
}

fn body(shapes: &Shapes<'_>, body: &Json) -> Option<Body> {
    let content = body.get("content")?;
    let json = &content["application/json"];
    let example = match json.get("example") {
        Some(example) => example.clone(),
        None => shapes.example(&json["schema"]),
    };
    Some(Body {
        required: body["required"] == true,
        kinds: kinds(content),
        rows: shapes.rows(&json["schema"]),
        example: serde_json::to_string_pretty(&example).unwrap_or_default(),
    })
}

fn answers(shapes: &Shapes<'_>, responses: &Json) -> Vec<Answer> {
    let responses = responses.as_object().into_iter().flatten();
    responses
        .map(|(status, response)| {
            let response = shapes.resolve(response);
            let headers = response["headers"].as_object().into_iter();
            let rows = if status.starts_with('2') {
                shapes.rows(&response["content"]["application/json"]["schema"])
            } else {
                Vec::new()
            };
            Answer {
                status: status.clone(),
                description: text(&response["description"]),
                headers: headers
                    .flat_map(|headers| headers.keys().cloned())
                    .collect(),
                kinds: kinds(&response["content"]),
                rows,
            }
        })
        .collect()
}

/// The request as a line for a shell; values in the path and the caller's own are for the reader.
fn curl(method: &str, path: &str, caller: &str, body: Option<&Body>) -> String {
    let mut words = vec!["curl".to_owned()];
    if method != "GET" && !(method == "POST" && body.is_some()) {
        words.push(format!("-X {method}"));
    }
    words.push(format!("\"$WAYPOST{}\"", path.replace(['{', '}'], "_")));
    match caller {
        "key" => words.push("-H \"Authorization: Bearer $KEY\"".to_owned()),
        "token" => words.push("-H \"Authorization: Bearer $TOKEN\"".to_owned()),
        _ => {}
    }
    if let Some(body) = body {
        let compact: Json = serde_json::from_str(&body.example).unwrap_or_default();
        let compact = compact.to_string().replace('\'', r"'\''");
        words.push(format!(
            "-H 'Content-Type: application/json' -d '{compact}'"
        ));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_shown_once() {
        let document = openapi::document();
        let paths = document["paths"].as_object().unwrap();
        let described: usize = paths
            .values()
            .map(|path| path.as_object().unwrap().len())
            .sum();
        let shown: usize = parts(&document)
            .iter()
            .map(|part| part.operations.len())
            .sum();
        assert_eq!(shown, described);
    }

    #[test]
    fn a_line_for_a_shell_says_who_asks_and_what() {
        let document = openapi::document();
        let parts = parts(&document);
        let mut all = parts.iter().flat_map(|part| &part.operations);
        let trigger = all
            .find(|operation| operation.id == "triggerWorkflow")
            .unwrap();
        assert_eq!(
            trigger.curl,
            "curl \"$WAYPOST/api/v1/workflows/_workflowId_/trigger\" -H \"Authorization: Bearer \
             $KEY\" -H 'Content-Type: application/json' -d '{\"name\":\"Ada\"}'"
        );
    }
}
