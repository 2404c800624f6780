//! Runs that are given what events say of a person, and are forgotten with them.

use event_log::{Binding, noted_run};
use schemas::circle::{CircleOwner, Created, MemberJoined};
use schemas::{
    AccountId, AggregateType, CircleId, Event, RunId, Sealed, SosId, StreamId, account, run, sos,
};
use serde_json::json;
use uuid::Uuid;

use crate::world::{World, notify, trigger, workflow};

async fn seal(world: &World, binding: Binding, text: &str) -> Sealed {
    world.log.vault().seal(&binding, text).await.unwrap()
}

/// A person in a circle of the world's organization.
async fn member(world: &World) -> AccountId {
    let id = AccountId(Uuid::new_v4().as_u64_pair().0 >> 12);
    let registered = Event::AccountRegistered(account::Registered {
        account_id: id,
        name: seal(world, Binding::Name(id), "Ada").await,
        email: seal(world, Binding::Email(id), "ada@example.org").await,
        password_hash: seal(world, Binding::Password(id), "hash").await,
    });
    let account = StreamId::of_account(id);
    world.append(&account, None, registered).await;
    let circle_id = CircleId::from(Uuid::new_v4());
    let created = Event::CircleCreated(Created {
        circle_id: circle_id.clone(),
        owner: CircleOwner::Organization(world.org.clone()),
        name: Sealed::from_ciphertext("v1.".to_owned()),
    });
    let circle = StreamId::new(&world.org, AggregateType::Circle, circle_id.as_str());
    let made = world.append(&circle, None, created).await;
    let joined = Event::CircleMemberJoined(MemberJoined {
        circle_id,
        user_id: id,
    });
    world.append(&circle, Some(made), joined).await;
    id
}

/// The person calls for help, and the organization is told of it.
async fn calls(world: &World, person: AccountId) {
    let sos_id = SosId::from(Uuid::new_v4());
    let said = json!({ "lat": 52.5, "lng": 13.4, "message": "Help" }).to_string();
    let binding = Binding::CallForHelp(person, sos_id.clone());
    let call = StreamId::new(&world.org, AggregateType::Sos, sos_id.as_str());
    let triggered = Event::SosTriggered(sos::Triggered {
        sos_id,
        user_id: person,
        audience: Vec::new(),
        late: false,
        recorded_at: chrono::Utc::now(),
        sealed: seal(world, binding, &said).await,
    });
    world.append(&call, None, triggered).await;
}

/// The runs noted for a person, with the sequences of their notes.
async fn noted(world: &World, person: AccountId) -> Vec<(u64, StreamId)> {
    let notes = world.log.load(&world.log.runs_about(person)).await.unwrap();
    let notes = notes.iter();
    notes
        .map(|note| (note.sequence, noted_run(&note.event).unwrap()))
        .collect()
}

fn is_reply(event: &Event) -> bool {
    matches!(event, Event::RunStepSucceeded(done) if done.step_id.as_str() == "reply")
}

async fn waits(world: &World, run: &RunId) {
    let waits = |event: &Event| matches!(event, Event::RunWaiting(_));
    world.until(run, "the wait", waits).await;
}

#[tokio::test]
async fn a_run_that_a_call_for_help_begins_is_noted_before_it_begins() {
    let world = World::new().await;
    let on = json!({ "id": "start", "type": "TRIGGER", "on": { "event": "sos.triggered" } });
    let steps = [on, notify("tell", &json!({}))];
    world.save("w", workflow(&steps)).await;
    let person = member(&world).await;
    let _runner = world.runner().await;
    // What is of no person is not noted for any.
    world.lead("a", 1).await;
    calls(&world, person).await;
    let runs = world.until_runs("w", 1).await;
    let Event::WorkflowTriggered(triggered) = &runs[0].event else {
        panic!("{:?}", runs[0]);
    };
    assert_eq!(triggered.trigger_payload["message"], "Help");
    let noted = noted(&world, person).await;
    assert_eq!(noted.len(), 1);
    assert!(noted[0].0 < runs[0].sequence);
    assert_eq!(noted[0].1, runs[0].stream);
}

#[tokio::test]
async fn a_run_whose_wait_a_call_for_help_ends_is_noted_before_it_ends() {
    let world = World::new().await;
    let wait = json!({ "id": "reply", "type": "WAIT_FOR_EVENT", "event": "sos.*",
                       "timeoutSeconds": 60 });
    world.save("w", workflow(&[trigger(), wait])).await;
    let person = member(&world).await;
    let _runner = world.runner().await;
    let run = world.trigger("w", json!({})).await;
    waits(&world, &run).await;
    calls(&world, person).await;
    world.ended(&run).await;
    let events = world.events(&run).await;
    let mut replies = events.iter().filter(|recorded| is_reply(&recorded.event));
    let reply = replies.next().unwrap();
    let noted = noted(&world, person).await;
    assert_eq!(noted.len(), 1);
    assert!(noted[0].0 < reply.sequence);
    assert_eq!(noted[0].1, reply.stream);
}

#[tokio::test]
async fn an_open_run_that_is_forgotten_is_not_carried_on_and_waits_for_nothing() {
    let world = World::new().await;
    let wait = json!({ "id": "reply", "type": "WAIT_FOR_EVENT", "event": "lead.*",
                       "timeoutSeconds": 60 });
    world.save("w", workflow(&[trigger(), wait])).await;
    let _runner = world.runner().await;
    let gone = world.trigger("w", json!({})).await;
    waits(&world, &gone).await;
    let stream = world.stream(&gone);
    let last = world.log.last(&stream).await.unwrap();
    let forgotten = Event::RunForgotten(run::Forgotten {
        run_id: gone.clone(),
    });
    let seen = last.map(|last| last.sequence);
    let end = world.append(&stream, seen, forgotten).await;
    world.log.erase_before(&stream, end).await.unwrap();
    // An organization's events are matched in order: the second shows that the first is done.
    for id in ["one", "two"] {
        let other = world.trigger("w", json!({})).await;
        waits(&world, &other).await;
        world.lead(id, 1).await;
        world.ended(&other).await;
    }
    assert_eq!(world.names(&gone).await, ["forgotten"]);
}
