//! Checks whether a projection's rows are the fold of the log.

use projector::{Pace, RepairError, Tell, Verified};
use service::SystemClock;
use tokio_util::sync::CancellationToken;

use crate::support::World;

/// Searches for differences between a projection's rows and the log.
pub(crate) async fn verified(
    world: &World,
    name: &str,
    tell: Tell<'_>,
    stop: &CancellationToken,
) -> Result<Verified, RepairError> {
    let (log, pool, clock) = (&world.log, &world.pool, &SystemClock);
    projector::verify(log, pool, clock, name, Pace::default(), tell, stop).await
}

/// Compares a projection's rows with the log.
pub(crate) async fn assert_equal(world: &World, name: &str) {
    let stop = CancellationToken::new();
    let verified = verified(world, name, &|_| (), &stop).await.unwrap();
    assert_eq!(verified.differences, 0, "{name}: {:?}", verified.reported);
}
