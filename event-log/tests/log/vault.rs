//! Sealing and forgetting.

use std::time::Duration;

use event_log::{Binding, EventLog, LogSettings, VaultError};
use futures::future::join_all;
use schemas::location::Updated;
use schemas::{AccountId, Event, OrgId, Sealed};
use serde_json::json;

use crate::support::{OwnServer, TestLog, holds, keyring, raw, settings};

fn person(number: u64) -> Binding {
    Binding::Name(AccountId(number))
}

#[tokio::test]
async fn what_was_sealed_opens_for_its_owner_in_every_process() {
    let log = TestLog::new().await;
    let another = log.another().await;
    let org = |id: &str| Binding::Secret(OrgId::from(id), "TOKEN".to_owned());
    for owner in [person(1), org("o1"), org("an *odd* > id\n"), org("")] {
        for text in ["", "jo@example.com", "ä\0\n", &"x".repeat(100_000)] {
            let sealed = log.vault().seal(&owner, text).await.unwrap();
            assert!(text.is_empty() || !sealed.ciphertext().contains(text));
            assert_eq!(another.vault().unseal(&owner, &sealed).await.unwrap(), text);
            let again = log.vault().seal(&owner, text).await.unwrap();
            assert_ne!(sealed, again, "equal values must not look equal");
        }
    }
}

#[tokio::test]
async fn nobody_elses_value_opens() {
    let log = TestLog::new().await;
    let vault = log.vault();
    let sealed = vault.seal(&person(1), "mine").await.unwrap();
    vault.seal(&person(2), "other").await.unwrap();
    let outcome = vault.unseal(&person(2), &sealed).await;
    assert!(matches!(outcome, Err(VaultError::Broken)));
    let stranger = vault.unseal(&person(3), &sealed).await;
    assert!(matches!(stranger, Err(VaultError::Forgotten)));
    let cut = &sealed.ciphertext()[..sealed.ciphertext().len() - 4];
    for broken in ["", "v1.", "v1.AAAA", "v2.AAAA", "v3.AAAA", "v2.!", cut] {
        let broken = Sealed::from_ciphertext(broken.to_owned());
        let outcome = vault.unseal(&person(1), &broken).await;
        assert!(matches!(outcome, Err(VaultError::Broken)), "{broken:?}");
    }
}

#[tokio::test]
async fn what_was_moved_to_another_field_or_event_does_not_open() {
    let log = TestLog::new().await;
    let (vault, at) = (log.vault(), "2026-11-21T08:30:00Z".parse().unwrap());
    let (ada, org) = (AccountId(1), OrgId::from("o1"));
    let places = [
        Binding::Name(ada),
        Binding::Email(ada),
        Binding::NamedPhone(ada),
        Binding::VerifiedPhone(ada),
        Binding::Position(ada, at),
        Binding::Position(ada, at + Duration::from_micros(1)),
        Binding::CallForHelp(ada, "s1".into()),
        Binding::CallForHelp(ada, "s2".into()),
        Binding::WebhookSecret(org.clone(), "h1".into()),
        Binding::Secret(org.clone(), "CRM_TOKEN".to_owned()),
        Binding::Secret(org, "PUBLIC".to_owned()),
    ];
    for place in &places {
        let sealed = vault.seal(place, "x").await.unwrap();
        for other in &places {
            let opened = vault.unseal(other, &sealed).await.ok();
            assert_eq!(opened.is_some(), other == place, "{place:?} at {other:?}");
        }
        // Labelled as a text of earlier versions, it opens just as little.
        let older = sealed.ciphertext().replacen("v2.", "v1.", 1);
        let outcome = vault.unseal(place, &Sealed::from_ciphertext(older)).await;
        assert!(matches!(outcome, Err(VaultError::Broken)), "{place:?}");
    }
}

#[tokio::test]
async fn many_who_seal_first_share_one_key() {
    let log = TestLog::new().await;
    let others = join_all((0..5).map(|_| log.another())).await;
    let owner = person(7);
    let seal = others.iter().map(|other| other.vault().seal(&owner, "x"));
    for sealed in join_all(seal).await {
        let opened = log.vault().unseal(&owner, &sealed.unwrap()).await;
        assert_eq!(opened.unwrap(), "x");
    }
}

