//! A log with something for every projection.

use std::collections::HashMap;

use chrono::Utc;
use event_log::{Binding, EventLog, Expected, Owner, Write};
use schemas::circle::CircleOwner;
use schemas::{AccountId, AggregateType, Event, Log, OrgId, SYSTEM_ORG, Sealed, StreamId};
use serde_json::{Value, json};

use crate::support::{World, new_event, now};

/// Every projection, with a table of its own and a column of text there that no index holds, if it
/// has one.
pub(crate) const PROJECTIONS: [(&str, &str, Option<&str>); 17] = [
    ("accounts", "accounts", Some("name")),
    ("api_keys", "api_keys", Some("name")),
    ("circles", "circle_places", Some("name")),
    ("clients", "clients", Some("city")),
    ("companies", "companies", Some("city")),
    ("contacts", "contacts", Some("city")),
    ("crossings", "crossings", None),
    ("deals", "deals", Some("owner")),
    ("deliveries", "deliveries", Some("webhook_id")),
    ("leads", "leads", Some("source")),
    ("orders", "orders", Some("plan")),
    ("organizations", "organizations", Some("name")),
    ("positions", "positions", Some("place_name")),
    ("runs", "runs", Some("error")),
    ("sos_calls", "sos_calls", None),
    ("webhooks", "webhooks", Some("description")),
    ("workflows", "workflows", Some("name")),
];

/// Appends events one by one, each at the end of its aggregate.
pub(crate) struct Mixer<'w> {
    world: &'w World,
    seen: HashMap<StreamId, u64>,
    ends: HashMap<Log, u64>,
    round: u64,
}

