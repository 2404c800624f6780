//! Persons' positions: what may be sent, and how a fix is identified.

mod fix;
mod request;
#[cfg(test)]
mod tests;
mod timing;

pub use fix::Fix;
pub use request::{MAX_FIXES, Request};
pub use timing::{CLOCKS_APART, FURTHEST_AHEAD, Timed, settle_times, taken_since};

pub(crate) const LATITUDES: std::ops::RangeInclusive<f64> = -90.0..=90.0;
pub(crate) const LONGITUDES: std::ops::RangeInclusive<f64> = -180.0..=180.0;

/// A coordinate as it is kept: to seven decimals of a degree, about a centimetre.
pub(crate) fn kept(degrees: f64) -> f64 {
    // Adding zero turns −0 into 0.
    (degrees * 1e7).round() / 1e7 + 0.0
}
