//! What a command on an organization's people leads to.

use chrono::{DateTime, Utc};
use schemas::organization::{
    InviteAccepted, InviteWithdrawn, MemberAdded, MemberInvited, MemberRemoved,
};
use schemas::{AccountId, Event, InviteId};

use super::{Member, Organization};

/// Why the people of an organization stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Whoever asks belongs to the staff no more.
    #[error("you are no longer an owner of this organization")]
    NotStaff,
    /// There is nobody to be invited.
    #[error("this person is already an owner of the organization")]
    Member,
    /// There is nobody to be removed.
    #[error("nobody with this address is an owner of the organization or invited")]
    Nobody,
    /// Nobody could add anybody afterwards.
    #[error("the last owner of an organization cannot be removed; invite another one first")]
    LastOwner,
    /// There are as many as there may be.
    #[error(
        "the organization already has {0} people and open invitations, which is the maximum; \
         remove some first"
    )]
    Full(usize),
}

/// Why nobody joins with a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotJoin {
    /// It never worked, was used, was taken back, or another one followed it. Which of these it
    /// was, a guess need not tell.
    #[error("this link is not valid any more; ask for a new invitation")]
    Unknown,
    /// It was good once.
    #[error("this link has expired; ask for a new invitation")]
    Expired,
    /// It was meant for somebody else.
    #[error("this invitation is for another e-mail address; sign in with the invited one")]
    OtherAddress,
    /// An account may not be taken over by a link that others have had in hand.
    #[error("an account with this e-mail address already exists: sign in to accept the invitation")]
    AccountExists,
}

/// Invites, in the name of one of the staff or of the operator (`None`); an earlier invite of the
/// same address ends. `holder` has the address now, `most` is how many people and open invites
/// there may be.
pub fn invite(
    organization: &Organization,
    invited: MemberInvited,
    holder: Option<AccountId>,
    most: usize,
    now: DateTime<Utc>,
) -> Result<Event, Refusal> {
    check_actor(organization, invited.by)?;
    if holder.is_some_and(|holder| organization.has(holder)) {
        return Err(Refusal::Member);
    }
    let others = organization.invites().iter();
    let others = others.filter(|open| open.works(now) && open.email_hash != invited.email_hash);
    if organization.members().len() + others.count() >= most {
        return Err(Refusal::Full(most));
    }
    Ok(Event::OrganizationMemberInvited(invited))
}

/// Takes an invite back.
pub fn withdraw(
    organization: &Organization,
    invite_id: &InviteId,
    by: Option<AccountId>,
) -> Result<Event, Refusal> {
    check_actor(organization, by)?;
    let mut invites = organization.invites().iter();
    let open = invites.find(|invite| invite.id == *invite_id);
    let invite_id = open.ok_or(Refusal::Nobody)?.id.clone();
    Ok(Event::OrganizationInviteWithdrawn(InviteWithdrawn {
        invite_id,
        by,
    }))
}

/// Who joins with a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// Somebody who has shown that this account is theirs.
    Account(AccountId),
    /// Somebody who opens this account along with it.
    New(AccountId),
}

impl Joining {
    /// The account that joins.
    pub const fn account(self) -> AccountId {
        match self {
            Self::Account(account) | Self::New(account) => account,
        }
    }
}

/// Joins with a code, as whoever has the invited address: `holder` has it now. Whoever belongs to
/// the staff already uses the invite up all the same.
pub fn accept(
    organization: &Organization,
    code_hash: &str,
    joining: Joining,
    holder: Option<AccountId>,
    now: DateTime<Utc>,
) -> Result<Vec<Event>, CannotJoin> {
    let invite = organization.invite_by_code(code_hash);
    let invite = invite.ok_or(CannotJoin::Unknown)?;
    if !invite.works(now) {
        return Err(CannotJoin::Expired);
    }
    match (joining, holder) {
        (Joining::Account(account), Some(holder)) if account == holder => {}
        (Joining::New(_), None) => {}
        (Joining::Account(_), _) => return Err(CannotJoin::OtherAddress),
        (Joining::New(_), Some(_)) => return Err(CannotJoin::AccountExists),
    }
    let account_id = joining.account();
    let accepted = Event::OrganizationInviteAccepted(InviteAccepted {
        invite_id: invite.id.clone(),
        account_id,
    });
    let added = Event::OrganizationMemberAdded(MemberAdded {
        account_id,
        role: invite.role,
    });
    let joins = !organization.has(account_id);
    let events = [Some(accepted), joins.then_some(added)];
    Ok(events.into_iter().flatten().collect())
}

/// Removes somebody, or lets them leave. The `forgotten` among its people are nobody's owners.
pub fn remove(
    organization: &Organization,
    account_id: AccountId,
    by: Option<AccountId>,
    forgotten: &[AccountId],
) -> Result<Event, Refusal> {
    check_actor(organization, by)?;
    if !organization.has(account_id) {
        return Err(Refusal::Nobody);
    }
    let owns = |member: &&Member| {
        member.account_id != account_id && !forgotten.contains(&member.account_id)
    };
    if !organization.members().iter().any(|member| owns(&member)) {
        return Err(Refusal::LastOwner);
    }
    Ok(removed(account_id, by))
}

/// Removes a person who is being forgotten, be it the last owner: a person's right to be forgotten
/// goes before, and the operator can invite another owner.
pub fn forget(organization: &Organization, account_id: AccountId) -> Option<Event> {
    organization
        .has(account_id)
        .then(|| removed(account_id, None))
}

fn removed(account_id: AccountId, by: Option<AccountId>) -> Event {
    Event::OrganizationMemberRemoved(MemberRemoved { account_id, by })
}

/// What stands in the log decides, not what a session knew when its request began.
fn check_actor(organization: &Organization, by: Option<AccountId>) -> Result<(), Refusal> {
    match by {
        Some(actor) if !organization.has(actor) => Err(Refusal::NotStaff),
        _ => Ok(()),
    }
}
