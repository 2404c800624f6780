//! Demo data: one organization with its business, two workflows, a webhook, and a moving family.

mod family;
mod records;
mod route;

use command_api::accounts::Passwords;
use command_api::keys::{self, Giver};
use command_api::organizations::{self, Joiner, NewOwner};
use command_api::{Commands, Origin, PeopleSettings, webhooks, workflows};
use domain::account::Email;
use domain::key::Request as KeyRequest;
use domain::target::Ranges;
use domain::webhook::Request as WebhookRequest;
use schemas::{OrgId, WorkflowId};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::commands::demo::{Demo, RECEIVER};

const OWNER: &str = "ada@demo.example";
const GREET: &str = "say-hello";
const WELCOME: &str = "welcome-a-lead";

/// Creates the demo data and returns how to reach it.
pub(super) async fn load(commands: &Commands, url: &str) -> Result<Demo, Failure> {
    let origin = Origin::default();
    let mut family = Vec::new();
    for member in family::MEMBERS {
        family.push(family::open(commands, &origin, *member).await?);
    }
    family::gather(url, &family).await?;
    let owner = Email::parse(OWNER)?;
    let org = found(commands, &origin, &owner).await?;
    records::load(commands, &origin, &org).await?;
    for (id, definition) in [(GREET, greet()), (WELCOME, welcome())] {
        let id = Some(WorkflowId::from(id));
        workflows::put(commands, &origin, &org, id, definition).await?;
    }
    let webhook_url = format!("http://{RECEIVER}/webhooks");
    let request = json!({
        "url": webhook_url,
        "events": ["run.succeeded", "run.failed", "custom.*"],
        "description": "Seen by `waypost listen`",
    });
    let request = WebhookRequest::parse(request, &Ranges::usual())?;
    let webhook = webhooks::create(commands, &origin, &org, request, None)
        .await?
        .answer;
    let request = KeyRequest {
        name: "demo".to_owned(),
        scopes: vec!["admin".to_owned()],
        ..KeyRequest::default()
    };
    let key = keys::create(commands, &origin, &org, Giver::Operator, request)
        .await?
        .answer;
    Ok(Demo {
        url: url.to_owned(),
        org_id: org.into_string(),
        api_key: key.key,
        owner: family.first().cloned().ok_or("nobody owns the demo")?,
        family,
        workflows: vec![GREET.to_owned(), WELCOME.to_owned()],
        webhook_url,
        webhook_secret: webhook.secret,
    })
}

/// Creates the demo's organization. Its owner is one of the family, and accepts the invite.
async fn found(commands: &Commands, origin: &Origin, owner: &Email) -> Result<OrgId, Failure> {
    let people = PeopleSettings::default();
    let founding = organizations::create(
        commands,
        origin,
        "Demo Field Services",
        Some(owner),
        &people,
    );
    let founded = founding.await?.answer;
    if let Some(NewOwner::Invite(invite)) = founded.owner {
        let holder = organizations::look(commands, &invite.code).await?.holder;
        let joiner = Joiner::Account(holder.ok_or("nobody owns the demo")?);
        let (passwords, code) = (Passwords::default(), &invite.code);
        organizations::accept(commands, origin, &passwords, code, joiner).await?;
    }
    Ok(founded.org_id)
}

/// Lets the family move until `shutdown`.
pub(super) async fn live(demo: &Demo, shutdown: CancellationToken) {
    family::walk(demo.url.clone(), demo.family.clone(), shutdown).await;
}

/// The first workflow that anyone tries: it needs nothing but itself.
fn greet() -> Value {
    json!({
        "name": "Say hello",
        "status": "ACTIVE",
        "steps": [
            { "id": "start", "type": "TRIGGER", "next": ["tell"] },
            { "id": "tell", "type": "NOTIFY", "event": "hello",
              "data": { "greeting": "Hello, {{ trigger.name }}!" } },
        ],
    })
}

/// Calls the receiver of `waypost listen`, as it would a CRM.
fn welcome() -> Value {
    json!({
        "name": "Welcome a lead",
        "status": "ACTIVE",
        "timeoutSeconds": 600,
        "steps": [
            { "id": "start", "type": "TRIGGER", "next": ["call"] },
            { "id": "call", "type": "HTTP", "method": "POST",
              "url": format!("http://{RECEIVER}/crm/leads"),
              "headers": { "X-Lead": "{{ trigger.email }}" },
              "body": { "email": "{{ trigger.email }}", "score": "{{ trigger.score }}" },
              "timeoutSeconds": 5,
              "retry": { "maxAttempts": 5, "initialSeconds": 1, "maxSeconds": 30 },
              "next": ["tell"] },
            { "id": "tell", "type": "NOTIFY", "event": "lead_welcomed",
              "data": { "email": "{{ trigger.email }}", "status": "{{ steps.call.output.status }}" } },
        ],
    })
}
