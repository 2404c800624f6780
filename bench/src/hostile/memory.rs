//! Memory of programs, except the bench's own.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Bytes by program. Memory shared by several processes is counted once.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(BTreeMap<String, u64>);

impl Memory {
    /// The current memory of all descendants of this process.
    pub(super) fn now() -> Self {
        let mut memory: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (pid, program) in below(std::process::id()) {
            let (own, shared) = held(pid);
            let all = memory.entry(program).or_default();
            *all = (all.0 + own, all.1.max(shared));
        }
        let all = memory.into_iter();
        Self(
            all.map(|(program, (own, shared))| (program, own + shared))
                .collect(),
        )
    }

    pub(super) fn of(&self, program: &str) -> u64 {
        self.0.get(program).copied().unwrap_or_default()
    }

    fn most(&mut self, now: Self) {
        for (program, bytes) in now.0 {
            let most = self.0.entry(program).or_default();
            *most = bytes.max(*most);
        }
    }
}

/// Samples memory until it is stopped.
pub(super) struct Watch {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Memory>,
}

impl Watch {
    pub(super) fn start() -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut most = Memory::default();
            while tokio::time::timeout(LOOK_EVERY, &mut stopped)
                .await
                .is_err()
            {
                most.most(Memory::now());
            }
            most
        });
        Self { stop, task }
    }

    /// Returns the maximum.
    pub(super) async fn stop(self) -> Memory {
        drop(self.stop);
        self.task.await.expect("a task that ends")
    }
}

/// Every descendant of a process, by its id and its program's name.
fn below(root: u32) -> Vec<(u32, String)> {
    let all: Vec<_> = processes().collect();
    let (mut found, mut next) = (Vec::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for (pid, program, of) in &all {
            if *of == parent {
                found.push((*pid, program.clone()));
                next.push(*pid);
            }
        }
    }
    found
}

/// All processes: id, program and parent.
fn processes() -> impl Iterator<Item = (u32, String, u32)> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| {
        let pid = folder.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(folder.path().join("stat")).ok()?;
        let (start, rest) = stat.rsplit_once(") ")?;
        let program = start.split_once('(')?.1.to_owned();
        let parent = rest.split(' ').nth(1)?.parse().ok()?;
        Some((pid, program, parent))
    })
}

/// The private and the shared bytes of a process.
///
/// Read from counters: having the system walk a process's pages, as its proportional share would
/// require, blocks that process.
fn held(pid: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or_default() * 1024
    };
    (bytes("RssAnon:"), bytes("RssShmem:"))
}
