//! `POST /sos/{id}/acknowledge`, `POST /sos/{id}/resolve`: answers a call for help.

use access::AccountToken;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::sos::{self, Answer, Call, NotConcerned};
use event_log::{AppendError, Commit, Expected, Write};
use schemas::{AccountId, Log, OrgId, SosId};
use serde::Serialize;
use service::{HttpError, RequestContext};

use super::{of_org, own};
use crate::commands::{ATTEMPTS, Earlier};
use crate::idempotency::IdempotencyKey;
use crate::{App, CommandError, Done, Origin, Refusal, answer, body};

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

/// The organizations that the caller shares a circle with and that were told of the call get the
/// answer too, with what is last of it in their part of the log.
async fn told(
    app: &App,
    id: &SosId,
    caller: AccountId,
) -> Result<Vec<(OrgId, u64)>, CommandError<NotConcerned>> {
    let orgs: Vec<OrgId> = app.circles.look(|circles| {
        let orgs = circles.current_orgs_of(caller).into_iter();
        orgs.cloned().collect()
    });
    let streams: Vec<_> = orgs.iter().map(|org| of_org(org, id)).collect();
    let lasts = app.commands.log().last_of_each(&streams).await?;
    let told = orgs.into_iter().zip(lasts);
    Ok(told
        .filter_map(|(org, last)| Some((org, last?.sequence)))
        .collect())
}

async fn settle(
    app: &App,
    origin: &Origin,
    id: &SosId,
    by: AccountId,
    said: Answer,
) -> Result<Done<()>, CommandError<NotConcerned>> {
    let commands = &app.commands;
    let stream = own(id);
    for _ in 0..ATTEMPTS {
        let slot = match commands.earlier(origin).await? {
            Earlier::None(slot) => slot,
            Earlier::Repeat(repeated) => {
                let position = repeated.position;
                return Ok(Done {
                    answer: (),
                    position,
                });
            }
        };
        let past = commands.log().load(&stream).await?;
        let call = Call::fold(past.iter().map(|recorded| &recorded.event));
        let event = sos::answer(call.as_ref(), by, said).map_err(CommandError::Refused)?;
        let last = past.last().map_or(0, |last| last.sequence);
        let (Some(event), Some(call)) = (event, call) else {
            let position = commands.log().position(Log::Events, last);
            return Ok(Done {
                answer: (),
                position,
            });
        };
        let now = commands.now();
        let told = told(app, id, call.triggered.user_id).await?;
        let told = told.iter().map(|(org, last)| (of_org(org, id), *last));
        let writes = std::iter::once((stream.clone(), last)).chain(told);
        let writes = writes.map(|(stream, last)| Write {
            stream,
            expected: Expected::At(last),
            events: vec![commands.new_event(origin, now, event.clone())],
        });
        let claiming = commands.claiming(origin, slot, id.as_str(), now);
        let writes = writes.chain(claiming).collect();
        match commands.log().commit(Commit { writes }).await {
            Err(AppendError::Conflict) => {}
            result => {
                let position = result?;
                return Ok(Done {
                    answer: (),
                    position,
                });
            }
        }
    }
    Err(AppendError::Conflict.into())
}

pub(super) async fn acknowledge_sos(
    caller: AccountToken,
    app: State<App>,
    id: Path<String>,
    context: RequestContext,
    key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    respond(&caller, app, id, context, key, request, Answer::Acknowledge).await
}

pub(super) async fn resolve_sos(
    caller: AccountToken,
    app: State<App>,
    id: Path<String>,
    context: RequestContext,
    key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    respond(&caller, app, id, context, key, request, Answer::Resolve).await
}

async fn respond(
    caller: &AccountToken,
    State(app): State<App>,
    Path(id): Path<String>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: Request,
    said: Answer,
) -> Result<Response, HttpError> {
    let bytes = service::body::read(request, body::MAX_OBJECT_BYTES).await?;
    let account = caller.account_id;
    let receipt = idempotency_key.receipt_of_person(app.commands.log(), account, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let sos_id = SosId::new(id);
    let position = settle(&app, &origin, &sos_id, account, said)
        .await?
        .position;
    let status = match said {
        Answer::Acknowledge => "acknowledged",
        Answer::Resolve => "resolved",
    };
    let answer = Answered { sos_id, status };
    Ok(answer::json(StatusCode::OK, Done { answer, position }))
}
