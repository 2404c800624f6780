//! Workflows: the list, and one with its graph, its versions and its definition to edit.

mod list;
mod show;

pub(super) use self::list::list_workflows;
pub(super) use self::show::show_workflow;
