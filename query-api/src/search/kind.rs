//! What each kind of record is searched, filtered and sorted by.

use crate::paging::{Grouping, Sorted};

/// A kind of record as lists know it. All texts are SQL, over the columns of its table; those of
/// `name`, `amount` and the fields' keys are what migrations 0012, 0028 and 0031 index, to the
/// letter.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The table, which is what the kind is called too.
    pub(crate) table: &'static str,
    /// What `sort=name` orders by.
    pub(super) name: &'static str,
    /// What `sort=amount` orders by, where there is an amount.
    pub(super) amount: Option<&'static str>,
    /// What else lists are sorted and filtered by.
    pub(super) fields: &'static [Field],
    /// Whether the counters know how many records there are of each state.
    pub(super) counts_states: bool,
}

/// A field of which an index has each value's records together, newest first.
#[derive(Debug)]
pub(crate) struct Field {
    pub(super) grouping: Grouping,
    /// Its name as a parameter and for `sort`.
    pub(super) called: &'static str,
    pub(super) column: &'static str,
    /// What the index holds of it.
    pub(super) key: &'static str,
    pub(super) holds: Holds,
    /// Whether `field_totals` knows how many records have each value.
    pub(super) is_counted: bool,
}

/// What a field holds, by which its values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Free text, compared whatever its case. Only its beginning is indexed: an entry of a btree
    /// must stay small.
    Text,
    /// One of few words.
    Word,
    Flag,
}

/// How many characters of a text its key has.
const KEY_LENGTH: usize = 100;

/// Whether a text's key alone says that a field has it; of longer ones it says too little.
pub(super) fn is_known_by_key(text: &str) -> bool {
    text.chars().count() < KEY_LENGTH
}

impl Kind {
    pub(super) fn field(&self, grouping: Grouping) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.grouping == grouping)
    }

    /// What `sort` may be, each after a `-` too.
    pub(crate) fn sorts(&self) -> Vec<&'static str> {
        let amount = self.amount.map(|_| "amount");
        let fields = self.fields.iter().map(|field| field.called);
        let all = ["createdAt", "name"].into_iter().chain(amount);
        all.chain(fields).collect()
    }

    /// What `sort` means by a word.
    pub(super) fn sorted(&self, word: &str) -> Option<Sorted> {
        match word {
            "createdAt" => Some(Sorted::Created),
            "name" => Some(Sorted::Name),
            "amount" => self.amount.map(|_| Sorted::Amount),
            _ => {
                let field = self.fields.iter().find(|field| field.called == word)?;
                Some(Sorted::Grouped(field.grouping))
            }
        }
    }

    /// SQL for the values of a text field that an organization, `$1`, has: the first `$2` of them,
    /// each found in the index from the one before, however many records have it.
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

/// A field of text. The key of one that is counted is a column of its own, so that Postgres counts
/// in the index alone; the others' is the expression that migration 0028 indexes.
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
