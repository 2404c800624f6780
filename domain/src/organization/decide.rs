//! Decides commands on an organization's people.

use chrono::{DateTime, Utc};
use schemas::organization::{
    InviteAccepted, InviteWithdrawn, MemberAdded, MemberInvited, MemberRemoved,
};
use schemas::{AccountId, Event, InviteId};

use super::{Member, Organization};

/// Why a command on the people of an organization is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The caller no longer belongs to the staff.
    #[error("you are no longer an owner of this organization")]
    NotStaff,
    /// The invited person already belongs to the staff.
    #[error("this person is already an owner of the organization")]
    Member,
    /// There is nobody to remove.
    #[error("nobody with this address is an owner of the organization or invited")]
    Nobody,
    /// Nobody would be left to add others.
    #[error("the last owner of an organization cannot be removed; invite another one first")]
    LastOwner,
    /// The maximum number is reached.
    #[error(
        "the organization already has {0} people and open invitations, which is the maximum; \
         remove some first"
    )]
    Full(usize),
}

/// Why a link cannot be used to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotJoin {
    /// It never worked, was used, was withdrawn, was replaced by another one, or its inviter was
    /// removed. A guess need not reveal which.
    #[error("this link is not valid any more; ask for a new invitation")]
    Unknown,
    /// It used to be valid.
    #[error("this link has expired; ask for a new invitation")]
    Expired,
    /// It was meant for somebody else.
    #[error("this invitation is for another e-mail address; sign in with the invited one")]
    OtherAddress,
    /// An account may not be taken over by a link that others have had access to.
    #[error("an account with this e-mail address already exists: sign in to accept the invitation")]
    AccountExists,
}

/// Invites on behalf of a staff member or of the operator (`None`); an earlier invite of the same
/// address ends. `holder` has the address now, `most` is the maximum of people and open invites.
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

/// Withdraws an invite.
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
    /// Somebody who has proved that this account is theirs.
    Account(AccountId),
    /// Somebody who opens this account by joining.
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

/// Joins with a code, as the person with the invited address: `holder` has it now. A person who
/// already belongs to the staff still uses the invite up.
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

/// Removes somebody, or lets them leave; the open invites that they made end too. The `forgotten`
/// among its people do not count as owners.
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

/// Removes a person who is being forgotten, even the last owner: the right to be forgotten takes
/// precedence, and the operator can invite another owner.
pub fn forget(organization: &Organization, account_id: AccountId) -> Option<Event> {
    organization
        .has(account_id)
        .then(|| removed(account_id, None))
}

fn removed(account_id: AccountId, by: Option<AccountId>) -> Event {
    Event::OrganizationMemberRemoved(MemberRemoved { account_id, by })
}

/// The log decides, not what a session knew when its request began.
fn check_actor(organization: &Organization, by: Option<AccountId>) -> Result<(), Refusal> {
    match by {
        Some(actor) if !organization.has(actor) => Err(Refusal::NotStaff),
        _ => Ok(()),
    }
}
