//! Backups that were changed by others: every change is found.

use std::fs;
use std::path::PathBuf;

use event_log::backup::{self, BackupError, Wrong};
use local_servers::TemporaryHome;

use crate::backup::{Fresh, backed_up, folder, silent};
use crate::support::now;

fn file(home: &TemporaryHome) -> PathBuf {
    folder(home).join("EVENTS-000001")
}

/// Where the records of a file begin and end.
fn records(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut records, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let length = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let end = at + 4 + usize::try_from(length).unwrap() + 32;
        records.push(at..end);
        at = end;
    }
    records
}

/// The fault found after a change to the file of events.
fn found(home: &TemporaryHome, change: impl FnOnce(&mut Vec<u8>)) -> (u64, Wrong) {
    let whole = fs::read(file(home)).unwrap();
    let mut bytes = whole.clone();
    change(&mut bytes);
    assert_ne!(bytes, whole);
    fs::write(file(home), bytes).unwrap();
    let checked = backup::verify(&folder(home), &silent);
    fs::write(file(home), whole).unwrap();
    match checked {
        Err(BackupError::Wrong {
            stream: "EVENTS",
            sequence,
            what,
            ..
        }) => (sequence, what),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_flipped_byte_is_found() {
    let (_log, home) = backed_up().await;
    let whole = fs::read(file(&home)).unwrap();
    let records = records(&whole);
    let mut sequence = 1;
    for (place, record) in records.iter().enumerate() {
        for at in record.clone().step_by(3).chain([record.end - 1]) {
            let (first_wrong, what) = found(&home, |bytes| bytes[at] ^= 1);
            assert_eq!(
                first_wrong, sequence,
                "byte {at} of record {place}: {what:?}"
            );
        }
        // What the log above was made of: gaps of 2, 1 and 2.
        sequence += if [0, 9].contains(&place) { 2 } else { 1 };
    }
    assert_eq!(sequence, 13);
    backup::verify(&folder(&home), &silent).unwrap();
}

#[tokio::test]
async fn lost_doubled_and_moved_records_are_found() {
    let (_log, home) = backed_up().await;
    let whole = fs::read(file(&home)).unwrap();
    let records = records(&whole);
    // The third record is event 4.
    let (third, fourth) = (records[2].clone(), records[3].clone());
    let lost = found(&home, |bytes| drop(bytes.drain(third.clone())));
    assert_eq!(lost, (4, Wrong::Missing { found: 5 }));
    let swapped = found(&home, |bytes| {
        let swapped = [&whole[fourth.clone()], &whole[third.clone()]].concat();
        bytes[third.start..fourth.end].copy_from_slice(&swapped);
    });
    assert_eq!(swapped, (4, Wrong::Missing { found: 5 }));
    let doubled = found(&home, |bytes| {
        bytes.splice(third.end..third.end, whole[third.clone()].iter().copied());
    });
    assert_eq!(doubled, (5, Wrong::Again { found: 4 }));
    // A gap says as much as an event: that there was one, and who says so.
    let gap_lost = found(&home, |bytes| drop(bytes.drain(records[0].clone())));
    assert_eq!(gap_lost, (1, Wrong::Missing { found: 3 }));
}

#[tokio::test]
async fn cut_and_missing_files_are_found() {
    let (_log, home) = backed_up().await;
    let whole = fs::read(file(&home)).unwrap();
    let records = records(&whole);
    for end in [records[4].end, records[4].end + 2, records[4].end + 20] {
        assert_eq!(found(&home, |bytes| bytes.truncate(end)), (7, Wrong::Cut));
    }
    let longer = found(&home, |bytes| bytes.push(0));
    assert_eq!(longer, (13, Wrong::Cut));
    fs::remove_file(file(&home)).unwrap();
    let gone = backup::verify(&folder(&home), &silent).unwrap_err();
    assert!(matches!(
        gone,
        BackupError::Wrong {
            sequence: 1,
            what: Wrong::NoFile,
            ..
        }
    ));
    fs::remove_file(folder(&home).join("manifest.json")).unwrap();
    let unfinished = backup::verify(&folder(&home), &silent).unwrap_err();
    assert!(
        matches!(unfinished, BackupError::NoBackup(_)),
        "{unfinished}"
    );
}

#[tokio::test]
async fn a_file_of_another_backup_is_found() {
    let ((_log, home), (_other_log, other)) = tokio::join!(backed_up(), backed_up());
    let (sequence, what) = found(&home, |bytes| *bytes = fs::read(file(&other)).unwrap());
    // Gaps are equal; the events are not.
    assert_eq!((sequence, what), (13, Wrong::OtherEnd));
}

#[tokio::test]
async fn a_changed_manifest_is_not_restored() {
    let (_log, home) = backed_up().await;
    let path = folder(&home).join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replacen("\"takenAt\": \"2", "\"takenAt\": \"1", 1),
    )
    .unwrap();
    let fresh = Fresh::new();
    let refused = fresh.restore(&folder(&home)).await;
    assert!(
        matches!(refused, Err(BackupError::Manifest { .. })),
        "{refused:?}"
    );
    fresh.end().await;
}

#[tokio::test]
async fn a_folder_with_anything_in_it_is_left_alone() {
    let (log, home) = backed_up().await;
    let again = log.back_up(&folder(&home), now(), &silent).await;
    assert!(matches!(again, Err(BackupError::NotEmpty(_))), "{again:?}");
    backup::verify(&folder(&home), &silent).unwrap();
}
