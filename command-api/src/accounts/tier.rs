//! The tier of an account, which the operator sets.

use domain::account::{Account, Email};
use schemas::account::{Tier, TierSet};
use schemas::{AccountId, Event, StreamId};

use super::stored::Claim;
use crate::commands::{Decision, Past};
use crate::{CommandError, Commands, Done, Origin};

/// There is no account with this e-mail address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no account has this e-mail address")]
pub struct NoAccount;

/// The hourly limits of an account from now on.
#[derive(Clone, Copy, Debug)]
pub struct Tiered {
    /// The tier.
    pub tier: Tier,
    /// Requests in place of the tier's own number.
    pub requests: Option<u32>,
    /// Positions in place of the tier's own number.
    pub locations: Option<u32>,
}

/// Moves an account to a tier.
pub async fn set_tier(
    commands: &Commands,
    origin: &Origin,
    email: &Email,
    tiered: Tiered,
) -> Result<Done<AccountId>, CommandError<NoAccount>> {
    let claim = Claim::of_email(commands, email).await?;
    let id = claim.holder().ok_or(CommandError::Refused(NoAccount))?;
    let stream = StreamId::of_account(id);
    let setting = commands.execute(origin, &stream, Past::Whole, |events, _| {
        let account = Account::fold(events).filter(Account::is_open);
        let account = account.ok_or(NoAccount)?;
        let set = TierSet {
            account_id: account.id,
            tier: tiered.tier,
            requests: tiered.requests,
            locations: tiered.locations,
        };
        let changes = account.tier.as_ref() != Some(&set);
        let event = changes.then(|| Event::AccountTierSet(set));
        Ok(Decision::new(account.id, event))
    });
    setting.await
}
