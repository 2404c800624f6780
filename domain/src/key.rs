//! API keys: which may be made by whom, and when one can be withdrawn.

use chrono::{DateTime, Utc};
use schemas::key::{Created, Revoked};
use schemas::{Event, KeyId};
use serde_json::Value;

use crate::object::{Errors, Object};
use crate::{FieldError, Invalid, text};

/// Requests in any hour where the request does not say.
pub const DEFAULT_RATE_LIMIT: u32 = 1_000;
/// More than any machine serves in an hour.
const MAX_RATE_LIMIT: u32 = 1_000_000_000;
const MAX_NAME: usize = 200;
const MAX_SCOPES: usize = 100;

/// What a new key is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// Requests in any hour.
    pub rate_limit: Option<u64>,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Why no key is made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is wrong.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Whoever asks lacks a scope that the key is to have.
    #[error("a key can only give scopes that it has; this one lacks {0}")]
    Lacking(String),
}

/// What is known of scopes: which there are, and which of them the asker has.
pub struct Scopes<'a> {
    /// Whether there is a scope of that name.
    pub exists: &'a dyn Fn(&str) -> bool,
    /// Whether the asker has it; an operator has all.
    pub held: &'a dyn Fn(&str) -> bool,
}

/// The terms of a key that may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    name: String,
    scopes: Vec<String>,
    rate_limit: u32,
    expires_at: Option<DateTime<Utc>>,
}

impl Request {
    /// Reads a request from a JSON body.
    pub fn parse(body: Value) -> Result<Self, Invalid> {
        let errors = Errors::default();
        let request = Self::read(body, &errors);
        errors.settle(request)
    }

    fn read(body: Value, errors: &Errors) -> Option<Self> {
        let mut object = Object::open("", body, errors)?;
        let name = object.required_string("name");
        if object.take_absent("scopes") {
            object.error("scopes", "is required");
        }
        let scopes = object.strings("scopes", MAX_SCOPES);
        let rate_limit = object.integer("rateLimit", 1..=u64::from(MAX_RATE_LIMIT));
        let expires_at = object.time("expiresAt");
        object.finish();
        Some(Self {
            name: name?,
            scopes: scopes?,
            rate_limit,
            expires_at,
        })
    }

    /// Decides whether the key may be made.
    ///
    /// # Errors
    /// That the asker lacks a scope is said before anything else that is wrong.
    pub fn decide(self, scopes: &Scopes<'_>, now: DateTime<Utc>) -> Result<Terms, Refusal> {
        let lacking = |scope: &&String| (scopes.exists)(scope) && !(scopes.held)(scope);
        if let Some(scope) = self.scopes.iter().find(lacking) {
            return Err(Refusal::Lacking(scope.clone()));
        }
        let mut errors = Vec::new();
        let name = text::name("name", &self.name, MAX_NAME);
        let name = name.map_err(|error| errors.push(error)).ok();
        if self.scopes.is_empty() {
            errors.push(FieldError::new("scopes", "must name at least one scope"));
        }
        for (nth, scope) in self.scopes.iter().enumerate() {
            if !(scopes.exists)(scope) {
                let reason = format!("there is no scope {}", text::shown(scope));
                errors.push(FieldError::new(format!("scopes[{nth}]"), reason));
            }
        }
        let rate_limit = rate_limit(self.rate_limit)
            .map_err(|error| errors.push(error))
            .ok();
        if self.expires_at.is_some_and(|expires_at| expires_at <= now) {
            errors.push(FieldError::new("expiresAt", "must be in the future"));
        }
        Invalid::unless_empty(errors)?;
        Ok(Terms {
            name: name.unwrap_or_default(),
            scopes: without_repeats(self.scopes),
            rate_limit: rate_limit.unwrap_or(DEFAULT_RATE_LIMIT),
            expires_at: self.expires_at,
        })
    }
}

fn rate_limit(given: Option<u64>) -> Result<u32, FieldError> {
    let Some(given) = given else {
        return Ok(DEFAULT_RATE_LIMIT);
    };
    let limit = u32::try_from(given)
        .ok()
        .filter(|limit| (1..=MAX_RATE_LIMIT).contains(limit));
    limit.ok_or_else(|| {
        let reason = format!("must be a whole number from 1 to {MAX_RATE_LIMIT}");
        FieldError::new("rateLimit", reason)
    })
}

