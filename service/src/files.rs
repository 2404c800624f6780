//! The limit of open files, and with it of connections, of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Minimum number of files reserved for everything but client connections.
const KEPT: u64 = 256;

/// Raises the process's own limit of open files as far as the system allows.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "The limit of open files could not be raised");
    }
}

/// How many connections may be accepted of the wanted number: a quarter of the files stays reserved
/// for everything else, without which no request could be answered.
///
/// Raises the limit again first: one that was lowered for a moment at start-up would otherwise leave
/// the process few connections for its whole life.
pub(crate) fn connections_within_limit(wished: usize) -> usize {
    raise_limit();
    let Some(files) = getrlimit(Resource::Nofile).current else {
        return wished;
    };
    let possible = within(files);
    if possible >= wished {
        return wished;
    }
    tracing::warn!(
        files,
        connections = possible,
        "The limit of open files allows fewer connections than WAYPOST_CONNECTIONS; raise the \
         hard limit (ulimit -Hn, LimitNOFILE=)"
    );
    possible
}

fn within(files: u64) -> usize {
    let left = files.saturating_sub((files / 4).max(KEPT)).max(1);
    usize::try_from(left).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_left_for_what_is_no_connection() {
        assert_eq!(within(20_000), 15_000);
        assert_eq!(within(1_024), 768);
        assert_eq!(within(300), 44);
        assert_eq!(within(100), 1);
    }
}
