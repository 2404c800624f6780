//! Inviting somebody to an organization's people, by a link that works once.

use chrono::{DateTime, TimeDelta, Utc};
use domain::account::Email;
use domain::organization::{self, Organization, Refusal};
use event_log::{Binding, Write};
use schemas::claim::Claimed;
use schemas::organization::{MemberInvited, Role};
use schemas::{AccountId, Event, InviteId, OrgId};

use super::{address, load, stream};
use crate::commands::{behind, until_written};
use crate::{CommandError, Commands, Done, LogError, Origin, PeopleSettings};

/// Of `[0-9A-Za-z]`: 256 random bits.
const CODE_LENGTH: usize = 43;

/// A newly created invite. The code is not stored.
#[derive(Clone)]
pub struct NewInvite {
    /// The end of the link.
    pub code: String,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
}

impl std::fmt::Debug for NewInvite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewInvite(until {})", self.expires_at)
    }
}

/// The link of an invite, at the address by which people reach Waypost. The part after the `#`
/// stays in the browser: no log and no other page sees it.
pub fn link(base: &str, code: &str) -> String {
    format!("{}/dashboard/invite#{code}", base.trim_end_matches('/'))
}

/// Invites the holder of an address, on behalf of a staff member or of the operator (`None`). An
/// earlier invite of the same address ends.
pub async fn invite(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    email: &Email,
    by: Option<AccountId>,
    settings: &PeopleSettings,
) -> Result<Done<NewInvite>, CommandError<Refusal>> {
    let attempt = || async {
        let past = load(commands, org).await?;
        let organization = Organization::fold(&past).ok_or_else(no_organization)?;
        let holder = address::holder(commands, email).await?;
        let drafting = Draft::new(commands, org, email, holder, by, settings);
        let Draft { invited, code } = drafting.await?;
        let (now, account, expires_at) = (commands.now(), invited.account_id, invited.expires_at);
        let most = settings.people_per_organization;
        let made = organization::invite(&organization, invited, holder, most, now);
        let made = made.map_err(counted)?;
        let mut writes = finding(commands, origin, org, email, &code, account).await?;
        let stream = stream(org);
        writes.push(commands.write(origin, now, stream, behind(&past), vec![made]));
        if let Some(position) = commands.commit(writes).await? {
            drop_ended(commands, &organization, org, email, now).await?;
            let answer = NewInvite { code, expires_at };
            return Ok(Some(Done { answer, position }));
        }
        // No longer of use, unless it is the address' own.
        address::let_go(commands, account).await?;
        Ok(None)
    };
    until_written(attempt).await
}

fn no_organization() -> LogError {
    LogError::Broken("organization not found".to_owned())
}

fn counted(refusal: Refusal) -> CommandError<Refusal> {
    if matches!(refusal, Refusal::Full(_)) {
        metrics::counter!("waypost_people_refused_total").increment(1);
    }
    CommandError::Refused(refusal)
}

/// An invite that is about to be created.
pub(super) struct Draft {
    pub(super) invited: MemberInvited,
    pub(super) code: String,
}

impl Draft {
    pub(super) async fn new(
        commands: &Commands,
        org: &OrgId,
        email: &Email,
        holder: Option<AccountId>,
        by: Option<AccountId>,
        settings: &PeopleSettings,
    ) -> Result<Self, LogError> {
        let code = commands.random.letters(CODE_LENGTH);
        let account_id = address::account_for(commands, holder);
        let invite_id = InviteId::from(commands.random.id());
        let binding = Binding::Invited(account_id, invite_id.to_string());
        let lasts = TimeDelta::from_std(settings.invite).unwrap_or(TimeDelta::MAX);
        let now = commands.now();
        let invited = MemberInvited {
            invite_id,
            account_id,
            email: commands
                .log()
                .vault()
                .seal(&binding, email.as_str())
                .await?,
            email_hash: address::email_hash(commands, org, email),
            code_hash: address::code_hash(commands, &code),
            role: Role::Owner,
            expires_at: now.checked_add_signed(lasts).unwrap_or(now),
            by,
        };
        Ok(Self { invited, code })
    }
}

/// Returns the writes by which a link's code finds its organization, and a forgotten address its
/// invites.
pub(super) async fn finding(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    email: &Email,
    code: &str,
    account: AccountId,
) -> Result<Vec<Write>, LogError> {
    let (log, now) = (commands.log(), commands.now());
    let (by_code, notes) = (
        log.claim(address::CODE, code),
        address::notes(commands, email),
    );
    let free = behind(log.last(&by_code).await?.as_slice());
    let noted = behind(log.last(&notes).await?.as_slice());
    let holder = org.to_string();
    let found = vec![Event::ClaimClaimed(Claimed { holder })];
    let note = vec![address::note(org, account)];
    Ok(vec![
        commands.write(origin, now, by_code, free, found),
        commands.write(origin, now, notes, noted, note),
    ])
}

/// Data sealed for invites that have ended need not be readable any more.
async fn drop_ended(
    commands: &Commands,
    before: &Organization,
    org: &OrgId,
    email: &Email,
    now: DateTime<Utc>,
) -> Result<(), LogError> {
    let same = address::email_hash(commands, org, email);
    let ended = before.invites().iter();
    for invite in ended.filter(|invite| invite.email_hash == same || !invite.works(now)) {
        address::let_go(commands, invite.account_id).await?;
    }
    Ok(())
}