impl<'w> Mixer<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        Self {
            world,
            seen: HashMap::new(),
            ends: HashMap::new(),
            round: 0,
        }
    }

    /// Waits until the projector has applied all that was appended.
    pub(crate) async fn applied(&self) {
        for (log, end) in &self.ends {
            self.world.caught_up(*log, *end).await;
        }
    }

    /// Something of everything: created, changed, and in some rounds ended.
    pub(crate) async fn mix(&mut self, rounds: u64) {
        for _ in 0..rounds {
            self.round += 1;
            Box::pin(self.business()).await;
            Box::pin(self.work()).await;
            Box::pin(self.persons()).await;
        }
    }

    async fn append(&mut self, stream: StreamId, recorded_type: &str, data: Value) {
        let event = Event::decode(recorded_type, data.to_string().as_bytes()).unwrap();
        let write = Write {
            expected: Expected::after(self.seen.get(&stream).copied()),
            stream: stream.clone(),
            events: vec![new_event(event)],
        };
        let position = self.world.log.commit(write.into()).await.unwrap();
        self.seen.insert(stream, position.sequence());
        self.ends.insert(position.log(), position.sequence());
    }

    async fn of_org(&mut self, kind: AggregateType, id: &str, recorded_type: &str, data: Value) {
        let stream = self.world.stream(kind, id);
        self.append(stream, recorded_type, data).await;
    }

    async fn nobodys(&mut self, kind: AggregateType, id: &str, recorded_type: &str, data: Value) {
        let stream = StreamId::new(&OrgId::from(SYSTEM_ORG), kind, id.to_owned());
        self.append(stream, recorded_type, data).await;
    }

    fn log(&self) -> &'w EventLog {
        &self.world.log
    }

    async fn seal(&self, binding: Binding, text: &str) -> Sealed {
        self.log().vault().seal(&binding, text).await.unwrap()
    }

    /// Records of every kind, in two months and all statuses.
    async fn business(&mut self) {
        let n = self.round;
        let at = format!("2026-0{}-01T00:00:00Z", 1 + n % 2);
        let status = ["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"];
        let status = |n: u64| status[usize::try_from(n % 4).unwrap()];
        let order = |n: u64| {
            json!({"orderNumber": "7", "status": status(n), "amount": 100 + n,
                   "client": {"name": "C"}, "product": {}})
        };
        for (kind, made, changed) in [
            (
                AggregateType::Company,
                json!({"name": "A"}),
                json!({"name": "B", "city": "X"}),
            ),
            (
                AggregateType::Deal,
                json!({"title": "A"}),
                json!({"title": "B", "owner": "X"}),
            ),
            (
                AggregateType::Contact,
                json!({"email": "a@b.c"}),
                json!({"city": "X"}),
            ),
            (AggregateType::Order, order(n), order(n + 1)),
            (
                AggregateType::Lead,
                json!({"name": "A", "score": n}),
                json!({"name": "B", "score": 1}),
            ),
            (
                AggregateType::Client,
                json!({"name": "A", "isActive": true}),
                json!({"name": "B", "isActive": false}),
            ),
        ] {
            let token = kind.token();
            for (what, mut data) in [("created", made), ("updated", changed)] {
                for id in [format!("{token}-{n}"), "every@round.example".to_owned()] {
                    data["id"] = json!(id);
                    data["createdAt"] = json!(at);
                    let recorded_type = format!("{token}.{what}.v1");
                    self.of_org(kind, &id, &recorded_type, data.clone()).await;
                }
            }
            if n.is_multiple_of(3) {
                let id = format!("{token}-{n}");
                let gone = format!("{token}.deleted.v1");
                self.of_org(kind, &id, &gone, json!({"id": id})).await;
            }
        }
    }

    /// Organizations, keys, workflows with runs, webhooks with deliveries.
    async fn work(&mut self) {
        let n = self.round;
        let (org, key, hook) = (format!("o{n}"), format!("k{n}"), format!("h{n}"));
        let (workflow, run, delivery) = (format!("w{}", n % 4), format!("r{n}"), format!("d{n}"));
        let created = json!({"orgId": org, "name": "Acme"});
        self.of_org(
            AggregateType::Organization,
            &org,
            "organization.created.v1",
            created,
        )
        .await;
        let created = json!({"keyId": key, "name": "K", "scopes": ["admin"], "rateLimit": 7,
                             "keySha256": "00".repeat(32)});
        self.of_org(AggregateType::Key, &key, "key.created.v1", created)
            .await;
        let version = 1 + n / 4;
        let saved = json!({"workflowId": workflow, "version": version, "name": "W",
            "status": "ACTIVE", "timeoutSeconds": 60, "steps": [
                {"id": "start", "type": "TRIGGER", "next": [], "join": "any"}]});
        self.of_org(
            AggregateType::Workflow,
            &workflow,
            "workflow.saved.v1",
            saved,
        )
        .await;
        let of_run = |more: Value| {
            let mut data = json!({"runId": run, "workflowId": workflow});
            data.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            data
        };
        let payload = json!({"n": n, "odd": "a\0b"});
        let triggered = json!({"workflowVersion": version, "triggerPayload": payload});
        let mut events = vec![
            ("workflow.triggered.v1", of_run(triggered)),
            ("run.started.v1", of_run(json!({}))),
            (
                "run.step_started.v1",
                of_run(json!({"stepId": "start", "attempt": 1})),
            ),
        ];
        if !n.is_multiple_of(5) {
            events.push(("run.succeeded.v1", of_run(json!({}))));
        }
        for (recorded_type, data) in events {
            self.of_org(AggregateType::Run, &run, recorded_type, data)
                .await;
        }
        let secret = self.seal(Binding::Name(AccountId(1)), "whsec").await;
        let created = json!({"id": hook, "url": "https://a.example", "events": ["run.*"],
                             "secret": secret});
        self.of_org(AggregateType::Webhook, &hook, "webhook.created.v1", created)
            .await;
        let disabled = json!({"id": hook, "reason": "410"});
        self.of_org(
            AggregateType::Webhook,
            &hook,
            "webhook.disabled.v1",
            disabled,
        )
        .await;
        if n.is_multiple_of(3) {
            let (key, hook) = (json!({"keyId": key}), (hook.clone(), json!({"id": hook})));
            self.of_org(AggregateType::Key, &format!("k{n}"), "key.revoked.v1", key)
                .await;
            self.of_org(
                AggregateType::Webhook,
                &hook.0,
                "webhook.deleted.v1",
                hook.1,
            )
            .await;
        }
        for attempt in 1..=2 {
            let outcome = if attempt == 1 {
                json!({"outcome": "RETRYING", "nextAttemptAt": now()})
            } else {
                json!({"outcome": "SUCCEEDED"})
            };
            let mut attempted = json!({"deliveryId": delivery, "webhookId": hook,
                "eventId": uuid::Uuid::nil(), "eventSequence": 1, "type": "run.succeeded",
                "attempt": attempt, "at": now(), "durationMs": 3, "status": 200,
                "error": null, "response": "ok"});
            attempted
                .as_object_mut()
                .unwrap()
                .extend(outcome.as_object().unwrap().clone());
            self.of_org(
                AggregateType::Delivery,
                &delivery,
                "delivery.attempted.v1",
                attempted,
            )
            .await;
        }
    }

    /// Persons with circles and positions; every fourth is forgotten.
    async fn persons(&mut self) {
        let n = self.round;
        let (person, circle) = (n.to_string(), format!("c{n}"));
        let ada = AccountId(n);
        let account = json!({"accountId": n, 
            "name": self.seal(Binding::Name(ada), "Ada").await,
            "email": self.seal(Binding::Email(ada), "a@b.c").await,
            "passwordHash": self.seal(Binding::Password(ada), "x").await});
        self.nobodys(
            AggregateType::Account,
            &person,
            "account.registered.v1",
            account,
        )
        .await;
        let place = json!({"name": "Home", "lat": 1.5, "lng": 2.5, "radius_m": 100.0});
        let watched = Binding::WatchedPlace(ada, "p1".into());
        let place = self.seal(watched, &place.to_string()).await;
        let named = Binding::CircleName(CircleOwner::Account(ada), circle.as_str().into());
        let named = self.seal(named, "Family").await;
        for (recorded_type, data) in [
            (
                "circle.created.v1",
                json!({"circleId": circle, "owner": {"account": n},
                       "name": named}),
            ),
            (
                "circle.member_joined.v1",
                json!({"circle_id": circle, "user_id": n}),
            ),
            (
                "circle.member_joined.v1",
                json!({"circle_id": circle, "user_id": n + 1}),
            ),
            (
                "circle.member_left.v1",
                json!({"circle_id": circle, "user_id": n + 1}),
            ),
            (
                "circle.place_added.v1",
                json!({"circleId": circle, "placeId": "p1", "by": n, "place": place}),
            ),
        ] {
            self.nobodys(AggregateType::Circle, &circle, recorded_type, data)
                .await;
        }
        self.alarms(ada, &circle).await;
        let pause = json!({"accountId": n, "until": "2036-01-01T00:00:00Z"});
        let account = AggregateType::Account;
        self.nobodys(account, &person, "account.sharing_paused.v1", pause)
            .await;
        let resume = json!({"accountId": n});
        self.nobodys(account, &person, "account.sharing_resumed.v1", resume)
            .await;
        let fix = json!({"lat": 1.5, "lng": 2.5, "accuracy": 3.0, "speed": null,
                         "place_name": "Café", "battery": 50});
        for _ in 0..2 {
            let at = Utc::now();
            let fix = self
                .seal(Binding::Position(ada, at), &fix.to_string())
                .await;
            let fix = json!({"user_id": n, "recorded_at": at, "sealed": fix});
            self.nobodys(AggregateType::Track, &person, "location.updated.v1", fix)
                .await;
        }
        if n.is_multiple_of(4) {
            let forgotten = json!({"accountId": n});
            self.nobodys(account, &person, "account.forgotten.v1", forgotten)
                .await;
            let owner = Owner::Account(AccountId(n));
            self.log().vault().forget(&owner).await.unwrap();
        }
    }
    /// A call for help with an answer, and a person who comes to a place.
    async fn alarms(&mut self, person: AccountId, circle: &str) {
        let (call, at) = (format!("s{person}"), Utc::now());
        let sealed = self
            .seal(Binding::CallForHelp(person, call.as_str().into()), "{}")
            .await;
        let mut data = json!({"sos_id": call, "user_id": person, "audience": [], "late": false,
                              "recorded_at": at, "sealed": sealed});
        let kind = AggregateType::Sos;
        self.nobodys(kind, &call, "sos.triggered.v1", data.clone())
            .await;
        data["by"] = json!(person);
        self.nobodys(kind, &call, "sos.acknowledged.v1", data).await;
        let crossing = Binding::Crossing {
            account: person,
            circle: circle.into(),
            place: "p1".into(),
            at,
        };
        let sealed = self.seal(crossing, "{}").await;
        let entered = json!({"user_id": person, "circle_id": circle, "place_id": "p1",
                             "recorded_at": at, "sealed": sealed});
        let id = format!("{circle}-{person}");
        self.nobodys(AggregateType::Presence, &id, "place.entered.v1", entered)
            .await;
    }
}
