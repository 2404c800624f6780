//! The receipt of an `Idempotency-Key`: a claim that is written with the command's own events.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use event_log::{Expected, Position, Write};
use schemas::{Event, Receipt, Recorded, StreamId, claim::Claimed};

use super::{Commands, Done, Origin, behind};
use crate::CommandError;

/// A command with an `Idempotency-Key` that was carried out before.
#[derive(Clone, Debug)]
pub(crate) struct Repeated {
    /// What the first request made.
    pub(crate) holder: String,
    /// The position of the first one.
    pub(crate) position: Position,
    /// The time of the first one.
    pub(crate) time: DateTime<Utc>,
}

impl Repeated {
    /// Returns the first answer, found from what the first request made.
    pub(crate) fn done<T>(self, answer: impl FnOnce(String) -> T) -> Done<T> {
        Done {
            answer: answer(self.holder),
            position: self.position,
        }
    }
}

/// Where the claim of an `Idempotency-Key` goes.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    stream: StreamId,
    expected: Expected,
}

/// Earlier use of an `Idempotency-Key`.
pub(crate) enum Earlier {
    /// None, or none that still counts; where to claim the key, if there is one.
    None(Option<Slot>),
    Repeat(Repeated),
}

impl Commands {
    /// How long receipts are valid.
    pub(crate) fn receipts_last(&self) -> Duration {
        self.receipts_last
    }

    /// The time since which receipts are still valid.
    pub(crate) fn receipts_since(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let last = TimeDelta::from_std(self.receipts_last).ok();
        let since = last.and_then(|last| now.checked_sub_signed(last));
        since.unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// Whether a receipt of that time is still valid.
    pub(crate) fn is_fresh(&self, written: DateTime<Utc>) -> bool {
        let age = self.now() - written;
        age.to_std().is_ok_and(|age| age < self.receipts_last) || age < TimeDelta::zero()
    }

    /// Looks up earlier use of the request's `Idempotency-Key`.
    pub(crate) async fn earlier<R>(&self, origin: &Origin) -> Result<Earlier, CommandError<R>> {
        let Some(receipt) = &origin.receipt else {
            return Ok(Earlier::None(None));
        };
        let stream = self.log.claim("idempotency key", &receipt.key);
        let last = self.log.last(&stream).await?;
        if let Some(repeated) = self.repeated(receipt, last.as_ref())? {
            return Ok(Earlier::Repeat(repeated));
        }
        let expected = behind(last.as_slice());
        Ok(Earlier::None(Some(Slot { stream, expected })))
    }

    /// The write that claims the request's `Idempotency-Key` for `holder`; the last of its commit.
    pub(crate) fn claiming(
        &self,
        origin: &Origin,
        slot: Option<Slot>,
        holder: String,
    ) -> Option<Write> {
        let Slot { stream, expected } = slot?;
        let claimed = Event::ClaimClaimed(Claimed { holder });
        Some(self.write(origin, self.now(), stream, expected, vec![claimed]))
    }

    /// Returns what was made under a receipt before, if its key was used.
    fn repeated<R>(
        &self,
        receipt: &Receipt,
        claimed: Option<&Recorded>,
    ) -> Result<Option<Repeated>, CommandError<R>> {
        let Some(claimed) = claimed.filter(|claimed| self.is_fresh(claimed.time)) else {
            return Ok(None);
        };
        let Event::ClaimClaimed(Claimed { holder }) = &claimed.event else {
            return Ok(None);
        };
        if claimed.receipt.as_ref() != Some(receipt) {
            return Err(CommandError::OtherRequest);
        }
        let holder = holder.clone();
        let log = claimed.stream.aggregate.log();
        let position = self.log.position(log, claimed.sequence);
        Ok(Some(Repeated {
            holder,
            position,
            time: claimed.time,
        }))
    }
}
