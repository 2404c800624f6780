//! What a command on a call for help leads to.

use chrono::{DateTime, TimeDelta, Utc};
use schemas::sos::{Answered, Triggered};
use schemas::{AccountId, Event, Sealed, SosId};

/// A call for help as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What was called.
    pub triggered: Triggered,
    acknowledged_by: Vec<AccountId>,
    resolved: bool,
}

impl Call {
    /// The call after its events; `None` where there is none.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Option<Self> {
        events
            .into_iter()
            .fold(None, |call: Option<Self>, event| match (event, call) {
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
            })
    }
}

/// What somebody says to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// That they have seen it.
    Acknowledge,
    /// That the danger has passed.
    Resolve,
}

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Somebody who was alerted, or the caller.
    Person(AccountId),
    /// One of the staff of an organization that was told, and in whose circles the caller still is.
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

/// Whoever answers was not alerted, and need not learn that there is such a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SOS not found")]
pub struct NotConcerned;

/// Calls for help. A call is never too old to alert somebody: it is only said that it is late. One
/// from a clock that runs ahead was meant now.
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

/// Answers a call; without an event where that has been said already, or where the call has ended.
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
