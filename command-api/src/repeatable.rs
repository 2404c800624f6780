//! Requests that are carried out once, however often they are sent.

use std::borrow::Cow;
use std::net::IpAddr;

use access::{Caller, Person};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use event_log::Keyring;
use schemas::{Receipt, SYSTEM_ORG};
use service::HttpError;

use crate::{App, Origin};

const HEADER: &str = "idempotency-key";
const MAX_LENGTH: usize = 255;

/// A request that may have an `Idempotency-Key`. With its body, which determines its receipt, it
/// becomes the [`Origin`] of a command.
pub(crate) struct Repeatable {
    /// Its origin, without a receipt.
    pub(crate) origin: Origin,
    keyring: Keyring,
    key: Option<KeyAndPath>,
}

/// The key, and the path that it was sent to.
struct KeyAndPath {
    key: String,
    path: String,
}

impl FromRequestParts<App> for Repeatable {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let Ok(origin) = Origin::from_request_parts(parts, app).await;
        Ok(Self {
            origin,
            keyring: app.commands.log().keyring().clone(),
            key: KeyAndPath::of(parts)?,
        })
    }
}

impl KeyAndPath {
    fn of(parts: &Parts) -> Result<Option<Self>, HttpError> {
        let Some(value) = parts.headers.get(HEADER) else {
            return Ok(None);
        };
        let key = value.to_str().ok().map(str::trim);
        let key = key.filter(|key| (1..=MAX_LENGTH).contains(&key.len()));
        let key = key.ok_or_else(|| {
            let rule = format!("Idempotency-Key must be 1 to {MAX_LENGTH} plain characters");
            HttpError::bad_request(rule)
        })?;
        Ok(Some(Self {
            key: key.to_owned(),
            path: parts.uri.path().to_owned(),
        }))
    }
}

impl Repeatable {
    /// Sent with this API key. Each key has its own namespace, so that programs which count from 1
    /// do not collide.
    pub(crate) fn by_key(self, caller: &Caller, body: &[u8]) -> Origin {
        self.by(|| namespace(caller), body)
    }

    /// Sent by this person.
    pub(crate) fn by_person(self, person: &Person, body: &[u8]) -> Origin {
        // No organization's id starts with this: it names what belongs to nobody.
        self.by(|| format!("{SYSTEM_ORG}/{}", person.account_id), body)
    }

    /// Sent without a key or token from this address. Each address has its own namespace, so that
    /// no other address gets its answers.
    pub(crate) fn by_client(self, address: IpAddr, body: &[u8]) -> Origin {
        self.by(|| format!("{SYSTEM_ORG}/address/{address}"), body)
    }

    fn by(self, namespace: impl FnOnce() -> String, body: &[u8]) -> Origin {
        let receipt = |KeyAndPath { key, path }: KeyAndPath| {
            self.keyring.receipt(&namespace(), &key, &path, body)
        };
        Origin {
            receipt: self.key.map(receipt),
            ..self.origin
        }
    }

    /// Whether it came with an `Idempotency-Key`.
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// An upload with this API key, whose body begins with what has this digest.
    pub(crate) fn of_upload(&self, caller: &Caller, digest: &[u8]) -> Origin {
        let receipt = |KeyAndPath { key, path }: &KeyAndPath| {
            // No path contains a space, so no other command has the same receipt.
            let path = format!("{path} lines");
            self.keyring.receipt(&namespace(caller), key, &path, digest)
        };
        Origin {
            receipt: self.key.as_ref().map(receipt),
            ..self.origin.clone()
        }
    }

    /// What names the key of an upload in the log; nobody can find the key from it.
    pub(crate) fn name_of_key(&self, caller: &Caller) -> Option<String> {
        let KeyAndPath { key, path } = self.key.as_ref()?;
        let receipt = self.keyring.receipt(&namespace(caller), key, path, &[]);
        Some(receipt.key)
    }

    /// The receipt of one line, with the content `line`, of a request with many lines.
    pub(crate) fn line_receipt<'l>(
        &self,
        caller: &Caller,
        number: u64,
        line: impl FnOnce() -> Cow<'l, [u8]>,
    ) -> Option<Receipt> {
        let KeyAndPath { key, path } = self.key.as_ref()?;
        let key = format!("{key}\n{number}");
        Some(
            self.keyring
                .receipt(&namespace(caller), &key, path, &line()),
        )
    }
}

fn namespace(caller: &Caller) -> String {
    format!("{}/{}", caller.org, caller.key_id)
}
