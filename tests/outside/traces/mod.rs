//! Spans, from a request through the log to the webhook, as a collector receives them.

mod collector;

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use harness::{Answer, Organization, Program, Receiver, Shape, System, eventually};
use reqwest::Method;
use serde_json::json;

use super::accounts::phone;
use super::active;
use super::codes::{holder, verify};
use super::connections::told;
use crate::SHAPE;
use collector::{Collector, Span};

/// A system whose spans go to a collector.
async fn traced(collector: &Collector, settings: &[(&str, &str)]) -> System {
    let url = collector.url();
    let own = [("WAYPOST_TRACES_URL", url.as_str())];
    System::start(SHAPE, &[&own[..], settings].concat()).await
}

/// A workflow that calls a receiver, and a webhook that reports its success.
async fn calling(org: &Organization<'_>, receiver: &Receiver) -> String {
    let webhook = json!({"url": receiver.url("/hook"), "events": ["run.succeeded"]});
    org.admin.post("/api/v1/webhooks", &webhook).await.ok(201);
    let workflow = active(&json!([
        {"id": "start", "type": "TRIGGER", "next": ["call"]},
        {"id": "call", "type": "HTTP", "method": "POST", "url": receiver.url("/step"),
         "body": {"lead": "{{ trigger }}"}},
    ]));
    org.workflow(&workflow).await
}

/// Triggers a workflow as part of a trace, or of none.
async fn trigger(org: &Organization<'_>, workflow: &str, trace: Option<&str>) -> Answer {
    let path = format!("/api/v1/workflows/{workflow}/trigger");
    let mut request = org.admin.request(Method::POST, &path);
    if let Some(trace) = trace {
        request = request.header("traceparent", trace);
    }
    let request = request.header("content-type", "application/json");
    let answer = Answer::to(request.body("{}")).await;
    answer.ok(202);
    answer
}

/// Stops all processes, each of which sends its remaining spans.
async fn end(system: &mut System) {
    system.programs().iter().for_each(Program::ask_to_end);
    eventually("the end of all processes", async || {
        let ended = system.programs().iter_mut().map(Program::has_ended);
        ended
            .collect::<Vec<_>>()
            .iter()
            .all(|ended| *ended)
            .then_some(())
    })
    .await;
}

/// The trace and the span that a header names.
fn ids(traceparent: &str) -> (String, String) {
    let mut parts = traceparent.split('-').skip(1).map(str::to_owned);
    (parts.next().unwrap(), parts.next().unwrap())
}

/// The `traceparent` header with which a receiver got a call at `path`.
async fn sent_to(receiver: &Receiver, path: &str) -> String {
    let calls = receiver.wait_for(1, |call| call.path == path).await;
    calls[0].header("traceparent").to_owned()
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let found = spans.iter().find(|span| span.is(name));
    found.unwrap_or_else(|| panic!("no {name} among {spans:#?}"))
}

const TRIGGER: &str = "POST /api/v1/workflows/{id}/trigger";
const READ: &str = "GET /api/v1/runs/{run_id}";

/// Whether a trace is complete for a run that calls and is reported.
fn is_whole(spans: &[Span]) -> bool {
    let of_run = spans.iter().filter(|span| span.is("projection"));
    let of_run = of_run.filter(|span| span.attributes["waypost.event.type"].starts_with("run."));
    let names = [
        TRIGGER,
        READ,
        "append",
        "step HTTP",
        "HTTP call",
        "delivery attempt",
    ];
    names
        .iter()
        .all(|name| spans.iter().any(|span| span.is(name)))
        && spans.iter().any(|span| span.is("SELECT runs"))
        && of_run.count() >= 4
}

