//! The demo's business: companies with people and deals, and two years of orders and leads.
//!
//! Everything is derived from a record's number, so that each first start creates the same
//! business, relative to its own day.

use chrono::{DateTime, Days, SecondsFormat, TimeDelta, Utc};
use command_api::records::{self, Fault, FilePosition, Import, Row};
use command_api::{Commands, Origin};
use domain::record::{Kind, parse_object};
use schemas::OrgId;
use serde_json::{Value, json};

use crate::Failure;

use super::OWNER;

const DAYS: u64 = 730;
const CONTACTS: u64 = 240;
const DEALS: u64 = 90;
const ORDERS: u64 = 900;
const LEADS: u64 = 2_400;
const CLIENTS: u64 = 120;

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
    "Κατερίνα",
    "Людмила",
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
    "Παπαδοπούλου",
    "Иванова",
    "O'Neill",
];
const COMPANIES: &[(&str, &str, &str, &str)] = &[
    (
        "Nordlicht Haustechnik",
        "nordlicht.example",
        "Hamburg",
        "Germany",
    ),
    ("Atelier Rivière", "riviere.example", "Lyon", "France"),
    (
        "Kozłowski i Synowie",
        "kozlowski.example",
        "Kraków",
        "Poland",
    ),
    ("Αιγαίο Service", "aigaio.example", "Piraeus", "Greece"),
    ("Волна Сервис", "volna.example", "Sofia", "Bulgaria"),
    (
        "Rivertown Repairs",
        "rivertown.example",
        "Leeds",
        "United Kingdom",
    ),
    ("Casa Bellini", "bellini.example", "Bologna", "Italy"),
    ("Lumen & Søn", "lumen.example", "Aarhus", "Denmark"),
    ("Talleres Peña", "pena.example", "Bilbao", "Spain"),
    (
        "Hof van Vliet",
        "vanvliet.example",
        "Utrecht",
        "Netherlands",
    ),
    ("Dach und Fach", "dachundfach.example", "Graz", "Austria"),
    ("Ponte Nova", "pontenova.example", "Porto", "Portugal"),
];
const INDUSTRIES: &[&str] = &["Construction", "Facility services", "Retail", "Hospitality"];
const JOBS: &[&str] = &[
    "Owner",
    "Dispatcher",
    "Fitter",
    "Accountant",
    "Site manager",
];
const STAGES: &[&str] = &["QUALIFIED", "PROPOSAL", "NEGOTIATION", "WON", "LOST"];
const SERVICES: &[&str] = &["Heating", "Roof repair", "Wiring", "Inspection", "Garden"];
const SOURCES: &[&str] = &["web", "referral", "phone", "fair"];
const LEAD_STATES: &[&str] = &["NEW", "CONTACTED", "QUALIFIED", "LOST"];
const PLANS: &[(&str, u64)] = &[("Basic", 4_900), ("Plus", 12_900), ("Pro", 29_900)];

/// Writes all records.
pub(super) async fn load(commands: &Commands, origin: &Origin, org: &OrgId) -> Result<(), Failure> {
    let now = commands.now();
    for (kind, count, record) in [
        (Kind::Companies, COMPANIES.len() as u64, company as Make),
        (Kind::Contacts, CONTACTS, contact),
        (Kind::Deals, DEALS, deal),
        (Kind::Clients, CLIENTS, client),
        (Kind::Leads, LEADS, lead),
        (Kind::Orders, ORDERS, order),
    ] {
        // An import writes chunks in parallel, so in any order; the demo's have a fixed order.
        for before in (0..count).step_by(records::CHUNK) {
            let numbers = (before + 1..=count).take(records::CHUNK);
            let rows = numbers.map(|number| row(kind, number, record(Sample { number, now })));
            let import = Import {
                commands: commands.clone(),
                origin: origin.clone(),
                org: org.clone(),
                kind,
                source: None,
            };
            let imported = records::import(import, futures::stream::iter(rows), |_, _| ()).await?;
            if imported.rejected > 0 {
                return Err(format!("{} demo records were rejected", imported.rejected).into());
            }
        }
    }
    Ok(())
}

type Make = fn(Sample) -> Value;

fn row(kind: Kind, number: u64, record: Value) -> Row {
    let draft = match record {
        Value::Object(object) => parse_object(kind, object).map_err(Fault::from),
        _ => Err("not an object".to_owned().into()),
    };
    let end = FilePosition {
        rows: number,
        lines: number,
        bytes: 0,
    };
    Row {
        line: number,
        end,
        draft,
    }
}

/// One record of its kind.
#[derive(Clone, Copy)]
struct Sample {
    number: u64,
    now: DateTime<Utc>,
}

