//! What was recorded once must decode for ever.
//!
//! `samples/<type>.v<n>.json` holds data of that version as stored in logs. Samples are only ever
//! added.
#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use schemas::{CATALOG, Event, Visibility};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Samples {
    #[serde(rename = "type")]
    recorded_type: String,
    samples: Vec<Value>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn all() -> Vec<Samples> {
    let files = fs::read_dir(folder("samples")).unwrap();
    let read = |file: fs::DirEntry| {
        let samples: Samples = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
        let name = file.file_name().into_string().unwrap();
        assert_eq!(name, format!("{}.json", samples.recorded_type));
        assert!(!samples.samples.is_empty(), "{name} is empty");
        samples
    };
    files.map(|file| read(file.unwrap())).collect()
}

fn decode(recorded_type: &str, data: &Value) -> Event {
    Event::decode(recorded_type, data.to_string().as_bytes())
        .unwrap_or_else(|error| panic!("{recorded_type} {data}: {error}"))
}

#[test]
fn every_version_of_every_type_has_samples() {
    let sampled: BTreeSet<String> = all().into_iter().map(|s| s.recorded_type).collect();
    for entry in CATALOG {
        for version in 1..=entry.version {
            let wanted = format!("{}.v{version}", entry.name);
            assert!(
                sampled.contains(&wanted),
                "samples/{wanted}.json is missing"
            );
        }
    }
    assert!(sampled.iter().any(|name| name.starts_with("custom.")));
}

#[test]
fn every_sample_decodes_to_its_type_in_the_newest_version() {
    for Samples {
        recorded_type,
        samples,
    } in all()
    {
        let (name, _) = recorded_type.rsplit_once(".v").unwrap();
        for sample in &samples {
            assert_eq!(decode(&recorded_type, sample).name(), name);
        }
    }
}

#[test]
fn a_sample_of_the_newest_version_is_written_again_as_it_was() {
    for Samples {
        recorded_type,
        samples,
    } in all()
    {
        for sample in &samples {
            let event = decode(&recorded_type, sample);
            if event.recorded_type() == recorded_type {
                let written: Value = serde_json::from_slice(&event.encode().unwrap()).unwrap();
                assert_eq!(&written, sample, "{recorded_type}");
            }
        }
    }
}

#[test]
fn every_sample_fits_the_schema_of_its_version() {
    for Samples {
        recorded_type,
        samples,
    } in all()
    {
        if recorded_type.starts_with("custom.") {
            continue;
        }
        let path = folder("json").join(format!("{recorded_type}.json"));
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.enable_format_assertions();
        let schema = compiler.compile(path.to_str().unwrap(), &mut schemas);
        let schema = schema.unwrap_or_else(|error| panic!("{recorded_type}: {error}"));
        for sample in &samples {
            let outcome = schemas.validate(sample, schema);
            assert!(outcome.is_ok(), "{recorded_type} {sample}: {outcome:?}");
        }
        let empty = serde_json::json!({});
        let outcome = schemas.validate(&empty, schema);
        assert!(outcome.is_err(), "{recorded_type} takes an empty object");
    }
}

#[test]
fn hashes_and_sealed_secrets_are_never_shown() {
    let mut hidden = BTreeSet::new();
    for Samples {
        recorded_type,
        samples,
    } in all()
    {
        for sample in &samples {
            let event = decode(&recorded_type, sample);
            let (Visibility::Public, false) =
                (event.visibility(), recorded_type.starts_with("custom."))
            else {
                continue;
            };
            let shown = event.public_data().unwrap();
            for (field, value) in sample.as_object().unwrap() {
                if shown.get(field).is_none() {
                    hidden.insert(format!("{recorded_type} {field}"));
                } else {
                    assert_eq!(&shown[field], value, "{recorded_type} {field}");
                }
            }
            let text = shown.to_string();
            assert!(
                !text.contains("v1."),
                "{recorded_type} shows a sealed value"
            );
            let hex_digits = |word: &str| word.len() == 64;
            let mut words = text.split(|c: char| !c.is_ascii_hexdigit());
            assert!(!words.any(hex_digits), "{recorded_type} shows a hash");
        }
    }
    let mut expected = BTreeSet::from([
        "key.created.v1 keySha256",
        "key.created.v2 keySha256",
        "webhook.created.v1 secret",
    ]);
    expected.extend([
        "webhook.secret_rotated.v1 secret",
        "location.updated.v1 sealed",
        "place.entered.v1 sealed",
        "place.left.v1 sealed",
        "sos.triggered.v1 sealed",
        "sos.triggered.v1 audience",
        "sos.acknowledged.v1 sealed",
        "sos.acknowledged.v1 audience",
        "sos.resolved.v1 sealed",
        "sos.resolved.v1 audience",
    ]);
    let hidden: BTreeSet<_> = hidden.iter().map(String::as_str).collect();
    assert_eq!(hidden, expected);
}
