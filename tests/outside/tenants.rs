//! Two organizations that act freely, under the same names, at the same time: no response to one
//! ever contains or depends on anything of the other.

use std::collections::BTreeMap;

use harness::{Answer, Client, Organization};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use reqwest::Method;
use serde_json::{Value, json};

use super::exports::position_of;
use super::only_begins;
use crate::system;

const KINDS: [&str; 6] = [
    "companies",
    "deals",
    "contacts",
    "orders",
    "leads",
    "clients",
];

/// An action of a tenant.
#[derive(Clone, Debug)]
enum Act {
    Write(usize, u8, u16),
    Delete(usize, u8),
    Workflow(u8),
    Trigger(u8),
    Webhook,
    Key,
    Circle,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        10 => (0..KINDS.len(), 0..4_u8, any::<u16>()).prop_map(|(k, id, n)| Act::Write(k, id, n)),
        3 => (0..KINDS.len(), 0..4_u8).prop_map(|(kind, id)| Act::Delete(kind, id)),
        2 => (0..3_u8).prop_map(Act::Workflow),
        3 => (0..3_u8).prop_map(Act::Trigger),
        1 => Just(Act::Webhook),
        1 => Just(Act::Key),
        1 => Just(Act::Circle),
    ]
}

/// One organization, and what it must find.
struct Tenant<'a> {
    org: Organization<'a>,
    records: BTreeMap<(usize, u8), u16>,
    /// Workflows with their triggered runs.
    workflows: BTreeMap<u8, Vec<String>>,
    webhooks: Vec<String>,
    /// One exists from the start.
    keys: usize,
    circles: Vec<String>,
    /// Number of events it has caused that its feed certainly shows.
    facts: usize,
}

impl<'a> Tenant<'a> {
    fn new(org: Organization<'a>) -> Self {
        Self {
            org,
            records: BTreeMap::new(),
            workflows: BTreeMap::new(),
            webhooks: Vec::new(),
            keys: 1,
            circles: Vec::new(),
            facts: 1,
        }
    }

    /// A record that contains its owner in every text.
    fn record(&self, kind: usize, number: u16) -> Value {
        let owner = &self.org.id;
        match KINDS[kind] {
            "companies" => json!({"name": owner, "domain": owner, "employees": number}),
            "deals" => json!({"title": owner, "stage": owner, "amount": number}),
            "contacts" => json!({"email": owner, "city": format!("{number}")}),
            "orders" => json!({"orderNumber": owner, "status": "ACTIVE", "amount": number,
                "client": {"name": owner}}),
            "leads" => json!({"name": owner, "service": owner, "score": number}),
            _ => json!({"name": owner, "company": owner, "city": format!("{number}")}),
        }
    }

    async fn perform(&mut self, act: &Act) {
        let admin = &self.org.admin;
        match *act {
            Act::Write(kind, id, number) => {
                let path = format!("/api/v1/records/{}/r{id}", KINDS[kind]);
                let answer = admin.put(&path, &self.record(kind, number)).await;
                let before = self.records.insert((kind, id), number);
                assert_eq!(answer.status, if before.is_some() { 200 } else { 201 });
                self.facts += usize::from(before != Some(number));
            }
            Act::Delete(kind, id) => {
                let path = format!("/api/v1/records/{}/r{id}", KINDS[kind]);
                let gone = self.records.remove(&(kind, id)).is_some();
                let status = admin.delete(&path).await.status;
                assert_eq!(status, if gone { 204 } else { 404 });
                self.facts += usize::from(gone);
            }
            Act::Workflow(id) => {
                let mut definition = only_begins();
                definition["name"] = json!(format!("{} {id}", self.org.id));
                let path = format!("/api/v1/workflows/w{id}");
                admin.put(&path, &definition).await.ok(200);
                self.workflows.entry(id).or_default();
            }
            Act::Trigger(id) => {
                let path = format!("/api/v1/workflows/w{id}/trigger");
                let answer = admin.post(&path, &json!({"owner": self.org.id})).await;
                match self.workflows.get_mut(&id) {
                    Some(runs) => {
                        let run = answer.ok(202)["runId"].as_str().unwrap().to_owned();
                        runs.push(run);
                    }
                    None => _ = answer.error(404),
                }
            }
            Act::Webhook => {
                let hook = json!({"url": "http://127.0.0.1:1/", "events": ["sos.resolved"],
                    "description": self.org.id});
                let made = admin.post("/api/v1/webhooks", &hook).await.ok(201);
                self.webhooks.push(made["id"].as_str().unwrap().to_owned());
                self.facts += 1;
            }
            Act::Key => {
                let terms = json!({"name": self.org.id, "scopes": ["read:leads"]});
                admin.post("/api/v1/keys", &terms).await.ok(201);
                self.keys += 1;
                self.facts += 1;
            }
            Act::Circle => {
                let named = json!({"name": self.org.id});
                let made = admin.post("/api/v1/circles", &named).await.ok(201);
                self.circles.push(made["id"].as_str().unwrap().to_owned());
            }
        }
    }

