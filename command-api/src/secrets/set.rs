//! Gives a secret a value.

use domain::{FieldError, secret};
use event_log::Binding;
use schemas::{AggregateType, Event, OrgId, StreamId};

use crate::commands::{Decision, Past};
use crate::{CommandError, Commands, Done, Origin};

/// Gives a secret a value, in the place of the one that it had.
pub async fn set(
    commands: &Commands,
    origin: &Origin,
    org: &OrgId,
    name: &str,
    value: &str,
) -> Result<Done<()>, CommandError<FieldError>> {
    secret::check_name(name).map_err(CommandError::Refused)?;
    secret::check_value(value).map_err(CommandError::Refused)?;
    let binding = Binding::Secret(org.clone(), name.to_owned());
    let sealed = commands.log().vault().seal(&binding, value).await?;
    let set = Event::SecretSet(schemas::secret::Set {
        name: name.to_owned(),
        value: sealed,
    });
    let stream = StreamId::new(org, AggregateType::Secret, name);
    let written = commands.execute(origin, &stream, Past::Last, |_, _| {
        Ok(Decision::new((), Some(set.clone())))
    });
    written.await
}
