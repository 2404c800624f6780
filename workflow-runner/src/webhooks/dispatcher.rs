//! Follows the log, gives every wanted event to its endpoints' lanes, and starts what is due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use event_log::{Batch, TailError};
use schemas::{OrgId, Recorded, Visibility};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use super::checkpoint::{Checkpoint, Checkpoints};
use super::courier::{Courier, Job, Progress};
use super::directory::{Change, Directory};
use super::feed::Feed;
use super::lane::Lane;
use super::parcel::{Parcel, Shelf};
use super::places::Places;
use super::refill;
use super::requests::Place;
use super::roster::{LaneKey, Roster, Wish};
use super::settings::WebhookSettings;
use super::source::{News, Source};
use super::takeover::{TakenOver, Waiting};
use super::tasks::Tasks;
use super::tenure::Tenures;
use super::walk::{Walked, Walker};
use super::work::Bounds;
use crate::leases::{Leases, Owned};

/// How many deliveries of all endpoints may wait for a retry before failing ones are held sooner.
pub(super) const CROWD: usize = 200_000;
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
const TAIL_ATTEMPTS: u32 = 3;
const TAIL_AGAIN: Duration = Duration::from_secs(1);

/// What tasks tell the dispatcher.
#[derive(Debug)]
pub(super) enum Report {
    /// An attempt to deliver the event of this sequence gets on.
    Progress(LaneKey, u64, Progress),
    /// A lane's wanted events were read from the log, or could not be.
    Refilled(LaneKey, Option<refill::Found>),
    /// An endpoint's requests were carried on, or could not be.
    Walked(LaneKey, Option<Walked>),
    /// The checkpoints of a round were read.
    TakenOver(u64, TakenOver),
    /// The deliveries that wait to be tried again were read for a round.
    Recalled(u64, Vec<Waiting>),
    /// Deliveries of a lane that is gone were ended.
    GaveUp(u64),
    /// Checkpoints were written, or could not be.
    Written(Vec<(u16, Checkpoint)>),
}

/// Deliveries that are being ended, and the oldest of their last attempts.
pub(super) struct GivingUp {
    pub(super) partition: u16,
    pub(super) oldest: u64,
}

/// The dispatcher. All its state is its own; tasks only report to it.
pub(super) struct Dispatcher {
    pub(super) courier: Arc<Courier>,
    pub(super) settings: WebhookSettings,
    pub(super) leases: Leases,
    pub(super) owned: watch::Receiver<Owned>,
    pub(super) checkpoints: Checkpoints,
    pub(super) directory: Directory,
    pub(super) source: Source,
    /// The sequence up to which events were given to lanes.
    pub(super) cursor: u64,
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
    pub(super) tasks: Tasks,
    /// For requests of all endpoints, shared with the other dispatcher.
    pub(super) places: Places,
    pub(super) state: State,
}

/// What the dispatcher knows of its work.
#[derive(Default)]
pub(super) struct State {
    pub(super) roster: Roster,
    pub(super) tenures: Tenures,
    /// The sequence up to which recorded attempts are known.
    pub(super) attempts_through: u64,
    pub(super) shelf: Shelf,
    /// Requests under way.
    pub(super) sending: usize,
    pub(super) giving_up: HashMap<u64, GivingUp>,
    given_up: u64,
    pub(super) is_writing: bool,
    tail_failures: u32,
}

impl Dispatcher {
    /// Delivers until `shutdown`.
    ///
    /// # Errors
    /// Where the log cannot be followed.
    pub(super) async fn run(mut self, shutdown: CancellationToken) -> Result<(), TailError> {
        let mut checkpoint = interval(CHECKPOINT_EVERY);
        checkpoint.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.change_ownership();
        let mut freed = self.places.freed();
        let ended = loop {
            let until_wake = self.until_wake();
            tokio::select! {
                news = self.source.next() => match news {
                    Ok(news) => self.take_news(&news),
                    Err(error) => if let Err(error) = self.endure(error).await {
                        break Err(error);
                    },
                },
                Some(report) = self.reports.recv() => self.take_reports(report),
                Ok(()) = freed.changed() => {}
                Ok(()) = self.owned.changed() => self.change_ownership(),
                () = sleep(until_wake) => self.state.roster.wake(self.now()),
                _ = checkpoint.tick() => self.keep_books(),
                () = shutdown.cancelled() => break Ok(()),
            }
            self.start_what_is_due();
        };
        self.finish().await;
        ended
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.courier.clock.now()
    }

    fn until_wake(&self) -> Duration {
        let wake = self.state.roster.next_wake();
        let left = wake.map(|wake| (wake - self.now()).to_std().unwrap_or_default());
        left.unwrap_or(CHECKPOINT_EVERY)
    }

    async fn endure(&mut self, error: TailError) -> Result<(), TailError> {
        self.state.tail_failures += 1;
        if self.state.tail_failures == TAIL_ATTEMPTS {
            return Err(error);
        }
        tracing::warn!(%error, "Webhooks: waiting for the log");
        sleep(TAIL_AGAIN).await;
        Ok(())
    }

