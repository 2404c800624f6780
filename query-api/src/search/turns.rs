//! Turns of searches, shared by organization.
//!
//! A search may take long, and takes two of the connections to the database at a time. Without
//! turns, the searches of one organization could take all of them.

use std::sync::{Arc, OnceLock};

use schemas::OrgId;
use service::{Share, Shares};
use sqlx::PgPool;
use tokio::time::timeout;

/// There is one search at a time for so many connections. So some of them are left for reads that
/// take no turn, however many organizations search.
const CONNECTIONS: u32 = 3;

/// The turns of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<OnceLock<Shares<OrgId>>>);

impl Turns {
    /// Waits for a turn, as long as for a connection.
    pub(super) async fn begin(
        &self,
        org: &OrgId,
        models: &PgPool,
    ) -> Result<Share<OrgId>, sqlx::Error> {
        let connections = models.options();
        let turns = self.0.get_or_init(|| {
            let at_once = connections.get_max_connections() / CONNECTIONS;
            Shares::new(usize::try_from(at_once).unwrap_or(usize::MAX))
        });
        if let Some(turn) = turns.try_enter(org) {
            return Ok(turn);
        }
        let turn = timeout(connections.get_acquire_timeout(), turns.enter(org.clone()));
        turn.await.map_err(|_| sqlx::Error::PoolTimedOut)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::postgres::PgPoolOptions;

    use super::*;

    #[tokio::test]
    async fn an_organization_gets_a_half_of_the_searches() {
        let models = PgPoolOptions::new()
            .max_connections(16)
            .acquire_timeout(Duration::from_millis(10))
            .connect_lazy("postgres://localhost/nowhere")
            .unwrap();
        let (turns, one, other) = (Turns::default(), OrgId::from("a"), OrgId::from("b"));
        let mut held = Vec::new();
        while let Ok(turn) = turns.begin(&one, &models).await {
            held.push(turn);
        }
        assert_eq!(held.len(), 3, "6 of 16 connections");
        let theirs = turns.begin(&other, &models).await;
        assert!(theirs.is_ok());
        held.clear();
        assert!(turns.begin(&one, &models).await.is_ok());
    }
}
