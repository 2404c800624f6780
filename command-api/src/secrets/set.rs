//! Sets the value of a secret.

use domain::{FieldError, secret};
use event_log::Binding;
use schemas::{AggregateType, Event, OrgId, StreamId};

use crate::commands::{Decision, Past};
use crate::{CommandError, Commands, Done, Origin};

/// Sets the value of a secret in place of its previous one. It may be sent to the given hosts only,
/// to any if the list is empty; without a list, to the same hosts as before.
pub async fn set(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    name: &str,
    value: &str,
    hosts: Option<&[String]>,
) -> Result<Done<()>, CommandError<FieldError>> {
    secret::check_name(name).map_err(CommandError::Refused)?;
    secret::check_value(value).map_err(CommandError::Refused)?;
    let hosts = hosts.map(secret::check_hosts).transpose();
    let hosts = hosts.map_err(CommandError::Refused)?;
    let binding = Binding::Secret(org.clone(), name.to_owned());
    let sealed = commands.log().vault().seal(&binding, value).await?;
    let stream = StreamId::new(org, AggregateType::Secret, name);
    let written = commands.execute(origin, &stream, Past::Last, |past, _| {
        let before = past.last().map(|last| &last.event);
        let hosts: Vec<String> = match (&hosts, before) {
            (Some(hosts), _) => hosts.clone(),
            (None, Some(Event::SecretSet(before))) => before.hosts.clone(),
            (None, _) => Vec::new(),
        };
        let set = schemas::secret::Set {
            name: name.to_owned(),
            value: sealed.clone(),
            hosts,
        };
        Ok(Decision::new((), Some(Event::SecretSet(set))))
    });
    written.await
}
