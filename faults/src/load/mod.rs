//! The load: commands of every kind, as clients send them.

mod circles;
pub(crate) mod exports;
pub(crate) mod forgetting;
mod limits;
mod own_reads;
mod persons;
mod positions;
mod records;
mod schedules;
mod settings;
mod trespass;
mod workflows;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::Method;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::client::{Body, Client, Command};
use crate::nemesis::Done;
use crate::notes::{ExpectedEvent, Note, Outcome};
use crate::world::{Org, Person, World};
use hostile::Dice;

/// Numbers of workers that act for organizations, and for persons.
const OF_ORGS: usize = 6;
const OF_PERSONS: usize = 3;
/// A worker's longest pause between two commands, in milliseconds.
const PAUSE: u64 = 60;

/// How long it takes at most until forgetting that was broken off is taken up, and to complete it.
const UNFINISHED: Duration = Duration::from_secs(30);

/// The workers' shared state.
pub(crate) struct Load {
    pub(crate) client: Client,
    pub(crate) world: World,
    /// The address that webhooks and HTTP steps call.
    pub(crate) receiver: String,
}

type Act = for<'a> fn(&'a Load, &'a mut Dice) -> BoxFuture<'a, ()>;

/// Actions for organizations, by weight.
const ORG_ACTS: &[(usize, Act)] = &[
    (26, |load, dice| Box::pin(workflows::trigger(load, dice))),
    (4, |load, dice| Box::pin(workflows::cancel(load, dice))),
    (3, |load, dice| Box::pin(workflows::retry(load, dice))),
    (3, |load, dice| Box::pin(workflows::put(load, dice))),
    (5, |load, dice| Box::pin(workflows::answer(load, dice))),
    (14, |load, dice| Box::pin(records::create(load, dice))),
    (20, |load, dice| Box::pin(records::put(load, dice))),
    (7, |load, dice| Box::pin(records::delete(load, dice))),
    (4, |load, dice| Box::pin(records::lines(load, dice))),
    (2, |load, dice| Box::pin(settings::make_webhook(load, dice))),
    (2, |load, dice| {
        Box::pin(settings::change_webhook(load, dice))
    }),
    (1, |load, dice| {
        Box::pin(settings::delete_webhook(load, dice))
    }),
    (1, |load, dice| {
        Box::pin(settings::rotate_secret(load, dice))
    }),
    (1, |load, dice| Box::pin(settings::replay(load, dice))),
    (2, |load, dice| Box::pin(settings::make_key(load, dice))),
    (1, |load, dice| Box::pin(settings::revoke_key(load, dice))),
    (1, |load, dice| Box::pin(circles::of_org(load, dice))),
    (1, |load, dice| Box::pin(circles::invite_of_org(load, dice))),
];

/// Actions of persons, by weight.
const PERSON_ACTS: &[(usize, Act)] = &[
    (30, |load, dice| Box::pin(positions::one(load, dice))),
    (10, |load, dice| Box::pin(positions::several(load, dice))),
    (4, |load, dice| Box::pin(positions::pause(load, dice))),
    (3, |load, dice| Box::pin(circles::make(load, dice))),
    (4, |load, dice| Box::pin(circles::invite(load, dice))),
    (6, |load, dice| Box::pin(circles::join(load, dice))),
    (4, |load, dice| Box::pin(circles::leave(load, dice))),
    (3, |load, dice| Box::pin(circles::add_place(load, dice))),
    (2, |load, dice| Box::pin(circles::remove_place(load, dice))),
    (4, |load, dice| Box::pin(persons::call_for_help(load, dice))),
    (5, |load, dice| Box::pin(persons::answer_a_call(load, dice))),
    (2, |load, dice| Box::pin(persons::sign_in_again(load, dice))),
    (1, |load, dice| {
        Box::pin(persons::change_password(load, dice))
    }),
    (2, |load, dice| {
        Box::pin(persons::register_twice(load, dice))
    }),
];

/// What the hostile tenant tries besides what its crowd does.
const TRESPASSES: &[(usize, Act)] = &[(1, |load, dice| Box::pin(trespass::try_one(load, dice)))];

impl Load {
    fn org(&self, dice: &mut Dice) -> &Org {
        &self.world.orgs[dice.below(self.world.orgs.len())]
    }

    fn person(&self, dice: &mut Dice) -> &Person {
        &self.world.persons[dice.below(self.world.persons.len())]
    }
}

/// Ends what would continue on its own, and waits for the workers, which end with the client.
pub(crate) async fn end(load: &Load, mut dice: Dice, done: &Done, workers: Vec<JoinHandle<()>>) {
    trespass::end_webhooks(load, &mut dice).await;
    schedules::end(load, &mut dice, done).await;
    for worker in workers {
        worker.await.expect("a worker that ends by itself");
    }
    let is_unsure =
        |note: &Note| note.command == "forget" && matches!(note.outcome, Outcome::Unknown);
    if load.client.notes.commands().iter().any(is_unsure) {
        tokio::time::sleep(UNFINISHED).await;
    }
}

/// Starts all workers; they end once the client is marked as over.
pub(crate) fn start(load: &Arc<Load>, dice: &Dice) -> Vec<JoinHandle<()>> {
    let mut workers = Vec::new();
    let worker = |name: String, acts: &'static [(usize, Act)]| {
        let (load, mut dice) = (load.clone(), dice.of(&name));
        tokio::spawn(async move {
            while !load.client.is_over() {
                dice.weigh(acts)(&load, &mut dice).await;
                tokio::time::sleep(dice.millis(1..PAUSE)).await;
            }
        })
    };
    for nth in 0..OF_ORGS {
        workers.push(worker(format!("org {nth}"), ORG_ACTS));
    }
    for nth in 0..OF_PERSONS {
        workers.push(worker(format!("person {nth}"), PERSON_ACTS));
    }
    if load.world.neighbour.is_some() {
        workers.push(worker("trespasser".to_owned(), TRESPASSES));
    }
    for nth in 0..load.world.orgs.len() {
        let (load, dice) = (load.clone(), dice.of(&format!("limits {nth}")));
        workers.push(tokio::spawn(limits::press(load, dice, nth)));
    }
    for nth in 0..2 {
        let (load, dice) = (load.clone(), dice.of(&format!("guests {nth}")));
        workers.push(tokio::spawn(forgetting::come_and_go(load, dice)));
    }
    for nth in 0..3 {
        let (load, dice) = (load.clone(), dice.of(&format!("own reads {nth}")));
        workers.push(tokio::spawn(own_reads::check(load, dice, nth)));
    }
    for nth in 0..2 {
        let (load, dice) = (load.clone(), dice.of(&format!("exports {nth}")));
        workers.push(tokio::spawn(exports::read(load, dice)));
    }
    workers
}

/// Pauses briefly: there is nothing yet to act on.
async fn nothing_to_do() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// A POST of JSON.
fn post(
    name: &'static str,
    token: &str,
    path: String,
    body: Value,
    expected: Vec<ExpectedEvent>,
) -> Command {
    Command {
        name,
        method: Method::POST,
        path,
        token: token.to_owned(),
        body: Body::Json(body),
        keyed: false,
        expected,
    }
}

impl Command {
    /// The same under an `Idempotency-Key` with the given probability in percent.
    fn keyed(self, dice: &mut Dice, percent: usize) -> Self {
        let keyed = dice.chance(percent);
        Self { keyed, ..self }
    }

    fn by(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// The same without a body.
    fn bare(self) -> Self {
        let body = Body::None;
        Self { body, ..self }
    }
}
