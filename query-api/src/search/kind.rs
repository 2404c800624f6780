//! The search, filters and orders of each kind of record.

use crate::paging::{BY_TIME_AND_NAME, Grouping, Sorted};

/// A kind of record as lists use it. All texts are SQL, over the columns of its table. Those of
/// `name`, `amount` and the fields' keys are, to the letter, what migrations 0012, 0028 and 0031
/// index.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The table, which is also the name of the kind.
    pub(crate) table: &'static str,
    /// The expression that `sort=name` orders by.
    pub(super) name: &'static str,
    /// The expression that `sort=amount` orders by, if there is an amount.
    pub(super) amount: Option<&'static str>,
    /// Other fields that lists are sorted and filtered by.
    pub(super) fields: &'static [Field],
    /// Whether the counters count the records of each state.
    pub(super) counts_states: bool,
}

/// A field whose index keeps each value's records together, newest first.
#[derive(Debug)]
pub(crate) struct Field {
    pub(super) grouping: Grouping,
    /// Its name as a parameter and for `sort`.
    pub(super) called: &'static str,
    pub(super) column: &'static str,
    /// The expression that the index contains.
    pub(super) key: &'static str,
    pub(super) holds: Holds,
    /// Whether `field_totals` counts the records of each value.
    pub(super) is_counted: bool,
}

/// The type of a field's content, which determines how values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Free text, compared regardless of its case. Only its beginning is indexed: an entry of a
    /// btree must stay small.
    Text,
    /// One of few words.
    Word,
    Flag,
}

/// The number of characters of a text in its key.
const KEY_LENGTH: usize = 100;

/// Whether a text's key is enough to identify it. That of a longer one is not.
pub(super) fn is_known_by_key(text: &str) -> bool {
    text.chars().count() < KEY_LENGTH
}

impl Kind {
    pub(super) fn field(&self, grouping: Grouping) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.grouping == grouping)
    }

    /// Returns the orders of its lists.
    pub(crate) fn sorts(&self) -> Vec<(&'static str, Sorted)> {
        let amount = self.amount.map(|_| ("amount", Sorted::Amount));
        let fields = self.fields.iter();
        let fields = fields.map(|field| (field.called, Sorted::Grouped(field.grouping)));
        let all = BY_TIME_AND_NAME.iter().copied().chain(amount);
        all.chain(fields).collect()
    }

    /// Returns SQL for the values of a text field of an organization, `$1`: the first `$2` of them,
    /// each found in the index from the previous one, however many records have it.
    pub(crate) fn values_of(&self, grouping: Grouping) -> Option<String> {
        let Field { column, key, .. } = self.field(grouping)?;
        let table = self.table;
        let next = |behind: &str| {
            format!(
                "SELECT {key} AS key, {column} AS value FROM {table}
                 WHERE org_id = $1 AND {key} > {behind} ORDER BY {key}, created_at DESC, id LIMIT 1"
            )
        };
        Some(format!(
            "WITH RECURSIVE found AS (
                 (SELECT *, 1 AS number FROM ({}) AS first)
                 UNION ALL
                 SELECT next.*, number + 1 FROM found CROSS JOIN LATERAL ({}) AS next
                 WHERE number < $2
             )
             SELECT value FROM found ORDER BY key",
            next("''"),
            next("found.key"),
        ))
    }
}

/// A text field. The key of a counted one is a separate column, so that Postgres counts in the
/// index only. The key of others is the expression that migration 0028 indexes.
macro_rules! text {
    ($grouping:ident, $called:literal, $column:literal, counted) => {
        Field {
            key: concat!($column, "_key"),
            is_counted: true,
            ..text!($grouping, $called, $column)
        }
    };
    ($grouping:ident, $called:literal, $column:literal) => {
        Field {
            grouping: Grouping::$grouping,
            called: $called,
            column: $column,
            key: concat!(
                "(lower(left(coalesce(",
                $column,
                r#", ''), 100)) COLLATE "C")"#
            ),
            holds: Holds::Text,
            is_counted: false,
        }
    };
}

pub(crate) static COMPANIES: Kind = Kind {
    table: "companies",
    name: r#"(lower(left(name, 100)) COLLATE "C")"#,
    amount: None,
    fields: &[
        text!(Email, "email", "email"),
        text!(City, "city", "city", counted),
        text!(Owner, "owner", "owner", counted),
    ],
    counts_states: false,
};

pub(crate) static DEALS: Kind = Kind {
    table: "deals",
    name: r#"(lower(left(title, 100)) COLLATE "C")"#,
    amount: Some("coalesce(amount, 0)"),
    fields: &[
        text!(State, "stage", "stage", counted),
        text!(Owner, "owner", "owner", counted),
    ],
    counts_states: false,
};

pub(crate) static CONTACTS: Kind = Kind {
    table: "contacts",
    name: r#"(lower(left(ltrim(coalesce(first_name, '') || ' ' || coalesce(last_name, '')), 100))
              COLLATE "C")"#,
    amount: None,
    fields: &[
        text!(Email, "email", "email"),
        text!(City, "city", "city", counted),
        text!(Owner, "owner", "owner", counted),
    ],
    counts_states: false,
};

pub(crate) static ORDERS: Kind = Kind {
    table: "orders",
    name: r#"(lower(left(coalesce(client_name, ''), 100)) COLLATE "C")"#,
    amount: Some("amount"),
    fields: &[
        text!(Email, "email", "client_email"),
        text!(Number, "number", "order_number"),
        Field {
            grouping: Grouping::State,
            called: "status",
            column: "status",
            key: "status",
            holds: Holds::Word,
            is_counted: false,
        },
    ],
    counts_states: true,
};

pub(crate) static LEADS: Kind = Kind {
    table: "leads",
    name: r#"(lower(left(name, 100)) COLLATE "C")"#,
    amount: None,
    fields: &[
        text!(Email, "email", "email"),
        text!(State, "status", "status", counted),
    ],
    counts_states: false,
};

pub(crate) static CLIENTS: Kind = Kind {
    table: "clients",
    name: r#"(lower(left(name, 100)) COLLATE "C")"#,
    amount: None,
    fields: &[
        text!(Email, "email", "email"),
        text!(City, "city", "city", counted),
        Field {
            grouping: Grouping::State,
            called: "isActive",
            column: "is_active",
            key: "is_active",
            holds: Holds::Flag,
            is_counted: true,
        },
    ],
    counts_states: false,
};
