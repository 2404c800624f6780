//! Writes persons, circles and waiting runs like the services would, many at once.

use std::ops::Range;

use chrono::{DateTime, TimeDelta, Utc};
use event_log::{Binding, Commit, EventLog, Expected};
use futures::future::join_all;
use futures::{StreamExt as _, stream};
use schemas::circle::{self, CircleOwner};
use schemas::claim::Claimed;
use schemas::run::Way;
use schemas::{
    AccountId, AggregateType, CircleId, Event, OrgId, RunId, SYSTEM_ORG, StepId, StreamId,
    WorkflowId, account, run, workflow,
};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::large::fill::commit;
use crate::system::System;

pub(super) const PERSONS_A_FAMILY: usize = 10;
pub(super) const EVENTS_A_RUN: usize = 6;
/// The default limit of open runs of an organization.
pub(super) const RUNS_AN_ORGANIZATION: usize = 250_000;
pub(super) const WORKFLOW: &str = "later";
/// Number of commits that are awaited together.
const AT_ONCE: usize = 10_000;
/// Families whose keys are created concurrently.
const FAMILIES_AT_ONCE: usize = 25;
/// Has the length of a real hash.
const PASSWORD_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRvcm90aGVy$\
                             uH1vWh8Yf3m0cQ4mXz7VwT5o2sJb9kRrN6eLdPqAiGE";

/// Writes into an empty log.
pub(super) struct Fill {
    log: EventLog,
    began: DateTime<Utc>,
}

impl Fill {
    pub(super) async fn open(system: &System) -> Self {
        Self {
            log: system.log().await,
            began: Utc::now(),
        }
    }

    pub(super) fn log(&self) -> &EventLog {
        &self.log
    }

    /// Registers `count` families, each with a circle of its own.
    pub(super) async fn families(&self, count: usize) {
        for numbers in in_parts(count, AT_ONCE / PERSONS_A_FAMILY) {
            let families = stream::iter(numbers.map(|number| self.family(number)));
            let commits = families.buffered(FAMILIES_AT_ONCE).concat().await;
            self.write(commits).await;
        }
    }

    /// Writes `count` runs, spread over the organizations, that continue in a day.
    pub(super) async fn waiting_runs(&self, orgs: &[OrgId], count: usize) {
        for numbers in in_parts(count, AT_ONCE) {
            let runs = numbers.map(|number| self.waiting_run(&orgs[number % orgs.len()], number));
            self.write(runs.collect()).await;
        }
    }

    async fn write(&self, commits: Vec<Commit>) {
        for position in self.log.commit_each(commits).await {
            position.expect("a commit");
        }
    }

    async fn seal(&self, binding: Binding, text: &str) -> schemas::Sealed {
        let sealed = self.log.vault().seal(&binding, text).await;
        sealed.expect("a sealed text")
    }

    /// The commits of its persons, and then of their circle.
    async fn family(&self, number: usize) -> Vec<Commit> {
        let first = number * PERSONS_A_FAMILY;
        let persons = first..first + PERSONS_A_FAMILY;
        let accounts = persons.clone().map(|person| self.account(person));
        let mut commits = join_all(accounts).await;
        commits.push(self.circle(persons).await);
        commits
    }

    /// Registers a person, and the claim on their address.
    async fn account(&self, number: usize) -> Commit {
        let (id, email) = (account_id(number), format!("person{number}@example.com"));
        let registered = Event::AccountRegistered(account::Registered {
            account_id: id,
            name: self.seal(Binding::Name(id), "A Person").await,
            email: self.seal(Binding::Email(id), &email).await,
            password_hash: self.seal(Binding::Password(id), PASSWORD_HASH).await,
        });
        let holder = id.to_string();
        let claimed = Event::ClaimClaimed(Claimed { holder });
        let mut both = self.commit(StreamId::of_account(id), vec![registered]);
        let claim = self.commit(self.log.claim("email", &email), vec![claimed]);
        both.writes.extend(claim.writes);
        both
    }

    /// Creates the circle of these persons.
    async fn circle(&self, family: Range<usize>) -> Commit {
        let circle_id = CircleId::from(Uuid::now_v7());
        let owner = CircleOwner::Account(account_id(family.start));
        let binding = Binding::CircleName(owner.clone(), circle_id.clone());
        let mut events = vec![Event::CircleCreated(circle::Created {
            circle_id: circle_id.clone(),
            owner,
            name: self.seal(binding, "Family").await,
        })];
        events.extend(family.map(|person| {
            Event::CircleMemberJoined(circle::MemberJoined {
                circle_id: circle_id.clone(),
                user_id: account_id(person),
            })
        }));
        let org = OrgId::from(SYSTEM_ORG);
        let stream = StreamId::new(&org, AggregateType::Circle, circle_id.as_str());
        self.commit(stream, events)
    }

    fn waiting_run(&self, org: &OrgId, number: usize) -> Commit {
        let run_id = RunId::from(Uuid::now_v7());
        let stream = StreamId::new(org, AggregateType::Run, run_id.as_str());
        let until = self.began + TimeDelta::days(1);
        self.commit(stream, until_its_wait(&run_id, number, until).into())
    }

    fn commit(&self, stream: StreamId, events: Vec<Event>) -> Commit {
        commit(stream, Expected::Empty, events, self.began)
    }
}

/// The events that a runner writes for a run from its trigger to its wait.
fn until_its_wait(run_id: &RunId, number: usize, until: DateTime<Utc>) -> [Event; EVENTS_A_RUN] {
    let run_id = || run_id.clone();
    let workflow_id = || WorkflowId::from(WORKFLOW);
    let (start, later) = (|| StepId::from("start"), || StepId::from("later"));
    let began = |step_id, input| {
        Event::RunStepStarted(run::StepStarted {
            run_id: run_id(),
            workflow_id: workflow_id(),
            step_id,
            attempt: 1,
            input,
        })
    };
    [
        Event::WorkflowTriggered(workflow::Triggered {
            run_id: run_id(),
            workflow_id: workflow_id(),
            workflow_version: 1,
            trigger_payload: Map::from_iter([("number".to_owned(), number.into())]),
        }),
        Event::RunStarted(run::Started {
            run_id: run_id(),
            workflow_id: workflow_id(),
        }),
        began(start(), json!(null)),
        Event::RunStepSucceeded(run::StepSucceeded {
            run_id: run_id(),
            workflow_id: workflow_id(),
            step_id: start(),
            attempt: 1,
            way: Way::Next,
            output: json!({ "number": number }),
        }),
        began(later(), json!({ "seconds": 86_400 })),
        Event::RunWaiting(run::Waiting {
            run_id: run_id(),
            workflow_id: workflow_id(),
            step_id: later(),
            until,
        }),
    ]
}

fn in_parts(count: usize, at_once: usize) -> impl Iterator<Item = Range<usize>> {
    let firsts = (0..count).step_by(at_once);
    firsts.map(move |first| first..(first + at_once).min(count))
}

/// Spread like random ids, which have less in common than consecutive numbers.
fn account_id(number: usize) -> AccountId {
    let spread = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    AccountId(spread >> 11)
}
