//! What is asked of an endpoint and carried out once, however often it is sent.

use chrono::{DateTime, Utc};
use domain::webhook::{Disabled, Endpoint};
use event_log::Write;
use schemas::{AggregateType, Event, NewEvent, OrgId, Recorded, StreamId, WebhookId};
use service::HttpError;

use crate::commands::{Outcome, Plan, behind};
use crate::{CommandError, Commands, LogError, Origin, Refusal};

/// Why an endpoint does not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// There is no such endpoint.
    #[error("webhook not found")]
    NoWebhook,
    /// There is no such delivery of this endpoint.
    #[error("delivery not found")]
    NoDelivery,
    /// It gets nothing.
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

/// The endpoint as its own events tell.
pub(super) async fn endpoint(
    commands: &Commands,
    org: &OrgId,
    webhook: &WebhookId,
) -> Result<Endpoint, CommandError<Refused>> {
    fold(&commands.log().load(&stream(org, webhook)).await?)
}

/// Carries out what `decide` says of the endpoint; a repeat with the same receipt finds what
/// `holder` has left of the first.
pub(super) async fn carry_out(
    commands: &Commands,
    origin: &Origin,
    (org, webhook): (&OrgId, &WebhookId),
    holder: impl Fn(&NewEvent) -> String,
    decide: impl Fn(&Endpoint, DateTime<Utc>) -> Result<Event, Refused>,
) -> Result<Outcome<NewEvent>, CommandError<Refused>> {
    let stream = stream(org, webhook);
    let plan = || async {
        let past = commands.log().load(&stream).await?;
        let endpoint = fold(&past)?;
        let now = commands.now();
        let event = decide(&endpoint, now).map_err(CommandError::Refused)?;
        let event = commands.new_event(origin, now, event);
        Ok(Plan::Write {
            holder: holder(&event),
            writes: vec![Write {
                stream: stream.clone(),
                expected: behind(&past),
                events: vec![event.clone()],
            }],
            answer: event,
        })
    };
    commands.carry_out(origin, plan).await
}

fn fold(past: &[Recorded]) -> Result<Endpoint, CommandError<Refused>> {
    let endpoint = Endpoint::fold(past.iter().map(|recorded| &recorded.event));
    endpoint.ok_or(CommandError::Refused(Refused::NoWebhook))
}

pub(super) fn lost() -> LogError {
    LogError::Broken("what an Idempotency-Key stands for cannot be found".to_owned())
}
