//! Times as a fold stores them: as numbers, which take a third of the space of text.

use chrono::{DateTime, Utc};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seconds since 1970, and nanoseconds.
type Numbers = (i64, u32);

pub(super) fn serialize<S: Serializer>(at: &DateTime<Utc>, to: S) -> Result<S::Ok, S::Error> {
    numbers(at).serialize(to)
}

pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<DateTime<Utc>, D::Error> {
    time(Numbers::deserialize(from)?)
}

pub(super) mod optional {
    use super::{
        DateTime, Deserialize, Deserializer, Numbers, Serialize, Serializer, Utc, numbers, time,
    };

    #[expect(clippy::ref_option, reason = "serde hands out the field itself")]
    pub(in super::super) fn serialize<S: Serializer>(
        at: &Option<DateTime<Utc>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        at.as_ref().map(numbers).serialize(to)
    }

    pub(in super::super) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<Option<DateTime<Utc>>, D::Error> {
        Option::<Numbers>::deserialize(from)?.map(time).transpose()
    }
}

fn numbers(at: &DateTime<Utc>) -> Numbers {
    (at.timestamp(), at.timestamp_subsec_nanos())
}

fn time<E: Error>((seconds, nanos): Numbers) -> Result<DateTime<Utc>, E> {
    DateTime::from_timestamp(seconds, nanos).ok_or_else(|| E::custom("no time"))
}
