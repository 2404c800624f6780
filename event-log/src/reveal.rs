//! What an event shows to those who may know it.

use schemas::Event;
use serde_json::{Map, Value};

use crate::{Binding, EventLog, VaultError};

impl EventLog {
    /// The event's data as feeds, webhooks and sockets show it. Its personal data is unsealed and
    /// placed beside the other fields; if its person was forgotten, it is absent.
    ///
    /// # Errors
    /// If the vault does not answer, or does not know who sealed the event.
    pub async fn reveal(&self, event: &Event) -> Result<Value, VaultError> {
        let mut shown = event.public_data().map_err(|_| VaultError::Broken)?;
        let Some((binding, sealed)) = Binding::of_personal(event) else {
            return Ok(shown);
        };
        let personal = match self.vault().unseal(&binding, sealed).await {
            Ok(personal) => personal,
            Err(VaultError::Forgotten) => return Ok(shown),
            Err(error) => return Err(error),
        };
        let personal: Map<String, Value> =
            serde_json::from_str(&personal).map_err(|_| VaultError::Broken)?;
        if let Value::Object(fields) = &mut shown {
            fields.extend(personal);
        }
        Ok(shown)
    }
}
