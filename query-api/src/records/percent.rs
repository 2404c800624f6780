//! Percentages.

use serde::{Serialize, Serializer};

/// A number from 0 to 100, serialized without decimals if it has none: as it was written.
#[derive(Clone, Copy, Debug, sqlx::Type)]
#[sqlx(transparent)]
pub(super) struct Percent(f64);

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = (0..=100_u8).find(|whole| f64::from(*whole).total_cmp(&self.0).is_eq());
        match whole {
            Some(whole) => serializer.serialize_u8(whole),
            None => serializer.serialize_f64(self.0),
        }
    }
}
