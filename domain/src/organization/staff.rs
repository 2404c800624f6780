//! An organization with its people, folded from its events.

use chrono::{DateTime, Utc};
use schemas::organization::{MemberInvited, Role};
use schemas::{AccountId, Event, InviteId, OrgId, Recorded, Sealed};

/// An existing organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// The organization.
    pub id: OrgId,
    /// Its name as people read it.
    pub name: String,
    members: Vec<Member>,
    invites: Vec<Invite>,
}

/// A person of the staff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub account_id: AccountId,
    /// Their role.
    pub role: Role,
    /// When they joined.
    pub since: DateTime<Utc>,
}

/// A link by which the person with an address may join, unless it was used, withdrawn or replaced
/// by another, or its inviter was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invite {
    /// The invite.
    pub id: InviteId,
    /// The account that the address belonged to, or else the one that may be opened with the link.
    pub account_id: AccountId,
    /// The address, sealed under that account.
    pub email: Sealed,
    /// The keyed hash of the organization and the address.
    pub email_hash: String,
    /// The keyed hash of the code in the link.
    pub code_hash: String,
    /// The role of the person.
    pub role: Role,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
    /// The person of the staff who invited; `None` where it was the operator.
    pub by: Option<AccountId>,
}

impl Invite {
    /// Whether it can still be accepted.
    pub fn works(&self, now: DateTime<Utc>) -> bool {
        now < self.expires_at
    }
}

impl From<&MemberInvited> for Invite {
    fn from(invited: &MemberInvited) -> Self {
        Self {
            id: invited.invite_id.clone(),
            account_id: invited.account_id,
            email: invited.email.clone(),
            email_hash: invited.email_hash.clone(),
            code_hash: invited.code_hash.clone(),
            role: invited.role,
            expires_at: invited.expires_at,
            by: invited.by,
        }
    }
}

impl Organization {
    /// Folds an organization from its own events; `None` if there is none.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Recorded>) -> Option<Self> {
        let mut organization: Option<Self> = None;
        for recorded in events {
            match (&recorded.event, &mut organization) {
                (Event::OrganizationCreated(created), None) => {
                    organization = Some(Self {
                        id: created.org_id.clone(),
                        name: created.name.clone(),
                        members: Vec::new(),
                        invites: Vec::new(),
                    });
                }
                (_, Some(organization)) => organization.apply(recorded),
                (_, None) => {}
            }
        }
        organization
    }

    fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::OrganizationMemberAdded(added) if !self.has(added.account_id) => {
                self.members.push(Member {
                    account_id: added.account_id,
                    role: added.role,
                    since: recorded.time,
                });
            }
            Event::OrganizationMemberRemoved(removed) => {
                let gone = removed.account_id;
                self.members.retain(|member| member.account_id != gone);
                // Otherwise they could come back by a link that they made for themselves.
                self.invites.retain(|invite| invite.by != Some(gone));
            }
            Event::OrganizationMemberInvited(invited) => {
                let other = |invite: &Invite| invite.email_hash != invited.email_hash;
                self.invites.retain(other);
                self.invites.push(Invite::from(invited));
            }
            Event::OrganizationInviteAccepted(accepted) => self.end(&accepted.invite_id),
            Event::OrganizationInviteWithdrawn(withdrawn) => self.end(&withdrawn.invite_id),
            _ => {}
        }
    }

    fn end(&mut self, invite: &InviteId) {
        self.invites.retain(|open| open.id != *invite);
    }

    /// Whether somebody belongs to the staff.
    pub fn has(&self, account: AccountId) -> bool {
        self.members
            .iter()
            .any(|member| member.account_id == account)
    }

    /// Its people, in the order in which they joined.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The invites that were not used or withdrawn and whose inviter was not removed, expired ones
    /// included.
    pub fn invites(&self) -> &[Invite] {
        &self.invites
    }

    /// Those of them that a person made: they end when the person is removed or leaves.
    pub fn invites_by(&self, account: AccountId) -> impl Iterator<Item = &Invite> {
        let invites = self.invites.iter();
        invites.filter(move |invite| invite.by == Some(account))
    }

    /// The invite whose code has this hash.
    pub fn invite_by_code(&self, code_hash: &str) -> Option<&Invite> {
        let mut invites = self.invites.iter();
        invites.find(|invite| invite.code_hash == code_hash)
    }

    /// The invite of an address, by the keyed hash of the organization and the address.
    pub fn invite_of(&self, email_hash: &str) -> Option<&Invite> {
        let mut invites = self.invites.iter();
        invites.find(|invite| invite.email_hash == email_hash)
    }
}
