//! Settings of trace export.

use clap::Args;

use super::{Secret, given};

/// Whether traces are recorded, and who gets them.
#[derive(Clone, Debug, Args)]
pub struct TraceSettings {
    /// OpenTelemetry collector that gets the spans of traces by OTLP over HTTP, such as
    /// `http://collector:4318`. Without it none are recorded.
    #[arg(id = "traces-url", long, env = "WAYPOST_TRACES_URL")]
    pub(crate) url: Option<String>,
    /// Headers for the collector: `name=value,name=value`, values percent-encoded.
    #[arg(
        id = "traces-headers",
        long,
        env = "WAYPOST_TRACES_HEADERS",
        hide_env_values = true
    )]
    headers: Option<Secret<String>>,
    /// The share of all traces that is recorded, from 0 to 1; the same for all services.
    #[arg(
        id = "traces-share",
        long,
        env = "WAYPOST_TRACES_SHARE",
        default_value = "1",
        value_parser = share
    )]
    pub(crate) share: f64,
}

impl TraceSettings {
    /// The collector's address, if one is configured.
    pub(crate) fn url(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }

    pub(crate) fn headers(&self) -> &str {
        given(self.headers.as_ref()).map_or("", |headers| headers.expose())
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.parse().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "not a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_none_all_or_between() {
        assert_eq!(
            (share("0"), share("0.25"), share("1")),
            (Ok(0.0), Ok(0.25), Ok(1.0))
        );
        for text in ["-0.1", "1.1", "NaN", "", "all"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
