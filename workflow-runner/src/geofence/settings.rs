//! Settings of the geofence.

use clap::Args;
use service::settings::defaults;

/// How places are watched.
#[derive(Clone, Debug, Args)]
pub struct GeofenceSettings {
    /// How far beyond a place's edge, and beyond the position's own accuracy, somebody must be to
    /// have left it, in metres.
    // Fixed, and not a part of the radius: a fix is as inexact at a large place as at a small one.
    #[arg(
        id = "place_margin_metres",
        long,
        env = "WAYPOST_PLACE_MARGIN_METRES",
        default_value_t = 25.0,
        value_parser = metres
    )]
    pub margin_m: f64,
}

impl Default for GeofenceSettings {
    fn default() -> Self {
        defaults()
    }
}

fn metres(text: &str) -> Result<f64, String> {
    let metres: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if metres.is_finite() && metres >= 0.0 {
        Ok(metres)
    } else {
        Err("must be 0 or more".to_owned())
    }
}
