//! How much a run may hold.
//!
//! A run is read whole: by its owner, by the projector, by lists that show it. Single values are
//! bounded where they come from, but there may be many steps, with many attempts each.

use serde::Serialize;

use super::Run;

/// Bytes, as JSON, of a run's payload and of the inputs and outputs of all attempts together.
pub const MAX_DATA: usize = 4 * 1024 * 1024;

/// A value would make a run hold more than [`MAX_DATA`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the run would hold more than {} MiB of payload, inputs and outputs; keep large data elsewhere \
     and pass its address, or divide the workflow",
    MAX_DATA / (1024 * 1024)
)]
pub struct TooLarge;

impl Run {
    /// Checks whether an input or an output may be added.
    pub fn room_for(&self, value: &impl Serialize) -> Result<(), TooLarge> {
        if self.data.saturating_add(encoded_len(value)) > MAX_DATA {
            return Err(TooLarge);
        }
        Ok(())
    }
}

/// How many bytes a value takes as JSON.
pub fn encoded_len(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
