use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::account::Account;
use super::programs::Programs;
use super::{DATABASE, OWNER, READER};
use crate::Error;

/// Access needs a password, and is impossible from outside.
const ACCESS: &str = "\
# Written when the data was made.
host all all 127.0.0.1/32 scram-sha-256
host replication waypost 127.0.0.1/32 scram-sha-256
";

/// The passwords of the two roles.
#[derive(Debug)]
pub(super) struct Passwords {
    pub(super) owner: String,
    pub(super) reader: String,
}

/// Creates the data folder: whole, or not at all if we are interrupted.
pub(super) async fn create(
    data: &Path,
    programs: &Programs,
    account: &Account,
    passwords: &Passwords,
) -> Result<(), Error> {
    let draft = data.with_extension("draft");
    if draft.exists() {
        fs::remove_dir_all(&draft).map_err(Error::file("remove", &draft))?;
    }
    make_folder(&draft, account)?;

    let mut initdb = account.command(&programs.initdb);
    initdb
        .arg("-D")
        .arg(&draft)
        .args(["--username", OWNER, "--auth", "trust", "--encoding", "UTF8"])
        .args(["--locale", "C.UTF-8", "--no-instructions"]);
    run(initdb, "").await?;

    let access = draft.join("pg_hba.conf");
    fs::write(&access, ACCESS).map_err(Error::file("write", &access))?;
    let database = format!("CREATE DATABASE {DATABASE};\n");
    let statements = database + &roles(passwords);
    tell(&draft, programs, account, &statements).await?;
    fs::rename(&draft, data).map_err(Error::file("name", data))
}

/// Creates the data folder of a standby: a copy of the data of the server on `port`, with the
/// settings to follow it.
pub(super) async fn copy_to_follow(
    data: &Path,
    programs: &Programs,
    account: &Account,
    passwords: &Passwords,
    port: u16,
) -> Result<(), Error> {
    make_folder(data, account)?;
    let mut copy = account.command(&programs.basebackup);
    copy.arg("-D")
        .arg(data)
        .args(["--write-recovery-conf", "--checkpoint", "fast"])
        .args(["--host", "127.0.0.1", "--username", OWNER, "--no-password"])
        .args(["--port", &port.to_string()])
        .env("PGPASSWORD", &passwords.owner);
    run(copy, "").await?;
    Ok(())
}

/// Creates a folder that only the account may enter.
fn make_folder(path: &Path, account: &Account) -> Result<(), Error> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(Error::file("create", path))?;
    account.give(path)
}

/// Writes the passwords to the server's data, which must not be in use.
pub(super) async fn set_passwords(
    data: &Path,
    programs: &Programs,
    account: &Account,
    passwords: &Passwords,
) -> Result<(), Error> {
    tell(data, programs, account, &roles(passwords)).await
}

/// The SQL for both roles with their passwords, whether or not they exist.
fn roles(passwords: &Passwords) -> String {
    let Passwords { owner, reader } = passwords;
    format!(
        "DO $$ BEGIN CREATE ROLE {READER} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;\n\
         GRANT pg_read_all_data TO {READER};\n\
         ALTER ROLE {READER} SET default_transaction_read_only = on;\n\
         ALTER ROLE {READER} PASSWORD '{reader}';\n\
         ALTER ROLE {OWNER} PASSWORD '{owner}';\n"
    )
}

/// Runs statements, one per line, without a server: nobody else can connect meanwhile.
async fn tell(
    data: &Path,
    programs: &Programs,
    account: &Account,
    statements: &str,
) -> Result<(), Error> {
    let mut single = account.command(&programs.postgres);
    single
        .arg("--single")
        .arg("-D")
        .arg(data)
        .args([
            "-c",
            "log_min_messages=error",
            "-c",
            "log_min_error_statement=panic",
        ])
        .arg(DEFAULT_DATABASE);
    let output = run(single, statements).await?;
    // A refused statement is printed and does not show in the exit status.
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("ERROR:") || said.contains("FATAL:") {
        return Err(Error::Failed {
            program: "postgres --single".to_owned(),
            output: said,
        });
    }
    Ok(())
}

const DEFAULT_DATABASE: &str = "postgres";

async fn run(mut command: Command, input: &str) -> Result<Output, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let input = input.to_owned();
    command
        .env_remove("PGDATA")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let name = program.clone();
    let finished = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    });
    let output = finished
        .await
        .map_err(std::io::Error::other)
        .flatten()
        .map_err(Error::spawn(name))?;
    if output.status.success() {
        return Ok(output);
    }
    let name = Path::new(&program)
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    Err(Error::Failed {
        program: name.to_owned(),
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
