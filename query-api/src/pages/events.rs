//! `GET /dashboard/events`, `GET /dashboard/events/{position}`: events, and what caused them.

mod tree;

use axum::extract::State as AppState;
use axum::http::Uri;
use axum::response::Response;
use domain::shortened;
use domain::webhook::{check_pattern, matches};
use event_log::Position;
use minijinja::{Value, context};
use schemas::Log;
use serde_json::Value as Json;
use service::HttpError;

use self::tree::{deliveries_of, tree};
use super::address::encoded;
use super::frame::shown;
use super::visit::{Instead, Visit};
use crate::feed::{around, event_at, newest_before};
use crate::paging::Parameters;
use crate::reading::ResourceId;
use crate::state::State;

/// Events per page.
const SHOWN: usize = 50;
/// Characters of an event's data that the list shows, on one line.
const SHOWN_DATA: usize = 140;
/// Events searched after one whose consequences are shown.
const REACH: usize = 2_000;

/// The requested part of the log.
struct Filter {
    types: Vec<String>,
    subject: String,
}

impl Filter {
    fn of(parameters: &Parameters) -> Result<Self, HttpError> {
        let types = parameters.one("types")?.unwrap_or_default();
        let types = types.split(',').map(str::trim);
        let types = types.filter(|pattern| !pattern.is_empty());
        let subject = parameters.one("subject")?.unwrap_or_default();
        Ok(Self {
            types: types.map(str::to_owned).collect(),
            subject: subject.trim().to_owned(),
        })
    }

    /// Returns its error, for the person who typed it.
    fn fault(&self) -> Option<String> {
        self.types.iter().find_map(|pattern| {
            let reason = check_pattern(pattern).err()?;
            Some(format!(
                "Type: {pattern:?} {reason}. Write a type such as run.failed, or run.* for all that begin so."
            ))
        })
    }

    fn wants(&self, event: &Json) -> bool {
        let kind = event["type"].as_str().unwrap_or_default();
        let subject = event["subject"].as_str().unwrap_or_default();
        (self.types.is_empty() || self.types.iter().any(|pattern| matches(pattern, kind)))
            && subject.contains(&self.subject)
    }
}

pub(super) async fn list_events(
    visit: Visit,
    AppState(state): AppState<State>,
    uri: Uri,
) -> Result<Response, Instead> {
    let parameters = Parameters::of(&uri)?;
    let filter = Filter::of(&parameters)?;
    let fault = filter.fault();
    let linked = |at: Position| {
        let (types, subject) = (encoded(&filter.types.join(",")), encoded(&filter.subject));
        format!("/dashboard/events?before={at}&types={types}&subject={subject}")
    };
    let before = parameters.one("before")?;
    let before = before.map(|text| place(&state, text)).transpose()?;
    let page = visit.page("events.html", "Events", "events").await?;
    let page = page.with_script("events.js").with_style("events.css");
    let (mut events, mut older) = (Vec::new(), None);
    if fault.is_none() {
        let wanted = |event: &Json| filter.wants(event);
        let found = newest_before(&state, visit.org(), before, SHOWN, wanted).await?;
        (events, older) = (found.events, found.before.map(linked));
    }
    for event in &mut events {
        event["data"] = Json::String(shortened(&event["data"].to_string(), SHOWN_DATA));
    }
    Ok(page.show(context! {
        events => shown(&events),
        older => older,
        newest => before.is_none(),
        types => filter.types.join(","),
        subject => filter.subject,
        fault => fault,
    })?)
}

pub(super) async fn show_event(
    visit: Visit,
    AppState(state): AppState<State>,
    ResourceId(text): ResourceId,
) -> Result<Response, Instead> {
    let at = place(&state, &text).map_err(|_| no_event())?;
    let mut event = event_at(&state, visit.org(), at).await?;
    let event = event.as_mut().ok_or_else(no_event)?;
    let related = match event["correlationId"].as_str() {
        Some(correlation) => around(&state, visit.org(), at, correlation, REACH).await?,
        None => vec![event.clone()],
    };
    let deliveries = deliveries_of(&visit, &state, &related).await?;
    let before = at.sequence().saturating_sub(1);
    let from = (before > 0).then(|| state.log.position(Log::Events, before).to_string());
    let page = visit.page("event.html", "Event", "events").await?;
    let page = page.with_script("events.js").with_style("events.css");
    let data = serde_json::to_string_pretty(&event["data"]).unwrap_or_default();
    let nodes: Vec<Value> = tree(&related, &deliveries);
    Ok(page.show(context! {
        event => shown(&*event),
        subject_link => encoded(event["subject"].as_str().unwrap_or_default()),
        data => data,
        nodes => nodes,
        from => from,
        reach => REACH,
    })?)
}

fn no_event() -> HttpError {
    HttpError::not_found("there is no such event, or your organization may not see it (any more)")
}

fn place(state: &State, text: &str) -> Result<Position, HttpError> {
    let position = state.log.parse_position(text);
    let position = position.ok().filter(|at| at.log() == Log::Events);
    position.ok_or_else(|| HttpError::bad_request("this is no position in the log of events"))
}
