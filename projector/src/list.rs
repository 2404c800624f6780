//! The positions of all projections, for operators.

use event_log::{EventLog, Position, ReadError};
use serde::Serialize;
use sqlx::PgPool;

use crate::checkpoint::{self, log_name};
use crate::projection::LOGS;

/// The position of a projection.
#[derive(Clone, Debug, Serialize)]
pub struct ProjectionPosition {
    /// The projection.
    pub name: String,
    /// Its position in its log, in the external form.
    pub position: String,
    /// Events of the log that it has not applied yet.
    pub lag: u64,
}

/// Why the positions cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The database does not answer.
    #[error("the database does not answer: {0}")]
    Database(#[from] sqlx::Error),
    /// The log does not answer.
    #[error(transparent)]
    Log(#[from] ReadError),
}

/// Returns every projection with its position, by name.
pub async fn list(log: &EventLog, pool: &PgPool) -> Result<Vec<ProjectionPosition>, ListError> {
    let mut ends: Vec<Position> = Vec::new();
    for feed in LOGS {
        ends.push(log.end(feed).await?);
    }
    let checkpoints = checkpoint::all(pool).await?;
    let listed = checkpoints.into_iter().filter_map(|checkpoint| {
        let end = ends
            .iter()
            .find(|end| log_name(end.log()) == checkpoint.log)?;
        Some(ProjectionPosition {
            position: log.position(end.log(), checkpoint.sequence).to_string(),
            lag: end.sequence().saturating_sub(checkpoint.sequence),
            name: checkpoint.name,
        })
    });
    Ok(listed.collect())
}