#[tokio::test]
async fn one_trace_leads_from_the_request_over_the_log_to_the_webhook() {
    let collector = Collector::start().await;
    let system = traced(&collector, &[]).await;
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    let workflow = calling(&org, &receiver).await;
    let answer = trigger(&org, &workflow, None).await;
    let (trace, request) = ids(answer.header("traceparent").unwrap());
    let (step, hook) = (
        sent_to(&receiver, "/step").await,
        sent_to(&receiver, "/hook").await,
    );
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    org.ended(&run).await;
    let read = org
        .admin
        .request(Method::GET, &format!("/api/v1/runs/{run}"));
    let read = read.header("traceparent", answer.header("traceparent").unwrap());
    Answer::to(read).await.ok(200);

    let spans = collector
        .until(&trace, |spans| is_whole(spans) && lost(spans).is_empty())
        .await;
    let root = named(&spans, TRIGGER);
    assert_eq!(
        (root.id.as_str(), root.parent.as_str()),
        (request.as_str(), "")
    );
    assert_eq!(root.attributes["http.response.status_code"], "202");
    assert_eq!(root.attributes["waypost.org.id"], org.id);
    for name in [
        "append",
        "projection",
        "step HTTP",
        "delivery attempt",
        READ,
    ] {
        assert_eq!(named(&spans, name).parent, request, "{name}");
    }
    let of_step = named(&spans, "step HTTP");
    assert_eq!(of_step.attributes["waypost.run.id"], run);
    let call = named(&spans, "HTTP call");
    assert_eq!(call.parent, of_step.id);
    assert!(of_step.started <= call.started && call.ended <= of_step.ended);
    // The called service continues the span of its call.
    assert_eq!(ids(&step), (trace.clone(), call.id.clone()));
    let delivery = named(&spans, "delivery attempt");
    assert_eq!(ids(&hook), (trace.clone(), delivery.id.clone()));
    assert_eq!(delivery.attributes["waypost.event.type"], "run.succeeded");
    let read = named(&spans, READ);
    let mut queries = spans.iter().filter(|span| span.is("SELECT runs"));
    assert!(queries.any(|query| query.parent == read.id));
    let first = spans.iter().filter(|span| span.parent.is_empty());
    assert_eq!(first.count(), 1);
    let known: HashSet<_> = spans.iter().map(|span| &span.id).collect();
    assert_eq!(known.len(), spans.len(), "each is sent once");
    assert!(!call.has_failed && !delivery.has_failed && !root.has_failed);

    let services: BTreeSet<_> = spans.iter().map(|span| span.service.as_str()).collect();
    let four = ["command-api", "projector", "query-api", "workflow-runner"];
    let expected: BTreeSet<_> = match SHAPE {
        Shape::Four => four.into(),
        Shape::One => ["waypost"].into(),
    };
    assert_eq!(services, expected);
    the_batch_is_found(&collector, named(&spans, "projection"), &trace);
}

/// Spans whose parent has not arrived.
fn lost(spans: &[Span]) -> Vec<&Span> {
    let known: HashSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    let is_lost = |span: &&Span| !span.parent.is_empty() && !known.contains(&*span.parent);
    spans.iter().filter(is_lost).collect()
}

/// An event's span links to its batch, and that one to the event's trace.
fn the_batch_is_found(collector: &Collector, event: &Span, trace: &str) {
    let [(of_batch, batch)] = &event.links[..] else {
        panic!("{event:#?}");
    };
    let spans = collector.spans();
    let batch = spans.iter().find(|span| span.id == *batch).unwrap();
    assert!(batch.is("projection batch") && batch.parent.is_empty());
    assert_eq!(batch.trace, *of_batch);
    assert!(batch.links.iter().any(|(linked, _)| linked == trace));
    let queries = spans.iter().filter(|span| span.parent == batch.id);
    assert!(queries.clone().count() > 0, "its queries are parts of it");
}

#[tokio::test]
async fn a_trace_that_is_not_chosen_is_not_exported() {
    let collector = Collector::start().await;
    let mut system = traced(&collector, &[("WAYPOST_TRACES_SHARE", "0.5")]).await;
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    let workflow = calling(&org, &receiver).await;
    // Not sampled by its id, not sampled by its sender's decision, and one that is sampled.
    let (by_id, by_word) = (
        "4bf92f3577b34da6a300000000000001",
        "5bf92f3577b34da6a3ffffffffffff01",
    );
    let chosen = "6bf92f3577b34da6a3ffffffffffff02";
    for (trace, flags) in [(by_id, "01"), (by_word, "00"), (chosen, "01")] {
        let sent = format!("00-{trace}-00f067aa0ba902b7-{flags}");
        let answer = trigger(&org, &workflow, Some(&sent)).await;
        let answered = answer.header("traceparent").unwrap().to_owned();
        assert_eq!(ids(&answered).0, trace);
        assert_eq!(answered.ends_with("-01"), trace == chosen, "{answered}");
        for path in ["/step", "/hook"] {
            let of_trace = |call: &harness::Received| {
                call.path == path && call.header("traceparent").contains(trace)
            };
            let call = &receiver.wait_for(1, of_trace).await[0];
            let passed_on = call.header("traceparent");
            assert_eq!(passed_on.ends_with("-01"), trace == chosen, "{passed_on}");
        }
    }
    collector
        .until(chosen, |spans| {
            spans.iter().any(|s| s.is("delivery attempt"))
        })
        .await;
    // The remaining spans are sent before the processes exit.
    end(&mut system).await;
    let traces: HashSet<String> = collector
        .spans()
        .into_iter()
        .map(|span| span.trace)
        .collect();
    assert!(traces.contains(chosen));
    assert!(!traces.contains(by_id) && !traces.contains(by_word));
}

