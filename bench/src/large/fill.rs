//! Fills the log with what a business accumulates over the years: records that change, runs that
//! end, persons that move.

use chrono::{DateTime, TimeDelta, Utc};
use event_log::{Binding, Commit, EventLog, Expected, Write};
use schemas::record::{Contact, Lead, Order, OrderClient, OrderProduct, OrderStatus};
use schemas::{
    AccountId, AggregateType, Context, Event, EventId, NewEvent, OrgId, RecordId, RunId, StepId,
    StreamId, WorkflowId, account, location, run, workflow,
};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::system::System;

/// Events of each aggregate.
pub(crate) const EVENTS_EACH: usize = 5;
/// Positions of each person.
const POSITIONS_EACH: usize = 100;
/// Number of commits that are awaited together.
const AT_ONCE: usize = 10_000;
/// Persons whose keys are created concurrently.
const PERSONS_AT_ONCE: usize = 64;

/// Writes into one organization's part of the log.
pub(crate) struct Fill {
    log: EventLog,
    org: OrgId,
    workflow: WorkflowId,
    began: DateTime<Utc>,
}

/// The kind of the aggregate with a number: of ten, four are contacts, two orders, one a lead,
/// three runs.
#[derive(Clone, Copy)]
enum Kind {
    Contact,
    Order,
    Lead,
    Run,
}

impl Kind {
    fn of(number: usize) -> Self {
        match number % 10 {
            0..=3 => Self::Contact,
            4 | 5 => Self::Order,
            6 => Self::Lead,
            _ => Self::Run,
        }
    }
}

/// Whether the aggregate with this number is a contact.
pub(crate) fn is_contact(number: usize) -> bool {
    matches!(Kind::of(number), Kind::Contact)
}

impl Fill {
    pub(crate) async fn open(system: &System, org: &str, workflow: &str) -> Self {
        Self {
            log: system.log().await,
            org: OrgId::from(org),
            workflow: WorkflowId::from(workflow),
            began: Utc::now(),
        }
    }

    /// The log that it writes to.
    pub(crate) fn log(&self) -> &EventLog {
        &self.log
    }

    /// Writes five events of each of `count` aggregates, mixed as they would arrive over time.
    pub(crate) async fn aggregates(&self, count: usize) {
        let mut last: Vec<u64> = vec![0; count];
        for round in 0..EVENTS_EACH {
            let mut numbers = Vec::with_capacity(AT_ONCE);
            for number in 0..count {
                // A run's events arrive together, a record's over the years.
                let is_run = matches!(Kind::of(number), Kind::Run);
                if !is_run || number / 10 % EVENTS_EACH == round {
                    numbers.push(number);
                }
                if numbers.len() == AT_ONCE || number + 1 == count {
                    self.write(&mut numbers, round, &mut last).await;
                }
            }
            eprintln!("round {} of {EVENTS_EACH} is in the log", round + 1);
        }
    }

    /// Writes `count` new orders, starting at number `from`; five of six are completed.
    pub(crate) async fn orders(&self, from: usize, count: usize) {
        for first in (from..from + count).step_by(AT_ONCE) {
            let numbers = first..(first + AT_ONCE).min(from + count);
            let commits = numbers.map(|number| {
                let mut order = self.order(number, 0);
                order.status = match number % 6 {
                    0 => OrderStatus::Active,
                    _ => OrderStatus::Completed,
                };
                let stream = StreamId::new(&self.org, AggregateType::Order, order.id.as_str());
                let events = vec![Event::OrderCreated(order)];
                commit(stream, Expected::Empty, events, self.began)
            });
            for position in self.log.commit_each(commits.collect()).await {
                position.expect("a commit");
            }
        }
    }

    async fn write(&self, numbers: &mut Vec<usize>, round: usize, last: &mut [u64]) {
        let commits = numbers.iter().map(|number| match Kind::of(*number) {
            Kind::Run => self.run(*number),
            kind => self.record(kind, *number, round, last[*number]),
        });
        let written = self.log.commit_each(commits.collect()).await;
        for (number, position) in numbers.drain(..).zip(written) {
            last[number] = position.expect("a commit").sequence();
        }
    }

    fn record(&self, kind: Kind, number: usize, round: usize, last: u64) -> Commit {
        let (aggregate, event) = match (kind, round) {
            (Kind::Contact, 0) => {
                let contact = self.contact(number, round);
                (AggregateType::Contact, Event::ContactCreated(contact))
            }
            (Kind::Contact, _) => {
                let contact = self.contact(number, round);
                (AggregateType::Contact, Event::ContactUpdated(contact))
            }
            (Kind::Order, 0) => {
                let order = self.order(number, round);
                (AggregateType::Order, Event::OrderCreated(order))
            }
            (Kind::Order, _) => {
                let order = self.order(number, round);
                (AggregateType::Order, Event::OrderUpdated(order))
            }
            (_, 0) => (
                AggregateType::Lead,
                Event::LeadCreated(self.lead(number, round)),
            ),
            _ => (
                AggregateType::Lead,
                Event::LeadUpdated(self.lead(number, round)),
            ),
        };
        let expected = match last {
            0 => Expected::Empty,
            last => Expected::At(last),
        };
        let stream = StreamId::new(&self.org, aggregate, id(number).as_str());
        commit(stream, expected, vec![event], self.began)
    }

