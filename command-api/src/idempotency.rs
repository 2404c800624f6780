//! The `Idempotency-Key` of a request.

use access::Caller;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use event_log::{EventLog, SYSTEM_ORG};
use schemas::{AccountId, Receipt};
use service::HttpError;

const HEADER: &str = "idempotency-key";
const MAX_LENGTH: usize = 255;

/// The key, where the request has one, and the path that it was sent to.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey(Option<KeyAndPath>);

#[derive(Clone, Debug)]
struct KeyAndPath {
    key: String,
    path: String,
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        let Some(value) = parts.headers.get(HEADER) else {
            return Ok(Self(None));
        };
        let key = value.to_str().ok().map(str::trim);
        let key = key.filter(|key| (1..=MAX_LENGTH).contains(&key.len()));
        let key = key.ok_or_else(|| {
            let rule = format!("Idempotency-Key must be 1 to {MAX_LENGTH} plain characters");
            HttpError::bad_request(rule)
        })?;
        Ok(Self(Some(KeyAndPath {
            key: key.to_owned(),
            path: parts.uri.path().to_owned(),
        })))
    }
}

impl IdempotencyKey {
    /// The receipt of the request with this body. Each API key has its own name space, so that
    /// programs which count from 1 do not meet.
    pub(crate) fn receipt(&self, log: &EventLog, caller: &Caller, body: &[u8]) -> Option<Receipt> {
        let Self(Some(KeyAndPath { key, path })) = self else {
            return None;
        };
        Some(log.keyring().receipt(&namespace(caller), key, path, body))
    }

    /// The receipt of a person's request with this body.
    pub(crate) fn receipt_of_person(
        &self,
        log: &EventLog,
        account: AccountId,
        body: &[u8],
    ) -> Option<Receipt> {
        let Self(Some(KeyAndPath { key, path })) = self else {
            return None;
        };
        // No organization's id begins so: it is the one of what belongs to nobody.
        let namespace = format!("{SYSTEM_ORG}/{account}");
        Some(log.keyring().receipt(&namespace, key, path, body))
    }

    /// The receipt of a request that comes without a key or token. All those share one name space.
    pub(crate) fn receipt_of_anybody(&self, log: &EventLog, body: &[u8]) -> Option<Receipt> {
        let Self(Some(KeyAndPath { key, path })) = self else {
            return None;
        };
        Some(log.keyring().receipt(SYSTEM_ORG, key, path, body))
    }

    /// The receipt of one line of a request that has many.
    pub(crate) fn line_receipt(
        &self,
        log: &EventLog,
        caller: &Caller,
        number: u64,
        line: &[u8],
    ) -> Option<Receipt> {
        let Self(Some(KeyAndPath { key, path })) = self else {
            return None;
        };
        let key = format!("{key}\n{number}");
        Some(log.keyring().receipt(&namespace(caller), &key, path, line))
    }
}

fn namespace(caller: &Caller) -> String {
    format!("{}/{}", caller.org, caller.key_id)
}
