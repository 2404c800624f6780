use std::io;
use std::net::TcpListener;
use std::sync::{Mutex, mpsc};

use tokio::sync::mpsc as channel;
use tokio::task::JoinSet;

use super::names::LOOKUPS;
use super::*;

/// Every name has these addresses.
#[derive(Clone)]
struct Fixed(&'static [&'static str]);

impl Names for Fixed {
    fn find(&self, _: &str) -> io::Result<Vec<SocketAddr>> {
        Ok(addresses(self.0))
    }
}

/// Names under `slow.example` are not found before the end of `answered`; the others are found at
/// once. All have a private address.
#[derive(Clone)]
struct Slow {
    begun: channel::UnboundedSender<()>,
    answered: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Names for Slow {
    fn find(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        if name.ends_with("slow.example") {
            let _ = self.begun.send(());
            let _ = self.answered.lock().unwrap().recv();
        }
        Ok(addresses(&["10.0.0.1:0"]))
    }
}

fn addresses(list: &[&str]) -> Vec<SocketAddr> {
    let addresses = list.iter().map(|address| address.parse().unwrap());
    addresses.collect()
}

fn opening(open: &str) -> TargetSettings {
    let open = open.parse().unwrap();
    TargetSettings { open }
}

fn targets(open: &str) -> Targets {
    Targets::new(opening(open), Vec::new()).unwrap()
}

fn get(targets: &Targets, org: &str, address: &str) -> Result<Request, TargetError> {
    targets.request(&OrgId::from(org), Method::GET, address)
}

fn refused(targets: &Targets, address: &str) -> bool {
    let outcome = get(targets, "o", address);
    matches!(outcome.map(drop), Err(TargetError::Refused(_)))
}

/// The error of a request that ends within this time.
async fn error_within(time: Duration, request: Request) -> String {
    let answer = request.with(|request| request.timeout(time)).send().await;
    reason(&answer.unwrap_err())
}

/// The error of calling a name that has these addresses; any server is on this machine.
async fn asked(open: &str, names: &'static [&'static str], port: u16, own: Vec<u16>) -> String {
    let targets = Targets::resolving(opening(open), own, Fixed(names)).unwrap();
    let address = format!("http://hooks.example:{port}/");
    let request = get(&targets, "o", &address).unwrap();
    error_within(Duration::from_millis(500), request).await
}

fn nobody_dialled(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_err()
}

#[tokio::test]
async fn private_addresses_are_refused_before_they_are_dialled() {
    let (closed, open) = (targets("0"), targets("1"));
    for address in [
        "http://127.0.0.1:1/",
        "http://[::1]:1/",
        "http://localhost:1/",
        "http://LOCALHOST.:1/",
        "http://[::ffff:127.0.0.1]/",
        "http://2130706433/",
        "http://0x7f.1/",
    ] {
        assert!(refused(&closed, address), "{address}");
        assert!(!refused(&open, address), "{address}");
    }
    for address in [
        "http://169.254.169.254/latest/meta-data",
        "http://[::ffff:169.254.169.254]/",
        "http://0xa9fea9fe/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
    ] {
        for targets in [&closed, &open, &targets("0.0.0.0/0,::/0")] {
            assert!(refused(targets, address), "{address}");
        }
    }
}

#[test]
fn a_name_leads_only_to_addresses_that_are_public_or_open() {
    let left = |list: &[&str], open: &str| allowed(addresses(list), &open.parse().unwrap());
    let mixed = ["10.0.0.1:0", "1.1.1.1:0", "[::1]:0", "169.254.169.254:0"];
    assert_eq!(left(&mixed, ""), Ok(addresses(&["1.1.1.1:0"])));
    let opened = addresses(&["10.0.0.1:0", "1.1.1.1:0"]);
    assert_eq!(left(&mixed, "10.0.0.0/8"), Ok(opened));
    assert!(left(&["192.168.0.1:0", "[fd00::1]:0"], "").is_err());
    for shut in [
        "169.254.169.254:0",
        "[fe80::1%3]:0",
        "[::ffff:169.254.169.254]:0",
        "[64:ff9b::a9fe:a9fe]:0",
        "[fd00:ec2::254]:0",
    ] {
        assert!(left(&[shut], "0.0.0.0/0,::/0").is_err(), "{shut}");
    }
}

#[tokio::test]
async fn a_name_with_a_private_address_is_dialled_only_where_that_is_open() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for open in ["0", "10.0.0.0/8"] {
        let reason = asked(open, &["127.0.0.1:0"], port, vec![]).await;
        assert!(reason.contains("not on the public internet"), "{reason}");
    }
    assert!(nobody_dialled(&listener));
    // It is open, but no server answers.
    let reason = asked("127.0.0.0/8", &["127.0.0.1:0"], port, vec![]).await;
    assert_eq!(reason, "no answer in time");
    assert!(!nobody_dialled(&listener));
}

#[tokio::test]
async fn no_private_address_is_dialled_at_the_ports_of_the_own_servers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reason = asked("1", &["127.0.0.1:0"], port, vec![4_222, port]).await;
    assert!(reason.contains("not on the public internet"), "{reason}");
    let targets = Targets::new(opening("1"), vec![port]).unwrap();
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
        assert!(refused(&targets, &format!("http://{host}:{port}/")));
        assert!(!refused(&targets, &format!("http://{host}:1/")));
    }
    assert!(nobody_dialled(&listener));
}

#[tokio::test]
async fn names_that_are_slow_to_find_hold_up_no_other_organization() {
    const LONG: Duration = Duration::from_secs(30);
    let (answer, answered) = mpsc::channel();
    let (begun, mut lookups) = channel::unbounded_channel();
    let answered = Arc::new(Mutex::new(answered));
    let names = Slow { begun, answered };
    let targets = Targets::resolving(opening("0"), vec![], names).unwrap();
    let call = |org: &str, name: &str| get(&targets, org, &format!("http://{name}/")).unwrap();
    let mut calls = JoinSet::new();
    for nth in 0..LOOKUPS {
        calls.spawn(call("slow", &format!("{nth}.slow.example")).send());
    }
    for _ in 0..LOOKUPS / 2 {
        lookups.recv().await.unwrap();
    }
    // Nobody waits for these lookups any more, but they go on.
    calls.shutdown().await;
    let one_more = call("slow", "one-more.slow.example");
    let error = error_within(Duration::from_millis(100), one_more).await;
    assert_eq!(error, "no answer in time");
    assert!(lookups.try_recv().is_err(), "more than a half at a time");
    let error = error_within(LONG, call("quick", "quick.example")).await;
    assert!(error.contains("not on the public internet"), "{error}");
    drop(answer);
    let error = error_within(LONG, call("slow", "found.slow.example")).await;
    assert!(error.contains("not on the public internet"), "{error}");
}
