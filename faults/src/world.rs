//! The organizations and persons the load acts for, and what it knows of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use harness::{PASSWORD, System};
use hostile::Neighbour;
use serde_json::{Value, json};

use crate::definitions;
use hostile::Dice;

/// Organizations of a run.
const ORGANIZATIONS: usize = 3;
/// Persons who stay in one circle and never hide, so that each must see all the others.
const FAMILY: usize = 3;
/// Persons who join and leave.
const LOOSE: usize = 4;
/// Requests per window for each organization's limited key.
pub(crate) const KEY_LIMIT: u64 = 12;
/// Positions per window for a person without a tier.
pub(crate) const POSITION_LIMIT: u64 = 30;
/// Number of ids the load remembers; it forgets older ones.
const REMEMBERED: usize = 60;

/// A list that several workers add to.
#[derive(Debug, Default)]
pub(crate) struct Recent<T>(Mutex<Vec<T>>);

impl<T: Clone> Recent<T> {
    fn list(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, one: T) {
        let mut list = self.list();
        if list.len() >= REMEMBERED {
            list.remove(0);
        }
        list.push(one);
    }

    pub(crate) fn any(&self, dice: &mut Dice) -> Option<T> {
        dice.pick(&self.list())
    }

    /// Takes one out, so that no other worker picks it.
    pub(crate) fn take(&self, dice: &mut Dice) -> Option<T> {
        let mut list = self.list();
        let nth = dice.below(list.len());
        (nth < list.len()).then(|| list.remove(nth))
    }

    pub(crate) fn len(&self) -> usize {
        self.list().len()
    }
}

/// An organization.
#[derive(Debug, Default)]
pub(crate) struct Org {
    pub(crate) id: String,
    /// Its key of scope `admin`.
    pub(crate) key: String,
    /// A key that is admitted for only `KEY_LIMIT` requests per window.
    pub(crate) limited_key: String,
    pub(crate) runs: Recent<String>,
    /// Numbers of the leads that runs wait for.
    pub(crate) awaited: Recent<u64>,
    pub(crate) webhooks: Recent<String>,
    pub(crate) keys: Recent<String>,
    pub(crate) circles: Recent<String>,
    /// Invites to its circles, open to any person.
    pub(crate) codes: Recent<String>,
    /// Positions at which its records were written.
    pub(crate) positions: Recent<String>,
}

/// A person.
#[derive(Debug, Default)]
pub(crate) struct Person {
    pub(crate) id: u64,
    pub(crate) email: String,
    password: Mutex<String>,
    token: Mutex<String>,
    /// Whether they stay in the family's circle and never hide.
    pub(crate) steady: bool,
    /// Positions per window; unlimited if `None`.
    pub(crate) limit: Option<u64>,
    pub(crate) circles: Recent<String>,
    pub(crate) codes: Recent<String>,
    pub(crate) places: Recent<(String, String)>,
    pub(crate) calls: Recent<String>,
}

impl Person {
    pub(crate) fn token(&self) -> String {
        let token = self.token.lock();
        token.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn password(&self) -> String {
        let password = self.password.lock();
        password.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn signed_in(&self, token: &str) {
        let mut held = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        token.clone_into(&mut held);
    }

    pub(crate) fn changed_password(&self, password: &str) {
        let held = self.password.lock();
        password.clone_into(&mut held.unwrap_or_else(PoisonError::into_inner));
    }
}

/// All organizations and persons of a run.
pub(crate) struct World {
    pub(crate) orgs: Vec<Org>,
    pub(crate) persons: Vec<Person>,
    /// The hostile tenant, if there is one. The load does nothing for it.
    pub(crate) neighbour: Option<Neighbour>,
    /// The token of a person who is in nobody's circle, if there is a hostile tenant.
    pub(crate) trespasser: String,
}

impl World {
    /// Creates everything, before there are faults.
    pub(crate) async fn make(system: &System, receiver: &str) -> Self {
        let mut orgs = Vec::new();
        for nth in 0..ORGANIZATIONS {
            orgs.push(organization(system, nth, receiver).await);
        }
        let mut persons = Vec::new();
        for nth in 0..FAMILY + LOOSE {
            persons.push(person(system, nth).await);
        }
        family(system, &persons[..FAMILY]).await;
        Self {
            orgs,
            persons,
            neighbour: None,
            trespasser: String::new(),
        }
    }
}

async fn organization(system: &System, nth: usize, receiver: &str) -> Org {
    let made = system.organization().await;
    let step = format!("{receiver}/step");
    for kind in definitions::all() {
        let path = format!("/api/v1/workflows/{kind}");
        let body = definitions::definition(kind, kind, &step);
        made.admin.put(&path, &body).await.ok(200);
    }
    let all: &[&str] = if nth == 0 {
        &["*"]
    } else {
        &["run.*", "custom.*"]
    };
    for (name, events) in [("all", all), ("records", &["order.*", "lead.created"])] {
        let url = format!("{receiver}/hook/{nth}-{name}");
        let body = json!({"url": url, "events": events});
        made.admin.post("/api/v1/webhooks", &body).await.ok(201);
    }
    let terms = json!({"name": "limited", "scopes": ["workflows:trigger", "workflows:read"],
        "rateLimit": KEY_LIMIT});
    let (_, limited) = made.unused_key(&terms).await;
    Org {
        id: made.id.clone(),
        key: made.key.clone(),
        limited_key: text(&limited["key"]),
        ..Org::default()
    }
}

/// The first three are a family, the fourth has the limits of a free account.
async fn person(system: &System, nth: usize) -> Person {
    let person = system.person(&format!("Person {nth}")).await;
    let free = nth == FAMILY;
    if !free {
        let limits = ["--requests", "1000000", "--locations", "1000000"];
        let tier = ["account", "tier", &person.email, "enterprise"];
        system.waypost(&[&tier[..], &limits].concat()).await;
    }
    Person {
        id: person.id,
        email: person.email.clone(),
        password: Mutex::new(PASSWORD.to_owned()),
        token: Mutex::new(person.token.clone()),
        steady: nth < FAMILY,
        limit: free.then_some(POSITION_LIMIT),
        ..Person::default()
    }
}

async fn family(system: &System, members: &[Person]) {
    let client = |person: &Person| system.client().with_key(&person.token());
    let first = client(&members[0]);
    let circle = first
        .post("/circles", &json!({"name": "Family"}))
        .await
        .ok(201);
    let circle = text(&circle["id"]);
    let invite = format!("/circles/{circle}/invites");
    let invite = first.post_nothing(&invite).await.ok(201);
    for member in &members[1..] {
        let code = json!({"code": invite["code"]});
        client(member).post("/circles/join", &code).await.ok(200);
    }
    let place = json!({"name": "Home", "lat": 52.5, "lng": 13.4, "radius_m": 200});
    let places = format!("/circles/{circle}/places");
    first.post(&places, &place).await.ok(201);
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
