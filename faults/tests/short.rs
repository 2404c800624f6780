//! A short form of `make faults`.

use faults::{Deed, Options, run};

/// Long enough for each of the servers to be hurt some time or other, over many runs of all tests.
const SECONDS: u64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_processes_and_servers_are_killed() {
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let options = Options {
        seconds: SECONDS,
        seed,
        nats: 1,
        hostile: true,
        deeds: Deed::choose(&[], &[]),
        ..Options::default()
    };
    println!("SEED={seed}");
    let report = Box::pin(run(&options)).await;
    assert!(report.is_clean(), "{report}");
    assert!(
        report.deeds() > 0 && report.acknowledged() > 100,
        "{report}"
    );
}
