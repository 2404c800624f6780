//! One socket among those that look out for persons.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::circles::Viewer;
use tokio::sync::Notify;

use super::channel::Channel;
use super::lookout::Lookout;
use super::mail::{Conflated, Letter, Mail};
use super::snapshot::Candidate;

/// A socket's place, with a box for each of its subscriptions.
pub(super) struct Seat {
    viewer: Viewer,
    bell: Notify,
    boxes: Mutex<Vec<(u64, Mail)>>,
}

impl Seat {
    pub(super) fn new(viewer: Viewer) -> Self {
        Self {
            viewer,
            bell: Notify::new(),
            boxes: Mutex::default(),
        }
    }

    /// Who sits here.
    pub(super) fn viewer(&self) -> &Viewer {
        &self.viewer
    }

    fn boxes(&self) -> MutexGuard<'_, Vec<(u64, Mail)>> {
        // Nothing that holds this lock can panic halfway through a change.
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a box for the channel.
    pub(super) fn takes(&self, channel: Channel) -> bool {
        let boxes = self.boxes();
        boxes.iter().any(|(_, mail)| mail.channel() == channel)
    }

    pub(super) fn open(&self, number: u64, channel: Channel) {
        self.boxes().push((number, Mail::new(channel)));
    }

    /// Puts an event into every box of its channel.
    pub(super) fn push(&self, letter: &Letter) {
        let channel = letter.fact.sight.channel();
        for (_, mail) in self.boxes().iter_mut() {
            if mail.channel() == channel {
                mail.push(letter.clone());
            }
        }
        self.bell.notify_one();
    }

    /// Has the socket look at what it may do.
    pub(super) fn ring(&self) {
        self.bell.notify_one();
    }
}

/// A taken seat; it is given up when this is dropped.
pub(super) struct Attendance {
    lookout: Lookout,
    seat: Arc<Seat>,
}

impl Attendance {
    pub(super) fn new(lookout: Lookout, seat: Arc<Seat>) -> Self {
        Self { lookout, seat }
    }

    /// Who sits here.
    pub(super) fn viewer(&self) -> &Viewer {
        self.seat.viewer()
    }

    /// All who look out.
    pub(super) fn lookout(&self) -> &Lookout {
        &self.lookout
    }

    /// Waits until something came, or the seat is to be looked at.
    pub(super) async fn rung(&self) {
        self.seat.bell.notified().await;
    }

    /// Has a subscription take the channel's events from now on; answers from behind which
    /// sequence.
    pub(super) fn open(&self, number: u64, channel: Channel) -> u64 {
        self.lookout.open(&self.seat, number, channel)
    }

    /// The same for positions, with the newest of those whom the viewer could see.
    pub(super) async fn open_with_latest(&self, number: u64) -> (u64, Vec<Candidate>) {
        self.lookout.open_with_latest(&self.seat, number).await
    }

    /// Ends a subscription.
    pub(super) fn close(&self, number: u64) {
        self.seat.boxes().retain(|(other, _)| *other != number);
    }

    /// Reads a subscription's box.
    pub(super) fn look<T>(&self, number: u64, look: impl FnOnce(&mut Mail) -> T) -> Option<T> {
        let mut boxes = self.seat.boxes();
        let found = boxes.iter_mut().find(|(other, _)| *other == number)?;
        Some(look(&mut found.1))
    }

    /// Takes the oldest of what waits, and what was left out before it.
    pub(super) fn take(&self, number: u64, max: usize) -> (Option<Conflated>, Vec<Letter>) {
        let taken = self.look(number, |mail| (mail.take_conflated(), mail.take(max)));
        taken.unwrap_or_default()
    }

    /// Whether a subscription is so far behind that it had better begin again.
    pub(super) fn is_hopeless(&self) -> bool {
        let boxes = self.seat.boxes();
        boxes.iter().any(|(_, mail)| mail.is_hopeless())
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.lookout.leave(&self.seat);
    }
}
