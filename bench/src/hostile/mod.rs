//! The effect of strangers and bad neighbours on an ordinary tenant: the same load alone, and
//! beside a crowd that does everything at once that ever hurt.

mod crowd;
mod memory;
mod ordinary;

use std::time::Duration;

use hostile::{Attack, Ground, Neighbour, SECRET, Sink, Size};
use serde_json::json;

pub(crate) use self::crowd::serve;

use self::crowd::Spec;
use self::memory::{Memory, Watch};
use self::ordinary::{Felt, Ordinary};
use crate::export::import_contacts;
use crate::load::{self, Connection};
use crate::report::Report;
use crate::system::System;

/// Number of hostile organizations.
const NEIGHBOURS: usize = 2;
/// Records of each of them, so that its feeds and exports are long.
const RECORDS: usize = 20_000;
/// Minimum duration of either part: a p99 needs hundreds of requests of the rarest kind.
const AT_LEAST: Duration = Duration::from_secs(30);
/// How long the crowd runs before the tenant starts.
const SETTLES: Duration = Duration::from_secs(5);
/// Warm-up of the tenant before it is measured, both alone and beside the crowd.
const WARMS_UP: Duration = Duration::from_secs(2);
/// Pause after the crowd has left before the next round begins and memory is measured again.
const AFTERWARDS: Duration = Duration::from_secs(10);

/// Measures alone and beside the crowd alternately: one stall of a third of a second determines the
/// p99 of a round, whatever its cause; the median of several rounds shows the crowd's effect.
pub(crate) async fn measure(
    system: &System,
    (time, rounds): (Duration, usize),
    attacks: &[Attack],
    report: &mut Report,
) {
    let time = time.max(AT_LEAST);
    let sink = Sink::start().await.expect("a receiver");
    let mut ground = Ground {
        commands: system.addr(),
        queries: system.addr(),
        sockets: system.addr(),
        sink: sink.addr(),
        neighbours: Vec::new(),
        size: Size::LARGE,
        seed: 1,
    };
    for _ in 0..NEIGHBOURS {
        ground.neighbours.push(neighbour(system).await);
    }
    for refused in hostile::prepare(&ground).await {
        eprintln!("refused to the crowd: {refused}");
    }
    let attacks = if attacks.is_empty() {
        &Attack::ALL[..]
    } else {
        attacks
    };
    let attacks = attacks.to_vec();
    let spec = Spec { ground, attacks }.write(system);
    let mut ordinary = Ordinary::settle(system).await;
    ordinary.load(WARMS_UP).await;
    let before = Memory::now();
    let watch = Watch::start();
    let mut felt = Vec::new();
    for round in 1..=rounds {
        let alone = ordinary.load(time).await;
        let crowd = system.spawn_self(&["--crowd", &spec]).await;
        tokio::time::sleep(SETTLES).await;
        ordinary.load(WARMS_UP).await;
        let beside = ordinary.load(time).await;
        eprintln!("calls that wait: {}", sink.held());
        eprintln!("what the crowd got:\n{}", crowd::tally(crowd.addr).await);
        drop(crowd);
        tokio::time::sleep(AFTERWARDS).await;
        let pairs = alone.into_iter().zip(beside);
        let pairs: Vec<Pair> = pairs
            .map(|(alone, beside)| Pair { alone, beside })
            .collect();
        for pair in &pairs {
            let (alone, beside) = pair.percentiles(99);
            eprintln!(
                "round {round}: {}, p99 {beside:.1?}, {alone:.1?} alone",
                pair.alone.what
            );
        }
        felt.push(pairs);
    }
    let most = watch.stop().await;
    drop(sink);
    let after = Memory::now();

    let kinds = felt.first().map_or(0, Vec::len);
    for kind in 0..kinds {
        tell(
            &felt.iter().map(|pairs| &pairs[kind]).collect::<Vec<_>>(),
            report,
        );
    }
    for program in ["waypost", "nats-server", "postgres"] {
        let of = |memory: &Memory| memory.of(program);
        report.grown(program, [of(&before), of(&most), of(&after)]);
    }
}

/// The times of one kind of request in one round.
struct Pair {
    alone: Felt,
    beside: Felt,
}

impl Pair {
    fn percentiles(&self, percent: usize) -> (Duration, Duration) {
        (
            self.alone.percentile(percent),
            self.beside.percentile(percent),
        )
    }
}

/// Reports one kind of request over all rounds.
fn tell(rounds: &[&Pair], report: &mut Report) {
    let what = rounds[0].alone.what;
    for (percent, aim) in [(50, ""), (99, "at most 3")] {
        let pairs: Vec<_> = rounds
            .iter()
            .map(|pair| pair.percentiles(percent))
            .collect();
        report.slower(&format!("{what}, p{percent}"), &pairs, aim);
    }
    let alone: Vec<_> = rounds.iter().map(|pair| &pair.alone).collect();
    let beside: Vec<_> = rounds.iter().map(|pair| &pair.beside).collect();
    for (when, felt) in [("alone", alone), ("beside", beside)] {
        let (wrong, sent) = (
            felt.iter().map(|felt| felt.wrong()),
            felt.iter().map(|felt| felt.sent()),
        );
        let told = felt
            .iter()
            .map(|felt| felt.told())
            .filter(|told| !told.is_empty());
        let told: Vec<_> = told.collect();
        let what = format!("{what}: refused or unanswered, {when}");
        report.refused(&what, wrong.sum(), sent.sum(), &told.join(", "));
    }
}

/// Creates an organization with many records, a key with all rights and one that soon reaches its
/// limit.
async fn neighbour(system: &System) -> Neighbour {
    let (org, key) = system.organization().await;
    import_contacts(system, &org, RECORDS).await;
    let set = ["secret", "set", "--org", &org, SECRET.name, "--hosts"];
    let set = [&set[..], &[SECRET.host]].concat();
    system.waypost_reading(&set, SECRET.value).await;
    let terms = json!({"name": "limited", "scopes": ["workflows:trigger"], "rateLimit": 10});
    let mut connection = Connection::open(system.addr()).await;
    let request = load::post("/api/v1/keys", &key, &terms.to_string());
    let made = connection.send_for_body(&request).await;
    let limited_key = made["key"].as_str().expect("a key").to_owned();
    Neighbour {
        org,
        key,
        limited_key,
    }
}
