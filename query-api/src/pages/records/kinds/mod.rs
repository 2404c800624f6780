//! Descriptions of each kind of record for the pages.

/// The statement that reads one record of a table.
macro_rules! record_of {
    ($table:literal: $values:literal) => {
        concat!(
            "SELECT created_at, updated_at, ARRAY[",
            $values,
            "] AS cells FROM ",
            $table,
            " WHERE org_id = $1 AND id = $2"
        )
    };
}

mod clients;
mod companies;
mod contacts;
mod deals;
mod leads;
mod orders;

use schemas::AggregateType;
use serde::Serialize;

use crate::progress::Projection;
use crate::search;

/// How a field is displayed and entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Look {
    Text,
    Email,
    Tel,
    Number,
    /// Minor units, shown with two decimals.
    Money,
    Percent,
    Date,
    Status,
    Flag,
}

/// A field of a record.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Field {
    /// Its name in the API.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) look: Look,
    pub(super) required: bool,
    /// Its names in other systems' exports, in lower case.
    pub(super) aliases: &'static str,
}

/// A column of a list.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) label: &'static str,
    pub(super) look: Look,
    /// Its name in `sort`, if the list can be sorted by it.
    pub(super) sort: Option<&'static str>,
}

/// The states that a list can be filtered by.
#[derive(Clone, Copy, Debug)]
pub(super) enum States {
    None,
    /// These, as stored in the table and as displayed.
    Known(&'static [(&'static str, &'static str)]),
    /// All existing ones.
    Any,
}

/// A kind of record.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) list: &'static search::Kind,
    pub(super) projection: Projection,
    pub(super) aggregate: AggregateType,
    pub(super) title: &'static str,
    pub(super) one: &'static str,
    pub(super) with_article: &'static str,
    /// The formats of its export; empty if there is no export.
    pub(super) formats: &'static [(&'static str, &'static str)],
    pub(super) columns: &'static [Column],
    /// SQL for the cells of these columns.
    pub(super) cells: &'static str,
    pub(super) fields: &'static [Field],
    /// SQL for the values of these fields: a whole statement, by organization and id.
    pub(super) record: &'static str,
    pub(super) states: States,
}

const fn column(label: &'static str, look: Look, sort: Option<&'static str>) -> Column {
    Column { label, look, sort }
}

const fn field(
    name: &'static str,
    label: &'static str,
    look: Look,
    aliases: &'static str,
) -> Field {
    Field {
        name,
        label,
        look,
        required: false,
        aliases,
    }
}

const fn required(field: Field) -> Field {
    Field {
        required: true,
        ..field
    }
}

/// The formats of most exports.
const FORMATS: &[(&str, &str)] = &[("csv", "CSV"), ("excel", "Excel"), ("pdf", "PDF")];

const EMAIL: Field = field(
    "email",
    "E-mail address",
    Look::Email,
    "email|e-mail|email address",
);

const OWNER: Field = field(
    "owner",
    "Owner",
    Look::Text,
    "company owner|contact owner|deal owner|owner|owner full name|account owner",
);

/// All kinds, in the order of the pages.
pub(super) static KINDS: [&Kind; 6] = [
    &contacts::CONTACTS,
    &companies::COMPANIES,
    &deals::DEALS,
    &orders::ORDERS,
    &leads::LEADS,
    &clients::CLIENTS,
];
