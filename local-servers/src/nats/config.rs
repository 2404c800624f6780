use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cluster::Member;
use crate::Error;

pub(super) const FILE: &str = "nats.conf";
const ACCOUNT: &str = "WAYPOST";

/// Options of the private NATS server that differ from its defaults.
#[derive(Clone, Debug, Default)]
pub struct NatsOptions {
    /// When an acknowledged message is on disk.
    pub sync_interval: SyncInterval,
    /// Whether the server reports its state over HTTP on a separate port.
    pub monitor: bool,
}

/// How often JetStream flushes to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncInterval {
    /// Before every acknowledgement: what is acknowledged survives a loss of power.
    #[default]
    Always,
    /// At this interval: what was written since the last flush may be lost with the machine.
    Every(Duration),
}

impl SyncInterval {
    fn setting(self) -> String {
        match self {
            Self::Always => "always".to_owned(),
            Self::Every(interval) => format!("\"{}ms\"", interval.as_millis()),
        }
    }
}

pub(super) fn write(
    folder: &Path,
    options: &NatsOptions,
    member: Option<&Member>,
    port: u16,
    monitor_port: Option<u16>,
    password: &str,
) -> Result<PathBuf, Error> {
    let path = folder.join(FILE);
    let data = data(folder);
    fs::create_dir_all(&data).map_err(Error::file("create", &data))?;
    let capacity = capacity(&data)?;
    let mut text = render(options, &data, capacity, port, monitor_port, password);
    text.push_str(
        &member.map_or("server_name: waypost-local\n".to_owned(), |member| {
            member.setting(password)
        }),
    );
    // It contains the password. A file from an earlier start keeps its mode.
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(Error::file("write", &path))?;
    Ok(path)
}

fn render(
    options: &NatsOptions,
    data: &Path,
    capacity: u64,
    port: u16,
    monitor_port: Option<u16>,
    password: &str,
) -> String {
    let sync_interval = options.sync_interval.setting();
    let monitor = monitor_port.map_or(String::new(), |port| {
        format!("http: \"127.0.0.1:{port}\"\n")
    });
    let data = quoted(data);
    let (user, system) = (super::USER, super::SYSTEM_USER);
    format!(
        "# Written anew at every start.\n\
         listen: \"127.0.0.1:{port}\"\n\
         {monitor}\
         accounts {{\n  \
           {ACCOUNT} {{ jetstream: enabled, users: [{{ user: {user}, password: \"{password}\" }}] }}\n  \
           # Tells how the server is set up; reaches no data.\n  \
           SYS {{ users: [{{ user: {system}, password: \"{password}\" }}] }}\n\
         }}\n\
         system_account: SYS\n\
         # A reader that is slow for a moment is not cut off.\n\
         max_pending: 256MB\n\
         jetstream {{\n  \
           store_dir: {data}\n  \
           sync_interval: {sync_interval}\n  \
           max_mem: 1GB\n  \
           max_file: {capacity}\n\
         }}\n"
    )
}

/// The folder of all the server's data.
pub(super) fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// The folder in which each stream has its own folder.
pub(super) fn streams(folder: &Path) -> PathBuf {
    let account = data(folder).join("jetstream").join(ACCOUNT);
    account.join("streams")
}

/// The server's own default limit is a share of the free space at its start, which a log that has
/// grown can exceed; so the disk itself is the limit.
fn capacity(data: &Path) -> Result<u64, Error> {
    let about = rustix::fs::statvfs(data)
        .map_err(std::io::Error::from)
        .map_err(Error::file("measure the disk of", data))?;
    Ok(about.f_blocks.saturating_mul(about.f_frsize))
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(options: &NatsOptions, monitor_port: Option<u16>) -> String {
        render(
            options,
            Path::new("/a \"b\"/data"),
            1024,
            4222,
            monitor_port,
            "word",
        )
    }

    #[test]
    fn acknowledged_means_on_disk_unless_asked_otherwise() {
        let text = rendered(&NatsOptions::default(), None);
        assert!(text.contains("sync_interval: always"), "{text}");
        assert!(text.contains(r#"store_dir: "/a \"b\"/data""#), "{text}");
        assert!(!text.contains("http:"), "{text}");
    }

    #[test]
    fn an_interval_and_a_monitor_can_be_had() {
        let options = NatsOptions {
            sync_interval: SyncInterval::Every(Duration::from_mins(2)),
            monitor: true,
        };
        let text = rendered(&options, Some(8222));
        assert!(text.contains("sync_interval: \"120000ms\""), "{text}");
        assert!(text.contains("http: \"127.0.0.1:8222\""), "{text}");
    }
}