#[tokio::test]
async fn a_collector_that_hangs_slows_nothing() {
    let collector = Collector::start().await;
    collector.receiver().delay(Duration::from_hours(1));
    let mut system = traced(&collector, &[]).await;
    let org = system.organization().await;
    let receiver = Receiver::start().await;
    let workflow = calling(&org, &receiver).await;
    let started = Instant::now();
    for _ in 0..50 {
        trigger(&org, &workflow, None).await;
    }
    receiver.wait_for(50, |call| call.path == "/hook").await;
    // Each batch has a timeout of five seconds, and there are many.
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
    let dropped = "waypost_traces_spans_dropped_total{reason=\"export\"}";
    eventually("spans to be dropped", async || {
        (told(&system, dropped).await > 0.0).then_some(())
    })
    .await;
    end(&mut system).await;
}

#[tokio::test]
async fn nothing_personal_is_in_a_span() {
    let collector = Collector::start().await;
    let mut system = traced(&collector, &[]).await;
    let org = system.organization().await;
    let marks = uses_what_is_personal(&system, &org).await;
    end(&mut system).await;
    let spans = collector.spans();
    for name in [
        "POST /auth/register",
        "POST /auth/otp/send",
        "POST /location/update",
        "GET /location/latest",
        "PUT /api/v1/records/contacts/{id}",
    ] {
        named(&spans, name);
    }
    let bytes = collector.bytes();
    for mark in marks {
        let found = bytes.windows(mark.len()).any(|some| some == mark);
        assert!(!found, "{}", String::from_utf8_lossy(&mark));
    }
}

#[tokio::test]
async fn a_wrong_code_reads_as_much_of_the_log_whether_or_not_its_number_is_held() {
    let collector = Collector::start().await;
    let mut system = traced(&collector, &[]).await;
    let (held, free) = (phone(), phone());
    holder(&system, &held).await;
    let mut tried = Vec::new();
    for number in [&held, &free] {
        let answer = verify(&system.client(), number, "000000").await;
        answer.error(401);
        tried.push(ids(answer.header("traceparent").unwrap()).0);
    }
    end(&mut system).await;
    let spans = collector.spans();
    let reads = tried.iter().map(|trace| {
        let of_trace = spans.iter().filter(|span| span.trace == *trace);
        of_trace.filter(|span| span.is("log read")).count()
    });
    assert_eq!(reads.collect::<Vec<_>>(), [2, 2]);
}

/// Sends personal data wherever possible, and returns what must not be exported of it.
async fn uses_what_is_personal(system: &System, org: &Organization<'_>) -> Vec<Vec<u8>> {
    let (name, email, password) = ("Zyxwa Marked", "zyxwb-marked@example.org", "zyxwc marked");
    let (phone, lat, lng) = ("+4915112398765", 47.123_498_7, 8.765_412_3);
    let body = json!({"name": name, "email": email, "password": password});
    let registered = system.client().post("/auth/register", &body).await.ok(201);
    let token = registered["access_token"].as_str().unwrap().to_owned();
    let person = system.client().with_key(&token);
    let sent = person
        .post("/location/update", &json!({"lat": lat, "lng": lng}))
        .await;
    sent.ok(202);
    person
        .get_at("/location/latest", &sent.position())
        .await
        .ok(200);
    let code = json!({"phone": phone});
    system.client().post("/auth/otp/send", &code).await;
    system
        .client()
        .get(&format!("/{email}?email={email}"))
        .await
        .error(404);
    let contact = json!({"firstName": name, "email": email, "phone": phone});
    let contact_path = "/api/v1/records/contacts/c1";
    org.admin.put(contact_path, &contact).await;
    let texts = [
        name,
        email,
        password,
        phone,
        "zyxw",
        "15112398765",
        &token,
        &org.key,
    ];
    let texts = texts.map(|text| text.as_bytes().to_vec());
    let numbers = [lat, lng].map(|number: f64| number.to_le_bytes().to_vec());
    let written = [lat, lng].map(|number: f64| number.to_string().into_bytes());
    texts.into_iter().chain(numbers).chain(written).collect()
}
