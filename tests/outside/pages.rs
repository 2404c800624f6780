//! `/openapi.json` and `/asyncapi.json`: accurate for the system that serves them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use harness::Answer;
use reqwest::Method;
use serde_json::Value;

use crate::system;

/// Pages for persons, which no program reads.
const FOR_PERSONS: &[&str] = &["/docs", "/dashboard", "/app"];

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

async fn document(path: &str) -> Value {
    let answer = system().await.client().get(path).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.ok(200)
}

/// A path regardless of its parameters' names.
fn shape(path: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "{}" } else { part }.to_owned();
    let path = path.replace("//", "/{}/");
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_described_operation_is_there_and_no_other() {
    let document = document("/openapi.json").await;
    assert_eq!(document["openapi"], "3.1.0");
    let client = system().await.client();
    for (path, described) in document["paths"].as_object().unwrap() {
        let path = shape(path).replace("{}", "x");
        for method in METHODS {
            let asked = method.to_uppercase().parse::<Method>().unwrap();
            let answer = Answer::to(client.request(asked, &path)).await;
            let is_there = answer.status != 405;
            assert_eq!(
                is_there,
                described.get(method).is_some(),
                "{method} {path}: {} {}",
                answer.status,
                answer.text()
            );
            let unknown = answer.status == 404 && answer.text().contains("unknown path");
            assert!(!unknown, "{method} {path}");
        }
    }
}

/// Every route in a source file.
fn routes_of(source: &str) -> impl Iterator<Item = String> {
    let after = source.split(".route(").skip(1);
    let literal = after.filter_map(|rest| {
        let rest = rest.trim_start().strip_prefix('"')?;
        Some(rest.split('"').next()?.to_owned())
    });
    literal.collect::<Vec<_>>().into_iter()
}

fn routes_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            routes_below(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.extend(routes_of(&fs::read_to_string(path).unwrap()));
        }
    }
}

#[tokio::test]
async fn every_route_of_the_services_is_described() {
    let document = document("/openapi.json").await;
    let paths = document["paths"].as_object().unwrap();
    let described: BTreeSet<String> = paths.keys().map(|path| shape(path)).collect();
    let mut routes = BTreeSet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for room in ["command-api", "query-api", "workflow-runner", "service"] {
        routes_below(&root.join(room).join("src"), &mut routes);
    }
    assert!(routes.len() > 50, "the routes were not found: {routes:?}");
    let for_persons = |path: &&String| FOR_PERSONS.iter().any(|page| path.starts_with(page));
    for route in routes.iter().filter(|route| !for_persons(route)) {
        assert!(
            described.contains(&shape(route)),
            "{route} is not described"
        );
    }
}

/// The statuses of each operation according to the specifications.
const SPECIFIED: &[(&str, &str, &[u16])] = &[
    (
        "post",
        "/api/v1/workflows/{workflowId}/trigger",
        &[202, 400, 401, 403, 404, 409, 429, 500],
    ),
    ("get", "/api/export/companies", &[200, 401, 403, 429]),
    ("get", "/api/export/deals", &[200, 401, 403, 429]),
    ("get", "/api/export/contacts", &[200, 401, 403, 429]),
    ("get", "/api/v1/orders", &[200, 400, 401, 403, 429, 500]),
    ("get", "/api/v1/leads", &[200, 400, 401, 403, 429, 500]),
    ("get", "/api/v1/analytics", &[200, 401, 403, 429, 500]),
    ("get", "/api/v1/clients", &[200, 400, 401, 403, 429, 500]),
    ("post", "/auth/register", &[201, 400, 409]),
    ("post", "/auth/login", &[200, 401, 429]),
    ("post", "/auth/otp/send", &[202, 429]),
    ("post", "/auth/otp/verify", &[200, 401]),
    ("post", "/location/update", &[202, 400, 401, 429]),
];

