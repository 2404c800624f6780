//! Demo data: one organization with contacts, two workflows and a webhook.

use command_api::keys::{self, Giver};
use command_api::records::{self, Import, Row};
use command_api::{Commands, Origin, organizations, webhooks, workflows};
use domain::account::Email;
use domain::key::Request as KeyRequest;
use domain::record::{Kind, parse_object};
use domain::webhook::Request as WebhookRequest;
use schemas::{OrgId, WorkflowId};
use serde_json::{Value, json};

use crate::Failure;
use crate::commands::demo::{Demo, RECEIVER};

const OWNER: &str = "ada@demo.example";
const GREET: &str = "say-hello";
const WELCOME: &str = "welcome-a-lead";

const FIRST_NAMES: &[&str] = &[
    "Ada",
    "Björn",
    "Chloé",
    "Dimitrios",
    "Élodie",
    "Faruk",
    "Grażyna",
    "Hanna",
    "Ivan",
    "Jürgen",
];
const LAST_NAMES: &[&str] = &[
    "Andersson",
    "Blaževič",
    "Çelik",
    "Dupont",
    "Eriksen",
    "Fontaine",
    "Großmann",
    "Horváth",
];
const COMPANIES: &[(&str, &str, &str)] = &[
    ("Nordlicht Haustechnik", "Hamburg", "Germany"),
    ("Atelier Rivière", "Lyon", "France"),
    ("Kozłowski i Synowie", "Kraków", "Poland"),
    ("Αιγαίο Service", "Piraeus", "Greece"),
    ("Волна Сервис", "Sofia", "Bulgaria"),
    ("Rivertown Repairs", "Leeds", "United Kingdom"),
];
const JOBS: &[&str] = &[
    "Owner",
    "Dispatcher",
    "Fitter",
    "Accountant",
    "Site manager",
];
const CONTACTS: usize = 240;

/// Makes the demo data and answers with what it is reached by.
pub(super) async fn load(commands: &Commands, url: &str) -> Result<Demo, Failure> {
    let origin = Origin::default();
    let owner = Email::parse(OWNER)?;
    let founded = organizations::create(commands, &origin, "Demo Field Services", Some(&owner));
    let founded = founded.await?.answer;
    let org = founded.org_id;
    import_contacts(commands, &origin, &org).await?;
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
    let request = WebhookRequest::parse(request, true)?;
    let webhook = webhooks::create(commands, &origin, &org, request)
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
        email: OWNER.to_owned(),
        password: founded.owner_password,
        workflows: vec![GREET.to_owned(), WELCOME.to_owned()],
        webhook_url,
        webhook_secret: webhook.secret,
    })
}

async fn import_contacts(commands: &Commands, origin: &Origin, org: &OrgId) -> Result<(), Failure> {
    let rows = (1..=CONTACTS).map(|number| {
        let Value::Object(object) = contact(number) else {
            unreachable!("an object")
        };
        let draft = parse_object(Kind::Contacts, object).map_err(|error| error.to_string());
        Row {
            number: number as u64,
            draft,
        }
    });
    let import = Import {
        commands,
        origin,
        org,
        kind: Kind::Contacts,
    };
    let imported = records::import(import, futures::stream::iter(rows), |_, _| ()).await?;
    if imported.rejected == 0 {
        Ok(())
    } else {
        Err("a demo contact was rejected".into())
    }
}

fn contact(number: usize) -> Value {
    let pick = |list: &[&'static str], salt: usize| list[(number * salt + number / 7) % list.len()];
    let (first, last) = (pick(FIRST_NAMES, 3), pick(LAST_NAMES, 5));
    let (company, city, country) = COMPANIES[number % COMPANIES.len()];
    let (month, day) = (number % 12 + 1, number % 28 + 1);
    json!({
        "id": format!("contact-{number:03}"),
        "firstName": first,
        "lastName": last,
        "email": format!("person{number}@demo.example"),
        "phone": format!("+4930555{number:04}"),
        "jobTitle": pick(JOBS, 2),
        "companyId": format!("company-{}", number % COMPANIES.len() + 1),
        "companyName": company,
        "city": city,
        "country": country,
        "owner": OWNER,
        "createdAt": format!("2025-{month:02}-{day:02}T09:30:00Z"),
    })
}

/// Needs nothing but itself: the first workflow that anyone tries.
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
