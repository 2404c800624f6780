//! Handling of the tasks' reports by the dispatcher.

use schemas::WebhookId;
use tokio::time::Instant;

use super::disable::{Reason, disable};
use super::dispatcher::Dispatcher;
use super::refill;
use super::replay::Replayed;
use super::scheduler::QueueKey;
use super::sender::Progress;
use super::tasks::Report;
use crate::leases::partition_of;

/// Reports handled before queues are checked again.
const REPORTS: usize = 256;

impl Dispatcher {
    pub(super) fn take_reports(&mut self, first: Report) {
        let mut next = Some(first);
        for _ in 0..REPORTS {
            let Some(report) = next else { break };
            self.take_report(report);
            next = self.reports.try_recv().ok();
        }
        if let Some(report) = next {
            self.take_report(report);
        }
    }

    fn take_report(&mut self, report: Report) {
        match report {
            Report::Progress(key, sequence, progress) => {
                self.take_progress(&key, sequence, progress);
            }
            Report::Refilled(key, found) => self.take_refill(&key, found),
            Report::Replayed(key, replayed) => self.take_replayed(&key, replayed),
            Report::TakenOver(round, taken) => self.serve(round, taken),
            Report::RetriesLoaded(round, waiting) => self.take_waiting(round, waiting),
            Report::GaveUp(number) => _ = self.state.giving_up.remove(&number),
            Report::AttemptsEnd(end) => self.state.take_end(end),
        }
    }

    fn take_refill(&mut self, key: &QueueKey, found: Option<refill::Found>) {
        let Some(slot) = self.state.scheduler.touch_exactly(key) else {
            return;
        };
        let Some((refill, payloads)) = found else {
            return slot.queue.refill_failed();
        };
        slot.queue.refill(&refill);
        for payload in payloads {
            self.state.payload_cache.put(payload, Instant::now());
        }
    }

    fn take_replayed(&mut self, key: &QueueKey, replayed: Option<Replayed>) {
        let slot = self.state.scheduler.touch_exactly(key);
        let Some(replayed) = replayed else {
            if let Some(slot) = slot {
                slot.queue.requests().end(None);
            }
            return;
        };
        let records = || replayed.waiting.iter().map(|(_, retry)| retry.recorded);
        let Some(slot) = slot else {
            return self.end_if_stopped(&key.webhook, records().collect());
        };
        let through = records().max().unwrap_or_default();
        for (sequence, retry) in &replayed.waiting {
            slot.queue.remember(*sequence, *retry);
        }
        slot.queue.requests().end(Some(replayed.place));
        self.state.attempts_through = self.state.attempts_through.max(through);
        for payload in replayed.payloads {
            self.state.payload_cache.put(payload, Instant::now());
        }
    }

    fn take_progress(&mut self, key: &QueueKey, sequence: u64, progress: Progress) {
        let now = self.now();
        let slot = self.state.scheduler.touch_exactly(key);
        match progress {
            Progress::Answered(answer) => {
                self.state.sending = self.state.sending.saturating_sub(1);
                if let Some(slot) = slot {
                    slot.queue.answered(answer, now);
                }
            }
            Progress::Recorded {
                retry,
                recorded,
                gone,
            } => {
                let through = recorded.unwrap_or_default();
                self.state.attempts_through = self.state.attempts_through.max(through);
                let Some(slot) = slot else {
                    let left = retry.map(|retry| retry.recorded);
                    return self.end_if_stopped(&key.webhook, left.into_iter().collect());
                };
                slot.queue.recorded(sequence, retry);
                let hopeless = slot.queue.is_hopeless(now, self.settings.disable_after);
                let since = slot.queue.failing_since().filter(|_| hopeless);
                let why = gone
                    .then_some(Reason::Gone)
                    .or(since.map(Reason::OnlyFailures));
                if let Some(why) = why.filter(|_| !slot.disabling) {
                    slot.disabling = true;
                    self.disable(&key.webhook, why);
                }
            }
        }
    }

    fn disable(&self, webhook: &WebhookId, why: Reason) {
        let Some(endpoint) = self.directory.get(webhook).cloned() else {
            return;
        };
        let (log, now) = (self.sender.log.clone(), self.now());
        self.tasks.spawn(async move {
            disable(&log, &endpoint.org, &endpoint.id, why, now).await;
        });
    }

    /// Ends the remaining deliveries of an endpoint that gets nothing any more. An endpoint that
    /// merely moved to another owner is that owner's concern.
    pub(super) fn end_if_stopped(&mut self, webhook: &WebhookId, records: Vec<u64>) {
        let partition = partition_of(webhook.as_str());
        let enabled = self.directory.get(webhook).and_then(|e| e.enabled_since());
        if enabled.is_none() && self.state.partitions.serves(partition) {
            self.give_up(partition, records);
        }
    }
}