impl Sample {
    /// A number that looks random and is always the same; `salt` distinguishes its uses.
    fn roll(self, salt: u64) -> u64 {
        let mut x = (self.number << 8 | salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^ (x >> 27)
    }

    fn pick<T: Copy>(self, salt: u64, list: &[T]) -> T {
        let place = self.roll(salt) % list.len() as u64;
        list[usize::try_from(place).unwrap_or_default()]
    }

    fn name(self, salt: u64) -> (&'static str, &'static str) {
        (
            self.pick(salt, FIRST_NAMES),
            self.pick(salt + 1, LAST_NAMES),
        )
    }

    fn company(
        self,
    ) -> (
        u64,
        (&'static str, &'static str, &'static str, &'static str),
    ) {
        let place = self.roll(9) % COMPANIES.len() as u64;
        (
            place + 1,
            COMPANIES[usize::try_from(place).unwrap_or_default()],
        )
    }

    /// A time in the last two years; of `count` records the last is the latest, and business grows.
    fn time(self, count: u64) -> String {
        let share = f64_of(self.number) / f64_of(count);
        let days_ago = (1.0 - share.powf(0.75)) * f64_of(DAYS);
        #[expect(clippy::cast_possible_truncation, reason = "two years of seconds fit")]
        let seconds_ago = (days_ago * 86_400.0) as i64;
        let at = self.now - TimeDelta::seconds(seconds_ago + 60);
        at.to_rfc3339_opts(SecondsFormat::Secs, true)
    }
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn f64_of(count: u64) -> f64 {
    count as f64
}

fn company(sample: Sample) -> Value {
    let (name, domain, city, country) =
        COMPANIES[usize::try_from(sample.number - 1).unwrap_or_default()];
    json!({
        "id": format!("company-{}", sample.number),
        "name": name,
        "domain": domain,
        "industry": sample.pick(1, INDUSTRIES),
        "phone": format!("+49305550{:03}", sample.number),
        "email": format!("office@{domain}"),
        "address": format!("Harbour Road {}", sample.roll(2) % 90 + 1),
        "city": city,
        "country": country,
        "employees": sample.roll(3) % 180 + 4,
        "annualRevenue": (sample.roll(4) % 900 + 50) * 1_000_000,
        "owner": OWNER,
        "createdAt": sample.time(COMPANIES.len() as u64),
    })
}

fn contact(sample: Sample) -> Value {
    let (first, last) = sample.name(1);
    let (company_id, (company, domain, city, country)) = sample.company();
    json!({
        "id": format!("contact-{:03}", sample.number),
        "firstName": first,
        "lastName": last,
        "email": format!("person{}@{domain}", sample.number),
        "phone": format!("+4930555{:04}", sample.number),
        "jobTitle": sample.pick(3, JOBS),
        "companyId": format!("company-{company_id}"),
        "companyName": company,
        "city": city,
        "country": country,
        "owner": OWNER,
        "createdAt": sample.time(CONTACTS),
    })
}

fn deal(sample: Sample) -> Value {
    let (first, last) = sample.name(1);
    let (company_id, (company, ..)) = sample.company();
    let closes = sample.now.date_naive() + Days::new(sample.roll(5) % 120);
    json!({
        "id": format!("deal-{}", sample.number),
        "title": format!("{} for {company}", sample.pick(2, SERVICES)),
        "stage": sample.pick(3, STAGES),
        "amount": (sample.roll(4) % 480 + 20) * 10_000,
        "currency": "EUR",
        "probability": sample.roll(6) % 21 * 5,
        "companyId": format!("company-{company_id}"),
        "companyName": company,
        "contactName": format!("{first} {last}"),
        "owner": OWNER,
        "expectedCloseDate": closes.to_string(),
        "createdAt": sample.time(DEALS),
    })
}

fn client(sample: Sample) -> Value {
    let (first, last) = sample.name(1);
    let (_, (company, _, city, _)) = sample.company();
    json!({
        "id": format!("client-{}", sample.number),
        "name": format!("{first} {last}"),
        "email": format!("client{}@demo.example", sample.number),
        "phone": format!("+4930556{:04}", sample.number),
        "company": company,
        "city": city,
        "isActive": !sample.roll(3).is_multiple_of(8),
        "createdAt": sample.time(CLIENTS),
    })
}

fn lead(sample: Sample) -> Value {
    let (first, last) = sample.name(1);
    json!({
        "id": format!("lead-{}", sample.number),
        "name": format!("{first} {last}"),
        "phone": format!("+4930557{:04}", sample.number),
        "email": format!("lead{}@demo.example", sample.number),
        "service": sample.pick(3, SERVICES),
        "source": sample.pick(4, SOURCES),
        "status": sample.pick(5, LEAD_STATES),
        "score": sample.roll(6) % 101,
        "createdAt": sample.time(LEADS),
    })
}

fn order(sample: Sample) -> Value {
    let (plan, price) = sample.pick(1, PLANS);
    let client = Sample {
        number: sample.roll(2) % CLIENTS + 1,
        ..sample
    };
    let (first, last) = client.name(1);
    // Most orders are done, the newest are still under way.
    let status = match (sample.roll(3) % 10, ORDERS - sample.number) {
        (0, _) => "CANCELLED",
        (_, 0..30) => "PAYMENT_PENDING",
        (_, 30..220) => "ACTIVE",
        _ => "COMPLETED",
    };
    json!({
        "id": format!("order-{}", sample.number),
        "orderNumber": format!("WP-{:05}", sample.number),
        "status": status,
        "amount": price * (sample.roll(4) % 4 + 1),
        "plan": plan,
        "client": {
            "name": format!("{first} {last}"),
            "email": format!("client{}@demo.example", client.number),
        },
        "product": { "name": format!("{} care", sample.pick(5, SERVICES)) },
        "createdAt": sample.time(ORDERS),
    })
}
