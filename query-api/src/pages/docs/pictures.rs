//! The documents' pictures, taken by `make pictures`: `GET /docs/pictures/{name}`.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher as _};

use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use service::HttpError;

use super::markdown::escaped;
use crate::reading::ResourceId;

/// A picture's file, by its name.
type Picture = (&'static str, &'static [u8]);

macro_rules! pictures {
    ($($name:literal)+) => {
        &[$((
            $name,
            include_bytes!(concat!("../../../../docs/pictures/", $name)),
        )),+]
    };
}

/// Those named `-dark` are for readers who prefer dark pages.
const PICTURES: &[Picture] = pictures! {
    "app.png" "app-dark.png"
    "home.png" "home-dark.png"
    "map.png" "map-dark.png"
    "runs.png" "runs-dark.png"
    "workflow.png" "workflow-dark.png"
};

/// The offsets of the width and the height in the header of a PNG.
const WIDTH: usize = 16;
const HEIGHT: usize = 20;

pub(super) async fn get_picture(
    ResourceId(name): ResourceId,
    uri: Uri,
    asked: HeaderMap,
) -> Result<Response, HttpError> {
    let found = named(&name).ok_or_else(|| HttpError::not_found("there is no such picture"))?;
    let version = version(found);
    let tag = format!("\"{version}\"");
    // The address that a page contains changes with the picture.
    let kept = match uri.query().and_then(|query| query.strip_prefix("v=")) {
        Some(asked) if asked == version => "public, max-age=31536000, immutable",
        _ => "no-cache",
    };
    let headers = [
        (CONTENT_TYPE, "image/png"),
        (CACHE_CONTROL, kept),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (ETAG, tag.as_str()),
    ];
    let is_known = asked
        .get(IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == tag.as_bytes());
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    Ok((headers, found.1).into_response())
}

/// Renders the picture at a path within the sources: with its size, so that nothing moves once it
/// is loaded, and only fetched once the reader is near it.
pub(super) fn shown(path: &str, about: &str) -> Option<String> {
    let name = path.strip_prefix("docs/pictures/")?;
    let picture = named(name)?;
    let mut html = "<picture>".to_owned();
    let dark = name
        .strip_suffix(".png")
        .map(|name| format!("{name}-dark.png"));
    if let Some(dark) = dark.and_then(|dark| named(&dark)) {
        let _ = write!(
            html,
            "<source srcset=\"{}\" media=\"(prefers-color-scheme: dark)\">",
            address(dark),
        );
    }
    let (width, height) = (number_at(picture, WIDTH)?, number_at(picture, HEIGHT)?);
    let _ = write!(
        html,
        "<img src=\"{}\" alt=\"{}\" width=\"{width}\" height=\"{height}\" loading=\"lazy\">\
         </picture>",
        address(picture),
        escaped(about),
    );
    Some(html)
}

fn named(name: &str) -> Option<&'static Picture> {
    PICTURES.iter().find(|(known, _)| *known == name)
}

fn address(picture: &Picture) -> String {
    format!("/docs/pictures/{}?v={}", picture.0, version(picture))
}

/// Returns a value that distinguishes a picture from its previous version.
fn version((_, bytes): &Picture) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x}", hasher.finish())
}

fn number_at((_, bytes): &Picture, at: usize) -> Option<u32> {
    let number = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(number))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::library::LIBRARY;
    use super::*;

    /// As for every page: the size that a phone far from a city loads in a second or two.
    const HEAVIEST_PAGE: usize = 150_000;

    #[test]
    fn every_picture_is_there_and_in_a_document() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
        let files = std::fs::read_dir(folder).unwrap();
        let files: BTreeSet<_> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let known: BTreeSet<_> = PICTURES
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        assert_eq!(files, known);
        let documents = LIBRARY.iter().flat_map(|shelf| &shelf.documents);
        let pages: String = documents.map(|document| document.html.as_str()).collect();
        for picture in PICTURES {
            assert!(pages.contains(&address(picture)), "{}", picture.0);
        }
    }

    #[test]
    fn no_document_names_a_picture_that_is_not_there() {
        for document in LIBRARY.iter().flat_map(|shelf| &shelf.documents) {
            let named = document.source.matches("![").count();
            let shown = document.html.matches("<picture>").count();
            assert_eq!(named, shown, "{}", document.address);
            assert!(document.html.len() < HEAVIEST_PAGE, "{}", document.address);
        }
    }

    #[test]
    fn a_picture_has_its_size_its_words_and_a_form_for_dark_pages() {
        let html = shown("docs/pictures/app.png", "a \"b\"").unwrap();
        assert!(
            html.contains("width=\"360\" height=\"740\" loading=\"lazy\""),
            "{html}"
        );
        assert!(html.contains("alt=\"a &quot;b&quot;\""), "{html}");
        assert!(
            html.contains("<source srcset=\"/docs/pictures/app-dark.png?v="),
            "{html}"
        );
        assert_eq!(shown("docs/pictures/gone.png", ""), None);
        assert_eq!(shown("docs/openapi.json", ""), None);
    }
}
