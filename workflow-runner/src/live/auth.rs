//! Identifies clients. The rest of `/ws` knows a [`Viewer`] but no keys and tokens.

use std::sync::Arc;
use std::time::Duration;

use access::{Caller, Person, Refusal, Scope};
use axum::http::HeaderMap;
use domain::circles;
use futures::future::BoxFuture;
use schemas::{AccountId, OrgId};
use service::{HttpError, RequestContext};
use tokio::time::sleep;

use super::Live;
use super::close::CloseReason;

/// The prefix of API keys, which access tokens never have.
const KEY_PREFIX: &str = "wp_";

/// A client that may see something.
#[derive(Clone, Debug)]
pub(super) enum Viewer {
    /// The holder of an API key or a member of staff, who may see an organization's events.
    Key(Arc<Caller>),
    /// A person, who may see those they share a circle with.
    Person(Person),
}

impl Viewer {
    /// The organization whose own events the viewer may see.
    pub(super) fn org(&self) -> Option<&OrgId> {
        match self {
            Self::Key(caller) => Some(&caller.org),
            Self::Person(_) => None,
        }
    }

    /// Who the viewer is, regardless of the token.
    pub(super) fn identity(&self) -> circles::Viewer {
        match self {
            Self::Key(caller) => circles::Viewer::Organization(caller.org.clone()),
            Self::Person(person) => circles::Viewer::Account(person.account_id),
        }
    }
}

impl Live {
    /// Admits the holder of a token; a connection counts as one request.
    pub(super) async fn admit(
        &self,
        token: &str,
        request: &RequestContext,
    ) -> Result<Viewer, CloseReason> {
        if token.starts_with(KEY_PREFIX) {
            let admitted = self.access.authorize(token, Scope::ReadEvents, request);
            return Ok(Viewer::Key(admitted.await?));
        }
        let person = self.person(token).await?;
        self.access.count_request(&person, request).await?;
        Ok(Viewer::Person(person))
    }

    /// Admits an organization's staff by their session, on one of our own pages.
    ///
    /// # Errors
    /// The response that refuses the handshake.
    pub(super) async fn admit_session(
        &self,
        headers: &HeaderMap,
        request: &RequestContext,
    ) -> Result<Result<Viewer, CloseReason>, HttpError> {
        let caller = self.access.caller_of_session(headers, false)?;
        request.identify(&caller.org);
        let counted = self.access.count_again(&caller).await;
        Ok(counted.map(|()| Viewer::Key(caller)).map_err(Into::into))
    }

    /// Admits a viewer under another token within a connection, counted as no further request.
    pub(super) async fn readmit(&self, token: &str) -> Result<Viewer, CloseReason> {
        if !token.starts_with(KEY_PREFIX) {
            return self.person(token).await.map(Viewer::Person);
        }
        let caller = self.access.identify(token)?;
        if caller.may(Scope::ReadEvents) {
            Ok(Viewer::Key(caller))
        } else {
            Err(CloseReason::MissingScope)
        }
    }

    async fn person(&self, token: &str) -> Result<Person, CloseReason> {
        self.access.authenticate_person(token)?;
        // The token may have been ended a moment ago.
        self.fan_out.settle().await;
        Ok(self.access.authenticate_person(token)?)
    }

    /// Whether the viewer's token is still valid.
    pub(super) fn still_admits(&self, viewer: &Viewer) -> bool {
        match viewer {
            Viewer::Key(caller) => self.access.is_in_force(caller),
            Viewer::Person(person) => self.access.person_is_good(person),
        }
    }

    /// Waits for the end of the viewer's key, or until the token expires. Anything else that ends a
    /// token is reported by its person's subscriber.
    pub(super) fn ended(&self, viewer: &Viewer) -> BoxFuture<'static, ()> {
        match viewer {
            Viewer::Key(caller) => Box::pin(self.access.ended(caller)),
            Viewer::Person(person) => {
                let left = person.expires_at - self.clock.now();
                let left = left.to_std().unwrap_or(Duration::ZERO);
                Box::pin(sleep(left))
            }
        }
    }
}

/// The account whose tokens an event may end.
pub(super) fn ends_tokens_of(event: &schemas::Event) -> Option<AccountId> {
    match event {
        schemas::Event::AccountSignedOut(data) => Some(data.account_id),
        schemas::Event::AccountPasswordChanged(data) => Some(data.account_id),
        schemas::Event::AccountForgotten(data) => Some(data.account_id),
        _ => None,
    }
}

impl From<Refusal> for CloseReason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoKey | Refusal::InvalidKey | Refusal::NoToken | Refusal::InvalidToken => {
                Self::UnknownToken
            }
            Refusal::LimitReached { .. } | Refusal::AllowanceUsedUp { .. } => Self::OverLimit,
            Refusal::ScopeMissing(_) => Self::MissingScope,
        }
    }
}