    fn contact(&self, number: usize, round: usize) -> Contact {
        Contact {
            id: id(number),
            first_name: Some(format!("First{}", number % 977)),
            last_name: Some(format!("Last{}", number % 1_009)),
            email: Some(format!("person{number}@example.com")),
            phone: Some(format!("+4940{number:07}")),
            job_title: Some(format!("Job {round}")),
            company_id: Some(format!("company-{}", number % 5_003)),
            company_name: Some(format!("Company {}", number % 5_003)),
            city: Some("Hamburg".to_owned()),
            country: Some("Germany".to_owned()),
            owner: Some(format!("owner{}@example.com", number % 7)),
            created_at: self.time(number),
        }
    }

    fn order(&self, number: usize, round: usize) -> Order {
        let statuses = [
            OrderStatus::PaymentPending,
            OrderStatus::Active,
            OrderStatus::Completed,
            OrderStatus::Cancelled,
        ];
        Order {
            id: id(number),
            order_number: format!("O-{number}"),
            status: statuses[(number / 10 + round) % statuses.len()],
            amount: i64::try_from(number % 100_000).expect("small"),
            plan: Some("Basic".to_owned()),
            client: OrderClient {
                name: Some(format!("Client {}", number % 997)),
                email: Some(format!("client{}@example.com", number % 997)),
            },
            product: OrderProduct {
                name: Some("Product".to_owned()),
            },
            created_at: self.time(number),
        }
    }

    fn lead(&self, number: usize, round: usize) -> Lead {
        Lead {
            id: id(number),
            name: format!("Lead {number}"),
            phone: None,
            email: Some(format!("lead{number}@example.com")),
            service: Some("Heating".to_owned()),
            source: Some("web".to_owned()),
            status: Some(format!("round {round}")),
            score: i64::try_from(number % 100).expect("small"),
            created_at: self.time(number),
        }
    }

    /// A run from its trigger to its end.
    fn run(&self, number: usize) -> Commit {
        let (run_id, workflow_id) = (RunId::from(id(number).as_str()), self.workflow.clone());
        let step_id = StepId::from("start");
        let stream = StreamId::new(&self.org, AggregateType::Run, run_id.as_str());
        let mut payload = Map::new();
        payload.insert("number".to_owned(), number.into());
        let events = vec![
            Event::WorkflowTriggered(workflow::Triggered {
                run_id: run_id.clone(),
                workflow_id: workflow_id.clone(),
                workflow_version: 1,
                trigger_payload: payload,
            }),
            Event::RunStarted(run::Started {
                run_id: run_id.clone(),
                workflow_id: workflow_id.clone(),
            }),
            Event::RunStepStarted(run::StepStarted {
                run_id: run_id.clone(),
                workflow_id: workflow_id.clone(),
                step_id: step_id.clone(),
                attempt: 1,
                input: json!(null),
            }),
            Event::RunStepFailed(run::StepFailed {
                run_id: run_id.clone(),
                workflow_id: workflow_id.clone(),
                step_id,
                attempt: 1,
                error: "not this time".to_owned(),
                retry_at: None,
            }),
            Event::RunFailed(run::Failed {
                run_id,
                workflow_id,
                error: "not this time".to_owned(),
            }),
        ];
        commit(stream, Expected::Empty, events, self.began)
    }

    /// Registers `count` persons and writes the positions of each.
    pub(super) async fn persons(&self, count: usize) -> usize {
        let numbers: Vec<usize> = (1..=count).collect();
        for numbers in numbers.chunks(PERSONS_AT_ONCE) {
            let persons = numbers.iter().map(|number| self.person(*number));
            futures::future::join_all(persons).await;
        }
        count * POSITIONS_EACH
    }

    async fn person(&self, number: usize) {
        let account_id = AccountId(number as u64);
        let seal = async |binding: Binding, text: &str| {
            let sealed = self.log.vault().seal(&binding, text).await;
            sealed.expect("a sealed text")
        };
        let registered = Event::AccountRegistered(account::Registered {
            account_id,
            name: seal(Binding::Name(account_id), "A person").await,
            email: seal(Binding::Email(account_id), "person@example.com").await,
            password_hash: seal(Binding::Password(account_id), "none").await,
        });
        let mut positions = Vec::with_capacity(POSITIONS_EACH);
        for nth in 0..POSITIONS_EACH {
            let text = r#"{"lat":53.55,"lng":9.99,"accuracy":5.0,"speed":null,"place_name":null,"battery":null}"#;
            let seconds = i64::try_from(nth).expect("small");
            let recorded_at = self.began - TimeDelta::seconds(seconds);
            positions.push(Event::LocationUpdated(location::Updated {
                user_id: account_id,
                recorded_at,
                sealed: seal(Binding::Position(account_id, recorded_at), text).await,
            }));
        }
        for (stream, events) in [
            (StreamId::of_account(account_id), vec![registered]),
            (StreamId::of_track(account_id), positions),
        ] {
            let commit = commit(stream, Expected::Empty, events, self.began);
            self.log.commit(commit).await.expect("a commit");
        }
    }

    fn time(&self, number: usize) -> DateTime<Utc> {
        let seconds = i64::try_from(number).expect("small");
        self.began - TimeDelta::seconds(seconds * 60)
    }
}

/// The id of the aggregate with this number.
pub(crate) fn id(number: usize) -> RecordId {
    RecordId::from(format!("r{number}"))
}

/// A commit of one decision on one aggregate.
pub(crate) fn commit(
    stream: StreamId,
    expected: Expected,
    events: Vec<Event>,
    time: DateTime<Utc>,
) -> Commit {
    let events = events.into_iter().map(|event| NewEvent {
        id: EventId(Uuid::now_v7()),
        time,
        event,
        context: Context::default(),
        receipt: None,
    });
    Write {
        stream,
        expected,
        events: events.collect(),
    }
    .into()
}