#[tokio::test]
async fn what_the_specifications_list_is_described() {
    let document = document("/openapi.json").await;
    for (method, path, statuses) in SPECIFIED {
        let responses = &document["paths"][path][method]["responses"];
        for status in *statuses {
            let response = &responses[status.to_string()];
            assert!(response.is_object(), "{method} {path} {status}");
        }
    }
    let trigger = &document["paths"]["/api/v1/workflows/{workflowId}/trigger"]["post"];
    let statuses = trigger["responses"].as_object().unwrap();
    assert_eq!(
        statuses.len(),
        SPECIFIED[0].2.len(),
        "no others: {statuses:?}"
    );
}

#[tokio::test]
async fn what_is_under_a_limit_says_so() {
    let document = document("/openapi.json").await;
    for (path, described) in document["paths"].as_object().unwrap() {
        for (method, operation) in described.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            let refused = responses
                .get("429")
                .and_then(|refused| refused["$ref"].as_str());
            let Some("#/components/responses/TooManyRequestsCounted") = refused else {
                continue;
            };
            for (status, response) in responses
                .iter()
                .filter(|(status, _)| status.starts_with('2'))
            {
                let limit = &response["headers"]["RateLimit"];
                assert!(limit.is_object(), "{method} {path} {status}");
            }
        }
    }
    let response = &document["components"]["responses"]["TooManyRequestsCounted"]["headers"];
    for name in ["RateLimit", "RateLimit-Policy", "Retry-After"] {
        assert!(response[name].is_object(), "{name}");
    }
}

#[tokio::test]
async fn sockets_webhooks_and_feeds_are_described() {
    let document = document("/asyncapi.json").await;
    assert_eq!(document["asyncapi"], "3.0.0");
    let channels = document["channels"].as_object().unwrap();
    let names: Vec<_> = channels.keys().collect();
    assert_eq!(names, ["socket", "webhooks", "events", "locations"]);
    let close = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workflow-runner/src/live/close.rs");
    let close = fs::read_to_string(close).unwrap();
    let codes: Vec<_> = close
        .split("=> ")
        .filter_map(|rest| rest.get(..4).filter(|code| code.parse::<u16>().is_ok()))
        .collect();
    assert!(codes.len() > 5, "{codes:?}");
    for code in codes {
        let described = &channels["socket"]["x-close-codes"][code];
        assert!(described.is_string(), "{code}");
    }
    let webhooks = channels["webhooks"]["messages"].as_object().unwrap();
    for name in [
        "run.succeeded",
        "sos.triggered",
        "location.updated",
        "custom.name",
    ] {
        assert!(webhooks.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn people_read_the_description_as_text_and_not_as_its_source() {
    let page = system().await.client().get("/docs").await;
    let html = page.text();
    let (mut shown, mut rest) = (String::new(), html.as_str());
    // Shell commands and bodies are shown verbatim.
    while let Some((before, code)) = rest.split_once("<pre") {
        shown.push_str(before);
        rest = code.split_once("</pre>").unwrap().1;
    }
    shown.push_str(rest);
    let at = shown.find('`').map(|at| shown[at..].chars().take(80));
    let at: Option<String> = at.map(Iterator::collect);
    assert_eq!(at, None);
    assert!(
        shown.contains("<code>after</code>"),
        "code is shown as code"
    );
}

/// A table may be wider than a phone, and then scrolls within its frame; none of it may widen the
/// page, least of all the text beside it for screen readers.
#[tokio::test]
async fn frames_that_scroll_contain_everything_inside_them() {
    let client = system().await.client();
    let style = client.get("/dashboard/assets/style.css").await.text();
    let rules = style.split('}').filter_map(|rule| rule.split_once('{'));
    let mut frames = 0;
    for (who, what) in rules {
        let who = who.rsplit("*/").next().unwrap().trim();
        if what.contains("overflow-x: auto") && !who.contains("pre") {
            assert!(what.contains("position: relative"), "{who}");
            frames += 1;
        }
    }
    assert!(frames > 0, "no table scrolls");
}
