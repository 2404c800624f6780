//! Permission as an argument of the handler.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use service::RequestContext;

use crate::{Access, Api, Caller, Refusal, ScopeMarker, visits};

/// Proof that the request carries a valid key (or, on an organization's pages, a session of its
/// staff), is within its rate limit and has the scope `S`.
///
/// It is the first argument of its handler, so that a request which fails later is counted too. The
/// order of the checks is 401, 429, 403. Dereferences to its [`Caller`].
#[derive(Clone, Debug)]
pub struct Authorized<S>(pub Arc<Caller>, PhantomData<S>);

impl<S> Deref for Authorized<S> {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl<S, State> FromRequestParts<State> for Authorized<S>
where
    S: ScopeMarker,
    State: Send + Sync,
    Access: FromRef<State>,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Refusal> {
        let access = Access::from_ref(state);
        let Ok(request) = RequestContext::from_request_parts(parts, state).await;
        let caller = if let Some(caller) = visits::caller_of(parts) {
            caller
        } else {
            let presented = presented_key(&parts.headers, S::API).ok_or(Refusal::NoKey)?;
            access.identify(presented)?
        };
        request.identify(&caller.org);
        request.sent_by(caller.actor());
        access.count(&caller, S::API, &request).await?;
        if !caller.may(S::SCOPE) {
            return Err(Refusal::ScopeMissing(S::SCOPE));
        }
        Ok(Self(caller, PhantomData))
    }
}

/// The key that a request carries. `Authorization` takes precedence over `X-Api-Key`.
pub(crate) fn presented_key(headers: &HeaderMap, api: Api) -> Option<&str> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| key.trim());
    }
    match api {
        Api::BusinessData => headers.get("x-api-key")?.to_str().ok(),
        Api::Waypost => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn presented(name: &'static str, value: &'static str, api: Api) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        presented_key(&headers, api).map(str::to_owned)
    }

    #[test]
    fn the_scheme_is_bearer_in_any_case_and_nothing_else() {
        for value in ["Bearer wp_1", "bearer wp_1", "BEARER  wp_1 "] {
            let key = presented("authorization", value, Api::Waypost);
            assert_eq!(key.as_deref(), Some("wp_1"), "{value}");
        }
        for value in ["Basic wp_1", "wp_1", "Bearer"] {
            assert_eq!(
                presented("authorization", value, Api::Waypost),
                None,
                "{value}"
            );
        }
    }

    #[test]
    fn the_business_data_api_alone_takes_x_api_key() {
        assert_eq!(presented("x-api-key", "wp_1", Api::Waypost), None);
        let key = presented("x-api-key", "wp_1", Api::BusinessData);
        assert_eq!(key.as_deref(), Some("wp_1"));
    }
}
