//! `POST /location/update`: accepts where a person is, or was.

use access::{Person, UncountedToken};
use axum::extract::{FromRequest, Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::location::{Fix, Request, Timed, settle_times, taken_since};
use event_log::{Binding, Expected, Position, Write};
use schemas::location::Updated;
use schemas::{AccountId, Event, EventId, Log, NewEvent, Receipt, StreamId};
use serde::Serialize;
use serde_json::Value;
use service::{HttpError, RequestContext};
use uuid::Uuid;

use super::tracks::KnownTrack;
use crate::body::{AnyBody, not_json};
use crate::commands::until_written;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, Origin, Refusal, answer};

/// A fix that was accepted, now or when it was first sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Accepted {
    id: Uuid,
    recorded_at: DateTime<Utc>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AcceptedBody {
    One(Accepted),
    Many { accepted: Vec<Accepted> },
}

pub(super) async fn update_location(
    caller: UncountedToken,
    State(app): State<App>,
    context: RequestContext,
    repeatable: Result<Repeatable, HttpError>,
    request: HttpRequest,
) -> Result<Response, HttpError> {
    let body = AnyBody::from_request(request, &app).await;
    let value = match &body {
        Ok(body) => read(body),
        Err(error) => Err(error.clone()),
    };
    if let Some(refused) = count(&app, &caller, value.as_ref().ok(), &context).await? {
        return Err(refused);
    }
    let (body, value) = (body?, value?);
    let request = Request::parse(value, app.commands.now()).map_err(Refusal::into_http)?;
    let origin = repeatable?.by_person(&caller, &body);
    let (accepted, position) = take(&app, caller.account_id, &request, &origin).await?;
    let answer = match (&request, accepted.first()) {
        (Request::One(_), Some(one)) => AcceptedBody::One(*one),
        _ => AcceptedBody::Many { accepted },
    };
    Ok(answer::json(
        StatusCode::ACCEPTED,
        Done { answer, position },
    ))
}

/// Reads JSON; an out-of-range number is reported by its field.
fn read(body: &AnyBody) -> Result<Value, HttpError> {
    if body.trim_ascii().is_empty() {
        return Err(HttpError::bad_request("lat: is required; lng: is required"));
    }
    if !body.is_json {
        return Err(not_json());
    }
    service::body::parse(body)
}

/// Counts every update, whatever its outcome. Refuses one that never fits.
async fn count(
    app: &App,
    person: &Person,
    value: Option<&Value>,
    context: &RequestContext,
) -> Result<Option<HttpError>, HttpError> {
    let cost = value.map_or(1, Request::cost);
    let hour = app.access.allowances(person.account_id).locations;
    if cost <= hour {
        app.access.count_positions(person, cost, context).await?;
        return Ok(None);
    }
    app.access.count_positions(person, 1, context).await?;
    let reason = format!("body: {cost} positions are more than the {hour} of a whole hour");
    Ok(Some(HttpError::bad_request(reason)))
}

/// Appends the fixes that are new, all in one commit, and answers for all.
async fn take(
    app: &App,
    account: AccountId,
    request: &Request,
    origin: &Origin,
) -> Result<(Vec<Accepted>, Position), CommandError<std::convert::Infallible>> {
    let log = app.commands.log();
    let track = app.tracks.of(account);
    let attempt = || async {
        let mut track = track.lock().await;
        let now = app.commands.now();
        let mut since = needed(request.fixes(), now);
        if origin.receipt.is_some() {
            since = since.min(app.commands.receipts_since(now));
        }
        let known = match track.take() {
            Some(known) if known.reaches(since) => known,
            _ => KnownTrack::load(log, account, since).await?,
        };
        // A track that is not put back is loaded again: after a failure it is unknown what was
        // written.
        let mut known = known;
        let fixes = same_times(app, &known, request.fixes(), origin.receipt.as_ref())?;
        let settled = settle_times(&fixes, |fix| known.has(fix), now);
        let accepted = settled
            .iter()
            .map(|timed| accepted(app, account, timed.recorded_at));
        let accepted: Vec<_> = accepted.collect();
        let events = events(app, account, &settled, &accepted, origin, now).await?;
        if events.is_empty() {
            let position = log.position(Log::Locations, known.last.unwrap_or_default());
            *track = Some(known);
            return Ok(Some((accepted, position)));
        }
        let write = Write {
            stream: StreamId::of_track(account),
            expected: Expected::after(known.last),
            events,
        };
        let Some(position) = app.commands.commit(vec![write]).await? else {
            return Ok(None);
        };
        let new = settled.iter().filter(|timed| timed.is_new);
        let new = new.map(|timed| timed.recorded_at);
        known.append(new, now, origin.receipt.as_ref(), position.sequence());
        *track = Some(known);
        Ok(Some((accepted, position)))
    };
    until_written(attempt).await
}

/// The time since which the person's track must be known.
fn needed(fixes: &[Fix], now: DateTime<Utc>) -> DateTime<Utc> {
    let oldest = fixes.iter().filter_map(|fix| fix.recorded_at).min();
    taken_since(oldest.unwrap_or(now).min(now))
}

/// The fixes as a first request with the same `Idempotency-Key` sent them: those without a time
/// were given one then.
fn same_times(
    app: &App,
    known: &KnownTrack,
    fixes: &[Fix],
    receipt: Option<&Receipt>,
) -> Result<Vec<Fix>, CommandError<std::convert::Infallible>> {
    let mut fixes = fixes.to_vec();
    let Some(receipt) = receipt else {
        return Ok(fixes);
    };
    let named: Vec<_> = fixes.iter().filter_map(|fix| fix.recorded_at).collect();
    let mut given = Vec::new();
    for (fix, sent, earlier) in known.sent_with(&receipt.key) {
        if !app.commands.is_fresh(sent) {
            continue;
        }
        if earlier != receipt {
            return Err(CommandError::OtherRequest);
        }
        if !named.contains(&fix) {
            given.push(fix);
        }
    }
    let without = fixes.iter_mut().filter(|fix| fix.recorded_at.is_none());
    for (fix, time) in without.zip(given) {
        fix.recorded_at = Some(time);
    }
    Ok(fixes)
}

fn accepted(app: &App, account: AccountId, recorded_at: DateTime<Utc>) -> Accepted {
    let account = account.0.to_be_bytes();
    let micros = recorded_at.timestamp_micros().to_be_bytes();
    let keyring = app.commands.log().keyring();
    let id = keyring.derived_uuid("fix", &[&account, &micros]);
    Accepted { id, recorded_at }
}

async fn events(
    app: &App,
    account: AccountId,
    settled: &[Timed<'_>],
    accepted: &[Accepted],
    origin: &Origin,
    now: DateTime<Utc>,
) -> Result<Vec<NewEvent>, CommandError<std::convert::Infallible>> {
    let mut events = Vec::new();
    for (timed, accepted) in settled.iter().zip(accepted) {
        if !timed.is_new {
            continue;
        }
        let personal = timed.fix.personal().to_string();
        let vault = app.commands.log().vault();
        let sealed = vault
            .seal(&Binding::Position(account, timed.recorded_at), &personal)
            .await?;
        events.push(NewEvent {
            id: EventId(accepted.id),
            time: now,
            event: Event::LocationUpdated(Updated {
                user_id: account,
                recorded_at: timed.recorded_at,
                sealed,
            }),
            context: origin.context.clone(),
            receipt: origin.receipt.clone(),
        });
    }
    Ok(events)
}
