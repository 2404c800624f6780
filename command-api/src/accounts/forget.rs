//! Forgetting a person: irreversible steps, in an order that may be interrupted anywhere and run
//! again.

use std::time::Duration;

use domain::account::{Account, Email};
use event_log::{Binding, Expected, Owner, Position};
use schemas::{AccountId, Event, Log, StreamId, account};

use super::forget_runs::forget_runs;
use super::stored::{Claim, phone_given_back, unseal};
use super::tier::NoAccount;
use crate::commands::Plan;
use crate::{CommandError, Commands, Done, LogError, Origin, organizations};

/// After this time every process refuses the person's tokens, and nothing more is sealed for them.
const SETTLING: Duration = Duration::from_secs(1);

/// Why the person was not forgotten.
pub type ForgetError = CommandError<NoAccount>;

/// The result of forgetting a person.
#[derive(Clone, Copy, Debug)]
pub struct Forgotten {
    /// The account.
    pub account: AccountId,
    /// Events that were erased from the log.
    pub events: u64,
    /// The position at which the log says that nothing is left to do.
    pub position: Position,
}

/// The account that an address belongs to.
pub async fn holder(commands: &Commands, email: &Email) -> Result<Option<AccountId>, LogError> {
    Ok(Claim::of_email(commands, email).await?.holder())
}

/// Forgets a person: tokens end, what they held can be claimed by others, their positions and the
/// runs that hold their data are erased, and the key of everything sealed for them is destroyed.
/// Read models follow the events. If it is interrupted, [`super::Unfinished`] continues.
pub async fn forget(
    commands: &Commands,
    origin: &Origin,
    id: AccountId,
) -> Result<Forgotten, ForgetError> {
    say(commands, origin, id).await?;
    finish(commands, origin, id).await
}

/// Does what follows from the event, for as long as the person's key exists: it is needed to read
/// their address, and is destroyed last.
pub(super) async fn finish(
    commands: &Commands,
    origin: &Origin,
    id: AccountId,
) -> Result<Forgotten, ForgetError> {
    let log = commands.log();
    let Some(email) = address_of(commands, id).await? else {
        return Ok(Forgotten {
            account: id,
            events: 0,
            position: log.end(Log::Events).await?,
        });
    };
    organizations::forget_person(commands, origin, id).await?;
    if Claim::of_email(commands, &email).await?.holder() == Some(id) {
        organizations::forget_address(commands, origin, &email).await?;
    }
    tokio::time::sleep(SETTLING).await;
    let positions = log.erase(&StreamId::of_track(id)).await?;
    let of_runs = forget_runs(commands, origin, id).await?;
    let position = give_back(commands, origin, id, &email).await?;
    log.vault().forget(&Owner::Account(id)).await?;
    Ok(Forgotten {
        account: id,
        events: positions + of_runs,
        position,
    })
}

/// The person's address; `None` once the key needed to read it is destroyed.
async fn address_of(commands: &Commands, id: AccountId) -> Result<Option<Email>, LogError> {
    let events = commands.log().load(&StreamId::of_account(id)).await?;
    let Some(account) = Account::fold(&events) else {
        return Ok(None);
    };
    let email = unseal(commands, &Binding::Email(id), &account.email).await?;
    Ok(email.and_then(|email| Email::parse(&email).ok()))
}

/// Releases the address, unless another account holds it by now. Returns the position from which on
/// it is free.
async fn give_back(
    commands: &Commands,
    origin: &Origin,
    id: AccountId,
    email: &Email,
) -> Result<Position, ForgetError> {
    let plan = async || {
        let address = Claim::of_email(commands, email).await?;
        Ok(match address.given_back_by(commands, origin, id) {
            Some(given_back) => Plan::Write {
                answer: (),
                holder: id.to_string(),
                writes: vec![given_back],
            },
            None => Plan::Nothing {
                done: Done {
                    answer: (),
                    position: commands.log().end(Log::Events).await?,
                },
                holder: Some(id.to_string()),
            },
        })
    };
    Ok(commands.execute_plan(plan).await?.position)
}

/// Records that the account is forgotten, and releases its number while that can be read.
async fn say(commands: &Commands, origin: &Origin, id: AccountId) -> Result<(), ForgetError> {
    let plan = || async {
        let events = commands.log().load(&StreamId::of_account(id)).await?;
        let account = Account::fold(&events).ok_or(CommandError::Refused(NoAccount))?;
        if !account.is_open() {
            let position = commands.log().position(Log::Events, account.last_sequence);
            return Ok(Plan::Nothing {
                done: Done {
                    answer: (),
                    position,
                },
                holder: Some(id.to_string()),
            });
        }
        let forgotten = vec![Event::AccountForgotten(account::Forgotten {
            account_id: id,
        })];
        let expected = Expected::At(account.last_sequence);
        let stream = StreamId::of_account(id);
        let mut writes = vec![commands.write(origin, commands.now(), stream, expected, forgotten)];
        writes.extend(phone_given_back(commands, origin, &account).await?);
        Ok(Plan::Write {
            answer: (),
            holder: id.to_string(),
            writes,
        })
    };
    commands.carry_out(origin, plan).await.map(drop)
}
