//! `POST /api/v1/webhooks`: creates an endpoint and shows its secret once.

use access::{Authorized, scope};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::{DateTime, Utc};
use domain::webhook::{self, Endpoint, Request as WebhookRequest};
use event_log::Binding;
use schemas::{AggregateType, Event, OrgId, StreamId, WebhookId};
use serde::Serialize;
use service::HttpError;

use super::{Directory, Webhook};
use crate::body::JsonBody;
use crate::bounds::{TooMany, one_more};
use crate::commands::{Decision, Outcome, Past};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, LogError, Origin, Refusal, answer};

/// The format of the Standard Webhooks specification.
const SECRET_PREFIX: &str = "whsec_";

/// A newly created endpoint.
#[derive(Clone, Serialize)]
pub struct NewWebhook {
    /// The endpoint.
    #[serde(flatten)]
    pub webhook: Webhook,
    /// The secret that its deliveries are signed with.
    pub secret: String,
}

impl std::fmt::Debug for NewWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewWebhook({})", self.webhook.id)
    }
}

/// Creates an endpoint if the bound in `among` leaves room (`None` for operators). A repeat with
/// the same receipt gets the same endpoint and secret again.
pub async fn create(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    request: WebhookRequest,
    among: Option<(&Directory, usize)>,
) -> Result<Done<NewWebhook>, CommandError<TooMany>> {
    let id = WebhookId::from(commands.random.id());
    let secret = new_secret(commands);
    let binding = Binding::WebhookSecret(org.clone(), id.clone());
    let sealed = commands.log().vault().seal(&binding, &secret).await?;
    let event = webhook::create(id.clone(), request, sealed);
    let stream = StreamId::new(org, AggregateType::Webhook, id.as_str());
    let made = commands.execute_once(origin, &stream, Past::Last, id.as_str(), |_, now| {
        if let Some((webhooks, most)) = among {
            one_more(webhooks.count(org), most, TooMany::Webhooks)?;
        }
        Ok(Decision::new(now, Some(event.clone())))
    });
    let (event, at, secret, position) = match made.await? {
        Outcome::First(done) => {
            if let Some((webhooks, _)) = among {
                webhooks.learn(org, id);
            }
            (event, done.answer, secret, done.position)
        }
        Outcome::Repeat(repeated) => {
            let stream = StreamId::new(org, AggregateType::Webhook, repeated.holder);
            let (event, at) = first_event(commands, &stream).await?;
            let Event::WebhookCreated(created) = &event else {
                return Err(lost().into());
            };
            let binding = Binding::WebhookSecret(org.clone(), created.id.clone());
            let secret = commands.log().vault().unseal(&binding, &created.secret);
            let secret = secret.await?;
            (event, at, secret, repeated.position)
        }
    };
    let endpoint = Endpoint::fold([&event]).ok_or_else(lost)?;
    let webhook = Webhook::new(endpoint, at);
    let answer = NewWebhook { webhook, secret };
    Ok(Done { answer, position })
}

async fn first_event(
    commands: &Commands,
    stream: &StreamId,
) -> Result<(Event, DateTime<Utc>), LogError> {
    let events = commands.log().load(stream).await?;
    let first = events.into_iter().next().ok_or_else(lost)?;
    Ok((first.event, first.time))
}

/// Generates a new signing secret.
pub(super) fn new_secret(commands: &Commands) -> String {
    let secret = BASE64.encode(commands.random.bytes::<32>());
    format!("{SECRET_PREFIX}{secret}")
}

fn lost() -> LogError {
    LogError::Broken("a webhook's first event is not there".to_owned())
}

pub(super) async fn create_webhook(
    caller: Authorized<scope::ManageWebhooks>,
    State(app): State<App>,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = WebhookRequest::parse(body.value()?, &app.open_targets);
    let request = request.map_err(Refusal::into_http)?;
    let origin = repeatable.by_key(&caller, &body);
    let among = Some((&app.webhooks, app.bounds.webhooks_per_organization));
    let done = create(&app.commands, &origin, &caller.org, request, among).await?;
    Ok(answer::json(StatusCode::CREATED, done))
}
