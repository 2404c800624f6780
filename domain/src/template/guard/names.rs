//! The names that expressions may use.

use super::{Guard, Usage};

/// The names that an expression may use.
pub(in super::super) type Names = &'static [&'static str];

/// Within a run.
pub(in super::super) const OF_A_RUN: Names = &["trigger", "steps", "run", "secrets"];
/// Over an event alone.
pub(in super::super) const OF_AN_EVENT: Names = &["data"];
/// Over an event within a run.
pub(in super::super) const OF_BOTH: Names = &["data", "trigger", "steps", "run"];

impl Guard<'_> {
    /// A name on its own.
    pub(super) fn name_of(&self, name: &str) -> Result<String, String> {
        match name {
            name if !self.names.contains(&name) => Err(format!(
                "unknown variable {name}; available: {}",
                self.names.join(", ")
            )),
            "secrets" => Err("a secret must be referenced by name, as in secrets.NAME".to_owned()),
            name => Ok(name.to_owned()),
        }
    }

    /// Records what `steps.<id>` and `secrets.<NAME>` name.
    pub(super) fn refer(
        &mut self,
        root: &str,
        member: Option<&str>,
        usage: Usage,
    ) -> Result<(), String> {
        if !self.names.contains(&root) {
            return self.name_of(root).map(drop);
        }
        match (root, member) {
            ("secrets", None) => {
                Err("a secret must be referenced by name, as in secrets.NAME".to_owned())
            }
            ("secrets", Some(_)) if usage == Usage::Used => Err(
                "a secret can only be inserted as it is or joined with ~; filters and operators \
                 are not allowed"
                    .to_owned(),
            ),
            ("secrets", Some(name)) => {
                self.references.secrets.insert(name.to_owned());
                Ok(())
            }
            ("steps", Some(id)) => {
                self.references.steps.insert(id.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