fn without_repeats(scopes: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::with_capacity(scopes.len());
    for scope in scopes {
        if !kept.contains(&scope) {
            kept.push(scope);
        }
    }
    kept
}

impl Terms {
    /// The event that makes the key, once its secret part is known.
    pub fn created(self, key_id: KeyId, key_sha256: String) -> Event {
        Event::KeyCreated(Created {
            key_id,
            name: self.name,
            scopes: self.scopes,
            rate_limit: self.rate_limit,
            expires_at: self.expires_at,
            key_sha256,
        })
    }
}

/// Withdraws the key of that id; `None` where its last event shows none that could be withdrawn.
pub fn revoke(key_id: KeyId, last: Option<&Event>) -> Option<Event> {
    matches!(last, Some(Event::KeyCreated(_))).then_some(Event::KeyRevoked(Revoked { key_id }))
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;
    use serde_json::json;

    use super::*;

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 21, 9, 0, 0).unwrap()
    }

    fn decide(body: Value) -> Result<Terms, Refusal> {
        let scopes = Scopes {
            exists: &|scope| ["a:read", "a:write", "b:read"].contains(&scope),
            held: &|scope| scope.starts_with("a:"),
        };
        Request::parse(body)?.decide(&scopes, now())
    }

    fn wrong_fields(body: Value) -> Vec<String> {
        match decide(body).unwrap_err() {
            Refusal::Invalid(invalid) => invalid
                .errors()
                .iter()
                .map(|error| error.field.clone())
                .collect(),
            Refusal::Lacking(scope) => vec![format!("lacking {scope}")],
        }
    }

    #[test]
    fn a_key_has_its_terms() {
        let body = json!({
            "name": " CRM ", "scopes": ["a:read", "a:write", "a:read"], "rateLimit": 5,
            "expiresAt": "2026-11-21T09:00:01Z"
        });
        let event = decide(body)
            .unwrap()
            .created(KeyId::from("k1"), "00".to_owned());
        let Event::KeyCreated(created) = event else {
            panic!("{event:?}");
        };
        assert_eq!((created.name.as_str(), created.rate_limit), ("CRM", 5));
        assert_eq!(created.scopes, ["a:read", "a:write"]);
    }

    #[test]
    fn wrong_terms_are_named() {
        assert_eq!(wrong_fields(json!({})), ["name", "scopes"]);
        assert_eq!(
            wrong_fields(json!({"name": "", "scopes": []})),
            ["name", "scopes"]
        );
        assert_eq!(
            wrong_fields(json!({"name": "n", "scopes": ["c"]})),
            ["scopes[0]"]
        );
        assert_eq!(
            wrong_fields(json!({"name": "n", "scopes": "a:read"})),
            ["scopes"]
        );
        for rate_limit in [
            json!(0),
            json!(-1),
            json!(1.5),
            json!("5"),
            json!(1_000_000_001),
        ] {
            let body = json!({"name": "n", "scopes": ["a:read"], "rateLimit": rate_limit});
            assert_eq!(wrong_fields(body), ["rateLimit"]);
        }
        for expires_at in ["2026-11-21T09:00:00Z", "soon"] {
            let body = json!({"name": "n", "scopes": ["a:read"], "expiresAt": expires_at});
            assert_eq!(wrong_fields(body), ["expiresAt"]);
        }
    }

    #[test]
    fn a_scope_that_the_asker_lacks_is_told_before_all_else() {
        let body = json!({"name": "", "scopes": ["c", "b:read"], "rateLimit": 5});
        assert_eq!(wrong_fields(body), ["lacking b:read"]);
    }

    #[test]
    fn a_key_is_withdrawn_once() {
        let terms = decide(json!({"name": "n", "scopes": ["a:read"]})).unwrap();
        let created = terms.created(KeyId::from("k1"), "00".to_owned());
        let revoked = revoke(KeyId::from("k1"), Some(&created));
        assert!(revoked.is_some());
        assert_eq!(revoke(KeyId::from("k1"), revoked.as_ref()), None);
        assert_eq!(revoke(KeyId::from("k1"), None), None);
    }
}
