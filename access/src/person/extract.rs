//! A person's token as an argument of the handler.

use std::ops::Deref;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use service::RequestContext;

use super::Person;
use crate::authorized::presented_key;
use crate::{Access, Api, Refusal};

/// Proof that the request came with an access token in force and fitted into its account's
/// requests of the hour.
///
/// It is the first argument of its handler, so that a request which fails later is counted too.
#[derive(Clone, Debug)]
pub struct AccountToken(pub Person);

/// Proof that the request came with an access token in force. It is not counted: because its
/// handler counts something else ([`Access::count_positions`]), or because what it asks for is
/// without limit, as a call for help is.
#[derive(Clone, Debug)]
pub struct UncountedToken(pub Person);

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

fn authenticate(access: &Access, parts: &Parts) -> Result<Person, Refusal> {
    let presented = presented_key(&parts.headers, Api::Waypost).ok_or(Refusal::NoToken)?;
    access.authenticate_person(presented)
}
