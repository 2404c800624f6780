//! Disables an endpoint that only fails.

use chrono::{DateTime, Utc};
use domain::webhook::Endpoint;
use event_log::{AppendError, EventLog, Expected, ReadError, Write};
use schemas::webhook::{Disabled, Status};
use schemas::{AggregateType, Context, Event, EventId, NewEvent, OrgId, StreamId, WebhookId};
use uuid::Uuid;

use crate::retry::retry_while;

/// Why an endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It answered 410.
    Gone,
    /// Nothing but failures since this time.
    OnlyFailures(DateTime<Utc>),
}

impl Reason {
    fn words(self) -> String {
        match self {
            Self::Gone => "the receiver answered 410 Gone".to_owned(),
            Self::OnlyFailures(since) => {
                format!("only failures since {}", since.format("%Y-%m-%d %H:%M UTC"))
            }
        }
    }

    /// Whether the endpoint's last change makes this reason void.
    fn is_void(self, last_change: DateTime<Utc>) -> bool {
        match self {
            Self::Gone => false,
            Self::OnlyFailures(since) => last_change > since,
        }
    }
}

/// Whether an event of the endpoint resets its earlier failures: mere requests to it do not.
fn is_change(event: &Event) -> bool {
    !matches!(
        event,
        Event::WebhookReplayRequested(_) | Event::WebhookTestRequested(_)
    )
}

/// Decides from the endpoint's own events and appends `webhook.disabled`.
pub(super) async fn disable(
    log: &EventLog,
    org: &OrgId,
    webhook: &WebhookId,
    why: Reason,
    now: DateTime<Utc>,
) {
    let stream = StreamId::new(org, AggregateType::Webhook, webhook.as_str());
    loop {
        let events = match retry_while(|| log.load(&stream), ReadError::passes).await {
            Ok(events) => events,
            Err(error) => {
                tracing::error!(%webhook, %error, "An endpoint cannot be read");
                return;
            }
        };
        let endpoint = Endpoint::fold(events.iter().map(|recorded| &recorded.event));
        let is_enabled = endpoint.is_some_and(|endpoint| endpoint.status == Status::Enabled);
        let Some(last) = events.last().filter(|_| is_enabled) else {
            return;
        };
        let mut changes = events
            .iter()
            .rev()
            .filter(|recorded| is_change(&recorded.event));
        if changes
            .next()
            .is_some_and(|change| why.is_void(change.time))
        {
            return;
        }
        let disabled = NewEvent {
            id: EventId(Uuid::new_v4()),
            time: now,
            event: Event::WebhookDisabled(Disabled {
                id: webhook.clone(),
                reason: why.words(),
            }),
            context: Context::default(),
            receipt: None,
        };
        let write = Write {
            stream: stream.clone(),
            expected: Expected::At(last.sequence),
            events: vec![disabled],
        };
        let appended = retry_while(|| log.commit(write.clone().into()), AppendError::passes);
        match appended.await {
            Ok(_) => {
                tracing::warn!(%webhook, %org, reason = why.words(), "Disabled a webhook endpoint");
                return;
            }
            Err(AppendError::Conflict) => {}
            Err(error) => {
                tracing::error!(%webhook, %error, "An endpoint cannot be disabled");
                return;
            }
        }
    }
}