    fn take_news(&mut self, news: &News) {
        self.state.tail_failures = 0;
        match news {
            News::Events(batch) => {
                self.take_batch(batch);
                self.cursor = batch.last_sequence;
            }
            News::Endpoints(batch) => self.take_batch(batch),
            News::Positions(brought) => {
                for (recorded, orgs) in &brought.positions {
                    for org in orgs {
                        self.offer(recorded, org);
                    }
                }
                self.cursor = brought.last_sequence;
            }
        }
    }

    /// Gives events to the lanes that want them.
    fn take_batch(&mut self, batch: &Batch) {
        for recorded in batch.readable("webhooks") {
            if let Some(change) = self.directory.apply(recorded) {
                let since = match self.courier.feed {
                    Feed::Events => recorded.sequence,
                    Feed::Locations => self.cursor,
                };
                self.change_endpoint(change, since);
            }
            let public = recorded.event.visibility() == Visibility::Public;
            if public && self.courier.feed == Feed::Events {
                self.offer(recorded, &recorded.stream.org);
            }
        }
    }

    fn offer(&mut self, recorded: &Recorded, org: &OrgId) {
        let (sequence, name) = (recorded.sequence, recorded.event.name());
        let when = self.courier.feed.when(recorded);
        let interested = self.directory.interested(org, when, &name);
        let mut held = false;
        for endpoint in interested {
            if let Some(slot) = self.state.roster.touch(&endpoint.id) {
                held |= slot.lane.offer(sequence);
            }
        }
        if held && let Some(parcel) = Parcel::plain(&self.courier.log, recorded) {
            self.state.shelf.put(parcel);
        }
    }

    fn change_endpoint(&mut self, change: Change, sequence: u64) {
        match change {
            Change::Enabled(webhook) => {
                let partition = self.leases.partition_of(webhook.as_str());
                if let Some(slot) = self.state.roster.touch(&webhook) {
                    slot.lane.forgive();
                    slot.disabling = false;
                } else if let (Some(endpoint), true) = (
                    self.directory.get(&webhook),
                    self.state.tenures.serves(partition),
                ) {
                    let through = self.directory.through();
                    let lane = Lane::new(self.bounds(), sequence)
                        .with_requests(through, Place::behind(through));
                    let named = (&endpoint.org, &webhook);
                    self.state.roster.insert(named, partition, lane);
                }
            }
            Change::Asked(webhook) => {
                let asked = self.directory.through();
                if let Some(slot) = self.state.roster.touch(&webhook) {
                    slot.lane.requests().ask(asked);
                }
            }
            Change::Stopped(webhook) => {
                if let Some(slot) = self.state.roster.remove(&webhook) {
                    self.give_up(slot.partition, slot.lane.retry_records());
                }
            }
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            concurrency: self.settings.concurrency,
            pending: self.settings.pending,
        }
    }

    /// Ends deliveries that nobody will try again, in the background.
    pub(super) fn give_up(&mut self, partition: u16, records: Vec<u64>) {
        let Some(oldest) = records.iter().min().copied() else {
            return;
        };
        self.state.given_up += 1;
        let number = self.state.given_up;
        let giving_up = GivingUp { partition, oldest };
        self.state.giving_up.insert(number, giving_up);
        self.tasks.give_up(&self.courier, number, records);
    }

    /// Has deliveries queued that an endpoint's owner asked for.
    fn walk(&mut self, key: LaneKey, partition: u16, place: Place) {
        let Some(endpoint) = self.directory.get(&key.webhook).cloned() else {
            return;
        };
        let lane = self.state.roster.touch_exactly(&key);
        let first_attempts = lane.and_then(|slot| slot.lane.cursor());
        let walker = Walker {
            courier: self.courier.clone(),
            endpoint,
            place,
            asked: self.directory.through(),
            first_attempts: first_attempts.unwrap_or(self.cursor),
        };
        let hold = self.leases.hold(partition);
        self.tasks.walk(walker, key, hold);
    }

    fn start_what_is_due(&mut self) {
        loop {
            let now = self.now();
            let (leases, places) = (&self.leases, &self.places);
            let wish = self.state.roster.next(now, |p| leases.holds(p), places);
            let Some(wish) = wish else { return };
            match wish {
                Wish::Refill(key, gap) => {
                    let endpoint = self.directory.get(&key.webhook).cloned();
                    if let Some(endpoint) = endpoint {
                        let reader = refill::Reader {
                            log: self.courier.log.clone(),
                            roll: self.courier.roll.clone(),
                            feed: self.courier.feed,
                            now,
                        };
                        self.tasks.refill(reader, key, endpoint, gap, self.cursor);
                    }
                }
                Wish::Walk(key, partition, place) => self.walk(key, partition, place),
                Wish::Attempt(key, partition, work, place) => {
                    let Some(endpoint) = self.directory.get(&key.webhook).cloned() else {
                        continue;
                    };
                    self.state.sending += 1;
                    let parcel = self.state.shelf.get(work.sequence);
                    let hold = self.leases.hold(partition);
                    let job = Job {
                        endpoint,
                        work,
                        parcel,
                        place,
                    };
                    self.tasks.deliver(&self.courier, key, job, hold);
                }
            }
        }
    }
}
