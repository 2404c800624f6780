//! API keys: who may create which, and when one can be revoked.

use chrono::{DateTime, Utc};
use schemas::key::{Created, Giver, Revoked};
use schemas::{Event, KeyId};
use serde_json::Value;

use crate::object::{Errors, Object};
use crate::{FieldError, Invalid, text};

/// Requests in any hour if the request does not specify them.
pub const DEFAULT_RATE_LIMIT: u32 = 1_000;
/// More than any machine serves in an hour.
const MAX_RATE_LIMIT: u32 = 1_000_000_000;
const MAX_NAME: usize = 200;
const MAX_SCOPES: usize = 100;

/// A request for a new key.
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

/// A request as received: the fields that could be read, and the errors of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UncheckedRequest {
    name: Option<String>,
    scopes: Option<Vec<String>>,
    rate_limit: Option<u64>,
    expires_at: Option<DateTime<Utc>>,
    wrong: Vec<FieldError>,
}

/// Why a key is not created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is wrong.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The caller lacks a scope that the key is to have.
    #[error("scopes: a key can only grant scopes that it has itself; this one lacks {0}")]
    Lacking(String),
    /// The caller has a lower limit itself.
    #[error("rateLimit: must not exceed the creating key's own limit of {0} requests an hour")]
    AboveOwnLimit(u32),
    /// The caller's key expires before the new one would.
    #[error("expiresAt: must not be later than the creating key's own expiry, {}", .0.to_rfc3339())]
    BeyondOwnEnd(DateTime<Utc>),
    /// The caller's key was revoked while the new one was being created.
    #[error("the API key is not valid")]
    Withdrawn,
    /// The organization has as many keys as it may.
    #[error(
        "the organization already has {0} keys, which is the maximum; revoke keys that are not \
         used any more"
    )]
    TooMany(usize),
}

/// The limits of the keys that a giver may create, and the known scopes.
pub struct Means<'a> {
    /// Whether there is a scope of that name.
    pub exists: &'a dyn Fn(&str) -> bool,
    /// Whether the giver has it; operators and owners have all.
    pub held: &'a dyn Fn(&str) -> bool,
    /// The giver's own requests in any hour, if it is a key.
    pub rate_limit: Option<u32>,
    /// The giver's own expiry, if it has one.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The terms of a key that may be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    name: String,
    scopes: Vec<String>,
    rate_limit: u32,
    expires_at: Option<DateTime<Utc>>,
}

impl From<Request> for UncheckedRequest {
    fn from(request: Request) -> Self {
        Self {
            name: Some(request.name),
            scopes: Some(request.scopes),
            rate_limit: request.rate_limit,
            expires_at: request.expires_at,
            wrong: Vec::new(),
        }
    }
}

impl UncheckedRequest {
    /// Reads a JSON body. [`Self::decide`] reports its errors, after what the giver may not grant.
    pub fn read(body: Value) -> Self {
        let errors = Errors::default();
        let mut request = Self::default();
        if let Some(mut object) = Object::open("", body, &errors) {
            request.name = object.required_string("name");
            if object.take_absent("scopes") {
                object.error("scopes", "is required");
            } else {
                request.scopes = object.strings("scopes", MAX_SCOPES);
            }
            request.rate_limit = object.integer("rateLimit", 1..=u64::from(MAX_RATE_LIMIT));
            request.expires_at = object.time("expiresAt");
            object.finish();
        }
        request.wrong = errors.into_all();
        request
    }

    /// Decides whether the key may be made.
    ///
    /// # Errors
    /// That the giver may not grant so much is reported before any other error.
    pub fn decide(self, means: &Means<'_>, now: DateTime<Utc>) -> Result<Terms, Refusal> {
        self.check_means(means)?;
        let mut errors = self.wrong;
        let mut take = |error| errors.push(error);
        let name = self.name.map(|name| text::name("name", &name, MAX_NAME));
        let name = name.and_then(|name| name.map_err(&mut take).ok());
        if self.scopes.as_ref().is_some_and(Vec::is_empty) {
            take(FieldError::new("scopes", "must name at least one scope"));
        }
        let scopes = self.scopes.unwrap_or_default();
        check_scopes(&scopes, means).into_iter().for_each(&mut take);
        let most = means.rate_limit.unwrap_or(MAX_RATE_LIMIT);
        let rate_limit = rate_limit(self.rate_limit, most).map_err(&mut take).ok();
        if self.expires_at.is_some_and(|expires_at| expires_at <= now) {
            take(FieldError::new("expiresAt", "must be in the future"));
        }
        Invalid::unless_empty(errors)?;
        Ok(Terms {
            name: name.unwrap_or_default(),
            scopes: without_repeats(scopes),
            rate_limit: rate_limit.unwrap_or(DEFAULT_RATE_LIMIT),
            expires_at: self.expires_at.or(means.expires_at),
        })
    }

