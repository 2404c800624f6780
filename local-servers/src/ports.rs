use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use ring::rand::{SecureRandom, SystemRandom};

use crate::Error;

/// Below the range that Linux hands to outgoing connections, so that a port stays ours
/// from one start to the next.
const RANGE: std::ops::Range<u16> = 18_000..32_000;
const TRIES: usize = 200;

type Ports = BTreeMap<String, u16>;

/// Returns the stored port of `name` if nobody listens there, else a new one, which is stored.
pub(crate) fn claim(home: &Path, name: &str) -> Result<u16, Error> {
    let path = home.join("ports.json");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(Error::file("open", &path))?;
    // Two servers of one home start at the same time and share this file.
    file.lock().map_err(Error::file("lock", &path))?;
    let mut ports = parse(&mut file);
    if let Some(&port) = ports.get(name)
        && is_free(port)
    {
        return Ok(port);
    }
    let port = pick(&ports)?;
    ports.insert(name.to_owned(), port);
    save(&mut file, &ports).map_err(Error::file("write", &path))?;
    Ok(port)
}

/// The port that `name` had at its last start.
pub(crate) fn remembered(home: &Path, name: &str) -> Option<u16> {
    let mut file = File::open(home.join("ports.json")).ok()?;
    parse(&mut file).get(name).copied()
}

/// Whether nobody listens on this port of 127.0.0.1.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// A file that cannot be read as ports counts as empty: new ports are then picked.
fn parse(file: &mut File) -> Ports {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) => serde_json::from_str(&text).unwrap_or_default(),
        Err(_) => Ports::new(),
    }
}

fn save(file: &mut File, ports: &Ports) -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(ports)?;
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{text}")
}

fn pick(taken: &Ports) -> Result<u16, Error> {
    let random = SystemRandom::new();
    let span = RANGE.end - RANGE.start;
    for _ in 0..TRIES {
        let mut bytes = [0; 2];
        random.fill(&mut bytes).map_err(|_| Error::NoPort)?;
        let port = RANGE.start + u16::from_le_bytes(bytes) % span;
        if !taken.values().any(|&other| other == port) && is_free(port) {
            return Ok(port);
        }
    }
    Err(Error::NoPort)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TemporaryHome;

    #[test]
    fn a_port_is_remembered_while_it_is_free() {
        let home = TemporaryHome::new().unwrap();
        let first = claim(home.path(), "nats").unwrap();
        assert_eq!(claim(home.path(), "nats").unwrap(), first);
        assert_eq!(remembered(home.path(), "nats"), Some(first));
    }

    #[test]
    fn a_port_that_someone_took_is_replaced() {
        let home = TemporaryHome::new().unwrap();
        let first = claim(home.path(), "nats").unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        let second = claim(home.path(), "nats").unwrap();
        assert_ne!(first, second);
        assert_eq!(remembered(home.path(), "nats"), Some(second));
    }

    #[test]
    fn a_torn_file_counts_as_empty() {
        let home = TemporaryHome::new().unwrap();
        std::fs::write(home.path().join("ports.json"), "{\"nats\": 18").unwrap();
        let port = claim(home.path(), "nats").unwrap();
        assert_eq!(remembered(home.path(), "nats"), Some(port));
    }
}
