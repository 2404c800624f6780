//! `POST /circles/{id}/invites`, `POST /api/v1/circles/{id}/invites`: creates a code that lets
//! somebody join.

use access::{AccountToken, Authorized, scope};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use domain::circles::{self, Circle};
use schemas::claim::Claimed;
use schemas::{AccountId, CircleId, Event, OrgId, Receipt};
use serde::Serialize;
use service::HttpError;

use super::stream;
use crate::body::AnyBody;
use crate::bounds::NotAdded;
use crate::commands::{Outcome, Plan, Repeated, behind};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, LogError, Origin, answer};

/// Of `[0-9A-Za-z]`: unguessable within its lifetime.
const CODE_LENGTH: usize = 12;

/// A newly created invite.
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

/// The hash of a code in the log.
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
    let keyring = app.commands.log().keyring();
    let hash = keyring.keyed_hash("invite code", parts);
    hash.chars().take(CODE_LENGTH).collect()
}

async fn invite(
    app: &App,
    origin: &Origin,
    org: &OrgId,
    id: &CircleId,
    by: Option<AccountId>,
) -> Result<Done<NewInvite>, CommandError<NotAdded>> {
    let (commands, log) = (&app.commands, app.commands.log());
    let stream = stream(org, id);
    let invited = commands.carry_out(origin, || async {
        let past = log.load(&stream).await?;
        let now = commands.now();
        let code = new_code(app, origin.receipt.as_ref(), id);
        let lasts = TimeDelta::from_std(app.invites_last).unwrap_or(TimeDelta::MAX);
        let expires_at = now.checked_add_signed(lasts).unwrap_or(now);
        let hash = code_hash(app, &code);
        let circle = Circle::fold(&past);
        let made = circles::invite(circle.as_ref(), by, hash, expires_at);
        let made = vec![made.map_err(|refusal| CommandError::Refused(refusal.into()))?];
        let room = app.bounds.of_circle();
        let room = room.one_more_invite(circle.as_ref(), now);
        room.map_err(|full| CommandError::Refused(full.into()))?;
        // The claim leads from the code to its circle.
        let claim = log.claim("circle invite", &code);
        let free = behind(log.last(&claim).await?.as_slice());
        let holder = format!("{id} {org}");
        let found = vec![Event::ClaimClaimed(Claimed { holder })];
        Ok(Plan::Write {
            answer: NewInvite { code, expires_at },
            holder: id.to_string(),
            writes: vec![
                commands.write(origin, now, stream.clone(), behind(&past), made),
                commands.write(origin, now, claim, free, found),
            ],
        })
    });
    match invited.await? {
        Outcome::First(done) => Ok(done),
        Outcome::Repeat(repeated) => repeat(app, origin, &stream, repeated).await,
    }
}

/// Returns the first answer again.
async fn repeat(
    app: &App,
    origin: &Origin,
    stream: &schemas::StreamId,
    repeated: Repeated,
) -> Result<Done<NewInvite>, CommandError<NotAdded>> {
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
    Path(id): Path<CircleId>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_person(&caller, &body);
    let org = app.circles.org_of(&id);
    let done = invite(&app, &origin, &org, &id, Some(caller.account_id)).await?;
    let shown = |NewInvite { code, expires_at }| InviteOfPerson { code, expires_at };
    Ok(answer::json(StatusCode::CREATED, done.map(shown)))
}

pub(super) async fn invite_to_circle_of_org(
    caller: Authorized<scope::ManageCircles>,
    State(app): State<App>,
    Path(id): Path<CircleId>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_key(&caller, &body);
    let done = invite(&app, &origin, &caller.org, &id, None).await?;
    let shown = |NewInvite { code, expires_at }| InviteOfOrganization { code, expires_at };
    Ok(answer::json(StatusCode::CREATED, done.map(shown)))
}
