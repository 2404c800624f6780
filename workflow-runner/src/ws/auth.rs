//! Who a client is. The rest of `/ws` knows a [`Viewer`] and nothing of keys.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use access::{Caller, Refusal, Scope};
use schemas::{KeyId, OrgId};
use service::RequestContext;
use tokio::time::{Sleep, sleep};

use super::Live;
use super::close::CloseReason;

/// Somebody who may see an organization's events.
#[derive(Clone, Debug)]
pub(super) struct Viewer(Arc<Caller>);

impl Viewer {
    /// Whose events.
    pub(super) fn org(&self) -> &OrgId {
        &self.0.org
    }

    /// The key whose revocation ends the viewing.
    pub(super) fn key(&self) -> &KeyId {
        &self.0.key_id
    }
}

impl Live {
    /// Whom a token lets in; a connection counts as one request.
    pub(super) async fn admit(
        &self,
        token: &str,
        request: &RequestContext,
    ) -> Result<Viewer, CloseReason> {
        let admitted = self
            .access
            .authorize(token, Scope::ReadEvents, request)
            .await;
        admitted.map(Viewer).map_err(CloseReason::from)
    }

    /// Who goes on under another token within a connection, which counts nothing more.
    pub(super) fn readmit(&self, token: &str) -> Result<Viewer, CloseReason> {
        let caller = self.access.identify(token)?;
        if caller.may(Scope::ReadEvents) {
            Ok(Viewer(caller))
        } else {
            Err(CloseReason::MissingScope)
        }
    }

    /// Whether the viewer's token is still good.
    pub(super) fn still_admits(&self, viewer: &Viewer) -> bool {
        self.access.is_in_force(&viewer.0)
    }

    /// Waits for the moment the viewer's token expires, where it does.
    pub(super) fn expiry(&self, viewer: &Viewer) -> Option<Pin<Box<Sleep>>> {
        let left = viewer.0.expires_at? - self.clock.now();
        let left = left.to_std().unwrap_or(Duration::ZERO);
        Some(Box::pin(sleep(left)))
    }
}

impl From<Refusal> for CloseReason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoKey | Refusal::InvalidKey => Self::UnknownToken,
            Refusal::LimitReached { .. } => Self::OverLimit,
            Refusal::ScopeMissing(_) => Self::MissingScope,
        }
    }
}
