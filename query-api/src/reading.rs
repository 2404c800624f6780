//! Extractors for reads.

use access::{AccountToken, Authorized, Caller, Person, ScopeMarker};
use axum::RequestPartsExt;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use event_log::{EventLog, Position};
use schemas::{AccountId, OrgId};
use service::HttpError;
use sqlx::PgPool;

use crate::progress::Projection;
use crate::search::Counts;
use crate::state::State;

const MIN_POSITION: &str = "waypost-min-position";

/// A read by an authorized caller, which may have to wait for a position.
///
/// The read models can only be reached through [`Reading::models`], so that no read forgets to
/// wait, and every query takes the caller's organization from here.
pub(crate) struct Reading<S> {
    caller: Authorized<S>,
    models: Models,
}

/// A read by a person, whose queries start from the persons that they may see.
pub(crate) struct PersonalReading {
    caller: AccountToken,
    models: Models,
}

/// Access to the read models.
pub(crate) struct Models {
    least: Result<Vec<Position>, HttpError>,
    state: State,
}

impl<S> Reading<S> {
    /// The organization whose data is read.
    pub(crate) fn org(&self) -> &OrgId {
        &self.caller.org
    }

    /// The caller.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The cached record counts.
    pub(crate) fn counts(&self) -> &Counts {
        self.models.counts()
    }

    /// Returns the read models once the projections that are read from have reached the position
    /// that the caller named.
    pub(crate) async fn models(&self, projections: &[Projection]) -> Result<&PgPool, HttpError> {
        self.models.reached(projections).await
    }
}

impl PersonalReading {
    /// The account of the caller.
    pub(crate) fn account(&self) -> AccountId {
        self.caller.account_id
    }

    /// The caller with their token.
    pub(crate) fn person(&self) -> &Person {
        &self.caller
    }

    /// Returns the read models, as in [`Reading::models`].
    pub(crate) async fn models(&self, projections: &[Projection]) -> Result<&PgPool, HttpError> {
        self.models.reached(projections).await
    }
}

impl Models {
    pub(crate) fn of(parts: &Parts, state: &State) -> Self {
        Self {
            least: positions(&parts.headers, &state.log),
            state: state.clone(),
        }
    }

    /// The cached record counts.
    pub(crate) fn counts(&self) -> &Counts {
        &self.state.counts
    }

    async fn reached(&self, projections: &[Projection]) -> Result<&PgPool, HttpError> {
        for position in self.least.as_ref().map_err(Clone::clone)? {
            self.wait_for(*position, projections).await?;
        }
        self.state.progress.check_database()?;
        Ok(&self.state.pool)
    }

    /// Returns the read models after a position that was not sent in the header.
    pub(crate) async fn reached_after(
        &self,
        position: Option<&str>,
        projections: &[Projection],
    ) -> Result<&PgPool, HttpError> {
        if let Some(text) = position {
            self.wait_for(parse(text, &self.state.log)?, projections)
                .await?;
        }
        self.reached(projections).await
    }

    async fn wait_for(
        &self,
        position: Position,
        projections: &[Projection],
    ) -> Result<(), HttpError> {
        let Self { state, .. } = self;
        let waiting = state
            .progress
            .wait_for(position, projections, state.position_wait);
        waiting.await
    }
}

impl<S: ScopeMarker> FromRequestParts<State> for Reading<S> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        let caller = Authorized::from_request_parts(parts, state).await?;
        let models = Models::of(parts, state);
        Ok(Self { caller, models })
    }
}

impl FromRequestParts<State> for PersonalReading {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        let caller = AccountToken::from_request_parts(parts, state).await?;
        let models = Models::of(parts, state);
        Ok(Self { caller, models })
    }
}

/// The positions that a request asks to wait for.
pub(crate) fn positions(headers: &HeaderMap, log: &EventLog) -> Result<Vec<Position>, HttpError> {
    let read = |value: &HeaderValue| parse(value.to_str().unwrap_or_default(), log);
    headers.get_all(MIN_POSITION).iter().map(read).collect()
}

fn parse(text: &str, log: &EventLog) -> Result<Position, HttpError> {
    log.parse_position(text)
        .map_err(|error| HttpError::bad_request(format!("Waypost-Min-Position: {error}")))
}

/// The id in a request's path.
pub(crate) struct ResourceId(pub(crate) String);

impl FromRequestParts<State> for ResourceId {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &State) -> Result<Self, HttpError> {
        let id: Result<Path<String>, PathRejection> = parts.extract().await;
        let Path(id) = id.map_err(|error| HttpError::bad_request(error.body_text()))?;
        if id.contains('\0') {
            // No record has such an id, and Postgres rejects it in a query.
            return Err(HttpError::not_found("not found"));
        }
        Ok(Self(id))
    }
}
