//! The key APIs on an organization's pages: under `/dashboard`, a session replaces the key.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use schemas::KeyId;
use service::{HttpError, RequestContext};

use crate::directory::Credential;
use crate::{Access, Api, Caller, Scope, ScopeSet, Staff, is_own_page, not_staff};

/// The caller of a request that came with a session; only [`by_session`] inserts it.
#[derive(Clone)]
pub(crate) struct BySession(pub(crate) Arc<Caller>);

/// Middleware that opens routes for keys to an organization's staff. A signed-in staff member may
/// do there what a key with every scope may, counted by person. Requests that change anything must
/// come from one of our own pages.
pub async fn by_session(
    State(access): State<Access>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let caller = access.caller_of_session(request.headers(), is_read);
    match caller {
        Ok(caller) => {
            request.extensions_mut().insert(BySession(caller));
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

/// The caller that [`by_session`] found.
pub(crate) fn caller_of(parts: &Parts) -> Option<Arc<Caller>> {
    let caller = parts.extensions.get::<BySession>();
    caller.map(|BySession(caller)| caller.clone())
}

impl Access {
    /// Returns the staff session of a request as a caller of the key APIs.
    ///
    /// # Errors
    /// 401 without a session, 403 if the account is not staff of any organization, or if the
    /// request is not a read and does not come from one of our own pages.
    pub fn caller_of_session(
        &self,
        headers: &HeaderMap,
        is_read: bool,
    ) -> Result<Arc<Caller>, HttpError> {
        if !is_read && !is_own_page(headers) {
            let message = "cross-origin request refused: use the dashboard's own pages";
            return Err(HttpError::forbidden(message));
        }
        let staff = self.signed_in(headers);
        let staff = staff.map_err(|_| HttpError::unauthorized("not signed in"))?;
        self.caller_of_staff(staff.ok_or_else(not_staff)?)
    }

    /// Counts a request that a staff member sends from the organization's pages to none of the key
    /// APIs, against the same limit as those with [`by_session`], and adds the state of the limit to
    /// its response.
    ///
    /// # Errors
    /// 429 if the limit is used up, 403 if the person has just left the staff.
    pub async fn count_on_pages(
        &self,
        staff: &Staff,
        request: &RequestContext,
    ) -> Result<(), HttpError> {
        let caller = self.caller_of_staff(staff.clone())?;
        self.count(&caller, Api::Waypost, request).await?;
        Ok(())
    }

    fn caller_of_staff(&self, staff: Staff) -> Result<Arc<Caller>, HttpError> {
        let Staff { person, org, .. } = staff;
        let membership = self.staff().membership(person.account_id, &org);
        let (hourly, revoked) = membership.ok_or_else(not_staff)?;
        Ok(Arc::new(Caller {
            org,
            key_id: KeyId::from(format!("owner:{}", person.account_id)),
            scopes: ScopeSet::from_iter([Scope::Admin]),
            rate_limit: self.0.settings.staff_requests,
            expires_at: Some(person.expires_at),
            credential: Credential::Session(person),
            hourly,
            revoked,
        }))
    }
}