    fn count(&self, kind: &str) -> usize {
        let of_kind = |(k, _): &&(usize, u8)| KINDS[*k] == kind;
        self.records.keys().filter(of_kind).count()
    }

    /// Every read there is.
    fn reads(&self) -> Vec<String> {
        let mut reads: Vec<String> = [
            "/api/v1/workflows",
            "/api/v1/webhooks",
            "/api/v1/keys",
            "/api/v1/orders?limit=100",
            "/api/v1/orders?status=ACTIVE",
            "/api/v1/leads?limit=100",
            "/api/v1/clients?limit=100",
            "/api/v1/analytics",
            "/api/v1/events",
            "/api/v1/locations",
            "/api/export/companies",
            "/api/export/companies?format=crm",
            "/api/export/companies?format=pdf",
            "/api/export/deals",
            "/api/export/contacts",
        ]
        .map(str::to_owned)
        .into();
        for (id, runs) in &self.workflows {
            reads.push(format!("/api/v1/workflows/w{id}"));
            reads.push(format!("/api/v1/workflows/w{id}/runs?limit=100"));
            reads.extend(runs.iter().map(|run| format!("/api/v1/runs/{run}")));
        }
        let hooks = self.webhooks.iter();
        reads.extend(hooks.map(|id| format!("/api/v1/webhooks/{id}/deliveries")));
        for (kind, id) in self.records.keys() {
            reads.push(format!("/api/v1/records/{}/r{id}", KINDS[*kind]));
        }
        reads
    }

    /// Asserts that nothing of the other is in any response.
    async fn sees_nothing_of(&self, other: &Self, position: &str) {
        let mut traces = vec![other.org.id.clone()];
        traces.extend(other.webhooks.iter().chain(&other.circles).cloned());
        traces.extend(other.workflows.values().flatten().cloned());
        for path in self.reads() {
            let answer = self.org.admin.get_at(&path, position).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            let body = String::from_utf8_lossy(&answer.body);
            for trace in &traces {
                assert!(
                    !body.contains(trace.as_str()),
                    "{path} shows {trace}: {body}"
                );
            }
        }
    }

    /// Asserts that requests naming the other's data are answered as if these did not exist.
    async fn cannot_touch(&self, other: &Self) {
        let mut touches = Vec::new();
        for run in other.workflows.values().flatten() {
            touches.push((Method::GET, format!("/api/v1/runs/{run}")));
            touches.push((Method::POST, format!("/api/v1/runs/{run}/cancel")));
            touches.push((Method::POST, format!("/api/v1/runs/{run}/retry")));
        }
        for id in &other.webhooks {
            touches.push((Method::GET, format!("/api/v1/webhooks/{id}")));
            touches.push((Method::GET, format!("/api/v1/webhooks/{id}/deliveries")));
            for command in ["rotate-secret", "test"] {
                touches.push((Method::POST, format!("/api/v1/webhooks/{id}/{command}")));
            }
            touches.push((Method::DELETE, format!("/api/v1/webhooks/{id}")));
        }
        for id in &other.circles {
            touches.push((Method::POST, format!("/api/v1/circles/{id}/invites")));
        }
        for (method, path) in touches {
            let request = |path: &str| self.org.admin.request(method.clone(), path);
            Answer::to(request(&path)).await.error(404);
        }
        for id in &other.webhooks {
            let path = format!("/api/v1/webhooks/{id}");
            let paused = json!({"status": "DISABLED"});
            self.org.admin.patch(&path, &paused).await.error(404);
            let replay = format!("{path}/replay");
            let all = json!({"failed": true});
            self.org.admin.post(&replay, &all).await.error(404);
        }
    }

