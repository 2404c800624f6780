//! Projections that are behind the others of their log, such as a new one, read the log on their
//! own until they have come close, and then join.

use sqlx::PgConnection;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::batch::Group;
use crate::error::FeedError;
use crate::feed::Feed;
use crate::reader::{Reader, sequence};

/// This close, the others wait for the last events without being noticeably late.
const CLOSE: u64 = 5_000;
const BACKOFF: std::time::Duration = std::time::Duration::from_secs(1);

/// Brings a group close to the position of the others; whatever fails is tried again.
pub(crate) async fn catch_up(feed: Feed, mut group: Group, live: watch::Receiver<u64>) -> Group {
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
    let mut session = feed.connector.writer(feed.log).await?;
    let mut reader = Reader::open(&feed.event_log, feed.log, group.position, feed.batch).await?;
    loop {
        let target = *live.borrow();
        if group.position + CLOSE >= target {
            return Ok(());
        }
        go_on(feed, group, &mut session, &mut reader, target).await?;
        if group.position == target {
            // The reader may have gone past it.
            return Ok(());
        }
    }
}

/// The group as the database has it: what became of the last batch is not known after a fault.
async fn reload(feed: &Feed, names: &[&str]) -> Result<Option<Group>, FeedError> {
    let mut session = feed.connector.writer(feed.log).await?;
    let groups = feed.groups(&mut session).await?;
    let mut of_these = groups.into_iter().map(|mut group| {
        let members = &mut group.members;
        members.retain(|member| names.contains(&member.projection.name()));
        group
    });
    Ok(of_these.find(|group| !group.members.is_empty()))
}

/// Brings a group to exactly `target`.
pub(crate) async fn reach(
    feed: &Feed,
    group: &mut Group,
    session: &mut PgConnection,
    target: u64,
) -> Result<(), FeedError> {
    let mut reader = Reader::open(&feed.event_log, feed.log, group.position, feed.batch).await?;
    while group.position < target {
        go_on(feed, group, session, &mut reader, target).await?;
    }
    Ok(())
}

/// Writes the next batch, but nothing beyond `target`.
async fn go_on(
    feed: &Feed,
    group: &mut Group,
    session: &mut PgConnection,
    reader: &mut Reader,
    target: u64,
) -> Result<(), FeedError> {
    let mut batch = reader.next().await?;
    batch.items.retain(|item| sequence(item) <= target);
    let to = batch.last_sequence.min(target);
    feed.write(group, session, &batch.items, to).await
}
