//! Where rows stand in their lists: blocks of neighbours with exact counts, changed in the
//! transaction that changes the rows, so that a page's number leads to its block.
//!
//! A block begins with a row whose id's hash begins with zeros, and ends before the next such row.
//! So the blocks follow from the rows alone: whatever the batches were, and in whatever order rows
//! came and went, a fold of the log leads to the same blocks.

mod plan;
mod store;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use self::plan::{Changes, Key, LEVELS, Level, Plan, key, ranges};
use self::store::{Asked, Block};

/// The rows of a kind as its table has them, newest first and then by id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// The table, which is what the kind is called.
    pub(super) table: &'static str,
    /// The column of the rows' ids.
    pub(super) id: &'static str,
    /// The column of what a list belongs to, where it belongs to something.
    pub(super) parent: Option<&'static str>,
    /// What there is a list of each value of.
    pub(super) state: Option<State>,
}

/// The column of a state, of each of which there is a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// It holds a word, compared as it is.
    Word(&'static str),
    /// It holds free text. A list has the rows whose text is the same by its beginning, whatever
    /// its case, as another column has it; what has no text is in none of these.
    Text(&'static str),
}

impl Rows {
    /// The indexes that blocks are counted in.
    pub(super) fn indexes(self) -> Vec<String> {
        let table = self.table;
        let by_state = self.state.map(|state| match state {
            State::Word(column) => format!("{table}_newest_by_{column}"),
            State::Text(column) => format!("{table}_by_{column}"),
        });
        [format!("{table}_newest")]
            .into_iter()
            .chain(by_state)
            .collect()
    }
}

impl State {
    /// The column of what the rows of a list have in common.
    fn key(self) -> String {
        match self {
            Self::Word(column) => column.to_owned(),
            Self::Text(column) => format!("{column}_key"),
        }
    }
}

/// A list of rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct List {
    org_id: String,
    /// Empty where the list belongs to nothing.
    parent: String,
    /// Empty for the rows of all states. Free text as it was written, until it is to be written
    /// here.
    state: String,
}

/// What decides where a row stands in the lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowKey<'a> {
    pub(super) org_id: &'a str,
    pub(super) parent: &'a str,
    pub(super) state: &'a str,
    pub(super) created_at: DateTime<Utc>,
    pub(super) id: &'a str,
}

/// How the lists of a kind change with a batch.
pub(super) struct Blocks {
    rows: Rows,
    lists: BTreeMap<List, Changes>,
}

impl Blocks {
    pub(super) fn of(rows: Rows) -> Self {
        let lists = BTreeMap::new();
        Self { rows, lists }
    }

    /// A row comes to stand somewhere.
    pub(super) fn add(&mut self, row: RowKey<'_>) {
        self.change(row, 1);
    }

    /// A row does not stand there any more.
    pub(super) fn remove(&mut self, row: RowKey<'_>) {
        self.change(row, -1);
    }

    /// Either of both: 1 or -1.
    pub(super) fn change(&mut self, row: RowKey<'_>, change: i64) {
        let state = self.rows.state.map(|_| row.state);
        let state = state.filter(|state| !state.is_empty());
        for state in [""].into_iter().chain(state) {
            let list = List {
                org_id: row.org_id.to_owned(),
                parent: row.parent.to_owned(),
                state: state.to_owned(),
            };
            let changes = self.lists.entry(list).or_default();
            *changes.entry(key(row.created_at, row.id)).or_default() += change;
        }
    }

    /// Writes the changes. The rows must have been written before: blocks whose bounds change are
    /// counted anew.
    pub(super) async fn write(mut self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        self.leave_out_unchanged();
        if let Some(State::Text(_)) = self.rows.state {
            self.join_equal_states(rows).await?;
            self.leave_out_unchanged();
        }
        if self.lists.is_empty() {
            return Ok(());
        }
        let parts: Vec<_> = self
            .lists
            .iter()
            .flat_map(|(list, changes)| LEVELS.map(|level| (list, level, changes)))
            .collect();
        let known = self.read(rows, &parts).await?;
        let plans = parts
            .iter()
            .zip(known)
            .map(|((list, level, changes), known)| {
                (*list, *level, Plan::of(changes, *level, known))
            });
        self.carry_out(rows, &plans.collect::<Vec<_>>()).await
    }

    fn leave_out_unchanged(&mut self) {
        for changes in self.lists.values_mut() {
            changes.retain(|_, change| *change != 0);
        }
        self.lists.retain(|_, changes| !changes.is_empty());
    }

    /// Makes one list of those whose states are the same text. Which are is for Postgres to say: it
    /// compares what is asked for as well.
    async fn join_equal_states(&mut self, rows: &mut PgConnection) -> Result<(), sqlx::Error> {
        let states = self.lists.keys().map(|list| list.state.as_str());
        let states: BTreeSet<_> = states.filter(|state| !state.is_empty()).collect();
        if states.is_empty() {
            return Ok(());
        }
        let keys = store::keys_of(rows, &states).await?;
        for (mut list, changes) in std::mem::take(&mut self.lists) {
            if let Some(key) = keys.get(&list.state) {
                list.state.clone_from(key);
            }
            let joined = self.lists.entry(list).or_default();
            for (key, change) in changes {
                *joined.entry(key).or_default() += change;
            }
        }
        Ok(())
    }

    /// Of each list and level the blocks about the changes.
    async fn read(
        &self,
        rows: &mut PgConnection,
        parts: &[(&List, Level, &Changes)],
    ) -> Result<Vec<BTreeSet<Key>>, sqlx::Error> {
        let mut asked = Vec::with_capacity(parts.len());
        for (part, (list, level, changes)) in parts.iter().enumerate() {
            asked.extend(ranges(changes).map(|(from, to)| Asked {
                part,
                list,
                level: *level,
                from,
                to,
            }));
        }
        let mut known = vec![BTreeSet::new(); parts.len()];
        for (place, key) in store::read(rows, self.rows.table, &asked).await? {
            known[asked[place].part].insert(key);
        }
        Ok(known)
    }

    async fn carry_out(
        &self,
        rows: &mut PgConnection,
        plans: &[(&List, Level, Plan)],
    ) -> Result<(), sqlx::Error> {
        let kind = self.rows.table;
        let (mut gone, mut anew, mut shifted) = (Vec::new(), Vec::new(), Vec::new());
        for (list, level, plan) in plans {
            let block = |key, change| Block {
                list,
                level: *level,
                key,
                change,
            };
            gone.extend(plan.gone.iter().map(|key| block(key, 0)));
            anew.extend(plan.anew.iter().map(|key| block(key, 0)));
            shifted.extend(plan.shifted.iter().map(|(key, change)| block(key, *change)));
        }
        let mut is_any_empty = store::shift(rows, kind, &shifted).await?;
        if !anew.is_empty() {
            store::delete(rows, kind, &gone).await?;
            store::make(rows, kind, &anew).await?;
            is_any_empty |= store::count(rows, self.rows, &anew).await?;
        }
        if is_any_empty {
            let lists: Vec<_> = self.lists.keys().collect();
            store::delete_empty(rows, kind, &lists).await?;
        }
        Ok(())
    }
}
