//! `POST /sos/trigger`: calls for help. Nothing limits it, and no call is too late to alert.

use std::convert::Infallible;

use access::UncountedToken;
use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use chrono::TimeDelta;
use domain::sos::{self, Request};
use event_log::{AppendError, Commit, EventLog, Expected, Owner, SYSTEM_ORG, Write};
use futures::future::join_all;
use schemas::sos::Triggered;
use schemas::{AccountId, AggregateType, Event, OrgId, SosId, StreamId};
use serde::Serialize;
use serde_json::Value;
use service::{HttpError, RequestContext};

use super::{of_org, own};
use crate::commands::{ATTEMPTS, Earlier};
use crate::idempotency::IdempotencyKey;
use crate::{App, CommandError, Done, LogError, Origin, answer, body};

#[derive(Serialize)]
struct Called {
    sos_id: SosId,
    audience: Vec<Alerted>,
}

/// Somebody who was alerted; without a name where it cannot be read at the moment.
#[derive(Serialize)]
struct Alerted {
    id: AccountId,
    name: Option<String>,
}

/// Nothing need be said in a call: no body is an empty one.
fn read(bytes: &Bytes, json: bool) -> Result<Request, HttpError> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Request::default());
    }
    if !json {
        return Err(body::not_json());
    }
    let value: Value = service::body::parse(bytes)?;
    Request::parse(value).map_err(|error| HttpError::bad_request(error.to_string()))
}

pub(super) async fn trigger_sos(
    caller: UncountedToken,
    State(app): State<App>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: HttpRequest,
) -> Result<Response, HttpError> {
    let json = service::body::is_json(request.headers());
    let bytes = service::body::read(request, body::MAX_OBJECT_BYTES).await?;
    let request = read(&bytes, json)?;
    let account = caller.0.account_id;
    let receipt = idempotency_key.receipt_of_person(app.commands.log(), account, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let done = call(&app, &origin, account, request).await?;
    let (triggered, position) = (done.answer, done.position);
    let audience = alerted(app.commands.log(), &triggered.audience).await;
    let sos_id = triggered.sos_id;
    let answer = Called { sos_id, audience };
    Ok(answer::json(
        StatusCode::ACCEPTED,
        Done { answer, position },
    ))
}

/// The call and its copies for organizations are written together or not at all.
async fn call(
    app: &App,
    origin: &Origin,
    account: AccountId,
    request: Request,
) -> Result<Done<Triggered>, CommandError<Infallible>> {
    let commands = &app.commands;
    let personal = request.personal().to_string();
    let vault = commands.log().vault();
    let sealed = vault.seal(&Owner::Account(account), &personal).await?;
    let late_after = TimeDelta::from_std(app.sos_late).unwrap_or(TimeDelta::MAX);
    let id = SosId::from(commands.random.id());
    for _ in 0..ATTEMPTS {
        let slot = match commands.earlier(origin).await? {
            Earlier::None(slot) => slot,
            Earlier::Repeat(repeated) => {
                let answer = first(commands.log(), &SosId::new(repeated.holder)).await?;
                let position = repeated.position;
                return Ok(Done { answer, position });
            }
        };
        let (audience, orgs) = app.circles.look(|circles| {
            let orgs = circles.current_orgs_of(account).into_iter().cloned();
            (circles.audience(account), orgs.collect::<Vec<OrgId>>())
        });
        let now = commands.now();
        let triggered = sos::trigger(
            id.clone(),
            account,
            audience.into_iter().collect(),
            request.recorded_at,
            sealed.clone(),
            now,
            late_after,
        );
        let streams = orgs.iter().map(|org| of_org(org, &id));
        let writes = std::iter::once(own(&id)).chain(streams).map(|stream| {
            let event = Event::SosTriggered(triggered.clone());
            Write {
                stream,
                expected: Expected::Empty,
                events: vec![commands.new_event(origin, now, event)],
            }
        });
        let claiming = commands.claiming(origin, slot, id.as_str(), now);
        let writes = writes.chain(claiming).collect();
        match commands.log().commit(Commit { writes }).await {
            Err(AppendError::Conflict) => {}
            result => {
                let (answer, position) = (triggered, result?);
                return Ok(Done { answer, position });
            }
        }
    }
    Err(AppendError::Conflict.into())
}

async fn first(log: &EventLog, id: &SosId) -> Result<Triggered, LogError> {
    match log.first(&own(id)).await?.map(|first| first.event) {
        Some(Event::SosTriggered(triggered)) => Ok(triggered),
        _ => Err(LogError::Broken(
            "a call that was made is not there".to_owned(),
        )),
    }
}

/// Says who was alerted. The call stands already, so that a name which cannot be read is no
/// reason to say that it failed.
async fn alerted(log: &EventLog, audience: &[AccountId]) -> Vec<Alerted> {
    let named = audience.iter().map(|id| name(log, *id));
    let names = join_all(named).await;
    let alerted = audience.iter().zip(names);
    alerted
        .map(|(id, name)| Alerted { id: *id, name })
        .collect()
}

async fn name(log: &EventLog, account: AccountId) -> Option<String> {
    let org = OrgId::from(SYSTEM_ORG);
    let stream = StreamId::new(&org, AggregateType::Account, account.to_string());
    let first = log.first(&stream).await.ok()??;
    let Event::AccountRegistered(registered) = first.event else {
        return None;
    };
    let owner = Owner::Account(account);
    log.vault().unseal(&owner, &registered.name).await.ok()
}
