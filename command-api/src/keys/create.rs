//! `POST /api/v1/keys`: makes an API key and shows it, once.

use std::time::Duration;

use access::{Access, ApiKey, Authorized, Scope, ScopeSet, scope};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::key::{Refusal, Request as KeyRequest, Scopes, Terms};
use event_log::EventLog;
use schemas::{AggregateType, KeyId, OrgId, Receipt, StreamId};
use serde::Serialize;
use service::HttpError;

use crate::body::JsonBody;
use crate::commands::{Decision, Outcome, Past};
use crate::repeatable::Repeatable;
use crate::{App, CommandError, Commands, Done, Origin, answer};

/// How long the directory of keys may take to learn of a new one.
const LEARNING: Duration = Duration::from_millis(500);

/// A key that was just made. The key itself is nowhere kept.
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

/// Who gives a key.
#[derive(Clone, Copy, Debug)]
pub enum Giver {
    /// The operator, who has every scope.
    Operator,
    /// A caller with these scopes.
    Caller(ScopeSet),
}

impl Giver {
    fn holds(self, scope: &str) -> bool {
        match (self, scope.parse()) {
            (Self::Operator, known) => known.is_ok(),
            (Self::Caller(scopes), known) => known.is_ok_and(|scope: Scope| scopes.allow(scope)),
        }
    }
}

impl crate::Refusal for Refusal {
    fn into_http(self) -> HttpError {
        match &self {
            Self::Invalid(_) => HttpError::bad_request(self.to_string()),
            Self::Lacking(_) => HttpError::forbidden(self.to_string()),
        }
    }
}

/// Makes a key. A repeat with the same receipt gets the same key again.
pub async fn create(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    giver: Giver,
    request: KeyRequest,
) -> Result<Done<NewKey>, CommandError<Refusal>> {
    let terms = decide(request, giver, commands.now()).map_err(CommandError::Refused)?;
    let key_id = KeyId::from(commands.random.id());
    let key = ApiKey::from_entropy(entropy(commands, origin.receipt.as_ref(), &key_id));
    let stream = StreamId::new(org, AggregateType::Key, key_id.as_str());
    let hash = key.sha256().to_string();
    let made = commands.execute_once(origin, &stream, Past::Last, key_id.as_str(), |_, _| {
        let event = terms.clone().created(key_id.clone(), hash.clone());
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
    let key = key.expose().to_owned();
    let answer = NewKey { key_id, key };
    Ok(Done { answer, position })
}

fn decide(request: KeyRequest, giver: Giver, now: DateTime<Utc>) -> Result<Terms, Refusal> {
    let scopes = Scopes {
        exists: &|scope| scope.parse::<Scope>().is_ok(),
        held: &|scope| giver.holds(scope),
    };
    request.decide(&scopes, now)
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

/// Whoever got a key may use it at once: waits a moment until this process has learned of it.
pub(crate) async fn until_known(access: &Access, key: &str) {
    let known = async {
        while access.identify(key).is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    if tokio::time::timeout(LEARNING, known).await.is_err() {
        tracing::warn!("A new key is not known here yet");
    }
}

pub(super) async fn create_key(
    caller: Authorized<scope::ManageKeys>,
    State(app): State<App>,
    repeatable: Repeatable,
    body: JsonBody,
) -> Result<Response, HttpError> {
    let request = KeyRequest::parse(body.value()?).map_err(crate::Refusal::into_http)?;
    let origin = repeatable.by_key(&caller, &body);
    let giver = Giver::Caller(caller.scopes);
    let done = create(&app.commands, &origin, &caller.org, giver, request).await?;
    until_known(&app.access, &done.answer.key).await;
    Ok(answer::json(StatusCode::CREATED, done))
}