#[tokio::test]
async fn a_forgotten_owner_is_unreadable_and_stays_so() {
    let log = TestLog::new().await;
    let (vault, owner) = (log.vault(), person(1));
    let neighbour = vault.seal(&person(2), "stays").await.unwrap();
    let old = vault.seal(&owner, "secret").await.unwrap();
    vault.forget(&owner.owner()).await.unwrap();
    let outcome = vault.unseal(&owner, &old).await;
    assert!(matches!(outcome, Err(VaultError::Forgotten)));
    vault.forget(&owner.owner()).await.unwrap();

    let new = vault.seal(&owner, "a new life").await.unwrap();
    assert_eq!(vault.unseal(&owner, &new).await.unwrap(), "a new life");
    let outcome = vault.unseal(&owner, &old).await;
    assert!(matches!(outcome, Err(VaultError::Broken)));
    assert_eq!(vault.unseal(&person(2), &neighbour).await.unwrap(), "stays");
    let outcome = log.another().await.vault().unseal(&owner, &old).await;
    assert!(matches!(outcome, Err(VaultError::Broken)));
}

#[tokio::test]
async fn other_processes_forget_within_the_time_they_hold_keys() {
    let log = TestLog::with(LogSettings {
        vault_cache_ms: 300,
        ..settings()
    })
    .await;
    let (other, owner) = (log.another().await, person(1));
    let sealed = log.vault().seal(&owner, "secret").await.unwrap();
    other.vault().unseal(&owner, &sealed).await.unwrap();
    log.vault().forget(&owner.owner()).await.unwrap();
    let forgotten = async {
        while other.vault().unseal(&owner, &sealed).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let limit = Duration::from_secs(1);
    tokio::time::timeout(limit, forgotten).await.unwrap();
    let outcome = other.vault().unseal(&owner, &sealed).await;
    assert!(matches!(outcome, Err(VaultError::Forgotten)));
}

#[tokio::test]
async fn forgetting_many_times_at_once_is_forgetting_once() {
    let log = TestLog::new().await;
    let name = person(1);
    log.vault().seal(&name, "secret").await.unwrap();
    let owner = name.owner();
    let outcomes = join_all((0..10).map(|_| log.vault().forget(&owner))).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

#[tokio::test]
async fn a_forgotten_key_does_not_stay_on_the_disk() {
    let mut own = OwnServer::start().await;
    let owner = person(42);
    let sealed = own.log.vault().seal(&owner, "secret").await.unwrap();
    own.log.vault().seal(&person(43), "x").await.unwrap();
    let raw = raw(own.settings.nats_url()).await;
    let bucket = raw.get_key_value("KEYS").await.unwrap();
    let wrapped = bucket.get("account.42").await.unwrap().unwrap();
    let data = own.home.path().join("nats/data");
    assert!(holds(&data, &wrapped), "the search finds what is there");
    own.log.vault().forget(&owner.owner()).await.unwrap();
    assert!(!holds(&data, &wrapped));
    own.nats.restart().await.unwrap();
    assert!(!holds(&data, &wrapped));
    let after = EventLog::connect(&own.settings, keyring()).await.unwrap();
    let outcome = after.vault().unseal(&owner, &sealed).await;
    assert!(matches!(outcome, Err(VaultError::Forgotten)));
}

#[tokio::test]
async fn what_is_personal_in_an_event_is_shown_until_the_person_is_forgotten() {
    let log = TestLog::new().await;
    let user_id = AccountId(12);
    let recorded_at = "2026-11-21T08:30:00Z".parse().unwrap();
    let position = Binding::Position(user_id, recorded_at);
    let personal = json!({ "lat": 52.5, "lng": 13.4, "place_name": null });
    let sealed = log.vault().seal(&position, &personal.to_string()).await;
    let event = Event::LocationUpdated(Updated {
        user_id,
        recorded_at,
        sealed: sealed.unwrap(),
    });
    assert_eq!(
        log.reveal(&event).await.unwrap(),
        json!({ "user_id": 12, "recorded_at": "2026-11-21T08:30:00Z",
                "lat": 52.5, "lng": 13.4, "place_name": null })
    );
    log.vault().forget(&person(12).owner()).await.unwrap();
    assert_eq!(
        log.reveal(&event).await.unwrap(),
        json!({ "user_id": 12, "recorded_at": "2026-11-21T08:30:00Z" })
    );
}
