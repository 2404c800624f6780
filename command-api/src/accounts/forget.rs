//! Forgetting a person: what cannot be undone, in an order that may break off anywhere and be gone
//! through again.

use std::time::Duration;

use domain::account::{Account, Email};
use event_log::{Expected, Owner, Position};
use schemas::{AccountId, Event, Log, StreamId, account};

use super::stored::{Claim, phone_given_back};
use super::tier::NoAccount;
use crate::commands::Plan;
use crate::{CommandError, Commands, Done, LogError, Origin, organizations};

/// By then every process refuses the person's tokens, and nothing more is sealed for them.
const SETTLING: Duration = Duration::from_secs(1);

/// Why nobody was forgotten.
pub type ForgetError = CommandError<NoAccount>;

/// What was forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Forgotten {
    /// The account.
    pub account: AccountId,
    /// Events that were erased from the log.
    pub events: u64,
    /// Where the log says that nothing is left to be done.
    pub position: Position,
}

/// The account that an address belongs to.
pub async fn holder(commands: &Commands, email: &Email) -> Result<Option<AccountId>, LogError> {
    Ok(Claim::of_email(commands, email).await?.holder())
}

/// Forgets the person with this address: tokens end, the key of all that was sealed for them is
/// destroyed, their positions are erased, and what they held can be taken by others. Read models
/// follow the event.
pub async fn forget(
    commands: &Commands,
    origin: &Origin,
    email: &Email,
) -> Result<Forgotten, ForgetError> {
    let address = Claim::of_email(commands, email).await?;
    let id = address.holder().ok_or(CommandError::Refused(NoAccount))?;
    say(commands, origin, id).await?;
    organizations::forget_person(commands, origin, id).await?;
    organizations::forget_address(commands, origin, email).await?;
    tokio::time::sleep(SETTLING).await;
    let events = destroy(commands, id).await?;
    // Given back last: until then the address finds the account for another try.
    let position = match address.given_back_by(commands, origin, id) {
        Some(given_back) => commands.log().commit(given_back.into()).await?,
        None => commands.log().end(Log::Events).await?,
    };
    Ok(Forgotten {
        account: id,
        events,
        position,
    })
}

/// Writes down that the account is forgotten, and gives back its number while that can be read.
async fn say(commands: &Commands, origin: &Origin, id: AccountId) -> Result<(), ForgetError> {
    let plan = || async {
        let events = commands.log().load(&StreamId::of_account(id)).await?;
        let account = Account::fold(&events).ok_or(CommandError::Refused(NoAccount))?;
        if !account.is_open() {
            let position = commands.log().position(Log::Events, account.last_sequence);
            return Ok(Plan::Stands(Done {
                answer: (),
                position,
            }));
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

async fn destroy(commands: &Commands, id: AccountId) -> Result<u64, LogError> {
    let log = commands.log();
    log.vault().forget(&Owner::Account(id)).await?;
    Ok(log.erase(&StreamId::of_track(id)).await?)
}
