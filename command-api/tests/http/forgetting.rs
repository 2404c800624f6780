//! Resuming the interrupted forgetting of a person.

use std::time::Duration;

use chrono::DateTime;
use command_api::accounts::Unfinished;
use event_log::{Binding, Commit, EventLog, Expected, VaultError, Write};
use schemas::{AccountId, Context, Event, EventId, NewEvent, Sealed, StreamId, account};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::connect_log;

fn new_id() -> AccountId {
    AccountId(Uuid::new_v4().as_u64_pair().0 >> 11)
}

async fn sealed(log: &EventLog, binding: Binding, text: &str) -> Sealed {
    log.vault().seal(&binding, text).await.unwrap()
}

/// Creates a person with this address whose forgetting was started long ago.
async fn being_forgotten(log: &EventLog, id: AccountId, email: Sealed) {
    let registered = account::Registered {
        account_id: id,
        name: sealed(log, Binding::Name(id), "Ada").await,
        email,
        password_hash: sealed(log, Binding::Password(id), "none").await,
    };
    let forgotten = account::Forgotten { account_id: id };
    let both = [
        Event::AccountRegistered(registered),
        Event::AccountForgotten(forgotten),
    ];
    let events = both.into_iter().map(|event| NewEvent {
        id: EventId(Uuid::now_v7()),
        time: DateTime::UNIX_EPOCH,
        event,
        context: Context::default(),
        receipt: None,
    });
    let commit: Commit = Write {
        stream: StreamId::of_account(id),
        expected: Expected::Empty,
        events: events.collect(),
    }
    .into();
    log.commit(commit).await.unwrap();
}

#[tokio::test]
async fn somebody_who_cannot_be_forgotten_keeps_nobody_else_from_it() {
    let log = connect_log().await;
    let (damaged, other) = (new_id(), new_id());
    let of_nobody = sealed(&log, Binding::Name(damaged), "not an address").await;
    being_forgotten(&log, damaged, of_nobody).await;
    let email = format!("{other}@example.org");
    let email = sealed(&log, Binding::Email(other), &email).await;
    being_forgotten(&log, other, email.clone()).await;

    let shutdown = CancellationToken::new();
    let started = Unfinished::start(connect_log().await, shutdown.clone());
    started.await.unwrap();
    let forgotten = async {
        loop {
            // Another process would hold the key in memory for a while.
            let outside = connect_log().await;
            let read = outside.vault().unseal(&Binding::Email(other), &email).await;
            if matches!(read, Err(VaultError::Forgotten)) {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(30), forgotten).await.unwrap();
    shutdown.cancel();
}
