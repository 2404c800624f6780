//! Pages of business records: a list of each kind, one record with its history, and imports.

mod aliases;
mod history;
mod import;
mod kinds;
mod list;
mod one;
mod query;

use axum::routing::get;
use axum::{Extension, Router};

pub use self::aliases::field_of_column;
use self::kinds::{KINDS, Kind};
use super::address::encoded;
use super::amounts;
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

/// Returns the address of a record's page. Ids may contain anything.
fn address_of(kind: &Kind, id: &str) -> String {
    format!("/dashboard/{}/{}", kind.list.table, encoded(id))
}

/// Formats an amount in minor units of a currency. Other text is returned unchanged.
fn money(minor: &str, currency: &str) -> String {
    match minor.parse::<i64>() {
        Ok(amount) => amounts::money_in(currency, amount),
        Err(_) => minor.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_their_thousands_and_decimals() {
        for (minor, shown) in [("123456789", "1,234,567.89"), ("", ""), ("much", "much")] {
            assert_eq!(money(minor, "EUR"), shown);
        }
        assert_eq!(money("500", "JPY"), "500");
    }

    #[test]
    fn an_id_of_any_characters_has_an_address() {
        let address = address_of(KINDS[0], "a/b?c#d%20 ü");
        assert_eq!(address, "/dashboard/contacts/a%2Fb%3Fc%23d%2520%20%C3%BC");
    }
}
