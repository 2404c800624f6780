//! Upcasters: pure functions that lift an older version of an event's data to the next.

use serde_json::Value;

/// Lifts one version of one type to the next.
struct Upcaster {
    /// The recorded type it reads, such as `run.started.v1`.
    from: &'static str,
    /// The recorded type it makes.
    to: &'static str,
    lift: fn(Value) -> Value,
}

/// Every upcaster; a type with three versions has two.
const UPCASTERS: &[Upcaster] = &[];

/// The next version of recorded data, or `None` where no upcaster knows the type.
///
/// # Errors
/// Where `data` is not JSON.
pub(crate) fn lift(
    recorded_type: &str,
    data: &[u8],
) -> Result<Option<(String, Vec<u8>)>, serde_json::Error> {
    let Some(upcaster) = UPCASTERS.iter().find(|u| u.from == recorded_type) else {
        return Ok(None);
    };
    let lifted = (upcaster.lift)(serde_json::from_slice(data)?);
    Ok(Some((upcaster.to.to_owned(), serde_json::to_vec(&lifted)?)))
}
