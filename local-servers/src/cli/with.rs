use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use local_servers::{Error, Servers, TemporaryHome, Urls};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::migrate::migrate;
use super::signals::Signals;

/// Runs a command with its own servers and returns its status.
pub(crate) async fn with(
    home: Option<PathBuf>,
    template: Option<&Path>,
    command: Vec<OsString>,
) -> Result<ExitCode, Error> {
    let mut signals = Signals::listen().map_err(super::no_signals)?;
    let temporary = match home {
        Some(_) => None,
        None => Some(TemporaryHome::new()?),
    };
    let home = home
        .as_deref()
        .or(temporary.as_ref().map(TemporaryHome::path))
        .unwrap_or(".waypost".as_ref());
    let servers = tokio::select! {
        servers = Servers::start(home, Urls::from_environment()) => servers?,
        signal = signals.next() => return Ok(code(128 + signal.as_raw())),
    };
    if let (Some(migrations), Some(database)) = (template, servers.template_url()) {
        migrate(migrations, &database).await?;
    }
    let outcome = run(&command, &servers, &mut signals).await;
    servers.stop().await?;
    let status = outcome?;
    Ok(code(
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
    ))
}

async fn run(
    command: &[OsString],
    servers: &Servers,
    signals: &mut Signals,
) -> Result<ExitStatus, Error> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(ExitStatus::default());
    };
    let failure = |source| Error::Spawn {
        program: program.to_string_lossy().into_owned(),
        source,
    };
    let mut child = spawn(program, arguments, servers).map_err(failure)?;
    let group = Pid::from_child(&child);
    let mut ended = tokio::task::spawn_blocking(move || {
        // Not yet reaped, so its pid still identifies its group.
        waitid(
            WaitId::Pid(group),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        )
    });
    let mut asked = false;
    loop {
        tokio::select! {
            _ = &mut ended => break,
            signal = signals.next() => {
                send(group, if asked { Signal::KILL } else { signal });
                asked = true;
            }
        }
    }
    send(group, Signal::KILL);
    child.wait().map_err(failure)
}

fn spawn(program: &OsString, arguments: &[OsString], servers: &Servers) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(super::variables(servers))
        .process_group(0);
    if std::env::var_os("SQLX_OFFLINE").is_none() {
        // The fresh database has no tables against which queries could be checked.
        command.env("SQLX_OFFLINE", "true");
    }
    if std::io::stdin().is_terminal() {
        // A background group that reads from the terminal would be stopped.
        command.stdin(Stdio::null());
    }
    command.spawn()
}

fn send(group: Pid, signal: Signal) {
    // An empty group is what we want in the end.
    let _ = kill_process_group(group, signal);
}

fn code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}
