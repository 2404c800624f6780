//! The shared browser of these tests: found, started, and stopped with this process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Path of a browser that is elsewhere, or `none` if there is none.
const VARIABLE: &str = "WAYPOST_CHROMIUM";
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// It makes no network requests of its own, and no page waits because another one is in front. It
/// shows only our own pages, so it does without a sandbox, which root and containers do not have.
const ARGUMENTS: [&str; 16] = [
    "--headless=new",
    "--no-sandbox",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--hide-scrollbars",
];

/// The running browser's address; `None` if none is installed, which is reported once.
pub(super) fn address() -> Option<&'static str> {
    static ADDRESS: OnceLock<Option<String>> = OnceLock::new();
    let found = ADDRESS.get_or_init(|| {
        let Some(program) = program() else {
            tell("there is no Chromium: browser tests are left out");
            return None;
        };
        Some(start(&program))
    });
    found.as_deref()
}

/// Prints something that is shown even if the test passes.
pub(crate) fn tell(what: &str) {
    // If stderr was closed, nothing reads it.
    let _ = writeln!(std::io::stderr(), "{what}");
}

fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        if named.as_os_str() == "none" {
            return None;
        }
        assert!(
            named.is_file(),
            "{VARIABLE} names {}, which is no file",
            named.display()
        );
        return Some(named);
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let candidates = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

/// A shell leads the browser's processes and waits for the end of its input, which comes when this
/// process exits: then it kills the browser and removes its folder.
const SHELL: &str = r#"folder=$1; shift
"$@" --user-data-dir="$folder" about:blank </dev/null &
cat >/dev/null
rm -rf "$folder"; kill -KILL 0"#;

fn start(program: &Path) -> String {
    let folder = std::env::temp_dir().join(format!("waypost-browser-{}", std::process::id()));
    let mut shell = Command::new("sh")
        .args(["-c", SHELL, "sh"])
        .arg(&folder)
        .arg(program)
        .args(ARGUMENTS)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let address = told_address(&mut shell);
    // It lives as long as this process holds its input.
    std::mem::forget(shell);
    address.unwrap_or_else(|said| panic!("{} does not start: {said}", program.display()))
}

/// Reads the address, which the browser prints as soon as it listens; its later output is read too,
/// so that it never blocks on it.
fn told_address(shell: &mut Child) -> Result<String, String> {
    let said = shell.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(said).lines().map_while(Result::ok);
    let mut before = String::new();
    for line in lines.by_ref() {
        if let Some(address) = line.strip_prefix("DevTools listening on ") {
            let address = address.to_owned();
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(address);
        }
        before = before + &line + "\n";
    }
    Err(before)
}
