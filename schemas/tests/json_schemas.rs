//! The committed JSON Schemas are those of the Rust types, and a published type never changes.
//!
//! `published.sha256` lists what has been published, in the form of `sha256sum`. `UPDATE_SCHEMAS=1
//! cargo test -p schemas` writes the schemas of new types and versions and adds them to the list;
//! it never rewrites what is listed. `docs/how-to/add-an-event-version.md` explains how a type gets
//! a new version.
#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ring::digest;
use schemas::CATALOG;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("json")
}

fn list() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("published.sha256")
}

fn generated() -> BTreeMap<String, String> {
    let file = |entry: &schemas::CatalogEntry| {
        let schema = serde_json::to_string_pretty(&entry.json_schema()).unwrap();
        (format!("{}.json", entry.recorded_type()), schema + "\n")
    };
    CATALOG.iter().map(file).collect()
}

fn read_committed() -> BTreeMap<String, String> {
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    let entries = fs::read_dir(folder()).unwrap();
    entries.map(|entry| file(entry.unwrap())).collect()
}

/// The digests of published files by name.
fn read_published() -> BTreeMap<String, String> {
    let text = fs::read_to_string(list()).unwrap();
    let line = |line: &str| {
        let (digest, file) = line.split_once("  json/").unwrap();
        (file.to_owned(), digest.to_owned())
    };
    let lines: Vec<_> = text.lines().map(line).collect();
    let by_name: BTreeMap<_, _> = lines.iter().cloned().collect();
    assert_eq!(by_name.len(), lines.len(), "a file is listed twice");
    by_name
}

fn digest(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest.as_ref().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// The committed and the published schemas, after the update if one is requested.
static STATE: LazyLock<(BTreeMap<String, String>, BTreeMap<String, String>)> =
    LazyLock::new(|| {
        if std::env::var_os("UPDATE_SCHEMAS").is_some_and(|value| value == "1") {
            publish_what_is_new();
        }
        (read_committed(), read_published())
    });

fn publish_what_is_new() {
    let published = read_published();
    let mut lines = fs::read_to_string(list()).unwrap();
    let generated = generated();
    let new = generated
        .iter()
        .filter(|(name, _)| !published.contains_key(*name));
    for (name, schema) in new {
        fs::write(folder().join(name), schema).unwrap();
        writeln!(lines, "{}  json/{name}", digest(schema)).unwrap();
    }
    fs::write(list(), lines).unwrap();
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    let (committed, _) = &*STATE;
    for (name, schema) in &generated() {
        let Some(known) = committed.get(name) else {
            panic!("json/{name} is missing: UPDATE_SCHEMAS=1 writes it");
        };
        assert!(
            known == schema,
            "json/{name} differs from its type. A published type never changes: give the new \
             shape a new version with an upcaster (docs/how-to/add-an-event-version.md). The type now \
             says:\n{schema}"
        );
    }
}

#[test]
fn a_published_schema_never_changes_nor_goes() {
    let (committed, published) = &*STATE;
    for (name, published) in published {
        let Some(schema) = committed.get(name) else {
            panic!("json/{name} has been published and is gone");
        };
        assert!(
            digest(schema) == *published,
            "json/{name} has been published and must not change: give the new shape a new \
             version with an upcaster (docs/how-to/add-an-event-version.md)"
        );
    }
}

#[test]
fn every_committed_schema_is_listed_as_published() {
    let (committed, published) = &*STATE;
    for name in committed.keys() {
        let listed = published.contains_key(name);
        assert!(listed, "json/{name} is not listed: UPDATE_SCHEMAS=1 does");
    }
}

/// An older version has no Rust type any more, but its schema stays for those who read it.
#[test]
fn every_committed_schema_belongs_to_a_type() {
    let (committed, _) = &*STATE;
    let newest: BTreeMap<&str, u16> = CATALOG.iter().map(|e| (e.name, e.version)).collect();
    for file in committed.keys() {
        let (name, version) = file
            .strip_suffix(".json")
            .and_then(|file| file.rsplit_once(".v"))
            .unwrap_or_else(|| panic!("json/{file} is not named <type>.v<n>.json"));
        let version: u16 = version.parse().unwrap();
        let known = newest.get(name).is_some_and(|newest| version <= *newest);
        assert!(known, "json/{file} belongs to no type");
    }
}

#[test]
fn names_and_versions_are_unique() {
    let names: std::collections::HashSet<_> = CATALOG.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), CATALOG.len());
    assert!(CATALOG.iter().all(|entry| entry.version >= 1));
    assert!(
        CATALOG
            .iter()
            .all(|entry| !entry.name.starts_with("custom."))
    );
}
