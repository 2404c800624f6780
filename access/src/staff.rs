//! Who belongs to which organization's staff, folded from the log, and the session in which such a
//! person uses its pages: an access token in a cookie that no script can read.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use schemas::{AccountId, Event, OrgId, Recorded};
use service::{HttpError, RequestContext};

use crate::{Access, Person, Refusal};

/// The cookie that holds the access token.
pub const SESSION_COOKIE: &str = "waypost_session";
/// The cookie by which somebody who belongs to several organizations has chosen one. It gives no
/// right: only an organization that the account belongs to is taken from it.
pub const ORGANIZATION_COOKIE: &str = "waypost_organization";

/// A person of an organization's staff who has signed in.
#[derive(Clone, Debug)]
pub struct Staff {
    /// Who.
    pub person: Person,
    /// For whom: nothing of any other organization may be seen or done.
    pub org: OrgId,
    /// All that the person could have chosen.
    pub organizations: Vec<OrgId>,
}

/// Every account's organizations, in the order in which it joined them.
#[derive(Default)]
pub(crate) struct StaffDirectory(RwLock<HashMap<AccountId, Vec<OrgId>>>);

impl StaffDirectory {
    /// Takes up an event of an organization or an account; the same event twice is the same as
    /// once.
    pub(crate) fn apply(&self, recorded: &Recorded) {
        let org = &recorded.stream.org;
        match &recorded.event {
            Event::OrganizationMemberAdded(added) => self.add(added.account_id, org),
            Event::OrganizationMemberRemoved(removed) => self.remove(removed.account_id, org),
            Event::AccountForgotten(forgotten) => {
                self.write().remove(&forgotten.account_id);
            }
            _ => {}
        }
    }

    fn add(&self, account: AccountId, org: &OrgId) {
        let mut known = self.write();
        let organizations = known.entry(account).or_default();
        if !organizations.contains(org) {
            organizations.push(org.clone());
        }
    }

    fn remove(&self, account: AccountId, org: &OrgId) {
        let mut known = self.write();
        if let Some(organizations) = known.get_mut(&account) {
            organizations.retain(|one| one != org);
            if organizations.is_empty() {
                known.remove(&account);
            }
        }
    }

    fn organizations(&self, account: AccountId) -> Vec<OrgId> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&account).cloned().unwrap_or_default()
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<AccountId, Vec<OrgId>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Access {
    /// The organizations whose staff an account belongs to.
    pub fn organizations_of(&self, account: AccountId) -> Vec<OrgId> {
        self.staff().organizations(account)
    }

    /// The person who is signed in by the cookies of a request, of whichever organization or none.
    pub fn person_of_session(&self, headers: &HeaderMap) -> Result<Person, Refusal> {
        let token = cookie(headers, SESSION_COOKIE).ok_or(Refusal::NoToken)?;
        self.authenticate_person(token)
    }

    /// Who is signed in by the cookies of a request.
    fn signed_in(&self, headers: &HeaderMap) -> Result<Option<Staff>, Refusal> {
        let person = self.person_of_session(headers)?;
        let organizations = self.organizations_of(person.account_id);
        let chosen = cookie(headers, ORGANIZATION_COOKIE);
        let chosen = organizations
            .iter()
            .find(|org| Some(org.as_str()) == chosen);
        let org = chosen.or(organizations.first()).cloned();
        Ok(org.map(|org| Staff {
            person,
            org,
            organizations,
        }))
    }
}

impl<State> FromRequestParts<State> for Staff
where
    State: Send + Sync,
    Access: FromRef<State>,
{
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        let Ok(request) = RequestContext::from_request_parts(parts, state).await;
        let staff = Access::from_ref(state).signed_in(&parts.headers);
        let staff = staff.map_err(|_| HttpError::unauthorized("not signed in"))?;
        let staff = staff.ok_or_else(not_staff)?;
        request.identify(&staff.org);
        Ok(staff)
    }
}

/// 403: the account is a person's who belongs to no organization.
pub fn not_staff() -> HttpError {
    HttpError::forbidden("this account is not an owner of any organization")
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let mut cookies = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='));
    cookies
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_cookie_is_found_among_others_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        let line = HeaderValue::from_static("a=1; not_waypost_session=2; waypost_session=e.y=J;b");
        headers.insert(header::COOKIE, line);
        assert_eq!(cookie(&headers, SESSION_COOKIE), Some("e.y=J"));
        assert_eq!(cookie(&headers, ORGANIZATION_COOKIE), None);
        assert_eq!(cookie(&HeaderMap::new(), SESSION_COOKIE), None);
    }
}
