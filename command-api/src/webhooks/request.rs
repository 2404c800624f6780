//! Commands on an endpoint.

use chrono::{DateTime, Utc};
use domain::webhook::{Disabled, Endpoint};
use event_log::{Expected, Write};
use schemas::{AggregateType, Event, NewEvent, OrgId, StreamId, WebhookId};
use service::HttpError;

use super::directory::{Directory, EndpointEntry};
use crate::commands::{Decision, Outcome, Plan};
use crate::{App, CommandError, Commands, Done, LogError, NotFound, Origin, Refusal};

/// Why a command on an endpoint was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// There is no such endpoint.
    #[error("webhook not found")]
    NoWebhook,
    /// There is no such delivery of this endpoint.
    #[error("delivery not found")]
    NoDelivery,
    /// The endpoint is disabled.
    #[error(transparent)]
    Disabled(#[from] Disabled),
}

impl Refusal for Refused {
    fn into_http(self) -> HttpError {
        let message = self.to_string();
        match self {
            Self::NoWebhook | Self::NoDelivery => HttpError::not_found(message),
            Self::Disabled(_) => HttpError::conflict(message),
        }
    }
}

pub(super) fn stream(org: &OrgId, webhook: &WebhookId) -> StreamId {
    StreamId::new(org, AggregateType::Webhook, webhook.as_str())
}

/// Returns the endpoint as folded from its own events.
pub(super) async fn known(
    commands: &Commands,
    webhooks: &Directory,
    stream: &StreamId,
) -> Result<EndpointEntry, CommandError<Refused>> {
    let known = webhooks.find(commands.log(), stream).await?;
    known.ok_or(CommandError::Refused(Refused::NoWebhook))
}

/// Carries out an idempotent decision on the endpoint.
pub(super) async fn execute<T>(
    app: &App,
    origin: &Origin,
    (org, webhook): (&OrgId, &WebhookId),
    decide: impl Fn(EndpointEntry) -> Decision<T>,
) -> Result<Done<T>, CommandError<NotFound>> {
    let (commands, stream) = (&app.commands, stream(org, webhook));
    let plan = || async {
        let known = app.webhooks.find(commands.log(), &stream).await?;
        let known = known.ok_or(CommandError::Refused(NotFound("webhook")))?;
        let end = (&stream, Some(known.last));
        let decision = decide(known);
        Ok(commands.planned(origin, commands.now(), end, "", decision))
    };
    commands.execute_plan(plan).await
}

/// Carries out a decision on the endpoint once; a repeat with the same receipt finds what `holder`
/// kept of the first.
pub(super) async fn carry_out(
    commands: &Commands,
    webhooks: &Directory,
    origin: &Origin,
    stream: &StreamId,
    holder: impl Fn(&NewEvent) -> String,
    decide: impl Fn(&Endpoint, DateTime<Utc>) -> Result<Event, Refused>,
) -> Result<Outcome<NewEvent>, CommandError<Refused>> {
    let plan = || async {
        let known = known(commands, webhooks, stream).await?;
        let now = commands.now();
        let event = decide(&known.endpoint, now).map_err(CommandError::Refused)?;
        let event = commands.new_event(origin, now, event);
        Ok(Plan::Write {
            holder: holder(&event),
            writes: vec![Write {
                stream: stream.clone(),
                expected: Expected::At(known.last),
                events: vec![event.clone()],
            }],
            answer: event,
        })
    };
    commands.carry_out(origin, plan).await
}

pub(super) fn lost() -> LogError {
    LogError::Broken("what an Idempotency-Key was used for cannot be found".to_owned())
}
