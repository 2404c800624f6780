//! A person's token as an argument of the handler.

use std::ops::Deref;

use axum::extract::{FromRef, FromRequestParts, OptionalFromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use service::RequestContext;

use super::Person;
use crate::authorized::presented_key;
use crate::{Access, Api, Refusal};

/// Proof that the request carries a valid access token and is within its account's hourly limit of
/// requests.
///
/// It is the first argument of its handler, so that a request which fails later is counted too.
#[derive(Clone, Debug)]
pub struct AccountToken(pub Person);

/// Proof that the request carries a valid access token. It is not counted: its handler counts
/// something else ([`Access::count_positions`]), or its operation has no limit, such as a call for
/// help.
#[derive(Clone, Debug)]
pub struct UncountedToken(pub Person);

/// The token of a request that ends it. If such a request is repeated under its `Idempotency-Key`
/// because its response was lost, the token has already ended: it is accepted, but only for that
/// response.
#[derive(Clone, Debug)]
pub struct EndingToken {
    /// The token's owner.
    pub person: Person,
    /// Whether it is still valid.
    pub in_force: bool,
}

impl Deref for AccountToken {
    type Target = Person;

    fn deref(&self) -> &Person {
        &self.0
    }
}

impl Deref for UncountedToken {
    type Target = Person;

    fn deref(&self) -> &Person {
        &self.0
    }
}

impl<State> FromRequestParts<State> for AccountToken
where
    State: Send + Sync,
    Access: FromRef<State>,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Refusal> {
        let access = Access::from_ref(state);
        let Ok(request) = RequestContext::from_request_parts(parts, state).await;
        let person = authenticate(&access, parts)?;
        access.count_request(&person, &request).await?;
        Ok(Self(person))
    }
}

/// The token where one may be sent, as `Option<AccountToken>`. One that is sent has to be valid.
impl<State> OptionalFromRequestParts<State> for AccountToken
where
    State: Send + Sync,
    Access: FromRef<State>,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Option<Self>, Refusal> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            return Ok(None);
        }
        let token = <Self as FromRequestParts<State>>::from_request_parts(parts, state).await?;
        Ok(Some(token))
    }
}

impl<State> FromRequestParts<State> for UncountedToken
where
    State: Send + Sync,
    Access: FromRef<State>,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Refusal> {
        authenticate(&Access::from_ref(state), parts).map(Self)
    }
}

impl<State> FromRequestParts<State> for EndingToken
where
    State: Send + Sync,
    Access: FromRef<State>,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Refusal> {
        let access = Access::from_ref(state);
        let Ok(request) = RequestContext::from_request_parts(parts, state).await;
        let presented = presented_key(&parts.headers, Api::Waypost).ok_or(Refusal::NoToken)?;
        let person = access.recognize_person(presented)?;
        let in_force = access.person_is_good(&person);
        if !in_force && !parts.headers.contains_key("idempotency-key") {
            return Err(Refusal::InvalidToken);
        }
        access.count_request(&person, &request).await?;
        Ok(Self { person, in_force })
    }
}

fn authenticate(access: &Access, parts: &Parts) -> Result<Person, Refusal> {
    let presented = presented_key(&parts.headers, Api::Waypost).ok_or(Refusal::NoToken)?;
    access.authenticate_person(presented)
}
