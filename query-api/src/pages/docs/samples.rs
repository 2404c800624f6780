//! A sample request in three languages.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value as Json;

/// The request of a sample.
pub(super) struct Request<'r> {
    pub(super) method: &'r str,
    pub(super) path: &'r str,
    /// `key`, `token` or `anybody`.
    pub(super) caller: &'r str,
    /// JSON.
    pub(super) body: Option<&'r str>,
}

/// A request in one language.
#[derive(Serialize)]
pub(super) struct Sample {
    language: &'static str,
    name: &'static str,
    code: String,
}

/// Returns the request in each language. Readers replace the parts between `_` in the path, and
/// `WAYPOST`, the address, and `KEY` or `TOKEN`.
pub(super) fn of(request: &Request<'_>) -> [Sample; 3] {
    [
        ("bash", "curl", curl(request)),
        ("python", "Python", python(request)),
        ("javascript", "JavaScript", javascript(request)),
    ]
    .map(|(language, name, code)| Sample {
        language,
        name,
        code,
    })
}

impl Request<'_> {
    fn address(&self) -> String {
        self.path.replace(['{', '}'], "_")
    }

    /// Returns the variable that holds the caller's credentials.
    fn secret(&self) -> Option<&'static str> {
        match self.caller {
            "key" => Some("KEY"),
            "token" => Some("TOKEN"),
            _ => None,
        }
    }

    fn body(&self) -> Option<Json> {
        self.body.and_then(|body| serde_json::from_str(body).ok())
    }
}

/// Returns a shell command.
fn curl(request: &Request<'_>) -> String {
    let mut words = vec!["curl".to_owned()];
    let body = request.body();
    let method = request.method;
    if method != "GET" && !(method == "POST" && body.is_some()) {
        words.push(format!("-X {method}"));
    }
    words.push(format!("\"$WAYPOST{}\"", request.address()));
    if let Some(secret) = request.secret() {
        words.push(format!("-H \"Authorization: Bearer ${secret}\""));
    }
    if let Some(body) = body {
        let body = body.to_string().replace('\'', r"'\''");
        words.push(format!("-H 'Content-Type: application/json' -d '{body}'"));
    }
    words.join(" ")
}

/// Uses httpx, which the Python client is built on.
fn python(request: &Request<'_>) -> String {
    let method = request.method.to_lowercase();
    let mut given = vec![format!("WAYPOST + \"{}\"", request.address())];
    if let Some(secret) = request.secret() {
        given.push(format!(
            "headers={{\"Authorization\": \"Bearer \" + {secret}}}"
        ));
    }
    if let Some(body) = request.body() {
        let mut json = "json=".to_owned();
        literal(&body, &mut json);
        given.push(json);
    }
    // The shorthand for this method takes no body.
    let call = match (method.as_str(), request.body.is_some()) {
        ("delete", true) => "httpx.request(\"DELETE\", ".to_owned(),
        (method, _) => format!("httpx.{method}("),
    };
    format!("answer = {call}{})", given.join(", "))
}

/// Writes a value as a Python literal.
fn literal(value: &Json, into: &mut String) {
    match value {
        Json::Null => into.push_str("None"),
        Json::Bool(true) => into.push_str("True"),
        Json::Bool(false) => into.push_str("False"),
        Json::Array(items) => {
            into.push('[');
            for (nth, item) in items.iter().enumerate() {
                into.push_str(if nth == 0 { "" } else { ", " });
                literal(item, into);
            }
            into.push(']');
        }
        Json::Object(fields) => {
            into.push('{');
            for (nth, (name, value)) in fields.iter().enumerate() {
                let comma = if nth == 0 { "" } else { ", " };
                let _ = write!(into, "{comma}{}: ", Json::from(name.as_str()));
                literal(value, into);
            }
            into.push('}');
        }
        // A JSON string is also a Python string.
        plain => {
            let _ = write!(into, "{plain}");
        }
    }
}

/// Uses what every browser and Node.js have.
fn javascript(request: &Request<'_>) -> String {
    let mut options = Vec::new();
    if request.method != "GET" {
        options.push(format!("method: \"{}\"", request.method));
    }
    let body = request.body();
    let mut headers = Vec::new();
    if let Some(secret) = request.secret() {
        headers.push(format!("Authorization: `Bearer ${{{secret}}}`"));
    }
    if body.is_some() {
        headers.push("\"Content-Type\": \"application/json\"".to_owned());
    }
    if !headers.is_empty() {
        options.push(format!("headers: {{ {} }}", headers.join(", ")));
    }
    if let Some(body) = body {
        options.push(format!("body: JSON.stringify({body})"));
    }
    let address = request.address();
    if options.is_empty() {
        return format!("const answer = await fetch(WAYPOST + \"{address}\");");
    }
    let options = options.join(",\n  ");
    format!("const answer = await fetch(WAYPOST + \"{address}\", {{\n  {options},\n}});")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(request: &Request<'_>) -> [String; 3] {
        of(request).map(|sample| sample.code)
    }

    #[test]
    fn a_sample_says_who_asks_and_what() {
        let [curl, python, javascript] = codes(&Request {
            method: "POST",
            path: "/api/v1/workflows/{workflowId}/trigger",
            caller: "key",
            body: Some(r#"{"name": "D'Arcy", "hot": true, "of": [null, 1]}"#),
        });
        assert_eq!(
            curl,
            r#"curl "$WAYPOST/api/v1/workflows/_workflowId_/trigger" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"name":"D'\''Arcy","hot":true,"of":[null,1]}'"#
        );
        assert_eq!(
            python,
            r#"answer = httpx.post(WAYPOST + "/api/v1/workflows/_workflowId_/trigger", headers={"Authorization": "Bearer " + KEY}, json={"name": "D'Arcy", "hot": True, "of": [None, 1]})"#
        );
        assert_eq!(
            javascript,
            "const answer = await fetch(WAYPOST + \"/api/v1/workflows/_workflowId_/trigger\", {\n  \
             method: \"POST\",\n  headers: { Authorization: `Bearer ${KEY}`, \"Content-Type\": \
             \"application/json\" },\n  body: \
             JSON.stringify({\"name\":\"D'Arcy\",\"hot\":true,\"of\":[null,1]}),\n});"
        );
    }

    #[test]
    fn a_request_of_anybody_without_a_body_is_short() {
        let [curl, python, javascript] = codes(&Request {
            method: "GET",
            path: "/readyz",
            caller: "anybody",
            body: None,
        });
        assert_eq!(curl, r#"curl "$WAYPOST/readyz""#);
        assert_eq!(python, r#"answer = httpx.get(WAYPOST + "/readyz")"#);
        assert_eq!(
            javascript,
            r#"const answer = await fetch(WAYPOST + "/readyz");"#
        );
    }
}
