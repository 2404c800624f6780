//! `POST /api/v1/keys`: creates an API key and shows it once.

use access::{Access, ApiKey, Authorized, Caller, Scope, scope};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::key::{Means, Refusal, Terms, UncheckedRequest};
use event_log::{EventLog, Position};
use schemas::{AggregateType, Event, KeyId, OrgId, Receipt, StreamId, key};
use serde::Serialize;
use service::HttpError;

use crate::body::JsonBody;
use crate::commands::{Decision, Outcome, Past};
use crate::follow::until;
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, LogError, Origin, answer};

/// A newly created key. The key itself is not stored.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewKey {
    /// The key's public name.
    pub key_id: KeyId,
    /// The key.
    pub key: String,
}

impl std::fmt::Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewKey({})", self.key_id)
    }
}

/// Who creates a key.
#[derive(Clone, Copy, Debug)]
pub enum Giver<'g> {
    /// The operator, who has no limits.
    Operator,
    /// A staff member of the organization; `Some` with the maximum number of keys if it is reached.
    Owner(Option<usize>),
    /// A key, which grants no more than it has; the number likewise.
    Key(&'g Caller, Option<usize>),
}

impl Giver<'_> {
    fn holds(self, scope: &str) -> bool {
        match (self, scope.parse()) {
            (Self::Operator | Self::Owner(_), known) => known.is_ok(),
            (Self::Key(caller, _), known) => known.is_ok_and(|scope: Scope| caller.may(scope)),
        }
    }

    fn decide(self, request: UncheckedRequest, now: DateTime<Utc>) -> Result<Terms, Refusal> {
        let own = match self {
            Self::Operator | Self::Owner(_) => None,
            Self::Key(caller, _) => Some(caller),
        };
        let means = Means {
            exists: &|scope| scope.parse::<Scope>().is_ok(),
            held: &|scope| self.holds(scope),
            rate_limit: own.map(|own| own.rate_limit),
            expires_at: own.and_then(|own| own.expires_at),
        };
        request.decide(&means, now)
    }

    /// The maximum number of keys, if it is reached.
    fn full(self) -> Option<usize> {
        match self {
            Self::Operator => None,
            Self::Owner(full) | Self::Key(_, full) => full,
        }
    }

    fn recorded(self) -> key::Giver {
        match self {
            Self::Operator => key::Giver::Operator,
            Self::Owner(_) => key::Giver::Owner,
            Self::Key(caller, _) => key::Giver::Key(caller.key_id.clone()),
        }
    }
}

impl crate::Refusal for Refusal {
    fn into_http(self) -> HttpError {
        let message = self.to_string();
        match self {
            Self::Invalid(_) => HttpError::bad_request(message),
            Self::Withdrawn => HttpError::unauthorized(message),
            Self::Lacking(_) | Self::AboveOwnLimit(_) | Self::BeyondOwnEnd(_) => {
                HttpError::forbidden(message)
            }
            Self::TooMany(_) => {
                metrics::counter!("waypost_keys_refused_total").increment(1);
                HttpError::conflict(message)
            }
        }
    }
}

/// Creates a key. A repeat with the same receipt gets the same key again.
pub async fn create(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    giver: Giver<'_>,
    request: impl Into<UncheckedRequest>,
) -> Result<Done<NewKey>, CommandError<Refusal>> {
    let request = request.into();
    let decide = |now| giver.decide(request.clone(), now);
    // Errors that do not depend on time are reported at once. Whether the expiry is in the future
    // is decided once this is known not to be a repeat, which gets the first answer however late it
    // is.
    let decided = decide(DateTime::<Utc>::MIN_UTC).or_else(|_| decide(commands.now()));
    decided.map_err(CommandError::Refused)?;
    let key_id = KeyId::from(commands.random.id());
    let key = ApiKey::from_entropy(entropy(commands, origin.receipt.as_ref(), &key_id));
    let stream = StreamId::new(org, AggregateType::Key, key_id.as_str());
    let hash = key.sha256().to_string();
    let made = commands.execute_once(origin, &stream, Past::Last, key_id.as_str(), |_, now| {
        let terms = decide(now)?;
        if let Some(most) = giver.full() {
            return Err(Refusal::TooMany(most));
        }
        let event = terms.created(key_id.clone(), hash.clone(), giver.recorded());
        Ok(Decision::new((), Some(event)))
    });
    let (key_id, key, position) = match made.await? {
        Outcome::First(done) => (key_id, key, done.position),
        Outcome::Repeat(repeated) => {
            let key_id = KeyId::new(repeated.holder);
            let key = entropy(commands, origin.receipt.as_ref(), &key_id);
            (key_id, ApiKey::from_entropy(key), repeated.position)
        }
    };
    if was_withdrawn(commands, org, giver, position).await? {
        return Err(CommandError::Refused(Refusal::Withdrawn));
    }
    let key = key.expose().to_owned();
    let answer = NewKey { key_id, key };
    Ok(Done { answer, position })
}

/// Whether the giver was revoked before the key it created was in the log: then that key never
/// works.
async fn was_withdrawn(
    commands: &Commands,
    org: &OrgId,
    giver: Giver<'_>,
    given: Position,
) -> Result<bool, LogError> {
    let Giver::Key(caller, _) = giver else {
        return Ok(false);
    };
    let stream = StreamId::new(org, AggregateType::Key, caller.key_id.as_str());
    let last = commands.log().last(&stream).await?;
    Ok(last.is_some_and(|last| {
        matches!(last.event, Event::KeyRevoked(_)) && last.sequence < given.sequence()
    }))
}

/// Random, unless a repeat must find the same: then derived from what only the repeat knows and
/// the installation's own secret.
fn entropy(commands: &Commands, receipt: Option<&Receipt>, key_id: &KeyId) -> [u8; 32] {
    match receipt {
        None => commands.random.bytes(),
        Some(receipt) => derived(commands.log(), receipt, key_id),
    }
}

fn derived(log: &EventLog, receipt: &Receipt, key_id: &KeyId) -> [u8; 32] {
    let parts = &[receipt.key.as_bytes(), key_id.as_str().as_bytes()];
    let half = |purpose| log.keyring().derived_uuid(purpose, parts).into_bytes();
    let mut entropy = [0; 32];
    entropy[..16].copy_from_slice(&half("api key 1"));
    entropy[16..].copy_from_slice(&half("api key 2"));
    entropy
}

/// Waits briefly until this process knows of a key, so that the client can use it at once.
pub(crate) async fn until_known(access: &Access, key: &str) {
    until(|| access.identify(key).is_ok(), "A new key").await;
}

/// The number of keys that an organization may have, if it is reached.
pub(crate) fn full(app: &App, org: &OrgId) -> Option<usize> {
    (app.access.keys_in_force(org) >= app.keys_per_organization)
        .then_some(app.keys_per_organization)
}

pub(super) async fn create_key(
    caller: Authorized<scope::ManageKeys>,
    State(app): State<App>,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = UncheckedRequest::read(body.value()?);
    let origin = repeatable.by_key(&caller, &body);
    let giver = Giver::Key(&caller, full(&app, &caller.org));
    let done = create(&app.commands, &origin, &caller.org, giver, request).await?;
    until_known(&app.access, &done.answer.key).await;
    Ok(answer::json(StatusCode::CREATED, done))
}
