//! Subscriptions of both kinds: to an organization's own events, and to those of persons.

use domain::circles::Viewer;
use event_log::ReadError;
use futures::future::BoxFuture;
use service::{Share, Shares};
use tokio::time::Instant;

use super::channel::Channel;
use super::hub::Membership;
use super::person_subscription::{PersonSubscription, VisiblePage};
use super::subscriber::Registration;
use super::subscription::{OwnPage, Subscription};

/// A subscription of a connection.
pub(super) struct Flow {
    /// The client's name for it.
    pub(super) id: String,
    /// Its number in this connection: ids can be used again, numbers are not.
    pub(super) number: u64,
    kind: Kind,
}

enum Kind {
    Own(Subscription),
    Persons(PersonSubscription),
}

/// How a subscription continues.
pub(super) enum Next {
    /// With these frames.
    Frames(Vec<String>),
    /// Not before something happens.
    Wait,
    /// Once this is done.
    Work(Work),
}

/// Work to be waited for.
pub(super) type Work = BoxFuture<'static, Result<Page, ReadError>>;

/// The result of [`Work`].
pub(super) enum Page {
    /// An organization's own events.
    Own(OwnPage),
    /// Events of persons.
    VisiblePage(VisiblePage),
    /// Everything that was in the log at this time is known.
    Settled(Instant),
}

/// Permission to read the log, which bounds how many sockets of the process do so at once. Viewers
/// share it: however many sockets one has, others need not wait for all of them.
#[derive(Clone)]
pub(super) struct CatchUps(Shares<Viewer>);

impl CatchUps {
    pub(super) fn new(at_once: usize) -> Self {
        Self(Shares::new(at_once))
    }

    /// Waits for a viewer's turn, which lasts until the result is dropped.
    pub(super) async fn take(&self, viewer: &Viewer) -> Share<Viewer> {
        self.0.enter(viewer.clone()).await
    }
}

impl Flow {
    /// A subscription to an organization's own events.
    pub(super) fn own(id: String, number: u64, subscription: Subscription) -> Self {
        let kind = Kind::Own(subscription);
        Self { id, number, kind }
    }

    /// A subscription to events of persons.
    pub(super) fn persons(id: String, number: u64, subscription: PersonSubscription) -> Self {
        let kind = Kind::Persons(subscription);
        Self { id, number, kind }
    }

    /// Returns what comes next.
    pub(super) fn advance(
        &mut self,
        member: Option<&Membership>,
        subscriber: &Registration,
        turns: &CatchUps,
    ) -> Next {
        match (&mut self.kind, member) {
            (Kind::Own(subscription), Some(member)) => subscription.advance(member, turns),
            (Kind::Own(_), None) => Next::Wait,
            (Kind::Persons(subscription), _) => subscription.advance(subscriber, turns),
        }
    }

    /// Returns the frames of a finished page.
    pub(super) fn take(&mut self, page: &Page, subscriber: &Registration) -> Vec<String> {
        match (&mut self.kind, page) {
            (Kind::Own(subscription), Page::Own(told)) => subscription.take(told),
            (Kind::Persons(subscription), Page::VisiblePage(seen)) => subscription.take(seen),
            (Kind::Persons(subscription), Page::Settled(at)) => {
                subscription.settled(*at, subscriber)
            }
            _ => Vec::new(),
        }
    }
}

/// The first part of a subscription's event frames.
pub(super) fn head(id: &str, channel: Channel) -> String {
    let (id, name) = (serde_json::Value::from(id), channel.name());
    format!(r#"{{"type":"event","id":{id},"channel":"{name}""#)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use schemas::AccountId;

    use super::*;

    #[test]
    fn one_viewers_many_sockets_leave_turns_to_others() {
        let turns = CatchUps::new(32);
        let many = Viewer::Organization("many".into());
        let held: Vec<_> = (0..100)
            .filter_map(|_| turns.take(&many).now_or_never())
            .collect();
        assert_eq!(held.len(), 16);
        let others = ["a", "b", "c"].map(|org| Viewer::Organization(org.into()));
        let person = Viewer::Account(AccountId(7));
        for viewer in others.iter().chain([&person]) {
            assert!(turns.take(viewer).now_or_never().is_some(), "{viewer:?}");
        }
        assert!(turns.take(&many).now_or_never().is_none());
    }
}
