//! The committed JSON Schemas are those of the Rust types, and a published type never changes.
//!
//! `UPDATE_SCHEMAS=1 cargo test -p schemas` writes them anew: for a new type or a new version.
//! A change to a file that has been released means that a published type was changed instead of
//! getting a new version and an upcaster.
#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use schemas::CATALOG;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("json")
}

fn generated() -> BTreeMap<String, String> {
    let file = |entry: &schemas::CatalogEntry| {
        let schema = serde_json::to_string_pretty(&entry.json_schema()).unwrap();
        (format!("{}.json", entry.recorded_type()), schema + "\n")
    };
    CATALOG.iter().map(file).collect()
}

fn committed() -> BTreeMap<String, String> {
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    let entries = fs::read_dir(folder()).unwrap();
    entries.map(|entry| file(entry.unwrap())).collect()
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    let generated = generated();
    if std::env::var_os("UPDATE_SCHEMAS").is_some_and(|value| value == "1") {
        for (name, schema) in &generated {
            fs::write(folder().join(name), schema).unwrap();
        }
    }
    let committed = committed();
    for (name, schema) in &generated {
        let Some(known) = committed.get(name) else {
            panic!("json/{name} is missing: UPDATE_SCHEMAS=1 writes it");
        };
        assert!(
            known == schema,
            "json/{name} differs from its type. A published type never changes: give the new \
             shape a new version with an upcaster. (UPDATE_SCHEMAS=1 writes what was never \
             released anew.) The type now says:\n{schema}"
        );
    }
}

/// An older version has no Rust type any more, but its schema stays for those who read it.
#[test]
fn every_committed_schema_belongs_to_a_type() {
    let newest: BTreeMap<&str, u16> = CATALOG.iter().map(|e| (e.name, e.version)).collect();
    for file in committed().keys() {
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
