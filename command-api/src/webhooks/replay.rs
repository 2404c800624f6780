//! `POST /api/v1/webhooks/{id}/replay`: sends deliveries again.
//!
//! The command decides which and appends that; the runner sends them, however often it or this
//! process dies meanwhile.

use access::{Authorized, scope};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::webhook::{self, Endpoint, ReplayRequest};
use event_log::{EventLog, Position, PositionError};
use schemas::webhook::{Replay, ReplayFeed};
use schemas::{AggregateType, DeliveryId, Event, Log, OrgId, StreamId, WebhookId};
use serde::Serialize;
use service::HttpError;

use super::request::{self, Refused};
use super::selection::{Counter, Span};
use crate::body::JsonBody;
use crate::commands::{Earlier, Outcome, Repeated};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Done, LogError, Origin, answer};

#[derive(Serialize)]
struct Replayed {
    replayed: u64,
}

/// The request, with its position parsed.
enum Wanted {
    Delivery(DeliveryId),
    After(Position),
    Failed,
}

impl Wanted {
    fn of(request: ReplayRequest, log: &EventLog) -> Result<Self, HttpError> {
        let after = |text: String| {
            let position = log.parse_position(&text).map_err(|error| match error {
                PositionError::Malformed => "after: not a position",
                PositionError::OldEpoch => "after: a position from before the log was restored",
            })?;
            match position.log() {
                Log::Events | Log::Locations => Ok(position),
                Log::Deliveries => Err("after: not a position of the events or locations feed"),
            }
        };
        match request {
            ReplayRequest::Delivery(id) => Ok(Self::Delivery(id)),
            ReplayRequest::After(text) => {
                after(text).map(Self::After).map_err(HttpError::bad_request)
            }
            ReplayRequest::Failed => Ok(Self::Failed),
        }
    }
}

/// Requests deliveries to be sent again.
async fn replay(
    app: &App,
    origin: &Origin,
    (org, id): (&OrgId, &WebhookId),
    wanted: &Wanted,
) -> Result<Done<Replayed>, CommandError<Refused>> {
    let (commands, webhooks) = (&app.commands, &app.webhooks);
    // A repeat need not count again.
    if let Earlier::Repeat(repeated) = commands.earlier(origin).await? {
        return Ok(again(&repeated)?);
    }
    let stream = request::stream(org, id);
    let endpoint = request::known(commands, webhooks, &stream).await?.endpoint;
    let attempts_through = commands.log().end(Log::Deliveries).await?.sequence();
    let selected = select(app, (org, &endpoint), wanted, attempts_through);
    let (replay, replayed) = selected.await?;
    let asked = request::carry_out(
        commands,
        webhooks,
        origin,
        &stream,
        |_| replayed.to_string(),
        |endpoint, _| {
            let replay = replay.clone();
            Ok(webhook::replay(
                endpoint,
                replay,
                replayed,
                attempts_through,
            )?)
        },
    );
    match asked.await? {
        Outcome::First(done) => Ok(done.map(|_| Replayed { replayed })),
        Outcome::Repeat(repeated) => Ok(again(&repeated)?),
    }
}

fn again(repeated: &Repeated) -> Result<Done<Replayed>, LogError> {
    let replayed = repeated.holder.parse().map_err(|_| request::lost())?;
    Ok(Done {
        answer: Replayed { replayed },
        position: repeated.position,
    })
}

/// Returns what has to be sent again, and the number of deliveries.
async fn select(
    app: &App,
    (org, endpoint): (&OrgId, &Endpoint),
    wanted: &Wanted,
    attempts_through: u64,
) -> Result<(Replay, u64), CommandError<Refused>> {
    let log = app.commands.log();
    let counter = Counter {
        log,
        turns: &app.replay_turns,
        org,
    };
    // A request that will be refused need not be counted.
    let disabled = webhook::replay(endpoint, Replay::Failed, 0, attempts_through).err();
    match wanted {
        Wanted::Delivery(delivery_id) => {
            let stream = StreamId::new(org, AggregateType::Delivery, delivery_id.as_str());
            let last = log.last(&stream).await?;
            let of = last.as_ref().and_then(|last| match &last.event {
                Event::DeliveryAttempted(attempted) => Some(&attempted.message),
                Event::DeliveryQueued(queued) => Some(&queued.message),
                _ => None,
            });
            if of.is_none_or(|message| message.webhook_id != endpoint.id) {
                return Err(CommandError::Refused(Refused::NoDelivery));
            }
            let delivery_id = delivery_id.clone();
            Ok((Replay::Delivery { delivery_id }, 1))
        }
        _ if let Some(disabled) = disabled => Err(CommandError::Refused(disabled.into())),
        Wanted::After(position) => {
            let span = Span {
                log: position.log(),
                after: position.sequence(),
                through: log.end(position.log()).await?.sequence(),
                types: &endpoint.events,
            };
            let now = app.commands.now();
            let replayed = counter.events(&app.circles, &span, now).await?;
            Ok((replay_of(&span), replayed))
        }
        Wanted::Failed => {
            let replayed = counter.failed(&endpoint.id, attempts_through).await?;
            Ok((Replay::Failed, replayed))
        }
    }
}

fn replay_of(span: &Span<'_>) -> Replay {
    Replay::Events {
        feed: match span.log {
            Log::Locations => ReplayFeed::Locations,
            _ => ReplayFeed::Events,
        },
        after: span.after,
        through: span.through,
        types: span.types.to_vec(),
    }
}

pub(super) async fn replay_webhook(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    Path(id): Path<WebhookId>,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = body.read(ReplayRequest::parse)?;
    let wanted = Wanted::of(request, app.commands.log())?;
    let origin = repeatable.by_key(&caller, &body);
    let done = replay(&app, &origin, (&caller.org, &id), &wanted).await?;
    Ok(answer::json(StatusCode::ACCEPTED, done))
}
