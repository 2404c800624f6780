//! One socket among those that receive events of persons.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::circles::Viewer;
use tokio::sync::Notify;

use super::calls::Call;
use super::channel::Channel;
use super::fan_out::FanOut;
use super::outbox::{Conflated, Entry, Outbox};
use super::snapshot::Candidate;

/// A socket, with an outbox for each of its subscriptions.
pub(super) struct Subscriber {
    viewer: Viewer,
    wakeup: Notify,
    outboxes: Mutex<Vec<(u64, Outbox)>>,
}

impl Subscriber {
    pub(super) fn new(viewer: Viewer) -> Self {
        Self {
            viewer,
            wakeup: Notify::new(),
            outboxes: Mutex::default(),
        }
    }

    /// Who is connected.
    pub(super) fn viewer(&self) -> &Viewer {
        &self.viewer
    }

    fn outboxes(&self) -> MutexGuard<'_, Vec<(u64, Outbox)>> {
        // Nothing that holds this lock can panic halfway through a change.
        self.outboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is an outbox for the channel.
    pub(super) fn takes(&self, channel: Channel) -> bool {
        let outboxes = self.outboxes();
        outboxes
            .iter()
            .any(|(_, outbox)| outbox.channel() == channel)
    }

    pub(super) fn open(&self, number: u64, channel: Channel) {
        self.outboxes().push((number, Outbox::new(channel)));
    }

    /// Puts an event into every outbox of its channel.
    pub(super) fn push(&self, entry: &Entry) {
        let channel = entry.fact.visibility.channel();
        for (_, outbox) in self.outboxes().iter_mut() {
            if outbox.channel() == channel {
                outbox.push(entry.clone());
            }
        }
        self.wakeup.notify_one();
    }

    /// Makes the socket check what it may do.
    pub(super) fn wake(&self) {
        self.wakeup.notify_one();
    }
}

/// A subscriber's registration, until this is dropped.
pub(super) struct Registration {
    fan_out: FanOut,
    subscriber: Arc<Subscriber>,
}

impl Registration {
    pub(super) fn new(fan_out: FanOut, subscriber: Arc<Subscriber>) -> Self {
        Self {
            fan_out,
            subscriber,
        }
    }

    /// Who is connected.
    pub(super) fn viewer(&self) -> &Viewer {
        self.subscriber.viewer()
    }

    /// Where events of persons come from.
    pub(super) fn fan_out(&self) -> &FanOut {
        &self.fan_out
    }

    /// Waits until something arrives, or the subscriber has to check what it may do.
    pub(super) async fn woken(&self) {
        self.subscriber.wakeup.notified().await;
    }

    /// Lets a subscription take the channel's events from now on; returns the sequence they follow.
    pub(super) fn open(&self, number: u64, channel: Channel) -> u64 {
        self.fan_out.open(&self.subscriber, number, channel)
    }

    /// The same for positions, with the newest of those whom the viewer could see.
    pub(super) async fn open_with_latest(&self, number: u64) -> (u64, Vec<Candidate>) {
        self.fan_out
            .open_with_latest(&self.subscriber, number)
            .await
    }

    /// The same for calls for help, with the open ones of those whom the viewer could see.
    pub(super) async fn open_with_calls(&self, number: u64) -> (u64, Vec<Call>) {
        self.fan_out.open_with_calls(&self.subscriber, number).await
    }

    /// Ends a subscription.
    pub(super) fn close(&self, number: u64) {
        self.subscriber
            .outboxes()
            .retain(|(other, _)| *other != number);
    }

    /// Reads a subscription's outbox.
    pub(super) fn look<T>(&self, number: u64, look: impl FnOnce(&mut Outbox) -> T) -> Option<T> {
        let mut outboxes = self.subscriber.outboxes();
        let found = outboxes.iter_mut().find(|(other, _)| *other == number)?;
        Some(look(&mut found.1))
    }

    /// Takes the oldest waiting entries, and what was left out before them.
    pub(super) fn take(&self, number: u64, max: usize) -> (Option<Conflated>, Vec<Entry>) {
        let taken = self.look(number, |outbox| (outbox.take_conflated(), outbox.take(max)));
        taken.unwrap_or_default()
    }

    /// Whether a subscription is so far behind that it had better start over.
    pub(super) fn is_hopeless(&self) -> bool {
        let outboxes = self.subscriber.outboxes();
        outboxes.iter().any(|(_, outbox)| outbox.is_hopeless())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.fan_out.leave(&self.subscriber);
    }
}
