//! `POST /sos/{id}/acknowledge`, `POST /sos/{id}/resolve`: answers a call for help, from a person
//! or from an organization's staff on its map. Like the call itself, nothing limits it.

use access::{Staff, UncountedToken};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::sos::{self, By, Call, NotConcerned, Reply};
use event_log::{EventLog, Expected, ReadError};
use schemas::{AccountId, Log, OrgId, Recorded, SosId};
use serde::Serialize;
use service::HttpError;

use super::trigger::without_limit;
use super::{of_org, own};
use crate::body::AnyBody;
use crate::commands::Plan;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, Origin, Refusal, answer};

#[derive(Serialize)]
struct Answered {
    sos_id: SosId,
    status: &'static str,
}

impl Refusal for NotConcerned {
    fn into_http(self) -> HttpError {
        HttpError::not_found(self.to_string())
    }
}

/// The organizations that the caller shares a circle with and that were notified of the call get
/// the answer too. Each comes with the call's last sequence in its part of the log.
async fn notified(
    app: &App,
    id: &SosId,
    caller: AccountId,
) -> Result<Vec<(OrgId, u64)>, ReadError> {
    let orgs: Vec<OrgId> = app.circles.look(|circles| {
        let orgs = circles.current_orgs_of(caller).into_iter();
        orgs.cloned().collect()
    });
    let streams: Vec<_> = orgs.iter().map(|org| of_org(org, id)).collect();
    let lasts = app.commands.log().last_of_each(&streams).await?;
    let notified = orgs.into_iter().zip(lasts);
    Ok(notified
        .filter_map(|(org, last)| Some((org, last?.sequence)))
        .collect())
}

/// Who answers, and for whom.
enum Answerer<'a> {
    Person(AccountId),
    Staff(&'a Staff),
}

impl Answerer<'_> {
    /// Staff is concerned if its organization was notified.
    fn by(&self, notified: &[(OrgId, u64)]) -> Result<By, NotConcerned> {
        match self {
            Self::Person(account) => Ok(By::Person(*account)),
            Self::Staff(staff) if notified.iter().any(|(org, _)| *org == staff.org) => {
                Ok(By::Staff(staff.person.account_id))
            }
            Self::Staff(_) => Err(NotConcerned),
        }
    }
}

async fn settle(
    app: &App,
    origin: &Origin,
    id: &SosId,
    who: &Answerer<'_>,
    said: Reply,
) -> Result<Done<()>, CommandError<NotConcerned>> {
    let plan = || plan(app, origin, id, who, said);
    Ok(app.commands.carry_out(origin, plan).await?.answered(drop))
}

/// Reads a call, and the sequence of its last event. Every answer repeats the call with all who
/// were alerted, so no more of them than a page is held at a time.
async fn past(log: &EventLog, id: &SosId) -> Result<(Option<Call>, u64), ReadError> {
    let (mut call, mut last) = (None, 0);
    let take = |page: Vec<Recorded>| {
        for recorded in &page {
            call = Call::after(call.take(), &recorded.event);
            last = recorded.sequence;
        }
    };
    log.all_pages(&own(id), take).await?;
    Ok((call, last))
}

/// Plans the writes of an answer. One that changes nothing claims no `Idempotency-Key`: a repeat
/// can change nothing either, and what nothing limits must not write without end.
async fn plan(
    app: &App,
    origin: &Origin,
    id: &SosId,
    who: &Answerer<'_>,
    said: Reply,
) -> Result<Plan<()>, CommandError<NotConcerned>> {
    let commands = &app.commands;
    let (call, last) = past(commands.log(), id).await?;
    let notified = match &call {
        Some(call) => notified(app, id, call.triggered.user_id).await?,
        None => Vec::new(),
    };
    let decided = who
        .by(&notified)
        .and_then(|by| sos::answer(call.as_ref(), by, said));
    let Some(event) = decided.map_err(CommandError::Refused)? else {
        let position = commands.log().position(Log::Events, last);
        return Ok(Plan::Nothing {
            done: Done {
                answer: (),
                position,
            },
            holder: None,
        });
    };
    let now = commands.now();
    let notified = notified.iter().map(|(org, last)| (of_org(org, id), *last));
    let writes = std::iter::once((own(id), last)).chain(notified);
    let write = |(stream, last)| {
        commands.write(origin, now, stream, Expected::At(last), vec![event.clone()])
    };
    Ok(Plan::Write {
        answer: (),
        holder: id.to_string(),
        writes: writes.map(write).collect(),
    })
}

pub(super) async fn acknowledge_sos(
    caller: UncountedToken,
    State(app): State<App>,
    Path(id): Path<SosId>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_person(&caller, &body);
    let caller = Answerer::Person(caller.account_id);
    respond(&app, &origin, id, &caller, Reply::Acknowledge).await
}

pub(super) async fn resolve_sos(
    caller: UncountedToken,
    State(app): State<App>,
    Path(id): Path<SosId>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_person(&caller, &body);
    let caller = Answerer::Person(caller.account_id);
    respond(&app, &origin, id, &caller, Reply::Resolve).await
}

/// Answers as a member of an organization's staff.
pub(crate) async fn answer_as_staff(
    app: &App,
    origin: &Origin,
    id: SosId,
    staff: &Staff,
    said: Reply,
) -> Result<Response, HttpError> {
    respond(app, origin, id, &Answerer::Staff(staff), said).await
}

async fn respond(
    app: &App,
    origin: &Origin,
    sos_id: SosId,
    who: &Answerer<'_>,
    said: Reply,
) -> Result<Response, HttpError> {
    let done = settle(app, origin, &sos_id, who, said).await;
    let done = done.map_err(without_limit)?;
    let status = match said {
        Reply::Acknowledge => "acknowledged",
        Reply::Resolve => "resolved",
    };
    let answered = done.map(|()| Answered { sos_id, status });
    Ok(answer::json(StatusCode::OK, answered))
}
