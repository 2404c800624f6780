//! State shared by all handlers.

use std::sync::Arc;
use std::time::Duration;

use access::Access;
use axum::extract::FromRef;
use event_log::EventLog;
use schemas::Log;
use service::Clock;
use sqlx::PgPool;

use crate::account::OwnExports;
use crate::exports::Exports;
use crate::feed::Feeds;
use crate::pages::MapSettings;
use crate::progress::Progress;
use crate::search::Counts;

/// State shared by all handlers, and by its clones. The read models are only reached through
/// [`Reading`](crate::reading::Reading).
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) access: Access,
    pub(crate) log: EventLog,
    pub(crate) pool: PgPool,
    pub(crate) progress: Progress,
    pub(crate) counts: Counts,
    pub(crate) position_wait: Duration,
    pub(crate) exports: Exports,
    pub(crate) feeds: Feeds,
    pub(crate) own_exports: OwnExports,
    pub(crate) map: Arc<MapSettings>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl State {
    /// Returns how many events of a log the projection with the largest lag has not processed, or
    /// `None` if that is unknown.
    pub(crate) async fn behind(&self, log: Log) -> Option<u64> {
        self.progress.behind(self.log.end(log).await.ok()?)
    }
}

impl FromRef<State> for Access {
    fn from_ref(state: &State) -> Self {
        state.access.clone()
    }
}

impl FromRef<State> for Exports {
    fn from_ref(state: &State) -> Self {
        state.exports.clone()
    }
}

impl FromRef<State> for Arc<dyn Clock> {
    fn from_ref(state: &State) -> Self {
        state.clock.clone()
    }
}
