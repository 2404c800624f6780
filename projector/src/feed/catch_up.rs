//! Projections that are behind the others of their log, such as a new one, read the log separately
//! until they have come close, and then join.

use tokio::sync::watch;
use tokio::time::sleep;

use super::Feed;
use crate::batch::Group;
use crate::error::FeedError;
use crate::replay::Replay;
use crate::writers::Writers;

/// This close, the others wait for the last events without being noticeably late.
const CLOSE: u64 = 5_000;
const BACKOFF: std::time::Duration = std::time::Duration::from_secs(1);

/// Brings a group close to the position of the others; retries whatever fails.
pub(super) async fn catch_up(feed: Feed, mut group: Group, live: watch::Receiver<u64>) -> Group {
    let names: Vec<_> = group.members.iter().map(|m| m.projection.name()).collect();
    tracing::info!(projections = ?names, from = group.position, "Catching up with the log");
    loop {
        let Err(error) = follow(&feed, &mut group, &live).await else {
            tracing::info!(projections = ?names, at = group.position, "Caught up with the log");
            return group;
        };
        feed.status.failed(&error);
        sleep(BACKOFF).await;
        match reload(&feed, &names).await {
            Ok(Some(reloaded)) => group = reloaded,
            Ok(None) => {}
            Err(error) => feed.status.failed(&error),
        }
    }
}

async fn follow(
    feed: &Feed,
    group: &mut Group,
    live: &watch::Receiver<u64>,
) -> Result<(), FeedError> {
    let mut writers = feed.writers().await?;
    loop {
        let target = *live.borrow();
        if group.position + CLOSE >= target {
            return Ok(());
        }
        reach(feed, group, &mut writers, target).await?;
    }
}

/// Reloads the group from the database: after a fault the outcome of the last batch is unknown.
async fn reload(feed: &Feed, names: &[&str]) -> Result<Option<Group>, FeedError> {
    let mut writers = feed.writers().await?;
    let groups = feed.groups(writers.first()).await?;
    let mut of_these = groups.into_iter().rev().filter_map(|mut group| {
        let members = &mut group.members;
        members.retain(|member| names.contains(&member.projection.name()));
        (!members.is_empty()).then_some(group)
    });
    let Some(mut furthest) = of_these.next() else {
        return Ok(None);
    };
    // As they are written in parallel, some may have been written when others were not.
    for behind in of_these {
        join(feed, behind, &mut furthest, &mut writers).await?;
    }
    Ok(Some(furthest))
}

/// Brings a group to exactly the position of the others, and merges it into them.
pub(super) async fn join(
    feed: &Feed,
    mut behind: Group,
    others: &mut Group,
    writers: &mut Writers,
) -> Result<(), FeedError> {
    reach(feed, &mut behind, writers, others.position).await?;
    others.members.append(&mut behind.members);
    Ok(())
}

/// Brings a group to exactly `target`.
async fn reach(
    feed: &Feed,
    group: &mut Group,
    writers: &mut Writers,
    target: u64,
) -> Result<(), FeedError> {
    let (log, batch) = (&feed.event_log, feed.batch);
    let mut replay = Replay::open(log, feed.log, group.position, target, batch, &[]).await?;
    while let Some((items, to)) = replay.next().await? {
        feed.write(group, writers, &items, to).await?;
    }
    Ok(())
}
