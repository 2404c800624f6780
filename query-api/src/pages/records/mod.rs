//! Pages of business records: a list of each kind, one record with its history, and imports.

mod history;
mod import;
mod kinds;
mod list;
mod one;

use axum::routing::get;
use axum::{Extension, Router};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::kinds::{KINDS, Kind};
use self::list::grouped;
use crate::state::State;

pub(super) fn router() -> Router<State> {
    KINDS.iter().fold(Router::new(), |router, kind| {
        let table = kind.list.table;
        let pages = Router::new()
            .route(&format!("/dashboard/{table}"), get(list::list_records))
            .route(&format!("/dashboard/{table}/{{id}}"), get(one::show_record))
            .route(&format!("/dashboard/new/{table}"), get(one::new_record))
            .route(
                &format!("/dashboard/import/{table}"),
                get(import::show_import),
            );
        router.merge(pages.layer(Extension(*kind)))
    })
}

/// The page of a record. Ids may hold anything.
fn address_of(kind: &Kind, id: &str) -> String {
    format!("/dashboard/{}/{}", kind.list.table, encoded(id))
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// An amount in minor units as people write it; other text as it is.
fn money(minor: &str) -> String {
    let Ok(amount) = minor.parse::<i64>() else {
        return minor.to_owned();
    };
    let sign = if amount < 0 { "-" } else { "" };
    let whole = i64::try_from(amount.unsigned_abs() / 100).unwrap_or_default();
    let rest = amount.unsigned_abs() % 100;
    format!("{sign}{}.{rest:02}", grouped(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_their_thousands_and_decimals() {
        for (minor, shown) in [
            ("0", "0.00"),
            ("5", "0.05"),
            ("-5", "-0.05"),
            ("123456789", "1,234,567.89"),
            ("-100000", "-1,000.00"),
            ("9223372036854775807", "92,233,720,368,547,758.07"),
            ("", ""),
            ("much", "much"),
        ] {
            assert_eq!(money(minor), shown);
        }
    }

    #[test]
    fn an_id_of_any_characters_has_an_address() {
        let address = address_of(KINDS[0], "a/b?c#d%20 ü");
        assert_eq!(address, "/dashboard/contacts/a%2Fb%3Fc%23d%2520%20%C3%BC");
    }
}
