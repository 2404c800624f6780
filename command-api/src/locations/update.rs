//! `POST /location/update`: accepts where a person is, or was.

use std::collections::{BTreeSet, HashSet};
use std::convert::Infallible;

use access::{Person, UncountedToken};
use axum::extract::{FromRequest, Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::location::{CLOCKS_APART, Fix, Request, Timed, settle_times};
use event_log::{Binding, Expected, Position, Write};
use schemas::location::Updated;
use schemas::{AccountId, Event, EventId, Log, NewEvent, Receipt, Recorded, StreamId};
use serde::Serialize;
use serde_json::Value;
use service::{HttpError, RequestContext};
use uuid::Uuid;

use super::tracks::{KnownTrack, Needed};
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
    let request = Request::parse(value, app.commands.now(), app.fix_ahead);
    let request = request.map_err(Refusal::into_http)?;
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
) -> Result<(Vec<Accepted>, Position), CommandError<Infallible>> {
    let log = app.commands.log();
    let track = app.tracks.of(account);
    let receipt = origin.receipt.as_ref();
    let attempt = || async {
        let mut track = track.lock().await;
        let now = app.commands.now();
        let keys_valid_since = app.commands.receipts_since(now);
        let needed = Needed::by(request.fixes(), receipt.is_some(), keys_valid_since, now);
        // A track that is not put back is loaded again: after a failure it is unknown what was
        // written. What only the search of a load found is not part of the track, so the next
        // attempt searches again if it needs that.
        let (mut known, mut found) = match track.take() {
            Some(known) if known.is_enough_for(&needed) => (known, HashSet::new()),
            _ => KnownTrack::load(log, account, &needed).await?,
        };
        let first = match first_times(app, account, &known, &needed, receipt).await {
            Ok(first) => first,
            Err(error) => {
                *track = Some(known);
                return Err(error);
            }
        };
        let fixes = same_times(request.fixes(), &first);
        found.extend(first);
        let is_known = |fix| known.fixes.has(fix) || found.contains(&fix);
        let settled = settle_times(&fixes, is_known, now);
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
            if known.catch_up(log, account, &needed).await? {
                *track = Some(known);
            }
            return Ok(None);
        };
        let new = settled.iter().filter(|timed| timed.is_new);
        let new = new.map(|timed| timed.recorded_at);
        let key = receipt.map(|receipt| receipt.key.as_str());
        known.append(new, key, &needed, position.sequence());
        *track = Some(known);
        Ok(Some((accepted, position)))
    };
    until_written(attempt).await
}

/// The times of the fixes that the log has from a first request with the same `Idempotency-Key`.
async fn first_times(
    app: &App,
    account: AccountId,
    known: &KnownTrack,
    needed: &Needed,
    receipt: Option<&Receipt>,
) -> Result<BTreeSet<DateTime<Utc>>, CommandError<Infallible>> {
    let mut times = BTreeSet::new();
    let used = receipt.and_then(|receipt| {
        let used = known.keys.used(&receipt.key, needed.keys_valid_since)?;
        Some((receipt, used))
    });
    let Some((receipt, used)) = used else {
        return Ok(times);
    };
    let mut is_other = false;
    let take = |page: Vec<Recorded>| {
        for event in &page {
            let first = event.receipt.as_ref();
            let first = first.filter(|first| first.key == receipt.key);
            let (Some(first), Event::LocationUpdated(updated)) = (first, &event.event) else {
                continue;
            };
            if app.commands.is_fresh(event.time) {
                is_other |= first != receipt;
                times.insert(updated.recorded_at);
            }
        }
    };
    let stream = StreamId::of_track(account);
    let since = used - CLOCKS_APART;
    app.commands.log().pages_since(&stream, since, take).await?;
    if is_other {
        return Err(CommandError::OtherRequest);
    }
    Ok(times)
}

/// The fixes as a first request with the same `Idempotency-Key` sent them, whose fixes have these
/// times: those without a time were given one then.
fn same_times(fixes: &[Fix], first: &BTreeSet<DateTime<Utc>>) -> Vec<Fix> {
    let named: BTreeSet<_> = fixes.iter().filter_map(|fix| fix.recorded_at).collect();
    let mut given = first.difference(&named).copied();
    let mut fixes = fixes.to_vec();
    let without = fixes.iter_mut().filter(|fix| fix.recorded_at.is_none());
    for fix in without {
        fix.recorded_at = given.next();
    }
    fixes
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
) -> Result<Vec<NewEvent>, CommandError<Infallible>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn fixes(times: [Option<DateTime<Utc>>; 3]) -> Vec<Fix> {
        let fix = |recorded_at| Fix {
            lat: 1.0,
            lng: 2.0,
            accuracy: None,
            speed: None,
            place_name: None,
            battery: None,
            recorded_at,
        };
        times.into_iter().map(fix).collect()
    }

    #[test]
    fn fixes_without_a_time_get_those_of_the_first_request_in_order() {
        let sent = fixes([None, Some(at(1)), None]);
        let first = BTreeSet::from([at(11), at(1), at(10)]);
        let again = fixes([Some(at(10)), Some(at(1)), Some(at(11))]);
        assert_eq!(same_times(&sent, &first), again);
        assert_eq!(same_times(&sent, &BTreeSet::new()), sent);
    }
}
