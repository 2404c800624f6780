//! `POST /api/v1/webhooks/{id}/rotate-secret`: replaces the secret of an endpoint and shows it
//! once. The old one also signs for a while.

use std::time::Duration;

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, TimeDelta};
use domain::webhook;
use event_log::Binding;
use schemas::{Event, OrgId, Sealed, WebhookId};
use serde::Serialize;
use service::HttpError;

use super::Directory;
use super::create::new_secret;
use super::request::{self, Refused};
use crate::body::AnyBody;
use crate::commands::Outcome;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, LogError, Origin, answer};

#[derive(Serialize)]
struct NewSecret {
    secret: String,
}

/// Replaces the endpoint's secret. A repeat with the same receipt gets the same one again.
async fn rotate_secret(
    commands: &Commands,
    webhooks: &Directory,
    origin: &Origin,
    (org, id): (&OrgId, &WebhookId),
    old_signs: Duration,
) -> Result<Done<NewSecret>, CommandError<Refused>> {
    let secret = new_secret(commands);
    let binding = Binding::WebhookSecret(org.clone(), id.clone());
    let sealed = commands.log().vault().seal(&binding, &secret).await?;
    let old_signs = TimeDelta::from_std(old_signs).unwrap_or(TimeDelta::MAX);
    let stream = request::stream(org, id);
    let rotated = request::carry_out(
        commands,
        webhooks,
        origin,
        &stream,
        |event| event.id.to_string(),
        |endpoint, now| {
            let until = now.checked_add_signed(old_signs);
            let until = until.unwrap_or(DateTime::<chrono::Utc>::MAX_UTC);
            Ok(webhook::rotate_secret(endpoint, sealed.clone(), until))
        },
    );
    let (secret, position) = match rotated.await? {
        Outcome::First(done) => (secret, done.position),
        Outcome::Repeat(repeated) => {
            let sealed = rotated_by(commands, org, id, &repeated.holder).await?;
            let secret = commands.log().vault().unseal(&binding, &sealed).await?;
            (secret, repeated.position)
        }
    };
    let answer = NewSecret { secret };
    Ok(Done { answer, position })
}

/// Returns the secret that the event of this id set.
async fn rotated_by(
    commands: &Commands,
    org: &OrgId,
    id: &WebhookId,
    event: &str,
) -> Result<Sealed, LogError> {
    let past = commands.log().load(&request::stream(org, id)).await?;
    let found = past
        .into_iter()
        .find(|recorded| recorded.id.to_string() == event);
    match found.map(|recorded| recorded.event) {
        Some(Event::WebhookSecretRotated(rotated)) => Ok(rotated.secret),
        _ => Err(request::lost()),
    }
}

pub(super) async fn rotate_webhook_secret(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    Path(id): Path<WebhookId>,
    repeatable: Repeatable,
    body: AnyBody,
) -> Result<Response, HttpError> {
    let origin = repeatable.by_key(&caller, &body);
    let endpoint = (&caller.org, &id);
    let old_signs = app.webhook_old_secret;
    let rotated = rotate_secret(&app.commands, &app.webhooks, &origin, endpoint, old_signs);
    let done = rotated.await?;
    Ok(answer::json(StatusCode::OK, done))
}
