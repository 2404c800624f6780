//! The source of the maps' tiles, if the operator configures a tile server.

use std::str::FromStr;

use clap::Args;
use minijinja::{Value, context};
use service::HttpError;
use url::{Host, Url};

use crate::pages::frame::{Page, piece};

/// What maps are drawn on.
#[derive(Clone, Debug, Default, Args)]
pub struct MapSettings {
    /// The tiles that the maps of `/dashboard/map` and `/app` are drawn on, such as
    /// `https://tiles.example/{z}/{x}/{y}.png`. Browsers ask that server directly, so it learns
    /// which areas are looked at. Without it, maps show outlines of the world only.
    #[arg(id = "map_tiles", long, env = "WAYPOST_MAP_TILES")]
    pub tiles: Option<Tiles>,
    /// What the tiles' makers want to read on the map, such as `© OpenStreetMap contributors`.
    #[arg(
        id = "map_attribution",
        long,
        env = "WAYPOST_MAP_ATTRIBUTION",
        default_value = ""
    )]
    pub attribution: String,
    /// Where that text leads to, such as `https://www.openstreetmap.org/copyright`.
    #[arg(id = "map_attribution_url", long, env = "WAYPOST_MAP_ATTRIBUTION_URL")]
    pub attribution_url: Option<AttributionUrl>,
}

/// The address of a tile, with `{z}`, `{x}` and `{y}` in it, and its only origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    template: String,
    origin: String,
}

/// A web address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributionUrl(String);

/// The reason why an address is rejected.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {reason}")]
pub struct Unusable {
    setting: &'static str,
    reason: &'static str,
}

impl FromStr for Tiles {
    type Err = Unusable;

    fn from_str(template: &str) -> Result<Self, Unusable> {
        let unusable = |reason| Unusable {
            setting: "WAYPOST_MAP_TILES",
            reason,
        };
        let mut plain = template.to_owned();
        for part in ["{z}", "{x}", "{y}"] {
            if template.matches(part).count() != 1 {
                let reason = "must hold {z}, {x} and {y} once each, such as \
                              https://tiles.example/{z}/{x}/{y}.png";
                return Err(unusable(reason));
            }
            plain = plain.replace(part, "0");
        }
        if plain.contains(['{', '}']) {
            let reason = "may hold no other part in braces than {z}, {x} and {y}: name one server \
                          instead of {s}, and leave {r} out";
            return Err(unusable(reason));
        }
        let url = Url::parse(&plain).map_err(|_| unusable("must be a whole address"))?;
        if !is_safe(&url) {
            let reason = "must begin with https:// and the name of one server (http:// is for this machine only)";
            return Err(unusable(reason));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(unusable("must hold no user name and no password"));
        }
        let origin = url.origin().ascii_serialization();
        let within = template.get(origin.len()..);
        if !within.is_some_and(|within| template.starts_with(&origin) && within.starts_with('/')) {
            let reason = "must begin with its server as browsers write it: in lower case, without \
                          a port that goes without saying, and with {z}, {x} and {y} behind it";
            return Err(unusable(reason));
        }
        Ok(Self {
            template: template.to_owned(),
            origin,
        })
    }
}

impl FromStr for AttributionUrl {
    type Err = Unusable;

    fn from_str(text: &str) -> Result<Self, Unusable> {
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "https" | "http"));
        let url = url.ok_or(Unusable {
            setting: "WAYPOST_MAP_ATTRIBUTION_URL",
            reason: "must be an address that begins with https:// or http://",
        })?;
        Ok(Self(url.into()))
    }
}

/// Whether no one in between can read or change what is loaded from there.
fn is_safe(url: &Url) -> bool {
    match (url.scheme(), url.host()) {
        // No characters that would mean more than one host in a policy.
        ("https", Some(Host::Domain(name))) => {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            name.bytes().all(plain)
        }
        ("https", Some(Host::Ipv4(_) | Host::Ipv6(_))) => true,
        ("http", Some(Host::Domain(name))) => name == "localhost",
        ("http", Some(Host::Ipv4(ip))) => ip.is_loopback(),
        ("http", Some(Host::Ipv6(ip))) => ip.is_loopback(),
        _ => false,
    }
}

impl MapSettings {
    /// Allows a page to load the tiles.
    pub(in crate::pages) fn allow_on(&self, page: Page) -> Page {
        match &self.tiles {
            Some(tiles) => page.with_images_of(&tiles.origin),
            None => page,
        }
    }

    /// Renders a page's map and its parts. The same data is in a list of the page.
    pub(in crate::pages) fn canvas(
        &self,
        id: &str,
        of: &str,
        list: &str,
    ) -> Result<Value, HttpError> {
        let url = self.attribution_url.as_ref().map(|url| url.0.as_str());
        let map = self.tiles.as_ref().map(|tiles| {
            context! {
                tiles => tiles.template.as_str(),
                attribution => self.attribution.trim(),
                attribution_url => url,
            }
        });
        piece("map_canvas.html", context! { id, of, list, map })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_tiles_has_one_origin() {
        for (template, origin) in [
            (
                "https://tiles.example/{z}/{x}/{y}.png",
                "https://tiles.example",
            ),
            (
                "https://t.example:8443/a/{z}/{y}/{x}?key=k",
                "https://t.example:8443",
            ),
            (
                "http://127.0.0.1:9000/{z}/{x}/{y}.png",
                "http://127.0.0.1:9000",
            ),
            ("http://localhost/{z}/{x}/{y}", "http://localhost"),
        ] {
            assert_eq!(template.parse::<Tiles>().unwrap().origin, origin);
        }
    }

    #[test]
    fn what_a_policy_could_not_name_or_anybody_could_read_is_refused_by_its_settings_name() {
        for template in [
            "",
            "https://tiles.example/{z}/{x}.png",
            "https://tiles.example/{z}/{x}/{y}/{y}.png",
            "https://{s}.tiles.example/{z}/{x}/{y}.png",
            "https://tiles.example/{z}/{x}/{y}{r}.png",
            "https://{z}.example/{x}/{y}.png",
            "http://tiles.example/{z}/{x}/{y}.png",
            "ftp://tiles.example/{z}/{x}/{y}.png",
            "data:image/png,{z}{x}{y}",
            "https://a:b@tiles.example/{z}/{x}/{y}.png",
            "https://tiles.example:443/{z}/{x}/{y}.png",
            "https://*.example/{z}/{x}/{y}.png",
            "https://tiles.example;script-src/{z}/{x}/{y}.png",
            "https://tiles.example; script-src *//{z}/{x}/{y}.png",
            "/tiles/{z}/{x}/{y}.png",
        ] {
            let refused = template.parse::<Tiles>().unwrap_err().to_string();
            assert!(
                refused.starts_with("WAYPOST_MAP_TILES: must") || refused.contains("may hold"),
                "{refused}"
            );
        }
        let refused = "javascript:alert(1)".parse::<AttributionUrl>().unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("WAYPOST_MAP_ATTRIBUTION_URL")
        );
    }
}
