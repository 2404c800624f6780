//! `waypost org`: organizations and their people.

use std::net::SocketAddr;
use std::path::Path;

use command_api::organizations::{self, NewInvite, NewOwner};
use command_api::{Commands, Origin, PeopleSettings};
use domain::account::Email;
use serde_json::json;
use service::settings::{CommonSettings, HttpSettings, defaults};

use super::print;
use crate::Failure;
use crate::system::{self, LogAccess, organization};

/// Organizations.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Org {
    /// Create an organization; prints `{"orgId", "ownerPassword"?, "ownerInvite"?}`.
    Create(Create),
    /// List an organization's people and open invitations; prints `{"people", "invites"}`.
    People(People),
    /// Invite a person to own an organization; prints `{"link", "expiresAt"}`.
    Invite(Invite),
    /// Remove an owner of an organization, or withdraw an invitation; prints `{"removed"}`.
    Remove(Remove),
}

/// Create an organization.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  waypost org create --name 'Rivertown Repairs' --owner ada@example.com"
)]
pub(crate) struct Create {
    /// Its name.
    #[arg(long)]
    name: String,
    /// E-mail address of its owner. An address without an account gets one, with a password shown
    /// once; an address with an account gets an invitation link.
    #[arg(long)]
    owner: Option<String>,
    #[command(flatten)]
    links: Links,
    #[command(flatten)]
    log: LogAccess,
}

/// List an organization's people and open invitations.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  waypost org people --org ORG")]
pub(crate) struct People {
    /// The organization.
    #[arg(long)]
    org: String,
    #[command(flatten)]
    log: LogAccess,
}

/// Invite somebody to an organization's people. The link works once; another invite of the same
/// address ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  waypost org invite --org ORG ada@example.com")]
pub(crate) struct Invite {
    /// The organization.
    #[arg(long)]
    org: String,
    /// The person's e-mail address. Give the link to nobody else.
    email: String,
    #[command(flatten)]
    links: Links,
    #[command(flatten)]
    log: LogAccess,
}

/// Remove an owner of an organization, or withdraw an invitation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  waypost org remove --org ORG ada@example.com")]
pub(crate) struct Remove {
    /// The organization.
    #[arg(long)]
    org: String,
    /// The person's e-mail address.
    email: String,
    #[command(flatten)]
    log: LogAccess,
}

/// What links begin with, and how long they work.
#[derive(Debug, clap::Args)]
pub(crate) struct Links {
    /// Address under which browsers reach Waypost, such as `https://waypost.example`. Links printed
    /// by `waypost org` begin with it. Default: `http://` and `WAYPOST_ADDR` if that is given, else
    /// the address at which `waypost up` was last started in `WAYPOST_HOME`.
    #[arg(long, env = "WAYPOST_PUBLIC_URL")]
    public_url: Option<String>,
    #[arg(long, env = "WAYPOST_ADDR", hide = true)]
    addr: Option<SocketAddr>,
    #[command(flatten)]
    people: PeopleSettings,
}

impl Links {
    fn to(&self, invite: &NewInvite, home: &Path) -> String {
        let at = |addr: SocketAddr| format!("http://{addr}");
        let given = self.public_url.clone().or(self.addr.map(at));
        let base = given
            .or_else(|| system::address(home))
            .unwrap_or_else(|| at(defaults::<HttpSettings>().addr));
        organizations::link(&base, &invite.code)
    }
}

impl Org {
    pub(crate) async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(common).await,
            Self::People(people) => people.run(common).await,
            Self::Invite(invite) => invite.run(common).await,
            Self::Remove(remove) => remove.run(common).await,
        }
    }
}

impl Create {
    async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let owner = self.owner.as_deref().map(Email::parse).transpose()?;
        let commands = Commands::new(self.log.open(common).await?);
        let (origin, people) = (Origin::default(), &self.links.people);
        let founding =
            organizations::create(&commands, &origin, &self.name, owner.as_ref(), people);
        let founded = founding.await?.answer;
        let mut printed = json!({ "orgId": founded.org_id });
        match founded.owner {
            None => {}
            Some(NewOwner::Password(password)) => printed["ownerPassword"] = password.into(),
            Some(NewOwner::Invite(invite)) => {
                printed["ownerInvite"] = self.links.to(&invite, &common.home).into();
                printed["ownerInviteExpiresAt"] = json!(invite.expires_at);
                eprintln!(
                    "The address already has an account, whose owner must agree: give this link \
                     to them and to nobody else."
                );
            }
        }
        print(&printed)
    }
}

impl People {
    async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let commands = Commands::new(self.log.open(common).await?);
        let org = organization(commands.log(), self.org).await?;
        print(&access::people(commands.log(), &org, commands.now()).await?)
    }
}

impl Invite {
    async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let email = Email::parse(&self.email)?;
        let commands = Commands::new(self.log.open(common).await?);
        let org = organization(commands.log(), self.org).await?;
        let (origin, people) = (Origin::default(), &self.links.people);
        let inviting = organizations::invite(&commands, &origin, &org, &email, None, people);
        let invite = inviting.await?.answer;
        let link = self.links.to(&invite, &common.home);
        print(&json!({ "link": link, "expiresAt": invite.expires_at }))
    }
}

impl Remove {
    async fn run(self, common: &CommonSettings) -> Result<(), Failure> {
        let email = Email::parse(&self.email)?;
        let commands = Commands::new(self.log.open(common).await?);
        let org = organization(commands.log(), self.org).await?;
        organizations::remove_address(&commands, &Origin::default(), &org, &email).await?;
        print(&json!({ "removed": email.as_str() }))
    }
}
