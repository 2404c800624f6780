//! Decides commands on a call for help.

use chrono::{DateTime, TimeDelta, Utc};
use schemas::sos::{Answered, Triggered};
use schemas::{AccountId, Event, Sealed, SosId};

/// The current state of a call for help.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The call as triggered.
    pub triggered: Triggered,
    acknowledged_by: Vec<AccountId>,
    resolved: bool,
}

impl Call {
    /// What an event makes of a call, or of nothing; `None` if there is no call yet. Of an answer,
    /// which repeats the call, only who gave it is kept.
    pub fn after(call: Option<Self>, event: &Event) -> Option<Self> {
        match (event, call) {
            (Event::SosTriggered(triggered), None) => Some(Self {
                triggered: triggered.clone(),
                acknowledged_by: Vec::new(),
                resolved: false,
            }),
            (Event::SosAcknowledged(answered), Some(mut call)) => {
                call.acknowledged_by.push(answered.by);
                Some(call)
            }
            (Event::SosResolved(_), Some(call)) => Some(Self {
                resolved: true,
                ..call
            }),
            (_, call) => call,
        }
    }
}

/// A reply to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The call has been seen.
    Acknowledge,
    /// The danger has passed.
    Resolve,
}

/// Who replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Somebody who was alerted, or the caller.
    Person(AccountId),
    /// A staff member of an alerted organization in whose circles the person who called still is.
    Staff(AccountId),
}

impl By {
    const fn account(self) -> AccountId {
        match self {
            Self::Person(account) | Self::Staff(account) => account,
        }
    }

    fn is_alerted(self, call: &Triggered) -> bool {
        match self {
            Self::Person(account) => call.audience.contains(&account),
            Self::Staff(_) => true,
        }
    }
}

/// The person who answers was not alerted, and need not learn that the call exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SOS not found")]
pub struct NotConcerned;

/// Calls for help. A call is never too old to alert somebody: it is only marked as late. One from
/// a fast clock counts as made now.
pub fn trigger(
    sos_id: SosId,
    user_id: AccountId,
    audience: Vec<AccountId>,
    recorded_at: Option<DateTime<Utc>>,
    sealed: Sealed,
    now: DateTime<Utc>,
    late_after: TimeDelta,
) -> Triggered {
    let recorded_at = recorded_at.map_or(now, |at| at.min(now));
    Triggered {
        sos_id,
        user_id,
        audience,
        late: now - recorded_at > late_after,
        recorded_at,
        sealed,
    }
}

/// Answers a call; no event if that reply was already given or the call has ended.
pub fn answer(call: Option<&Call>, by: By, reply: Reply) -> Result<Option<Event>, NotConcerned> {
    let call = call.ok_or(NotConcerned)?;
    let alerted = by.is_alerted(&call.triggered);
    let by = by.account();
    let said = match reply {
        Reply::Acknowledge if alerted => call.acknowledged_by.contains(&by),
        Reply::Resolve if alerted || by == call.triggered.user_id => false,
        _ => return Err(NotConcerned),
    };
    if said || call.resolved {
        return Ok(None);
    }
    let triggered = call.triggered.clone();
    let answered = Answered {
        sos_id: triggered.sos_id,
        user_id: triggered.user_id,
        by,
        audience: triggered.audience,
        late: triggered.late,
        recorded_at: triggered.recorded_at,
        sealed: triggered.sealed,
    };
    Ok(Some(match reply {
        Reply::Acknowledge => Event::SosAcknowledged(answered),
        Reply::Resolve => Event::SosResolved(answered),
    }))
}
