//! Checkpoints of persons and circles, for a start that does not read the whole log.

use domain::circles::Circles;
use event_log::{EventLog, Fold, FoldCheckpoint};
use schemas::Log;
use tokio::time::{sleep, timeout};
use workflow_runner::people::People;

use crate::support::{LOOK, TIMEOUT, World};

async fn checkpoint(log: &EventLog) -> FoldCheckpoint {
    let checkpoint = FoldCheckpoint::open(log, Fold::Circles, Circles::FORM).await;
    checkpoint.unwrap()
}

async fn noted(log: &EventLog) -> (u64, Circles) {
    let noted = async {
        loop {
            if let Some(noted) = checkpoint(log).await.read().await {
                return noted;
            }
            sleep(LOOK).await;
        }
    };
    timeout(TIMEOUT, noted).await.expect("circles noted")
}

#[tokio::test]
async fn a_start_goes_on_from_what_was_noted() {
    let world = World::new().await;
    let access = world.access().await;
    let ada = world.person(&access, "Ada").await;
    let bob = world.person(&access, "Bob").await;
    world.circle(&[&ada, &bob]).await;
    let end = world.log.end(Log::Events).await.unwrap().sequence();
    // Folding the log would not give this state.
    let write = checkpoint(&world.log).await;
    let write = write.write(move |encoder| encoder.encode(end, &Circles::default()));
    write.await;
    world.circle(&[&ada]).await;
    let (people, _tail) = People::start(&world.log).await.unwrap();
    people.read(|directory| {
        assert_eq!(directory.circles().circles_of(ada.id).count(), 1);
        assert_eq!(directory.circles().circles_of(bob.id).count(), 0);
    });
}

#[tokio::test]
async fn who_has_read_much_notes_it_for_the_next() {
    let world = World::noting(5).await;
    let access = world.access().await;
    let ada = world.person(&access, "Ada").await;
    let bob = world.person(&access, "Bob").await;
    let family = world.circle(&[&ada, &bob]).await;
    let end = world.log.end(Log::Events).await.unwrap().sequence();
    let (people, tail) = People::start(&world.log).await.unwrap();
    let (through, circles) = noted(&world.log).await;
    assert_eq!(through, end);
    assert!(circles.audience(ada.id).contains(&bob.id));

    let following = tokio::spawn(async move { people.follow(tail).await });
    world.leave(&family, &bob).await;
    for _ in 0..4 {
        world.join(&family, &bob).await;
        world.leave(&family, &bob).await;
    }
    let renewed = async {
        while noted(&world.log).await.0 == through {
            sleep(LOOK).await;
        }
    };
    timeout(TIMEOUT, renewed).await.expect("circles noted anew");
    following.abort();
}
