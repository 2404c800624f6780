//! Exports under faults, read slowly enough to be hurt in the middle.

use std::sync::Arc;

use super::Load;
use crate::notes::{Exported, Table};
use hostile::Dice;

/// Kinds of records that are exported, and the columns that distinguish rows.
pub(crate) const EXPORTED: &[(&str, &[&str])] = &[
    ("companies", &["id", "name", "domain", "city"]),
    ("deals", &["id", "title", "currency"]),
    ("contacts", &["id", "lastName", "email", "phone"]),
];

/// Exports one file after the other until the load is over.
pub(super) async fn read(load: Arc<Load>, mut dice: Dice) {
    while !load.client.is_over() {
        one(&load, &mut dice).await;
        tokio::time::sleep(dice.millis(200..1_500)).await;
    }
}

async fn one(load: &Load, dice: &mut Dice) {
    let org = load.org(dice);
    let Some((kind, columns)) = dice.pick(EXPORTED) else {
        return;
    };
    let position = org.positions.any(dice).filter(|_| dice.chance(50));
    let path = format!("/api/export/{kind}?format=csv");
    let pause = dice.millis(0..40);
    let (key, at) = (&org.key, position.as_deref());
    let file = load.client.download(dice, key, &path, at, pause);
    // If it broke off, its reader knows that there is more.
    let Some(file) = file.await else { return };
    load.client.notes.exported(Exported {
        org: org.id.clone(),
        kind,
        position,
        rows: table(&file, columns),
    });
}

/// A file's cells in these columns.
pub(crate) fn table(file: &[u8], columns: &[&str]) -> Table {
    let mut reader = csv::Reader::from_reader(file);
    let header = reader.headers().cloned().unwrap_or_default();
    let place = |name: &&str| header.iter().position(|column| column == *name);
    let places: Vec<_> = columns.iter().map(place).collect();
    let line = |row: csv::StringRecord| {
        let cells = places
            .iter()
            .map(|place| place.and_then(|place| row.get(place)));
        cells
            .map(|cell| cell.unwrap_or_default().to_owned())
            .collect()
    };
    reader.records().flatten().map(line).collect()
}
