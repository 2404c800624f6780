//! Who belongs to which organization's staff, folded from the log, and the session in which a staff
//! member uses its pages: an access token in a cookie that no script can read.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use schemas::{AccountId, Event, OrgId, Recorded};
use service::{HttpError, RequestContext};
use tokio_util::sync::CancellationToken;

use crate::limit::{Counter, Limiter, Policy};
use crate::{Access, Person, Refusal};

/// The cookie that holds the access token.
pub const SESSION_COOKIE: &str = "waypost_session";
/// The cookie in which a member of several organizations has chosen one. It grants nothing: only an
/// organization that the account belongs to is accepted.
pub const ORGANIZATION_COOKIE: &str = "waypost_organization";

/// A person of an organization's staff who has signed in.
#[derive(Clone, Debug)]
pub struct Staff {
    /// The person.
    pub person: Person,
    /// The organization they act for: they may see and do nothing in any other.
    pub org: OrgId,
    /// All organizations that the person could have chosen.
    pub organizations: Vec<OrgId>,
}

/// Every account's organizations, in the order in which it joined them.
#[derive(Default)]
pub(crate) struct StaffDirectory(RwLock<HashMap<AccountId, Vec<Membership>>>);

/// An account's membership in an organization's staff.
pub(crate) struct Membership {
    org: OrgId,
    /// Counts the person's requests on its pages.
    pub(crate) requests: Arc<Counter>,
    /// Cancelled when the membership ends.
    pub(crate) ended: CancellationToken,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl StaffDirectory {
    /// Applies an event of an organization or an account. Applying it twice has no further effect.
    pub(crate) fn apply(&self, recorded: &Recorded, limiter: &Limiter) {
        let org = &recorded.stream.org;
        match &recorded.event {
            Event::OrganizationMemberAdded(added) => self.add(added.account_id, org, limiter),
            Event::OrganizationMemberRemoved(removed) => self.remove(removed.account_id, org),
            Event::AccountForgotten(forgotten) => {
                self.write().remove(&forgotten.account_id);
            }
            _ => {}
        }
    }

    /// Removes accounts that are gone, if the events that say so are not applied here.
    pub(crate) fn retain(&self, is_there: impl Fn(AccountId) -> bool) {
        self.write().retain(|account, _| is_there(*account));
    }

    fn add(&self, account: AccountId, org: &OrgId, limiter: &Limiter) {
        let mut known = self.write();
        let memberships = known.entry(account).or_default();
        if memberships.iter().all(|one| one.org != *org) {
            let who = format!("{account}@{org}");
            memberships.push(Membership {
                org: org.clone(),
                requests: Arc::new(limiter.counter(Policy::Hourly, &who)),
                ended: CancellationToken::new(),
            });
        }
    }

    fn remove(&self, account: AccountId, org: &OrgId) {
        let mut known = self.write();
        if let Some(memberships) = known.get_mut(&account) {
            memberships.retain(|one| one.org != *org);
            if memberships.is_empty() {
                known.remove(&account);
            }
        }
    }

    fn organizations(&self, account: AccountId) -> Vec<OrgId> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let memberships = known.get(&account).into_iter().flatten();
        memberships.map(|one| one.org.clone()).collect()
    }

    /// Returns the counter of a person's requests for an organization, and the membership's
    /// cancellation token.
    pub(crate) fn membership(
        &self,
        account: AccountId,
        org: &OrgId,
    ) -> Option<(Arc<Counter>, CancellationToken)> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let one = known.get(&account)?.iter().find(|one| one.org == *org)?;
        Some((one.requests.clone(), one.ended.clone()))
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<AccountId, Vec<Membership>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Access {
    /// The organizations whose staff an account belongs to.
    pub fn organizations_of(&self, account: AccountId) -> Vec<OrgId> {
        self.staff().organizations(account)
    }

    /// Returns the person signed in by the cookies of a request, of any organization or none.
    pub fn person_of_session(&self, headers: &HeaderMap) -> Result<Person, Refusal> {
        let token = cookie(headers, SESSION_COOKIE).ok_or(Refusal::NoToken)?;
        self.authenticate_person(token)
    }

    /// Returns the staff member signed in by the cookies of a request.
    pub(crate) fn signed_in(&self, headers: &HeaderMap) -> Result<Option<Staff>, Refusal> {
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

/// 403: the account belongs to no organization.
pub fn not_staff() -> HttpError {
    HttpError::forbidden("this account is not an owner of any organization")
}

/// Whether a request was sent by one of our own pages: browsers name the page's site in `Origin`,
/// and no page can change that. The session's cookie is not sent along with requests of other sites
/// either. Neither is relied on alone.
pub fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    match (origin, text(header::HOST)) {
        (Some((_, origin)), Some(host)) => origin.eq_ignore_ascii_case(host),
        _ => false,
    }
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
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn own(given: &[(HeaderName, &'static str)]) -> bool {
        let pairs = given.iter().cloned();
        is_own_page(
            &pairs
                .map(|(name, value)| (name, HeaderValue::from_static(value)))
                .collect(),
        )
    }

    #[test]
    fn only_the_same_host_and_port_is_own() {
        let at = |origin, host| own(&[(header::ORIGIN, origin), (header::HOST, host)]);
        assert!(at("http://127.0.0.1:8080", "127.0.0.1:8080"));
        assert!(at("https://Waypost.example", "waypost.example"));
        assert!(!at("https://evil.example", "waypost.example"));
        assert!(!at("http://127.0.0.1:9090", "127.0.0.1:8080"));
        assert!(!at(
            "https://waypost.example.evil.example",
            "waypost.example"
        ));
        assert!(!at("null", "waypost.example"));
        assert!(!own(&[(header::HOST, "waypost.example")]));
        assert!(!own(&[]));
    }

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
