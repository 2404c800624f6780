//! `POST /sos/trigger`: calls for help. Nothing limits it, and no call is too late to alert.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use access::UncountedToken;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::TimeDelta;
use domain::sos::{self, Request};
use event_log::{Binding, EventLog, Expected};
use futures::{StreamExt as _, stream};
use schemas::sos::Triggered;
use schemas::{AccountId, Event, OrgId, SosId, StreamId};
use serde::Serialize;
use service::HttpError;
use tokio::time::sleep;

use super::{of_org, own};
use crate::body::{AnyBody, not_json};
use crate::commands::{Outcome, Plan, Repeated};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, LogError, Origin, Refusal, answer};

/// How many of those who were alerted get their names in the response: nothing limits calls, and an
/// organization's circle may have very many members.
const NAMED: usize = 1_000;
/// Names that are read concurrently. So many are read first, over the connection of commands.
const AT_ONCE: usize = 32;
/// How long the response waits for names.
const NAMING: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Called {
    sos_id: SosId,
    audience: Vec<Alerted>,
}

/// Somebody who was alerted; without a name if it was not read.
#[derive(Serialize)]
struct Alerted {
    id: AccountId,
    name: Option<String>,
}

/// A call needs no content: a missing body counts as an empty one.
fn read(body: &AnyBody) -> Result<Request, HttpError> {
    if body.trim_ascii().is_empty() {
        return Ok(Request::default());
    }
    if !body.is_json {
        return Err(not_json());
    }
    Request::parse(service::body::parse(body)?).map_err(Refusal::into_http)
}

pub(super) async fn trigger_sos(
    caller: UncountedToken,
    State(app): State<App>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let request = read(&body)?;
    let origin = repeatable.by_person(&caller, &body);
    let done = call(&app, &origin, caller.account_id, request).await;
    let done = done.map_err(without_limit)?;
    let audience = alerted(app.commands.log(), &done.answer.audience).await;
    let called = done.map(|Triggered { sos_id, .. }| Called { sos_id, audience });
    Ok(answer::json(StatusCode::ACCEPTED, called))
}

/// The response to a call for help, or an answer to one, that failed. It never names a limit: while
/// the log is slow, even a caller who writes more than others is only asked to try again.
pub(super) fn without_limit<R: Refusal>(error: CommandError<R>) -> HttpError {
    match error {
        CommandError::Log(error @ LogError::HeldBack) => {
            HttpError::unavailable("the event log is busy; try again in a second").with_cause(error)
        }
        error => error.into(),
    }
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
    let id = SosId::from(commands.random.id());
    let binding = Binding::CallForHelp(account, id.clone());
    let sealed = vault.seal(&binding, &personal).await?;
    let late_after = TimeDelta::from_std(app.sos_late).unwrap_or(TimeDelta::MAX);
    let called = commands.carry_out(origin, || async {
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
        let write = |stream| {
            let events = vec![Event::SosTriggered(triggered.clone())];
            commands.write(origin, now, stream, Expected::Empty, events)
        };
        Ok(Plan::Write {
            writes: std::iter::once(own(&id))
                .chain(streams)
                .map(write)
                .collect(),
            answer: triggered,
            holder: id.to_string(),
        })
    });
    match called.await? {
        Outcome::First(done) => Ok(done),
        Outcome::Repeat(Repeated {
            holder, position, ..
        }) => {
            let answer = first(commands.log(), &SosId::new(holder)).await?;
            Ok(Done { answer, position })
        }
    }
}

async fn first(log: &EventLog, id: &SosId) -> Result<Triggered, LogError> {
    match log.first(&own(id)).await?.map(|first| first.event) {
        Some(Event::SosTriggered(triggered)) => Ok(triggered),
        _ => Err(LogError::Broken(
            "a call that was made is not there".to_owned(),
        )),
    }
}

/// Returns who was alerted. The call is already written, so a name that cannot be read must neither
/// report it as failed nor delay the response for long.
async fn alerted(log: &EventLog, audience: &[AccountId]) -> Vec<Alerted> {
    let first: Vec<AccountId> = audience.iter().copied().take(NAMED).collect();
    let reads = first.into_iter().enumerate();
    let reads = reads.map(|(place, id)| named(log, place, id));
    let reads = stream::iter(reads).buffer_unordered(AT_ONCE);
    let read = reads.take_until(sleep(NAMING)).filter_map(ready);
    let mut names: HashMap<AccountId, String> = read.collect().await;
    let alerted = audience.iter().map(|id| Alerted {
        id: *id,
        name: names.remove(id),
    });
    alerted.collect()
}

/// Reads a person's name. The connection of outside readers gives way to everything else, and may
/// return no name in time on a busy machine. So the first are read over the connection of commands,
/// which are as many as a circle usually has; no more than these, since other commands wait for it.
async fn named(log: &EventLog, place: usize, account: AccountId) -> Option<(AccountId, String)> {
    let stream = StreamId::of_account(account);
    let first = if place < AT_ONCE {
        log.first(&stream).await
    } else {
        log.first_for_reader(&stream).await
    };
    let Event::AccountRegistered(registered) = first.ok()??.event else {
        return None;
    };
    let binding = Binding::Name(account);
    let name = log.vault().unseal(&binding, &registered.name).await.ok()?;
    Some((account, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_for_help_is_never_answered_with_a_limit() {
        let held_back = || CommandError::<Infallible>::Log(LogError::HeldBack);
        assert_eq!(HttpError::from(held_back()).status.as_u16(), 429);
        assert_eq!(without_limit(held_back()).status.as_u16(), 503);
        let other = CommandError::<Infallible>::OtherRequest;
        assert_eq!(without_limit(other).status.as_u16(), 409);
    }
}