    /// Asserts that it finds exactly what it did itself, to the last number.
    async fn finds_its_own(&self, position: &str) {
        let admin: &Client = &self.org.admin;
        for ((kind, id), number) in &self.records {
            let path = format!("/api/v1/records/{}/r{id}", KINDS[*kind]);
            let read = admin.get_at(&path, position).await.ok(200);
            for (field, value) in self.record(*kind, *number).as_object().unwrap() {
                let fits = match value {
                    Value::Object(part) => part.iter().all(|(name, v)| &read[field][name] == v),
                    value => &read[field] == value,
                };
                assert!(fits, "{path} {field}: {read}");
            }
        }
        for kind in ["orders", "leads", "clients"] {
            let list = admin
                .get_at(&format!("/api/v1/{kind}"), position)
                .await
                .ok(200);
            assert_eq!(list["total"], self.count(kind), "{kind}");
        }
        for kind in ["companies", "deals", "contacts"] {
            let path = format!("/api/export/{kind}");
            let csv = admin.get_at(&path, position).await.text();
            assert_eq!(csv.lines().count(), self.count(kind) + 1, "{csv}");
        }
        let amounts = self
            .records
            .iter()
            .filter(|((kind, _), _)| KINDS[*kind] == "orders");
        let revenue: u64 = amounts.map(|(_, amount)| u64::from(*amount)).sum();
        let analytics = admin.get_at("/api/v1/analytics", position).await.ok(200);
        assert_eq!(analytics["totalRevenue"], revenue);
        for (id, runs) in &self.workflows {
            let path = format!("/api/v1/workflows/w{id}/runs");
            let list = admin.get_at(&path, position).await.ok(200);
            assert_eq!(list["total"], runs.len());
        }
        let keys = admin.get_at("/api/v1/keys", position).await.ok(200);
        assert_eq!(keys["total"], self.keys);
        let hooks = admin.get_at("/api/v1/webhooks", position).await.ok(200);
        assert_eq!(hooks["total"], self.webhooks.len());
        let types = "key.*,webhook.*,company.*,deal.*,contact.*,order.*,lead.*,client.*";
        let path = format!("/api/v1/events?types={types}");
        let feed = admin.get_at(&path, position).await.text();
        assert_eq!(feed.lines().count(), self.facts, "{feed}");
    }
}

#[tokio::test]
async fn no_organization_ever_meets_another() {
    let system = system().await;
    let mut runner = TestRunner::default();
    let strategy = prop::collection::vec((any::<bool>(), act()), 60..90);
    for _ in 0..3 {
        let mut one = Tenant::new(system.organization().await);
        let mut other = Tenant::new(system.organization().await);
        let acts = strategy.new_tree(&mut runner).expect("acts").current();
        for (first, act) in &acts {
            let tenant = if *first { &mut one } else { &mut other };
            tenant.perform(act).await;
        }
        for tenant in [&mut one, &mut other] {
            // The marker that shows the progress of reads is written and deleted again.
            tenant.facts += 2;
        }
        let positions = [
            position_of("leads", &one.org).await,
            position_of("leads", &other.org).await,
        ];
        for (tenant, another, position) in
            [(&one, &other, &positions[0]), (&other, &one, &positions[1])]
        {
            tenant.finds_its_own(position).await;
            tenant.sees_nothing_of(another, position).await;
            tenant.cannot_touch(another).await;
            tenant.finds_its_own(position).await;
        }
    }
}
