//! `POST /circles/{id}/invites`, `POST /api/v1/circles/{id}/invites`: makes a code that lets
//! somebody join.

use access::{AccountToken, Authorized, scope};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use domain::circles::{self, Circle, NotMember};
use event_log::{AppendError, Commit, Expected, Write};
use schemas::claim::Claimed;
use schemas::{AccountId, CircleId, Event, OrgId, Receipt};
use serde::Serialize;
use service::{HttpError, RequestContext};

use super::stream;
use crate::commands::{ATTEMPTS, Earlier, Repeated};
use crate::idempotency::IdempotencyKey;
use crate::{App, CommandError, Done, LogError, Origin, answer, body};

/// Of `[0-9A-Za-z]`: nobody guesses one within its life.
const CODE_LENGTH: usize = 12;

/// An invite that was just made.
struct NewInvite {
    code: String,
    expires_at: DateTime<Utc>,
}

#[derive(Serialize)]
struct InviteOfPerson {
    code: String,
    expires_at: DateTime<Utc>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InviteOfOrganization {
    code: String,
    expires_at: DateTime<Utc>,
}

/// The hash under which a code stands in the log.
pub(super) fn code_hash(app: &App, code: &str) -> String {
    let keyring = app.commands.log().keyring();
    keyring.keyed_hash("circle invite", &[code.as_bytes()])
}

/// Random, unless a repeat must find the same: then derived from what only the repeat knows and
/// the installation's own secret.
fn new_code(app: &App, receipt: Option<&Receipt>, circle: &CircleId) -> String {
    match receipt {
        None => app.commands.random.letters(CODE_LENGTH),
        Some(receipt) => derived_code(app, receipt, circle),
    }
}

fn derived_code(app: &App, receipt: &Receipt, circle: &CircleId) -> String {
    let parts = &[receipt.key.as_bytes(), circle.as_str().as_bytes()];
    let hash = app
        .commands
        .log()
        .keyring()
        .keyed_hash("invite code", parts);
    hash.chars().take(CODE_LENGTH).collect()
}

async fn invite(
    app: &App,
    origin: &Origin,
    org: &OrgId,
    id: &CircleId,
    by: Option<AccountId>,
) -> Result<Done<NewInvite>, CommandError<NotMember>> {
    let commands = &app.commands;
    let log = commands.log();
    let stream = stream(org, id);
    for _ in 0..ATTEMPTS {
        let slot = match commands.earlier(origin).await? {
            Earlier::None(slot) => slot,
            Earlier::Repeat(repeated) => return repeat(app, origin, &stream, repeated).await,
        };
        let past = log.load(&stream).await?;
        let now = commands.now();
        let code = new_code(app, origin.receipt.as_ref(), id);
        let lasts = TimeDelta::from_std(app.invites_last).unwrap_or(TimeDelta::MAX);
        let expires_at = now.checked_add_signed(lasts).unwrap_or(now);
        let hash = code_hash(app, &code);
        let circle = Circle::fold(&past);
        let made = circles::invite(circle.as_ref(), by, hash, expires_at);
        let made = made.map_err(CommandError::Refused)?;
        let making = Write {
            stream: stream.clone(),
            expected: Expected::after(past.last().map(|last| last.sequence)),
            events: vec![commands.new_event(origin, now, made)],
        };
        // By its claim the code finds its circle.
        let claim = log.claim("circle invite", &code);
        let last = log.last(&claim).await?;
        let holder = format!("{id} {org}");
        let finding = Write {
            stream: claim,
            expected: Expected::after(last.map(|last| last.sequence)),
            events: vec![commands.new_event(origin, now, Event::ClaimClaimed(Claimed { holder }))],
        };
        let claiming = commands.claiming(origin, slot, id.as_str(), now);
        let writes = [Some(making), Some(finding), claiming];
        let writes = writes.into_iter().flatten().collect();
        match log.commit(Commit { writes }).await {
            Err(AppendError::Conflict) => {}
            result => {
                let position = result?;
                let answer = NewInvite { code, expires_at };
                return Ok(Done { answer, position });
            }
        }
    }
    Err(AppendError::Conflict.into())
}

/// The first answer again.
async fn repeat(
    app: &App,
    origin: &Origin,
    stream: &schemas::StreamId,
    repeated: Repeated,
) -> Result<Done<NewInvite>, CommandError<NotMember>> {
    let lost = || LogError::Broken("an invite that was made is not there".to_owned());
    let receipt = origin.receipt.as_ref().ok_or_else(lost)?;
    let past = app.commands.log().load(stream).await?;
    let circle = Circle::fold(&past).ok_or_else(lost)?;
    let code = derived_code(app, receipt, &circle.id);
    let invite = circle.invite(&code_hash(app, &code)).ok_or_else(lost)?;
    let expires_at = invite.expires_at;
    let answer = NewInvite { code, expires_at };
    let position = repeated.position;
    Ok(Done { answer, position })
}

pub(super) async fn invite_to_circle(
    caller: AccountToken,
    State(app): State<App>,
    Path(id): Path<String>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = service::body::read(request, body::MAX_OBJECT_BYTES).await?;
    let account = caller.account_id;
    let receipt = idempotency_key.receipt_of_person(app.commands.log(), account, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let id = CircleId::new(id);
    let org = app.circles.org_of(&id);
    let done = invite(&app, &origin, &org, &id, Some(account)).await?;
    let NewInvite { code, expires_at } = done.answer;
    let answer = InviteOfPerson { code, expires_at };
    let position = done.position;
    Ok(answer::json(StatusCode::CREATED, Done { answer, position }))
}

pub(super) async fn invite_to_circle_of_org(
    caller: Authorized<scope::ManageCircles>,
    State(app): State<App>,
    Path(id): Path<String>,
    context: RequestContext,
    idempotency_key: IdempotencyKey,
    request: Request,
) -> Result<Response, HttpError> {
    let bytes = service::body::read(request, body::MAX_OBJECT_BYTES).await?;
    let receipt = idempotency_key.receipt(app.commands.log(), &caller, &bytes);
    let origin = Origin::of(&context).with_receipt(receipt);
    let done = invite(&app, &origin, &caller.org, &CircleId::new(id), None).await?;
    let NewInvite { code, expires_at } = done.answer;
    let answer = InviteOfOrganization { code, expires_at };
    let position = done.position;
    Ok(answer::json(StatusCode::CREATED, Done { answer, position }))
}