    fn check_means(&self, means: &Means<'_>) -> Result<(), Refusal> {
        let lacking = |scope: &&String| (means.exists)(scope) && !(means.held)(scope);
        if let Some(scope) = self.scopes.iter().flatten().find(lacking) {
            return Err(Refusal::Lacking(scope.clone()));
        }
        if let (Some(wanted), Some(own)) = (self.rate_limit, means.rate_limit)
            && wanted > u64::from(own)
        {
            return Err(Refusal::AboveOwnLimit(own));
        }
        match (self.expires_at, means.expires_at) {
            (Some(wanted), Some(own)) if wanted > own => Err(Refusal::BeyondOwnEnd(own)),
            _ => Ok(()),
        }
    }
}

fn check_scopes(scopes: &[String], means: &Means<'_>) -> Vec<FieldError> {
    let unknown = scopes.iter().enumerate();
    let unknown = unknown.filter(|(_, scope)| !(means.exists)(scope));
    unknown
        .map(|(nth, scope)| {
            let reason = format!("unknown scope {}", text::shown(scope));
            FieldError::new(format!("scopes[{nth}]"), reason)
        })
        .collect()
}

fn rate_limit(given: Option<u64>, most: u32) -> Result<u32, FieldError> {
    let Some(given) = given else {
        return Ok(DEFAULT_RATE_LIMIT.min(most));
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
    /// The event that creates the key, once its secret part is known.
    pub fn created(self, key_id: KeyId, key_sha256: String, created_by: Giver) -> Event {
        Event::KeyCreated(Created {
            key_id,
            name: self.name,
            scopes: self.scopes,
            rate_limit: self.rate_limit,
            expires_at: self.expires_at,
            key_sha256,
            created_by,
        })
    }
}

/// Revokes the key with that id; `None` if its last event shows no key that could be revoked.
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
        given_by(None, None, body)
    }

    fn given_by(
        rate_limit: Option<u32>,
        expires_at: Option<DateTime<Utc>>,
        body: Value,
    ) -> Result<Terms, Refusal> {
        let means = Means {
            exists: &|scope| ["a:read", "a:write", "b:read"].contains(&scope),
            held: &|scope| scope.starts_with("a:"),
            rate_limit,
            expires_at,
        };
        UncheckedRequest::read(body).decide(&means, now())
    }

    fn wrong_fields(body: Value) -> Vec<String> {
        match decide(body).unwrap_err() {
            Refusal::Invalid(invalid) => invalid
                .errors()
                .iter()
                .map(|error| error.field.clone())
                .collect(),
            Refusal::Lacking(scope) => vec![format!("lacking {scope}")],
            other => vec![other.to_string()],
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
            .created(KeyId::from("k1"), "00".to_owned(), Giver::Owner);
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
    fn what_the_giver_cannot_grant_is_refused_before_any_other_error() {
        for body in [
            json!({"name": "", "scopes": ["c", "b:read"], "rateLimit": 5}),
            json!({"scopes": ["b:read"], "rateLimit": "many", "colour": "red"}),
        ] {
            assert_eq!(wrong_fields(body), ["lacking b:read"]);
        }
        let refused = given_by(Some(7), None, json!({"rateLimit": 8}));
        assert_eq!(refused, Err(Refusal::AboveOwnLimit(7)));
    }

    #[test]
    fn a_key_gives_no_more_than_it_has() {
        let own_end = now() + chrono::TimeDelta::hours(1);
        let give = |limit: Value, expires_at: Value| {
            let body = json!({"name": "n", "scopes": ["a:read"], "rateLimit": limit,
                              "expiresAt": expires_at});
            given_by(Some(7), Some(own_end), body)
        };
        let terms = give(Value::Null, Value::Null).unwrap();
        assert_eq!((terms.rate_limit, terms.expires_at), (7, Some(own_end)));
        let terms = give(json!(7), json!(own_end.to_rfc3339())).unwrap();
        assert_eq!((terms.rate_limit, terms.expires_at), (7, Some(own_end)));
        assert_eq!(give(json!(8), Value::Null), Err(Refusal::AboveOwnLimit(7)));
        let later = own_end + chrono::TimeDelta::seconds(1);
        let refused = give(Value::Null, json!(later.to_rfc3339()));
        assert_eq!(refused, Err(Refusal::BeyondOwnEnd(own_end)));
        let unbounded = given_by(
            Some(5_000),
            None,
            json!({"name": "n", "scopes": ["a:read"]}),
        );
        let unbounded = unbounded.unwrap();
        assert_eq!(
            (unbounded.rate_limit, unbounded.expires_at),
            (DEFAULT_RATE_LIMIT, None)
        );
    }

    #[test]
    fn a_key_is_withdrawn_once() {
        let terms = decide(json!({"name": "n", "scopes": ["a:read"]})).unwrap();
        let created = terms.created(KeyId::from("k1"), "00".to_owned(), Giver::Operator);
        let revoked = revoke(KeyId::from("k1"), Some(&created));
        assert!(revoked.is_some());
        assert_eq!(revoke(KeyId::from("k1"), revoked.as_ref()), None);
        assert_eq!(revoke(KeyId::from("k1"), None), None);
    }
}
