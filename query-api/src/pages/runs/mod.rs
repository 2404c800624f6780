//! Runs: the list of all, and a single one to watch.

mod bulk;
mod filter;
mod find;
mod list;
mod show;

pub(super) use self::bulk::list_matching;
pub(super) use self::find::find_newest;
pub(super) use self::list::list_runs;
pub(super) use self::show::show_run;
