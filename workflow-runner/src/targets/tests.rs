use std::net::TcpListener;

use super::*;

/// Every name has these addresses.
#[derive(Clone)]
struct Fixed(&'static [&'static str]);

impl Names for Fixed {
    async fn find(&self, _: String) -> io::Result<Vec<SocketAddr>> {
        Ok(addresses(self.0))
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

fn refused(targets: &Targets, address: &str) -> bool {
    let outcome = targets.request(Method::GET, address);
    matches!(outcome.map(drop), Err(TargetError::Refused(_)))
}

/// The error of calling a name that has these addresses; any server is on this machine.
async fn asked(open: &str, names: &'static [&'static str], port: u16, own: Vec<u16>) -> String {
    let targets = Targets::resolving(opening(open), own, Fixed(names)).unwrap();
    let address = format!("http://hooks.example:{port}/");
    let request = targets.request(Method::GET, &address).unwrap();
    let answer = request.timeout(Duration::from_millis(500)).send().await;
    reason(&answer.unwrap_err())
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
