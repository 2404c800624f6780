//! The displayed operations of the API's description.

use serde::Serialize;
use serde_json::Value as Json;

use super::rows::{Row, Shapes};
use super::samples::{self, Request, Sample};

/// Operations of a kind.
#[derive(Serialize)]
pub(super) struct Part {
    pub(super) name: String,
    /// The end of its page's address.
    pub(super) anchor: String,
    description: String,
    pub(super) operations: Vec<Operation>,
}

/// A request that can be made.
#[derive(Serialize)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) summary: String,
    description: Option<String>,
    scope: Option<String>,
    caller: &'static str,
    parameters: Vec<Parameter>,
    body: Option<Body>,
    answers: Vec<ResponseRow>,
    /// Refusals with the same meaning everywhere, described on a page of their own.
    usual: Vec<String>,
    samples: [Sample; 3],
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
struct ResponseRow {
    status: String,
    description: String,
    headers: Vec<String>,
    kinds: Vec<String>,
    rows: Vec<Row>,
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns all operations of the document, by tag.
pub(super) fn parts(document: &Json) -> Vec<Part> {
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
    let request = Request {
        method: &method,
        path,
        caller,
        body: body.as_ref().map(|body| body.example.as_str()),
    };
    Operation {
        id: text(&operation["operationId"]),
        samples: samples::of(&request),
        path: path.to_owned(),
        summary: text(&operation["summary"]),
        description: operation["description"].as_str().map(str::to_owned),
        scope: operation["x-scope"].as_str().map(str::to_owned),
        caller,
        parameters: parameters(shapes, &operation["parameters"]),
        answers: answers(shapes, &operation["responses"]),
        usual: usual(&operation["responses"]),
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

fn usual(responses: &Json) -> Vec<String> {
    let responses = responses.as_object().into_iter().flatten();
    let usual = responses.filter(|(_, response)| response.get("$ref").is_some());
    usual.map(|(status, _)| status.clone()).collect()
}

fn answers(shapes: &Shapes<'_>, responses: &Json) -> Vec<ResponseRow> {
    let responses = responses.as_object().into_iter().flatten();
    responses
        .filter(|(_, response)| response.get("$ref").is_none())
        .map(|(status, response)| {
            let response = shapes.resolve(response);
            let headers = response["headers"].as_object().into_iter();
            let rows = if status.starts_with('2') {
                shapes.rows(&response["content"]["application/json"]["schema"])
            } else {
                Vec::new()
            };
            ResponseRow {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::openapi;

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
}
